//! The status of a rejection in the form of the API server, so that clients show it well.

use serde::Serialize;

use otel_webhook_api::validation::Problem;
use otel_webhook_inject::line::one_line;

/// Why an object was rejected: a `Status` of Kubernetes.
#[derive(Debug, Serialize)]
pub struct Status {
    #[serde(rename = "status")]
    result: &'static str,
    code: u16,
    reason: &'static str,
    message: String,
    details: Details,
}

#[derive(Debug, Serialize)]
struct Details {
    group: &'static str,
    kind: &'static str,
    name: String,
    causes: Vec<Cause>,
}

#[derive(Debug, Serialize)]
struct Cause {
    reason: &'static str,
    message: String,
    field: String,
}

impl Status {
    /// The status for an Instrumentation with these errors.
    pub fn invalid(name: &str, errors: &[Problem]) -> Self {
        let sentences: Vec<_> = errors.iter().map(ToString::to_string).collect();
        let list = match &sentences[..] {
            [only] => only.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let causes = errors.iter().map(|error| Cause {
            reason: error.cause.reason(),
            message: one_line(&*error.message),
            field: one_line(&*error.field),
        });
        Self {
            result: "Failure",
            code: 422,
            reason: "Invalid",
            message: one_line(format!("Instrumentation.opentelemetry.io \"{name}\" is invalid: {list}")),
            details: Details {
                group: "opentelemetry.io",
                kind: "Instrumentation",
                name: name.to_owned(),
                causes: causes.collect(),
            },
        }
    }
}
