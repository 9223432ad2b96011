//! The common code of Java, Node.js, Python and .NET: an init container
//! copies the agent into a volume, which each target mounts; or each target
//! mounts the agent's image itself.

use std::borrow::Cow;

use super::agent_image::{AgentImage, Content};
use crate::{
    added::{NewContainer, NewInitContainer, NewMount, mounts, pull_policy},
    annotation::Annotations,
    compiled::Prepared,
    container::{check_security_context, check_user, init_resources, security_context},
    delivery::{self, Chosen},
    edit::{NewVolume, Place, is_empty_dir},
    env::Env,
    injection::Injection,
    note::Note,
    path,
    reason::Reason,
    storage::{self, Room},
    target::{self, Own, SearchPath},
};

/// A condition on one target.
type TargetCheck = fn(&Injection<'_, '_>, &Env<'_>) -> Result<(), Reason>;

/// The images of an agent, for the platform's part of its paths.
type Images = for<'c> fn(&CopiedAgent<'c>, &Injection<'_, 'c>, platform: &'static str) -> Vec<AgentImage<'c>>;

/// What differs between the agents that are copied.
pub struct CopiedAgent<'p> {
    /// Name of the volume and of the init container.
    pub name: &'p str,
    /// The mount path in the init container.
    pub mount_path: &'p str,
    /// The mount path in a target, if it is another one.
    pub target_path: Option<fn(container: &str) -> String>,
    /// The extended variables.
    pub extended: &'static [&'static str],
    /// The platforms of the agent, if a pod has to choose one.
    pub platforms: Option<Platforms>,
    /// The condition on a target, if there is one.
    pub fits_target: Option<TargetCheck>,
    /// The images in order.
    pub images: Images,
    /// The search path that it extends, if any.
    pub search_path: Option<SearchPath>,
    /// Variables after those of every language.
    pub last: for<'c> fn(&Call<'_, 'c>, &mut Env<'c>),
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

impl<'p> CopiedAgent<'p> {
    /// The images of an agent of which the content of a folder is used.
    pub fn folder(&self, injection: &Injection<'_, 'p>, folder: &'p str) -> Vec<AgentImage<'p>> {
        let content =
            Content::Folder { from: ["/", folder, "/."].concat().into(), to: self.mount_path.into() };
        vec![AgentImage { name: self.name.into(), image: injection.image(), content, sub_path: Some(folder) }]
    }
}

/// The input for the variables of a target.
pub struct Call<'c, 'p> {
    /// The language's part of the Instrumentation.
    pub prepared: &'p Prepared,
    /// The image of the agent.
    pub image: &'c str,
    /// The mount path in the target.
    pub path: &'c str,
    /// The platform's part of the agent's paths.
    pub platform: &'static str,
    /// The folders of the extensions, comma-separated; empty if there are none.
    pub extensions: &'c str,
}

/// How the agent gets into the pod.
enum Way {
    /// Init containers copy it.
    Copied(Room),
    /// Its images are mounted.
    Mounted,
}

/// What is the same for all targets.
struct Ready<'p> {
    platform: &'static str,
    images: Vec<AgentImage<'p>>,
    way: Way,
}

/// Injects the agent into every suitable target; adds the volumes and the
/// init containers if there is one (D2).
pub fn inject<'p>(injection: &mut Injection<'_, 'p>, agent: &CopiedAgent<'p>) {
    let Chosen { is_mounted, mut notes } = delivery::choose(injection);
    let ready = match prepare(injection, agent, is_mounted) {
        Ok(ready) => ready,
        Err(reason) => return injection.report_all(reason),
    };
    let injected = injection
        .each_target(|injection, place, not_first| inject_target(injection, agent, &ready, place, not_first));
    // Position and security context are those of the first injected target (D15).
    if let Some(&first) = injected.first() {
        match ready.way {
            Way::Copied(room) => {
                notes.extend(check_user(injection, first, &injection.prepared().volume).ok().flatten());
                // The extensions of Java are archives, so that only the agent's own image is of interest.
                notes.extend(ready.images.first().and_then(|image| image.warning(injection)));
                add_init_containers(injection, agent, ready.images, &room, first);
                storage::warn_of_volume(injection, &room);
            }
            Way::Mounted => add_image_volumes(injection, &ready.images),
        }
        for note in notes {
            injection.note_injected(note);
        }
    }
}

fn prepare<'p>(
    injection: &Injection<'_, 'p>,
    agent: &CopiedAgent<'p>,
    is_mounted: bool,
) -> Result<Ready<'p>, Reason> {
    let prepared = injection.prepared();
    if !is_mounted {
        injection.check_security_context()?;
        injection.check_claims(&[&prepared.volume])?;
    }
    let chosen = agent.platforms.as_ref().map(|platforms| platforms.chosen(injection.annotations));
    let platform = chosen.transpose()?.unwrap_or_default();
    let images = (agent.images)(agent, injection, platform);
    let names = images.iter().map(|image| &*image.name);
    let way = if is_mounted {
        injection.check_names(&names.collect::<Vec<_>>(), [])?;
        Way::Mounted
    } else {
        injection.check_names(&[agent.name], names)?;
        Way::Copied(storage::check(injection, !is_empty_dir(&prepared.volume))?)
    };
    Ok(Ready { platform, images, way })
}

