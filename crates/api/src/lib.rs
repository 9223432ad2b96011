//! The Instrumentation resource: its types, its defaults, its rules
//! and its CustomResourceDefinition. No I/O, and nothing of the other modules.
//!
//! The types follow `opentelemetry.io/v1alpha1` as the OpenTelemetry Operator
//! serves it, field by field, plus two of the product's own: `spec.selector`
//! and `spec.priority`.

mod allowed;
pub mod crd;
mod defaulting;
pub mod defaults;
pub mod image;
mod labels;
mod language;
pub mod otlp;
pub mod quantity;
mod raw;
pub mod sizes;
mod spec;
pub mod validation;

pub use allowed::{ALLOWED_NAMESPACES, AllowedNamespaces};
pub use defaulting::{defaulting, is_written};
pub use labels::{LabelSelector, LabelSelectorRequirement};
pub use language::{Agent, ApacheHttpd, Extension, Go, Java, LanguageSettings, Nginx};
pub use raw::{Raw, is_hollow};
#[cfg(feature = "schema")]
pub use spec::Instrumentation;
pub use spec::{
    Defaults, EnvVar, Exporter, InstrumentationSpec, InstrumentationStatus, ResourceAttributes, Sampler, Tls,
};

/// The prefix of every annotation that asks for injection or steers it.
pub const ANNOTATION_PREFIX: &str = "instrumentation.opentelemetry.io/";

/// The prefix of annotations that give one resource attribute each.
pub const RESOURCE_PREFIX: &str = "resource.opentelemetry.io/";
