//! The alerts, read and evaluated by Prometheus' own engine: `alerts.yaml` has the cases.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};

use crate::helm::{
    NAMESPACE, objects_of, objects_with, of_component, repository, services, the, tool, values,
};
use crate::monitoring::dashboard_queries;

/// The rules of a rendered `PrometheusRule`, as a file for Prometheus.
fn rules(objects: &[Value]) -> &Value {
    &the(objects, "PrometheusRule")["spec"]
}

/// What the engine makes of rules and cases.
fn evaluate(rules: &Value, cases: &[Value]) -> Vec<Value> {
    let rules = rules.to_string();
    let mut child = Command::new(tool("alerts"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program is built");
    let input = json!({"rules": rules, "cases": cases}).to_string();
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("an answer");
    assert!(output.status.success(), "the rules are refused");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn cases() -> Vec<Value> {
    let text = fs::read_to_string(repository("tests/chart/alerts.yaml")).expect("cases");
    let objects = objects_with(&[]);
    let [_, metrics] = services(&objects);
    let controller = of_component(&objects, "Service", "controller")[0];
    let scraped = |service: &Value| {
        let name = service["metadata"]["name"].as_str().expect("a name");
        format!("namespace=\"{NAMESPACE}\",service=\"{name}\"")
    };
    let (scraped, of_controller) = (scraped(metrics), scraped(controller));
    let mut cases: Vec<Value> = serde_saphyr::from_str(&text).expect("YAML");
    for case in &mut cases {
        let series = case["series"].as_object().expect("series").clone();
        let named = |name: String| name.replace("SCRAPED", &scraped).replace("CONTROLLER", &of_controller);
        let series: Map<_, _> = series.into_iter().map(|(name, values)| (named(name), values)).collect();
        case["series"] = series.into();
    }
    cases
}

#[test]
fn alerts_fire_when_they_should_and_not_otherwise() {
    let cases = cases();
    let results = evaluate(rules(&objects_with(&["prometheusRule.enabled=true"])), &cases);
    for (case, result) in cases.iter().zip(&results) {
        let mut fired: Vec<Value> = result.as_array().expect("a list").clone();
        for labels in &mut fired {
            let own = |name: &String| !["__name__", "namespace", "service"].contains(&name.as_str());
            labels.as_object_mut().expect("labels").retain(|name, _| own(name));
        }
        assert_eq!(json!(fired), case["fires"], "{}: {}", case["alert"], case["when"]);
    }
    assert_eq!(cases.len(), results.len());
}

#[test]
fn every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() {
    let objects = objects_with(&["prometheusRule.enabled=true"]);
    let rules = rules(&objects)["groups"][0]["rules"].clone();
    let name = |of: &Value| of["alert"].as_str().expect("a name").to_owned();
    let alerts: BTreeSet<_> = rules.as_array().expect("rules").iter().map(name).collect();
    let cases = cases();
    for fires in [true, false] {
        let chosen =
            cases.iter().filter(|case| case["fires"].as_array().is_some_and(|f| f.is_empty() != fires));
        assert_eq!(alerts, chosen.map(name).collect::<BTreeSet<_>>(), "fires: {fires}");
    }
}

/// Grafana puts its own words into queries; with those in place the engine has to take them.
#[test]
fn the_queries_of_the_dashboard_are_queries() {
    let queries = dashboard_queries();
    assert!(queries.len() > 20, "{queries:?}");
    let alert = |query: &String| {
        let query = query.replace("$__rate_interval", "5m").replace("$__range", "6h");
        json!({"alert": "Panel", "expr": query})
    };
    let rules: Vec<_> = queries.iter().map(alert).collect();
    // One in a group: a group may have no rule twice.
    let group = |(index, rule)| json!({"name": format!("{index}"), "rules": [rule]});
    let groups: Vec<_> = rules.into_iter().enumerate().map(group).collect();
    assert!(evaluate(&json!({"groups": groups}), &[]).is_empty());
}

/// Prometheus would load none of a group with one bad rule.
#[test]
fn rules_are_good_with_any_values() {
    assert!(evaluate(rules(objects_of(&values("everything"))), &[]).is_empty());
}
