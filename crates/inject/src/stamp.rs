//! The stamp: a label and annotations with the result, on pods that opted in, for people.
//!
//! It does not use the operator's prefix, and no decision depends on it: a
//! stamp may be copied with other annotations.

use std::borrow::Cow;

use otel_webhook_api::Delivery;
use serde::{Deserialize, Serialize};

use super::{
    finding::Finding,
    json,
    note::Note,
    reason::Reason,
    shown::{LONGEST_NAME, Short, shown},
    text::Map,
};

/// Label of pods that opted in: `"true"` if everything was injected, `"partial"` if a part was,
/// else `"false"`.
pub const LABEL: &str = "otel-webhook/injected";

/// Annotation with what was injected and skipped, and why.
pub const STATUS: &str = "otel-webhook/status";

/// Annotation with the sentences about what was not injected, and about probable mistakes.
pub const MESSAGE: &str = "otel-webhook/message";

/// The maximum length of the annotation with the status, in bytes.
pub const LONGEST: usize = 2048;

/// The maximum number of containers that are listed for a language and a result.
const MOST_CONTAINERS: usize = 100;

/// The maximum number of different notes of a language.
const MOST_NOTES: usize = 10;

/// The maximum size of all annotations of an object, in bytes; the API server rejects more.
pub const MOST_ANNOTATIONS: usize = 256 * 1024;

/// Labels or annotations to set.
pub type Entries = Vec<(&'static str, String)>;

/// What is set on a pod.
#[derive(Debug, Default)]
pub struct Stamp {
    /// Labels to set.
    pub labels: Entries,
    /// Annotations to set.
    pub annotations: Entries,
    /// An annotation to remove, which was copied from another pod.
    pub removed: Option<&'static str>,
}

/// An entry of the annotation [`STATUS`]: the result of a language, containers with the same result together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Entry<'f> {
    /// Language, such as `java`.
    pub language: Cow<'f, str>,
    /// Agent of `spec.agents`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Cow<'f, str>>,
    /// Reason code, such as `Injected`.
    pub outcome: Cow<'f, str>,
    /// `namespace/name` of the Instrumentation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instrumentation: Option<String>,
    /// Generation of the Instrumentation, which counts its changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Hash of the effective configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<Cow<'f, str>>,
    /// Image of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// How the agent gets into the pod, if not by init containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Cow<'f, str>>,
    /// Names of the containers with this result, at most 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<String>,
    /// The number of containers that are not listed.
    #[serde(rename = "moreContainers", skip_serializing_if = "is_zero")]
    pub more_containers: usize,
    /// Sentence of the reason, if it is neither an injection nor in [`MESSAGE`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Codes of the warnings; their sentences are in [`MESSAGE`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Cow<'f, str>>,
    /// Sentences of the notes, at most 10.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Reads the annotation [`STATUS`] of a pod. Empty if it is not one that this webhook writes.
pub fn parse(status: &str) -> Vec<Entry<'static>> {
    serde_json::from_str(status).unwrap_or_default()
}

/// The label and the annotations for the findings of a pod with these annotations, with the sentences about
/// the problems.
///
/// A pod that is already injected keeps its stamp: a second review
/// changes nothing. Mirror pods must not be changed.
pub fn of(findings: &[Finding], message: Option<String>, own: &Map<'_>, others: &[(String, &str)]) -> Stamp {
    let before = |reason: &Reason| {
        matches!(reason, Reason::AlreadyInjected { .. } | Reason::NothingToAdd | Reason::MirrorPod)
    };
    let is_mirror = findings.iter().any(|finding| finding.reason == Reason::MirrorPod);
    let asked = findings.iter().any(|finding| !matches!(finding.reason, Reason::SwitchedOff { .. }));
    let injected = findings.iter().any(|finding| finding.reason.is_injected());
    if !injected && findings.iter().any(|finding| before(&finding.reason)) {
        // The first review of a pod that was injected by something else has no sentences yet.
        let missing = message.filter(|_| !is_mirror && own.get(MESSAGE).is_none());
        return Stamp {
            annotations: fitting(own, others, missing.map(|text| (MESSAGE, text))),
            ..Stamp::default()
        };
    }
    let removed = (message.is_none() && own.get(MESSAGE).is_some()).then_some(MESSAGE);
    if !asked {
        return Stamp { removed, ..Stamp::default() };
    }
    let label = match (injected, findings.iter().any(|finding| finding.reason.is_trouble())) {
        (true, false) => "true",
        (true, true) => "partial",
        (false, _) => "false",
    };
    let message = message.map(|message| (MESSAGE, message));
    let annotations = fitting(own, others, [(STATUS, status(findings))].into_iter().chain(message));
    Stamp { labels: vec![(LABEL, label.to_owned())], annotations, removed }
}

