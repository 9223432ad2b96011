//! The prefixes of annotations.

use std::fmt;

/// The prefix of every annotation that opts in to injection or configures it.
pub const ANNOTATION_PREFIX: &str = "instrumentation.opentelemetry.io/";

/// The prefix of annotations that set one resource attribute each.
pub const RESOURCE_PREFIX: &str = "resource.opentelemetry.io/";

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

    /// The names, and `*` for all.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|name| &**name)
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

/// The annotation of a pod or a namespace that chooses the delivery. It overrides Instrumentations.
pub const DELIVERY_ANNOTATION: &str = "otel-webhook/delivery";

/// How an agent gets into a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// An init container copies it into a volume, as with the operator.
    #[default]
    InitContainer,
    /// Its image is mounted as a volume.
    ImageVolume,
    /// Its image is mounted where every node that the pod may run on can mount it, and copied elsewhere.
    Auto,
}

impl Delivery {
    /// The valid names.
    pub const NAMES: [&str; 3] = ["initContainer", "imageVolume", "auto"];

    const ALL: [Self; 3] = [Self::InitContainer, Self::ImageVolume, Self::Auto];

    /// Reads a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|delivery| delivery.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The annotation of an Instrumentation, a namespace, or the namespace or the Lease of the release that pauses
/// injection into new pods.
pub const PAUSED_ANNOTATION: &str = "otel-webhook/paused";

/// The prefix of this webhook's own annotations and labels.
pub const OWN_PREFIX: &str = "otel-webhook/";

/// The keys with this prefix, without it; there are also those that begin like
/// [`NAMESPACE_IMAGE_PREFIX`](crate::defaults::NAMESPACE_IMAGE_PREFIX).
pub const OWN_KEYS: [&str; 12] = [
    "allowed-namespaces",
    "config",
    "conversion",
    "delivery",
    "injected",
    "message",
    "paused",
    "replaced-certificates-valid-until",
    "restart",
    "restarted",
    "resume-restart",
    "status",
];

/// The annotation of a workload, a namespace or an Instrumentation that consents to restarts.
pub const RESTART_ANNOTATION: &str = "otel-webhook/restart";

/// The annotation of an Instrumentation that resumes stopped restarts, by another value than before.
pub const RESUME_ANNOTATION: &str = "otel-webhook/resume-restart";

/// The values of [`RESTART_ANNOTATION`].
pub const CONSENTS: [&str; 3] = ["rollout", "evict", "never"];

/// Returns whether a value of the annotation pauses: only `true` does, in any case.
pub fn is_paused(value: Option<&str>) -> bool {
    value.is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// What to do about a value that pauses nothing.
pub const UNCLEAR_REMEDY: &str = "set it to \"true\" to pause injection, or remove it";

/// Returns whether a value is neither empty, `true` nor `false`. It pauses nothing, which may not be what was meant.
pub fn is_unclear(value: &str) -> bool {
    !value.is_empty() && !["true", "false"].iter().any(|clear| value.eq_ignore_ascii_case(clear))
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

    #[test]
    fn each_name_is_that_of_one_delivery() {
        let read = Delivery::NAMES.map(Delivery::parse);
        assert_eq!(read, Delivery::ALL.map(Some));
        assert_eq!(["", "Auto", "image-volume"].map(Delivery::parse), [None; 3]);
        assert_eq!(Delivery::default().to_string(), "initContainer");
    }

    #[test]
    fn only_true_pauses_and_another_word_is_unclear() {
        for (value, pauses, unclear) in [
            ("true", true, false),
            ("True", true, false),
            ("TRUE", true, false),
            ("false", false, false),
            ("False", false, false),
            ("", false, false),
            ("yes", false, true),
            ("1", false, true),
            (" true", false, true),
        ] {
            assert_eq!((is_paused(Some(value)), is_unclear(value)), (pauses, unclear), "{value:?}");
        }
        assert!(!is_paused(None));
    }
}
