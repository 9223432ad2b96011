//! What `inject` makes of pods and templates.

use serde_json::{Value, json};

use super::{INSTRUMENTATION, RECORDED, inject, pod, succeed, values, with_recorded};

const FIRST_CASE: &str = include_str!("../../data/first-case.yaml");

/// The variable of a container.
fn variable<'v>(container: &'v Value, name: &str) -> &'v Value {
    let list = container["env"].as_array().expect("variables");
    let found = list.iter().find(|variable| variable["name"] == name);
    &found.unwrap_or_else(|| panic!("no {name} in {container}"))["value"]
}

/// What an attribute of the resource is set to.
fn attribute(container: &Value, key: &str) -> Option<String> {
    let all = variable(container, "OTEL_RESOURCE_ATTRIBUTES").as_str().expect("text");
    all.split(',').find_map(|one| Some(one.strip_prefix(key)?.strip_prefix('=')?.to_owned()))
}

#[test]
fn the_first_case_gets_its_agent_and_keeps_everything_else() {
    let run = inject(&["-o", "json"], &[FIRST_CASE]);
    let said = "Deployment/order: java in order: Injected by test/instrumentation-test-order
Deployment/order: java in order: warning: OTEL_EXPORTER_OTLP_ENDPOINT has port 4317, but this agent sends \
http/protobuf by default; set port 4318, or OTEL_EXPORTER_OTLP_PROTOCOL to grpc\n";
    assert_eq!(run.err, said);
    let deployment = values(&run).pop().expect("the Deployment");
    let spec = &deployment["spec"]["template"]["spec"];
    let init: Vec<_> = spec["initContainers"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(
        init,
        ["opentelemetry-auto-instrumentation-java", "opentelemetry-auto-instrumentation-extension-0"]
    );
    assert_eq!(spec["volumes"][0]["name"], "opentelemetry-auto-instrumentation-java");
    let container = &spec["containers"][0];
    let mount = "/otel-auto-instrumentation-java-order";
    assert_eq!(container["volumeMounts"][0]["mountPath"], mount);
    assert_eq!(
        *variable(container, "JAVA_TOOL_OPTIONS"),
        format!(" -javaagent:{mount}/javaagent.jar -Dotel.javaagent.extensions={mount}/extensions")
    );
    assert_eq!(*variable(container, "OTEL_SERVICE_NAME"), "order");
    assert_eq!(attribute(container, "k8s.deployment.name").as_deref(), Some("order"));
    assert_eq!(attribute(container, "k8s.replicaset.name"), None);
}

#[test]
fn an_image_that_is_kept_or_replaced_is_said() {
    for (image, said) in RECORDED {
        let run = inject(&["-o", "json"], &[&with_recorded(image), &pod("name: p")]);
        let expected =
            format!("Pod/p: java in app: Injected by default/inst\nPod/p: java in app: note: {said}\n");
        assert_eq!(run.err, expected);
    }
}

#[test]
fn the_yaml_of_the_first_case_comes_out_with_lines_added_and_none_changed() {
    let run = succeed(&["inject", "-f", "-"], FIRST_CASE);
    let mut came = FIRST_CASE.lines().peekable();
    let added = run.out.lines().filter(|line| came.next_if_eq(line).is_none()).count();
    assert_eq!(came.next(), None, "{}", run.out);
    assert!(added > 50, "{added} lines were added");
    assert!(run.out.contains("otel-webhook/injected: \"true\""));
}

#[test]
fn injecting_the_output_again_changes_nothing() {
    let once = succeed(&["inject", "-f", "-"], FIRST_CASE);
    let twice = succeed(&["inject", "-f", "-"], &once.out);
    assert_eq!(once.out, twice.out);
    assert!(twice.err.starts_with("Deployment/order: java: AlreadyInjected: "), "{}", twice.err);
}

fn workload(kind: &str, api_version: &str, metadata: &str, spec: &Value) -> String {
    let metadata: Value = serde_json::from_str(metadata).expect("JSON");
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}).to_string() + "\n"
}

fn template() -> Value {
    json!({
        "metadata": {"annotations": {"instrumentation.opentelemetry.io/inject-java": "true"}},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]},
    })
}

