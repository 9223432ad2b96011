//! The program's handling of reviews.

use std::sync::Arc;

use futures::FutureExt;
use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_inject::Settings;
use otel_webhook_server::admission::Admission;
use otel_webhook_store::{Writer, cluster};
use otel_webhook_telemetry::Metrics;
use otel_webhook_testkit::load::stages::Answer;
use serde_json::Value;

/// The webhook's own handling of reviews, without a server around it.
pub fn program(objects: &[Value], settings: Settings) -> Answer {
    let mut writer = Writer::new(DefaultImages::default());
    for object in objects {
        writer.put(object);
    }
    writer.publish();
    let admission = Admission::new(writer.store(), settings, None, Arc::new(Metrics::new()));
    Box::new(move |body| {
        let answer = admission.mutate_pod(body, cluster::deadline()).now_or_never();
        answer.expect("nothing to wait for without a cluster").expect("a review")
    })
}
