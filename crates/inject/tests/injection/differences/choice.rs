//! Which pods, containers and Instrumentations are meant.

use otel_webhook_inject::language::LanguageSet;
use otel_webhook_testkit::{
    objects::{asking, instrumentation, pod},
    surroundings::{Surroundings, with},
};
use serde_json::{Value, json};

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
    let sentence = "the pod is already injected: its container \"app\" has the variables that injection adds";
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
        assert!(warning.contains("container \"ghost\" not found; the pod has: app, worker"), "{warning}");
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
    assert_eq!(injected.codes(), ["java: NamespaceLanguageIgnored", "nodejs/app: Injected"]);
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
    assert_eq!(injected.codes(), ["java: NamespaceLanguageIgnored", "nodejs/app: Injected"]);
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
    assert!(ambiguous.contains("match this pod with the same priority: a, b"), "{ambiguous}");
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

/// The recorded default image of Java.
const RECORD: &str = "instrumentation.opentelemetry.io/default-auto-instrumentation-java-image";

/// An image of the built-in default's repository.
fn official(tag: &str) -> String {
    format!("ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-java:{tag}")
}

/// Java's image in a pod, and what is said of it.
fn image_of(around: &Surroundings) -> (String, Vec<String>) {
    let injected = around.inject(&asking(&["java"], json!({})));
    let image = injected.container(JAVA).expect("injected")["image"].as_str().expect("an image").to_owned();
    (image, injected.outcome.findings[0].notes.iter().map(ToString::to_string).collect())
}

/// Around an Instrumentation that was stored with this image and this record.
fn stored(image: &str, recorded: &str) -> Surroundings {
    let mut inst = instrumentation("inst", json!({"java": {"image": image}}));
    inst["metadata"]["annotations"] = json!({RECORD: recorded});
    Surroundings::new([inst])
}

#[test]
fn d28_a_recorded_default_image_of_the_built_in_repository_follows_the_default() {
    let old = official("2.29.0");
    let (image, notes) = image_of(&stored(&old, &old));
    assert_eq!(image, official("2.30.0"));
    let said = format!("the recorded default image \"{old}\" is replaced by the default \"{image}\"");
    assert_eq!(notes, [said]);
    for (image, recorded) in [(&*old, "example.com/java:0"), (&*official("1.33.6"), "")] {
        assert_eq!(image_of(&stored(image, recorded)), (image.to_owned(), Vec::new()), "it was chosen");
    }
    let present = official("2.30.0");
    assert_eq!(image_of(&stored(&present, &present)), (present, Vec::new()));
}

#[test]
fn d28_a_recorded_default_image_is_kept_where_following_would_harm() {
    for (image, reason) in [
        (
            "mirror.example.com:5000/java:2.29.0".to_owned(),
            "its repository is not that of the built-in default",
        ),
        (official("1.33.6"), "2.0.0 has breaking changes"),
        (official("2.31.0"), "the default is an older version"),
        (official("latest"), "their versions cannot be compared"),
        (official("2.29.0@sha256:00"), "it has a digest"),
    ] {
        let (used, notes) = image_of(&stored(&image, &image));
        assert_eq!(used, image);
        let start = format!("the recorded default image \"{image}\" is not replaced by the default");
        assert_eq!(notes.len(), 1, "{image}: {notes:?}");
        assert!(notes[0].starts_with(&start) && notes[0].contains(reason), "{image}: {notes:?}");
    }
}

#[test]
fn d28_an_administrators_default_is_followed_but_never_back_nor_across_a_blocked_version() {
    let with_registry = |image: &str| {
        let mut around = stored(image, image);
        around.images.registry = Some("mirror.example.com".to_owned());
        image_of(&around).0
    };
    let mirrored = "mirror.example.com/open-telemetry/opentelemetry-operator/autoinstrumentation-java";
    for image in [official("2.29.0"), "example.com/java:2.1".to_owned(), format!("{mirrored}:2.4.0")] {
        assert_eq!(with_registry(&image), format!("{mirrored}:2.30.0"), "{image}");
    }
    for image in [official("1.33.6"), format!("{mirrored}:1.33.6"), format!("{mirrored}:2.31.0")] {
        assert_eq!(with_registry(&image), image);
    }
    let older = |image: &str| {
        let mut around = stored(image, image);
        around.images.overrides = [("java".to_owned(), official("2.28.0"))].into();
        image_of(&around).0
    };
    assert_eq!(older(""), official("2.28.0"), "without an image there is nothing to keep");
    assert_eq!(older(&official("2.27.0")), official("2.28.0"));
    assert_eq!(older(&official("2.29.0")), official("2.29.0"), "never an older version");
    assert_eq!(
        older("mirror.example.com/java:2.27.0"),
        "mirror.example.com/java:2.27.0",
        "never the public one"
    );
}

#[test]
fn d28_a_language_that_the_status_names_is_not_upgraded() {
    let old = official("2.29.0");
    let used = |language: &str| {
        let mut around = stored(&old, &old);
        around.objects[0]["status"] =
            json!({"upgradeBlockedVersions": {language: "Automated upgrade blocked"}});
        image_of(&around)
    };
    let (image, notes) = used("java");
    assert_eq!(image, old);
    assert!(notes[0].contains("status.upgradeBlockedVersions names the language"), "{notes:?}");
    assert_eq!(used("python").0, official("2.30.0"));
}

#[test]
fn d28_the_stamp_says_what_became_of_the_image() {
    for (tag, said) in
        [("2.29.0", "is replaced by the default"), ("1.33.6", "is not replaced by the default")]
    {
        let image = official(tag);
        let mut around = stored(&image, &image);
        around.settings.stamp = true;
        let injected = around.inject(&asking(&["java"], json!({})));
        let status =
            injected.pod["metadata"]["annotations"]["otel-webhook/status"].as_str().expect("a stamp");
        let status: Value = serde_json::from_str(status).expect("JSON");
        let note = status[0]["notes"][0].as_str().expect("a note");
        assert!(note.contains(&image) && note.contains(said), "{note}");
    }
}

#[test]
fn d18_a_container_put_first_by_another_webhook_changes_nothing() {
    for language in ["java", "sdk"] {
        let around = with(json!({}));
        let mut after = around.inject(&asking(&[language], json!({}))).pod;
        let proxy = json!({"name": "proxy", "image": "proxy:1"});
        after["spec"]["containers"].as_array_mut().expect("containers").insert(0, proxy);
        let again = around.inject(&after);
        assert!(again.outcome.patch.is_empty(), "{language}: {:?}", again.outcome.patch);
    }
}
