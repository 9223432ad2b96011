//! The edits of a pod, collected before the patch is built.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashSet},
};

use serde::Serialize;
use serde_json::Value;

use super::{
    added::{NewContainer, NewInitContainer, NewMount},
    env::Env,
    growth::{Excess, Growth},
    json,
    pod::{ALWAYS, Container, Mount, Pod, Unreadable},
    reason::Reason,
    resource::Keys,
    token_mount,
};
use otel_webhook_api::quantity::Quantity;

/// The position of a container in the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Whether it is in `spec.initContainers`, not in `spec.containers`.
    pub init: bool,
    /// Index in the list of the original pod.
    pub index: usize,
}

/// All edits of one pod.
#[derive(Debug)]
pub struct PodEdit<'p> {
    /// The original pod.
    pub pod: &'p Pod<'p>,
    /// Edited containers.
    pub containers: Vec<ContainerEdit<'p>>,
    /// Their indexes in `containers`.
    opened: BTreeMap<Place, usize>,
    /// Containers in which a language was skipped because their resource attributes cannot be extended.
    pub without_attributes: BTreeSet<Place>,
    /// Annotations with files, to set.
    pub annotations: Vec<(String, &'p str)>,
    /// Volumes to add.
    pub volumes: Volumes<'p>,
    /// Init containers to add.
    init_containers: Vec<NewInitContainer<'p>>,
    /// Containers that run next to those of the pod, to append.
    sidecars: Vec<NewContainer<'p>>,
    /// How much may be added.
    growth: Growth,
    /// The size of what is added, except for volumes, in bytes.
    added: usize,
    /// The token's mount of added containers.
    token_mount: Option<NewMount<'p>>,
    /// Whether to set `shareProcessNamespace`.
    pub share_process_namespace: bool,
}

/// The edits of one container.
#[derive(Debug)]
pub struct ContainerEdit<'p> {
    /// Its position.
    pub place: Place,
    /// The original container.
    pub container: &'p Container<'p>,
    /// Its variables.
    pub env: Env<'p>,
    /// Its mounts.
    pub mounts: Mounts<'p>,
    /// The keys of the resource attributes that are not derived, after the first language.
    pub attribute_keys: Option<Keys>,
    /// The size of what is added, when it was last measured.
    added: usize,
}

/// The mounts of a container.
#[derive(Debug, Default)]
pub struct Mounts<'p> {
    /// The original mounts.
    pub own: Vec<Mount<'p>>,
    /// The original mount to remove.
    pub removed: Option<usize>,
    /// The mounts to add.
    pub added: Vec<NewMount<'p>>,
}

/// The volumes to add.
#[derive(Debug, Default)]
pub struct Volumes<'p> {
    list: Vec<NewVolume<'p>>,
    /// Their size as JSON, in bytes.
    size: usize,
    /// The names of the pod's own volumes, once they were asked for.
    own: Option<HashSet<&'p str>>,
}

/// A volume to add.
#[derive(Debug, Serialize)]
pub struct NewVolume<'p> {
    /// Its name.
    pub name: Cow<'p, str>,
    /// Its source, such as `{"emptyDir": {}}`.
    #[serde(flatten)]
    pub source: Cow<'p, Value>,
    /// Whether the source is an emptyDir, which blocks scale-down unless it is listed.
    #[serde(skip)]
    pub is_empty_dir: bool,
    /// How much of the pod's ephemeral storage its content needs.
    #[serde(skip)]
    pub holds: Quantity,
}

impl<'p> NewVolume<'p> {
    /// A volume with a name and a source.
    pub fn new(name: impl Into<Cow<'p, str>>, source: Cow<'p, Value>) -> Self {
        Self { name: name.into(), is_empty_dir: is_empty_dir(&source), source, holds: Quantity::ZERO }
    }

    /// The same, with a content of this size.
    #[must_use]
    pub fn holding(self, holds: Quantity) -> Self {
        Self { holds, ..self }
    }
}

