//! Node.js: the agent's modules, and `NODE_OPTIONS`.

use crate::{
    agents::copied::{Call, CopiedAgent},
    env::{Entry, Env},
    language::{self, NODEJS_AGENT},
};

const OPTIONS: &str = "NODE_OPTIONS";

/// The agent.
pub const AGENT: CopiedAgent<'static> = CopiedAgent {
    name: NODEJS_AGENT,
    mount_path: "/otel-auto-instrumentation-nodejs",
    target_path: None,
    extended: language::NODEJS.extended,
    platforms: None,
    fits_target: None,
    images: |agent, injection, _| agent.folder(injection, "autoinstrumentation"),
    search_path: None,
    last: add_options,
};

fn add_options(call: &Call<'_, '_>, env: &mut Env<'_>) {
    let option = format!(" --require {}/autoinstrumentation.js", call.path);
    env.extend(OPTIONS, |own| own.unwrap_or_default().to_owned() + &option);
    // Without a reader the SDK for Node.js drops all metrics.
    env.set_default(Entry::new("OTEL_METRICS_EXPORTER", "otlp"));
}
