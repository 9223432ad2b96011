//! What `explain` tells.

use serde_json::json;

use super::{INSTRUMENTATION, RECORDED, pod, succeed, values, with_recorded};

const FIRST_CASE: &str = include_str!("../../data/first-case.yaml");

/// What is wrong with the first case.
const WARNING: &str = "OTEL_EXPORTER_OTLP_ENDPOINT has port 4317, but this agent sends http/protobuf by default; \
    set port 4318, or OTEL_EXPORTER_OTLP_PROTOCOL to grpc";

fn explain(arguments: &[&str], documents: &[&str]) -> super::Run {
    succeed(&[&["explain", "-f", "-"], arguments].concat(), &documents.join("---\n"))
}

#[test]
fn a_table_for_each_workload() {
    let java = "inject-java: \"true\"";
    let lists = format!("{java}\n    instrumentation.opentelemetry.io/container-names: app,ap");
    let two = pod("name: p").replace(java, &lists);
    let quiet = "apiVersion: v1\nkind: Pod\nmetadata: {name: quiet}\nspec: {containers: [{name: a}]}\n";
    let run = explain(&[], &[FIRST_CASE, INSTRUMENTATION, &two, quiet]);
    let expected = "\
Deployment/order in namespace test
  CONTAINER  LANGUAGE  OUTCOME   INSTRUMENTATION                  REASON
  order      java      Injected  test/instrumentation-test-order  injected
  warning on java in order: OTEL_EXPORTER_OTLP_ENDPOINT has port 4317, but this agent sends http/protobuf by default; \
set port 4318, or OTEL_EXPORTER_OTLP_PROTOCOL to grpc

Pod/p in namespace default
  CONTAINER  LANGUAGE  OUTCOME            INSTRUMENTATION  REASON
  ap         java      ContainerNotFound  default/inst     container \"ap\" not found; the pod has: app
  app        java      Injected           default/inst     injected

Pod/quiet in namespace default
  does not opt in; to opt in, set the annotation instrumentation.opentelemetry.io/inject-java: \"true\" on the \
pod or its namespace";
    assert!(run.out.starts_with(expected), "{}", run.out);
    assert_eq!(run.err, "");
}

