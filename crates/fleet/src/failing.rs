//! What keeps a running or pending pod from starting or staying, by the status that its kubelet writes.
//!
//! | what | when |
//! |---|---|
//! | an added container | waits with a reason of [`Kind::of_waiting`], was `OOMKilled`, or has ended twice and is not ready |
//! | an added volume | a container that mounts it waits, and the kubelet's message names the volume |
//! | an added claim | the pod is not scheduled, and the scheduler's message is about a claim |
//! | a container of the application | waits with `CrashLoopBackOff` or `CreateContainerConfigError`, or has ended twice and is not ready, or was `OOMKilled` twice |
//!
//! That a container is created, waits for the one before it, is not ready yet, or has ended once, is none of it. Whether
//! the agent is why a container of the application ends is for `count` to say, which compares it with other pods.

mod kind;

use jiff::Timestamp;
use otel_webhook_inject::language::{Shape, named};
use serde_json::Value;

use crate::injected::{OF_EVERY_TARGET, entries, is_mark, stamp};

pub use kind::{Kind, Part, is_given_up};

/// How often a container has ended before it is said to end again and again.
const AGAIN: u64 = 2;

/// The characters of a kubelet's message that are kept.
const LONGEST: usize = 400;

/// What a scheduler's message has that waits for a claim, in small letters, and what it has for an instant after the
/// creation of a pod (kube-scheduler's plugin `VolumeBinding`).
const CLAIM: &str = "persistentvolumeclaim";
const NOT_YET_CREATED: &str = "waiting for ephemeral volume controller";

/// What the message of a kubelet has whose container runtime could not mount an image volume.
const NOT_MOUNTED: &str = "ImageVolumeMountFailed";

/// What is known of a pod by its status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodStatus {
    /// Whether its condition `Ready` is true.
    pub is_ready: bool,
    /// The containers that cannot start or stay, init containers first.
    pub failures: Vec<Failure>,
}

/// A container that cannot start or stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its name.
    pub container: Box<str>,
    /// The languages it was added for, or that were injected into it; none for a container without an agent.
    pub languages: Vec<&'static str>,
    /// Which part of the pod fails.
    pub part: Part,
    /// Why.
    pub kind: Kind,
    /// The message of the kubelet and of the container's last end.
    pub message: Box<str>,
    /// How often it was restarted.
    pub restarts: u64,
    /// Which of its runs has ended, and has the log that says why; `None` if none has, or the kubelet has removed it.
    pub ended: Option<Run>,
}

/// A run of a container, by which its log is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// The one of its present state: it has ended, and the next has not begun.
    Current,
    /// The one before that of its present state.
    Previous,
}

impl Failure {
    /// Whether it is the same for another pod of the template: all but the message, the number of restarts and the run.
    pub fn is_like(&self, other: &Self) -> bool {
        (&self.container, &self.languages, self.part, self.kind)
            == (&other.container, &other.languages, other.part, other.kind)
    }
}

impl PodStatus {
    /// Whether it says the same as that of another pod of the template.
    pub fn is_like(&self, other: &Self) -> bool {
        let are_alike = |(one, other): (&Failure, &Failure)| one.is_like(other);
        self.is_ready == other.is_ready
            && self.failures.len() == other.failures.len()
            && self.failures.iter().zip(&other.failures).all(are_alike)
    }
}