fn inject_target<'p>(
    injection: &mut Injection<'_, 'p>,
    agent: &CopiedAgent<'p>,
    ready: &Ready<'p>,
    place: Place,
    not_first: bool,
) -> Result<Vec<Note>, Reason> {
    let container = injection.name(place);
    let path = agent.target_path.map_or(Cow::Borrowed(agent.mount_path), |path| path(container).into());
    let is_mounted = matches!(ready.way, Way::Mounted);
    let extended = extended(injection, agent);
    target::check(injection, place, &extended)?;
    if !is_mounted {
        check_security_context(injection, place)?;
    }
    let at = injection.edit.open(place)?;
    if let Some(fits) = agent.fits_target {
        fits(injection, &injection.edit.containers[at].env)?;
    }
    let mounts = if is_mounted {
        image_mounts(&ready.images, &path, container)
    } else {
        vec![NewMount::new(agent.name, path.clone())]
    };
    let own = &injection.edit.containers[at].mounts;
    mounts.iter().try_for_each(|mount| target::check_path(own, &mount.path))?;
    if !is_mounted && !not_first {
        check_user(injection, place, &injection.prepared().volume)?;
    }
    let extensions = extensions(injection, &mounts, is_mounted);
    injection.edit.containers[at].mounts.added.extend(mounts);
    let prepared = injection.prepared();
    let call = Call {
        prepared,
        image: injection.image(),
        path: &path,
        platform: ready.platform,
        extensions: &extensions,
    };
    let last = |env: &mut Env<'p>| (agent.last)(&call, env);
    // The operator does not recognise image volumes, but this variable (D29).
    let own = Own { search_path: agent.search_path.as_ref(), last: &last, node_name: is_mounted };
    target::instrument(injection, place, &own)
}

/// The extended variables: the language's own, and those of the Instrumentation.
fn extended<'p>(injection: &Injection<'_, 'p>, agent: &CopiedAgent<'p>) -> Vec<&'p str> {
    let generic = injection.prepared().generic.iter().flat_map(|own| &own.extended);
    agent.extended.iter().copied().chain(generic.map(|one| one.name.as_str())).collect()
}

/// The mounts of the images: the agent's at the path of the agent, each other one at a path with its name.
fn image_mounts<'p>(images: &[AgentImage<'p>], path: &str, container: &str) -> Vec<NewMount<'p>> {
    let mount = |(index, image): (usize, &AgentImage<'p>)| {
        let path = match index {
            0 => path.to_owned(),
            _ => ["/", &image.name, "-", container].concat(),
        };
        let mount = NewMount::new(image.name.clone(), path);
        NewMount { sub_path: image.sub_path, read_only: true, ..mount }
    };
    images.iter().enumerate().map(mount).collect()
}

/// The folders of the extensions in a target: one with copies of all, or one in each mounted image.
fn extensions(injection: &Injection<'_, '_>, mounts: &[NewMount<'_>], is_mounted: bool) -> String {
    let extensions = &injection.prepared().extensions;
    if extensions.is_empty() {
        return String::new();
    }
    let [agent, others @ ..] = mounts else { return String::new() };
    if !is_mounted {
        return [&agent.path, "/extensions"].concat();
    }
    let folder = |(mount, (_, dir)): (&NewMount<'_>, &(String, String))| {
        let dir = path::clean(&["/", dir].concat());
        [&mount.path, dir.trim_end_matches('/')].concat()
    };
    others.iter().zip(extensions).map(folder).collect::<Vec<_>>().join(",")
}

fn add_image_volumes<'p>(injection: &mut Injection<'_, 'p>, images: &[AgentImage<'p>]) {
    let policy = injection.instrumentation().image_pull_policy.as_deref();
    for image in images {
        injection.edit.volumes.add(image.volume(pull_policy(policy)));
    }
}

fn add_init_containers<'p>(
    injection: &mut Injection<'_, 'p>,
    agent: &CopiedAgent<'p>,
    images: Vec<AgentImage<'p>>,
    room: &Room,
    first: Place,
) {
    let prepared = injection.prepared();
    let volume = NewVolume::new(agent.name, Cow::Borrowed(&prepared.volume));
    injection.edit.volumes.add(volume.holding(room.counted()));
    let before = injection.edit.init_place(first);
    let resources = init_resources(injection, first);
    let mount = NewMount::new(agent.name, agent.mount_path);
    let security_context = security_context(injection, first);
    for image in images {
        let command = image.command(injection);
        let AgentImage { name, image, .. } = image;
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
