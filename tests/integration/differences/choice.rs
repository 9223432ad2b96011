//! Which pods, containers and Instrumentations are meant.

use otel_webhook::inject::language::LanguageSet;
use serde_json::{Value, json};

use crate::support::{Surroundings, asking, instrumentation, pod, with};

const JAVA: &str = "opentelemetry-auto-instrumentation-java";

fn namespace(annotations: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "annotations": annotations}})
}

fn two_containers() -> Value {
    json!({"containers": [{"name": "app", "image": "app:1"}, {"name": "worker", "image": "worker:1"}]})
}

#[test]
fn d4_the_variable_of_the_node_name_does_not_mark_a_pod() {
    let own = json!({"env": [{"name": "OTEL_RESOURCE_ATTRIBUTES_NODE_NAME", "value": "n"}]});
    let injected = with(json!({})).inject(&asking(&["java"], own));
    assert_eq!(injected.codes(), ["java/app: Injected"]);
}

#[test]
fn d4_some_of_the_variables_do_not_mark_a_pod_either() {
    let field =
        |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let own = json!([
        field("OTEL_RESOURCE_ATTRIBUTES_POD_NAME", "metadata.name"),
        field("OTEL_RESOURCE_ATTRIBUTES_NODE_NAME", "spec.nodeName"),
        {"name": "OTEL_SERVICE_NAME", "value": "app"},
        {"name": "OTEL_RESOURCE_ATTRIBUTES", "value": "k8s.container.name=app,k8s.pod.name=p,k8s.namespace.name=n"},
    ]);
    let injected = with(json!({})).inject(&asking(&["java"], json!({"env": own})));
    assert_eq!(injected.codes(), ["java/app: Injected"]);
}

#[test]
fn d29_a_pod_that_has_the_variables_counts_as_injected() {
    let around = with(json!({}));
    let mut after = around.inject(&asking(&["sdk"], json!({}))).pod;
    after["metadata"]["annotations"]["instrumentation.opentelemetry.io/inject-java"] = json!("true");
    let again = around.inject(&after);
    assert_eq!(again.codes(), ["java: AlreadyInjected", "sdk: AlreadyInjected"]);
    assert!(again.is_unchanged());
    let reason = again.outcome.findings[0].reason.to_string();
    let sentence = "the pod is injected already: its container \"app\" has the variables that injection adds";
    assert_eq!(reason, sentence);
}

/// What the API server, a controller and the owner of the Instrumentation may have changed in between.
#[test]
fn d29_an_injected_pod_that_comes_back_stays_as_it_is() {
    for languages in [&["sdk"][..], &["java"], &["go"], &["nodejs", "sdk"]] {
        for spec in [json!({}), json!({"containers": [{"name": "app", "image": "a"}], "nodeName": "n"})] {
            let mut before = asking(languages, json!({}));
            if let Some(spec) = spec.as_object() {
                before["spec"].as_object_mut().expect("an object").extend(spec.clone());
            }
            let mut after = with(json!({})).inject(&before).pod;
            assert_ne!(after, before, "{languages:?}");
            after["metadata"]["name"] = json!("web-7");
            after["metadata"]["uid"] = json!("6d1760ab-b09b-43e0-a9ad-a4fceaad36bb");
            after["metadata"]["ownerReferences"] =
                json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "u"}]);
            after["metadata"]["labels"] = json!({"app.kubernetes.io/version": "2"});
            after["metadata"]["annotations"]["resource.opentelemetry.io/service.version"] = json!("3");
            after["spec"]["nodeName"] = json!("node-1");
            let changed = json!({
                "env": [{"name": "NEW", "value": "1"}],
                "exporter": {"endpoint": "http://other:4318", "tls": {"secretName": "s", "ca_file": "ca"}},
                "propagators": ["b3"],
                "resource": {"addK8sUIDAttributes": true, "resourceAttributes": {"team": "new"}},
                "defaults": {"useLabelsForResourceAttributes": true},
            });
            let again = with(changed).inject(&after);
            assert!(again.is_unchanged(), "{languages:?}: {:?}", again.outcome.patch);
            assert!(
                again.codes().iter().all(|code| code.ends_with(": AlreadyInjected")),
                "{:?}",
                again.codes()
            );
        }
    }
}