/// Whether the source of a volume is an emptyDir.
pub fn is_empty_dir(source: &Value) -> bool {
    source.get("emptyDir").is_some()
}

impl<'p> PodEdit<'p> {
    /// No edits yet.
    pub fn new(pod: &'p Pod<'p>, max_pod_size: usize) -> Self {
        Self {
            pod,
            containers: Vec::new(),
            opened: BTreeMap::new(),
            without_attributes: BTreeSet::new(),
            annotations: Vec::new(),
            volumes: Volumes::default(),
            init_containers: Vec::new(),
            sidecars: Vec::new(),
            growth: Growth { pod: pod.size, most: max_pod_size },
            added: 0,
            token_mount: token_mount::of(pod),
            share_process_namespace: false,
        }
    }

    /// Returns the index of the edits of a container in `containers`, which are created if needed.
    ///
    /// # Errors
    /// If the container's variables or mounts are not valid JSON for them.
    pub fn open(&mut self, place: Place) -> Result<usize, Reason> {
        if let Some(at) = self.opened.get(&place) {
            return Ok(*at);
        }
        let container = container_at(self.pod, place);
        let own = container.mounts().map_err(|error| unreadable(container, &error))?;
        self.containers.push(ContainerEdit {
            place,
            container,
            env: own_env(container)?,
            mounts: Mounts { own, ..Mounts::default() },
            attribute_keys: None,
            added: 0,
        });
        let at = self.containers.len() - 1;
        self.opened.insert(place, at);
        Ok(at)
    }

    /// The init containers to add.
    pub fn init_containers(&self) -> &[NewInitContainer<'p>] {
        &self.init_containers
    }

    /// The containers to append: to the init containers if the pod ends, else to the regular ones.
    pub fn sidecars(&self) -> &[NewContainer<'p>] {
        &self.sidecars
    }

    /// Sets an annotation.
    pub fn annotate(&mut self, key: String, value: &'p str) {
        self.added += key.len() + value.len();
        self.annotations.push((key, value));
    }

    /// Adds an init container.
    pub fn add_init_container(&mut self, mut init: NewInitContainer<'p>) {
        token_mount::add(self.token_mount.as_ref(), &mut init.container);
        self.added += json::of(&init.container).len();
        self.init_containers.push(init);
    }

    /// Appends a container that runs next to those of the pod. A pod that ends would wait for a regular one, and
    /// ends a native sidecar (D42).
    pub fn add_sidecar(&mut self, mut sidecar: NewContainer<'p>) {
        sidecar.restart_policy = self.pod.spec.ends().then_some(ALWAYS);
        token_mount::add(self.token_mount.as_ref(), &mut sidecar);
        self.added += json::of(&sidecar).len();
        self.sidecars.push(sidecar);
    }

    /// Measures what is added to a container; to be called after its edits.
    pub fn measure(&mut self, place: Place) {
        let Some(edit) = self.opened.get(&place).and_then(|at| self.containers.get_mut(*at)) else { return };
        let before = edit.added;
        edit.added = edit.env.added() + edit.mounts.added();
        self.added = self.added - before + edit.added;
    }

    /// Checks that the edits so far, and so many bytes more, may be added (D33).
    ///
    /// # Errors
    /// The exceeded maximum.
    pub fn check_size(&self, more: usize) -> Result<(), Excess> {
        self.growth.check(self.added + self.volumes.size + more)
    }

    /// Whether the pod has a volume of a name, or gets one.
    pub fn has_volume(&self, name: &str) -> bool {
        self.volumes.has(name) || self.pod.spec.volumes.iter().any(|volume| *volume.name == *name)
    }

    /// The names of the containers and init containers that the pod has, or gets.
    pub fn container_names(&self) -> HashSet<&str> {
        let spec = &self.pod.spec;
        let own = spec.containers.iter().chain(spec.init_containers.iter()).map(|own| &*own.name);
        let added = self.sidecars.iter().chain(self.init_containers.iter().map(|init| &init.container));
        own.chain(added.map(|container| &*container.name)).collect()
    }

