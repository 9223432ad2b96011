//! The service account of the webhook, and the objects of managed certificates.

/// A service account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The objects of a webhook with managed certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedNames {
    /// The namespace of the webhook.
    pub namespace: String,
    /// The Secret.
    pub secret: String,
    /// The configurations.
    pub configurations: Vec<String>,
}

impl Account {
    /// Parses `NAMESPACE/NAME`.
    ///
    /// # Errors
    /// If the text has another format.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err("expected NAMESPACE/NAME, such as otel-webhook/otel-webhook".to_owned()),
        }
    }
}
