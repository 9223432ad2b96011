//! The stamp: a label and an annotation with the result, on pods that opted in, for people.
//!
//! It does not use the operator's prefix, and no decision depends on it: a
//! stamp may be copied with other annotations.

use serde::Serialize;

use super::{
    finding::Finding,
    json,
    reason::Reason,
    shown::{LONGEST_NAME, Short, shown},
    text::Map,
};

/// Label of pods that opted in: `"true"` if everything was injected, `"partial"` if a part was,
/// else `"false"`.
pub const LABEL: &str = "otel-webhook/injected";

/// Annotation with what was injected and skipped, and why.
pub const STATUS: &str = "otel-webhook/status";

/// The maximum length of the annotation, in bytes.
pub const LONGEST: usize = 2048;

/// The maximum number of containers that are listed for a language and a result.
const MOST_CONTAINERS: usize = 100;

/// The maximum number of different notes of a language.
const MOST_NOTES: usize = 10;

/// The maximum length of the sentence, in characters, if the annotation would be too long.
const SHORT_MESSAGE: usize = 120;

/// The maximum size of all annotations of an object, in bytes; the API server rejects more.
const MOST_ANNOTATIONS: usize = 256 * 1024;

/// Labels or annotations to set.
pub type Entries = Vec<(&'static str, String)>;

/// Labels, and annotations.
pub type Stamp = (Entries, Entries);

/// The result of a language: containers with the same result together.
#[derive(Serialize)]
struct Entry<'f> {
    language: &'static str,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instrumentation: Option<String>,
    /// Generation of the Instrumentation, which counts its changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<i64>,
    /// Hash of the effective configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<&'f str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    containers: Vec<String>,
    /// The number of containers that are not listed.
    #[serde(rename = "moreContainers", skip_serializing_if = "is_zero")]
    more_containers: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// The label and the annotation for the findings of a pod.
///
/// A pod that is already injected keeps its stamp: a second review
/// changes nothing. Mirror pods must not be changed.
pub fn of(findings: &[Finding]) -> Stamp {
    let before = |reason: &Reason| {
        matches!(reason, Reason::AlreadyInjected { .. } | Reason::NothingToAdd | Reason::MirrorPod)
    };
    let asked = findings.iter().any(|finding| !matches!(finding.reason, Reason::SwitchedOff { .. }));
    let injected = findings.iter().any(|finding| finding.reason.is_injected());
    if !asked || !injected && findings.iter().any(|finding| before(&finding.reason)) {
        return (Vec::new(), Vec::new());
    }
    let label = match (injected, findings.iter().any(|finding| finding.reason.is_trouble())) {
        (true, false) => "true",
        (true, true) => "partial",
        (false, _) => "false",
    };
    (vec![(LABEL, label.to_owned())], vec![(STATUS, status(findings))])
}

/// Whether an annotation fits together with those of a pod and other added ones.
pub fn has_room(own: &Map<'_>, added: &[(&'static str, String)], one: &(&'static str, String)) -> bool {
    let own = own.iter().filter(|(key, _)| *key != one.0).map(|(key, value)| key.len() + value.len());
    let added = added.iter().map(|(key, value)| key.len() + value.len());
    own.chain(added).sum::<usize>() + one.0.len() + one.1.len() <= MOST_ANNOTATIONS
}

/// The size of a stamp, about, in bytes.
pub fn size((labels, annotations): &Stamp) -> usize {
    labels.iter().chain(annotations).map(|(key, value)| key.len() + value.len()).sum()
}

fn status(findings: &[Finding]) -> String {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for finding in findings {
        let code = finding.reason.code();
        match entries.iter_mut().find(|entry| entry.language == finding.language && entry.outcome == code) {
            Some(entry) => entry.add(finding),
            None => entries.push(Entry::of(finding)),
        }
    }
    // Codes are more important than sentences, and those more than names.
    let shorten: [fn(&mut Entry<'_>); 5] = [
        |entry| entry.notes.clear(),
        |entry| {
            let message = entry.message.take();
            entry.message = message.map(|message| message.chars().take(SHORT_MESSAGE).collect());
        },
        |entry| entry.message = None,
        |entry| {
            entry.more_containers += entry.containers.len();
            entry.containers.clear();
        },
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl<'f> Entry<'f> {
    fn of(finding: &'f Finding) -> Self {
        let used = finding.instrumentation.as_ref();
        let mut entry = Self {
            language: finding.language,
            outcome: finding.reason.code(),
            instrumentation: used.map(|used| Short { what: used, longest: 2 * LONGEST_NAME }.to_string()),
            generation: used.and_then(|used| used.generation),
            hash: used.map(|used| &*used.hash),
            containers: Vec::new(),
            more_containers: 0,
            message: (!finding.reason.is_injected()).then(|| finding.reason.to_string()),
            notes: Vec::new(),
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
        for note in finding.notes.iter().map(ToString::to_string) {
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
        note::Note,
        reason::{Annotation, ObjectName, Unknown},
        shown::Names,
    };

    fn finding(language: &'static str, container: Option<&str>, reason: Reason) -> Finding {
        let container = container.map(str::to_owned);
        Finding { language, container, instrumentation: None, reason, notes: Vec::new() }
    }

    #[test]
    fn the_label_shows_whether_everything_or_a_part_or_nothing_was_injected() {
        let one = |language, reason| finding(language, Some("app"), reason);
        let ghost = || Reason::ContainerNotFound {
            container: Unknown::One("ghost".to_owned()),
            known: Names::default(),
        };
        let disabled = || Reason::LanguageDisabled { language: "go" };
        let annotation = Annotation { key: "inject-go", of_namespace: false };
        let off = Reason::SwitchedOff { annotation };
        for (findings, expected) in [
            (vec![one("java", Reason::Injected)], "true"),
            (vec![one("java", Reason::Injected), one("go", off)], "true"),
            (vec![one("java", Reason::Injected), one("sdk", Reason::NothingToAdd)], "true"),
            (vec![one("java", ghost()), one("java", Reason::Injected)], "partial"),
            (vec![one("java", Reason::Injected), one("go", disabled())], "partial"),
            (vec![one("java", ghost()), one("go", disabled())], "false"),
        ] {
            assert_eq!(of(&findings).0, [(LABEL, expected.to_owned())], "{findings:?}");
        }
    }

    #[test]
    fn the_status_has_all_known_fields_only() {
        let name = ObjectName { namespace: "shop".into(), name: "inst".into() };
        let used = || Some(Used { name: name.clone(), generation: Some(7), hash: "00c0ffee".into() });
        let noted = |object: &str| vec![Note::CertificateNotChecked { object: object.to_owned() }];
        let java = |container, object| Finding {
            instrumentation: used(),
            notes: noted(object),
            ..finding("java", Some(container), Reason::Injected)
        };
        let refused = Reason::ContainerNotFound {
            container: Unknown::One("\"web\"".to_owned()),
            known: Names::of(["app"]),
        };
        let text =
            status(&[java("one", "Secret a"), java("two", "Secret a"), finding("nodejs", None, refused)]);
        let status: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(
            status,
            json!([
                {
                    "language": "java",
                    "outcome": "Injected",
                    "instrumentation": "shop/inst",
                    "generation": 7,
                    "hash": "00c0ffee",
                    "containers": ["one", "two"],
                    "notes": ["Secret a is mounted as optional; it was not checked whether it exists"],
                },
                {
                    "language": "nodejs",
                    "outcome": "ContainerNotFound",
                    "message": "container \"\"web\"\" not found; the pod has: app",
                },
            ])
        );
    }
}
