use otel_webhook_inject::STATUS;
use serde_json::json;

use super::*;

const INIT: &str = "opentelemetry-auto-instrumentation-java";
const SIDECAR: &str = "opentelemetry-auto-instrumentation";
const DOCUMENT: &str = include_str!("../../../../docs/failing.md");

/// A pod with the Java agent, copied or mounted, and the sidecar of Go.
fn pod(volume: &Value, statuses: &Value) -> Value {
    let mut volume = volume.clone();
    volume["name"] = json!(INIT);
    json!({
        "spec": {
            "initContainers": [{"name": "migrate"}, {"name": INIT}],
            "containers": [
                {"name": "app", "env": [{"name": OF_EVERY_TARGET}],
                    "volumeMounts": [{"name": INIT, "mountPath": "/otel-auto-instrumentation-java-app"}]},
                {"name": "proxy"},
                {"name": SIDECAR},
            ],
            "volumes": [volume],
        },
        "status": statuses,
    })
}

fn read_all(volume: &Value, list: &str, status: &Value) -> Vec<Failure> {
    of(&pod(volume, &json!({list: [status]})), &["java", "go"]).failures
}

fn waits(name: &str, reason: &str, message: &str) -> Value {
    json!({"name": name, "restartCount": 0, "ready": false,
        "state": {"waiting": {"reason": reason, "message": message}}})
}

fn ends(name: &str, restarts: u64, state: &Value, last: &Value) -> Value {
    json!({"name": name, "restartCount": restarts, "ready": false, "state": state, "lastState": last})
}

fn terminated(code: i64, reason: &str) -> Value {
    json!({"terminated": {"exitCode": code, "reason": reason, "message": "why"}})
}

#[test]
fn each_reason_of_a_kubelet_is_a_failure_of_what_injection_added() {
    let reference = json!({"image": {"reference": "own/java:1"}});
    for (reason, kind, _) in kind::WAITING {
        for (list, name, language) in
            [("initContainerStatuses", INIT, "java"), ("containerStatuses", SIDECAR, "go")]
        {
            let found = read_all(&json!({}), list, &waits(name, reason, "said"));
            let [one] = &found[..] else { panic!("{reason}: {found:?}") };
            assert_eq!((one.part, one.kind, &*one.container), (Part::Container, kind, name), "{reason}");
            assert_eq!((&one.languages[..], &*one.message), (&[language][..], "said"), "{reason}");
        }
        let of_volume = "Back-off pulling image \"docker.io/own/java:1\"";
        let found = read_all(&reference, "containerStatuses", &waits("app", reason, of_volume));
        assert_eq!((found[0].part, found[0].kind), (Part::Volume, kind), "{reason}");
        assert_eq!(found[0].languages, ["java"], "{reason}");
    }
}

#[test]
fn a_volume_fails_only_where_the_message_is_about_it() {
    let reference = json!({"image": {"reference": "own/java:1"}});
    let part = |volume: &Value, name: &str, message: &str| {
        let found = read_all(volume, "containerStatuses", &waits(name, "CreateContainerError", message));
        found.first().map(|one| one.part)
    };
    let volume = Some(Part::Volume);
    let of_containerd =
        "failed to mount image volume: ImageVolumeMountFailed: failed to ensure image subpath";
    assert_eq!(part(&reference, "app", of_containerd), volume);
    assert_eq!(part(&reference, "app", "failed to mount /otel-auto-instrumentation-java-app"), volume);
    assert_eq!(
        part(&json!({}), "app", &format!("failed to prepare subPath for volumeMount {INIT:?}")),
        volume
    );
    assert_eq!(part(&reference, "app", "Back-off pulling image \"own/app:1\""), None, "its own image");
    assert_eq!(part(&json!({}), "app", "ImageVolumeMountFailed: no such file"), None, "another volume");
    assert_eq!(part(&reference, "proxy", "ImageVolumeMountFailed: no such file"), None, "not mounted");
}

#[test]
fn a_container_that_ends_again_and_again_fails() {
    let running = json!({"running": {}});
    let crash = terminated(1, "Error");
    let memory = terminated(137, "OOMKilled");
    let loops = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}});
    let none = json!({});
    for (restarts, state, last, added, application) in [
        (1, &loops, &crash, Some(Kind::Crash), Some(Kind::Crash)),
        (1, &loops, &memory, Some(Kind::Memory), Some(Kind::Memory)),
        (1, &loops, &terminated(128, "StartError"), Some(Kind::Run), None),
        (0, &memory, &none, Some(Kind::Memory), None),
        (1, &running, &memory, Some(Kind::Memory), None),
        (2, &running, &memory, Some(Kind::Memory), Some(Kind::Memory)),
        (2, &running, &crash, Some(Kind::Crash), Some(Kind::Crash)),
        (1, &running, &crash, None, None),
        (0, &crash, &none, None, None),
        (2, &terminated(0, "Completed"), &crash, None, None),
    ] {
        let kind = |list: &str, name: &str| {
            let found = read_all(&json!({}), list, &ends(name, restarts, state, last));
            found.first().map(|one| one.kind)
        };
        assert_eq!(kind("initContainerStatuses", INIT), added, "{state} {last}");
        assert_eq!(kind("containerStatuses", "app"), application, "{state} {last}");
    }
    let found = read_all(&json!({}), "containerStatuses", &ends("app", 7, &loops, &crash));
    assert_eq!(&*found[0].message, "back-off 10s; it ended with exit code 1 (Error): why");
    assert_eq!(
        (found[0].part, &found[0].languages[..], found[0].restarts),
        (Part::Application, &["java"][..], 7)
    );
    let found = read_all(&json!({}), "containerStatuses", &ends("proxy", 7, &loops, &crash));
    assert!(found[0].languages.is_empty(), "it has no agent: {found:?}");
}

