//! Tests of each change of a workload in the preview.

use super::*;
use crate::cli::check::{
    registration::tests::{operator, registration},
    survey::{
        Pods,
        tests::{Seen, seen},
    },
};
use otel_webhook_api::{
    defaults::{DefaultImages, JAVA},
    image::Stored,
};
use otel_webhook_fleet::injected::Agent;
use otel_webhook_inject::reason::{ObjectName, Reason, Sign};

/// The warning of `Seen::warned`.
const WARNING: &str = "OTEL_EXPORTER_OTLP_ENDPOINT is \"c:4317\", without a scheme; set it to http://c:4317";

fn none() -> Reason {
    Reason::NoInstrumentation {
        namespace: "shop".to_owned(),
        advice: "create one, or name one as namespace/name",
    }
}

fn already() -> Reason {
    Reason::AlreadyInjected { sign: Sign::Container("c".to_owned()) }
}

/// An agent by the operator.
fn agent(image: &str) -> Agent {
    Agent { language: "java", by: By::Operator, instrumentation: None, hash: None, image: Some(image.into()) }
}

fn all() -> Seen {
    let same = seen("Deployment", "shop", "same").pods(2).has("java", 2).asks("java", Reason::Injected);
    let changed = seen("Deployment", "shop", "changed").pods(2).asks("java", Reason::Injected);
    same.and(changed.agent(agent("java:2"), &[(agent("java:1"), 2)]))
        .and(seen("StatefulSet", "shop", "added").pods(1).asks("java", Reason::Injected))
        .and(seen("DaemonSet", "shop", "removed").pods(3).has("go", 3).asks("go", none()).collector())
        .and(seen("Pod", "shop", "kept").pods(1).has("java", 1).asks("java", already()))
        .and(seen("CronJob", "shop", "later").asks("java", Reason::Injected))
        .and(seen("CloneSet", "shop", "hidden").pods(1).has("java", 1).unknown())
        .and(seen("Job", "shop", "vain").pods(1).asks("java", none()))
        .and(seen("Job", "shop", "silent").pods(1))
}

#[test]
fn each_change_has_a_name() {
    let survey = all().survey();
    let registration = registration(&[operator("a-operator", json!({}))], |_, _| ());
    let objects: Vec<_> = objects(&survey, Some(&registration)).collect();
    let change = |name: &str| {
        let found = objects.iter().find(|object| object["name"] == name).expect(name);
        found["languages"][0]["change"].as_str().map(str::to_owned)
    };
    for (name, word) in [
        ("same", "same"),
        ("changed", "changed"),
        ("added", "added"),
        ("removed", "removed"),
        ("kept", "same"),
        ("later", "unknown"),
        ("hidden", "unknown"),
        ("vain", "none"),
    ] {
        assert_eq!(change(name).as_deref(), Some(word), "{name}");
    }
    assert_eq!(change("silent"), None);
}

#[test]
fn an_object_has_all_fields() {
    let changed = seen("Deployment", "shop", "order").pods(2).asks("java", Reason::Injected);
    let changed = changed.agent(agent("java:2"), &[(agent("java:1"), 1)]);
    let survey = changed.warned().asks("go", none()).collector().survey();
    let registration = registration(&[operator("a-operator", json!({}))], |_, _| ());
    let object = objects(&survey, Some(&registration)).next().expect("one");
    let reason = "go: there is no Instrumentation in namespace \"shop\" and no default is set; create one, or \
                  name one as namespace/name";
    let now = |operator: usize| json!({"otel-webhook": 0, "operator": operator});
    let expected = json!({
        "kind": "Deployment", "namespace": "shop", "name": "order", "pods": 2,
        "reviewedBy": ["a-operator", "otel-webhook"], "collector": true,
        "languages": [
            {"language": "java", "now": now(1), "next": "Injected", "containers": ["app"],
             "instrumentation": null, "reasons": [], "warnings": [WARNING], "notes": [], "change": "changed",
             "agents": {"now": {"java:1": 1}, "next": "java:2"}},
            {"language": "go", "now": now(0), "next": "NoInstrumentation", "containers": [],
             "instrumentation": null, "reasons": [reason], "warnings": [], "notes": [], "change": "none",
             "agents": {"now": {}, "next": null}},
        ],
        "problem": null,
    });
    assert_eq!(object, expected);
}

