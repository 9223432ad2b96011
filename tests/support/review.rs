//! The core, asked about generated pods.

use std::{env, sync::Arc};

use otel_webhook::store::{Snapshot, Writer};
use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_inject as inject;
use otel_webhook_inject::{Input, Outcome, Settings, language::LanguageSet, pod::Pod};
use serde_json::Value;

use crate::generator::{Generated, NAMESPACE};

/// How many pods are tried: as `OTEL_WEBHOOK_GENERATED_PODS` says, or the usual number.
pub fn how_many(usual: u64) -> u64 {
    let asked = env::var("OTEL_WEBHOOK_GENERATED_PODS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(usual)
}

/// What is known around a generated pod.
pub fn surroundings(generated: &Generated) -> Arc<Snapshot> {
    let mut writer = Writer::new(DefaultImages::default());
    writer.put(&generated.instrumentation);
    writer.publish();
    writer.store().snapshot()
}

/// What the core makes of a pod, with every language on.
pub fn review(snapshot: &Snapshot, pod: &Value) -> Outcome {
    let settings = Settings { languages: LanguageSet::all(), ..Settings::default() };
    let text = pod.to_string();
    let pod = Pod::parse(&text).expect("a pod");
    let input =
        Input { pod: &pod, namespace: NAMESPACE, catalogue: &snapshot.catalogue, settings: &settings };
    inject::build(inject::decide(input), &snapshot.owners)
}