#[test]
fn d5_go_goes_into_no_container_but_the_one_that_is_named_first() {
    let exe = ("otel-go-auto-target-exe", "/app");
    for (list, codes) in [
        (("go-container-names", "ghost"), vec!["go/ghost: ContainerNotFound"]),
        (("container-names", "ghost"), vec!["go/ghost: ContainerNotFound"]),
        (("container-names", "ghost,worker"), vec!["go/ghost: ContainerNotFound"]),
        (("container-names", "worker,ghost"), vec!["go/ghost: ContainerNotFound", "go/worker: Injected"]),
    ] {
        let injected = with(json!({})).inject(&pod(&[("inject-go", "true"), exe, list], two_containers()));
        assert_eq!(injected.codes(), codes, "{list:?}");
        assert_eq!(injected.is_unchanged(), codes.len() == 1, "{list:?}");
        let warning = &injected.outcome.warnings()[0];
        assert!(warning.contains("no container \"ghost\" in the pod; there are: app, worker"), "{warning}");
    }
}

#[test]
fn d5_an_unknown_container_is_named_and_the_others_go_on() {
    let asks = [("inject-java", "true"), ("java-container-names", "app, ghost")];
    let injected = with(json!({})).inject(&pod(&asks, two_containers()));
    assert_eq!(injected.codes(), ["java/ghost: ContainerNotFound", "java/app: Injected"]);
    let warnings = injected.outcome.warnings();
    assert!(warnings[0].contains("app, worker"), "{warnings:?}");
}

#[test]
fn d8_what_only_the_namespace_asks_for_steps_back() {
    let asked = json!({"instrumentation.opentelemetry.io/inject-java": "true"});
    let around = Surroundings::new([namespace(asked), instrumentation("inst", json!({}))]);
    let injected = around.inject(&pod(&[("inject-nodejs", "true")], two_containers()));
    assert_eq!(injected.codes(), ["java: NamespaceSteppedBack", "nodejs/app: Injected"]);
    assert_eq!(injected.outcome.warnings().len(), 1);
}

#[test]
fn d8_a_list_that_the_namespace_gives_its_own_language_is_no_obstacle() {
    let list = json!({
        "instrumentation.opentelemetry.io/inject-java": "true",
        "instrumentation.opentelemetry.io/java-container-names": "app",
    });
    let around = Surroundings::new([namespace(list), instrumentation("inst", json!({}))]);
    let injected = around.inject(&pod(&[("inject-nodejs", "true")], two_containers()));
    assert_eq!(injected.codes(), ["java: NamespaceSteppedBack", "nodejs/app: Injected"]);
    let asks = [("inject-nodejs", "true"), ("nodejs-container-names", "worker")];
    let injected = around.inject(&pod(&asks, two_containers()));
    assert_eq!(injected.codes(), ["java/app: Injected", "nodejs/worker: Injected"]);
}

