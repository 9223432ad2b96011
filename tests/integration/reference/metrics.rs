//! Metrics: name, type, labels and meaning.

use std::{collections::BTreeSet, time::Duration};

use otel_webhook_fleet::{report::Report, state::State};
use otel_webhook_inject::pause::Pause;
use otel_webhook_telemetry::{Metrics, ReviewOutcome};
use otel_webhook_testkit::reports::{language, workload};
use regex::Regex;

use super::{beginning, code, prose, table};

pub fn page() -> String {
    let purpose = "Every metric of `/metrics`, in the format of OpenMetrics. Those of the webhook are exposed by \
                   `serve`, those of pods, workloads and restarts by `controller`. The \
                   [runbook](../operations/runbook.md#alerts) has the alerts.";
    let mut text = beginning("Metrics", purpose) + "\n";
    text += &table(["metric", "type", "labels", "meaning"], all().into_iter().map(Metric::row));
    text += "\n## Values of labels\n\n";
    text += &table(
        ["label", "values"],
        [
            ["`outcome` of `otel_webhook_reviews_total`".to_owned(), outcomes()],
            [
                "`outcome` of `otel_webhook_injections_total`".to_owned(),
                "a [reason code](reasons.md#reasons)".to_owned(),
            ],
            ["`code`".to_owned(), "the code of a [mistake or a warning](reasons.md)".to_owned()],
            ["`state`".to_owned(), "a [state](../operations/status.md#states)".to_owned()],
            ["`scope`".to_owned(), Pause::SCOPES.map(code).join(", ")],
        ],
    );
    text
}

fn outcomes() -> String {
    ReviewOutcome::ALL.map(|outcome| code(outcome.as_str())).join(", ")
}

/// A metric as it is exposed.
struct Metric {
    name: String,
    kind: String,
    help: String,
    labels: BTreeSet<String>,
}

impl Metric {
    fn row(self) -> [String; 4] {
        let labels: Vec<_> = self.labels.iter().map(code).collect();
        [code(self.name), self.kind, labels.join(", "), prose(&self.help)]
    }
}

/// All metrics, each with a sample.
fn all() -> Vec<Metric> {
    let text = exposed();
    let sample = Regex::new(r#"([a-z_]+)=""#).expect("an expression");
    let mut found: Vec<Metric> = Vec::new();
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("#", rest)) => {
                let mut words = rest.splitn(3, ' ');
                let (keyword, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
                let value = words.next().unwrap_or_default().to_owned();
                match keyword {
                    "HELP" => found.push(Metric {
                        name: name.to_owned(),
                        kind: String::new(),
                        help: value.trim_end_matches('.').to_owned(),
                        labels: BTreeSet::new(),
                    }),
                    "TYPE" => found.last_mut().expect("the help comes first").kind = value,
                    _ => {}
                }
            }
            Some((series, _)) => {
                let last = found.last_mut().expect("the help comes first");
                let labels = sample.captures_iter(series).map(|label| label[1].to_owned());
                last.labels.extend(labels.filter(|label| label != "le"));
            }
            None => {}
        }
    }
    for metric in &mut found {
        match &*metric.kind {
            "counter" => metric.name += "_total",
            "info" => metric.name += "_info",
            _ => {}
        }
    }
    found
}

/// The metrics, after everything has happened once.
fn exposed() -> String {
    let (log, _writer) = tracing_appender::non_blocking(std::io::sink());
    let metrics = Metrics::new().with_log(log.error_counter());
    metrics.count_review("/mutate-v1-pod", ReviewOutcome::Answered, Duration::ZERO);
    metrics.count_injection("java", "Injected");
    metrics.connections.expect("webhook");
    metrics.managed.expect();
    metrics.managed.set_ca_expiry("a/b", 0);
    metrics.managed.set_ca_bundle_current("MutatingWebhookConfiguration", "a", Some(true));
    metrics.fleet.set(&Report::default());
    let languages = vec![language("java", &[(State::Injected, 1)], None)];
    let workloads = vec![workload("Deployment", "shop", "order", languages)];
    metrics.fleet.set_namespaces(&Report { workloads, ..Report::default() }, 1);
    metrics.fleet.set_leader("a", true);
    metrics.fleet.set_mistakes(std::iter::empty());
    metrics.fleet.set_source("prometheus", true);
    metrics.set_paused(&[]);
    metrics.restarts.begin();
    metrics.restarts.set_stopped(0);
    metrics.encode()
}
