//! The user of added containers in pods that must not run as root.

use otel_webhook_testkit::{
    objects::{NAMESPACE, asking, instrumentation},
    surroundings::{Injected, Surroundings, with},
};
use serde_json::{Value, json};

const AGENT: &str = "opentelemetry-auto-instrumentation-java";
const SERVERS: [&str; 2] = ["apache-httpd", "nginx"];

/// A pod with these security contexts.
fn pod(language: &str, of_pod: &Value, of_container: &Value) -> Value {
    let mut pod = asking(&[language], json!({}));
    for (context, path) in [(of_pod, "/spec"), (of_container, "/spec/containers/0")] {
        if !context.is_null() {
            pod.pointer_mut(path).expect("it exists")["securityContext"] = context.clone();
        }
    }
    pod
}

fn sentences(injected: &Injected) -> Vec<String> {
    injected.outcome.findings.iter().map(|finding| finding.reason.to_string()).collect()
}

#[test]
fn d41_an_init_container_has_the_number_of_a_user_that_is_not_root() {
    let strict = json!({"runAsNonRoot": true});
    let hardened = json!({"runAsNonRoot": true, "capabilities": {"drop": ["ALL"]}});
    for (of_instrumentation, of_pod, of_container, expected) in [
        (Value::Null, &strict, Value::Null, json!({"runAsUser": 65532})),
        (
            Value::Null,
            &Value::Null,
            hardened.clone(),
            json!({"runAsNonRoot": true, "capabilities": {"drop": ["ALL"]}, "runAsUser": 65532}),
        ),
        (
            json!({"runAsNonRoot": true}),
            &Value::Null,
            json!({"runAsUser": 7}),
            json!({"runAsNonRoot": true, "runAsUser": 7}),
        ),
        // The kubelet starts these as they are.
        (json!({"runAsUser": 9}), &strict, json!({"runAsUser": 7}), json!({"runAsUser": 9})),
        (Value::Null, &json!({"runAsNonRoot": true, "runAsUser": 8}), hardened.clone(), hardened.clone()),
        (Value::Null, &strict, json!({"runAsNonRoot": false}), json!({"runAsNonRoot": false})),
        (Value::Null, &Value::Null, Value::Null, Value::Null),
        (Value::Null, &json!({"runAsUser": 0}), Value::Null, Value::Null),
    ] {
        let spec = json!({"initContainerSecurityContext": of_instrumentation});
        let before = pod("java", of_pod, &of_container);
        let injected = with(spec).inject(&before);
        assert_eq!(injected.codes(), ["java/app: Injected"]);
        let container = injected.container(AGENT).expect("the init container");
        assert_eq!(container["securityContext"], expected, "{before}");
        assert_eq!(injected.pod["spec"]["securityContext"], before["spec"]["securityContext"]);
        let app = injected.container("app").expect("the target");
        assert_eq!(app["securityContext"], before["spec"]["containers"][0]["securityContext"]);
    }
}

#[test]
fn d41_on_openshift_the_user_is_the_first_of_the_namespace() {
    let range = json!({"openshift.io/sa.scc.uid-range": "1000650000/10000"});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "annotations": range}});
    let around = Surroundings::new([instrumentation("inst", json!({})), namespace]);
    let user = |of_container: &Value| {
        let injected = around.inject(&pod("java", &Value::Null, of_container));
        injected.container(AGENT).expect("the init container")["securityContext"]["runAsUser"].clone()
    };
    assert_eq!(user(&json!({"runAsNonRoot": true})), 1_000_650_000);
    assert_eq!(user(&json!({"runAsNonRoot": true, "runAsUser": 7})), 7);
    assert_eq!(user(&json!({})), Value::Null);
}

#[test]
fn d41_both_init_containers_of_a_web_server_have_the_same_user() {
    for language in SERVERS {
        let injected = with(json!({})).inject(&pod(language, &json!({"runAsNonRoot": true}), &Value::Null));
        let added = injected.pod["spec"]["initContainers"].as_array().expect("init containers");
        assert_eq!(added.len(), 2);
        for container in added {
            assert_eq!(container["securityContext"], json!({"runAsUser": 65532}), "{language}");
        }
        let notes = &injected.outcome.findings[0].notes;
        let note = notes.iter().find(|note| note.code() == "UserSet").expect("a note");
        assert!(!note.is_warning());
        assert_eq!(
            note.to_string(),
            "the init containers run as user 65532, since the pod must not run as root"
        );
    }
}

#[test]
fn d41_root_in_a_pod_that_must_not_run_as_root_is_skipped() {
    let (strict, root) = (json!({"runAsNonRoot": true}), json!({"runAsUser": 0}));
    for language in ["java", "apache-httpd", "nginx"] {
        for (of_instrumentation, of_pod, of_container) in
            [(&root, &strict, &Value::Null), (&Value::Null, &strict, &root), (&strict, &root, &Value::Null)]
        {
            let around = with(json!({"initContainerSecurityContext": of_instrumentation}));
            let injected = around.inject(&pod(language, of_pod, of_container));
            assert!(injected.is_unchanged(), "{:?}", injected.codes());
            assert_eq!(injected.codes(), [format!("{language}/app: RootNotAllowed")]);
            assert_eq!(
                sentences(&injected),
                [
                    "runAsNonRoot is true and the init containers would run as root, so the kubelet would not start \
                  the pod; set a runAsUser that is not 0 in the pod, or in spec.initContainerSecurityContext of \
                  the Instrumentation"
                ]
            );
        }
    }
}

#[test]
fn d41_the_go_agent_is_root_and_skipped_unless_its_own_context_allows_that() {
    let strict = json!({"runAsNonRoot": true});
    let before = pod("go", &strict, &Value::Null);
    let injected = with(json!({})).inject(&before);
    assert!(injected.is_unchanged());
    assert_eq!(
        sentences(&injected),
        [
            "runAsNonRoot is true and the privileged sidecar would run as root, so the kubelet would not start the \
          pod; set runAsNonRoot to false in spec.go.securityContext of the Instrumentation, or opt out"
        ]
    );
    let own = json!({"privileged": true, "runAsUser": 0, "runAsNonRoot": false});
    let allowed = with(json!({"go": {"securityContext": own}})).inject(&before);
    assert_eq!(allowed.codes(), ["go/app: Injected"]);
}

#[test]
fn d41_a_claim_that_no_group_may_write_to_is_skipped() {
    let claim =
        json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    for (language, field) in [("java", "java"), ("apache-httpd", "apacheHttpd")] {
        let around = || with(json!({field: {"volumeClaimTemplate": claim}}));
        let injected = around().inject(&pod(language, &json!({"runAsNonRoot": true}), &Value::Null));
        assert!(injected.is_unchanged());
        assert_eq!(injected.codes(), [format!("{language}/app: ClaimNotWritable")]);
        assert_eq!(
            sentences(&injected),
            [format!(
                "the init containers would run as user 65532, since the pod must not run as root, and could not \
                 write to the volume of spec.{field}.volumeClaimTemplate; set spec.securityContext.fsGroup of the \
                 pod, or remove the template"
            )]
        );
        for of_pod in
            [json!({"runAsNonRoot": true, "fsGroup": 7}), json!({"runAsNonRoot": true, "runAsUser": 7})]
        {
            let injected = around().inject(&pod(language, &of_pod, &Value::Null));
            assert_eq!(injected.codes(), [format!("{language}/app: Injected")], "{of_pod}");
        }
    }
}
