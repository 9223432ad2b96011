//! Checks the webhook configurations.

use std::collections::BTreeMap;

use super::result::{CheckResult, Code};
use otel_webhook_server::{
    Endpoint,
    registration::{Hook, Labels, MUTATING, Registration, VALIDATING},
    subject::Subject,
};

/// Returns the results for this webhook's configurations.
pub fn results(registration: &Registration) -> Vec<CheckResult> {
    let mut results = Vec::new();
    for name in &registration.names {
        let of_name =
            |kind| registration.ours.iter().any(|hook| hook.configuration == *name && hook.kind == kind);
        if !of_name(MUTATING) && !of_name(VALIDATING) {
            let about = Subject::new(MUTATING, "", name);
            let advice = "install the webhook, or set the name by --webhook-configuration";
            let result = CheckResult::new(Code::ConfigurationMissing, "not found, or has no webhooks");
            results.push(result.about(about).advise(advice));
        }
    }
    if registration.ours.is_empty() {
        return results;
    }
    results.extend(pod_results(registration));
    results.extend(instrumentation_result(registration));
    results.extend(registration.ours.iter().filter_map(unknown_path));
    results
}

fn pod_results(registration: &Registration) -> Vec<CheckResult> {
    let mut results = Vec::new();
    for hook in registration.pods() {
        let narrowed = if hook.has_conditions { ", if its match conditions match" } else { "" };
        let message = format!("sends new pods to {}{narrowed}", hook.backend);
        results.push(CheckResult::new(Code::PodsRegistered, message).about(hook.subject()));
        if hook.fails_closed {
            let message = format!("{}: pods are rejected while the webhook is unavailable", hook.name);
            let result = CheckResult::new(Code::PodsFailClosed, message).about(hook.subject());
            results.push(result.advise("set failurePolicy: Ignore"));
        }
    }
    if results.is_empty() {
        let message = format!("no webhook of {} selects new pods", registration.names.join(", "));
        let advice = "register the webhook for pods (operation CREATE)";
        results.push(CheckResult::new(Code::PodsNotRegistered, message).advise(advice));
    }
    results
}

fn instrumentation_result(registration: &Registration) -> Option<CheckResult> {
    let sent = |kind| {
        let mut hooks = registration.ours.iter().filter(|hook| hook.kind == kind);
        hooks.any(|hook| hook.sends("opentelemetry.io", "instrumentations"))
    };
    let missing = match (sent(MUTATING), sent(VALIDATING)) {
        (true, true) => return None,
        (true, false) => "validation, so that errors are not rejected",
        (false, true) => "defaulting",
        (false, false) => "defaulting and validation, so that errors are not rejected",
    };
    let message = format!("Instrumentations are stored without {missing}");
    let result = CheckResult::new(Code::InstrumentationsNotRegistered, message);
    Some(result.advise("if this is not intended, register the webhooks for Instrumentations as well"))
}

fn unknown_path(hook: &Hook) -> Option<CheckResult> {
    let path = hook.backend.path();
    let paths = Endpoint::ALL.map(Endpoint::path);
    (!paths.contains(&&*path)).then(|| {
        let message = format!("{}: unknown path {path}", hook.name);
        let result = CheckResult::new(Code::PathUnknown, message).about(hook.subject());
        result.advise(format!("valid paths: {}", paths.join(", ")))
    })
}

/// How many namespaces a message lists.
const NAMED: usize = 5;

/// Returns the results for other webhooks that inject, according to the labels of the namespaces.
pub fn injectors(registration: &Registration, namespaces: &BTreeMap<String, Labels>) -> Vec<CheckResult> {
    if registration.others.is_empty() {
        let message = "no other webhook injects auto-instrumentation";
        return vec![CheckResult::new(Code::NoOtherInjector, message)];
    }
    registration.others.iter().map(|other| of(registration, other, namespaces)).collect()
}