/// The attributes that tell the owners, and the service's name.
fn owners(container: &Value) -> Vec<(String, String)> {
    let all = variable(container, "OTEL_RESOURCE_ATTRIBUTES").as_str().expect("text").to_owned();
    let kinds = ["replicaset", "deployment", "statefulset", "daemonset", "job", "cronjob"];
    let owners = all.split(',').filter_map(|one| {
        let (key, value) = one.split_once('=')?;
        let kind = key.strip_prefix("k8s.")?;
        kinds.contains(&kind.split('.').next()?).then(|| (kind.to_owned(), value.to_owned()))
    });
    let name = variable(container, "OTEL_SERVICE_NAME").as_str().expect("text").to_owned();
    owners.chain([("service".to_owned(), name)]).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_owner_of_a_template_is_the_workload_itself() {
    let spec = json!({"template": template()});
    let cron = json!({"jobTemplate": {"spec": spec}});
    let owned =
        r#"{"name": "a", "ownerReferences": [{"kind": "Deployment", "name": "d", "controller": true}]}"#;
    let by_cron =
        r#"{"name": "a", "ownerReferences": [{"kind": "CronJob", "name": "c", "controller": true}]}"#;
    let plain = r#"{"name": "a"}"#;
    let at = ["/spec/template", "/spec/jobTemplate/spec/template"];
    for (kind, api, metadata, spec, path, expected) in [
        ("Deployment", "apps/v1", plain, &spec, at[0], &[("deployment.name", "a"), ("service", "a")][..]),
        ("StatefulSet", "apps/v1", plain, &spec, at[0], &[("statefulset.name", "a"), ("service", "a")]),
        ("DaemonSet", "apps/v1", plain, &spec, at[0], &[("daemonset.name", "a"), ("service", "a")]),
        ("ReplicaSet", "apps/v1", plain, &spec, at[0], &[("replicaset.name", "a"), ("service", "a")]),
        (
            "ReplicaSet",
            "apps/v1",
            owned,
            &spec,
            at[0],
            &[("deployment.name", "d"), ("replicaset.name", "a"), ("service", "d")],
        ),
        ("Job", "batch/v1", plain, &spec, at[0], &[("job.name", "a"), ("service", "a")]),
        (
            "Job",
            "batch/v1",
            by_cron,
            &spec,
            at[0],
            &[("cronjob.name", "c"), ("job.name", "a"), ("service", "c")],
        ),
        ("CronJob", "batch/v1", plain, &cron, at[1], &[("cronjob.name", "a"), ("service", "a")]),
    ] {
        let run = inject(&["-o", "json"], &[INSTRUMENTATION, &workload(kind, api, metadata, spec)]);
        let after = values(&run).pop().expect("the workload");
        let container = after.pointer(path).expect("a template")["spec"]["containers"][0].clone();
        assert_eq!(owners(&container), pairs(expected), "{kind} {metadata}");
        let references = |value: &Value| value.pointer(path).unwrap()["metadata"]["ownerReferences"].clone();
        assert_eq!(references(&after), Value::Null, "the owner is not written into the template");
    }
}

#[test]
fn owners_are_found_anywhere_in_the_stream_and_under_source() {
    let owned = "name: p\n  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j, controller: true}]";
    let job = "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"j\",\"ownerReferences\":\
        [{\"kind\":\"CronJob\",\"name\":\"c\",\"controller\":true}]}}\n";
    let expected = pairs(&[("cronjob.name", "c"), ("job.name", "j"), ("service", "c")]);

    let run = inject(&["-o", "json"], &[&pod(owned), job, INSTRUMENTATION]);
    assert_eq!(owners(&values(&run)[0]["spec"]["containers"][0]), expected);

    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("job.json"), job).unwrap();
    std::fs::write(dir.path().join("inst.yaml"), INSTRUMENTATION).unwrap();
    let source = dir.path().to_str().expect("UTF-8");
    let run = inject(&["-o", "json", "--source", source], &[&pod(owned)]);
    assert_eq!(owners(&values(&run)[0]["spec"]["containers"][0]), expected);
}

