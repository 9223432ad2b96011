//! Python: the agent's packages, and `PYTHONPATH`.

use super::{Language, Mark};
use crate::{
    agent::{self, Call, CopiedAgent, Copying, Platforms},
    env::{Entry, Env},
    target::SearchPath,
};
use otel_webhook_api::{Settings, defaults::PYTHON};

/// Python's row of the language table.
pub const ROW: Language = Language {
    name: "python",
    inject: "inject-python",
    containers: "python-container-names",
    defaults: Some(&PYTHON),
    enabled_by_default: true,
    exports_from_target: true,
    in_init_containers: true,
    marks: &[Mark::Init(AGENT.name)],
    settings: |spec| spec.python.as_ref().map(Settings::from).unwrap_or_default(),
    inject_into: |job| agent::inject(job, &AGENT),
};

const PATH: &str = "PYTHONPATH";

const AGENT: CopiedAgent = CopiedAgent {
    name: "opentelemetry-auto-instrumentation-python",
    mount_path: "/otel-auto-instrumentation-python",
    target_path: |_| AGENT.mount_path.into(),
    extended: &[PATH],
    platforms: Some(Platforms {
        annotation: "otel-python-platform",
        choices: &[("glibc", "/autoinstrumentation/."), ("musl", "/autoinstrumentation-musl/.")],
    }),
    fits_target: None,
    copies: |job, folder| Copying::folder(&AGENT, job, folder),
    search_path: Some(SearchPath { name: PATH, join: around }),
    last: add_exporters,
};

/// The interpreter runs the first `sitecustomize` that it finds, so the
/// agent's own comes first; its packages come after the application's.
fn around(present: Option<&str>) -> String {
    let packages = AGENT.mount_path;
    let start = format!("{packages}/opentelemetry/instrumentation/auto_instrumentation");
    match present {
        None => format!("{start}:{packages}"),
        Some(present) => format!("{start}:{present}:{packages}"),
    }
}

/// The agent's image has exporters for these only.
fn add_exporters(_: &Call<'_>, env: &mut Env<'_>) {
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_TRACES_EXPORTER", "otlp"),
        ("OTEL_METRICS_EXPORTER", "otlp"),
        ("OTEL_LOGS_EXPORTER", "otlp"),
    ] {
        env.set_default(Entry::new(name, value));
    }
}
