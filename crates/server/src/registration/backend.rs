//! The backends of webhooks.

use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;

/// The backend of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Backend {
    /// A Service of the cluster.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The port.
        port: i32,
        /// The path.
        path: String,
    },
    /// A URL.
    Url(String),
}

impl Backend {
    /// Returns the backend of a webhook.
    pub fn of(config: &WebhookClientConfig) -> Self {
        match &config.service {
            Some(service) => Self::Service {
                namespace: service.namespace.clone(),
                name: service.name.clone(),
                port: service.port.unwrap_or(443),
                path: service.path.clone().unwrap_or_else(|| "/".to_owned()),
            },
            None => Self::Url(config.url.clone().unwrap_or_default()),
        }
    }

    /// Returns the path of the webhook.
    pub fn path(&self) -> String {
        match self {
            Self::Service { path, .. } => path.clone(),
            Self::Url(url) => {
                url.parse::<hyper::Uri>().map_or_else(|_| String::new(), |url| url.path().to_owned())
            }
        }
    }
}

impl std::fmt::Display for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Service { namespace, name, port, .. } => {
                write!(f, "Service {namespace}/{name}, port {port}")
            }
            Self::Url(url) => f.write_str(url),
        }
    }
}
