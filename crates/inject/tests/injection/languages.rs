//! What single languages do where the operator has nothing to compare with.

use std::collections::BTreeSet;

use otel_webhook_api::{defaults, validation::validate};
use otel_webhook_inject::{
    PrivilegedInit,
    language::{LANGUAGES, LanguageSet},
};
use otel_webhook_testkit::{
    objects::{asking, instrumentation, pod},
    surroundings::{Surroundings, with},
};
use serde_json::{Value, json};

const SIDECAR: &str = "opentelemetry-auto-instrumentation";

#[test]
fn the_default_languages_are_those_of_the_operator_and_agents_of_instrumentations() {
    assert_eq!(LanguageSet::default().names(), "java,nodejs,python,dotnet,apache-httpd,sdk,agent");
}

#[test]
fn go_stays_out_where_the_namespace_refuses_privileges() {
    for (level, outcome) in
        [("baseline", "PodSecurity"), ("restricted", "PodSecurity"), ("privileged", "Injected")]
    {
        let labels = json!({"pod-security.kubernetes.io/enforce": level});
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}});
        let around = Surroundings::new([namespace, instrumentation("inst", json!({}))]);
        let injected = around.inject(&asking(&["go", "sdk"], json!({})));
        assert_eq!(injected.codes(), [format!("go/app: {outcome}"), "sdk/app: Injected".to_owned()]);
        assert_eq!(injected.container(SIDECAR).is_some(), outcome == "Injected");
    }
}

#[test]
fn a_security_context_that_the_namespace_refuses_is_given_to_no_init_container() {
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}});
    let lax = json!({"initContainerSecurityContext": {"runAsUser": 1000}});
    for language in ["java", "apache-httpd"] {
        let around = Surroundings::new([namespace.clone(), instrumentation("inst", lax.clone())]);
        let injected = around.inject(&asking(&[language], json!({})));
        assert_eq!(injected.codes(), [format!("{language}: PodSecurity")]);
        let warnings = injected.outcome.warnings();
        let words = "rejects init containers with spec.initContainerSecurityContext of the Instrumentation \"shop/inst\": \
            see allowPrivilegeEscalation";
        assert!(warnings[0].contains(words), "{warnings:?}");
        assert!(injected.is_unchanged());
        let around = Surroundings::new([namespace.clone(), instrumentation("inst", json!({}))]);
        assert_eq!(
            around.inject(&asking(&[language], json!({}))).codes(),
            [format!("{language}/app: Injected")]
        );
    }
}