#[test]
fn an_agent_of_the_instrumentation_has_its_name_in_the_table() {
    let inst = json!({"apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
        "metadata": {"name": "inst", "namespace": "default"},
        "spec": {"agents": [{"name": "php", "image": "own/php:1", "directory": "/agent"}]}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default",
            "annotations": {"instrumentation.opentelemetry.io/inject-agent": "php,pearl"}},
        "spec": {"containers": [{"name": "app", "image": "app"}]}});
    let documents = [format!("{inst}\n"), format!("{pod}\n")];
    let documents: Vec<_> = documents.iter().map(String::as_str).collect();
    let run = explain(&[], &documents);
    for line in [
        "  -          agent:pearl  AgentNotFound  -                agent \"pearl\" not found in spec.agents of the \
         Instrumentations that the pod may use; they have: php",
        "  app        agent:php    Injected       default/inst     injected",
    ] {
        assert!(run.out.contains(line), "{}", run.out);
    }
    let [object] = &values(&explain(&["-o", "json"], &documents))[..] else { panic!("one document") };
    assert!(object.to_string().contains(r#""agent":"php""#), "{object}");
}

#[test]
fn mistakes_in_any_kind_of_workload_and_in_namespaces_are_said() {
    let rollout = FIRST_CASE
        .split("---")
        .find(|document| document.contains("kind: Deployment"))
        .expect("a Deployment")
        .replace("apps/v1", "argoproj.io/v1alpha1")
        .replace("kind: Deployment", "kind: Rollout")
        .replace("instrumentation.opentelemetry.io/inject-java", "opentelemetry.com/inject-java");
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, annotations: \
        {instrumentation.opentelemetry.io/inject-jva: \"true\"}}\n";
    let run = explain(&[], &[&rollout, namespace]);
    let remedy = "set instrumentation.opentelemetry.io/inject-java: ";
    let expected = "Namespace/shop\n  mistake in metadata.annotations[instrumentation.opentelemetry.io/inject-jva]: \
        unknown annotation instrumentation.opentelemetry.io/inject-jva (did you mean \"inject-java\"?); ";
    assert!(run.out.starts_with(&format!("{expected}{remedy}")), "{}", run.out);
    let last = run.out.lines().last().expect("a mistake");
    let expected = "  mistake in spec.template.metadata.annotations[opentelemetry.com/inject-java]: the annotation \
        opentelemetry.com/inject-java is ignored because of its prefix; ";
    assert!(last.starts_with(&format!("{expected}{remedy}")), "{last}");
    let mistake = &values(&explain(&["-o", "json"], &[&rollout]))[0]["mistakes"][0];
    assert_eq!(
        (&mistake["code"], &mistake["field"]),
        (&json!("wrong-prefix"), &json!("spec.template.metadata.annotations[opentelemetry.com/inject-java]"))
    );
}

#[test]
fn notes_stand_below_the_table() {
    let tls = INSTRUMENTATION.replace("4318", "4318\n    tls: {secretName: certs, ca_file: ca.crt}");
    let run = explain(&[], &[&tls, &pod("name: p")]);
    let last = run.out.lines().last().expect("a note");
    assert!(last.starts_with("  note on java in app: "), "{}", run.out);
    assert!(last.contains("certs"), "{last}");
}

#[test]
fn an_image_that_is_kept_or_replaced_is_said() {
    for (image, said) in RECORDED {
        let documents = [&*with_recorded(image), &pod("name: p")];
        let run = explain(&[], &documents);
        assert!(run.out.ends_with(&format!("  note on java in app: {said}\n")), "{}", run.out);
        assert_eq!(values(&explain(&["-o", "json"], &documents))[0]["findings"][0]["notes"], json!([said]));
    }
}

#[test]
fn json_has_one_object_a_workload_and_line() {
    let run = explain(&["-o", "json", "-n", "shop"], &[FIRST_CASE, &pod("name: p")]);
    let field =
        |path: &str| format!("{path}metadata.annotations[instrumentation.opentelemetry.io/inject-java]");
    let sentence = "there is no Instrumentation in namespace \"shop\" and no default is set; create one, or name one as \
         namespace/name";
    assert_eq!(
        values(&run),
        [
            json!({"kind": "Deployment", "namespace": "test", "name": "order", "findings": [{
                "container": "order", "language": "java", "outcome": "Injected",
                "instrumentation": "test/instrumentation-test-order", "reason": "injected", "notes": [],
                "field": field("spec.template."), "remedy": null,
                "warnings": [WARNING]}], "mistakes": []}),
            json!({"kind": "Pod", "namespace": "shop", "name": "p", "findings": [{
                "container": null, "language": "java", "outcome": "NoInstrumentation",
                "instrumentation": null, "reason": sentence, "notes": [],
                "field": field(""), "remedy": null, "warnings": []}], "mistakes": []}),
        ]
    );
}

#[test]
fn a_pod_that_cannot_be_read_says_so() {
    let odd = "apiVersion: v1\nkind: Pod\nmetadata: {name: odd}\nspec: {containers: none}\n";
    assert!(explain(&[], &[odd]).out.contains("\n  the pod cannot be read: "));
    assert!(values(&explain(&["-o", "json"], &[odd]))[0]["problem"].is_string());
}

#[test]
fn input_without_workloads_says_so() {
    assert_eq!(explain(&[], &[INSTRUMENTATION]).out, "The input contains no pods and no pod templates.\n");
}

#[test]
fn the_container_that_was_taken_is_said_where_helpers_are_skipped() {
    let two = pod("name: p").replace("containers:", "containers:\n    - {name: mesh, image: m:1}");
    let run = explain(&["--helper-containers", "other,mesh"], &[INSTRUMENTATION, &two]);
    let note = "  note on java in app: no container is named, so \"app\" was selected; known proxies and helpers are skipped \
        (mesh)";
    assert!(run.out.lines().any(|line| line == note), "{}", run.out);
    let taken = explain(&[], &[INSTRUMENTATION, &two]);
    assert!(taken.out.contains("\n  mesh       java      Injected  "), "{}", taken.out);
}

#[test]
fn a_pod_that_would_be_evicted_is_explained_by_the_size_of_the_agent() {
    let limits = "resources: {limits: {ephemeral-storage: 60Mi}}";
    let limited = pod("name: p").replace("image:", &format!("{limits}\n      image:"));
    assert!(limited.contains(limits), "{limited}");
    let sized = |size: &[&str]| explain(size, &[INSTRUMENTATION, &limited]).out;
    let close = sized(&[]);
    assert!(close.contains("the agents take 24Mi of the pod's 60Mi of ephemeral storage"), "{close}");
    let skipped = sized(&["--agent-size", "java=51Mi"]);
    assert!(skipped.contains("EphemeralStorage") && skipped.contains("is at least 61Mi"), "{skipped}");
}

#[test]
fn what_was_done_to_resources_is_said() {
    let documents = FIRST_CASE.to_owned();
    let run = succeed(&["explain", "-f", "-", "--init-resources=neutral"], &documents);
    let note = "  note on java in order: the resources of the init containers were adjusted so that the pod's requests and limits stay the same: no requests; no limits";
    assert!(run.out.lines().any(|line| line == note), "{}", run.out);
}

/// The output of `kubectl get nodes -o yaml`, with these kubelets.
fn nodes(kubelets: &[&str]) -> tempfile::NamedTempFile {
    let node = |(index, kubelet): (usize, &&str)| {
        let info = json!({"kubeletVersion": kubelet, "containerRuntimeVersion": "containerd://2.1.5"});
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{index}")}, "status": {"nodeInfo": info}})
    };
    let items: Vec<_> = kubelets.iter().enumerate().map(node).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items});
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), list.to_string()).expect("it can be written");
    file
}

