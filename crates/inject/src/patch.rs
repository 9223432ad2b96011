//! From the edits to the RFC 6902 operations.
//!
//! The operations come from the edits themselves, never from comparing two
//! documents, so whatever no edit names stays as it is. Lists are edited entry
//! by entry: own entries stay where they are, removed ones go first, and new
//! ones are put in by their final position in ascending order.

use std::fmt::Display;

use json_patch::{
    AddOperation, MoveOperation, Patch, PatchOperation, RemoveOperation, ReplaceOperation,
    jsonptr::PointerBuf,
};
use serde_json::{Map as JsonMap, Value, json};

use super::{
    edit::{ContainerEdit, Mounts, PodEdit},
    env::{Change, Entry},
    pod::Metadata,
    stamp::Stamp,
    text::Map,
};

/// The operations so far.
#[derive(Debug, Default)]
struct Operations(Vec<PatchOperation>);

/// The end of a list, as a part of a path (RFC 6902, section 4.1).
const END: &str = "-";

impl Operations {
    fn add(&mut self, path: PointerBuf, value: Value) {
        self.0.push(PatchOperation::Add(AddOperation { path, value }));
    }

    fn replace(&mut self, path: PointerBuf, value: Value) {
        self.0.push(PatchOperation::Replace(ReplaceOperation { path, value }));
    }

    fn remove(&mut self, path: PointerBuf) {
        self.0.push(PatchOperation::Remove(RemoveOperation { path }));
    }

    fn move_to_end(&mut self, list: &PointerBuf, index: usize) {
        let (from, path) = (below(list, index), below(list, END));
        self.0.push(PatchOperation::Move(MoveOperation { from, path }));
    }

    /// Appends items to a list, which is made where it is missing or empty.
    fn append(&mut self, list: &PointerBuf, present: usize, items: impl Iterator<Item = Value>) {
        if present > 0 {
            return items.for_each(|item| self.add(below(list, END), item));
        }
        let items: Vec<_> = items.collect();
        if !items.is_empty() {
            self.add(list.clone(), items.into());
        }
    }
}

/// A path of field names.
fn path<const N: usize>(names: [&str; N]) -> PointerBuf {
    PointerBuf::from_tokens(names)
}

/// The path of an entry of a list, or of a member of an object.
fn below<T: Display>(parent: &PointerBuf, token: T) -> PointerBuf {
    let mut path = parent.clone();
    path.push_back(token.to_string());
    path
}

/// The operations of all edits, of the labels and annotations of the stamp,
/// and of an annotation that goes along with edits only.
pub fn operations(
    edit: &PodEdit<'_>,
    (labels, annotations): &Stamp,
    with_edits: Option<(&'static str, String)>,
) -> Patch {
    let mut out = Operations::default();
    let pod = edit.pod;
    // Containers are named by their position as the pod came, so they are
    // edited before any other is put among them.
    for container in &edit.containers {
        edit_container(&mut out, container);
    }
    insert_init_containers(&mut out, edit);
    let sidecars = edit.sidecars.iter().map(|one| one.json.clone());
    out.append(&path(["spec", "containers"]), pod.spec.containers.len(), sidecars);
    let volumes = edit.volumes.iter().map(|volume| {
        let mut json = JsonMap::from_iter([("name".to_owned(), json!(volume.name))]);
        json.extend(
            volume
                .source
                .as_object()
                .into_iter()
                .flatten()
                .map(|(kind, source)| (kind.clone(), source.clone())),
        );
        json.into()
    });
    out.append(&path(["spec", "volumes"]), pod.spec.volumes.len(), volumes);
    if edit.share_process_namespace {
        out.add(path(["spec", "shareProcessNamespace"]), true.into());
    }
    let with_edits = with_edits.filter(|_| !out.0.is_empty());
    let annotations = annotations.iter().chain(with_edits.as_ref());
    set_metadata(&mut out, &pod.metadata, labels.iter().collect(), annotations.collect());
    Patch(out.0)
}

fn edit_container(out: &mut Operations, edit: &ContainerEdit<'_>) {
    let list = if edit.place.init { "initContainers" } else { "containers" };
    let container = below(&path(["spec", list]), edit.place.index);
    edit_env(out, &below(&container, "env"), edit);
    edit_mounts(out, &below(&container, "volumeMounts"), &edit.mounts);
}

fn edit_env(out: &mut Operations, list: &PointerBuf, edit: &ContainerEdit<'_>) {
    let entries = edit.env.entries();
    if edit.env.own_count() == 0 {
        return out.append(list, 0, entries.iter().map(Entry::json));
    }
    for (index, entry) in own_entries(entries) {
        change_entry(out, &below(list, index), entry);
    }
    move_late_entries(out, list, entries);
    for (position, entry) in entries.iter().enumerate() {
        if entry.origin.is_none() {
            out.add(below(list, position), entry.json());
        }
    }
}

fn own_entries<'e, 'p>(entries: &'e [Entry<'p>]) -> impl Iterator<Item = (usize, &'e Entry<'p>)> {
    entries.iter().filter_map(|entry| entry.origin.map(|index| (index, entry)))
}

