//! What the running pods of a workload have: by their containers, and by the annotations of the webhook.

use serde_json::Value;

use super::{known::Known, object::text};
use crate::subject::Subject;
use otel_webhook_fleet::{
    failing::{self, Failure},
    injected::{self, By},
    origin,
    workload::Workload,
};
use otel_webhook_inject::{
    MESSAGE, STATUS, catalogue::Stored, compiled::Freshness, language, pod_image::PodImage,
};

/// A running pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningPod {
    /// Its name.
    pub name: String,
    /// The injected languages.
    pub injected: Vec<Agent>,
    /// The languages that were skipped, according to its status annotation.
    pub skipped: Vec<Skipped>,
    /// What was amiss when it was created, according to its message annotation.
    pub message: Option<String>,
    /// The containers that cannot start or stay, and in which injection changed something.
    pub failures: Vec<Failure>,
}

/// An injected language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The language.
    pub language: &'static str,
    /// The webhook that injected it.
    pub by: By,
    /// The Instrumentation, as namespace/name.
    pub instrumentation: Option<String>,
    /// The image of the agent.
    pub image: Option<String>,
    /// Whether it has the present configuration of that Instrumentation; none if this is not known.
    pub freshness: Option<Freshness>,
}

/// A skipped language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The language.
    pub language: String,
    /// The code of the reason.
    pub outcome: String,
}

impl RunningPod {
    /// Reads a pod.
    pub fn of(pod: &Value, known: &Known) -> Self {
        let status = text(&pod["metadata"]["annotations"][STATUS]);
        let entries: Vec<Value> = serde_json::from_str(&status).unwrap_or_default();
        let pod_namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
        let agent = |(language, by): (&'static str, By)| {
            let mut own = origin::injected(&entries, language);
            // A language may stand for several agents: one that is stale makes it stale.
            let freshness = own.clone().map(|entry| freshness(entry, pod_namespace, known));
            let freshness =
                freshness.reduce(|one, other| if one == Some(Freshness::Stale) { one } else { other });
            let entry = own.next();
            let said = |field: &str| entry.and_then(|entry| entry[field].as_str()).map(str::to_owned);
            Agent {
                language,
                by,
                instrumentation: said("instrumentation"),
                image: said("image"),
                freshness: freshness.flatten(),
            }
        };
        let skipped = entries
            .iter()
            .filter(|entry| entry["outcome"] != "Injected")
            .map(|entry| Skipped { language: text(&entry["language"]), outcome: text(&entry["outcome"]) });
        let message = pod["metadata"]["annotations"][MESSAGE].as_str().map(str::to_owned);
        let languages = injected::languages(pod);
        let names: Vec<_> = languages.iter().map(|(language, _)| *language).collect();
        let mut failures = failing::of(pod, &names).failures;
        failures.retain(|failure| !failure.languages.is_empty());
        Self {
            name: text(&pod["metadata"]["name"]),
            injected: languages.into_iter().map(agent).collect(),
            skipped: skipped.collect(),
            message,
            failures,
        }
    }

    /// Returns whether it lacks one of these languages, or has it with an earlier configuration.
    pub fn is_outdated(&self, languages: &[&str]) -> bool {
        let lacks = |language: &&str| self.injected.iter().all(|agent| agent.language != *language);
        languages.iter().any(lacks) || self.injected.iter().any(Agent::is_stale)
    }
}

impl Agent {
    /// Returns whether its Instrumentation has changed since.
    pub fn is_stale(&self) -> bool {
        self.freshness == Some(Freshness::Stale)
    }
}

/// Returns whether a run is over, or the pod is about to go.
pub fn has_ended(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    ["Succeeded", "Failed"].contains(&phase) || !pod["metadata"]["deletionTimestamp"].is_null()
}

/// Compares the hash of an entry with that of the Instrumentation. Default images are a part of it, so that it is
/// unknown without the webhook's flags.
fn freshness(entry: &Value, pod_namespace: &str, known: &Known) -> Option<Freshness> {
    if known.unread.flags.is_some() {
        return None;
    }
    let (namespace, name) = entry["instrumentation"].as_str()?.split_once('/')?;
    let catalogue = &known.snapshot.catalogue;
    let stored = catalogue.namespace(namespace)?.instrumentations.get(name)?;
    let Stored::Ready(compiled) = stored else { return None };
    let language = language::named(entry["language"].as_str()?)?;
    // An agent that is no longer there is stale.
    let part = compiled.part(language, entry["agent"].as_str());
    let present = part.map_or_else(Box::default, |part| {
        let PodImage { image, .. } = PodImage::of(compiled, part, catalogue.namespace(pod_namespace));
        compiled.hash_with(part, image)
    });
    Some(Freshness::of(entry["hash"].as_str()?, &present))
}

/// Returns how to recreate the pods of a workload.
pub fn renew(subject: &Subject) -> String {
    let Subject { kind, namespace, name } = subject;
    let command = Workload::new(kind, namespace, name).restart_command();
    command.unwrap_or_else(|| "delete them, so that they are recreated".to_owned())
}
