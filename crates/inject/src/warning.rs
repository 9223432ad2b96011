//! Warnings: languages that were opted in to but not injected, and injected ones with a probable mistake.

use std::{
    collections::{HashMap, hash_map},
    fmt,
};

use super::{
    attribute_problem, declarative,
    edit::{ContainerEdit, PodEdit},
    env::Env,
    finding::Finding,
    injection::Plan,
    note::Note,
    other_agent,
    outcome::Outcome,
    pod::{Container, Pod},
    required_nodes,
    resource::RESOURCE_ATTRIBUTES,
};
use otel_webhook_api::otlp::{self, Agent, Variable};

/// A warning for the client that sent the pod.
#[derive(Clone, Copy, Debug)]
pub struct Warning<'f> {
    /// The first finding with it.
    pub finding: &'f Finding,
    /// The note that is the warning; `None` if it is the reason of the finding.
    pub note: Option<&'f Note>,
    /// The number of further findings with it.
    pub more: usize,
}

impl Outcome {
    /// The warnings as sentences.
    pub fn warnings(&self) -> Vec<String> {
        self.all_warnings().iter().map(ToString::to_string).collect()
    }

    /// The warnings; see [`warnings_of`].
    pub fn all_warnings(&self) -> Vec<Warning<'_>> {
        warnings_of(&self.findings)
    }
}

/// The warnings of findings, each once: first about languages that were not injected, one warning for each
/// language, then about notes of injected ones, one warning for each note with all its containers.
pub fn warnings_of(findings: &[Finding]) -> Vec<Warning<'_>> {
    let troubles = findings.iter().filter(|finding| finding.reason.is_trouble());
    let troubles = troubles.map(|finding| (finding, None));
    let noted = findings.iter().flat_map(|finding| {
        finding.notes.iter().filter(|note| note.is_warning()).map(move |note| (finding, Some(note)))
    });
    let mut warnings: Vec<Warning<'_>> = Vec::new();
    let mut seen: HashMap<_, usize> = HashMap::new();
    for (finding, note) in troubles.chain(noted) {
        // A note is the same warning in any language.
        let about = (note, note.is_none().then_some(finding.language));
        match seen.entry(about) {
            hash_map::Entry::Occupied(at) => warnings[*at.get()].more += finding.count(),
            hash_map::Entry::Vacant(free) => {
                free.insert(warnings.len());
                warnings.push(Warning { finding, note, more: 0 });
            }
        }
    }
    warnings
}

impl Warning<'_> {
    /// The stable code of the warning, in camel case.
    pub fn code(&self) -> &'static str {
        self.note.map_or_else(|| self.finding.reason.code(), Note::code)
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

/// Adds the warnings about each injected container to its finding. All languages are injected by
/// now, so the variables are those that the container will have.
pub fn add(findings: &mut [Finding], plans: &[Plan<'_>], edit: &PodEdit<'_>) {
    let injected = |finding: &&mut Finding| finding.reason.is_injected();
    if !findings.iter().any(|finding| finding.reason.is_injected()) {
        return;
    }
    // What is the same for all containers of a language is looked for once.
    let of_language = |plan: &Plan<'_>| {
        let sources = &plan.instrumentation.resource;
        let attributes = attribute_problem::of_sources(sources, edit.pod, plan.decoding());
        let notes = [of_image(plan, edit.pod), of_module(plan)].into_iter().flatten();
        notes.chain(attributes.into_iter().map(Note::Attributes)).collect::<Vec<_>>()
    };
    let of_languages: Vec<_> = plans.iter().map(of_language).collect();
    let edited = by_name(&edit.containers);
    for finding in findings.iter_mut().filter(injected) {
        let plan = plans.iter().zip(&of_languages).find(|(plan, _)| plan.is_of(finding));
        let Some((plan, of_language)) = plan else { continue };
        finding.notes.extend(of_language.iter().cloned());
        let container = finding.container.as_deref();
        if let Some(edited) = container.and_then(|name| edited.get(name)) {
            let others = other_agent::find(plan.language.name, &edited.env);
            finding.notes.extend(others.into_iter().map(Note::OtherAgent));
            finding.notes.extend(of_attributes(plan, &edited.env, edit.pod));
            if plan.language.exports_from_target && !declarative::is_file(plan) {
                finding.notes.extend(of_exporter(plan, &edited.env, Some(edited.container)));
            }
        }
    }
}

/// The edited containers by their names.
fn by_name<'e, 'p>(edits: &'e [ContainerEdit<'p>]) -> HashMap<&'e str, &'e ContainerEdit<'p>> {
    // The first of several with a name.
    edits.iter().rev().map(|edit| (&*edit.container.name, edit)).collect()
}

/// The warnings about the exporter of a container with these variables. `container` is the original
/// container, `None` for an added one.
pub fn of_exporter(
    plan: &Plan<'_>,
    env: &Env<'_>,
    container: Option<&Container<'_>>,
) -> impl Iterator<Item = Note> {
    let sources = container.and_then(|container| container.sources().ok()).unwrap_or_default();
    let look = |name: &'static str| match env.get(name) {
        Some(entry) if entry.from.is_some() => Variable::Hidden,
        Some(entry) => Variable::Value(&entry.value),
        None if sources.iter().any(|source| name.starts_with(&*source.prefix)) => Variable::Hidden,
        None => Variable::Unset,
    };
    otlp::problems(look, agent(plan)).into_iter().map(Note::Exporter)
}

/// The warning about the endpoint of a web server's module, which reads no variables.
fn of_module(plan: &Plan<'_>) -> Option<Note> {
    let directive = plan.language.defaults?.export.directive?;
    let own = plan.prepared().attrs.iter().find(|(name, _)| name == directive);
    let own = own.map(|(_, endpoint)| endpoint.as_str());
    let endpoint = own.or_else(|| plan.instrumentation.exporter.endpoint())?;
    otlp::problem_of_directive(directive, endpoint, agent(plan)).map(Note::Exporter)
}

/// The warning about the resource attributes of a container with these variables.
fn of_attributes(plan: &Plan<'_>, env: &Env<'_>, pod: &Pod<'_>) -> Option<Note> {
    let (value, defaults) = (env.value(RESOURCE_ATTRIBUTES)?, plan.language.defaults?);
    let problem = attribute_problem::of_variable(value, defaults, plan.image, pod);
    problem.map(Note::Attributes)
}

fn agent(plan: &Plan<'_>) -> Agent {
    plan.language.defaults.map_or(Agent::UNKNOWN, |defaults| defaults.agent(plan.image))
}

fn of_image(plan: &Plan<'_>, pod: &Pod<'_>) -> Option<Note> {
    let image = plan.image;
    let lacks = plan.language.defaults?.lacks_arm64(image);
    (lacks && required_nodes::is_arm64_only(&pod.spec))
        .then(|| Note::ImageLacksArm64 { image: image.to_owned() })
}
