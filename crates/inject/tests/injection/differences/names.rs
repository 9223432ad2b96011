//! Volumes, containers, mounts, and what is taken.

use otel_webhook_testkit::{
    objects::{asking, instrumentation, items, pod},
    surroundings::{Injected, Surroundings, with},
};
use serde_json::{Value, json};

const SIDECAR: &str = "opentelemetry-auto-instrumentation";
const CLONE: &str = "otel-agent-source-container-clone";

/// A volume, a container and a mount path of each language that has all three.
const NAMES: [(&str, &str, &str, &str); 6] = [
    ("java", "opentelemetry-auto-instrumentation-java", "", "/otel-auto-instrumentation-java-app"),
    ("nodejs", "opentelemetry-auto-instrumentation-nodejs", "", "/otel-auto-instrumentation-nodejs"),
    ("python", "opentelemetry-auto-instrumentation-python", "", "/otel-auto-instrumentation-python"),
    ("dotnet", "opentelemetry-auto-instrumentation-dotnet", "", "/otel-auto-instrumentation-dotnet"),
    ("apache-httpd", "otel-apache-agent", CLONE, "/opt/opentelemetry-webserver/agent"),
    ("nginx", "otel-nginx-conf-dir", "otel-agent-attach-nginx", "/opt/opentelemetry-webserver/source-conf"),
];

fn assert_taken(language: &str, pod: &Value, name: &str) {
    let injected = with(json!({})).inject(pod);
    assert!(injected.is_unchanged(), "{language}: {:?}", injected.codes());
    let reason = &injected.outcome.findings[0].reason;
    assert_eq!(reason.code(), "NameTaken", "{language}");
    assert!(reason.to_string().contains(name), "{reason}");
}

#[test]
fn d3_extensions_have_the_pull_policy() {
    let extension = json!([{"image": "e:1", "dir": "/e"}]);
    let spec = json!({"imagePullPolicy": "Always", "java": {"extensions": extension}});
    let injected = with(spec).inject(&asking(&["java"], json!({})));
    let container = injected.container("opentelemetry-auto-instrumentation-extension-0").expect("injected");
    assert_eq!(container["imagePullPolicy"], "Always");
}

#[test]
fn d11_fields_that_nobody_knows_stay() {
    let own = json!({
        "futureField": {"a": null},
        "env": [{"name": "A", "value": "a", "future": 1}],
        "volumeMounts": [{"name": "d", "mountPath": "/d", "future": [1]}],
    });
    let before = asking(&["nginx"], own.clone());
    let injected = with(json!({})).inject(&before);
    let app = injected.container("app").expect("the target");
    let clone = injected.container(CLONE).expect("injected");
    assert_eq!(app["futureField"], own["futureField"]);
    for container in [app, clone] {
        assert!(items(&container["env"]).any(|one| *one == own["env"][0]));
        assert_eq!(container["volumeMounts"][0], own["volumeMounts"][0]);
    }
}

#[test]
fn d15_the_first_that_is_injected_counts() {
    let optional = json!({"secretKeyRef": {"key": "k", "optional": true}});
    let case = |language: &str, list: &str, variable: &str| {
        let skipped = json!([{"name": variable, "valueFrom": optional}]);
        let spec = json!({"containers": [
            {"name": "app", "image": "app:1", "env": skipped, "securityContext": {"runAsUser": 1}},
            {"name": "worker", "image": "worker:1", "securityContext": {"runAsUser": 2}},
        ]});
        let asks = [(format!("inject-{language}"), "true"), (list.to_owned(), "app,worker")];
        with(json!({})).inject(&pod(&asks.each_ref().map(|(name, value)| (name.as_str(), *value)), spec))
    };
    let python = case("python", "python-container-names", "PYTHONPATH");
    let nginx = case("nginx", "inject-nginx-container-names", "LD_LIBRARY_PATH");
    for (injected, init) in [(&python, "opentelemetry-auto-instrumentation-python"), (&nginx, CLONE)] {
        assert_eq!(injected.container(init).expect("injected")["securityContext"], json!({"runAsUser": 2}));
        assert!(injected.container("app").expect("it stays").get("volumeMounts").is_none());
    }
    assert_eq!(nginx.container(CLONE).expect("injected")["image"], "worker:1");
    assert!(nginx.value("worker", "LD_LIBRARY_PATH").is_some());
}

#[test]
fn d17_a_name_that_is_taken_leaves_the_language_out() {
    for (language, volume, container, path) in NAMES {
        let mut pod = asking(&[language], json!({}));
        pod["spec"]["volumes"] = json!([{"name": volume, "emptyDir": {}}]);
        assert_taken(language, &pod, volume);
        let mounted = json!({"volumeMounts": [{"name": "own", "mountPath": path}]});
        assert_taken(language, &asking(&[language], mounted), path);
        // A regular container of the name is no mark of an injected pod.
        let container = if container.is_empty() { volume } else { container };
        let mut pod = asking(&[language], json!({}));
        pod["spec"]["containers"]
            .as_array_mut()
            .expect("a list")
            .push(json!({"name": container, "image": "i"}));
        assert_taken(language, &pod, container);
    }
}

#[test]
fn d17_a_taken_name_leaves_the_sidecar_out() {
    let mut pod = asking(&["go"], json!({}));
    pod["spec"]["volumes"] = json!([{"name": "kernel-debug", "hostPath": {"path": "/sys/kernel/debug"}}]);
    assert_taken("go", &pod, "kernel-debug");
    let mut pod = asking(&["go"], json!({}));
    pod["spec"]["initContainers"] = json!([{"name": SIDECAR, "image": "i"}]);
    assert_taken("go", &pod, SIDECAR);
}