/// Those annotations that fit together with those of a pod.
fn fitting(
    own: &Map<'_>,
    others: &[(String, &str)],
    wanted: impl IntoIterator<Item = (&'static str, String)>,
) -> Entries {
    wanted.into_iter().fold(Entries::new(), |mut added, one| {
        let before = added.iter().map(|(key, value)| (*key, value.as_str()));
        let before = before.chain(others.iter().map(|(key, value)| (key.as_str(), *value)));
        added.extend(has_room(own, before, (one.0, &one.1)).then_some(one));
        added
    })
}

/// Whether an annotation fits together with those of a pod and other added ones.
pub fn has_room<'a>(
    own: &Map<'_>,
    added: impl Iterator<Item = (&'a str, &'a str)>,
    one: (&str, &str),
) -> bool {
    let own = own.iter().filter(|(key, _)| *key != one.0).map(|(key, value)| key.len() + value.len());
    let added = added.map(|(key, value)| key.len() + value.len());
    own.chain(added).sum::<usize>() + one.0.len() + one.1.len() <= MOST_ANNOTATIONS
}

/// The size of a stamp, about, in bytes.
pub fn size(stamp: &Stamp) -> usize {
    stamp.labels.iter().chain(&stamp.annotations).map(|(key, value)| key.len() + value.len()).sum()
}

/// Whether a pod with these annotations has the annotations of the stamp already, and no other one of it.
pub fn is_on(stamp: &Stamp, own: &Map<'_>) -> bool {
    let carries = |(key, value): &(&str, String)| own.get(key) == Some(value.as_str());
    stamp.removed.is_none() && !stamp.annotations.is_empty() && stamp.annotations.iter().all(carries)
}

fn status(findings: &[Finding]) -> String {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for finding in findings {
        let code = finding.reason.code();
        let is_same = |entry: &&mut Entry<'_>| {
            let of_language =
                entry.language == finding.language && entry.agent.as_deref() == finding.agent.as_deref();
            of_language && entry.outcome == code
        };
        match entries.iter_mut().find(is_same) {
            Some(entry) => entry.add(finding),
            None => entries.push(Entry::of(finding)),
        }
    }
    // Codes are more important than sentences, and those more than names.
    let shorten: [fn(&mut Entry<'_>); 5] = [
        |entry| entry.notes.clear(),
        |entry| entry.message = None,
        |entry| {
            entry.more_containers += entry.containers.len();
            entry.containers.clear();
        },
        |entry| entry.image = None,
        |entry| entry.instrumentation = None,
    ];
    let mut text = json::of(&entries);
    for step in shorten {
        if text.len() <= LONGEST {
            break;
        }
        entries.iter_mut().for_each(step);
        text = json::of(&entries);
    }
    while text.len() > LONGEST && entries.pop().is_some() {
        text = json::of(&entries);
    }
    text
}

