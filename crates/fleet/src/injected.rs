//! What was injected into a running pod, by which webhook, and with which configuration: by its containers, its volumes
//! and its stamp. Everything that reads a running pod reads it here.

use serde_json::Value;

use otel_webhook_inject::{
    Finding, STATUS, Used,
    compiled::joined,
    image,
    language::{LANGUAGES, Language},
    mark,
    pod::ALWAYS,
    reason::Reason,
    stamp::{self, Entry},
};

use crate::state::{Has, Next, Origin, State};

/// The agent of a language in a running pod, or in the pod that would be created now.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Agent {
    /// The language.
    pub language: &'static str,
    /// The injector.
    pub by: By,
    /// `namespace/name` of the Instrumentation, by the stamp.
    pub instrumentation: Option<Box<str>>,
    /// The hash of the configuration, by the stamp: one also for several agents of `spec.agents`.
    pub hash: Option<Box<str>>,
    /// The image of the agent; `None` for a language without one.
    pub image: Option<Box<str>>,
}

impl Agent {
    /// Returns the Instrumentation and the hash, as far as they are known.
    pub fn origin(&self) -> Origin<'_> {
        Origin {
            instrumentation: self.instrumentation.as_deref().unwrap_or_default(),
            hash: self.hash.as_deref().unwrap_or_default(),
        }
    }

    /// Returns the version of the image, or the whole image if it has none; empty for a language without an image.
    pub fn version(&self) -> &str {
        let image = self.image.as_deref().unwrap_or_default();
        image::version(image).unwrap_or(image)
    }

    /// Returns whether a pod with this agent was injected in another way than new pods are; `next` is `None` if new
    /// pods get no agent of the language.
    ///
    /// The hash is of the whole configuration, and is not changed by webhooks that change the registries of images.
    /// Pods without a comparable hash, such as the operator's, are compared by the version of the image.
    pub fn is_outdated(&self, next: Option<&Self>) -> bool {
        let next_state = next.map_or(Next::Skipped(""), |next| Next::Agent(next.origin()));
        match State::of(Has::Agent(self.origin()), next_state) {
            State::Injected => false,
            State::Stale => true,
            _ => {
                let of = |agent: &Self| image::version(agent.image.as_deref()?).map(str::to_owned);
                of(self).zip(next.and_then(of)).is_some_and(|(now, next)| now != next)
            }
        }
    }
}

/// The webhook that injected a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum By {
    /// This webhook, according to the annotation `otel-webhook/status` of the pod.
    Webhook,
    /// The operator, or this webhook without `--stamp`: both add the same.
    Operator,
}

/// A variable that both add to every target, in every language.
pub const OF_EVERY_TARGET: &str = "OTEL_RESOURCE_ATTRIBUTES_POD_NAME";

/// The prefix of the names of the agents' volumes.
const AGENTS: &str = "opentelemetry-auto-instrumentation";

/// The prefixes of the names of the web servers' volumes.
const WEB_SERVERS: [&str; 2] = ["otel-apache-", "otel-nginx-"];

/// The code of what is skipped while injection is paused.
pub const PAUSED: &str = "Paused";

/// The name of the operator's collector sidecar.
const COLLECTOR: &str = "otc-container";

impl By {
    /// Returns the name in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Webhook => "otel-webhook",
            Self::Operator => "operator",
        }
    }
}

/// Returns the agents of a pod, in the order of the language table.
///
/// They are detected by their containers, by volumes of their images, or by their variables if they add no container.
/// The stamp only decides by which webhook and with which configuration, since annotations are often copied.
pub fn agents(pod: &Value) -> Vec<Agent> {
    let stamp = stamp(pod);
    let is_there = |language: &&&Language| {
        let by_container = containers(pod).any(|(init, name)| is_of(language, init, name));
        by_container
            || image_volume(pod, language).is_some()
            || language.marks.is_empty() && has_variables_alone(pod, &stamp, language.name)
    };
    let agent = |language: &&'static Language| {
        let entry = entries(&stamp, language.name).next();
        let hashes = entries(&stamp, language.name).map(|entry| entry.hash.as_deref().map(Box::from));
        let hashes: Option<Vec<Box<str>>> = hashes.collect();
        Agent {
            language: language.name,
            by: if entry.is_some() { By::Webhook } else { By::Operator },
            instrumentation: entry.and_then(|entry| entry.instrumentation.as_deref()).map(Into::into),
            hash: hashes.into_iter().flatten().reduce(|one, other| joined(&one, &other)),
            image: image(pod, language)
                .or_else(|| entry.and_then(|entry| entry.image.as_deref()))
                .map(Into::into),
        }
    };
    LANGUAGES.iter().filter(is_there).map(agent).collect()
}

