//! Node.js: the agent's modules, and `NODE_OPTIONS`.

use super::{Language, Mark};
use crate::{
    agent::{self, Call, CopiedAgent, Copying},
    env::{Entry, Env},
};
use otel_webhook_api::{Settings, defaults::NODEJS};

/// Node.js' row of the language table.
pub const ROW: Language = Language {
    name: "nodejs",
    inject: "inject-nodejs",
    containers: "nodejs-container-names",
    defaults: Some(&NODEJS),
    enabled_by_default: true,
    exports_from_target: true,
    in_init_containers: true,
    marks: &[Mark::Init(AGENT.name)],
    settings: |spec| spec.nodejs.as_ref().map(Settings::from).unwrap_or_default(),
    inject_into: |job| agent::inject(job, &AGENT),
};

const OPTIONS: &str = "NODE_OPTIONS";

const AGENT: CopiedAgent = CopiedAgent {
    name: "opentelemetry-auto-instrumentation-nodejs",
    mount_path: "/otel-auto-instrumentation-nodejs",
    target_path: |_| AGENT.mount_path.into(),
    extended: &[OPTIONS],
    platforms: None,
    fits_target: None,
    copies: |job, _| Copying::folder(&AGENT, job, "/autoinstrumentation/."),
    search_path: None,
    last: add_options,
};

fn add_options(call: &Call<'_>, env: &mut Env<'_>) {
    let option = format!(" --require {}/autoinstrumentation.js", call.path);
    env.extend(OPTIONS, |own| own.unwrap_or_default().to_owned() + &option);
    // Without a reader the SDK for Node.js drops all metrics.
    env.set_default(Entry::new("OTEL_METRICS_EXPORTER", "otlp"));
}
