use serde_json::json;

use super::*;
use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_inject::{Settings, catalogue::Catalogue};
use otel_webhook_store::Writer;

/// Calls a function with an Instrumentation `order` that selects pods by the label `app`, and `jvm` that opts in.
fn with_around<T>(of: impl FnOnce(&Around<'_>) -> T) -> T {
    let mut writer = Writer::new(DefaultImages::default());
    writer.put(&json!({
        "apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
        "metadata": {"name": "order", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "order"}}},
    }));
    writer.put(&json!({
        "apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
        "metadata": {"name": "jvm", "namespace": "shop"},
        "spec": {"inject": ["java"], "selector": {
            "matchLabels": {"runtime": "jvm"},
            "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["batch"]}],
        }},
    }));
    writer.publish();
    let snapshot = writer.store().snapshot();
    let catalogue: &Catalogue = &snapshot.catalogue;
    let settings = Settings::default();
    of(&Around { namespace: "shop", catalogue, settings: &settings, owners: &snapshot.owners })
}

/// Returns the warnings about an object.
fn said(object: &Value, preview: bool) -> Option<Vec<String>> {
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let verdict = with_around(|around| advise(&mut object.clone(), &api_version, &kind, around, preview))?;
    assert!(verdict.is_allowed());
    Some(verdict.warnings.iter().map(ToString::to_string).collect())
}

/// Returns a Deployment with annotations on itself and on its template, and the label `app`.
fn deployment(own: &Value, template: &Value, app: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "order", "annotations": prefixed(own)},
        "spec": {"template": {
            "metadata": {"labels": {"app": app}, "annotations": prefixed(template)},
            "spec": {"containers": [{"name": "order"}, {"name": "proxy"}]},
        }},
    })
}

fn prefixed(annotations: &Value) -> Value {
    let all = annotations.as_object().expect("an object").iter();
    all.map(|(key, value)| (format!("{ANNOTATION_PREFIX}{key}"), value.clone())).collect()
}

fn of_template(template: &Value) -> Vec<String> {
    said(&deployment(&json!({}), template, "order"), false).expect("a workload")
}

#[test]
fn mistakes_in_workloads_and_namespaces_are_reported() {
    let object = deployment(&json!({"inject-java": "true"}), &json!({"inject-jva": "true"}), "order");
    let prefix = "instrumentation.opentelemetry.io/";
    let expected = [
        format!(
            "metadata.annotations[{prefix}inject-java]: the annotation {prefix}inject-java has no effect on the \
             Deployment itself; move it to spec.template.metadata.annotations"
        ),
        format!(
            "spec.template.metadata.annotations[{prefix}inject-jva]: unknown annotation {prefix}inject-jva (did you \
             mean \"inject-java\"?); set {prefix}inject-java: \"true\" in spec.template.metadata.annotations"
        ),
    ];
    assert_eq!(said(&object, false).expect("a workload"), expected);
    let metadata = json!({"name": "shop", "annotations": prefixed(&json!({"inject-jva": "true"}))});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    let warnings = said(&namespace, false).expect("a namespace");
    assert!(warnings[0].contains("unknown annotation"), "{warnings:?}");
    let named = json!({"inject-java": "order"});
    let mut rollout = deployment(&named, &json!({}), "order");
    rollout["apiVersion"] = json!("argoproj.io/v1alpha1");
    rollout["kind"] = json!("Rollout");
    let warnings = said(&rollout, false).expect("it has a pod template");
    assert!(warnings[0].contains("has no effect on the Rollout itself"), "{warnings:?}");
}

#[test]
fn only_the_first_of_many_unknown_annotations_are_reported_one_by_one() {
    let many: serde_json::Map<_, _> =
        (0..5_000).map(|number| (format!("a-{number:04}"), json!(""))).collect();
    let said = of_template(&Value::Object(many));
    assert_eq!(said.len(), 11);
    let at = "spec.template.metadata.annotations";
    let tenth = format!(
        "{at}[instrumentation.opentelemetry.io/a-0009]: unknown annotation instrumentation.opentelemetry.io/a-0009; "
    );
    assert!(said[9].starts_with(&tenth), "{}", said[9]);
    let rest = format!(
        "{at}: 4990 more unknown annotations with the prefix instrumentation.opentelemetry.io/; remove them"
    );
    assert_eq!(said[10], rest);
}