/// Returns the agents of a new pod, which is `next` after the injection.
pub fn next_agents(next: &Value, findings: &[Finding]) -> Vec<Agent> {
    let agent = |language: &&'static Language| {
        let used = of_findings(findings, language.name)?;
        Some(Agent {
            language: language.name,
            by: By::Webhook,
            // While injection is paused, the pod does not get it.
            image: image(next, language).map(Into::into).or(used.image),
            instrumentation: Some(used.name.to_string().into()),
            hash: Some(used.hash),
        })
    };
    LANGUAGES.iter().filter_map(agent).collect()
}

/// Returns the Instrumentation of a language that is injected, or would be if nothing were paused, with the hash of all
/// its agents.
pub fn of_findings<'f>(findings: impl IntoIterator<Item = &'f Finding>, language: &str) -> Option<Used> {
    let mut agents = Vec::new();
    let mut found: Option<Used> = None;
    for finding in findings {
        let is_meant = finding.reason.is_injected() || matches!(finding.reason, Reason::Paused { .. });
        let is_own = finding.language == language && is_meant;
        let Some(used) = finding.instrumentation.as_ref().filter(|_| is_own) else { continue };
        if agents.contains(&&finding.agent) {
            continue;
        }
        agents.push(&finding.agent);
        match &mut found {
            None => found = Some(used.clone()),
            Some(found) => found.hash = joined(&found.hash, &used.hash),
        }
    }
    found
}

/// What was decided on an agent when a pod was created.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decided {
    /// The language.
    language: &'static str,
    /// The agent of `spec.agents`, if the language stands for those.
    agent: Option<Box<str>>,
    /// The hash of the configuration that was decided on.
    hash: Box<str>,
    /// The code of why it was skipped; `None` if it was injected, into one container at least.
    skipped: Option<&'static str>,
}

impl Decided {
    /// Reads what the stamp of a pod with these agents says. Nothing if none of them was injected by this webhook:
    /// then the stamp may be a copy, and the pod is as it was reviewed, so that the decision can be repeated.
    pub fn of(stamp: &[Entry<'_>], agents: &[Agent]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        if agents.iter().all(|agent| agent.by != By::Webhook) {
            return all;
        }
        for entry in stamp {
            let language = LANGUAGES.iter().find(|row| *row.name == *entry.language);
            let reason = Reason::ALL.iter().find(|reason| *reason.code == *entry.outcome);
            let Some(((language, reason), hash)) = language.zip(reason).zip(entry.hash.as_deref()) else {
                continue;
            };
            // The end of a pause does not change the hash.
            if reason.code == PAUSED {
                continue;
            }
            let skipped = (!entry.is_injected()).then_some(reason.code);
            let agent = entry.agent.as_deref().map(Box::from);
            let one = Self { language: language.name, agent, hash: hash.into(), skipped };
            match all.iter_mut().find(|known| known.is_of_same(&one)) {
                Some(known) => known.skipped = known.skipped.filter(|_| one.skipped.is_some()),
                None => all.push(one),
            }
        }
        all
    }

    fn is_of_same(&self, other: &Self) -> bool {
        (self.language, &self.agent, &self.hash) == (other.language, &other.agent, &other.hash)
    }

    /// Returns what was decided on what a finding about a new pod is about, with the same configuration: why it was
    /// skipped, or `None` if it was injected.
    pub fn find(decided: &[Self], finding: &Finding) -> Option<Option<&'static str>> {
        let used = finding.instrumentation.as_ref()?;
        let is_same = |one: &&Self| {
            (one.language, &one.agent, &one.hash) == (finding.language, &finding.agent, &used.hash)
        };
        decided.iter().find(is_same).map(|one| one.skipped)
    }
}

/// Returns what the stamp of a pod says.
pub fn stamp(pod: &Value) -> Vec<Entry<'static>> {
    stamp::parse(text(&pod["metadata"]["annotations"][STATUS]))
}

/// Returns the entries of a stamp for an injected language: several if it stands for several agents.
pub fn entries<'e>(
    stamp: &'e [Entry<'static>],
    language: &'e str,
) -> impl Iterator<Item = &'e Entry<'static>> + Clone {
    stamp.iter().filter(move |entry| entry.language == language && entry.is_injected())
}

/// Returns whether the operator injected a collector sidecar.
pub fn has_collector(pod: &Value) -> bool {
    containers(pod).any(|(_, name)| name == COLLECTOR)
}

/// Returns every container by its name, and whether it is an init container other than a native sidecar.
fn containers(pod: &Value) -> impl Iterator<Item = (bool, &str)> {
    ["initContainers", "containers"].into_iter().flat_map(move |list| {
        let own = items(&pod["spec"][list]);
        own.filter_map(move |container| Some((is_init(list, container), container["name"].as_str()?)))
    })
}

