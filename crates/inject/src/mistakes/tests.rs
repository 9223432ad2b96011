use serde_json::json;

use super::*;

/// The faults of an object, with field and value.
fn found(object: &Value) -> Vec<(Fault, String, String)> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let all = of(object, text("apiVersion"), text("kind"));
    all.into_iter().map(|mistake| (mistake.fault, mistake.field.clone(), mistake.to_string())).collect()
}

fn pod(metadata: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "app"}]}})
}

fn annotated(key: &str) -> Vec<(Fault, String, String)> {
    found(&pod(&json!({"annotations": {key: "true"}})))
}

fn workload(api_version: &str, kind: &str, own: &Value, template: &Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": own, "spec": {"template": {
        "metadata": template, "spec": {"containers": [{"name": "app"}]}}}})
}

const JAVA: &str = "instrumentation.opentelemetry.io/inject-java";

#[test]
fn valid_annotations_and_those_of_others_are_no_mistakes() {
    let valid: serde_json::Map<_, _> =
        language::keys().map(|key| (format!("{ANNOTATION_PREFIX}{key}"), json!("a"))).collect();
    assert_eq!(found(&pod(&json!({"annotations": valid}))), []);
    for other in [
        "instrumentation.newrelic.com/inject-java",
        "sidecar.opentelemetry.io/inject",
        "resource.opentelemetry.io/service.name",
        "sidecar.istio.io/inject",
        "admission.datadoghq.com/java-lib.version",
        "linkerd.io/inject",
        "example.com/inject-java",
        "container-names",
        "inject",
        "otel-webhook/status",
        "otel-webhook/injected",
    ] {
        assert_eq!(annotated(other), [], "{other}");
        assert_eq!(found(&pod(&json!({"labels": {other: "true"}}))), [], "{other}");
    }
}

#[test]
fn unknown_annotations_have_the_valid_one_as_remedy() {
    let (fault, field, text) = annotated("instrumentation.opentelemetry.io/inject-jva").remove(0);
    assert_eq!(fault, Fault::UnknownAnnotation);
    assert_eq!(field, "metadata.annotations[instrumentation.opentelemetry.io/inject-jva]");
    let expected = "unknown annotation instrumentation.opentelemetry.io/inject-jva (did you mean \"inject-java\"?); \
                    set instrumentation.opentelemetry.io/inject-java: \"true\" in metadata.annotations";
    assert_eq!(text, expected);
    let (_, _, text) = annotated("instrumentation.opentelemetry.io/inject").remove(0);
    assert!(
        text.ends_with("(languages: java, nodejs, python, dotnet, go, apache-httpd, nginx, sdk)"),
        "{text}"
    );
    let (fault, _, text) =
        annotated("instrumentation.opentelemetry.io/default-auto-instrumentation-java-image").remove(0);
    assert_eq!(fault, Fault::InstrumentationsOnly);
    assert!(text.ends_with("-java-image only has an effect on Instrumentations; remove it"), "{text}");
}

#[test]
fn wrong_prefixes_are_found() {
    for key in [
        "opentelemetry.com/inject-java",
        "opentelemetry.io/inject-java",
        "instrumentation.opentelemetry.com/inject-java",
        "instrumentation.opentelemtry.io/inject-java",
        "Instrumentation.OpenTelemetry.io/inject-java",
        "sidecar.opentelemetry.io/inject-java",
        "otel.io/inject-jav",
        "otel-webhook/inject-java",
        "instrumentation/inject-java",
        "inject-java",
    ] {
        let all = annotated(key);
        let [(fault, field, text)] = &all[..] else { panic!("{key}: {all:?}") };
        assert_eq!(*fault, Fault::WrongPrefix, "{key}");
        assert_eq!(*field, format!("metadata.annotations[{key}]"));
        assert!(text.ends_with(&format!("set {JAVA}: \"true\" in metadata.annotations")), "{text}");
        let both = json!({"annotations": {key: "true", JAVA: "true"}});
        assert_eq!(found(&pod(&both)), [], "the valid one is set, too");
    }
}

#[test]
fn only_labels_that_opt_in_have_an_effect() {
    let names = format!("{ANNOTATION_PREFIX}container-names");
    let all = found(&pod(&json!({"labels": {JAVA: "true", (&*names): "app", "app": "a"}})));
    let expected = format!(
        "the label {names} has no effect; only annotations have; set {names}: \"app\" in metadata.annotations"
    );
    assert_eq!(all, [(Fault::IsLabel, format!("metadata.labels[{names}]"), expected)]);
    let both = json!({"labels": {(&*names): "app"}, "annotations": {(&*names): "app"}});
    assert_eq!(found(&pod(&both)), [], "a selector may use the label");
    let misspelt = "opentelemetry.io/inject-java";
    let (fault, _, text) = found(&pod(&json!({"labels": {misspelt: "true"}}))).remove(0);
    let expected = format!(
        "the label {misspelt} has no effect; {JAVA} has; set {JAVA}: \"true\" in metadata.annotations"
    );
    assert_eq!((fault, text), (Fault::IsLabel, expected));
}

#[test]
fn a_label_that_opts_in_belongs_to_the_template() {
    let label = json!({"labels": {JAVA: "true"}});
    let expected = format!(
        "the label {JAVA} has no effect on the Deployment itself; move it to spec.template.metadata.labels"
    );
    let all = found(&workload("apps/v1", "Deployment", &label, &json!({})));
    assert_eq!(all, [(Fault::OnWorkload, format!("metadata.labels[{JAVA}]"), expected)]);
    assert_eq!(found(&workload("apps/v1", "Deployment", &label, &label)), []);
}

