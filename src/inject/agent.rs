//! The shape that Java, Node.js, Python and .NET share: an init container
//! copies the agent into a volume, which each target mounts.

use std::borrow::Cow;

use super::{
    edit::{NewContainer, NewInitContainer, NewMount, NewVolume, Place},
    env::Env,
    job::{Job, Note},
    json,
    reason::{Reason, Taken},
    target::{self, Own},
};

/// A condition on the pod as a whole.
type PodCheck = fn(&Job<'_, '_>) -> Result<(), Reason>;

/// A condition on one target.
type TargetCheck = fn(&Job<'_, '_>, &Env<'_>) -> Result<(), Reason>;

/// What an agent that is copied needs, and nothing that is the same for all.
pub struct CopiedAgent {
    /// Name of the volume and of the init container.
    pub name: &'static str,
    /// Where the init container has the volume.
    pub mount_path: &'static str,
    /// Where a target has it.
    pub target_path: fn(container: &str) -> Cow<'static, str>,
    /// Variables that are extended.
    pub extended: &'static [&'static str],
    /// Whether the language fits the pod as a whole, where it has conditions of its own.
    pub fits: Option<PodCheck>,
    /// Whether it fits a target, where it has conditions of its own.
    pub fits_target: Option<TargetCheck>,
    /// What the init containers run, in order, with their names and images.
    pub copies: fn(&Job<'_, '_>) -> Vec<Copying>,
    /// Variables that stand before those of every language.
    pub first: Option<fn(&Call<'_>, &mut Env<'_>)>,
    /// Variables that stand after them.
    pub last: fn(&Call<'_>, &mut Env<'_>),
}

/// An init container's command.
pub struct Copying {
    /// Name of the init container.
    pub name: Cow<'static, str>,
    /// Its image.
    pub image: String,
    /// What it runs.
    pub command: Vec<String>,
}

/// What the variables of a target depend on.
pub struct Call<'c> {
    /// Where the target has the volume.
    pub path: &'c str,
    /// Whether there are extensions to load.
    pub extensions: bool,
}

/// Puts the agent into every target that it fits; adds the volume and the
/// init containers if there was one (D2).
pub fn inject(job: &mut Job<'_, '_>, agent: &CopiedAgent) {
    let copies = (agent.copies)(job);
    if let Err(reason) = check_pod(job, agent, &copies) {
        return job.report_all(reason);
    }
    let mut first_injected = None;
    for &place in &job.plan.targets {
        match inject_target(job, agent, place) {
            Ok(notes) => {
                first_injected.get_or_insert(place);
                job.report(place, Reason::Injected, notes);
            }
            Err(reason) => job.report(place, reason, Vec::new()),
        }
    }
    // Place and security context come from the first that is injected (D15).
    if let Some(place) = first_injected {
        add_to_pod(job, agent, &copies, place);
    }
}

fn check_pod(job: &Job<'_, '_>, agent: &CopiedAgent, copies: &[Copying]) -> Result<(), Reason> {
    if let Some(fits) = agent.fits {
        fits(job)?;
    }
    job.instrumentation().exporter.check_pod(job.facts.pod)?;
    if job.edit.has_volume(agent.name) {
        return Err(Reason::taken(Taken::Volume, agent.name));
    }
    match copies.iter().find(|copying| job.edit.has_container(&copying.name)) {
        Some(copying) => Err(Reason::taken(Taken::Container, &copying.name)),
        None => Ok(()),
    }
}

fn inject_target(job: &mut Job<'_, '_>, agent: &CopiedAgent, place: Place) -> Result<Vec<Note>, Reason> {
    let path = (agent.target_path)(job.name(place));
    target::check(job, place, agent.extended)?;
    let at = job.edit.open(place)?;
    if let Some(fits) = agent.fits_target {
        fits(job, &job.edit.containers[at].env)?;
    }
    target::check_path(&job.edit.containers[at].mounts, &path)?;
    let notes = super::note::of_target(job, place, agent.extended);
    job.edit.containers[at].mounts.add(NewMount {
        volume: agent.name.into(),
        path: path.clone(),
        read_only: false,
    });
    let call = Call { path: &path, extensions: !job.prepared().extensions.is_empty() };
    let first = |env: &mut Env<'_>| {
        if let Some(first) = agent.first {
            first(&call, env);
        }
    };
    let own = Own { first: &first, last: &|env| (agent.last)(&call, env) };
    target::instrument(job, place, &own)?;
    Ok(notes)
}

fn add_to_pod(job: &mut Job<'_, '_>, agent: &CopiedAgent, copies: &[Copying], first: Place) {
    let prepared = job.prepared();
    job.edit.volumes.add(NewVolume {
        name: agent.name.into(),
        source: prepared.volume.as_str().into(),
        is_empty_dir: prepared.volume == prepared.empty_dir,
    });
    let before = job.edit.init_place(first);
    for copying in copies {
        let json = init_container(job, agent, copying, first);
        job.edit.init_containers.push(NewInitContainer {
            before,
            container: NewContainer { name: copying.name.clone().into_owned(), json },
        });
    }
}

fn init_container(job: &Job<'_, '_>, agent: &CopiedAgent, copying: &Copying, first: Place) -> String {
    let mut out = String::with_capacity(512);
    out.push('{');
    json::member(&mut out, "name", &copying.name);
    out.push(',');
    json::member(&mut out, "image", &copying.image);
    out.push_str(",\"command\":");
    json::list(&mut out, &copying.command, |out, word| json::string(out, word));
    out.push_str(",\"volumeMounts\":[{");
    json::member(&mut out, "name", agent.name);
    out.push(',');
    json::member(&mut out, "mountPath", agent.mount_path);
    out.push_str("}]");
    super::container::write_policies(&mut out, job, first);
    out.push('}');
    out
}
