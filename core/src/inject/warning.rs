//! Warnings: what was asked for and did not come, and what came and will probably not do what was meant.

use std::fmt;

use super::{
    Outcome,
    edit::{ContainerEdit, PodEdit},
    env::Env,
    job::Finding,
    language::Language,
    note::Note,
    pod::Container,
};
use crate::api::otlp::{self, Seen};

/// A warning for whoever sent the pod.
#[derive(Clone, Copy, Debug)]
pub struct Warning<'f> {
    /// The first finding that it is about.
    pub finding: &'f Finding,
    /// What is probably not meant; none where the reason itself is the warning.
    pub note: Option<&'f Note>,
    /// How many more findings it is about.
    pub more: usize,
}

impl Outcome {
    /// The warnings as sentences.
    pub fn warnings(&self) -> Vec<String> {
        self.told().iter().map(ToString::to_string).collect()
    }

    /// The warnings; see [`told`].
    pub fn told(&self) -> Vec<Warning<'_>> {
        told(&self.findings)
    }
}

/// The warnings of findings, each thing once: first what was asked for and did not come, one warning a
/// language, then what came and is probably not meant, one warning a note for all its containers.
pub fn told(findings: &[Finding]) -> Vec<Warning<'_>> {
    let troubles = findings.iter().filter(|finding| finding.reason.is_trouble());
    let troubles = troubles.map(|finding| (finding, None));
    let noted = findings.iter().flat_map(|finding| {
        finding.notes.iter().filter(|note| note.is_warning()).map(move |note| (finding, Some(note)))
    });
    let mut warnings: Vec<Warning<'_>> = Vec::new();
    for (finding, note) in troubles.chain(noted) {
        match warnings.iter_mut().find(|warning| warning.is_about(finding, note)) {
            Some(first) => first.more += 1,
            None => warnings.push(Warning { finding, note, more: 0 }),
        }
    }
    warnings
}

impl Warning<'_> {
    /// The stable code of what is warned of, in camel case.
    pub fn code(&self) -> &'static str {
        self.note.map_or_else(|| self.finding.reason.code(), Note::code)
    }

    fn is_about(&self, finding: &Finding, note: Option<&Note>) -> bool {
        self.note == note && (note.is_some() || self.finding.language == finding.language)
    }
}

impl fmt::Display for Warning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.note {
            Some(note) => write!(f, "{}: {note}", self.finding.subject())?,
            None => self.finding.fmt(f)?,
        }
        if self.more > 0 { write!(f, " (and {} more)", self.more) } else { Ok(()) }
    }
}

/// Adds the warnings about each injected container to what came of it. All languages are in by
/// now, so the variables are those that the container will have.
pub fn add(findings: &mut [Finding], edit: &PodEdit<'_>) {
    for finding in findings.iter_mut().filter(|finding| finding.reason.is_injected()) {
        let named =
            |edited: &&ContainerEdit<'_>| finding.container.as_deref() == Some(&*edited.container.name);
        let Some(edited) = edit.containers.iter().find(named) else { continue };
        let Some(language) = Language::named(finding.language) else { continue };
        if language.exports_from_target {
            finding.notes.extend(of_exporter(&edited.env, Some(edited.container)));
        }
    }
}

/// The warnings about the exporter of a container with these variables. `container` is as the pod
/// came, none for one that is added.
pub fn of_exporter(env: &Env<'_>, container: Option<&Container<'_>>) -> impl Iterator<Item = Note> {
    let sources = container.and_then(|container| container.sources().ok()).unwrap_or_default();
    let look = |name: &'static str| match env.get(name) {
        Some(entry) if entry.from.is_some() => Seen::Hidden,
        Some(entry) => Seen::Value(&entry.value),
        None if sources.iter().any(|source| name.starts_with(&*source.prefix)) => Seen::Hidden,
        None => Seen::Unset,
    };
    otlp::problems(look, None).into_iter().map(Note::Exporter)
}