#[test]
fn privileged_init_containers_are_skipped_if_the_installation_denies_them() {
    for (context, field) in [
        (json!({"privileged": true}), "privileged: true"),
        (json!({"runAsUser": 0}), "runAsUser: 0"),
        (json!({"allowPrivilegeEscalation": true}), "allowPrivilegeEscalation: true"),
        (json!({"capabilities": {"add": ["SYS_ADMIN", "CHOWN"]}}), "capabilities.add: SYS_ADMIN, CHOWN"),
    ] {
        let spec = json!({"initContainerSecurityContext": context});
        let mut around = with(spec);
        for language in ["java", "nginx"] {
            let pod = asking(&[language, "sdk"], json!({}));
            around.settings.privileged_init = PrivilegedInit::Allow;
            assert_eq!(around.inject(&pod).codes()[0], format!("{language}/app: Injected"));
            around.settings.privileged_init = PrivilegedInit::Deny;
            let injected = around.inject(&pod);
            assert_eq!(
                injected.codes(),
                [format!("{language}: PrivilegedInitContainer"), "sdk/app: Injected".to_owned()]
            );
            let sentence = format!(
                "{language}: Instrumentation \"shop/inst\" sets spec.initContainerSecurityContext.{field}, which \
                 --init-containers-privileged=deny does not allow; remove it from the Instrumentation, or use another one"
            );
            assert_eq!(injected.outcome.warnings(), [sentence]);
        }
        // Its sidecar is privileged by nature.
        assert_eq!(around.inject(&asking(&["go"], json!({}))).codes(), ["go/app: Injected"]);
    }
    // The context of the application is its author's own.
    let own = json!({"securityContext": {"privileged": true, "runAsUser": 0}});
    for context in [
        json!(null),
        json!({"runAsUser": 1000, "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}),
    ] {
        let mut around = with(json!({"initContainerSecurityContext": context}));
        around.settings.privileged_init = PrivilegedInit::Deny;
        assert_eq!(around.inject(&asking(&["java"], own.clone())).codes(), ["java/app: Injected"]);
    }
}

#[test]
fn the_copy_of_a_web_server_mounts_nothing_on_the_node_unless_it_is_privileged() {
    let mounts = json!([{"name": "data", "mountPath": "/data", "mountPropagation": "Bidirectional"},
        {"name": "more", "mountPath": "/more", "mountPropagation": "HostToContainer"}]);
    let own = json!({"volumeMounts": mounts, "securityContext": {"privileged": true}});
    for (spec, expected) in [
        (json!({}), json!(["Bidirectional", "HostToContainer"])),
        (json!({"initContainerSecurityContext": {"runAsUser": 101}}), json!([null, "HostToContainer"])),
    ] {
        let injected = with(spec).inject(&asking(&["nginx"], own.clone()));
        let clone = injected.container("otel-agent-source-container-clone").expect("injected");
        let found: Vec<_> = [0, 1].map(|at| clone["volumeMounts"][at]["mountPropagation"].clone()).into();
        assert_eq!(json!(found), expected);
        assert_eq!(clone["volumeMounts"][0]["mountPath"], "/data");
        assert_eq!(injected.container("app").expect("it")["volumeMounts"][0], mounts[0]);
    }
}

#[test]
fn the_stamp_stays_out_where_annotations_have_no_room_left() {
    let mut around = with(json!({}));
    around.settings.stamp = true;
    around.settings.safe_to_evict = true;
    for (length, has_stamp) in [(200_000, true), (261_900, false)] {
        let mut pod = asking(&["java"], json!({}));
        pod["metadata"]["annotations"]["own"] = "a".repeat(length).into();
        let injected = around.inject(&pod);
        assert_eq!(injected.codes(), ["java/app: Injected"]);
        let annotations = injected.pod["metadata"]["annotations"].as_object().expect("some");
        assert_eq!(annotations.contains_key("otel-webhook/status"), has_stamp);
        let size: usize =
            annotations.iter().map(|(key, value)| key.len() + value.as_str().expect("text").len()).sum();
        assert!(size <= 256 * 1024, "{size}");
        assert_eq!(injected.pod["metadata"]["labels"]["otel-webhook/injected"], "true");
    }
}

#[test]
fn go_says_why_it_stays_out() {
    let containers = json!([{"name": "app", "image": "app:1"}, {"name": "worker", "image": "worker:1"}]);
    let init = json!([{"name": "init", "image": "init:1"}]);
    let (exe, private) = (("otel-go-auto-target-exe", "/app"), json!({"shareProcessNamespace": false}));
    for (annotations, more, codes) in [
        (vec![], json!({}), vec!["go/app: TargetExecutableMissing"]),
        (vec![exe], private, vec!["go/app: ProcessNamespaceNotShared"]),
        (vec![exe, ("go-container-names", "app,worker")], json!({}), vec!["go/app: SeveralContainers"]),
        (vec![exe, ("go-container-names", "ghost")], json!({}), vec!["go/ghost: ContainerNotFound"]),
        (vec![exe, ("container-names", "init,worker")], json!({}), vec!["go/init: InitContainer"]),
    ] {
        let mut spec = json!({"containers": containers, "initContainers": init});
        spec.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let asks = [vec![("inject-go", "true")], annotations].concat();
        let injected = with(json!({})).inject(&pod(&asks, spec));
        assert_eq!(injected.codes(), codes);
        assert!(injected.is_unchanged());
    }
}

#[test]
fn go_takes_the_target_from_the_pod_then_the_language_then_the_common_variables() {
    let exe = |value: &str| json!([{"name": "OTEL_GO_AUTO_TARGET_EXE", "value": value}]);
    let spec = json!({"env": exe("/common"), "go": {"env": exe("/language")}});
    let containers = json!({"containers": [{"name": "app", "image": "app:1"}]});
    let asks = [("inject-go", "true"), ("otel-go-auto-target-exe", "/pod")];
    for (asks, spec, expected) in [
        (&asks[..], spec.clone(), "/pod"),
        (&asks[..1], spec, "/language"),
        (&asks[..1], json!({"env": exe("/common")}), "/common"),
    ] {
        let injected = with(spec).inject(&pod(asks, containers.clone()));
        assert_eq!(injected.value(SIDECAR, "OTEL_GO_AUTO_TARGET_EXE"), Some(expected));
    }
}

#[test]
fn a_name_listed_twice_leaves_every_language_out() {
    let containers =
        json!({"containers": [{"name": "app", "image": "app:1"}, {"name": "db", "image": "db:1"}]});
    let asks = [
        ("inject-java", "true"),
        ("java-container-names", "app,app"),
        ("inject-sdk", "true"),
        ("sdk-container-names", "db"),
    ];
    let injected = with(json!({})).inject(&pod(&asks, containers));
    assert_eq!(injected.codes(), ["java: ContainerNamedTwice", "sdk: ContainerNamedTwice"]);
    assert!(injected.is_unchanged());
}

#[test]
fn a_web_servers_clone_has_nothing_of_other_languages() {
    let injected = with(json!({})).inject(&asking(&["nodejs", "apache-httpd"], json!({})));
    let clone = injected.container("otel-agent-source-container-clone").expect("injected");
    assert!(clone.get("env").is_none(), "{clone}");
    assert_eq!(clone["volumeMounts"].as_array().map(Vec::len), Some(1));
}

#[test]
fn validation_warns_of_every_variable_that_a_language_extends() {
    for variable in LANGUAGES.iter().flat_map(|language| language.extended) {
        let spec = json!({"env": [{"name": variable, "value": "x"}]});
        let verdict = validate(&instrumentation("inst", spec), None);
        assert!(
            verdict.warnings.iter().any(|warning| warning.kind == "extended-variable"),
            "{variable} is missing in EXTENDED of crates/api/src/validation/variables.rs"
        );
    }
}

#[test]
fn the_schema_of_the_chart_has_every_language() {
    let schema = include_str!("../../../../charts/otel-webhook/values.schema.json");
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    let injection = &schema["properties"]["injection"]["properties"];
    let keys = |value: &str| -> BTreeSet<String> {
        injection[value]["properties"].as_object().expect("an object").keys().cloned().collect()
    };
    let names = |list: Vec<&str>| -> BTreeSet<String> { list.into_iter().map(str::to_owned).collect() };
    let enabled: BTreeSet<String> =
        serde_json::from_value(injection["languages"]["items"]["enum"].clone()).expect("a list of names");
    let all = LANGUAGES.iter().map(|language| language.name).chain(["all"]).collect();
    let with_image = defaults::LANGUAGES.iter().map(|language| language.language).collect();
    let copied = defaults::LANGUAGES.iter().filter(|language| !language.size.is_zero());
    let with_size = copied.map(|language| language.language).chain(["extension"]).collect();
    for (value, found, expected) in [
        ("languages", enabled, names(all)),
        ("images", keys("images"), names(with_image)),
        ("agentSizes", keys("agentSizes"), names(with_size)),
    ] {
        assert_eq!(found, expected, "injection.{value} in charts/otel-webhook/values.schema.json");
    }
}

#[test]
fn the_documents_name_the_annotations_of_every_language() {
    let page = include_str!("../../../../docs/annotations.md");
    for language in LANGUAGES {
        for annotation in [language.inject, language.containers].iter().chain(language.annotations) {
            assert!(
                page.contains(&format!("`{annotation}`")),
                "docs/annotations.md does not have {annotation}"
            );
        }
    }
}
