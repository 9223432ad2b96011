//! Mistakes in annotations and labels that no decision sees: nothing reads a misspelt key, or a key in the wrong place.
//!
//! One list for everything that reports them: admission, `validate`, `explain` and `check`.

mod default_image;
mod fault;
mod key;
mod pause;

use std::{borrow::Cow, fmt};

use serde_json::Value;

use super::{
    language::{self, LANGUAGES},
    pod::Pod,
    shown::shown,
    template::{dotted, pod_path},
};
pub use fault::Fault;
use key::{Key, near};
use otel_webhook_api::{ANNOTATION_PREFIX, annotations::PAUSED_ANNOTATION};

/// The maximum number of mistakes that are reported one by one for a metadata. The other unknown annotations are
/// counted.
const MOST: usize = 10;

/// The maximum number of annotations, and of labels, that are compared with the valid ones.
const MOST_COMPARED: usize = 100;

/// A mistake in the metadata of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// What is wrong.
    pub fault: Fault,
    /// Path of the annotation or the label in the object.
    pub field: String,
    /// Its value.
    pub value: String,
    /// What is wrong, as a sentence.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.remedy)
    }
}

/// The mistakes in the metadata of an object: a namespace, a pod, or anything with a pod template.
pub fn of(object: &Value, api_version: &str, kind: &str) -> Vec<Mistake> {
    if api_version == "v1" && kind == "Namespace" {
        let place = Place { is_namespace: true, ..Place::own("metadata") };
        return place.mistakes(&Metadata::of(&object["metadata"]));
    }
    let Some(path) = pod_path(object, api_version, kind) else { return Vec::new() };
    let pod = Metadata::of(object.pointer(path).map_or(&Value::Null, |pod| &pod["metadata"]));
    if path.is_empty() {
        return Place::own("metadata").mistakes(&pod);
    }
    let at = format!("{}.metadata", dotted(path));
    let mut mistakes = Vec::new();
    for (field, whose) in [("metadata", kind), ("spec.jobTemplate.metadata", "job template")] {
        let pointer = format!("/{}", field.replace('.', "/"));
        let place = Place { path: field, above: Some(whose), at: &at, pod: Some(&pod), is_namespace: false };
        mistakes.extend(place.mistakes(&Metadata::of(object.pointer(&pointer).unwrap_or(&Value::Null))));
    }
    mistakes.extend(Place::own(&at).mistakes(&pod));
    mistakes
}

/// The mistakes in the metadata of a pod.
pub fn of_pod(pod: &Pod<'_>) -> Vec<Mistake> {
    let metadata = &pod.metadata;
    let entry = |(key, value)| (key, Said::Text(value));
    Place::own("metadata").mistakes(&Metadata {
        annotations: metadata.annotations.iter().map(entry).collect(),
        labels: metadata.labels.iter().map(entry).collect(),
    })
}

/// The annotations and labels of an object.
struct Metadata<'a> {
    annotations: Vec<(&'a str, Said<'a>)>,
    labels: Vec<(&'a str, Said<'a>)>,
}

/// The value of an annotation or a label.
#[derive(Clone, Copy)]
enum Said<'a> {
    Text(&'a str),
    Other(&'a Value),
}

impl<'a> Metadata<'a> {
    fn of(metadata: &'a Value) -> Self {
        let entries = |field: &str| {
            let all = metadata[field].as_object().into_iter().flatten();
            let said = |value: &'a Value| value.as_str().map_or(Said::Other(value), Said::Text);
            all.map(|(key, value)| (&**key, said(value))).collect()
        };
        Self { annotations: entries("annotations"), labels: entries("labels") }
    }

    /// Whether it has an annotation, by its key without the prefix.
    fn has(&self, word: &str) -> bool {
        let is_it = |key: &str| key.strip_prefix(ANNOTATION_PREFIX) == Some(word);
        self.annotations.iter().any(|(key, _)| is_it(key))
    }
}

impl Metadata<'_> {
    /// Whether it has a label, by its key without the prefix.
    fn has_label(&self, word: &str) -> bool {
        self.labels.iter().any(|(key, _)| key.strip_prefix(ANNOTATION_PREFIX) == Some(word))
    }
}

impl<'a> Said<'a> {
    fn text(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => text.into(),
            Self::Other(value) => value.to_string().into(),
        }
    }
}

/// The keys that may be meant as ours, with their values.
fn candidates<'a>(entries: &'a [(&'a str, Said<'a>)]) -> impl Iterator<Item = (Key<'a>, Said<'a>)> {
    entries.iter().filter_map(|(key, said)| Some((Key::of(key)?, *said))).take(MOST_COMPARED)
}

/// One metadata of an object.
struct Place<'a> {
    /// Its path.
    path: &'a str,
    /// What it is the metadata of, if that is above the pod template.
    above: Option<&'a str>,
    /// Path of the metadata that has an effect.
    at: &'a str,
    /// The metadata that has an effect, if it is another one.
    pod: Option<&'a Metadata<'a>>,
    /// Whether it is that of a namespace.
    is_namespace: bool,
}

impl<'a> Place<'a> {
    /// Metadata that has an effect itself.
    fn own(path: &'a str) -> Self {
        Self { path, above: None, at: path, pod: None, is_namespace: false }
    }

