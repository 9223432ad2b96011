//! The Instrumentation resource: its types, defaults, validation and
//! CustomResourceDefinition. No I/O.
//!
//! The types follow `opentelemetry.io/v1alpha1` as the OpenTelemetry Operator
//! serves it, field by field, with additional fields: `spec.selector`, `spec.priority`, `spec.inject`,
//! `spec.namespaceSelector`, `spec.agents`, and `delivery` of `spec` and of some languages. The feature `schema`
//! generates the CRD from them.
//!
//! From the bottom up:
//!
//! - values: `raw`, [`quantity`], `labels`, `variable`, `annotations`, `allowed`, `delivery`, [`paused`], `mode`, [`directive`]
//! - types: `language`, `agent`, `spec`
//! - defaults: [`defaults`], [`sizes`], [`otlp`], [`mod@image`]
//! - the schema: [`crd`]
//! - the webhook endpoints: `defaulting`, [`validation`]

mod agent;
mod allowed;
mod annotations;
pub mod crd;
mod defaulting;
pub mod defaults;
mod delivery;
pub mod directive;
pub mod image;
pub mod images;
mod labels;
mod language;
mod mode;
pub mod otlp;
pub mod paused;
pub mod quantity;
mod raw;
pub mod sizes;
mod spec;
mod status;
pub mod validation;
mod variable;

pub use agent::{AGENTS_FIELD, AgentVariable, GenericAgent, MOUNT_PATH, default_mount_path, with_mount_path};
pub use allowed::{ALLOWED_NAMESPACES, AllowedNamespaces};
pub use annotations::{ANNOTATION_PREFIX, RESOURCE_PREFIX};
pub use defaulting::{defaulting, is_written};
pub use delivery::{DELIVERY_ANNOTATION, Delivery};
pub use labels::{LabelSelector, LabelSelectorRequirement};
pub use language::{Agent, ApacheHttpd, Extension, Go, Java, LanguageSettings, Nginx};
pub use mode::Mode;
pub use raw::{Raw, is_hollow};
#[cfg(feature = "schema")]
pub use spec::Instrumentation;
pub use spec::{Defaults, Exporter, InstrumentationSpec, ResourceAttributes, Sampler, Tls};
pub use status::InstrumentationStatus;
pub use variable::EnvVar;
