//! The languages that are opted in to, and by what.

use std::rc::Rc;

use crate::{
    annotation::{Ask, MOST_AGENTS},
    compiled::Compiled,
    containers::Listed,
    language::Language,
    note::Note,
    reason::{Annotation, Reason},
};
use otel_webhook_api::ANNOTATION_PREFIX;

/// What opts in to a language; the last one overrides the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// The selector of the Instrumentation.
    Selector,
    /// An annotation or a label of the namespace.
    Namespace,
    /// An annotation or a label of the pod.
    Pod,
}

/// What is injected: a language, or an agent of `spec.agents`.
#[derive(Clone, Copy)]
pub struct Subject<'p> {
    /// The language.
    pub language: &'static Language,
    /// The agent, if the language stands for those.
    pub agent: Option<&'p str>,
}

impl From<&'static Language> for Subject<'_> {
    fn from(language: &'static Language) -> Self {
        Self { language, agent: None }
    }
}

/// A language that is opted in to, and by what.
pub struct Asked<'p> {
    /// The language.
    pub subject: Subject<'p>,
    /// What opts in.
    pub by: By,
    /// The choice of its Instrumentation.
    pub choice: Choice<'p>,
}

/// The choice of an Instrumentation.
pub enum Choice<'p> {
    /// By the value of an annotation or a label.
    Value(Ask<'p>),
    /// By the selectors: the Instrumentation, or why none is used.
    Selected(Result<&'p Compiled, Reason>),
}

impl<'p> Choice<'p> {
    /// The choices for an annotation that names agents.
    ///
    /// # Errors
    /// The reason if it names too many.
    pub fn agents(annotation: Annotation, value: &'p str) -> Result<Vec<Self>, Reason> {
        let asked = Ask::agents(value);
        if asked.len() > MOST_AGENTS {
            return Err(Reason::TooManyAgents { annotation, most: MOST_AGENTS });
        }
        Ok(asked.into_iter().map(Self::Value).collect())
    }

    /// The agent of `spec.agents` that is named.
    pub fn agent(&self) -> Option<&'p str> {
        match self {
            Self::Value(Ask::Agent { name }) => Some(name),
            Self::Value(_) | Self::Selected(_) => None,
        }
    }
}

impl Choice<'_> {
    /// The note about the opt-in, if only a selector opts in.
    pub fn note(&self) -> Option<Note> {
        match self {
            Self::Selected(Ok(used)) => Some(Note::OptedInBySelector { name: used.name.clone() }),
            Self::Selected(Err(_)) | Self::Value(_) => None,
        }
    }
}

/// A language that is opted in to, with its Instrumentation.
pub struct Wanted<'p> {
    /// The language.
    pub subject: Subject<'p>,
    /// Its Instrumentation.
    pub instrumentation: &'p Compiled,
    /// The lists of its containers.
    pub listed: Rc<Listed<'p>>,
    /// What opts in.
    pub by: By,
}

impl Wanted<'_> {
    /// The note about the opt-in, if only a selector opts in.
    pub fn note(&self) -> Option<Note> {
        let name = || self.instrumentation.name.clone();
        (self.by == By::Selector).then(|| Note::OptedInBySelector { name: name() })
    }
}

/// Why nothing is injected: each language needs a list of its containers.
pub fn list_missing(wanted: &[Wanted<'_>]) -> Reason {
    let without = wanted.iter().filter(|one| !one.listed.is_there());
    let missing = without.map(|one| [ANNOTATION_PREFIX, one.subject.language.containers].concat());
    let missing = unique(missing);
    Reason::ContainerListMissing { languages: names(wanted.iter()), missing }
}

/// Whether the containers of each language are known.
pub fn is_clear(wanted: &[Wanted<'_>]) -> bool {
    // All agents have the same list.
    let Some(first) = wanted.first() else { return true };
    let is_same = |one: &Wanted<'_>| one.subject.language.id == first.subject.language.id;
    wanted.iter().all(is_same) || wanted.iter().all(|one| one.listed.is_there())
}

/// The names of languages, each once.
pub fn names<'w, 'p: 'w>(wanted: impl Iterator<Item = &'w Wanted<'p>>) -> Vec<String> {
    unique(wanted.map(|one| one.subject.language.name.to_owned()))
}

/// The different ones of a list in the order of languages.
fn unique(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<_> = names.collect();
    names.dedup();
    names
}
