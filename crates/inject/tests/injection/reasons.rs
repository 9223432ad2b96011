//! Reasons name the annotations that are there, and on which object.

use otel_webhook_testkit::{
    objects::{instrumentation, pod},
    surroundings::Surroundings,
};
use serde_json::{Value, json};

const PREFIX: &str = "instrumentation.opentelemetry.io/";

/// What is said of a pod of two containers with these annotations, and others on its namespace.
fn said(of_pod: &[(&str, &str)], of_namespace: &[(&str, &str)]) -> Vec<String> {
    let annotations: serde_json::Map<String, Value> =
        of_namespace.iter().map(|(name, value)| (format!("{PREFIX}{name}"), json!(value))).collect();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "shop", "annotations": annotations}});
    let around = Surroundings::new([namespace, instrumentation("inst", json!({}))]);
    let spec = json!({"containers": [{"name": "app", "image": "a:1"}, {"name": "worker", "image": "w:1"}]});
    let injected = around.inject(&pod(of_pod, spec));
    assert!(injected.is_unchanged(), "{:?}", injected.codes());
    injected.outcome.findings.iter().map(ToString::to_string).collect()
}

#[test]
fn a_list_without_a_name_is_named_itself() {
    let java = ("inject-java", "true");
    for (of_pod, of_namespace, by) in [
        (vec![java, ("container-names", ",")], vec![], "container-names of the pod"),
        (vec![java, ("java-container-names", " , ")], vec![], "java-container-names of the pod"),
        (vec![java], vec![("container-names", ",")], "container-names of the namespace"),
        (
            vec![java, ("container-names", ",")],
            vec![("java-container-names", ",")],
            "container-names of the pod, the annotation instrumentation.opentelemetry.io/java-container-names \
             of the namespace",
        ),
    ] {
        let expected =
            format!("java: no container is named by the annotation {PREFIX}{by}; the pod has: app, worker");
        assert_eq!(said(&of_pod, &of_namespace), [expected]);
    }
    let nginx = [("inject-nginx", "true"), ("inject-nginx-container-names", ",")];
    assert!(said(&nginx, &[])[0].contains(&format!("{PREFIX}inject-nginx-container-names of the pod;")));
}

#[test]
fn a_name_that_stands_twice_is_said_by_the_lists_that_have_it() {
    let java = ("inject-java", "true");
    for (of_pod, of_namespace, by) in [
        (vec![java, ("container-names", "app,app")], vec![], "container-names of the pod"),
        (vec![java, ("java-container-names", "worker,app,app")], vec![], "java-container-names of the pod"),
        (
            vec![java, ("container-names", "worker,app")],
            vec![("java-container-names", "app")],
            "container-names of the pod, the annotation instrumentation.opentelemetry.io/java-container-names \
             of the namespace",
        ),
    ] {
        let named = "java: container \"app\" is named twice for java, by the annotation ";
        let expected = format!("{named}{PREFIX}{by}; name it once");
        assert_eq!(said(&of_pod, &of_namespace), [expected]);
    }
}

#[test]
fn missing_lists_are_those_of_the_languages_without_one() {
    let asks = [
        ("inject-java", "true"),
        ("inject-python", "true"),
        ("inject-nginx", "true"),
        ("java-container-names", "app"),
    ];
    let expected = format!(
        "java: the pod opts in to several languages (java, python, nginx), and each needs a list of its containers; \
         annotate the pod with {PREFIX}python-container-names, {PREFIX}inject-nginx-container-names"
    );
    assert_eq!(said(&asks, &[])[0], expected);
}

#[test]
fn who_switches_off_and_who_chooses_a_platform_is_said() {
    for (of_pod, of_namespace, whose) in [
        (vec![("inject-java", "false")], vec![("inject-java", "true")], "pod"),
        (vec![], vec![("inject-java", "false")], "namespace"),
    ] {
        let expected = format!("java: opted out by the annotation {PREFIX}inject-java of the {whose}");
        assert_eq!(said(&of_pod, &of_namespace), [expected]);
    }
    let (python, platform) = (("inject-python", "true"), ("otel-python-platform", "MUSL"));
    for (of_pod, of_namespace, whose) in
        [(vec![python, platform], vec![], "pod"), (vec![python], vec![platform], "namespace")]
    {
        let expected = format!(
            "python: the annotation {PREFIX}otel-python-platform of the {whose} is \"MUSL\", which is not a \
             platform of this agent; valid: glibc, musl"
        );
        assert_eq!(said(&of_pod, &of_namespace), [expected]);
    }
}

#[test]
fn what_go_takes_from_the_pod_alone_is_said_of_the_pod() {
    let go = ("inject-go", "true");
    let several = said(&[go, ("go-container-names", "app,worker")], &[]);
    let expected = format!(
        "go in app: the annotation {PREFIX}go-container-names of the pod is \"app,worker\", which has a comma; \
         Go supports only one container"
    );
    assert_eq!(several, [expected]);
    let executable = said(&[go], &[("otel-go-auto-target-exe", "/app")]);
    assert!(
        executable[0].ends_with(&format!("{PREFIX}otel-go-auto-target-exe of the pod")),
        "{executable:?}"
    );
}
