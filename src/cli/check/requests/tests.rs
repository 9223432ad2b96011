//! Tests of workloads that are injected, of workloads that are not, and of older pods.

use serde_json::{Value, json};

use super::*;
use crate::cli::check::{
    registration::tests::{labels, operator, registration},
    survey::tests::{Seen, seen},
};
use otel_webhook_inject::{
    reason::{ObjectName, Reason},
    shown::Names,
};

fn codes(results: &[CheckResult]) -> Vec<Code> {
    results.iter().map(|result| result.code).collect()
}

fn in_default(seen: Seen) -> Vec<CheckResult> {
    results(&seen.survey(), &registration(&[], |_, _| ()))
}

fn none(namespace: &str) -> Reason {
    Reason::NoInstrumentation { namespace: namespace.to_owned(), advice: "create one" }
}

#[test]
fn workloads_that_are_all_injected_have_one_result() {
    let met = seen("Deployment", "shop", "order").asks("java", Reason::Injected).has("java", 2).pods(2);
    let found = in_default(met.and(seen("Deployment", "shop", "silent").pods(1)));
    assert_eq!(codes(&found), [Code::RequestsMet]);
    assert!(found[0].line().ends_with("1 of 2 workloads opt in, and all of them are injected"));
}

#[test]
fn a_skipped_language_has_the_reason_of_the_decision() {
    let found = in_default(seen("Deployment", "shop", "order").asks("java", none("shop")));
    assert_eq!(codes(&found), [Code::RequestInVain]);
    assert_eq!(found[0].reason, Some("NoInstrumentation"));
    let line = found[0].line();
    assert!(line.contains("Deployment shop/order: java: there is no Instrumentation in namespace"), "{line}");
    let found = in_default(seen("Job", "shop", "odd").unreadable("no list"));
    assert_eq!((found[0].code, found[0].reason), (Code::RequestInVain, Some("Unreadable")));
}

#[test]
fn an_injection_without_effect_is_a_warning() {
    let found = in_default(seen("Deployment", "shop", "order").asks("java", Reason::Injected).warned());
    assert_eq!(codes(&found), [Code::InjectedWithWarning, Code::RequestsMet]);
    assert_eq!(found[0].reason, Some("EndpointWithoutScheme"));
    let line = found[0].line();
    let expected =
        "warning  requests      Deployment shop/order: java in app: OTEL_EXPORTER_OTLP_ENDPOINT is";
    assert!(line.starts_with(expected), "{line}");
}

#[test]
fn reasons_of_a_namespace_are_reported_once() {
    let by_namespace = seen("Deployment", "shop", "a").asks("java", none("shop"));
    let own = seen("Deployment", "shop", "b").asks("java", none("shop")).names("java");
    let mut survey = by_namespace.and(own).survey();
    survey.asking.push(("shop".to_owned(), decided(&survey.workloads[0]).to_vec()));
    let found = results(&survey, &registration(&[], |_, _| ()));
    let subjects: Vec<_> =
        found.iter().map(|result| result.subject.as_ref().expect("one").to_string()).collect();
    assert_eq!(subjects, ["Namespace shop", "Deployment shop/b"], "{found:?}");
}

#[test]
fn missing_grants_of_other_namespaces_are_reasons_of_the_namespace() {
    let name = || ObjectName { namespace: "infra".into(), name: "base".into() };
    let namespace = || "shop".to_owned();
    for reason in [
        Reason::InstrumentationNotGranted { name: name(), namespace: namespace(), granted: Names::default() },
        Reason::CrossNamespaceDenied { name: name(), namespace: namespace() },
        Reason::DefaultInstrumentationNotFound { name: name() },
    ] {
        let mut survey = seen("Deployment", "shop", "a").asks("java", reason.clone()).survey();
        survey.asking.push(("shop".to_owned(), decided(&survey.workloads[0]).to_vec()));
        let found = results(&survey, &registration(&[], |_, _| ()));
        assert_eq!((codes(&found), found[0].reason), (vec![Code::RequestInVain], Some(reason.code())));
        assert_eq!(found[0].subject, Some(Subject::new("Namespace", "", "shop")), "{reason}");
    }
}

