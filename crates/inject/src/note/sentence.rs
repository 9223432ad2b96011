//! The sentences of notes and warnings.

use std::fmt;

use super::{LEAST_MEMORY, Note};
use crate::{
    probes::NOT_DROPPED,
    shown::{LONGEST_TEXT, Short, shown},
    workload::MOST_LOOKUPS,
};
use otel_webhook_api::{ANNOTATION_PREFIX, DELIVERY_ANNOTATION, Delivery, defaults::NAMESPACE_IMAGE_PREFIX};

/// A text of the Instrumentation as messages show it.
fn text(text: &str) -> Short<&str> {
    Short { what: text, longest: LONGEST_TEXT }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MayBeSetByEnvFrom { variables, sources } => {
                let subject = format_args!("{variables} may also be set by envFrom ({sources})");
                write!(f, "{subject}; the injected values override them")
            }
            Self::CertificateNotChecked { object } => {
                write!(f, "{} is mounted as optional; it was not checked whether it exists", shown(object))
            }
            Self::OptedInBySelector { name } => {
                write!(f, "opted in by the selector of Instrumentation \"{name}\"")
            }
            Self::OwnerNotLearned { owner } => {
                let owner = shown(owner);
                write!(
                    f,
                    "the owner lookup for {owner} timed out; attributes derived from its name were used"
                )
            }
            Self::OwnersNotLookedUp { count } => {
                write!(
                    f,
                    "at most {MOST_LOOKUPS} owners of a pod are looked up, the controller first; {count} more were \
                     not, and the pod has no attributes of their owners"
                )
            }
            Self::ProbesNotDropped => f.write_str(NOT_DROPPED),
            Self::Declarative(limit) => limit.fmt(f),
            Self::ResourcesLowered { requests, limits, due_to } => {
                f.write_str("the resources of the init containers were adjusted so that the pod's requests and limits stay the same")?;
                if !due_to.is_empty() {
                    write!(f, ", and so that {} accepts the pod", due_to.join(", "))?;
                }
                write!(f, ": {}", resources(requests, limits))
            }
            Self::MemoryTooLittle { allowed } => {
                write!(
                    f,
                    "the pod's resources leave {allowed} of memory for its init containers, which may be too little to copy an agent; if one is OOMKilled, raise the pod's memory limit to {LEAST_MEMORY}"
                )
            }
            Self::SidecarFitted { requests, limits, due_to } => {
                let due_to = if due_to.is_empty() { "spec.resources".to_owned() } else { due_to.join(", ") };
                write!(
                    f,
                    "the resources of the sidecar were adjusted so that {due_to} accepts the pod: {}",
                    resources(requests, limits)
                )
            }
            Self::Image(choice) => choice.fmt(f),
            Self::ImageOfNamespace { image, instead_of } => image_of_namespace(f, image, instead_of),
            Self::OtherAgent(other) => other.fmt(f),
            Self::ImageLacksArm64 { image } => {
                write!(
                    f,
                    "the pod runs on arm64 nodes only, and {} has no build for arm64; set an image that has one",
                    text(image)
                )
            }
            Self::CopyMayFailAgain { image, advice } => copy_may_fail_again(f, image, advice),
            Self::UserSet { user } => user_set(f, *user),
            Self::HelpersSkipped { container, skipped } => {
                write!(
                    f,
                    "no container is named, so \"{}\" was selected; known proxies and helpers are skipped ({skipped})",
                    shown(container)
                )
            }
            Self::OnlyHelpers { container, helpers } => {
                write!(
                    f,
                    "no container is named, and the pod has only known proxies and helpers ({helpers}); \"{}\", \
                     the first, was selected; name the application's container by the annotation {ANNOTATION_PREFIX}container-names",
                    shown(container)
                )
            }
            Self::LittleStorageLeft { limit, need, left } => {
                write!(
                    f,
                    "the agents take {need} of the pod's {limit} of ephemeral storage; {left} is left for logs and \
                     files, and the kubelet evicts the pod when it uses more; raise resources.limits[ephemeral-storage]"
                )
            }
            Self::VolumeLimitTooSmall { field, limit, size } => {
                write!(
                    f,
                    "the agent needs {size}, more than the size limit of its volume ({limit}), so the kubelet \
                     may evict the pod; raise spec.{field}.volumeLimitSize, or set spec.{field}.volumeClaimTemplate"
                )
            }
            Self::ImageVolume => f.write_str(MOUNTED),
            Self::ImageVolumeNotSupported(obstacle) => {
                write!(f, "the image of the agent is mounted, and the pod may not start: {obstacle}")
            }
            Self::InitContainerKept(kept) => write!(f, "init containers copy the agent, since {kept}"),
            Self::DeliveryUnknown { on, value } => f.write_str(&delivery_unknown(on, value)),
            Self::DefaultImageInvalid { language, value } => default_image_invalid(f, language, value),
            Self::Exporter(problem) => problem.fmt(f),
            Self::Attributes(problem) => problem.fmt(f),
        }
    }
}

const MOUNTED: &str = "the image of the agent is mounted as a volume, without init containers";

fn copy_may_fail_again(f: &mut fmt::Formatter<'_>, image: &str, advice: &str) -> fmt::Result {
    write!(
        f,
        "after a restart of the node the pod may not start: cp -r of {} may not replace the links that it copied \
         before; {advice}",
        text(image)
    )
}

fn user_set(f: &mut fmt::Formatter<'_>, user: i64) -> fmt::Result {
    write!(f, "the init containers run as user {user}, since the pod must not run as root")
}

fn delivery_unknown(on: impl fmt::Display, value: &str) -> String {
    format!(
        "the annotation {DELIVERY_ANNOTATION} of {on} is \"{}\", which is not a delivery and is ignored; valid: {}",
        text(value),
        Delivery::NAMES.join(", ")
    )
}

fn image_of_namespace(f: &mut fmt::Formatter<'_>, image: &str, instead_of: &str) -> fmt::Result {
    let [image, instead_of] = [image, instead_of].map(text);
    write!(f, "the default image \"{image}\" of the namespace is used instead of \"{instead_of}\"")
}

fn default_image_invalid(f: &mut fmt::Formatter<'_>, language: &str, value: &str) -> fmt::Result {
    write!(
        f,
        "the annotation {NAMESPACE_IMAGE_PREFIX}{language} of the namespace is \"{}\", which is not an image \
         reference and is ignored; valid: a reference such as registry.example.com/agents/{language}:1.0",
        text(value)
    )
}

/// Says which requests and limits a container has.
fn resources(requests: &str, limits: &str) -> String {
    const NONE: &str = "none";
    let said = |what: &str, amounts: &str| match amounts {
        NONE => format!("no {what}"),
        amounts => format!("{what} {}", text(amounts)),
    };
    format!("{}; {}", said("requests", requests), said("limits", limits))
}