/// Whether the reason is neither that of an injection nor in [`MESSAGE`].
fn is_other(reason: &Reason) -> bool {
    !reason.is_injected() && !reason.is_trouble()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl<'f> Entry<'f> {
    /// Whether the language was injected.
    pub fn is_injected(&self) -> bool {
        self.outcome == Reason::Injected.code()
    }

    fn of(finding: &'f Finding) -> Self {
        let used = finding.instrumentation.as_ref();
        let mut entry = Self {
            language: finding.language.into(),
            agent: finding.agent.as_deref().map(Cow::from),
            outcome: finding.reason.code().into(),
            instrumentation: used.map(|used| Short { what: used, longest: 2 * LONGEST_NAME }.to_string()),
            generation: used.and_then(|used| used.generation),
            hash: used.map(|used| Cow::from(&*used.hash)),
            image: used.and_then(|used| used.image.as_deref()).map(|image| shown(image).to_string()),
            message: is_other(&finding.reason).then(|| finding.reason.to_string()),
            ..Self::default()
        };
        entry.add(finding);
        entry
    }

    fn add(&mut self, finding: &'f Finding) {
        let is_full = self.containers.len() == MOST_CONTAINERS;
        let named = finding.container.as_deref().filter(|_| !is_full);
        self.containers.extend(named.map(|name| shown(name).to_string()));
        if named.is_none() && (finding.container.is_some() || finding.count() > 1) {
            self.more_containers += finding.count();
        }
        for code in finding.notes.iter().filter(|note| note.is_warning()).map(Note::code) {
            if !self.warnings.iter().any(|known| known == code) {
                self.warnings.push(code.into());
            }
        }
        let (delivery, notes): (Vec<_>, Vec<_>) =
            finding.notes.iter().partition(|note| matches!(note, Note::ImageVolume));
        if !delivery.is_empty() {
            self.delivery = Some(Delivery::ImageVolume.name().into());
        }
        for note in notes.into_iter().filter(|note| !note.is_warning()).map(ToString::to_string) {
            if self.notes.len() < MOST_NOTES && !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        finding::Used,
        reason::{Annotation, ObjectName, Unknown},
        shown::Names,
    };

    fn finding(language: &'static str, container: Option<&str>, reason: Reason) -> Finding {
        let container = container.map(str::to_owned);
        Finding { language, agent: None, container, instrumentation: None, reason, notes: Vec::new() }
    }

    #[test]
    fn the_label_shows_whether_everything_or_a_part_or_nothing_was_injected() {
        let one = |language, reason| finding(language, Some("app"), reason);
        let ghost = || Reason::ContainerNotFound {
            container: Unknown::One("ghost".to_owned()),
            known: Names::default(),
        };
        let disabled = || Reason::LanguageDisabled { language: "go" };
        let annotation = Annotation { key: "inject-go", of_namespace: false, is_label: false };
        let off = Reason::SwitchedOff { annotation };
        for (findings, expected) in [
            (vec![one("java", Reason::Injected)], "true"),
            (vec![one("java", Reason::Injected), one("go", off)], "true"),
            (vec![one("java", Reason::Injected), one("sdk", Reason::NothingToAdd)], "true"),
            (vec![one("java", ghost()), one("java", Reason::Injected)], "partial"),
            (vec![one("java", Reason::Injected), one("go", disabled())], "partial"),
            (vec![one("java", ghost()), one("go", disabled())], "false"),
        ] {
            assert_eq!(
                of(&findings, None, &Map::default(), &[]).labels,
                [(LABEL, expected.to_owned())],
                "{findings:?}"
            );
        }
    }

    #[test]
    fn the_status_has_all_known_fields_only() {
        let name = ObjectName { namespace: "shop".into(), name: "inst".into() };
        let used = || {
            let (hash, image) = ("00c0ffee".into(), Some("registry/java:1".into()));
            Some(Used { name: name.clone(), generation: Some(7), hash, image })
        };
        let noted = |object: &str| {
            let image = "registry/java:1".to_owned();
            vec![Note::CertificateNotChecked { object: object.to_owned() }, Note::ImageLacksArm64 { image }]
        };
        let java = |container, object| Finding {
            instrumentation: used(),
            notes: noted(object),
            ..finding("java", Some(container), Reason::Injected)
        };
        let refused = Reason::ContainerNotFound {
            container: Unknown::One("\"web\"".to_owned()),
            known: Names::of(["app"]),
        };
        let off = Reason::SwitchedOff {
            annotation: Annotation { key: "inject-go", of_namespace: false, is_label: false },
        };
        let text = status(&[
            java("one", "Secret a"),
            java("two", "Secret a"),
            finding("nodejs", None, refused),
            finding("go", None, off),
        ]);
        let status: Value = serde_json::from_str(&text).expect("JSON");
        let read = parse(&text);
        assert_eq!(json!(read), status, "what is written is read");
        assert_eq!(read.iter().map(Entry::is_injected).collect::<Vec<_>>(), [true, false, false]);
        assert_eq!(
            status,
            json!([
                {
                    "language": "java",
                    "outcome": "Injected",
                    "instrumentation": "shop/inst",
                    "generation": 7,
                    "hash": "00c0ffee",
                    "image": "registry/java:1",
                    "containers": ["one", "two"],
                    "warnings": ["ImageLacksArm64"],
                    "notes": ["Secret a is mounted as optional; it was not checked whether it exists"],
                },
                {"language": "nodejs", "outcome": "ContainerNotFound"},
                {
                    "language": "go",
                    "outcome": "SwitchedOff",
                    "message": "opted out by the annotation instrumentation.opentelemetry.io/inject-go of the pod",
                },
            ])
        );
    }

    #[test]
    fn what_this_webhook_does_not_write_is_no_stamp_and_what_it_may_write_later_is_skipped() {
        for text in ["", "no JSON", "{}", r#"[{"language": 1}]"#] {
            assert_eq!(parse(text), [], "{text}");
        }
        let read = parse(r#"[{"language": "java", "outcome": "Injected", "later": {"a": 1}}]"#);
        assert_eq!((read.len(), &*read[0].language, read[0].is_injected()), (1, "java", true));
    }
}