#[test]
fn findings_are_reported() {
    let warnings = of_template(&json!({"inject-java": "ordr"}));
    let expected = "java: Instrumentation \"shop/ordr\" not found; its namespace has: jvm, order";
    let field = format!("spec.template.metadata.annotations[{ANNOTATION_PREFIX}inject-java]");
    assert_eq!(warnings[0], format!("{field}: {expected}"));
}

#[test]
fn labels_that_a_selector_nearly_matches_are_reported() {
    let labelled = |own: &Value, template: &Value| {
        let mut object = deployment(&json!({}), &json!({}), "order");
        object["metadata"]["labels"] = own.clone();
        object["spec"]["template"]["metadata"]["labels"] = template.clone();
        object["spec"]["selector"] = json!({"matchLabels": {"app": "order", "runtim": "jvm"}});
        said(&object, false).expect("a workload").join("\n")
    };
    let by = "the selector of Instrumentation \"shop/jvm\" requires the label runtime";
    let at = "spec.template.metadata.labels";
    for (own, template, expected) in [
        (json!({}), json!({"runtime": "jvm"}), String::new()),
        (json!({}), json!({"runtime": "python"}), String::new()),
        (json!({}), json!({"runtime": "jvm2"}), String::new()),
        (json!({}), json!({"tier": "web"}), String::new()),
        (json!({"runtime": "jvm"}), json!({"tier": "batch"}), String::new()),
        (json!({}), json!({"runtime": "jmvv"}), String::new()),
        // The Deployment finds its pods by this label.
        (json!({}), json!({"runtim": "jvm"}), String::new()),
        (
            json!({}),
            json!({"runtime": "Jvm"}),
            format!("{at}[runtime]: {by}: \"jvm\", but the value is \"Jvm\"; set runtime: \"jvm\" in {at}"),
        ),
        (
            json!({"runtime": "jvm"}),
            json!({}),
            format!(
                "metadata.labels[runtime]: {by} on the pod template, but only the Deployment has it; set runtime: \
                 \"jvm\" in {at}"
            ),
        ),
        (
            json!({}),
            json!({"runtme": "jvm"}),
            format!("{at}[runtme]: {by}, but the pods have runtme; rename it to runtime"),
        ),
    ] {
        assert_eq!(labelled(&own, &template), expected, "{own} {template}");
    }
}

#[test]
fn named_instrumentations_with_another_selector_are_reported() {
    let named = json!({"inject-java": "order"});
    let warnings = said(&deployment(&json!({}), &named, "cart"), false).expect("a workload");
    let expected = "java: Instrumentation \"shop/order\" is used, since it is named, but its selector does \
        not match the labels of the pod";
    assert!(warnings[0].ends_with(expected), "{warnings:?}");
    assert_eq!(warnings.len(), 1);
    assert_eq!(of_template(&named), [""; 0]);
}

#[test]
fn owned_objects_and_other_kinds_are_skipped() {
    let mut made = deployment(&json!({"inject-java": "true"}), &json!({}), "order");
    made["kind"] = json!("ReplicaSet");
    assert_eq!(said(&made, false).expect("one without owner").len(), 1);
    made["metadata"]["ownerReferences"] =
        json!([{"kind": "Deployment", "name": "order", "controller": true}]);
    assert_eq!(said(&made, false), None);
    assert_eq!(said(&json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}), false), None);
}

#[test]
fn unreadable_pods_are_reported() {
    let mut object = deployment(&json!({}), &json!({}), "order");
    object["spec"]["template"]["spec"] = json!({"containers": 1});
    let warnings = said(&object, false).expect("a workload");
    assert!(warnings[0].starts_with("spec.template.spec: the pod of this Deployment cannot be read: "));
}
