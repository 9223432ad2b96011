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

mod evidence;
mod kind;

use otel_webhook_inject::language::{Shape, named};
use serde_json::Value;

use crate::injected::{OF_EVERY_TARGET, entries, is_mark, stamp};
pub use evidence::{Evidence, Pods, Verdict};
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
fn of_container(languages: &[&'static str], init: bool, container: &str) -> Vec<&'static str> {
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
fn of_target(pod: &Value, container: &Value, languages: &[&'static str]) -> Vec<&'static str> {
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

#[cfg(test)]
mod tests;
