//! Metrics: name, type, labels and meaning.

use std::{collections::BTreeSet, time::Duration};

use otel_webhook::telemetry::{Metrics, ReviewOutcome};
use otel_webhook_inject::pause::Pause;
use regex::Regex;

use super::{beginning, code, prose, source, table};

pub fn page() -> String {
    let purpose = "Every metric of `/metrics`, in the format of OpenMetrics. Those of the webhook are exposed by \
                   `serve`, those of pods, workloads and restarts by `controller`. The \
                   [runbook](../runbook.md#alerts) has the alerts.";
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
            ["`state`".to_owned(), "a [state](../day-two.md#states)".to_owned()],
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

/// The names of all metrics, with the suffixes under which they are exposed.
pub fn names() -> BTreeSet<String> {
    all().into_iter().map(|metric| metric.name).collect()
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
    found.push(dropped_lines());
    for metric in &mut found {
        match &*metric.kind {
            "counter" => metric.name += "_total",
            "info" => metric.name += "_info",
            _ => {}
        }
    }
    found
}

/// The metric of the log, which has no value without the log of the process.
fn dropped_lines() -> Metric {
    let text = source::text("src/telemetry/process.rs");
    let expression = Regex::new("\"(otel_webhook_log_[a-z_]+)\",\\s+\"([^\"]+)\"").expect("an expression");
    let found = expression.captures(&text).expect("the metric");
    let (name, help) = (found[1].to_owned(), found[2].to_owned());
    Metric { name, kind: "counter".to_owned(), help, labels: BTreeSet::new() }
}

/// The metrics, after everything has happened once.
fn exposed() -> String {
    let metrics = Metrics::new();
    metrics.count_review("/mutate-v1-pod", ReviewOutcome::Answered, Duration::ZERO);
    metrics.count_injection("java", "Injected");
    metrics.connections.expect("webhook");
    metrics.managed.expect();
    metrics.managed.set_ca_expiry("a/b", 0);
    metrics.managed.set_ca_bundle_current("MutatingWebhookConfiguration", "a", Some(true));
    metrics.fleet.set(&otel_webhook_fleet::report::Report::default());
    metrics.fleet.set_leader("a", true);
    metrics.set_paused(&[]);
    metrics.restarts.begin();
    metrics.restarts.set_stopped(0);
    metrics.encode()
}

#[test]
fn every_metric_of_the_code_is_in_the_reference() {
    let name = Regex::new("\"(otel_webhook_[a-z_]+)\"").expect("an expression");
    let page = page();
    let mut count = 0;
    for code in source::code() {
        for found in name.captures_iter(&code) {
            count += 1;
            let is_there =
                ["", "_total", "_info"].iter().any(|end| page.contains(&format!("`{}{end}`", &found[1])));
            assert!(is_there, "{} is not in the reference", &found[1]);
        }
    }
    assert!(count > 20, "only {count} metrics were found in the code");
}
