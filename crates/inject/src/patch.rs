//! From the edits to the RFC 6902 operations, written as JSON text.
//!
//! The operations come from the edits themselves, never from comparing two
//! documents, so every byte of the pod that no edit names survives. Lists are
//! edited entry by entry: own entries stay where they are, removed ones go
//! first, and new ones are put in by their final position in ascending order.

use itoa::Buffer as Digits;

use super::{
    edit::{ContainerEdit, Mounts, NewMount, PodEdit},
    env::{Change, Entry},
    json,
    pod::Metadata,
    stamp::Stamp,
    text::Map,
};

/// Patch operations as JSON text, ready to be sent.
#[derive(Debug)]
pub struct Operations {
    text: String,
}

/// Bytes of most patches, so that their text does not move while it grows.
const USUAL: usize = 6 * 1024;

impl Operations {
    fn new() -> Self {
        Self { text: String::with_capacity(USUAL) }
    }

    /// The JSON text; none where there is no operation.
    pub fn finish(mut self) -> Option<String> {
        if self.text.is_empty() {
            return None;
        }
        self.text.push(']');
        Some(self.text)
    }

    /// Begins an operation, up to its path. A path comes in parts, since it is
    /// written as often as there are operations, and formatting takes ten times as long.
    #[inline]
    fn begin(&mut self, op: &'static str, path: &[&str]) {
        self.text.push(if self.text.is_empty() { '[' } else { ',' });
        self.text.push_str(op);
        // Paths consist of field names, positions and escaped keys; none of
        // them has a character that JSON would have to escape.
        for part in path {
            self.text.push_str(part);
        }
    }

