//! Tests of workloads that are injected, of workloads that are not, and of older pods.

use serde_json::{Value, json};

use super::*;
use crate::check::{
    registration::tests::{labels, operator, registration},
    survey::{
        Replaced,
        tests::{SurveyedBuilder, seen},
    },
};
use otel_webhook_fleet::injected::{Agent, By};
use otel_webhook_inject::{
    reason::{ObjectName, Reason, Sign},
    shown::Names,
};
use otel_webhook_testkit::reports::failure;

fn codes(results: &[CheckResult]) -> Vec<Code> {
    results.iter().map(|result| result.code).collect()
}

fn in_default(seen: SurveyedBuilder) -> Vec<CheckResult> {
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
    let said = "1 of 2 workloads opt in, and all of their pods run the current agents";
    assert!(found[0].line().ends_with(said));
}

#[test]
fn a_skipped_language_has_the_reason_of_the_decision() {
    let found = in_default(seen("Deployment", "shop", "order").asks("java", none("shop")));
    assert_eq!(codes(&found), [Code::NotInjected]);
    assert_eq!((found[0].reason, &found[0].field), (Some("NoInstrumentation"), &None));
    let own = in_default(seen("CronJob", "shop", "order").asks("java", none("shop")).names("java"));
    let field =
        "spec.jobTemplate.spec.template.metadata.annotations[instrumentation.opentelemetry.io/inject-java]";
    assert_eq!(own[0].field.as_deref(), Some(field));
    let line = found[0].line();
    assert!(line.contains("Deployment shop/order: java: there is no Instrumentation in namespace"), "{line}");
    let found = in_default(seen("Job", "shop", "odd").unreadable("no list"));
    assert_eq!((found[0].code, found[0].reason), (Code::NotInjected, Some("Unreadable")));
}

#[test]
fn what_fails_is_a_result_as_status_counts_it() {
    let row = |code, is_counted| failure("java", "app", code, is_counted);
    let order = seen("Deployment", "shop", "order").asks("java", Reason::Injected).has("java", 2).pods(2);
    let order = order.fails(row("ImagePullBackOff", true)).fails(row("AgentSuspected", true));
    let found = in_default(order.fails(row("ApplicationFails", false)));
    let failing: Vec<_> = found.iter().filter(|result| result.code == Code::PodsFailing).collect();
    let reasons: Vec<_> = failing.iter().map(|result| result.reason).collect();
    assert_eq!(reasons, [Some("ImagePullBackOff"), Some("AgentSuspected")]);
    let expected = "failure  requests      Deployment shop/order: 2 of 2 pods fail: ImagePullBackOff of container app: \
                    what it means (<said>\\nby a kubelet); what to do";
    assert_eq!(failing[0].line(), expected);
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
fn annotations_without_effect_are_reported_with_field_and_remedy() {
    let metadata = json!({"annotations": {"instrumentation.opentelemetry.io/inject-java": "true"}});
    let template = json!({"spec": {"containers": []}});
    let deployment = json!({"metadata": metadata, "spec": {"template": template}});
    let mistakes = inject::mistakes::of(&deployment, "apps/v1", "Deployment");
    let found = in_default(seen("Deployment", "shop", "order").mistaken(mistakes));
    assert_eq!((found[0].code, found[0].reason), (Code::AnnotationIgnored, Some("annotation-on-workload")));
    let line = "warning  requests      Deployment shop/order: metadata.annotations[instrumentation.opentelemetry.io\
        /inject-java]: the annotation instrumentation.opentelemetry.io/inject-java has no effect on the Deployment \
        itself; move it to spec.template.metadata.annotations";
    assert_eq!(found[0].line(), line);
}

#[test]
fn reasons_of_a_namespace_are_reported_once() {
    let by_namespace = seen("Deployment", "shop", "a").asks("java", none("shop"));
    let own = seen("Deployment", "shop", "b").asks("java", none("shop")).names("java");
    let mut survey = by_namespace.and(own).survey();
    survey.asking.push(("shop".to_owned(), survey.workloads[0].decided().to_vec()));
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
        survey.asking.push(("shop".to_owned(), survey.workloads[0].decided().to_vec()));
        let found = results(&survey, &registration(&[], |_, _| ()));
        assert_eq!((codes(&found), found[0].reason), (vec![Code::NotInjected], Some(reason.code())));
        assert_eq!(found[0].subject, Some(Subject::new("Namespace", "", "shop")), "{reason}");
    }
}

