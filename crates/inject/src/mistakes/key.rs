//! The key of an annotation or a label, and the annotation that was probably meant.

use crate::language::{self, LANGUAGES};
use otel_webhook_api::{ANNOTATION_PREFIX, defaults::NAMESPACE_IMAGE_PREFIX, validation::nearest};

/// Domains of other annotations of the OpenTelemetry Operator, and of the webhook's own.
const WITH_OTHER_KEYS: [&str; 3] = ["sidecar.opentelemetry.io", "resource.opentelemetry.io", "otel-webhook"];

/// Parts of a domain that show that an annotation of ours is meant. `newrelic` is not among them: that product has
/// annotations such as `instrumentation.newrelic.com/inject-java`.
const OURS: [&str; 2] = ["opentelemetry", "otel"];

/// A key that may be meant as one of ours.
pub struct Key<'a> {
    /// The whole key.
    pub whole: &'a str,
    /// The rest after the domain.
    pub word: &'a str,
    /// Whether it has the prefix.
    pub is_prefixed: bool,
    /// Whether only the exact name of an annotation is one of ours.
    is_exact: bool,
}

impl<'a> Key<'a> {
    /// Reads a key. `None` if it belongs to something else.
    pub fn of(whole: &'a str) -> Option<Self> {
        if let Some(word) = whole.strip_prefix(ANNOTATION_PREFIX) {
            return Some(Self { whole, word, is_prefixed: true, is_exact: false });
        }
        let (domain, word) = whole.rsplit_once('/').unwrap_or(("", whole));
        let is_exact = domain.is_empty() || WITH_OTHER_KEYS.contains(&domain);
        (is_exact || is_like_ours(domain)).then_some(Self { whole, word, is_prefixed: false, is_exact })
    }

    /// The annotation that is probably meant, without the prefix.
    pub fn meant(&self) -> Option<&'static str> {
        let exact = language::keys().find(|known| *known == self.word);
        let is_of_ours = |word: &&str| !self.is_exact || LANGUAGES.iter().any(|row| row.inject == *word);
        match exact {
            Some(word) => Some(word).filter(is_of_ours),
            None if self.is_exact => None,
            None => near(self.word),
        }
    }

    /// Whether it is an annotation of pods and namespaces.
    pub fn is_known(&self) -> bool {
        self.is_prefixed && language::keys().any(|known| known == self.word)
    }

    /// Whether it is one by which the operator keeps the default images of Instrumentations.
    pub fn is_default_image(&self) -> bool {
        self.word.starts_with("default-auto-instrumentation-") && self.word.ends_with("-image")
    }

    /// The end of an annotation with a default image of a namespace, which is the language.
    pub fn default_image_of(&self) -> Option<&'a str> {
        self.whole.strip_prefix(NAMESPACE_IMAGE_PREFIX)
    }
}

/// The most similar annotation, without the prefix.
pub fn near(word: &str) -> Option<&'static str> {
    // Few letters differ between "inject" and "inject-go", but it is no misspelling.
    let is_bare = word.trim_end_matches('-') == "inject";
    nearest(word, language::keys()).filter(|_| !is_bare)
}

/// Whether a domain was probably meant as ours.
fn is_like_ours(domain: &str) -> bool {
    let domain = domain.to_ascii_lowercase();
    if domain == "instrumentation" {
        return true;
    }
    domain.split('.').any(|part| {
        let is_similar = |name: &str| name.len() > 8 && nearest(part, [name]).is_some();
        OURS.iter().any(|name| part == *name || is_similar(name))
    })
}