#[test]
fn the_table_has_a_row_per_workload_and_reasons_below() {
    let warned = seen("Deployment", "shop", "warned").asks("java", Reason::Injected).warned();
    let odd = seen("Deployment", "shop", "odd").unreadable("no list");
    let text = text(&all().and(odd).and(warned).survey());
    let warning = format!("  Deployment shop/warned: java in app: {WARNING}");
    for line in [
        &*warning,
        "shop       Deployment/changed  2     java      operator 2/2  app",
        "shop       DaemonSet/removed   3     go        operator 3/3  NoInstrumentation",
        "shop       CloneSet/hidden     1     java      operator 1/1  unknown",
        "shop       Job/silent          1     -         -             -",
        "shop       Deployment/odd      0     -         -             unreadable",
        "  Deployment shop/odd: the pod cannot be read: no list",
        "  CloneSet shop/hidden: unknown, since its pods are already injected and its template cannot be read",
        "Into these, the operator injects a collector sidecar, and continues to:",
        "  DaemonSet shop/removed",
        "11 workloads with their next pods: 1 removed, 1 added, 1 changed, 3 unknown, 2 same, 3 none",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line} is not in\n{text}");
    }
    assert_eq!(super::text(&Survey::default()), "There are no workloads.\n");
}

#[test]
fn kept_and_replaced_images_are_reported() {
    let stored = Stored { image: Some("own:1"), recorded: Some("own:1"), is_blocked: false };
    let choice = DefaultImages::default().choose(&JAVA, stored);
    let said = choice.to_string();
    let kept = seen("Deployment", "shop", "kept").asks("java", Reason::Injected).notes(Note::Image(choice));
    let survey = kept.survey();
    let line = format!("  Deployment shop/kept: java: {said}");
    let text = text(&survey);
    assert!(text.lines().any(|shown| shown == line), "{line} is not in\n{text}");
    let registration = registration(&[operator("a-operator", json!({}))], |_, _| ());
    let object = objects(&survey, Some(&registration)).next().expect("one");
    assert_eq!(object["languages"][0]["notes"], json!([said]));
}

#[test]
fn what_is_not_readable_is_unknown_and_not_missing() {
    let hidden = seen("Deployment", "shop", "order").pods(2).has("java", 2).unsure("java");
    let mut survey = hidden.survey();
    let object = objects(&survey, None).next().expect("one");
    assert_eq!(object["reviewedBy"], json!(null));
    let java = &object["languages"][0];
    assert_eq!((&java["next"], &java["change"]), (&json!("NotReadable"), &json!("unknown")), "{java}");
    let expected = "java: unknown, since the Instrumentations of namespace \"ta\" are not readable by you (list \
                    instrumentations in ta)";
    assert_eq!(java["reasons"], json!([expected]));
    let report = text(&survey);
    assert!(report.contains(&format!("  Deployment shop/order: {expected}\n")), "{report}");

    survey.workloads[0].pods = Pods { is_unknown: true, ..Pods::default() };
    assert!(
        text(&survey).contains("Deployment/order  ?     java      -    NotReadable"),
        "{}",
        text(&survey)
    );
    assert_eq!(objects(&survey, None).next().expect("one")["pods"], json!(null));
}

#[test]
fn what_selectors_opt_in_is_counted() {
    let name = ObjectName { namespace: "shop".into(), name: "java".into() };
    let note = || Note::OptedInBySelector { name: name.clone() };
    let survey = seen("Deployment", "shop", "order")
        .pods(2)
        .asks("java", Reason::Injected)
        .notes(note())
        .and(seen("DaemonSet", "shop", "log").pods(3).asks("java", Reason::Injected).notes(note()))
        .and(seen("Deployment", "shop", "cart").pods(4).asks("java", Reason::Injected))
        .survey();
    let text = text(&survey);
    assert!(
        text.ends_with("\nInjected by selectors, without an annotation: workloads 2, pods 5\n"),
        "{text}"
    );
    let line = "Deployment shop/order: java: opted in by the selector of Instrumentation \"shop/java\"";
    assert!(text.contains(line), "{text}");
    let object = objects(&survey, None).next().expect("one");
    assert_eq!(object["languages"][0]["notes"], json!([note().to_string()]));
}