#[test]
fn older_pods_are_counted_with_cause_and_remedy() {
    let old = seen("Deployment", "shop", "order").asks("java", Reason::Injected).has("java", 1).pods(4);
    let found = in_default(old.skipped("java", "NoInstrumentation", 2));
    let expected = "Deployment shop/order: 3 of 4 pods run without java (2 skipped at creation: NoInstrumentation, 1 \
                    not reviewed at creation); new pods are injected; kubectl rollout restart deployment/order -n shop";
    assert_eq!(codes(&found), [Code::PodsNotInjected, Code::PodsWithoutAgent]);
    assert!(found[0].line().ends_with(expected), "{}", found[0].line());
    let status = "kubectl rollout status deployment/order -n shop --timeout=15m";
    assert_eq!(found[0].commands, ["kubectl rollout restart deployment/order -n shop", status]);
    assert!(found[1].line().contains("3 pods opt in and run without an agent, by cause: PodsNotInjected 3"));
    assert_eq!(found[1].details, Some(json!({"PodsNotInjected": 3})));
    let short = seen("CronJob", "shop", "report").asks("java", Reason::Injected).pods(1);
    assert_eq!(codes(&in_default(short)), [Code::RequestsMet], "its pods are short-lived");
}

#[test]
fn each_kind_of_workload_has_its_own_remedy() {
    let old = |kind: &str, replaced: Replaced| {
        let seen = seen(kind, "shop", "order").asks("java", Reason::Injected).pods(1).replaced(replaced);
        in_default(seen).remove(0)
    };
    for (kind, replaced, advice, commands) in [
        (
            "Pod",
            Replaced::ByRestart,
            "kubectl get pod order -n shop -o yaml | kubectl replace --force -f -",
            0,
        ),
        ("StatefulSet", Replaced::ByRestart, "kubectl rollout restart statefulset/order -n shop", 2),
        (
            "DaemonSet",
            Replaced::OnDelete,
            "its update strategy is OnDelete: delete its pods one after another",
            0,
        ),
        (
            "Deployment",
            Replaced::Paused,
            "kubectl rollout resume deployment/order -n shop, then restart it",
            0,
        ),
        ("Rollout", Replaced::ByRestart, "kubectl argo rollouts restart order -n shop", 2),
        ("CloneSet", Replaced::ByRestart, "so that their controller creates them again", 0),
    ] {
        let found = old(kind, replaced);
        assert!(found.line().ends_with(advice), "{}", found.line());
        assert_eq!(found.commands.len(), commands, "{kind}");
    }
}

#[test]
fn agents_of_another_version_or_configuration_are_reported() {
    let agent = |version: &str, hash: &str| Agent {
        language: "java",
        by: By::Webhook,
        instrumentation: Some("shop/default".into()),
        hash: Some(hash.into()),
        image: Some(format!("registry/java:{version}").into()),
    };
    let (next, before) = (agent("2.9.0", "v1:0000000b"), agent("2.4.0", "v1:0000000a"));
    let found = |now: &[(Agent, usize)]| {
        let order = seen("Deployment", "shop", "order").asks("java", Reason::Injected).pods(3);
        in_default(order.agent(next.clone(), now))
    };
    let old = found(&[(before, 2), (next.clone(), 1)]);
    assert_eq!(codes(&old), [Code::PodsOutdated, Code::AgentVersions]);
    let expected = "2 of 3 pods run with java 2.4.0; new pods get 2.9.0; kubectl rollout restart deployment/order -n shop";
    assert!(old[0].line().ends_with(expected), "{}", old[0].line());
    let expected = "java now: 2.4.0 (2 pods), 2.9.0 (1 pod); in new pods: 2.9.0 (1 workload)";
    assert!(old[1].line().ends_with(expected), "{}", old[1].line());
    assert_eq!(
        old[1].details,
        Some(json!({"language": "java", "now": {"2.4.0": 2, "2.9.0": 1}, "next": {"2.9.0": 1}}))
    );
    let stale = found(&[(agent("2.9.0", "v1:0000000a"), 3)]);
    assert!(
        stale[0]
            .message
            .contains("3 of 3 pods were injected with java as its Instrumentation was configured")
    );
    for fine in [agent("2.9.0", ""), agent("mirrored", "v1:0000000b"), next.clone()] {
        assert_eq!(codes(&found(&[(fine, 3)])), [Code::RequestsMet, Code::AgentVersions]);
    }
    assert_eq!(codes(&found(&[(agent("2.4.0", ""), 3)]))[0], Code::PodsOutdated, "the operator's");
}

#[test]
fn pods_that_no_configuration_selects_are_reported() {
    let ask = |namespace: &str| seen("Deployment", namespace, "dns").asks("java", Reason::Injected).pods(1);
    let found = in_default(ask("kube-system"));
    assert_eq!(found[0].code, Code::NotReviewed);
    let line = found[0].line();
    let cause = "opts in to java, but the namespaceSelector of otel-webhook does not select namespace kube-system: \
                 kubernetes.io/metadata.name NotIn (kube-system, otel-webhook); move it to another namespace: kube-system";
    assert!(line.contains(cause), "{line}");
    assert!(
        in_default(ask("otel-webhook"))[0]
            .line()
            .contains("the namespace of the webhook is excluded from injection")
    );
    // The operator still selects them.
    let everywhere: Value = json!({});
    let both = registration(&[operator("a-operator", everywhere)], |_, _| ());
    let found = results(&ask("kube-system").survey(), &both);
    assert_eq!(codes(&found), [Code::PodsNotInjected, Code::PodsWithoutAgent]);
    // A missing registration is reported elsewhere.
    let found = results(&ask("shop").survey(), &Registration::default());
    assert_eq!(codes(&found), [Code::PodsWithoutAgent]);
    assert_eq!(found[0].details, Some(json!({"PodsNotRegistered": 1})));
}

