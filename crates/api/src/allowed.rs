//! Which namespaces may use an Instrumentation of another namespace.

/// The annotation of an Instrumentation that names the namespaces, comma-separated, or `*` for all.
///
/// It has an effect with `--cross-namespace=granted` only.
pub const ALLOWED_NAMESPACES: &str = "otel-webhook/allowed-namespaces";

/// Every namespace.
const ALL: &str = "*";

/// The namespaces that an Instrumentation allows besides its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedNamespaces(Box<[Box<str>]>);

impl AllowedNamespaces {
    /// Reads the value of the annotation; `None` without the annotation.
    ///
    /// An entry that is not the name of a namespace allows none.
    pub fn new(annotation: Option<&str>) -> Self {
        Self(entries(annotation.unwrap_or_default()).map(Into::into).collect())
    }

    /// Whether a namespace is among the allowed ones.
    pub fn has(&self, namespace: &str) -> bool {
        self.0.iter().any(|entry| **entry == *ALL || **entry == *namespace)
    }
}

/// The entries of the annotation. Spaces around them are trimmed, and empty ones ignored.
fn entries(annotation: &str) -> impl Iterator<Item = &str> {
    annotation.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

/// The entries that are not valid namespace names, and so allow no namespace.
pub fn malformed(annotation: &str) -> impl Iterator<Item = &str> {
    entries(annotation).filter(|entry| *entry != ALL && !is_namespace(entry))
}

/// Whether a namespace can have this name (a label of RFC 1123).
fn is_namespace(name: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let bytes = name.as_bytes();
    bytes.len() <= 63 && name.bytes().all(is_inner) && is_end(bytes.first()) && is_end(bytes.last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_trimmed_and_one_star_allows_every_namespace() {
        for (annotation, expected) in [
            (None, [false, false]),
            (Some(""), [false, false]),
            (Some("shop"), [true, false]),
            (Some(" cart ,\tshop,"), [true, true]),
            (Some("cart,*"), [true, true]),
            (Some("sho*, shop-2, Shop"), [false, false]),
        ] {
            let allowed = AllowedNamespaces::new(annotation);
            assert_eq!(["shop", "cart"].map(|name| allowed.has(name)), expected, "{annotation:?}");
        }
        assert!(!AllowedNamespaces::new(Some(",")).has(""));
    }

    #[test]
    fn malformed_entries_are_those_that_are_not_namespace_names() {
        let long = "a".repeat(64);
        let annotation = format!("shop, team-*, Shop, a.b, -a, a-, *, a b, ,{long}, 0, ü");
        let found: Vec<_> = malformed(&annotation).collect();
        assert_eq!(found, ["team-*", "Shop", "a.b", "-a", "a-", "a b", &long, "ü"]);
    }
}