#[test]
fn annotations_above_the_template_are_found_in_every_kind_that_has_one() {
    let own = json!({"annotations": {JAVA: "true"}});
    for (api_version, kind) in [
        ("apps/v1", "Deployment"),
        ("argoproj.io/v1alpha1", "Rollout"),
        ("apps.kruise.io/v1beta1", "CloneSet"),
    ] {
        let all = found(&workload(api_version, kind, &own, &json!({})));
        let expected = format!(
            "the annotation {JAVA} has no effect on the {kind} itself; move it to spec.template.metadata.annotations"
        );
        assert_eq!(all, [(Fault::OnWorkload, format!("metadata.annotations[{JAVA}]"), expected)]);
        assert_eq!(found(&workload(api_version, kind, &own, &own)), [], "it is in the template, too");
    }
    let cron_job = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {}, "spec": {"jobTemplate": {
        "metadata": own, "spec": {"template": {"spec": {"containers": []}}}}}});
    let (fault, field, text) = found(&cron_job).remove(0);
    assert_eq!(
        (fault, &*field),
        (Fault::OnWorkload, &*format!("spec.jobTemplate.metadata.annotations[{JAVA}]"))
    );
    assert!(text.contains("has no effect on the job template itself"), "{text}");
    assert!(text.ends_with("move it to spec.jobTemplate.spec.template.metadata.annotations"), "{text}");
}

#[test]
fn a_namespace_may_be_misspelt_and_other_objects_are_skipped() {
    let metadata =
        json!({"name": "shop", "annotations": {"instrumentation.opentelemetry.io/inject-jav": "true"}});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    assert_eq!(found(&namespace)[0].0, Fault::UnknownAnnotation);
    assert_eq!(found(&json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata})), []);
    let other = json!({"apiVersion": "a/v1", "kind": "A", "metadata": metadata, "spec": {"template": {}}});
    assert_eq!(found(&other), [], "it has no pod template");
}

#[test]
fn values_have_to_be_strings() {
    let (fault, _, text) = found(&pod(&json!({"annotations": {JAVA: true}}))).remove(0);
    assert_eq!(fault, Fault::NotAString);
    assert_eq!(text, format!("the value of the annotation {JAVA} is true, not a string; quote it: \"true\""));
}

#[test]
fn a_parsed_pod_has_the_same_mistakes_and_their_number_is_bounded() {
    let keys = (0..100).map(|number| (format!("{ANNOTATION_PREFIX}inject-jva{number}"), json!("true")));
    let labels = json!({"otel.io/inject-java": "true"});
    let few = pod(&json!({"annotations": {"inject-java": "order"}, "labels": labels}));
    let many = pod(&json!({"annotations": keys.collect::<serde_json::Map<_, _>>()}));
    for (object, count) in [(few, 2), (many, MOST + 1)] {
        let text = object.to_string();
        let parsed = of_pod(&Pod::parse(&text).expect("a pod"));
        assert_eq!((parsed.len(), parsed), (count, of(&object, "v1", "Pod")));
    }
}

#[test]
fn default_images_are_those_of_namespaces_and_languages() {
    let named = |kind: &str, key: &str, value: &str| {
        let metadata = json!({"annotations": {key: value}});
        let object =
            json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": {"containers": []}});
        found(&object).pop().map(|(fault, _, text)| (fault.code(), text))
    };
    let java = "otel-webhook/default-image-java";
    assert_eq!(named("Namespace", java, "registry.example.com/java:2"), None);
    for (kind, key, value, code, text) in [
        (
            "Pod",
            java,
            "own:1",
            "annotation-for-namespaces",
            "the annotation otel-webhook/default-image-java only has an effect on namespaces; set it on the namespace",
        ),
        (
            "Namespace",
            "otel-webhook/default-image-jva",
            "own:1",
            "default-image-invalid",
            "the annotation otel-webhook/default-image-jva names no language with an image: \"jva\"; use one of java, \
             nodejs, python, dotnet, go, apache-httpd, nginx",
        ),
        (
            "Namespace",
            java,
            "own 1",
            "default-image-invalid",
            "the annotation otel-webhook/default-image-java is \"own 1\", which is not an image reference and is \
             ignored; set a reference such as registry.example.com/agents/java:1.0",
        ),
    ] {
        assert_eq!(named(kind, key, value), Some((code, text.to_owned())));
    }
}

#[test]
fn pauses_are_those_of_namespaces_and_clear() {
    let key = "otel-webhook/paused";
    let namespace = |value: &str| {
        found(
            &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "annotations": {key: value}}}),
        )
    };
    for value in ["true", "TRUE", "false", ""] {
        assert_eq!(namespace(value), [], "{value:?}");
    }
    let field = format!("metadata.annotations[{key}]");
    let unclear = "the annotation otel-webhook/paused is \"on\", which pauses nothing; set it to \"true\" to pause \
                   injection, or remove it";
    assert_eq!(namespace("on"), [(Fault::PausedUnclear, field.clone(), unclear.to_owned())]);
    let misplaced = "the annotation otel-webhook/paused only has an effect on namespaces and Instrumentations; set it on \
                     the namespace";
    assert_eq!(annotated(key), [(Fault::NamespacesOnly, field.clone(), misplaced.to_owned())]);
    let deployment = workload("apps/v1", "Deployment", &json!({"annotations": {key: "true"}}), &json!({}));
    assert_eq!(found(&deployment), [(Fault::NamespacesOnly, field, misplaced.to_owned())]);
}
