//! Closed lists of names, and their schema.

#[cfg(feature = "schema")]
use schemars::{Schema, SchemaGenerator, json_schema};

#[cfg(feature = "schema")]
use crate::declarative::{ASSUME_SUPPORTED, ON_UNSUPPORTED, ON_UNSUPPORTED_VALUES};

/// Samplers of the OpenTelemetry specification and the operator.
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

/// Propagators of the OpenTelemetry specification and the operator.
pub const PROPAGATORS: [&str; 8] =
    ["tracecontext", "baggage", "b3", "b3multi", "jaeger", "xray", "ottrace", "none"];

/// The schema of `spec.declarativeConfig`: validation checks the document by the schema of its format.
#[cfg(feature = "schema")]
pub(crate) fn declarative(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "nullable": true,
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {
            ON_UNSUPPORTED: {
                "type": "string",
                "nullable": true,
                "enum": ON_UNSUPPORTED_VALUES,
                "description": "What happens to agents that cannot use the file: they are skipped, or get variables for what \
                    these can express.",
            },
            ASSUME_SUPPORTED: {
                "type": "boolean",
                "nullable": true,
                "description": "Whether agents of unknown images and versions are expected to use the file.",
            },
        },
    })
}

/// Languages that an Instrumentation can opt pods in to, as in the keys of the annotations that opt in.
pub const LANGUAGES: [&str; 8] = ["java", "nodejs", "python", "dotnet", "go", "apache-httpd", "nginx", "sdk"];

/// Names that no agent of `spec.agents` may have: those of languages, and values that opt in or out.
pub fn reserved() -> impl Iterator<Item = &'static str> {
    LANGUAGES.into_iter().chain(["agent", "true", "false"])
}

/// The schema of a list of languages.
#[cfg(feature = "schema")]
pub(crate) fn languages(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "nullable": true,
        "maxItems": 64,
        "items": {"type": "string", "enum": LANGUAGES},
    })
}

/// The schema of a list of propagators.
#[cfg(feature = "schema")]
pub(crate) fn propagators(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "nullable": true,
        "items": {"type": "string", "enum": PROPAGATORS},
    })
}
