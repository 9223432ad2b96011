//! Whether an agent is copied by init containers, or its image is mounted (docs/guides/image-volumes.md).

use std::fmt;

use crate::{
    cluster,
    cluster::Obstacle,
    edit::is_empty_dir,
    injection::Injection,
    language::ImageVolume,
    note::Note,
    path,
    shown::{LONGEST_TEXT, Short},
};
use otel_webhook_api::{DELIVERY_ANNOTATION, Delivery};

/// The delivery of an agent into a pod.
pub struct Chosen {
    /// Whether its image is mounted.
    pub is_mounted: bool,
    /// What has to be said about it.
    pub notes: Vec<Note>,
}

/// Chooses the delivery of the language of the plan.
pub fn choose(injection: &Injection<'_, '_>) -> Chosen {
    let mut notes = Vec::new();
    let asked = asked(injection, &mut notes);
    if asked == Delivery::InitContainer {
        return Chosen { is_mounted: false, notes };
    }
    let kept = kept(injection, asked);
    let is_mounted = kept.is_none();
    // `auto` mounts where there is none.
    if is_mounted && asked == Delivery::ImageVolume {
        let known = obstacle(injection).filter(Obstacle::is_known);
        notes.extend(known.map(Note::ImageVolumeNotSupported));
    }
    notes.push(kept.map_or(Note::ImageVolume, Note::InitContainerKept));
    Chosen { is_mounted, notes }
}

/// The first source that says a delivery: pod, namespace, Instrumentation, installation. Invalid annotations are
/// noted, and the next source is used.
fn asked(injection: &Injection<'_, '_>, notes: &mut Vec<Note>) -> Delivery {
    let of_pod = injection.facts.pod.metadata.annotations.get(DELIVERY_ANNOTATION);
    let of_namespace = injection.namespace.and_then(|namespace| namespace.delivery.as_deref());
    for (on, said) in [(On::Pod, of_pod), (On::Namespace, of_namespace)] {
        let Some(said) = said else { continue };
        match Delivery::parse(said) {
            Some(delivery) => return delivery,
            None => notes.push(Note::DeliveryUnknown { on, value: said.to_owned() }),
        }
    }
    injection.prepared().delivery.unwrap_or(injection.settings.delivery)
}

/// Why the agent is copied nevertheless.
fn kept(injection: &Injection<'_, '_>, asked: Delivery) -> Option<Kept> {
    let (prepared, language) = (injection.prepared(), injection.plan.language);
    if !language.can_be_mounted() {
        return Some(Kept::WritesConfiguration);
    }
    if !is_empty_dir(&prepared.volume) {
        return Some(Kept::Claim { field: injection.plan.field() });
    }
    if let Some((_, dir)) = prepared.extensions.iter().find(|(_, dir)| !is_listable(dir)) {
        return Some(Kept::ExtensionFolder { dir: dir.clone() });
    }
    (asked == Delivery::Auto).then(|| obstacle(injection)).flatten().map(Kept::Cluster)
}

/// Why not every node that the pod may run on is known to mount the image.
fn obstacle(injection: &Injection<'_, '_>) -> Option<Obstacle> {
    let by_subpath = injection.plan.language.image_volume == ImageVolume::Folder;
    let need = cluster::Need { by_subpath, least: injection.settings.image_volumes_from };
    cluster::obstacle(injection.cluster, &injection.facts.pod.spec, need)
}

/// Whether a folder can be in the list of extensions, which is in a variable that the JVM splits at spaces.
fn is_listable(dir: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"',".contains(&byte);
    dir.bytes().all(is_plain) && !path::clean(dir).starts_with("..")
}

/// The object with an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum On {
    /// The pod.
    Pod,
    /// Its namespace.
    Namespace,
}

impl fmt::Display for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pod => "the pod",
            Self::Namespace => "the namespace",
        })
    }
}

/// Why init containers copy an agent although image volumes were chosen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kept {
    /// The init containers write configuration, too.
    WritesConfiguration,
    /// The agent is copied into a claim.
    Claim {
        /// The language's field in the specification.
        field: String,
    },
    /// The agent cannot list a folder with this name.
    ExtensionFolder {
        /// The folder of the extension.
        dir: String,
    },
    /// `auto`, and a node of the pod might not mount the image.
    Cluster(Obstacle),
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WritesConfiguration => f.write_str("they also write the configuration of the web server"),
            Self::Claim { field } => write!(f, "spec.{field}.volumeClaimTemplate is set"),
            Self::ExtensionFolder { dir } => {
                let dir = Short { what: dir, longest: LONGEST_TEXT };
                write!(
                    f,
                    "the Java agent cannot be given the folder \"{dir}\" of an extension; valid: a path without spaces, \
                     quotes and commas"
                )
            }
            Self::Cluster(obstacle) => obstacle.fmt(f),
        }
    }
}
