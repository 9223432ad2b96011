//! The agents of pods: their images, and the configurations that they were injected with.

use serde_json::Value;

use otel_webhook_fleet::{
    injected, origin,
    state::{Has, Next, Origin, State},
};
use otel_webhook_inject::{
    Outcome, STATUS, image,
    language::{LANGUAGES, Language},
};

/// The agent of one language in a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Agent {
    /// The language.
    pub language: &'static str,
    /// The image of the agent; empty for a language without one.
    pub image: String,
    /// `namespace/name` of the Instrumentation; empty if the pod has no stamp.
    pub instrumentation: String,
    /// The hash of the configuration; empty if the pod has no stamp.
    pub hash: String,
}

/// Returns the agents of a running pod.
pub fn of_pod(pod: &Value) -> Vec<Agent> {
    let stamp = stamp(pod);
    let agents = injected::languages(pod).into_iter().map(|(language, _)| {
        let entry = origin::injected(&stamp, language).next();
        let said = |field: &str| entry.and_then(|entry| entry[field].as_str()).unwrap_or_default().to_owned();
        Agent {
            language,
            image: image_of(pod, language),
            instrumentation: said("instrumentation"),
            hash: origin::stamped(&stamp, language).unwrap_or_default().into(),
        }
    });
    agents.collect()
}

/// Returns a new pod as it is after the injection.
pub fn next(pod: &Value, outcome: &Outcome) -> Value {
    let mut next = pod.clone();
    // The operations are made for this pod. Without them, the images stay unknown.
    let _ = json_patch::patch(&mut next, &outcome.patch.operations());
    next
}

/// Returns the agents of a new pod, which is `next` after the injection.
pub fn of_next(next: &Value, outcome: &Outcome) -> Vec<Agent> {
    let agent = |language: &&'static Language| {
        let used = origin::of_findings(&outcome.findings, language.name)?;
        Some(Agent {
            language: language.name,
            image: Some(image_of(next, language.name))
                .filter(|image| !image.is_empty())
                // While injection is paused, the pod does not get it.
                .or(used.image.map(Into::into))
                .unwrap_or_default(),
            instrumentation: used.name.to_string(),
            hash: used.hash.to_string(),
        })
    };
    LANGUAGES.iter().filter_map(agent).collect()
}

/// Returns the languages that were skipped when a pod was reviewed, with the codes of the reasons.
pub fn skipped(pod: &Value) -> Vec<(&'static str, String)> {
    let stamp = stamp(pod);
    let of = |language: &&'static Language| {
        let mut own = stamp.iter().filter(|entry| entry["language"] == language.name);
        let code = own.find_map(|entry| entry["outcome"].as_str().filter(|code| *code != "Injected"))?;
        Some((language.name, code.to_owned()))
    };
    LANGUAGES.iter().filter_map(of).collect()
}

impl Agent {
    /// Returns whether a pod with this agent was injected in another way than new pods are; `next` is none if new pods
    /// get no agent of the language.
    ///
    /// The state is that of `status`: the hash is of the whole configuration, and is not changed by webhooks that
    /// change the registries of images. Pods without a comparable hash, such as the operator's, are compared by the
    /// version of the image.
    pub fn is_outdated(&self, next: Option<&Self>) -> bool {
        let next_state = next.map_or(Next::Skipped(""), |next| Next::Agent(next.origin()));
        match State::of(Has::Agent(self.origin()), next_state) {
            State::Injected => false,
            State::Stale => true,
            _ => {
                let next = next.and_then(|next| image::version(&next.image));
                image::version(&self.image).zip(next).is_some_and(|(now, next)| now != next)
            }
        }
    }

    fn origin(&self) -> Origin<'_> {
        Origin { instrumentation: &self.instrumentation, hash: &self.hash }
    }

    /// Returns the version of the image, or the whole image if it has none.
    pub fn version(&self) -> &str {
        image::version(&self.image).unwrap_or(&self.image)
    }
}

/// Returns the image of the container or volume that is specific to a language; empty if there is none.
fn image_of(pod: &Value, language: &str) -> String {
    injected::image(pod, language).map(String::from).unwrap_or_default()
}

/// Returns the entries of `otel-webhook/status`.
fn stamp(pod: &Value) -> Vec<Value> {
    let status = pod["metadata"]["annotations"][STATUS].as_str().unwrap_or_default();
    serde_json::from_str(status).unwrap_or_default()
}