    fn add(&mut self, path: &[&str], write: impl FnOnce(&mut String)) {
        self.begin(r#"{"op":"add","path":""#, path);
        self.text.push_str(r#"","value":"#);
        write(&mut self.text);
        self.text.push('}');
    }

    fn replace(&mut self, path: &[&str], text: &str) {
        self.begin(r#"{"op":"replace","path":""#, path);
        self.text.push_str(r#"","value":"#);
        json::string(&mut self.text, text);
        self.text.push('}');
    }

    fn remove(&mut self, path: &[&str]) {
        self.begin(r#"{"op":"remove","path":""#, path);
        self.text.push_str(r#""}"#);
    }

    fn move_to_end(&mut self, list: &str, index: usize) {
        self.begin(
            r#"{"op":"move","path":""#,
            &[list, r#"/-","from":""#, list, "/", Digits::new().format(index)],
        );
        self.text.push_str(r#""}"#);
    }

    /// Appends items to a list, which is made where it is missing or empty.
    fn append<T>(
        &mut self,
        list: &str,
        present: usize,
        items: &mut dyn Iterator<Item = T>,
        write: impl Fn(&mut String, T) + Copy,
    ) {
        let mut items = items.peekable();
        if items.peek().is_none() {
            return;
        }
        if present == 0 {
            self.add(&[list], |out| json::list(out, items, write));
        } else {
            for item in items {
                self.add(&[list, "/-"], |out| write(out, item));
            }
        }
    }
}

/// The operations of all edits, of the labels and annotations of the stamp,
/// and of an annotation that goes along with edits only.
pub fn operations(
    edit: &PodEdit<'_>,
    (labels, annotations): &Stamp,
    with_edits: Option<(&'static str, String)>,
) -> Option<String> {
    let mut out = Operations::new();
    let pod = edit.pod;
    // Containers are named by their position as the pod came, so they are
    // edited before any other is put among them.
    for container in &edit.containers {
        edit_container(&mut out, container);
    }
    insert_init_containers(&mut out, edit);
    let sidecars = &mut edit.sidecars.iter();
    out.append("/spec/containers", pod.spec.containers.len(), sidecars, |out, one| {
        out.push_str(&one.json);
    });
    let volumes = &mut edit.volumes.iter();
    out.append("/spec/volumes", pod.spec.volumes.len(), volumes, |out, volume| {
        json::member(out, r#"{"name":"#, &volume.name);
        out.push(',');
        out.push_str(&volume.source);
        out.push('}');
    });
    if edit.share_process_namespace {
        out.add(&["/spec/shareProcessNamespace"], |out| out.push_str("true"));
    }
    let with_edits = with_edits.filter(|_| !out.text.is_empty());
    let annotations = annotations.iter().chain(with_edits.as_ref());
    set_metadata(&mut out, &pod.metadata, labels.iter().collect(), annotations.collect());
    out.finish()
}

fn edit_container(out: &mut Operations, edit: &ContainerEdit<'_>) {
    let list = if edit.place.init { "initContainers" } else { "containers" };
    let container = ["/spec/", list, "/", Digits::new().format(edit.place.index)].concat();
    edit_env(out, &[&container, "/env"].concat(), edit);
    edit_mounts(out, &[&container, "/volumeMounts"].concat(), &edit.mounts);
}

fn edit_env(out: &mut Operations, list: &str, edit: &ContainerEdit<'_>) {
    let entries = edit.env.entries();
    if edit.env.own_count() == 0 {
        return out.append(list, 0, &mut entries.iter(), |out, entry| entry.write(out));
    }
    for (index, entry) in own_entries(entries) {
        change_entry(out, list, index, entry);
    }
    move_late_entries(out, list, entries);
    for (position, entry) in entries.iter().enumerate() {
        if entry.origin.is_none() {
            out.add(&[list, "/", Digits::new().format(position)], |out| entry.write(out));
        }
    }
}

fn own_entries<'e, 'p>(entries: &'e [Entry<'p>]) -> impl Iterator<Item = (usize, &'e Entry<'p>)> {
    entries.iter().filter_map(|entry| entry.origin.map(|index| (index, entry)))
}

fn change_entry(out: &mut Operations, list: &str, index: usize, entry: &Entry<'_>) {
    match entry.change {
        Change::None => {}
        Change::Name => out.replace(&[list, "/", Digits::new().format(index), "/name"], &entry.name),
        // `add` sets the member, whether it was there or not.
        Change::Value => {
            out.add(&[list, "/", Digits::new().format(index), "/value"], |out| {
                json::string(out, &entry.value);
            });
        }
    }
}

/// Brings own entries that were moved to the end there, so that the own ones
/// stand in their final order before new ones are put among them.
fn move_late_entries(out: &mut Operations, list: &str, entries: &[Entry<'_>]) {
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

fn edit_mounts(out: &mut Operations, list: &str, mounts: &Mounts<'_>) {
    if let Some(index) = mounts.removed {
        out.remove(&[list, "/", Digits::new().format(index)]);
    }
    let present = mounts.own.len() - usize::from(mounts.removed.is_some());
    out.append(list, present, &mut mounts.added.iter(), |out, mount| write_mount(out, mount));
}

/// Appends a mount as JSON.
pub fn write_mount(out: &mut String, mount: &NewMount<'_>) {
    json::member(out, r#"{"name":"#, &mount.volume);
    json::member(out, r#","mountPath":"#, &mount.path);
    if mount.read_only {
        out.push_str(",\"readOnly\":true");
    }
    out.push('}');
}

fn insert_init_containers(out: &mut Operations, edit: &PodEdit<'_>) {
    let present = edit.pod.spec.init_containers.len();
    let mut added: Vec<_> = edit.init_containers.iter().collect();
    added.sort_by_key(|init| init.before);
    if present == 0 {
        let all = &mut added.iter();
        return out.append("/spec/initContainers", 0, all, |out, init| {
            out.push_str(&init.container.json);
        });
    }
    for (already, init) in added.iter().enumerate() {
        let position = init.before + already;
        out.add(&["/spec/initContainers/", Digits::new().format(position)], |out| {
            out.push_str(&init.container.json);
        });
    }
}

type Wanted<'e> = Vec<&'e (&'static str, String)>;

/// Sets labels and annotations that differ from the pod's own.
fn set_metadata(out: &mut Operations, metadata: &Metadata<'_>, labels: Wanted<'_>, annotations: Wanted<'_>) {
    let has_entries = !labels.is_empty() || !annotations.is_empty();
    if has_entries && !metadata.is_there {
        out.add(&["/metadata"], |out| out.push_str("{}"));
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
        return out.add(&["/metadata/", field], |out| {
            out.push('{');
            for (index, (key, value)) in entries.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                json::string(out, key);
                out.push(':');
                json::string(out, value);
            }
            out.push('}');
        });
    }
    for (key, value) in entries {
        out.add(&["/metadata/", field, "/", &escaped(key)], |out| json::string(out, value));
    }
}

/// A key as a part of a path (RFC 6901, section 3).
fn escaped(key: &str) -> String {
    let mut part = String::with_capacity(key.len() + 2);
    let mut rest = key;
    while let Some(at) = rest.bytes().position(|byte| byte == b'~' || byte == b'/') {
        part.push_str(&rest[..at]);
        part.push_str(if rest[at..].starts_with('~') { "~0" } else { "~1" });
        rest = &rest[at + 1..];
    }
    part.push_str(rest);
    part
}
