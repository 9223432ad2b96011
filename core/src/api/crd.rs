//! The CustomResourceDefinition, made from the types.
//!
//! ```text
//! types ─ schemars ──> schema ─ mend ──> as the operator serves it ─ rules ──> bounds, patterns, CEL
//! ```
//!
//! The same schema is what validation checks types, values and patterns by
//! (`schema.rs`), so the API server and the webhook cannot disagree about them.

mod mend;
mod patterns;
mod pod;
mod rules;
pub mod schema;

use std::sync::LazyLock;

use kube::CustomResourceExt;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use super::Instrumentation;

pub use patterns::{INTERVAL, Pattern, RATIO};

/// Samplers that the OpenTelemetry specification and the operator know.
pub const SAMPLERS: [&str; 9] = [
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
    "jaeger_remote",
    "parentbased_jaeger_remote",
    "xray",
];

/// Propagators that the OpenTelemetry specification and the operator know.
pub const PROPAGATORS: [&str; 8] =
    ["tracecontext", "baggage", "b3", "b3multi", "jaeger", "xray", "ottrace", "none"];

static CRD: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(schema::CRD).expect("it is written by a program"));

/// The CustomResourceDefinition as the types say it. The program has it as it
/// was made last (`crd.json`): making it takes longer than all else that the
/// program does until it is ready, much memory, and half a megabyte of code.
pub fn of_types() -> Value {
    let mut crd =
        serde_json::to_value(Instrumentation::crd()).expect("a CustomResourceDefinition is plain JSON");
    for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
        let schema = &mut version["schema"]["openAPIV3Schema"];
        mend::mend(schema);
        rules::add(schema);
    }
    crd
}

/// The CustomResourceDefinition of Instrumentation, as `otel-webhook crd` prints it.
pub fn crd() -> Value {
    CRD.clone()
}

/// The YAML of [`crd`].
pub fn yaml() -> String {
    serde_saphyr::to_string(&*CRD).expect("plain JSON is YAML")
}

pub(super) fn samplers(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "nullable": true, "enum": SAMPLERS})
}

pub(super) fn propagators(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "nullable": true,
        "items": {"type": "string", "enum": PROPAGATORS},
    })
}