/// Returns whether a container of a list is an init container other than a native sidecar.
pub fn is_init(list: &str, container: &Value) -> bool {
    list == "initContainers" && container["restartPolicy"] != ALWAYS
}

/// Returns the image of the container, or of the volume, that is specific to a language.
fn image<'p>(pod: &'p Value, language: &Language) -> Option<&'p str> {
    ["initContainers", "containers"]
        .into_iter()
        .find_map(|list| {
            let is_own = |one: &&Value| is_of(language, is_init(list, one), text(&one["name"]));
            items(&pod["spec"][list]).find(is_own)?["image"].as_str()
        })
        .or_else(|| image_volume(pod, language))
}

/// Returns the image of the volume that is specific to a language, if it is one of an image.
fn image_volume<'p>(pod: &'p Value, language: &Language) -> Option<&'p str> {
    let is_own =
        |volume: &&Value| volume["image"].is_object() && language.is_image_volume(text(&volume["name"]));
    items(&pod["spec"]["volumes"]).find(is_own)?["image"]["reference"].as_str()
}

/// Returns whether a container is specific to this language. `init` is as in [`is_init`].
fn is_of(language: &Language, init: bool, name: &str) -> bool {
    let marks = |row: &Language| row.marks.iter().any(|mark| mark.is(init, name));
    marks(language) && LANGUAGES.iter().all(|row| row.name == language.name || !marks(row))
}

/// Returns whether a container is an injected one, of any language. `init` is as in [`is_init`].
pub fn is_mark(init: bool, name: &str) -> bool {
    LANGUAGES.iter().any(|language| language.marks.iter().any(|mark| mark.is(init, name)))
}

/// Returns whether a target has the variables, but nothing of an agent.
fn has_variables_alone(pod: &Value, stamp: &[Entry<'static>], language: &str) -> bool {
    let names =
        |container: &Value, variable: &str| items(&container["env"]).any(|one| one["name"] == *variable);
    let mut targets = ["initContainers", "containers"].into_iter().flat_map(|list| {
        let own = items(&pod["spec"][list]).filter(|container| names(container, OF_EVERY_TARGET));
        own.filter(move |one| !is_mark(is_init(list, one), text(&one["name"])))
    });
    if stamp.iter().any(Entry::is_injected) {
        return targets.next().is_some() && entries(stamp, language).next().is_some();
    }
    // Only the first target of a web server's module has its mounts.
    let is_server = |name: &str| WEB_SERVERS.iter().any(|prefix| name.starts_with(prefix));
    if items(&pod["spec"]["volumes"]).any(|volume| is_server(text(&volume["name"]))) {
        return false;
    }
    let is_agent = |mount: &Value| text(&mount["name"]).starts_with(AGENTS);
    // One variable is no sign (D4), as for the decision.
    let is_target = |container: &Value| {
        let text = container.to_string();
        serde_json::from_str(&text).is_ok_and(|container| mark::is_target(&container))
    };
    targets.any(|container| is_target(container) && !items(&container["volumeMounts"]).any(is_agent))
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The agents by the operator, with their images.
    fn found(pod: &Value) -> Vec<(&'static str, Option<Box<str>>)> {
        let operator = agents(pod).into_iter().filter(|agent| agent.by == By::Operator);
        operator.map(|agent| (agent.language, agent.image)).collect()
    }

    #[test]
    fn a_sidecar_is_detected_in_pods_that_end_too() {
        let sidecar = |list: &str, policy: Value| {
            let one = json!({"name": "opentelemetry-auto-instrumentation", "image": "go:1", "restartPolicy": policy});
            json!({"spec": {list: [one]}})
        };
        for pod in [sidecar("containers", Value::Null), sidecar("initContainers", json!("Always"))] {
            assert_eq!(found(&pod), [("go", Some("go:1".into()))], "{pod}");
        }
        let other = sidecar("initContainers", Value::Null);
        assert_eq!(found(&other), [], "{other}");
    }

    #[test]
    fn an_agent_is_detected_by_its_container_or_by_the_volume_of_its_image() {
        let name = "opentelemetry-auto-instrumentation-python";
        let copied = json!({"spec": {"initContainers": [{"name": name, "image": "own:1"}]}});
        let mounted = json!({"spec": {"volumes": [{"name": name, "image": {"reference": "own:1"}}]}});
        for pod in [copied, mounted] {
            assert_eq!(found(&pod), [("python", Some("own:1".into()))], "{pod}");
        }
        let other = json!({"spec": {"volumes": [{"name": name, "emptyDir": {}}, {"name": "own", "image": {"reference": "own:1"}}]}});
        assert_eq!(found(&other), [], "{other}");
    }
}