#[test]
fn an_application_whose_variable_refers_to_nothing_fails() {
    let status = waits("app", "CreateContainerConfigError", "secret \"otlp\" not found");
    let found = read_all(&json!({}), "containerStatuses", &status);
    assert_eq!((found[0].part, found[0].kind), (Part::Application, Kind::Config), "{found:?}");
    assert_eq!(found[0].languages, ["java"]);
}

#[test]
fn a_pod_that_waits_for_an_added_claim_fails() {
    let claim = json!({"ephemeral": {"volumeClaimTemplate": {}}});
    let read = |volume: &Value, message: &str| {
        let condition =
            json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message});
        of(&pod(volume, &json!({"conditions": [condition]})), &["java", "go"]).failures
    };
    let unbound = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.";
    let found = read(&claim, unbound);
    assert_eq!((found[0].part, found[0].kind, &*found[0].container), (Part::Volume, Kind::Claim, INIT));
    assert_eq!((&found[0].languages[..], &*found[0].message), (&["java"][..], unbound));
    assert_eq!(read(&json!({"emptyDir": {}}), unbound), [], "a claim of the application");
    assert_eq!(read(&claim, "0/1 nodes are available: 1 Insufficient cpu."), []);
    let soon = "waiting for ephemeral volume controller to create the persistentvolumeclaim \"a\"";
    assert_eq!(read(&claim, soon), []);
}

#[test]
fn what_is_only_slow_does_not_fail() {
    let running = json!({"running": {}});
    for status in [
        waits(INIT, "PodInitializing", ""),
        waits(INIT, "ContainerCreating", ""),
        ends(INIT, 0, &running, &json!({})),
        ends(INIT, 0, &terminated(0, "Completed"), &json!({})),
        ends(INIT, 0, &terminated(1, "Error"), &json!({})),
        json!({"name": INIT}),
    ] {
        assert_eq!(read_all(&json!({}), "initContainerStatuses", &status), [], "{status}");
    }
    for status in [
        waits("app", "ContainerCreating", ""),
        waits("app", "PodInitializing", ""),
        waits("app", "ImagePullBackOff", "Back-off pulling image \"own/app:1\""),
        ends("app", 0, &running, &json!({})),
        ends("app", 1, &running, &terminated(1, "Error")),
        json!({"name": "app", "ready": true, "restartCount": 9, "state": running, "lastState": terminated(1, "Error")}),
    ] {
        assert_eq!(read_all(&json!({}), "containerStatuses", &status), [], "{status}");
    }
    let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    assert!(of(&pod(&json!({}), &ready), &["java"]).is_ready);
}

#[test]
fn the_log_is_that_of_the_run_that_has_ended() {
    let (none, running) = (json!({}), json!({"running": {}}));
    let waiting = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    let end = || terminated(1, "Error");
    for (restarts, state, last, expected) in [
        (2, &end(), &end(), Some(Run::Current)),
        (2, &end(), &none, Some(Run::Current)),
        (1, &waiting, &end(), Some(Run::Previous)),
        (2, &running, &end(), Some(Run::Previous)),
        (5, &waiting, &none, None),
    ] {
        let found = read_all(&json!({}), "containerStatuses", &ends("app", restarts, state, last));
        assert_eq!(found[0].ended, expected, "{state}, {last}");
    }
}

#[test]
fn the_languages_of_a_container_are_those_of_the_stamp() {
    let loops = waits("app", "CrashLoopBackOff", "");
    let mut pod = pod(&json!({}), &json!({"containerStatuses": [loops]}));
    let languages = |pod: &Value| of(pod, &["java", "nodejs", "go"]).failures[0].languages.clone();
    assert_eq!(languages(&pod), ["java", "nodejs"], "without the stamp, all but the sidecar's");
    let entry = |language: &str, container: &str| json!({"language": language, "outcome": "Injected", "containers": [container]});
    let stamp = json!([entry("java", "app"), entry("nodejs", "proxy")]).to_string();
    pod["metadata"]["annotations"][STATUS] = json!(stamp);
    assert_eq!(languages(&pod), ["java"]);
}

#[test]
fn each_code_is_documented() {
    let codes = Kind::ALL.map(Kind::code).into_iter().chain(Verdict::ALL.map(Verdict::code));
    for code in codes {
        assert!(DOCUMENT.contains(&format!("\n| `{code}` |")), "{code} is not in docs/failing.md");
    }
}
