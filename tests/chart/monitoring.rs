//! Alerts and dashboard: they ask for metrics that the program has, by labels and values that it gives.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use otel_webhook_fleet::{report::Report, state::State};
use otel_webhook_inject::reason::Reason;
use otel_webhook_telemetry::{Metrics, RestartResult, ReviewOutcome};
use otel_webhook_testkit::objects::items;
use regex::Regex;
use serde_json::Value;

use crate::helm::{NAMESPACE, chart, objects_of, objects_with, repository, the, values};

/// The metric of API servers that is asked for. They create a series with its first event.
const OF_API_SERVERS: &str = "apiserver_admission_webhook_fail_open_count";

/// The text of a scrape in which every series is there.
fn scrape() -> String {
    let metrics = Metrics::new();
    metrics.count_review("/mutate-v1-pod", ReviewOutcome::Answered, Duration::ZERO);
    metrics.count_injection("java", "Injected");
    metrics.connections.expect("webhook");
    metrics.managed.expect();
    metrics.managed.set_ca_expiry("otel-webhook/certificates", 0);
    metrics.managed.set_ca_bundle_current("MutatingWebhookConfiguration", "one", Some(true));
    metrics.fleet.set(&Report::default());
    metrics.fleet.set_leader("otel-webhook-controller", true);
    metrics.fleet.set_source("prometheus", true);
    metrics.set_paused(&[]);
    metrics.restarts.begin();
    metrics.restarts.set_stopped(0);
    metrics.encode()
}

/// The queries of the alerts and of the dashboard.
fn queries() -> Vec<String> {
    alert_queries(&[]).into_iter().chain(dashboard_queries()).collect()
}

/// The rules of rendered alerts.
fn rules_of(objects: &[Value]) -> Vec<Value> {
    items(&the(objects, "PrometheusRule")["spec"]["groups"][0]["rules"]).cloned().collect()
}

/// The rules with these values.
fn rules(set: &[&str]) -> Vec<Value> {
    rules_of(&objects_with(&[&["prometheusRule.enabled=true"], set].concat()))
}

fn alert_queries(set: &[&str]) -> Vec<String> {
    rules(set).iter().map(|rule| rule["expr"].as_str().expect("a query").to_owned()).collect()
}

/// A rule by the name of its alert.
fn alert<'r>(rules: &'r [Value], name: &str) -> &'r Value {
    rules.iter().find(|rule| rule["alert"] == name).expect("an alert")
}

pub fn dashboard_queries() -> Vec<String> {
    let dashboard = dashboard();
    let targets = items(&dashboard["panels"]).flat_map(|panel| items(&panel["targets"]));
    targets.map(|target| target["expr"].as_str().expect("a query").to_owned()).collect()
}