#[test]
fn the_namespace_of_the_flag_counts_for_documents_without_one_and_is_never_written() {
    let asks = pod("name: p");
    let run = inject(&["-n", "shop", "-o", "json"], &[&asks, INSTRUMENTATION]);
    assert_eq!(run.err, "Pod/p: java in app: Injected by shop/inst\n");
    let after = values(&run);
    assert!(after.iter().all(|document| document["metadata"]["namespace"].is_null()), "{}", run.out);
    assert_eq!(attribute(&after[0]["spec"]["containers"][0], "k8s.namespace.name").as_deref(), Some("shop"));
    // What a document says itself comes first.
    let run = inject(&["-n", "shop"], &[&pod("name: p\n  namespace: other"), INSTRUMENTATION]);
    assert!(
        run.err.starts_with(
            "Pod/p: java: NoInstrumentation: there is no Instrumentation in namespace \"other\""
        )
    );
}

#[test]
fn a_template_without_metadata_is_injected_and_stamped() {
    let mut bare = template();
    bare.as_object_mut().unwrap().remove("metadata");
    let namespace = "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"default\",\
        \"annotations\":{\"instrumentation.opentelemetry.io/inject-java\":\"inst\"}}}\n";
    for metadata in [None, Some(Value::Null), Some(json!({}))] {
        let mut template = bare.clone();
        if let Some(metadata) = metadata {
            template["metadata"] = metadata;
        }
        let deployment =
            workload("Deployment", "apps/v1", r#"{"name": "a"}"#, &json!({"template": template}));
        let documents = [INSTRUMENTATION, namespace, &deployment].join("---\n");
        let run = succeed(&["inject", "-f", "-", "-o", "json"], &documents);
        let template = &values(&run)[2]["spec"]["template"];
        assert_eq!(template["metadata"]["labels"]["otel-webhook/injected"], "true");
        assert!(template["metadata"]["annotations"]["otel-webhook/status"].is_string());
        let run = inject(&["-o", "json"], &[&documents]);
        let metadata = values(&run)[2]["spec"]["template"]["metadata"].clone();
        assert!(metadata.as_object().is_none_or(serde_json::Map::is_empty), "{metadata}");
    }
}

#[test]
fn the_items_of_lists_are_injected_and_the_others_stay() {
    let list = json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": null},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"template": template()}},
        {"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": template()["metadata"], "spec": template()["spec"]}]},
        {"apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation", "metadata": {"name": "inst"}, "spec": {}},
    ]});
    let run = inject(&["-o", "json"], &[&list.to_string()]);
    let after = &values(&run)[0];
    assert_eq!(after["items"][0], list["items"][0]);
    assert_eq!(after["items"][3], list["items"][3]);
    let pod = &after["items"][2]["items"][0];
    assert!(pod["kind"].is_null());
    for spec in [&after["items"][1]["spec"]["template"]["spec"], &pod["spec"]] {
        assert_eq!(spec["initContainers"][0]["name"], "opentelemetry-auto-instrumentation-java");
    }
    assert_eq!(run.err.lines().count(), 2, "{}", run.err);
}

#[test]
fn a_pod_that_the_api_server_would_refuse_stays_as_it_is() {
    let odd = "apiVersion: v1\nkind: Pod\nmetadata: {name: odd}\nspec: {containers: none}\n";
    let run = inject(&[], &[odd]);
    assert_eq!(run.out, odd);
    assert!(run.err.starts_with("Pod/odd: not injected, since the pod cannot be read: "), "{}", run.err);
}

#[test]
fn the_diff_shows_the_injection_alone() {
    let run = succeed(&["inject", "-f", "-", "-o", "diff"], FIRST_CASE);
    assert!(run.out.starts_with("--- Deployment/order\n+++ Deployment/order (injected)\n@@ "), "{}", run.out);
    assert!(run.out.lines().skip(2).all(|line| !line.starts_with('-')), "{}", run.out);
    assert!(run.out.contains("\n+            - name: JAVA_TOOL_OPTIONS\n"), "{}", run.out);
    assert!(!run.out.contains('\u{1b}'), "no colour in a pipe");
    assert_eq!(inject(&["-o", "diff"], &["apiVersion: v1\nkind: Pod\n"]).out, "");
}