#[test]
fn d17_one_pod_takes_one_web_server() {
    let injected = with(json!({})).inject(&asking(&["apache-httpd", "nginx"], json!({})));
    assert_eq!(injected.codes(), ["apache-httpd/app: Injected", "nginx: NameTaken"]);
    assert_eq!(injected.names("volumes"), ["otel-apache-conf-dir", "otel-apache-agent"]);
}

#[test]
fn d17_a_second_mount_on_the_configuration_leaves_the_web_server_out() {
    let both =
        json!([{"name": "a", "mountPath": "/etc/nginx/conf.d"}, {"name": "b", "mountPath": "/etc/nginx"}]);
    assert_taken("nginx", &asking(&["nginx"], json!({"volumeMounts": both})), "/etc/nginx");
}

#[test]
fn d17_a_configuration_without_a_folder_of_its_own_is_refused() {
    for (language, field, value) in [
        ("apache-httpd", "apacheHttpd", json!({"configPath": "/"})),
        ("apache-httpd", "apacheHttpd", json!({"configPath": "/etc/.."})),
        ("apache-httpd", "apacheHttpd", json!({"configPath": "-rf"})),
        ("nginx", "nginx", json!({"configFile": "nginx.conf"})),
        ("nginx", "nginx", json!({"configFile": "/nginx.conf"})),
        ("nginx", "nginx", json!({"configFile": "/etc/nginx/.."})),
    ] {
        let injected = with(json!({field: value})).inject(&asking(&[language], json!({})));
        assert_eq!(injected.codes(), [format!("{language}: ConfigPath")], "{value}");
        assert!(injected.is_unchanged());
    }
}

#[test]
fn d17_dots_leave_the_names_of_volumes() {
    let tls = json!({"exporter": {"tls": {"secretName": "a.b", "ca_file": "ca"}}});
    let injected = with(tls).inject(&asking(&["sdk"], json!({})));
    assert_eq!(injected.names("volumes"), ["otel-auto-secret-a-b"]);
}

#[test]
fn d17_the_processes_of_the_node_are_not_shared_once_more() {
    for (field, value, expected) in [
        ("hostPID", true, Value::Null),
        ("hostPID", false, json!(true)),
        ("shareProcessNamespace", true, json!(true)),
    ] {
        let mut pod = asking(&["go"], json!({}));
        pod["spec"][field] = json!(value);
        let injected = with(json!({})).inject(&pod);
        assert_eq!(injected.codes(), ["go/app: Injected"]);
        assert_eq!(injected.pod["spec"]["shareProcessNamespace"], expected, "{field}: {value}");
    }
}

#[test]
fn d17_claims_that_the_pod_does_not_have_are_left_out() {
    let resources = json!({"claims": [{"name": "gpu"}, {"name": "ghost"}]});
    for (language, field, container) in
        [("python", "python", "opentelemetry-auto-instrumentation-python"), ("go", "go", SIDECAR)]
    {
        let mut pod = asking(&[language], json!({}));
        pod["spec"]["resourceClaims"] = json!([{"name": "gpu"}]);
        let spec = json!({field: {"resourceRequirements": resources}});
        let injected: Injected = with(spec).inject(&pod);
        let claims = &injected.container(container).expect("injected")["resources"]["claims"];
        assert_eq!(*claims, json!([{"name": "gpu"}]));
    }
}

#[test]
fn d20_certificates_are_mounted_without_looking() {
    let tls = json!({"exporter": {"tls": {"secretName": "s", "configMapName": "m", "ca_file": "ca"}}});
    for (language, container) in [("java", "app"), ("go", SIDECAR)] {
        let injected = with(tls.clone()).inject(&asking(&[language], json!({})));
        let volumes: Vec<_> = items(&injected.pod["spec"]["volumes"]).collect();
        assert!(volumes.contains(
            &&json!({"name": "otel-auto-secret-s", "secret": {"secretName": "s", "optional": true}})
        ));
        assert!(volumes.contains(
            &&json!({"name": "otel-auto-configmap-m", "configMap": {"name": "m", "optional": true}})
        ));
        let mounts = items(&injected.container(container).expect("there")["volumeMounts"]);
        assert_eq!(mounts.filter(|mount| mount["readOnly"] == true).count(), 2);
        let notes: Vec<_> = injected.outcome.findings[0].notes.iter().map(ToString::to_string).collect();
        assert!(notes.iter().any(|note| note.starts_with("Secret s is mounted as optional")), "{notes:?}");
    }
}

#[test]
fn d17_objects_whose_volumes_would_have_one_name_are_not_taken_for_one() {
    let long = |end: &str| format!("{}-{end}", "a".repeat(60));
    for (one, other, java, python) in [
        ("certs.v2".to_owned(), "certs-v2".to_owned(), "Injected", "NameTaken"),
        (long("one"), long("other"), "Injected", "NameTaken"),
        ("certs.v2".to_owned(), "certs.v2".to_owned(), "Injected", "Injected"),
    ] {
        for kind in ["secretName", "configMapName"] {
            let with_tls =
                |name, object: &str| instrumentation(name, json!({"exporter": {"tls": {kind: object}}}));
            let around = Surroundings::new([with_tls("one", &one), with_tls("other", &other)]);
            let asks = [("inject-java", "one"), ("inject-python", "other"), ("container-names", "app")];
            let app = json!({"containers": [{"name": "app", "image": "app:1"}]});
            let injected = around.inject(&pod(&asks, app));
            let codes = injected.outcome.findings.iter().map(|finding| finding.reason.code());
            assert_eq!(codes.collect::<Vec<_>>(), [java, python], "{one} {other}");
            let volumes = injected.names("volumes");
            let count = volumes.iter().filter(|name| name.starts_with("otel-auto-")).count();
            assert_eq!(count, 1, "{volumes:?}");
        }
    }
}