    /// The position of an added init container: right before its first target, or at the end.
    pub fn init_place(&self, first_target: Place) -> usize {
        if first_target.init { first_target.index } else { self.pod.spec.init_containers.len() }
    }
}

/// The container at a position of the original pod.
pub fn container_at<'p>(pod: &'p Pod<'p>, place: Place) -> &'p Container<'p> {
    let list = if place.init { &pod.spec.init_containers } else { &pod.spec.containers };
    &list[place.index]
}

/// The variables of an original container.
///
/// # Errors
/// If they are not valid JSON for variables.
pub fn own_env<'p>(container: &Container<'p>) -> Result<Env<'p>, Reason> {
    container.variables().map(Env::new).map_err(|error| unreadable(container, &error))
}

/// The reason for an unreadable list of a container.
pub fn unreadable(container: &Container<'_>, error: &Unreadable) -> Reason {
    Reason::ContainerUnreadable { container: container.name.to_string(), problem: error.to_string() }
}

impl ContainerEdit<'_> {
    /// The number of edits so far.
    pub fn edits(&self) -> usize {
        self.env.edits() + self.mounts.added.len() + usize::from(self.mounts.removed.is_some())
    }
}

impl<'p> Mounts<'p> {
    /// Whether a volume is mounted.
    pub fn has_volume(&self, name: &str) -> bool {
        let own = self.kept().any(|mount| *mount.name == *name);
        own || self.added.iter().any(|mount| mount.volume == name)
    }

    /// Whether something is mounted at a path.
    pub fn has_path(&self, path: &str) -> bool {
        let same = |other: &str| other.trim_end_matches('/') == path.trim_end_matches('/');
        self.kept().any(|mount| same(&mount.mount_path)) || self.added.iter().any(|mount| same(&mount.path))
    }

    /// Adds a mount.
    pub fn add(&mut self, mount: NewMount<'p>) {
        self.added.push(mount);
    }

    /// The size of what is added as JSON, about, in bytes.
    fn added(&self) -> usize {
        const EMPTY: usize = r#"{"name":"","mountPath":"","readOnly":true},"#.len();
        const SUB_PATH: usize = r#""subPath":"","#.len();
        let sub_path = |mount: &NewMount<'_>| mount.sub_path.map_or(0, |folder| folder.len() + SUB_PATH);
        let size = |mount| sub_path(mount) + mount.volume.len() + mount.path.len() + EMPTY;
        self.added.iter().map(size).sum()
    }

    fn kept(&self) -> impl Iterator<Item = &Mount<'p>> {
        let kept = self.own.iter().enumerate().filter(|(index, _)| Some(*index) != self.removed);
        kept.map(|(_, mount)| mount)
    }
}

impl<'p> Volumes<'p> {
    /// Whether a volume of a name is among them.
    pub fn has(&self, name: &str) -> bool {
        self.list.iter().any(|volume| volume.name == name)
    }

    /// Whether the pod itself has a volume of a name.
    pub fn is_own(&mut self, pod: &'p Pod<'p>, name: &str) -> bool {
        let names = || pod.spec.volumes.iter().map(|volume| &*volume.name).collect();
        self.own.get_or_insert_with(names).contains(name)
    }

    /// Adds a volume.
    pub fn add(&mut self, volume: NewVolume<'p>) {
        self.size += json::of(&volume).len();
        self.list.push(volume);
    }

    /// How much of the pod's ephemeral storage their content needs.
    pub fn held(&self) -> Quantity {
        self.list.iter().fold(Quantity::ZERO, |sum, volume| sum.plus(volume.holds))
    }

    /// The volumes in order.
    pub fn iter(&self) -> impl Iterator<Item = &NewVolume<'p>> {
        self.list.iter()
    }
}