fn change_entry(out: &mut Operations, path: &PointerBuf, entry: &Entry<'_>) {
    match entry.change {
        Change::None => {}
        Change::Name => out.replace(below(path, "name"), json!(entry.name)),
        // `add` sets the member, whether it was there or not.
        Change::Value => out.add(below(path, "value"), json!(entry.value)),
    }
}

/// Brings own entries that were moved to the end there, so that the own ones
/// stand in their final order before new ones are put among them.
fn move_late_entries(out: &mut Operations, list: &PointerBuf, entries: &[Entry<'_>]) {
    if own_entries(entries).is_sorted_by_key(|(index, _)| index) {
        return;
    }
    let finals: Vec<usize> = own_entries(entries).map(|(index, _)| index).collect();
    let mut present: Vec<usize> = (0..finals.len()).collect();
    while let Some(at) = (0..finals.len()).find(|&at| finals[at] != present[at]) {
        out.move_to_end(list, at);
        let moved = present.remove(at);
        present.push(moved);
    }
}

fn edit_mounts(out: &mut Operations, list: &PointerBuf, mounts: &Mounts<'_>) {
    if let Some(index) = mounts.removed {
        out.remove(below(list, index));
    }
    let present = mounts.own.len() - usize::from(mounts.removed.is_some());
    out.append(list, present, mounts.added.iter().map(|mount| json!(mount)));
}

fn insert_init_containers(out: &mut Operations, edit: &PodEdit<'_>) {
    let present = edit.pod.spec.init_containers.len();
    let list = path(["spec", "initContainers"]);
    let mut added: Vec<_> = edit.init_containers.iter().collect();
    added.sort_by_key(|init| init.before);
    if present == 0 {
        return out.append(&list, 0, added.iter().map(|init| init.container.json.clone()));
    }
    for (already, init) in added.iter().enumerate() {
        out.add(below(&list, init.before + already), init.container.json.clone());
    }
}

type Wanted<'e> = Vec<&'e (&'static str, String)>;

/// Sets labels and annotations that differ from the pod's own.
fn set_metadata(out: &mut Operations, metadata: &Metadata<'_>, labels: Wanted<'_>, annotations: Wanted<'_>) {
    let has_entries = !labels.is_empty() || !annotations.is_empty();
    if has_entries && !metadata.is_there {
        out.add(path(["metadata"]), json!({}));
    }
    set_map(out, "labels", &metadata.labels, labels);
    set_map(out, "annotations", &metadata.annotations, annotations);
}

fn set_map(out: &mut Operations, field: &str, own: &Map<'_>, mut entries: Wanted<'_>) {
    entries.retain(|(key, value)| own.get(key) != Some(value.as_str()));
    if entries.is_empty() {
        return;
    }
    if own.is_empty() {
        let entries = entries.iter().map(|(key, value)| ((*key).to_owned(), json!(value)));
        return out.add(path(["metadata", field]), Value::Object(entries.collect()));
    }
    for (key, value) in entries {
        out.add(path(["metadata", field, key]), json!(value));
    }
}