fn of(registration: &Registration, other: &Hook, namespaces: &BTreeMap<String, Labels>) -> CheckResult {
    let both: Vec<(&str, &Hook)> = namespaces
        .iter()
        .filter(|(_, labels)| other.selects_namespace(labels))
        .filter_map(|(name, labels)| {
            let ours = registration.pods().find(|hook| hook.selects_namespace(labels))?;
            Some((&**name, ours))
        })
        .collect();
    let Some((_, ours)) = both.first() else {
        let message = format!("{} injects, but in other namespaces than this webhook", other.name);
        return CheckResult::new(Code::OtherInjectorApart, message).about(other.subject());
    };
    let names: Vec<_> = both.iter().map(|(name, _)| *name).collect();
    let (first, second) =
        if other.configuration < ours.configuration { (other, *ours) } else { (*ours, other) };
    let message = format!(
        "{} also selects the pods of {}; {} is called before {} because of their names, and each skips pods \
         that are already injected",
        other.name,
        list(&names),
        first.configuration,
        second.configuration,
    );
    let advice = "separate them by their namespace selectors; see docs/guides/migration.md";
    CheckResult::new(Code::OtherInjectorActive, message).about(other.subject()).advise(advice)
}

/// Returns `3 namespaces (a, b, c)`, with the first few names.
fn list(names: &[&str]) -> String {
    let noun = if names.len() == 1 { "namespace" } else { "namespaces" };
    let first = names[..names.len().min(NAMED)].join(", ");
    let more = if names.len() > NAMED { ", …" } else { "" };
    format!("{} {noun} ({first}{more})", names.len())
}

#[cfg(test)]
pub mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;
    use otel_webhook_server::registration::Labels;

    /// The committed configurations after `change`, and others.
    pub fn registration(others: &[Value], change: impl FnOnce(&mut Value, &mut Value)) -> Registration {
        let text = include_str!("../../manifests/webhook/webhook.yaml");
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
        results(registration).into_iter().map(|result| result.code).collect()
    }

    #[test]
    fn the_committed_configurations_have_no_problems() {
        let registration = registration(&[], |_, _| ());
        assert_eq!(codes(&registration), [Code::PodsRegistered]);
        let line = results(&registration)[0].line();
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
        for (mutating_too, words) in
            [(false, "without validation"), (true, "without defaulting and validation")]
        {
            let bare = registration(&[], |mutating, validating| {
                validating["webhooks"] = json!([]);
                if mutating_too {
                    mutating["webhooks"].as_array_mut().expect("webhooks").truncate(1);
                }
            });
            assert_eq!(codes(&bare)[1..], [Code::InstrumentationsNotRegistered]);
            let line = results(&bare)[1].line();
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
        assert_eq!(codes(&odd), [Code::PodsRegistered, Code::PodsFailClosed, Code::PathUnknown]);
        let results = results(&odd);
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

    fn namespaces(names: &[&str]) -> BTreeMap<String, Labels> {
        names.iter().map(|name| ((*name).to_owned(), labels(name))).collect()
    }

    fn said(others: &[Value], names: &[&str]) -> Vec<(Code, String)> {
        let registration = registration(others, |_, _| ());
        let results = injectors(&registration, &namespaces(names));
        results.iter().map(|result| (result.code, result.line())).collect()
    }

    #[test]
    fn webhooks_are_called_in_the_order_of_their_configurations_names() {
        let name = "opentelemetry-operator-mutation";
        let (code, line) = &said(&[operator(name, json!({}))], &["shop"])[0];
        assert_eq!(*code, Code::OtherInjectorActive);
        let order = "also selects the pods of 1 namespace (shop); opentelemetry-operator-mutation is called \
                     before otel-webhook because of their names";
        assert!(line.contains(order), "{line}");
        let (_, line) = &said(&[operator("z-operator", json!({}))], &["shop"])[0];
        assert!(line.contains("otel-webhook is called before z-operator"), "{line}");
    }

    #[test]
    fn only_namespaces_that_both_select_are_reported() {
        let names = ["a", "b", "c", "d", "e", "f", "kube-system"];
        let (_, line) = &said(&[operator("o", json!({}))], &names)[0];
        assert!(line.contains("also selects the pods of 6 namespaces (a, b, c, d, e, …);"), "{line}");
        let only = json!({"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}});
        let (code, line) = &said(&[operator("o", only)], &names)[0];
        assert_eq!(*code, Code::OtherInjectorApart);
        assert!(line.contains("mpod.kb.io injects, but in other namespaces than this webhook"), "{line}");
    }

    #[test]
    fn none_is_fine() {
        assert_eq!(said(&[], &["shop"])[0].0, Code::NoOtherInjector);
    }
}