#[test]
fn a_collector_that_knows_its_pod_is_not_taken_for_the_application() {
    let pod_name = json!({"name": "OTEL_RESOURCE_ATTRIBUTES_POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}});
    let attributes = json!({"name": "OTEL_RESOURCE_ATTRIBUTES", "value": "k8s.pod.name=$(OTEL_RESOURCE_ATTRIBUTES_POD_NAME)"});
    let collector = json!({"name": "otc-container", "image": "collector:1", "env": [pod_name, attributes]});
    let spec = json!({"containers": [{"name": "app", "image": "app:1"}, collector]});
    let injected = with(json!({})).inject(&pod(&[("inject-sdk", "true")], spec));
    assert_eq!(injected.codes(), ["sdk/app: Injected"]);
    assert_eq!(injected.env("otc-container").len(), 2);
}

#[test]
fn d9_selector_and_priority_choose_among_several() {
    let fits = json!({"selector": {"matchLabels": {"app": "web"}}});
    let other = json!({"selector": {"matchLabels": {"app": "db"}}, "priority": 9});
    let chosen = |specs: &[(&str, Value)]| {
        let around = Surroundings::new(specs.iter().map(|(name, spec)| instrumentation(name, spec.clone())));
        let mut pod = asking(&["sdk"], json!({}));
        pod["metadata"]["labels"] = json!({"app": "web"});
        let injected = around.inject(&pod);
        let finding = &injected.outcome.findings[0];
        finding.instrumentation.as_ref().map_or_else(|| finding.reason.to_string(), ToString::to_string)
    };
    let selects = [("a", json!({"priority": 5})), ("b", fits), ("c", other)];
    assert_eq!(chosen(&selects), "shop/b");
    assert_eq!(chosen(&[("a", json!({})), ("b", json!({"priority": 1}))]), "shop/b");
    let ambiguous = chosen(&[("a", json!({})), ("b", json!({}))]);
    assert!(ambiguous.contains("fit equally: a, b"), "{ambiguous}");
}

#[test]
fn d18_extensions_and_nginx_alone_count_as_injected() {
    for name in ["opentelemetry-auto-instrumentation-extension-0", "otel-agent-attach-nginx"] {
        let mut pod = asking(&["java", "sdk"], json!({}));
        pod["spec"]["initContainers"] = json!([{"name": name, "image": "i"}]);
        let injected = with(json!({})).inject(&pod);
        assert_eq!(injected.codes(), ["java: AlreadyInjected", "sdk: AlreadyInjected"]);
        assert!(injected.is_unchanged());
    }
}

#[test]
fn d21_each_language_stands_for_itself() {
    let mut pod = asking(&["java", "python"], json!({}));
    pod["metadata"]["annotations"]["instrumentation.opentelemetry.io/inject-python"] = json!("missing");
    pod["metadata"]["annotations"]["instrumentation.opentelemetry.io/go-container-names"] = json!("a,a");
    let mut around = with(json!({}));
    assert_eq!(around.inject(&pod).codes(), ["python: InstrumentationNotFound", "java/app: Injected"]);
    around.settings.languages = LanguageSet::parse("java").expect("a language");
    assert_eq!(around.inject(&pod).codes(), ["python: LanguageDisabled", "java/app: Injected"]);
}

#[test]
fn d24_the_default_container_is_meant_where_none_is_named() {
    for (default, expected) in [("worker", "worker"), ("ghost", "app")] {
        let mut pod = pod(&[("inject-java", "true")], two_containers());
        pod["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"] = json!(default);
        let injected = with(json!({})).inject(&pod);
        assert_eq!(injected.codes(), [format!("java/{expected}: Injected")]);
    }
}

#[test]
fn d25_a_pod_for_windows_is_left_out() {
    let by_os = json!({"os": {"name": "windows"}});
    let by_node = json!({"nodeSelector": {"kubernetes.io/os": "windows"}});
    for spec in [by_os, by_node] {
        let mut pod = asking(&["dotnet"], json!({}));
        pod["spec"].as_object_mut().expect("an object").extend(spec.as_object().expect("an object").clone());
        let injected = with(json!({})).inject(&pod);
        assert_eq!(injected.codes(), ["dotnet: WindowsPod"]);
        assert!(injected.is_unchanged());
    }
}

#[test]
fn d28_a_recorded_default_image_is_not_pinned() {
    let image_of = |recorded: &str| {
        let mut inst = instrumentation("inst", json!({"java": {"image": "example.com/java:1"}}));
        let annotation = "instrumentation.opentelemetry.io/default-auto-instrumentation-java-image";
        inst["metadata"]["annotations"] = json!({annotation: recorded});
        let mut around = Surroundings::new([inst]);
        around.images.registry = Some("mirror.example.com".to_owned());
        let injected = around.inject(&asking(&["java"], json!({})));
        injected.container(JAVA).expect("injected")["image"].as_str().expect("an image").to_owned()
    };
    assert_eq!(image_of("example.com/java:0"), "example.com/java:1");
    assert!(image_of("example.com/java:1").starts_with("mirror.example.com/open-telemetry/"));
}

#[test]
fn d18_a_container_put_first_by_another_webhook_changes_nothing() {
    for language in ["java", "sdk"] {
        let around = with(json!({}));
        let mut after = around.inject(&asking(&[language], json!({}))).pod;
        let proxy = json!({"name": "proxy", "image": "proxy:1"});
        after["spec"]["containers"].as_array_mut().expect("containers").insert(0, proxy);
        let again = around.inject(&after);
        assert!(again.outcome.patch.is_none(), "{language}: {:?}", again.outcome.patch);
    }
}
