//! The CustomResourceDefinition, generated from the types.
//!
//! ```text
//! types with their bounds, patterns and CEL ─ schemars ──> schema ─ mend ──> as the operator serves it
//! ```
//!
//! Validation checks types, values and patterns by the same schema
//! (`schema.rs`), so the API server and the webhook cannot disagree about them.

#[cfg(feature = "schema")]
mod mend;
pub mod names;
pub(crate) mod patterns;
#[cfg(feature = "schema")]
pub(crate) mod pod;
#[cfg(feature = "schema")]
pub(crate) mod rules;
pub mod schema;
mod versions;

use std::sync::LazyLock;

use serde_json::Value;

pub use names::{LANGUAGES, PROPAGATORS, SAMPLERS};
pub use patterns::{INTERVAL, Pattern, RATIO};
pub use versions::of;

static CRD: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(schema::CRD).expect("crd.json is generated"));

/// The CustomResourceDefinition, generated from the types. The program contains the
/// generated file (`crd.json`): generating it at each start would take longer than the
/// rest of the start, much memory, and half a megabyte of code.
#[cfg(feature = "schema")]
pub fn of_types() -> Value {
    use kube::CustomResourceExt;

    let crd = crate::spec::Instrumentation::crd();
    let mut crd = serde_json::to_value(crd).expect("a CustomResourceDefinition is plain JSON");
    for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
        let schema = &mut version["schema"]["openAPIV3Schema"];
        mend::mend(schema);
    }
    crd
}

/// The CustomResourceDefinition of Instrumentation, as `otel-webhook crd` prints it.
pub fn crd() -> Value {
    CRD.clone()
}