#[test]
fn nodes_of_a_file_decide_what_auto_mounts() {
    for (kubelets, expected) in [
        (
            &["v1.36.1", "v1.37.0"][..],
            "the image of the agent is mounted as a volume, without init containers",
        ),
        (
            &["v1.36.1", "v1.35.2"],
            "init containers copy the agent, since on node \"n1\" the kubelet has version v1.35.2; image volumes need 1.36 or newer",
        ),
    ] {
        let file = nodes(kubelets);
        let file = file.path().to_str().expect("Unicode");
        let run = explain(&["--delivery", "auto", "--nodes", file], &[INSTRUMENTATION, &pod("name: p")]);
        let note = format!("  note on java in app: {expected}");
        assert!(run.out.lines().any(|line| line == note), "{}", run.out);
    }
    let unknown = explain(&["--delivery=auto"], &[INSTRUMENTATION, &pod("name: p")]);
    assert!(unknown.out.contains("the nodes are not known; see --watch-nodes"), "{}", unknown.out);
}

#[test]
fn a_pause_is_said_with_the_object_and_the_command_that_resumes() {
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default, annotations: {otel-webhook/paused: \"TRUE\"}}\n";
    let instrumentation =
        INSTRUMENTATION.replace("name: inst", "name: inst\n  annotations: {otel-webhook/paused: \"true\"}");
    assert_ne!(instrumentation, INSTRUMENTATION);
    let asking = pod("name: p");
    for (objects, by, target) in [
        ([INSTRUMENTATION, namespace, &asking], "Namespace default", "namespace default"),
        (
            [&*instrumentation, &asking, ""],
            "Instrumentation default/inst",
            "instrumentations.opentelemetry.io inst -n default",
        ),
    ] {
        let run = explain(&[], &objects);
        let expected = format!(
            "  -          java      Paused   default/inst     injection is paused by the annotation otel-webhook/paused of \
             {by}; to resume: kubectl annotate {target} otel-webhook/paused-"
        );
        assert!(run.out.contains(&expected), "{}", run.out);
        let injected = succeed(&["inject", "-f", "-"], &objects.join("---\n"));
        assert!(!injected.out.contains("initContainers"), "{}", injected.out);
    }
}

#[test]
fn with_exit_code_a_pod_that_is_not_injected_as_it_opts_in_fails() {
    let misspelt = pod("name: p").replace("inject-java", "inject-jva");
    let out = pod("name: p").replace("inject-java: \"true\"", "inject-java: \"false\"");
    for (documents, expected) in [
        (vec![INSTRUMENTATION, &pod("name: p")], 0),
        (vec![INSTRUMENTATION, &out], 0),
        (vec![&*pod("name: p")], 1),
        (vec![INSTRUMENTATION, &misspelt], 1),
    ] {
        let input = documents.join("---\n");
        let run = super::run(&["explain", "-f", "-", "--exit-code"], &input);
        assert_eq!(run.code, expected, "{}{}", run.out, run.err);
        assert_eq!(super::run(&["explain", "-f", "-"], &input).code, 0);
    }
}
