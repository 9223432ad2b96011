//! Python: the agent's packages, and `PYTHONPATH`.

use crate::{
    agents::copied::{Call, CopiedAgent, Platforms},
    env::{Entry, Env},
    language::{self, PYTHON_AGENT},
    target::SearchPath,
};

const PATH: &str = "PYTHONPATH";

/// The agent.
pub const AGENT: CopiedAgent<'static> = CopiedAgent {
    name: PYTHON_AGENT,
    mount_path: "/otel-auto-instrumentation-python",
    target_path: None,
    extended: language::PYTHON.extended,
    platforms: Some(Platforms {
        annotation: "otel-python-platform",
        choices: &[("glibc", "autoinstrumentation"), ("musl", "autoinstrumentation-musl")],
    }),
    fits_target: None,
    images: |agent, injection, folder| agent.folder(injection, folder),
    search_path: Some(SearchPath { name: PATH, join: around }),
    last: add_exporters,
};

/// The interpreter runs only the first `sitecustomize` in the path, so the
/// agent's one is first; its packages are after the application's.
fn around(present: Option<&str>) -> String {
    let packages = AGENT.mount_path;
    let start = format!("{packages}/opentelemetry/instrumentation/auto_instrumentation");
    match present {
        None => format!("{start}:{packages}"),
        Some(present) => format!("{start}:{present}:{packages}"),
    }
}

/// The agent's image has exporters for these protocols only.
fn add_exporters(_: &Call<'_, '_>, env: &mut Env<'_>) {
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_TRACES_EXPORTER", "otlp"),
        ("OTEL_METRICS_EXPORTER", "otlp"),
        ("OTEL_LOGS_EXPORTER", "otlp"),
    ] {
        env.set_default(Entry::new(name, value));
    }
}