#[test]
fn the_remedy_fits_the_selector_that_does_not_match() {
    let found = |change: Value, labels: &[(&str, &str)]| {
        let registration = registration(&[], |mutating, _| {
            let fields = change.as_object().expect("fields").clone();
            mutating["webhooks"][0].as_object_mut().expect("a webhook").extend(fields);
        });
        let order = seen("Deployment", "shop", "order").asks("java", Reason::Injected).pods(1);
        let order = labels.iter().fold(order, |order, (key, value)| order.labelled(key, value));
        results(&order.survey(), &registration).remove(0)
    };
    let exists = |operator: &str| json!({"matchExpressions": [{"key": "agents", "operator": operator}]});
    for (change, labels, cause, advice) in [
        (
            json!({"namespaceSelector": {"matchLabels": {"agents": "on"}}}),
            &[][..],
            "does not select namespace shop: agents In (on)",
            "kubectl label namespace shop agents=on, or change the namespaceSelector of otel-webhook",
        ),
        (
            json!({"objectSelector": exists("Exists")}),
            &[],
            "the objectSelector of otel-webhook does not select its pods: agents Exists",
            "set the label agents: \"true\" in spec.template.metadata.labels, or change the objectSelector of otel-webhook",
        ),
        (
            json!({"objectSelector": exists("DoesNotExist")}),
            &[("agents", "off")],
            "agents DoesNotExist",
            "remove the label agents from spec.template.metadata.labels, or change the objectSelector of otel-webhook",
        ),
    ] {
        let result = found(change, labels);
        assert_eq!(result.code, Code::NotReviewed);
        assert!(result.message.ends_with(cause), "{}", result.message);
        assert_eq!(result.advice.as_deref(), Some(advice));
    }
}

#[test]
fn nothing_is_fine_above_workloads_that_run_without() {
    let spoilt = [
        seen("Deployment", "shop", "a").asks("java", Reason::Injected).pods(1),
        seen("Deployment", "shop", "a").asks("java", none("shop")).pods(1),
        seen("Deployment", "kube-system", "a").asks("java", Reason::Injected).pods(1),
    ];
    for seen in spoilt {
        let found = codes(&in_default(seen));
        assert!(!found.contains(&Code::RequestsMet), "{found:?}");
        assert_eq!(found.last(), Some(&Code::PodsWithoutAgent));
    }
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
    let (problem, advice) = ("spec.selector: no operator".to_owned(), "fix it".to_owned());
    survey.unusable.push(Unusable { subject, problem, advice });
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
                    readable by you (list instrumentations in ta); ask a user with this permission to run \
                    otel-webhook check";
    assert!(found[0].line().ends_with(expected), "{}", found[0].line());
    // Without the flags, that all are injected is not known either.
    let mut survey = seen("Deployment", "shop", "order").asks("java", Reason::Injected).survey();
    survey.unread.flags = Some("list mutatingwebhookconfigurations".to_owned());
    assert_eq!(codes(&results(&survey, &Registration::default())), []);
}

fn injected_by(instrumentation: &str) -> Agent {
    Agent {
        language: "java",
        by: By::Webhook,
        instrumentation: Some(instrumentation.into()),
        hash: Some("v1:0000000b".into()),
        image: Some("registry/java:2.9.0".into()),
    }
}

/// What is said of three pods that have the agent of `shop/order`.
fn said_of_three(seen: SurveyedBuilder) -> Option<String> {
    let mut survey = seen.pods(3).survey();
    let mut workload = survey.workloads.remove(0);
    workload.pods.agents.insert(injected_by("shop/order"), 3);
    outdated(&workload).map(|result| result.message)
}

#[test]
fn an_agent_of_another_instrumentation_is_outdated() {
    let next = |name: &str| {
        said_of_three(
            seen("Deployment", "shop", "order").asks("java", Reason::Injected).agent(injected_by(name), &[]),
        )
    };
    assert_eq!(next("shop/order"), None);
    let expected = "3 of 3 pods were injected with java by shop/order; new pods use shop/other";
    assert_eq!(next("shop/other").as_deref(), Some(expected));
}

#[test]
fn an_agent_that_new_pods_do_not_get_is_outdated() {
    let order = || seen("Deployment", "shop", "order");
    assert_eq!(said_of_three(order()).as_deref(), Some("3 of 3 pods run with java; new pods get none"));
    // The template is not known: it is that of a pod that has the agent.
    let sign = Sign::Container("opentelemetry-auto-instrumentation-java".to_owned());
    assert_eq!(said_of_three(order().asks("java", Reason::AlreadyInjected { sign })), None);
}
