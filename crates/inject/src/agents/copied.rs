//! The common code of Java, Node.js, Python and .NET: an init container
//! copies the agent into a volume, which each target mounts.

use std::borrow::Cow;

use crate::{
    added::{NewContainer, NewInitContainer, NewMount, mounts, pull_policy},
    annotation::Annotations,
    container::{check_security_context, init_resources, security_context},
    edit::{NewVolume, Place, is_empty_dir},
    env::Env,
    injection::Injection,
    note::Note,
    reason::Reason,
    storage::{self, Room},
    target::{self, Own, SearchPath},
};

/// A condition on one target.
type TargetCheck = fn(&Injection<'_, '_>, &Env<'_>) -> Result<(), Reason>;

/// What differs between the agents that are copied.
pub struct CopiedAgent {
    /// Name of the volume and of the init container.
    pub name: &'static str,
    /// The mount path in the init container.
    pub mount_path: &'static str,
    /// The mount path in a target.
    pub target_path: fn(container: &str) -> Cow<'static, str>,
    /// The extended variables.
    pub extended: &'static [&'static str],
    /// The platforms of the agent, if a pod has to choose one.
    pub platforms: Option<Platforms>,
    /// The condition on a target, if there is one.
    pub fits_target: Option<TargetCheck>,
    /// The init containers in order: command, name and image.
    pub copies: for<'p> fn(&Injection<'_, 'p>, platform: &'static str) -> Vec<Copying<'p>>,
    /// The search path that it extends, if any.
    pub search_path: Option<SearchPath>,
    /// Variables after those of every language.
    pub last: fn(&Call<'_>, &mut Env<'_>),
}

/// The platforms of an agent, and the annotation that chooses among them.
#[derive(Debug)]
pub struct Platforms {
    /// The annotation, after the prefix.
    pub annotation: &'static str,
    /// Each platform with its part of the agent's paths; the first
    /// one is the default.
    pub choices: &'static [(&'static str, &'static str)],
}

impl Platforms {
    /// The part of the agent's paths for the chosen platform.
    fn chosen(&self, annotations: &Annotations<'_>) -> Result<&'static str, Reason> {
        let Some((annotation, said)) = annotations.said(self.annotation) else {
            return Ok(self.choices[0].1);
        };
        let chosen = self.choices.iter().find(|(name, _)| *name == said).map(|(_, meaning)| *meaning);
        chosen.ok_or_else(|| Reason::PlatformUnknown {
            annotation,
            value: said.to_owned(),
            valid: self.choices.iter().map(|(name, _)| (*name).to_owned()).collect(),
        })
    }
}

/// An init container's command.
pub struct Copying<'p> {
    /// Name of the init container.
    pub name: Cow<'p, str>,
    /// Its image.
    pub image: &'p str,
    /// Its command.
    pub command: Vec<Cow<'p, str>>,
}

impl<'p> Copying<'p> {
    /// An init container that copies the content of a folder of the agent's image.
    pub fn folder(agent: &CopiedAgent, injection: &Injection<'_, 'p>, folder: &'static str) -> Vec<Self> {
        let command = ["cp", "-r", folder, agent.mount_path].map(Cow::Borrowed);
        vec![Self { name: agent.name.into(), image: &injection.prepared().image, command: command.into() }]
    }
}

/// The input for the variables of a target.
pub struct Call<'c> {
    /// The mount path in the target.
    pub path: &'c str,
    /// The platform's part of the agent's paths.
    pub platform: &'static str,
    /// Whether there are extensions to load.
    pub extensions: bool,
}

/// Injects the agent into every suitable target; adds the volume and the
/// init containers if there is one (D2).
pub fn inject(injection: &mut Injection<'_, '_>, agent: &CopiedAgent) {
    let (platform, copies, room) = match prepare(injection, agent) {
        Ok(ready) => ready,
        Err(reason) => return injection.report_all(reason),
    };
    let injected =
        injection.each_target(|injection, place, _| inject_target(injection, agent, platform, place));
    // Position and security context are those of the first injected target (D15).
    if let Some(&first) = injected.first() {
        add_to_pod(injection, agent, copies, &room, first);
        storage::warn_of_volume(injection, &room);
    }
}

fn prepare<'p>(
    injection: &Injection<'_, 'p>,
    agent: &CopiedAgent,
) -> Result<(&'static str, Vec<Copying<'p>>, Room), Reason> {
    injection.check_security_context()?;
    injection.check_claims(&[&injection.prepared().volume])?;
    let chosen = agent.platforms.as_ref().map(|platforms| platforms.chosen(injection.annotations));
    let platform = chosen.transpose()?.unwrap_or_default();
    let copies = (agent.copies)(injection, platform);
    injection.check_names(&[agent.name], copies.iter().map(|copying| &*copying.name))?;
    let room = storage::check(injection, !is_empty_dir(&injection.prepared().volume))?;
    Ok((platform, copies, room))
}

fn inject_target(
    injection: &mut Injection<'_, '_>,
    agent: &CopiedAgent,
    platform: &'static str,
    place: Place,
) -> Result<Vec<Note>, Reason> {
    let path = (agent.target_path)(injection.name(place));
    target::check(injection, place, agent.extended)?;
    check_security_context(injection, place)?;
    let at = injection.edit.open(place)?;
    if let Some(fits) = agent.fits_target {
        fits(injection, &injection.edit.containers[at].env)?;
    }
    target::check_path(&injection.edit.containers[at].mounts, &path)?;
    let notes = target::of_target(injection, place, agent.extended);
    injection.edit.containers[at].mounts.add(NewMount::new(agent.name, path.clone()));
    let call = Call { path: &path, platform, extensions: !injection.prepared().extensions.is_empty() };
    let last = |env: &mut Env<'_>| (agent.last)(&call, env);
    let own = Own { search_path: agent.search_path.as_ref(), last: &last, ..Own::NOTHING };
    target::instrument(injection, place, &own)?;
    Ok(notes)
}

fn add_to_pod<'p>(
    injection: &mut Injection<'_, 'p>,
    agent: &CopiedAgent,
    copies: Vec<Copying<'p>>,
    room: &Room,
    first: Place,
) {
    let prepared = injection.prepared();
    let volume = NewVolume::new(agent.name, Cow::Borrowed(&prepared.volume));
    injection.edit.volumes.add(volume.holding(room.counted()));
    let before = injection.edit.init_place(first);
    let resources = init_resources(injection, before);
    let mount = NewMount::new(agent.name, agent.mount_path);
    let security_context = security_context(injection, first);
    for Copying { name, image, command } in copies {
        let container = NewContainer {
            command,
            volume_mounts: mounts(Vec::new(), [mount.clone()]),
            image_pull_policy: pull_policy(injection.instrumentation().image_pull_policy.as_deref()),
            security_context: security_context.clone(),
            ..NewContainer::new(name, image, resources.clone())
        };
        injection.edit.add_init_container(NewInitContainer { before, container });
        if injection.edit.check_size(0).is_err() {
            return;
        }
    }
}
