//! One line of a report: the result for a language in a container.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::{Value, json};

use crate::output;
use otel_webhook_api::ANNOTATION_PREFIX;
use otel_webhook_inject::{
    Finding, Note, language::LANGUAGES, mistakes::Mistake, reason::DependsOn, shown::shown,
};
use otel_webhook_store::unread::Unsure;

/// The column headers.
const COLUMNS: [&str; 5] = ["CONTAINER", "LANGUAGE", "OUTCOME", "INSTRUMENTATION", "REASON"];

/// The outcome of what is injected.
const INJECTED: &str = "Injected";

/// The result for a language in a container.
pub struct Line {
    language: &'static str,
    /// The agent of `spec.agents`, if the language stands for those.
    agent: Option<String>,
    container: Option<String>,
    outcome: &'static str,
    is_trouble: bool,
    instrumentation: Option<String>,
    reason: String,
    /// Path of the annotation that opts in, if the pod has it itself.
    field: Option<String>,
    remedy: Option<&'static str>,
    /// What the outcome depends on; `None` if it is no decision of the webhook.
    depends_on: Option<DependsOn>,
    /// Each note, and whether it is a warning.
    notes: Vec<(String, bool)>,
}

impl Line {
    /// Returns the line of a finding. `fields` are the paths of the pod's own annotations that opt in, by language.
    pub fn of(finding: &Finding, fields: &BTreeMap<&'static str, String>) -> Self {
        Self {
            language: finding.language,
            agent: finding.agent.as_deref().map(str::to_owned),
            container: finding.container.clone(),
            outcome: finding.reason.code(),
            is_trouble: finding.reason.is_trouble(),
            instrumentation: finding.instrumentation.as_ref().map(ToString::to_string),
            reason: finding.reason.to_string(),
            field: fields.get(finding.language).cloned(),
            remedy: finding.reason.remedy(),
            depends_on: Some(finding.reason.depends_on()),
            notes: finding.notes.iter().map(|note| (note.to_string(), Note::is_warning(note))).collect(),
        }
    }

    /// Returns the line of a language with an unknown result.
    pub fn unknown(unsure: &Unsure) -> Self {
        Self {
            language: unsure.language,
            agent: None,
            container: None,
            outcome: "NotReadable",
            is_trouble: true,
            instrumentation: None,
            reason: unsure.missing.to_string(),
            field: None,
            remedy: None,
            depends_on: None,
            notes: Vec::new(),
        }
    }

    /// Returns the line if API servers do not send the pod to the webhook.
    #[must_use]
    pub fn without_review(self, cause: &str) -> Self {
        let reason = match (self.is_injected(), self.is_trouble && self.depends_on.is_some()) {
            (true, _) => cause.to_owned(),
            // What to do about the reason has no effect before the pod is sent.
            (false, true) => format!("{cause}; after that, {}: {}", self.outcome, self.reason),
            (false, false) => return self,
        };
        Self { outcome: "NotReviewed", is_trouble: true, reason, remedy: None, notes: Vec::new(), ..self }
    }

    /// Returns whether the language is opted in to and is not injected, or whether this is not known.
    pub fn is_trouble(&self) -> bool {
        self.is_trouble
    }

    /// Returns the language.
    pub fn language(&self) -> &'static str {
        self.language
    }

    /// Returns the code of the outcome.
    pub fn outcome(&self) -> &'static str {
        self.outcome
    }

    /// Returns whether a new pod gets the agent.
    pub fn is_injected(&self) -> bool {
        self.outcome == INJECTED
    }

    /// Returns the reason as a sentence.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns what to do; `None` if the reason says it.
    pub fn remedy(&self) -> Option<&'static str> {
        self.remedy
    }

    /// Returns `namespace/name` of the Instrumentation.
    pub fn instrumentation(&self) -> Option<&str> {
        self.instrumentation.as_deref()
    }

    /// Returns the path of the annotation that opts in, if the pod has it itself.
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// Returns what the outcome depends on; `None` if it is no decision of the webhook.
    pub fn depends_on(&self) -> Option<DependsOn> {
        self.depends_on
    }

    /// Returns the line as JSON.
    pub fn object(&self) -> Value {
        let notes = |warnings: bool| {
            let notes = self.notes.iter().filter(move |(_, is_warning)| *is_warning == warnings);
            notes.map(|(note, _)| note).collect::<Vec<_>>()
        };
        let mut object = json!({
            "container": self.container,
            "language": self.language,
            "outcome": self.outcome,
            "instrumentation": self.instrumentation,
            "reason": self.reason,
            "field": self.field,
            "remedy": self.remedy,
            "notes": notes(false),
            "warnings": notes(true),
        });
        if let Some(agent) = &self.agent {
            object["agent"] = agent.as_str().into();
        }
        object
    }

    /// The language, with the agent if there is one.
    fn name(&self) -> Cow<'_, str> {
        match &self.agent {
            Some(agent) => format!("{}:{}", self.language, shown(agent)).into(),
            None => self.language.into(),
        }
    }

    fn row(&self) -> [String; 5] {
        let dash = || "-".to_owned();
        [
            self.container.clone().unwrap_or_else(dash),
            self.name().into_owned(),
            self.outcome.to_owned(),
            self.instrumentation.clone().unwrap_or_else(dash),
            self.reason.clone(),
        ]
    }

    fn notes(&self) -> impl Iterator<Item = String> {
        let (container, language) = (self.container.as_deref().unwrap_or("-"), self.name());
        let level = |is_warning: bool| if is_warning { "warning" } else { "note" };
        let line = move |(note, is_warning): &(String, bool)| {
            format!("  {} on {language} in {container}: {note}", level(*is_warning))
        };
        self.notes.iter().map(line)
    }
}

/// Returns the indented table of lines, with their notes below it.
pub fn table(lines: &[Line]) -> Vec<String> {
    let table = output::table(COLUMNS, lines.iter().map(Line::row));
    let indented = table.iter().map(|line| format!("  {line}"));
    indented.chain(lines.iter().flat_map(Line::notes)).collect()
}

/// Returns the line of an annotation or a label without effect.
pub fn mistake(mistake: &Mistake) -> String {
    format!("  mistake in {}: {mistake}", mistake.field)
}

/// Returns it as JSON.
pub fn mistake_object(mistake: &Mistake) -> Value {
    json!({
        "code": mistake.fault.code(),
        "field": mistake.field,
        "value": mistake.value,
        "message": mistake.message,
        "remedy": mistake.remedy,
    })
}

/// Returns the line for a pod that does not opt in.
pub fn not_opted_in(languages: &str) -> String {
    format!(
        "  does not opt in; to opt in, set the annotation {ANNOTATION_PREFIX}inject-{}: \"true\" on the pod or its \
         namespace (enabled languages: {languages})",
        LANGUAGES[0].name,
    )
}