#[test]
fn older_pods_are_counted_with_a_remedy() {
    let old = seen("Deployment", "shop", "order").asks("java", Reason::Injected).has("java", 1).pods(3);
    let found = in_default(old);
    let expected = "Deployment shop/order: 2 of 3 pods were created before, and run without java; new pods \
                    are injected; kubectl rollout restart deployment/order -n shop";
    assert_eq!(found[0].code, Code::RunningWithout);
    assert!(found[0].line().ends_with(expected), "{}", found[0].line());
    let short = seen("CronJob", "shop", "report").asks("java", Reason::Injected).pods(1);
    assert_eq!(codes(&in_default(short)), [Code::RequestsMet], "its pods are short-lived");
    let bare = in_default(seen("Pod", "shop", "p").asks("java", Reason::Injected).pods(1));
    assert!(bare[0].line().ends_with("; delete them, so that they are recreated"), "{}", bare[0].line());
}

#[test]
fn pods_that_no_configuration_selects_are_reported() {
    let ask = |namespace: &str| seen("Deployment", namespace, "dns").asks("java", Reason::Injected).pods(1);
    let found = in_default(ask("kube-system"));
    assert_eq!(found[0].code, Code::NotReviewed);
    assert!(
        found[0].line().contains("change the selectors of otel-webhook to include namespace kube-system")
    );
    // The operator still selects them.
    let everywhere: Value = json!({});
    let both = registration(&[operator("a-operator", everywhere)], |_, _| ());
    assert_eq!(codes(&results(&ask("kube-system").survey(), &both)), [Code::RequestsMet]);
    // A missing registration is reported elsewhere.
    let none = Registration::default();
    assert_eq!(codes(&results(&ask("shop").survey(), &none)), [Code::RequestsMet]);
}

#[test]
fn an_opt_in_of_the_namespace_is_not_enough_if_pods_have_to_opt_in() {
    let annotated = registration(&[], |mutating, _| {
        let condition = json!([{"name": "opted-in", "expression": "true"}]);
        mutating["webhooks"][0]["matchConditions"] = condition;
    });
    let ask = || seen("Deployment", "shop", "order").asks("java", Reason::Injected).has("java", 1).pods(1);
    let found = results(&ask().survey(), &annotated);
    assert_eq!(found[0].code, Code::NotReviewed);
    assert!(found[0].line().contains("annotate the pods"), "{}", found[0].line());
    assert_eq!(codes(&results(&ask().names("java").survey(), &annotated)), [Code::RequestsMet]);
}

#[test]
fn webhooks_are_in_the_order_of_their_calls() {
    let survey = seen("Deployment", "shop", "order").survey();
    let names = |other: &str| {
        let registration = registration(&[operator(other, json!({}))], |_, _| ());
        let hooks = reviewers(&survey.workloads[0], &survey, &registration);
        hooks.iter().map(|hook| hook.configuration.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names("opentelemetry-operator-mutation"), ["opentelemetry-operator-mutation", "otel-webhook"]);
    assert_eq!(names("z"), ["otel-webhook", "z"]);
    assert_eq!(labels("shop"), survey.namespaces["shop"]);
}

#[test]
fn an_unusable_instrumentation_is_reported() {
    let mut survey = Survey::default();
    let subject = Subject::new("Instrumentation", "shop", "broken");
    survey.unusable.push((subject, "spec.selector: no operator".to_owned()));
    let found = results(&survey, &Registration::default());
    assert_eq!(codes(&found), [Code::InstrumentationUnusable, Code::RequestsMet]);
    assert!(found[0].line().contains("Instrumentation shop/broken: cannot be used: spec.selector"));
}

#[test]
fn a_result_that_depends_on_something_unreadable_is_not_a_reason() {
    let survey = seen("Deployment", "shop", "order").unsure("java").survey();
    let found = results(&survey, &Registration::default());
    assert_eq!(codes(&found), [Code::NotReadable]);
    let expected = "Deployment shop/order: java: unknown, since the Instrumentations of namespace \"ta\" are not \
                    readable by you (list instrumentations in ta); ask somebody who may read them to run \
                    otel-webhook check";
    assert!(found[0].line().ends_with(expected), "{}", found[0].line());
    // Without the flags, that all are injected is not known either.
    let mut survey = seen("Deployment", "shop", "order").asks("java", Reason::Injected).survey();
    survey.unread.flags = Some("list mutatingwebhookconfigurations".to_owned());
    assert_eq!(codes(&results(&survey, &Registration::default())), []);
}
