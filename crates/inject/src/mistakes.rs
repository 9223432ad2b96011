//! Mistakes in annotations and labels that no decision sees: nothing reads a misspelt key, or a key in the wrong place.
//!
//! One list for everything that reports them: admission, `validate`, `explain` and `check`.

use std::{borrow::Cow, fmt};

use serde_json::Value;

use super::{
    declarative, image,
    language::{self, LANGUAGES},
    pod::Pod,
    shown::shown,
    template::{dotted, pod_path},
};
use otel_webhook_api::{
    ANNOTATION_PREFIX,
    annotations::{
        ALLOWED_NAMESPACES, CONSENTS, OWN_KEYS, OWN_PREFIX, PAUSED_ANNOTATION, RESTART_ANNOTATION,
        RESUME_ANNOTATION, UNCLEAR_REMEDY, is_unclear,
    },
    defaults::{self, NAMESPACE_IMAGE_PREFIX},
    validation::nearest,
};

/// The maximum number of mistakes that are reported one by one for a metadata. The other unknown annotations are
/// counted.
const MOST: usize = 10;

/// The maximum number of annotations, and of labels, that are compared with the valid ones.
const MOST_COMPARED: usize = 100;

macro_rules! faults {
    ($($(#[doc = $doc:literal])* $name:ident: $code:literal, $remedy:literal;)*) => {
        /// What is wrong with an annotation or a label.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Fault {
            $($(#[doc = $doc])* $name,)*
        }

        impl Fault {
            /// All of them, in the order of the list.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The stable code.
            pub fn code(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }

            /// What it means, and what to do, both in Markdown.
            pub fn texts(self) -> [&'static str; 2] {
                match self {
                    $(Self::$name => [concat!($($doc),*), $remedy],)*
                }
            }
        }
    };
}

faults! {
    /// The annotation begins with `instrumentation.opentelemetry.io/`, but does not exist, such as
    /// `inject-jva`.
    UnknownAnnotation: "unknown-annotation", "correct its name";
    /// The prefix is another one, such as `opentelemetry.com/inject-java`.
    WrongPrefix: "wrong-prefix", "correct the prefix";
    /// It is a label, and not one that opts in (docs/guides/opt-in.md#by-labels).
    IsLabel: "label-instead-of-annotation", "make it an annotation";
    /// The annotation or label is on the workload or the job template, and not in the pod template.
    OnWorkload: "annotation-on-workload", "move it to the pod template";
    /// The value in the manifest is not quoted.
    NotAString: "annotation-not-a-string", "quote it";
    /// Only Instrumentations have the annotation.
    InstrumentationsOnly: "annotation-for-instrumentations", "remove it";
    /// Only namespaces have the annotation.
    NamespacesOnly: "annotation-for-namespaces", "set it on the namespace";
    /// The annotation `otel-webhook/paused` of a namespace or an Instrumentation is neither `true` nor
    /// `false`, so it pauses nothing.
    PausedUnclear: "paused-unclear", "set it to `true`, or remove it";
    /// The annotation `otel-webhook/default-image-…` of a namespace names no language, or its value is
    /// not an image reference.
    DefaultImageInvalid: "default-image-invalid", "correct the annotation";
    /// The annotation `otel-webhook/restart` is none of `rollout`, `evict` and `never`, or on a pod or a pod
    /// template, so it consents to nothing.
    RestartUnclear: "restart-unclear", "correct its value, or move it to the workload";
    /// The selector of an Instrumentation would opt the pods in, but a label is misspelt, is on the workload instead of
    /// its pod template, or, by `explain` alone, is missing on the pod template or the namespace.
    NearlySelected: "nearly-selected", "correct the label, or ignore this if the pods are not meant to be injected";
}

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

impl Mistake {
    /// Whether its author opted in or out by it, to no effect. A selector may opt in what was not meant to be.
    pub fn is_of_opt_in(&self) -> bool {
        self.fault != Fault::NearlySelected
    }
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
            let (fault, message, remedy) = fault_of_default_image(language, &said.text(), self.is_namespace)?;
            return Some((fault, format!("the annotation {whole} {message}"), remedy));
        }
        if key.whole == PAUSED_ANNOTATION {
            let (fault, message, remedy) = fault_of_pause(&said.text(), self.is_namespace)?;
            return Some((fault, format!("the annotation {whole} {message}"), remedy));
        }
        if key.whole == RESTART_ANNOTATION {
            let (message, remedy) = self.problem_of_consent(&said.text())?;
            return Some((Fault::RestartUnclear, format!("the annotation {whole} {message}"), remedy));
        }
        if key.is_prefixed && key.is_default_image()
            || [ALLOWED_NAMESPACES, RESUME_ANNOTATION].contains(&key.whole)
        {
            let message = format!("the annotation {whole} only has an effect on Instrumentations");
            return Some((Fault::InstrumentationsOnly, message, "remove it".to_owned()));
        }
        if let Some(word) = key.whole.strip_prefix(OWN_PREFIX)
            && !OWN_KEYS.contains(&word)
            && !key.whole.starts_with(declarative::ANNOTATION)
            && language::keys().all(|known| known != word)
        {
            return Some(unknown_own(&whole.to_string(), word));
        }
        if let Some(word) = key.inject_of(&said.text()).filter(|word| !effective.has(word)) {
            let message = format!("the annotation {whole} has no effect");
            return Some((Fault::UnknownAnnotation, message, self.set(word, Said::Text("true"))));
        }
        if !key.is_prefixed {
            let word = key.meant().filter(|word| !effective.has(word))?;
            let message = format!("the annotation {whole} is ignored because of its prefix");
            return Some((Fault::WrongPrefix, message, self.set(word, said)));
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

    /// What is wrong with the consent to restarts: the rest of the sentence, and what to do.
    fn problem_of_consent(&self, value: &str) -> Option<(String, String)> {
        if self.above.is_none() && !self.is_namespace {
            let message = "has no effect on pods and pod templates".to_owned();
            return Some((message, "move it to the annotations of the workload".to_owned()));
        }
        let message = || format!("is \"{}\", which consents to nothing", shown(value));
        (!CONSENTS.contains(&value)).then(|| (message(), format!("use one of {}", CONSENTS.join(", "))))
    }

    fn of_label(
        &self,
        key: &Key<'_>,
        said: Said<'_>,
        metadata: &Metadata<'_>,
        effective: &Metadata<'_>,
    ) -> Option<(Fault, String, String)> {
        let whole = shown(key.whole);
        if let Some(word) = key.inject_of(&said.text()) {
            let message = format!("the label {whole} has no effect");
            return Some((Fault::IsLabel, message, self.set(word, Said::Text("true"))));
        }
        let word = key.meant().filter(|word| !effective.has(word) && !metadata.has(word))?;
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
        let own = key.word.strip_prefix("inject-").filter(|own| !own.is_empty());
        let agent = own.map(|own| {
            let own = shown(own);
            format!("; for an agent \"{own}\" of spec.agents, set {ANNOTATION_PREFIX}inject-agent: \"{own}\"")
        });
        let remedy = format!(
            "remove it; to opt in, set {ANNOTATION_PREFIX}inject-LANGUAGE in {}.annotations (languages: {}){}",
            self.at,
            languages.join(", "),
            agent.unwrap_or_default()
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

/// What is wrong with the annotation of a namespace for the default image of a language (D39): the rest of the sentence, and what to do.
fn fault_of_default_image(
    language: &str,
    value: &str,
    is_of_namespace: bool,
) -> Option<(Fault, String, String)> {
    if !is_of_namespace {
        let message = "only has an effect on namespaces".to_owned();
        return Some((Fault::NamespacesOnly, message, "set it on the namespace".to_owned()));
    }
    let names: Vec<_> = defaults::LANGUAGES.iter().map(|known| known.language).collect();
    if !names.contains(&language) {
        let message = format!("names no language with an image: \"{}\"", shown(language));
        return Some((Fault::DefaultImageInvalid, message, format!("use one of {}", names.join(", "))));
    }
    let message = || format!("is \"{}\", which is not an image reference and is ignored", shown(value));
    let remedy = || format!("set a reference such as registry.example.com/agents/{language}:1.0");
    (!image::is_reference(value)).then(|| (Fault::DefaultImageInvalid, message(), remedy()))
}

/// What is wrong with an annotation under our own prefix that does not exist.
fn unknown_own(whole: &str, word: &str) -> (Fault, String, String) {
    let image = NAMESPACE_IMAGE_PREFIX.trim_start_matches(OWN_PREFIX);
    let images: Vec<_> = defaults::LANGUAGES.iter().map(|known| [image, known.language].concat()).collect();
    let known = OWN_KEYS.into_iter().chain(images.iter().map(String::as_str));
    let message = format!("unknown annotation {whole}");
    let (message, remedy) = match nearest(word, known) {
        Some(near) => {
            (format!("{message} (did you mean {near:?}?)"), format!("rename it to {OWN_PREFIX}{near}"))
        }
        None => (message, "remove it".to_owned()),
    };
    (Fault::UnknownAnnotation, message, remedy)
}

/// What is wrong with the annotation that pauses injection: the rest of the sentence, and what to do.
fn fault_of_pause(value: &str, is_of_namespace: bool) -> Option<(Fault, String, String)> {
    if !is_of_namespace {
        let message = "only has an effect on namespaces and Instrumentations".to_owned();
        return Some((Fault::NamespacesOnly, message, "set it on the namespace".to_owned()));
    }
    let message = || format!("is \"{}\", which pauses nothing", shown(value));
    is_unclear(value).then(|| (Fault::PausedUnclear, message(), UNCLEAR_REMEDY.to_owned()))
}

/// Domains of other annotations of the OpenTelemetry Operator, and of the webhook's own.
const WITH_OTHER_KEYS: [&str; 3] = ["sidecar.opentelemetry.io", "resource.opentelemetry.io", "otel-webhook"];

/// Parts of a domain that show that an annotation of ours is meant. `newrelic` is not among them: that product has
/// annotations such as `instrumentation.newrelic.com/inject-java`.
const OURS: [&str; 2] = ["opentelemetry", "otel"];

/// A key that may be meant as one of ours.
struct Key<'a> {
    /// The whole key.
    whole: &'a str,
    /// The rest after the domain.
    word: &'a str,
    /// Whether it has the prefix.
    is_prefixed: bool,
    /// Whether only the exact name of an annotation is one of ours.
    is_exact: bool,
}

impl<'a> Key<'a> {
    /// Reads a key. `None` if it belongs to something else.
    fn of(whole: &'a str) -> Option<Self> {
        if let Some(word) = whole.strip_prefix(ANNOTATION_PREFIX) {
            return Some(Self { whole, word, is_prefixed: true, is_exact: false });
        }
        let (domain, word) = whole.rsplit_once('/').unwrap_or(("", whole));
        let is_exact = domain.is_empty() || WITH_OTHER_KEYS.contains(&domain);
        (is_exact || is_like_ours(domain)).then_some(Self { whole, word, is_prefixed: false, is_exact })
    }

    /// The annotation that is probably meant, without the prefix.
    fn meant(&self) -> Option<&'static str> {
        let exact = language::keys().find(|known| *known == self.word);
        let is_of_ours = |word: &&str| !self.is_exact || LANGUAGES.iter().any(|row| row.inject == *word);
        match exact {
            Some(word) => Some(word).filter(is_of_ours),
            None if self.is_exact => None,
            None => near(self.word),
        }
    }

    /// The annotation that `inject: LANGUAGE` probably means, without the prefix.
    fn inject_of(&self, value: &str) -> Option<&'static str> {
        // The operator has an annotation `sidecar.opentelemetry.io/inject`.
        let is_ours = self.word == "inject" && (self.is_prefixed || self.whole == "inject");
        let mut languages = LANGUAGES.iter().filter(|_| is_ours);
        languages.find(|row| row.name == value).map(|row| row.inject)
    }

    /// Whether it is an annotation of pods and namespaces.
    fn is_known(&self) -> bool {
        self.is_prefixed && language::keys().any(|known| known == self.word)
    }

    /// Whether it is one by which the operator keeps the default images of Instrumentations.
    fn is_default_image(&self) -> bool {
        self.word.starts_with("default-auto-instrumentation-") && self.word.ends_with("-image")
    }

    /// The end of an annotation with a default image of a namespace, which is the language.
    fn default_image_of(&self) -> Option<&'a str> {
        self.whole.strip_prefix(NAMESPACE_IMAGE_PREFIX)
    }
}

/// The most similar annotation, without the prefix.
fn near(word: &str) -> Option<&'static str> {
    // Few letters differ between "inject" and "inject-go", but it is no misspelling.
    let is_bare = word.trim_end_matches('-') == "inject";
    nearest(word, language::keys()).filter(|_| !is_bare)
}

/// Whether a domain was probably meant as ours.
fn is_like_ours(domain: &str) -> bool {
    let domain = domain.to_ascii_lowercase();
    if domain == "instrumentation" {
        return true;
    }
    domain.split('.').any(|part| {
        let is_similar = |name: &str| name.len() > 8 && nearest(part, [name]).is_some();
        OURS.iter().any(|name| part == *name || is_similar(name))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The faults of an object, with field and value.
    fn found(object: &Value) -> Vec<(Fault, String, String)> {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        let all = of(object, text("apiVersion"), text("kind"));
        all.into_iter().map(|mistake| (mistake.fault, mistake.field.clone(), mistake.to_string())).collect()
    }

    fn pod(metadata: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "app"}]}})
    }

    fn annotated(key: &str) -> Vec<(Fault, String, String)> {
        found(&pod(&json!({"annotations": {key: "true"}})))
    }

    fn workload(api_version: &str, kind: &str, own: &Value, template: &Value) -> Value {
        json!({"apiVersion": api_version, "kind": kind, "metadata": own, "spec": {"template": {
            "metadata": template, "spec": {"containers": [{"name": "app"}]}}}})
    }

    const JAVA: &str = "instrumentation.opentelemetry.io/inject-java";

    #[test]
    fn valid_annotations_and_those_of_others_are_no_mistakes() {
        let valid: serde_json::Map<_, _> =
            language::keys().map(|key| (format!("{ANNOTATION_PREFIX}{key}"), json!("a"))).collect();
        assert_eq!(found(&pod(&json!({"annotations": valid}))), []);
        for other in [
            "instrumentation.newrelic.com/inject-java",
            "sidecar.opentelemetry.io/inject",
            "resource.opentelemetry.io/service.name",
            "sidecar.istio.io/inject",
            "admission.datadoghq.com/java-lib.version",
            "linkerd.io/inject",
            "example.com/inject-java",
            "container-names",
            "inject",
            "otel-webhook/status",
            "otel-webhook/injected",
        ] {
            assert_eq!(annotated(other), [], "{other}");
            assert_eq!(found(&pod(&json!({"labels": {other: "true"}}))), [], "{other}");
        }
    }

    #[test]
    fn unknown_annotations_have_the_valid_one_as_remedy() {
        let (fault, field, text) = annotated("instrumentation.opentelemetry.io/inject-jva").remove(0);
        assert_eq!(fault, Fault::UnknownAnnotation);
        assert_eq!(field, "metadata.annotations[instrumentation.opentelemetry.io/inject-jva]");
        let expected = "unknown annotation instrumentation.opentelemetry.io/inject-jva (did you mean \"inject-java\"?); \
                        set instrumentation.opentelemetry.io/inject-java: \"true\" in metadata.annotations";
        assert_eq!(text, expected);
        let (_, _, text) = annotated("instrumentation.opentelemetry.io/inject").remove(0);
        assert!(
            text.ends_with("(languages: java, nodejs, python, dotnet, go, apache-httpd, nginx, sdk)"),
            "{text}"
        );
        let (fault, _, text) =
            annotated("instrumentation.opentelemetry.io/default-auto-instrumentation-java-image").remove(0);
        assert_eq!(fault, Fault::InstrumentationsOnly);
        assert!(text.ends_with("-java-image only has an effect on Instrumentations; remove it"), "{text}");
    }

    #[test]
    fn wrong_prefixes_are_found() {
        for key in [
            "opentelemetry.com/inject-java",
            "opentelemetry.io/inject-java",
            "instrumentation.opentelemetry.com/inject-java",
            "instrumentation.opentelemtry.io/inject-java",
            "Instrumentation.OpenTelemetry.io/inject-java",
            "sidecar.opentelemetry.io/inject-java",
            "otel.io/inject-jav",
            "otel-webhook/inject-java",
            "instrumentation/inject-java",
            "inject-java",
        ] {
            let all = annotated(key);
            let [(fault, field, text)] = &all[..] else { panic!("{key}: {all:?}") };
            assert_eq!(*fault, Fault::WrongPrefix, "{key}");
            assert_eq!(*field, format!("metadata.annotations[{key}]"));
            assert!(text.ends_with(&format!("set {JAVA}: \"true\" in metadata.annotations")), "{text}");
            let both = json!({"annotations": {key: "true", JAVA: "true"}});
            assert_eq!(found(&pod(&both)), [], "the valid one is set, too");
        }
    }

    #[test]
    fn only_labels_that_opt_in_have_an_effect() {
        let names = format!("{ANNOTATION_PREFIX}container-names");
        let all = found(&pod(&json!({"labels": {JAVA: "true", (&*names): "app", "app": "a"}})));
        let expected = format!(
            "the label {names} has no effect; only annotations have; set {names}: \"app\" in metadata.annotations"
        );
        assert_eq!(all, [(Fault::IsLabel, format!("metadata.labels[{names}]"), expected)]);
        let both = json!({"labels": {(&*names): "app"}, "annotations": {(&*names): "app"}});
        assert_eq!(found(&pod(&both)), [], "a selector may use the label");
        let misspelt = "opentelemetry.io/inject-java";
        let (fault, _, text) = found(&pod(&json!({"labels": {misspelt: "true"}}))).remove(0);
        let expected = format!(
            "the label {misspelt} has no effect; {JAVA} has; set {JAVA}: \"true\" in metadata.annotations"
        );
        assert_eq!((fault, text), (Fault::IsLabel, expected));
    }

    #[test]
    fn a_label_that_opts_in_belongs_to_the_template() {
        let label = json!({"labels": {JAVA: "true"}});
        let expected = format!(
            "the label {JAVA} has no effect on the Deployment itself; move it to spec.template.metadata.labels"
        );
        let all = found(&workload("apps/v1", "Deployment", &label, &json!({})));
        assert_eq!(all, [(Fault::OnWorkload, format!("metadata.labels[{JAVA}]"), expected)]);
        assert_eq!(found(&workload("apps/v1", "Deployment", &label, &label)), []);
    }

    #[test]
    fn annotations_above_the_template_are_found_in_every_kind_that_has_one() {
        let own = json!({"annotations": {JAVA: "true"}});
        for (api_version, kind) in [
            ("apps/v1", "Deployment"),
            ("argoproj.io/v1alpha1", "Rollout"),
            ("apps.kruise.io/v1beta1", "CloneSet"),
        ] {
            let all = found(&workload(api_version, kind, &own, &json!({})));
            let expected = format!(
                "the annotation {JAVA} has no effect on the {kind} itself; move it to spec.template.metadata.annotations"
            );
            assert_eq!(all, [(Fault::OnWorkload, format!("metadata.annotations[{JAVA}]"), expected)]);
            assert_eq!(found(&workload(api_version, kind, &own, &own)), [], "it is in the template, too");
        }
        let cron_job = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {}, "spec": {"jobTemplate": {
            "metadata": own, "spec": {"template": {"spec": {"containers": []}}}}}});
        let (fault, field, text) = found(&cron_job).remove(0);
        assert_eq!(
            (fault, &*field),
            (Fault::OnWorkload, &*format!("spec.jobTemplate.metadata.annotations[{JAVA}]"))
        );
        assert!(text.contains("has no effect on the job template itself"), "{text}");
        assert!(text.ends_with("move it to spec.jobTemplate.spec.template.metadata.annotations"), "{text}");
    }

    #[test]
    fn a_namespace_may_be_misspelt_and_other_objects_are_skipped() {
        let metadata =
            json!({"name": "shop", "annotations": {"instrumentation.opentelemetry.io/inject-jav": "true"}});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        assert_eq!(found(&namespace)[0].0, Fault::UnknownAnnotation);
        assert_eq!(found(&json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata})), []);
        let other =
            json!({"apiVersion": "a/v1", "kind": "A", "metadata": metadata, "spec": {"template": {}}});
        assert_eq!(found(&other), [], "it has no pod template");
    }

    #[test]
    fn values_have_to_be_strings() {
        let (fault, _, text) = found(&pod(&json!({"annotations": {JAVA: true}}))).remove(0);
        assert_eq!(fault, Fault::NotAString);
        assert_eq!(
            text,
            format!("the value of the annotation {JAVA} is true, not a string; quote it: \"true\"")
        );
    }

    #[test]
    fn inject_with_a_language_and_unknown_languages_are_explained() {
        let prefixed = format!("{ANNOTATION_PREFIX}inject");
        for (list, key, fault) in [
            ("labels", "inject", Fault::IsLabel),
            ("labels", &prefixed, Fault::IsLabel),
            ("annotations", "inject", Fault::UnknownAnnotation),
            ("annotations", &prefixed, Fault::UnknownAnnotation),
        ] {
            let (found, _, text) = found(&pod(&json!({list: {key: "java"}}))).remove(0);
            assert_eq!(found, fault, "{text}");
            assert!(
                text.ends_with(&format!("has no effect; set {JAVA}: \"true\" in metadata.annotations")),
                "{text}"
            );
        }
        assert_eq!(
            found(&pod(&json!({"labels": {"inject": "enabled"}}))),
            [],
            "it belongs to something else"
        );
        let ruby = format!("{ANNOTATION_PREFIX}inject-ruby");
        let (fault, _, text) = annotated(&ruby).remove(0);
        assert_eq!(fault, Fault::UnknownAnnotation);
        let remedy =
            format!("for an agent \"ruby\" of spec.agents, set {ANNOTATION_PREFIX}inject-agent: \"ruby\"");
        assert!(text.ends_with(&remedy), "{text}");
    }

    #[test]
    fn a_parsed_pod_has_the_same_mistakes_and_their_number_is_bounded() {
        let keys = (0..100).map(|number| (format!("{ANNOTATION_PREFIX}inject-jva{number}"), json!("true")));
        let labels = json!({"otel.io/inject-java": "true"});
        let few = pod(&json!({"annotations": {"inject-java": "order"}, "labels": labels}));
        let many = pod(&json!({"annotations": keys.collect::<serde_json::Map<_, _>>()}));
        for (object, count) in [(few, 2), (many, MOST + 1)] {
            let text = object.to_string();
            let parsed = of_pod(&Pod::parse(&text).expect("a pod"));
            assert_eq!((parsed.len(), parsed), (count, of(&object, "v1", "Pod")));
        }
    }

    #[test]
    fn default_images_are_those_of_namespaces_and_languages() {
        let named = |kind: &str, key: &str, value: &str| {
            let metadata = json!({"annotations": {key: value}});
            let object =
                json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": {"containers": []}});
            found(&object).pop().map(|(fault, _, text)| (fault.code(), text))
        };
        let java = "otel-webhook/default-image-java";
        assert_eq!(named("Namespace", java, "registry.example.com/java:2"), None);
        for (kind, key, value, code, text) in [
            (
                "Pod",
                java,
                "own:1",
                "annotation-for-namespaces",
                "the annotation otel-webhook/default-image-java only has an effect on namespaces; set it on the namespace",
            ),
            (
                "Namespace",
                "otel-webhook/default-image-jva",
                "own:1",
                "default-image-invalid",
                "the annotation otel-webhook/default-image-jva names no language with an image: \"jva\"; use one of java, \
                 nodejs, python, dotnet, go, apache-httpd, nginx",
            ),
            (
                "Namespace",
                java,
                "own 1",
                "default-image-invalid",
                "the annotation otel-webhook/default-image-java is \"own 1\", which is not an image reference and is \
                 ignored; set a reference such as registry.example.com/agents/java:1.0",
            ),
        ] {
            assert_eq!(named(kind, key, value), Some((code, text.to_owned())));
        }
    }

    #[test]
    fn pauses_are_those_of_namespaces_and_clear() {
        let key = "otel-webhook/paused";
        let namespace = |value: &str| {
            found(
                &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "annotations": {key: value}}}),
            )
        };
        for value in ["true", "TRUE", "false", ""] {
            assert_eq!(namespace(value), [], "{value:?}");
        }
        let field = format!("metadata.annotations[{key}]");
        let unclear = "the annotation otel-webhook/paused is \"on\", which pauses nothing; set it to \"true\" to pause \
                       injection, or remove it";
        assert_eq!(namespace("on"), [(Fault::PausedUnclear, field.clone(), unclear.to_owned())]);
        let misplaced = "the annotation otel-webhook/paused only has an effect on namespaces and Instrumentations; set it on \
                         the namespace";
        assert_eq!(annotated(key), [(Fault::NamespacesOnly, field.clone(), misplaced.to_owned())]);
        let deployment =
            workload("apps/v1", "Deployment", &json!({"annotations": {key: "true"}}), &json!({}));
        assert_eq!(found(&deployment), [(Fault::NamespacesOnly, field, misplaced.to_owned())]);
    }

    #[test]
    fn consents_to_restarts_are_those_of_workloads_and_namespaces_and_clear() {
        let key = "otel-webhook/restart";
        let on = |kind: &str, value: &str| {
            let own = json!({"name": "shop", "annotations": {key: value}});
            let object = match kind {
                "Namespace" => json!({"apiVersion": "v1", "kind": kind, "metadata": own}),
                _ => workload("apps/v1", kind, &own, &json!({})),
            };
            found(&object)
        };
        for kind in ["Namespace", "Deployment"] {
            for value in CONSENTS {
                assert_eq!(on(kind, value), [], "{kind}: {value}");
            }
            let text = "the annotation otel-webhook/restart is \"rolout\", which consents to nothing; use one of rollout, \
                        evict, never";
            let field = format!("metadata.annotations[{key}]");
            assert_eq!(on(kind, "rolout"), [(Fault::RestartUnclear, field, text.to_owned())], "{kind}");
        }
        let template = json!({"annotations": {key: "rollout"}});
        let text = "the annotation otel-webhook/restart has no effect on pods and pod templates; move it to the \
                    annotations of the workload";
        let field = format!("spec.template.metadata.annotations[{key}]");
        let found = found(&workload("apps/v1", "Deployment", &json!({}), &template));
        assert_eq!(found, [(Fault::RestartUnclear, field, text.to_owned())]);
    }

    #[test]
    fn unknown_annotations_under_the_own_prefix_are_mistakes() {
        for (key, text) in [
            (
                "otel-webhook/default-images-java",
                " (did you mean \"default-image-java\"?); rename it to otel-webhook/default-image-java",
            ),
            ("otel-webhook/delivry", " (did you mean \"delivery\"?); rename it to otel-webhook/delivery"),
            ("otel-webhook/nothing-of-ours", "; remove it"),
        ] {
            let field = format!("metadata.annotations[{key}]");
            let text = format!("unknown annotation {key}{text}");
            assert_eq!(annotated(key), [(Fault::UnknownAnnotation, field, text)]);
        }
        for key in [ALLOWED_NAMESPACES, RESUME_ANNOTATION] {
            let text = format!("the annotation {key} only has an effect on Instrumentations; remove it");
            let field = format!("metadata.annotations[{key}]");
            assert_eq!(annotated(key), [(Fault::InstrumentationsOnly, field, text)]);
        }
        let of_others = ["allowed-namespaces", "paused", "restart", "resume-restart"];
        for key in OWN_KEYS.iter().filter(|key| !of_others.contains(key)) {
            assert_eq!(annotated(&format!("{OWN_PREFIX}{key}")), [], "{key}");
        }
    }
}