/// Reads the status of a pod. `languages` are those that were injected into it.
pub fn of(pod: &Value, languages: &[&'static str]) -> PodStatus {
    let is_true = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    let is_ready = items(&pod["status"]["conditions"]).any(is_true);
    let lists = [(true, "initContainerStatuses"), (false, "containerStatuses")].into_iter();
    let statuses =
        lists.flat_map(|(init, list)| items(&pod["status"][list]).map(move |status| (init, status)));
    let of_containers = statuses.filter_map(|(init, status)| failure(pod, languages, init, status));
    let failures = of_claim(pod, languages).into_iter().chain(of_containers).collect();
    PodStatus { is_ready, failures }
}

fn failure(pod: &Value, languages: &[&'static str], init: bool, status: &Value) -> Option<Failure> {
    let (kind, message) = read(status)?;
    let restarts = status["restartCount"].as_u64().unwrap_or(0);
    let container = text(&status["name"]);
    let (part, languages) = if is_mark(init, container) {
        (Part::Container, of_container(languages, init, container))
    } else {
        let list = if init { "initContainers" } else { "containers" };
        let container = items(&pod["spec"][list]).find(|one| one["name"] == container)?;
        let of_volumes = of_volumes(pod, container, languages, &message);
        if of_volumes.is_empty() {
            let is_again = kind.is_end() && (restarts >= AGAIN || waiting(status).is_some());
            // A variable of the Instrumentation may refer to an object that does not exist.
            let fails = is_again || kind == Kind::Config;
            (Part::Application, fails.then(|| of_target(pod, container, languages))?)
        } else {
            (Part::Volume, of_volumes)
        }
    };
    let message = message.chars().take(LONGEST).collect::<String>().into();
    let ended = ended_run(status);
    Some(Failure { container: container.into(), languages, part, kind, message, restarts, ended })
}

/// Returns since when a pod is Ready; `None` if it is not.
pub(crate) fn ready_since(pod: &Value) -> Option<Timestamp> {
    let is_true = |condition: &&Value| condition["type"] == "Ready" && condition["status"] == "True";
    let condition = items(&pod["status"]["conditions"]).find(is_true)?;
    text(&condition["lastTransitionTime"]).parse().ok()
}

/// Returns the failure of a pod that is not scheduled because of a claim that injection added.
fn of_claim(pod: &Value, languages: &[&'static str]) -> Option<Failure> {
    let is_meant =
        |condition: &&Value| condition["type"] == "PodScheduled" && condition["reason"] == "Unschedulable";
    let condition = items(&pod["status"]["conditions"]).find(is_meant)?;
    let said = text(&condition["message"]);
    let is_of_claim = said.to_lowercase().contains(CLAIM) && !said.contains(NOT_YET_CREATED);
    let claims = items(&pod["spec"]["volumes"]).filter(|volume| volume["ephemeral"].is_object());
    let (container, languages) = claims
        .map(|volume| (text(&volume["name"]), of_container(languages, true, text(&volume["name"]))))
        .find(|(_, languages)| is_of_claim && !languages.is_empty())?;
    let message = said.chars().take(LONGEST).collect::<String>().into();
    let (part, kind) = (Part::Volume, Kind::Claim);
    Some(Failure { container: container.into(), languages, part, kind, message, restarts: 0, ended: None })
}

/// Returns why a container cannot start or stay, with the kubelet's message.
fn read(status: &Value) -> Option<(Kind, String)> {
    let (state, last) = (&status["state"], &status["lastState"]["terminated"]);
    if let Some(reason) = waiting(status) {
        let kind = Kind::of_waiting(reason)?;
        let said = text(&state["waiting"]["message"]);
        if kind != Kind::Crash {
            return Some((kind, said.to_owned()));
        }
        let said = [said.to_owned(), ended(last)].into_iter().filter(|part| !part.is_empty());
        return Some((Kind::of_end(last), said.collect::<Vec<_>>().join("; ")));
    }
    let end = if state["terminated"].is_object() { &state["terminated"] } else { last };
    if end["exitCode"].as_i64().unwrap_or(0) == 0 {
        return None;
    }
    let kind = Kind::of_end(end);
    let is_ready = status["ready"] == true;
    let is_again = status["restartCount"].as_u64().unwrap_or(0) >= AGAIN;
    let fails = if kind == Kind::Memory { is_again || !is_ready } else { is_again && !is_ready };
    fails.then(|| (kind, ended(end)))
}

/// Returns the reason for which a container waits.
pub fn waiting(status: &Value) -> Option<&str> {
    status["state"]["waiting"]["reason"].as_str()
}

/// Returns which run of a container has ended. While it waits to be started again or runs again, that is the one before;
/// between its end and the back-off it is the current one, and the one before it may be gone.
fn ended_run(status: &Value) -> Option<Run> {
    if status["state"]["terminated"].is_object() {
        return Some(Run::Current);
    }
    status["lastState"]["terminated"].is_object().then_some(Run::Previous)
}

/// Says how a container has ended; empty if it has not.
fn ended(end: &Value) -> String {
    let Some(code) = end["exitCode"].as_i64() else { return String::new() };
    let message = text(&end["message"]).trim();
    let separator = if message.is_empty() { "" } else { ": " };
    format!("it ended with exit code {code} ({}){separator}{message}", text(&end["reason"]))
}

/// Returns the languages that an added container was added for.
pub(crate) fn of_container(languages: &[&'static str], init: bool, container: &str) -> Vec<&'static str> {
    let is_marked = |name: &&&'static str| {
        named(name).is_some_and(|row| row.marks.iter().any(|mark| mark.is(init, container)))
    };
    languages.iter().filter(is_marked).copied().collect()
}

/// Returns the languages with a volume that a container mounts and that the message of its kubelet is about.
fn of_volumes(
    pod: &Value,
    container: &Value,
    languages: &[&'static str],
    message: &str,
) -> Vec<&'static str> {
    let is_meant = |volume: &Value| {
        let name = text(&volume["name"]);
        let reference = volume["image"]["reference"].as_str();
        let mounts = items(&container["volumeMounts"]).filter(|mount| mount["name"] == *name);
        let mut paths = mounts.filter_map(|mount| mount["mountPath"].as_str()).peekable();
        paths.peek().is_some()
            && (paths.chain([name]).chain(reference).any(|part| message.contains(part))
                || reference.is_some() && message.contains(NOT_MOUNTED))
    };
    // A volume with an agent has the name of the init container.
    let has = |language: &&'static str| {
        let is_own = |volume: &&Value| !of_container(&[*language], true, text(&volume["name"])).is_empty();
        items(&pod["spec"]["volumes"]).filter(is_own).any(is_meant)
    };
    languages.iter().copied().filter(has).collect()
}

/// Returns the languages that were injected into a container of the application. A sidecar changes no other container.
pub(crate) fn of_target(pod: &Value, container: &Value, languages: &[&'static str]) -> Vec<&'static str> {
    if !items(&container["env"]).any(|variable| variable["name"] == OF_EVERY_TARGET) {
        return Vec::new();
    }
    let (stamp, container) = (stamp(pod), text(&container["name"]));
    let is_target = |language: &&'static str| {
        let mut stamped = entries(&stamp, language).peekable();
        let is_sidecar = named(language).is_some_and(|row| row.shape == Shape::Sidecar);
        // Without the stamp, which of several languages a container has is not known.
        let is_listed = |name: &String| name == container;
        !is_sidecar
            && (stamped.peek().is_none()
                || stamped.any(|entry| entry.more_containers > 0 || entry.containers.iter().any(is_listed)))
    };
    languages.iter().copied().filter(is_target).collect()
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Pods of a workload whose container has the same image, by what they have of a language.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Those with the agent and the configuration that is judged.
    pub same: Pods,
    /// Those with another configuration.
    pub other: Pods,
    /// Those without the agent.
    pub without: Pods,
}

/// A number of pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pods {
    /// Those in which the container cannot start or stay.
    pub failing: usize,
    /// Those that are ready.
    pub ready: usize,
}

/// What the evidence says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The agent is probably the cause.
    Agent,
    /// The application is the cause.
    Application,
    /// Nothing to compare with, or too few pods fail.
    Unknown,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Agent, Self::Application, Self::Unknown];

    /// Returns the code in tables, Events and JSON.
    pub fn code(self) -> &'static str {
        match self {
            Self::Agent => "AgentSuspected",
            Self::Application => "ApplicationFails",
            Self::Unknown => "CauseUnknown",
        }
    }

    /// Returns what to do; `None` if that depends on how the container ends.
    pub fn remedy(self) -> Option<&'static str> {
        match self {
            Self::Agent => None,
            Self::Application => Some("read its log; injection does not change it"),
            Self::Unknown => Some("read its log; to compare, start a pod of the workload without the agent"),
        }
    }
}