    fn mistakes(&self, metadata: &Metadata<'_>) -> Vec<Mistake> {
        let effective = self.pod.unwrap_or(metadata);
        let annotations = candidates(&metadata.annotations).filter_map(|(key, said)| {
            let found = self.of_annotation(&key, said, effective);
            found.map(|(fault, message, remedy)| {
                self.mistake("annotations", fault, &key, said, message, remedy)
            })
        });
        let labels = candidates(&metadata.labels).filter_map(|(key, said)| {
            let (fault, message, remedy) = self.of_label(&key, said, metadata, effective)?;
            Some(self.mistake("labels", fault, &key, said, message, remedy))
        });
        let mut listed: Vec<_> = annotations.chain(labels).take(MOST).collect();
        listed.extend(self.more(metadata, &listed));
        listed
    }

    /// How many unknown annotations are not listed.
    fn more(&self, metadata: &Metadata<'_>, listed: &[Mistake]) -> Option<Mistake> {
        let is_unknown = |key: &str| {
            let word = key.strip_prefix(ANNOTATION_PREFIX);
            word.is_some_and(|word| language::keys().all(|known| known != word))
        };
        let all = metadata.annotations.iter().filter(|(key, _)| is_unknown(key)).count();
        let of_prefix = [Fault::UnknownAnnotation, Fault::InstrumentationsOnly];
        let said = listed.iter().filter(|mistake| of_prefix.contains(&mistake.fault)).count();
        let count = all.checked_sub(said).filter(|count| *count > 0)?;
        Some(Mistake {
            fault: Fault::UnknownAnnotation,
            field: format!("{}.annotations", self.path),
            value: String::new(),
            message: format!("{count} more unknown annotations with the prefix {ANNOTATION_PREFIX}"),
            remedy: "remove them".to_owned(),
        })
    }

    fn of_annotation(
        &self,
        key: &Key<'_>,
        said: Said<'_>,
        effective: &Metadata<'_>,
    ) -> Option<(Fault, String, String)> {
        let whole = shown(key.whole);
        if let Some(language) = key.default_image_of() {
            let (fault, message, remedy) = default_image::fault(language, &said.text(), self.is_namespace)?;
            return Some((fault, format!("the annotation {whole} {message}"), remedy));
        }
        if key.whole == PAUSED_ANNOTATION {
            let (fault, message, remedy) = pause::fault(&said.text(), self.is_namespace)?;
            return Some((fault, format!("the annotation {whole} {message}"), remedy));
        }
        if !key.is_prefixed {
            let word = key.meant().filter(|word| !effective.has(word))?;
            let message = format!("the annotation {whole} is ignored because of its prefix");
            return Some((Fault::WrongPrefix, message, self.set(word, said)));
        }
        if key.is_default_image() {
            let message = format!("the annotation {whole} only has an effect on Instrumentations");
            return Some((Fault::InstrumentationsOnly, message, "remove it".to_owned()));
        }
        if !key.is_known() {
            return Some(self.unknown(key, said));
        }
        if let Some(whose) = self.above {
            if effective.has(key.word) {
                return None;
            }
            let message = format!("the annotation {whole} has no effect on the {whose} itself");
            return Some((Fault::OnWorkload, message, format!("move it to {}.annotations", self.at)));
        }
        let Said::Other(value) = said else { return None };
        let message =
            format!("the value of the annotation {whole} is {}, not a string", shown(&value.to_string()));
        Some((Fault::NotAString, message, format!("quote it: \"{}\"", shown(&value.to_string()))))
    }

    fn of_label(
        &self,
        key: &Key<'_>,
        said: Said<'_>,
        metadata: &Metadata<'_>,
        effective: &Metadata<'_>,
    ) -> Option<(Fault, String, String)> {
        let word = key.meant().filter(|word| !effective.has(word) && !metadata.has(word))?;
        let whole = shown(key.whole);
        if !language::is_read_as_label(word, &said.text()) {
            let message = format!("the label {whole} has no effect; only annotations have");
            return Some((Fault::IsLabel, message, self.set(word, said)));
        }
        let is_exact = key.is_prefixed && key.word == word;
        match self.above.filter(|_| !effective.has_label(word)) {
            _ if !is_exact => {
                let message = format!("the label {whole} has no effect; {ANNOTATION_PREFIX}{word} has");
                Some((Fault::IsLabel, message, self.set(word, said)))
            }
            Some(above) => {
                let message = format!("the label {whole} has no effect on the {above} itself");
                Some((Fault::OnWorkload, message, format!("move it to {}.labels", self.at)))
            }
            None => None,
        }
    }

    fn unknown(&self, key: &Key<'_>, said: Said<'_>) -> (Fault, String, String) {
        let message = format!("unknown annotation {}", shown(key.whole));
        if let Some(word) = near(key.word) {
            let message = format!("{message} (did you mean {word:?}?)");
            return (Fault::UnknownAnnotation, message, self.set(word, said));
        }
        let languages: Vec<_> =
            LANGUAGES.iter().filter(|row| !row.names_agents()).map(|row| row.name).collect();
        let remedy = format!(
            "remove it; to opt in, set {ANNOTATION_PREFIX}inject-LANGUAGE in {}.annotations (languages: {})",
            self.at,
            languages.join(", ")
        );
        (Fault::UnknownAnnotation, message, remedy)
    }

    /// Says to set an annotation where it has an effect.
    fn set(&self, word: &str, said: Said<'_>) -> String {
        let value = said.text();
        format!("set {ANNOTATION_PREFIX}{word}: {:?} in {}.annotations", shown(&value).to_string(), self.at)
    }

    fn mistake(
        &self,
        field: &str,
        fault: Fault,
        key: &Key<'_>,
        said: Said<'_>,
        message: String,
        remedy: String,
    ) -> Mistake {
        let field = format!("{}.{field}[{}]", self.path, shown(key.whole));
        let value = shown(&said.text()).to_string();
        Mistake { fault, field, value, message, remedy }
    }
}

#[cfg(test)]
mod tests;