fn dashboard() -> Value {
    let text = fs::read_to_string(chart().join("files/dashboard.json")).expect("the dashboard");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn every_metric_that_is_asked_for_is_there() {
    let scrape = scrape();
    let name = Regex::new("(otel_webhook|process)_[a-z_]+").expect("a pattern");
    let mut asked = BTreeSet::new();
    for query in queries().iter().filter(|query| !query.contains(OF_API_SERVERS)) {
        let names: Vec<_> = name.find_iter(query).map(|found| found.as_str().to_owned()).collect();
        assert!(!names.is_empty(), "{query}");
        asked.extend(names);
    }
    for name in &asked {
        let there = scrape
            .lines()
            .any(|line| line.starts_with(&format!("{name}{{")) || line.starts_with(&format!("{name} ")));
        assert!(there, "{name} is not in\n{scrape}");
    }
    // And the other way round: what is measured is looked at somewhere.
    let types = scrape.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    for name in
        types.filter_map(|line| line.split(' ').next()).filter(|name| name.starts_with("otel_webhook_"))
    {
        let looked_at = asked.iter().any(|asked| asked.starts_with(name));
        assert!(looked_at || name == "otel_webhook_last_event_timestamp_seconds", "{name}");
    }
}

#[test]
fn labels_and_outcomes_are_those_of_the_program() {
    let matcher = Regex::new(r#"(\w+)(?:=|!=|=~|!~)"([^"]*)""#).expect("a pattern");
    let outcomes: Vec<_> = ReviewOutcome::ALL.iter().map(|outcome| outcome.as_str()).collect();
    for query in queries() {
        for found in matcher.captures_iter(&query) {
            match &found[1] {
                // Given by the ServiceMonitor.
                "namespace" | "service" => {}
                "name" => every_webhook_matches(&found[2]),
                "data" => assert!(["heard", "silent"].contains(&&found[2]), "{query}"),
                "state" => {
                    for state in found[2].split('|') {
                        assert!(State::ALL.iter().any(|known| known.name() == state), "{state}");
                    }
                }
                "result" => {
                    assert!(RestartResult::ALL.iter().any(|known| known.name() == &found[2]), "{query}");
                }
                "endpoint" => assert_eq!(&found[2], "/mutate-v1-pod"),
                "outcome" => {
                    for code in found[2].split('|') {
                        assert!(
                            outcomes.contains(&code) || Reason::ALL.iter().any(|one| one.code == code),
                            "{code}"
                        );
                    }
                }
                other => panic!("{other} in {query}"),
            }
        }
    }
}

/// The names by which API servers count are those of the registered webhooks.
fn every_webhook_matches(pattern: &str) {
    let pattern = Regex::new(&format!("^({})$", pattern.replace("\\\\", "\\"))).expect("a pattern");
    let objects = objects_with(&[]);
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        for webhook in the(&objects, kind)["webhooks"].as_array().expect("webhooks") {
            let name = webhook["name"].as_str().expect("a name");
            assert!(pattern.is_match(name), "{name} does not match {pattern}");
        }
    }
}

/// Within two minutes of the last scrape, or of the first event that is scraped.
#[test]
fn an_outage_is_seen_within_two_minutes() {
    let rules = rules(&[]);
    assert_eq!(alert(&rules, "OtelWebhookAbsent")["for"], "1m");
    assert_eq!(alert(&rules, "OtelWebhookFailingOpen")["for"], Value::Null);
}

#[test]
fn each_alert_links_its_section_of_the_runbook() {
    let runbook = fs::read_to_string(repository("docs/operations/runbook.md")).expect("the runbook");
    let links = |rules: Vec<Value>| {
        let pairs = rules.into_iter().map(|rule| {
            let link = &rule["annotations"]["runbook_url"];
            (rule["alert"].as_str().expect("a name").to_owned(), link.as_str().map(str::to_owned))
        });
        pairs.collect::<Vec<_>>()
    };
    for (alert, link) in links(rules(&[])) {
        let heading = format!("### {alert}");
        assert!(
            runbook.lines().any(|line| line == heading),
            "docs/operations/runbook.md has no section {heading}"
        );
        let link = link.unwrap_or_else(|| panic!("{alert} has no link"));
        assert!(link.ends_with(&format!("/docs/operations/runbook.md#{}", alert.to_lowercase())), "{link}");
    }
    for (alert, link) in links(rules_of(objects_of(&values("everything")))) {
        let own = format!("https://wiki.example.com/otel-webhook#{}", alert.to_lowercase());
        assert_eq!(link, (alert != "Own").then_some(own));
    }
    assert!(links(rules(&["prometheusRule.runbookUrl="])).iter().all(|(_, link)| link.is_none()));
}

/// A certificate is renewed before the alert, whatever its lifetime.
#[test]
fn the_alerts_about_certificates_follow_the_lifetimes() {
    let seconds = |sets: &[&str]| {
        let rules = rules(sets);
        ["OtelWebhookCertificateExpiring", "OtelWebhookCAExpiring"].map(|name| {
            let rule = alert(&rules, name);
            let limit = rule["expr"].as_str().and_then(|query| query.rsplit_once("< ")).expect("a limit").1;
            (limit.to_owned(), rule["for"].as_str().expect("a time").to_owned())
        })
    };
    let both = |[one, other]: [(&str, &str); 2]| {
        [one, other].map(|(limit, wait)| (limit.to_owned(), wait.to_owned()))
    };
    assert_eq!(seconds(&[]), both([("604800", "900s"), ("604800", "900s")]));
    let short = ["certificates.managed.lifetime=1h30m", "certificates.managed.caLifetime=12h"];
    assert_eq!(seconds(&short), both([("900", "225s"), ("7200", "900s")]));
    let renewed = ["certificates.mode=cert-manager", "certificates.certManager.renewBefore=48h"];
    assert_eq!(seconds(&renewed)[0], ("86400".to_owned(), "900s".to_owned()));
    let chosen = [&short[..], &["prometheusRule.certificateExpiryDays=2"]].concat();
    assert_eq!(seconds(&chosen), both([("172800", "900s"), ("172800", "900s")]));
}

/// Values name alerts, and the schema lists the names.
#[test]
fn alerts_can_be_chosen_and_labelled() {
    let all = rules(&[]);
    let names: Vec<_> = all.iter().map(|rule| rule["alert"].clone()).collect();
    let schema = fs::read_to_string(chart().join("values.schema.json")).expect("the schema");
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let listed = schema.pointer("/properties/prometheusRule/properties/disabled/items/enum").expect("a list");
    assert_eq!(listed.as_array().expect("a list"), &names);
    assert!(
        all[0]["expr"].as_str().is_some_and(|query| query.contains(&format!("namespace=\"{NAMESPACE}\"")))
    );

    let chosen = rules_of(objects_of(&values("everything")));
    let left_out = ["OtelWebhookNotTrusted", "OtelWebhookNoReviews", "OtelWebhookPodsOutdated"];
    let mut expected: Vec<_> =
        names.into_iter().filter(|name| !left_out.contains(&name.as_str().expect("a name"))).collect();
    expected.push("Own".into());
    assert_eq!(chosen.iter().map(|rule| rule["alert"].clone()).collect::<Vec<_>>(), expected);
    let (own, others) = chosen.split_last().expect("rules");
    assert!(own["labels"].is_null());
    for rule in others {
        assert_eq!(rule["labels"], serde_json::json!({"severity": "page", "team": "platform"}));
        assert!(!rule["expr"].as_str().expect("a query").contains("namespace="), "{rule}");
    }
}

/// The Service is what tells the two apart: a webhook that is not scraped is absent, whatever the controller does.
#[test]
fn alerts_about_the_controller_ask_for_its_metrics_and_go_with_it() {
    let of_controller =
        ["_controller_leader", "otel_webhook_pods", "otel_webhook_restarts", "otel_webhook_heard"];
    let queries = alert_queries(&[]);
    for query in queries.iter().filter(|query| !query.contains(OF_API_SERVERS)) {
        let is_of_controller = of_controller.iter().any(|metric| query.contains(metric));
        let service = if is_of_controller { "controller" } else { "metrics" };
        let service = format!("service=\"agents-otel-webhook-{service}\"");
        assert!(query.contains(&service), "{query}");
    }
    let without = alert_queries(&["controller.enabled=false"]);
    assert_eq!(without.len() + 9, queries.len(), "{without:?}");
    let chosen = the(objects_of(&values("everything")), "PrometheusRule").to_string();
    assert!(chosen.contains(r#"otel_webhook_controller_leader{job=\"controller\"}"#), "{chosen}");
}

#[test]
fn panels_stand_beside_each_other() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().expect("panels");
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64()).collect();
    assert_eq!(ids.len(), panels.len());
    let mut taken = BTreeSet::new();
    for panel in panels {
        let at = |field: &str| panel["gridPos"][field].as_u64().expect("a position");
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(x < 24 && taken.insert((x, y)), "{}: {x}, {y}", panel["title"]);
            }
        }
    }
}

#[test]
fn the_dashboard_arrives_as_it_is() {
    let objects = objects_of(&values("everything"));
    let found = crate::helm::of_kind(objects, "ConfigMap");
    let text = found[0]["data"]["otel-webhook.json"].as_str().expect("a dashboard");
    assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), dashboard());
}