impl Pods {
    fn all(self) -> usize {
        self.failing + self.ready
    }
}

impl Evidence {
    /// Returns what it says.
    pub fn verdict(&self) -> Verdict {
        let Self { same, other, without } = self;
        let is_clean = |pods: &Pods| pods.ready > 0 && pods.failing == 0;
        if without.failing > 0 {
            Verdict::Application
        } else if same.failing >= same.ready && (is_clean(without) || is_clean(other)) {
            Verdict::Agent
        } else {
            Verdict::Unknown
        }
    }

    /// Returns what speaks for it, as a sentence.
    pub fn sentence(&self) -> String {
        let Self { same, other, without } = self;
        let own = format!("{} of {} pods with the agent and the same image fail", same.failing, same.all());
        match self.verdict() {
            Verdict::Application => {
                format!("{own}, as do {} of {} without the agent", without.failing, without.all())
            }
            Verdict::Agent if without.ready > 0 => {
                format!("{own}, and none of {} without the agent", without.ready)
            }
            Verdict::Agent => format!("{own}, and none of {} with another configuration of it", other.ready),
            Verdict::Unknown if same.failing < same.ready => own,
            Verdict::Unknown => {
                format!(
                    "{own}; there is no ready pod without the agent, or with another configuration of it, to compare with"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use otel_webhook_inject::STATUS;
    use serde_json::json;

    use super::*;

    const INIT: &str = "opentelemetry-auto-instrumentation-java";
    const SIDECAR: &str = "opentelemetry-auto-instrumentation";
    const DOCUMENT: &str = include_str!("../../../docs/operations/failing.md");

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
            let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message});
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
            assert!(
                DOCUMENT.contains(&format!("\n| `{code}` |")),
                "{code} is not in docs/operations/failing.md"
            );
        }
    }

    #[test]
    fn the_agent_is_suspected_only_where_pods_without_it_or_with_another_configuration_are_ready() {
        let pods = |(failing, ready)| Pods { failing, ready };
        for (same, other, without, expected, said) in [
            (
                (2, 1),
                (0, 0),
                (0, 3),
                Verdict::Agent,
                "2 of 3 pods with the agent and the same image fail, and none of 3 without the agent",
            ),
            ((1, 0), (0, 2), (0, 0), Verdict::Agent, "and none of 2 with another configuration of it"),
            ((1, 0), (1, 2), (0, 0), Verdict::Unknown, "to compare with"),
            ((1, 0), (1, 0), (0, 1), Verdict::Agent, "and none of 1 without the agent"),
            ((1, 0), (0, 2), (1, 1), Verdict::Application, "as do 1 of 2 without the agent"),
            ((3, 0), (0, 0), (0, 0), Verdict::Unknown, "there is no ready pod without the agent"),
            ((1, 9), (0, 0), (0, 3), Verdict::Unknown, "1 of 10 pods"),
        ] {
            let evidence = Evidence { same: pods(same), other: pods(other), without: pods(without) };
            assert_eq!(evidence.verdict(), expected, "{evidence:?}");
            assert!(evidence.sentence().contains(said), "{}", evidence.sentence());
        }
    }
}
