//! Tests of webhook configurations, based on the committed manifests.

use serde_json::{Value, from_value, json};

use super::*;
use crate::registration::Labels;

/// The committed configurations after `change`, and others.
pub fn registration(others: &[Value], change: impl FnOnce(&mut Value, &mut Value)) -> Registration {
    let text = include_str!("../../../../manifests/webhook/webhook.yaml");
    let [mut mutating, mut validating]: [Value; 2] =
        serde_saphyr::from_multiple(text).expect("YAML").try_into().expect("two documents");
    change(&mut mutating, &mut validating);
    let mutating: Vec<_> =
        [&[mutating], others].concat().into_iter().map(|one| from_value(one).expect("valid")).collect();
    Registration::new(&[], &mutating, &[from_value(validating).expect("valid")])
}

/// The operator's webhook for pods in a configuration of this name.
pub fn operator(name: &str, namespaces: Value) -> Value {
    json!({"metadata": {"name": name}, "webhooks": [{
        "name": "mpod.kb.io", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "failurePolicy": "Ignore", "namespaceSelector": namespaces,
        "clientConfig": {"service": {"namespace": "observability", "name": "operator-webhook",
            "path": "/mutate-v1-pod"}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["pods"], "scope": "Namespaced"}],
    }]})
}

/// Labels of a namespace.
pub fn labels(name: &str) -> Labels {
    [("kubernetes.io/metadata.name".to_owned(), name.to_owned())].into()
}

fn codes(registration: &Registration) -> Vec<Code> {
    registration.results().into_iter().map(|result| result.code).collect()
}

#[test]
fn the_committed_configurations_have_no_problems() {
    let registration = registration(&[], |_, _| ());
    assert_eq!(codes(&registration), [Code::PodsRegistered]);
    let line = registration.results()[0].line();
    let end = "sends new pods to Service otel-webhook/otel-webhook, port 443";
    assert!(line.ends_with(end), "{line}");
    let pods = registration.pods().next().expect("one");
    assert!(pods.selects(&labels("shop"), &Labels::new(), false));
    assert!(!pods.selects(&labels("kube-system"), &Labels::new(), true));
}

#[test]
fn everything_that_is_missing_is_reported() {
    let none = Registration::new(&[], &[], &[]);
    assert_eq!(
        (&none.names[..], codes(&none)),
        (&["otel-webhook".to_owned()][..], vec![Code::ConfigurationMissing])
    );
    let no_pods = registration(&[], |mutating, _| {
        mutating["webhooks"][0]["rules"][0]["operations"] = json!(["UPDATE"]);
    });
    assert_eq!(codes(&no_pods), [Code::PodsNotRegistered]);
    for (mutating_too, words) in [(false, "without validation"), (true, "without defaulting and validation")]
    {
        let bare = registration(&[], |mutating, validating| {
            validating["webhooks"] = json!([]);
            if mutating_too {
                mutating["webhooks"].as_array_mut().expect("webhooks").truncate(1);
            }
        });
        assert_eq!(codes(&bare)[1..], [Code::InstrumentationsNotRegistered]);
        let line = bare.results()[1].line();
        assert!(line.contains(words), "{line}");
    }
}

#[test]
fn a_configuration_of_another_name_is_found_by_its_webhooks() {
    let renamed = registration(&[operator("z", json!({}))], |mutating, validating| {
        for configuration in [mutating, validating] {
            configuration["metadata"]["name"] = json!("tracing-otel-webhook");
        }
    });
    assert_eq!(renamed.names, ["tracing-otel-webhook"]);
    assert_eq!(codes(&renamed), [Code::PodsRegistered]);
    assert_eq!(renamed.others.len(), 1, "{:?}", renamed.others);
}

#[test]
fn failure_policy_fail_and_a_wrong_path_are_reported() {
    let odd = registration(&[], |mutating, _| {
        mutating["webhooks"][0]["failurePolicy"] = json!("Fail");
        mutating["webhooks"][0]["clientConfig"]["service"]["path"] = json!("/mutate-pods");
        mutating["webhooks"][0]["matchConditions"] = json!([{"name": "a", "expression": "true"}]);
    });
    assert_eq!(codes(&odd), [Code::PodsRegistered, Code::PodsHeldBack, Code::PathUnknown]);
    let results = odd.results();
    assert!(results[0].line().contains("if its match conditions match"));
    assert!(results[2].line().contains("valid paths: /mutate-v1-pod, "), "{}", results[2].line());
}

#[test]
fn other_webhooks_for_pods_do_not_inject() {
    let mut mesh = operator("mesh", json!({}));
    mesh["webhooks"][0]["name"] = json!("inject.mesh.io");
    mesh["webhooks"][0]["clientConfig"]["service"]["path"] = json!("/inject");
    let mut renamed = operator("a-operator", json!({}));
    renamed["webhooks"][0]["clientConfig"]["service"]["path"] = json!("/behind-a-proxy");
    let registration = registration(&[operator("z", json!({})), mesh, renamed], |_, _| ());
    let others: Vec<_> = registration.others.iter().map(|hook| &*hook.configuration).collect();
    assert_eq!(others, ["a-operator", "z"]);
}

#[test]
fn rules_are_read_as_the_api_server_reads_them() {
    let sends = |rule: Value| {
        let mut one = operator("x", json!({}));
        one["webhooks"][0]["rules"] = json!([rule]);
        let registration = Registration::new(&[], &[from_value(one).expect("valid")], &[]);
        registration.others.iter().any(|hook| hook.sends("", "pods"))
    };
    let rule = |resources: &str, operations: &str, scope: &str| {
        json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": [operations],
            "resources": [resources], "scope": scope})
    };
    assert!(sends(rule("*", "*", "*")) && sends(rule("*/*", "CREATE", "Namespaced")));
    assert!(!sends(rule("pods/*", "*", "*")) && !sends(rule("pods", "UPDATE", "*")));
    assert!(!sends(rule("pods", "*", "Cluster")));
}
