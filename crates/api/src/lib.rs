//! The Instrumentation resource: its types, defaults, validation and
//! CustomResourceDefinition. No I/O.
//!
//! The types follow `opentelemetry.io/v1alpha1` as the OpenTelemetry Operator serves it; v1beta1 is read as the same type
//! (`read`), and converted to and from it (`conversion`). They follow it field by field, with additional fields: `spec.selector`, `spec.priority`, `spec.inject`,
//! `spec.namespaceSelector`, `spec.agents`, `spec.declarativeConfig`, `spec.probes`, and `delivery` of `spec` and of some languages. The feature `schema`
//! generates the CRD from them.
//!
//! From the bottom up:
//!
//! - values: `values`, [`quantity`], [`annotations`]
//! - types: `language`, `agent`, `spec`
//! - defaults: [`defaults`], [`sizes`], [`otlp`], [`mod@image`]
//! - the schema: [`crd`]
//! - the versions: `version`, `conversion`
//! - the webhook endpoints: `defaulting`, [`validation`]

/// Group and version of the Instrumentations that the operator serves.
pub const API_VERSION: &str = "opentelemetry.io/v1alpha1";

mod agent;
pub mod annotations;
mod conversion;
pub mod crd;
pub mod declarative;
mod defaulting;
pub mod defaults;
pub mod image;
pub mod images;
mod language;
pub mod otlp;
pub mod quantity;
mod read;
pub mod sizes;
mod spec;
mod status;
pub mod validation;
mod values;
mod version;

pub use agent::{AGENTS_FIELD, AgentVariable, GenericAgent, MOUNT_PATH, default_mount_path, with_mount_path};
pub use annotations::{
    ALLOWED_NAMESPACES, ANNOTATION_PREFIX, AllowedNamespaces, DELIVERY_ANNOTATION, Delivery,
    PAUSED_ANNOTATION, RESOURCE_PREFIX,
};
pub use conversion::{
    CONVERSION_ANNOTATION, ConversionError, convert, has_foreign_note, in_version, version_of,
};
pub use defaulting::{defaulting, is_written};
pub use language::{Agent, ApacheHttpd, Extension, Go, Java, LanguageSettings, Nginx};
pub use read::{OnlyBeta, read};
#[cfg(feature = "schema")]
pub use spec::Instrumentation;
pub use spec::{Defaults, Exporter, InstrumentationSpec, ResourceAttributes, Sampler, Tls};
pub use status::InstrumentationStatus;
pub use values::{EnvVar, LabelSelector, LabelSelectorRequirement, Mode, Raw, is_directive_name, is_hollow};
pub use version::{ALPHA_FIELDS, UnknownVersion, Version};
