//! Notes and warnings about an injected container.

use std::fmt;

use super::{
    attribute_problem,
    kept::{Kept, On},
    other_agent::OtherAgent,
    reason::ObjectName,
    shown::{LONGEST_TEXT, Names, Short, shown},
    workload::MOST_LOOKUPS,
};
use otel_webhook_api::{
    ANNOTATION_PREFIX, DELIVERY_ANNOTATION, Delivery, image::Choice, otlp, quantity::Quantity,
};

/// With less memory than this, the kernel may kill a copying container (reason `OOMKilled`).
pub const LEAST_MEMORY: Quantity = Quantity::mebibytes(128);

/// A note about an injected container.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Note {
    /// An extended variable may also be set by `envFrom`; the injected value overrides it.
    MayBeSetByEnvFrom {
        /// The variable.
        variable: Box<str>,
        /// The sources of `envFrom`.
        sources: Names,
    },
    /// It was not checked whether the exporter's certificates exist (D20).
    CertificateNotChecked {
        /// Secret or ConfigMap.
        object: String,
    },
    /// Neither pod nor namespace opts in, but a selector does.
    OptedInBySelector {
        /// The Instrumentation with the selector.
        name: ObjectName,
    },
    /// An owner lookup timed out.
    OwnerNotLearned {
        /// Kind and name of the owner.
        owner: String,
    },
    /// The pod has more owners than are looked up.
    OwnersNotLookedUp {
        /// How many owners were not looked up.
        count: usize,
    },
    /// Init containers have other resources than in the Instrumentation, so that the resources of the pod
    /// stay the same (D23) and its namespace accepts it (D32).
    ResourcesLowered {
        /// Their requests.
        requests: String,
        /// Their limits.
        limits: String,
        /// The LimitRanges and quotas that caused it.
        due_to: Vec<String>,
    },
    /// The pod's resources leave little memory for its init containers (D23).
    MemoryTooLittle {
        /// How much.
        allowed: String,
    },
    /// The Instrumentation's image is a recorded default, and not the present one (D28).
    Image(Choice),
    /// The container already loads another agent.
    OtherAgent(OtherAgent),
    /// The pod runs on arm64 only, and the image has no build for it.
    ImageLacksArm64 {
        /// The image.
        image: String,
    },
    /// No container is named, and known proxies and helpers before the selected one were skipped (D30).
    HelpersSkipped {
        /// The selected container.
        container: String,
        /// The skipped containers.
        skipped: Names,
    },
    /// No container is named, and the pod has only known proxies and helpers (D30).
    OnlyHelpers {
        /// The selected container.
        container: String,
        /// All containers.
        helpers: Names,
    },
    /// The agents leave little of the pod's limit of ephemeral storage.
    LittleStorageLeft {
        /// The pod's limit.
        limit: String,
        /// The size of the agents.
        need: String,
        /// What is left.
        left: String,
    },
    /// The volume's size limit is smaller than the agent.
    VolumeLimitTooSmall {
        /// The language's field in the specification.
        field: String,
        /// The size limit.
        limit: String,
        /// The size of the agent and its extensions.
        size: String,
    },
    /// The sidecar has other resources than the Instrumentation says, so that the API server accepts the
    /// pod (D32).
    SidecarFitted {
        /// Its requests.
        requests: String,
        /// Its limits.
        limits: String,
        /// The LimitRanges and quotas that bound it; empty if `spec.resources` of the pod does.
        due_to: Vec<String>,
    },
    /// The image of the agent is mounted; no container is added (D35).
    ImageVolume,
    /// Init containers copy the agent although image volumes were chosen.
    InitContainerKept(Kept),
    /// An annotation has an unknown delivery, and the next source of it is used.
    DeliveryUnknown {
        /// The annotated object.
        on: On,
        /// The value.
        value: String,
    },
    /// Telemetry will not arrive with the container's endpoint and protocol.
    Exporter(otlp::Problem),
    /// The agent does not read resource attributes as they were meant (D34).
    Attributes(attribute_problem::Problem),
}

impl Note {
    /// Whether it is a warning: something is probably a mistake, and should be changed.
    /// Warnings are shown by `kubectl`, and fail `validate --strict`.
    pub fn is_warning(&self) -> bool {
        match self {
            Self::OnlyHelpers { .. }
            | Self::LittleStorageLeft { .. }
            | Self::VolumeLimitTooSmall { .. }
            | Self::OtherAgent(_)
            | Self::ImageLacksArm64 { .. }
            | Self::DeliveryUnknown { .. }
            | Self::Exporter(_)
            | Self::Attributes(_) => true,
            Self::MayBeSetByEnvFrom { .. }
            | Self::CertificateNotChecked { .. }
            | Self::OptedInBySelector { .. }
            | Self::OwnerNotLearned { .. }
            | Self::OwnersNotLookedUp { .. }
            | Self::ResourcesLowered { .. }
            | Self::MemoryTooLittle { .. }
            | Self::Image(_)
            | Self::SidecarFitted { .. }
            | Self::ImageVolume
            | Self::InitContainerKept(_)
            | Self::HelpersSkipped { .. } => false,
        }
    }

    /// The level as a word.
    pub fn level(&self) -> &'static str {
        if self.is_warning() { "warning" } else { "note" }
    }

    /// The stable code, in camel case.
    pub fn code(&self) -> &'static str {
        match self {
            Self::MayBeSetByEnvFrom { .. } => "MayBeSetByEnvFrom",
            Self::CertificateNotChecked { .. } => "CertificateNotChecked",
            Self::OptedInBySelector { .. } => "OptedInBySelector",
            Self::OwnerNotLearned { .. } => "OwnerNotLearned",
            Self::OwnersNotLookedUp { .. } => "OwnersNotLookedUp",
            Self::ResourcesLowered { .. } => "ResourcesLowered",
            Self::MemoryTooLittle { .. } => "MemoryTooLittle",
            Self::Image(choice) if choice.is_replaced() => "ImageReplaced",
            Self::Image(_) => "ImageKept",
            Self::OtherAgent(_) => "OtherAgent",
            Self::ImageLacksArm64 { .. } => "ImageLacksArm64",
            Self::HelpersSkipped { .. } => "HelpersSkipped",
            Self::OnlyHelpers { .. } => "OnlyHelpers",
            Self::LittleStorageLeft { .. } => "LittleStorageLeft",
            Self::VolumeLimitTooSmall { .. } => "VolumeLimitTooSmall",
            Self::SidecarFitted { .. } => "SidecarFitted",
            Self::ImageVolume => "ImageVolume",
            Self::InitContainerKept(_) => "InitContainerKept",
            Self::DeliveryUnknown { .. } => "DeliveryUnknown",
            Self::Exporter(problem) => problem.code(),
            Self::Attributes(problem) => problem.code(),
        }
    }
}

/// A text of the Instrumentation as messages show it.
fn text(text: &str) -> Short<&str> {
    Short { what: text, longest: LONGEST_TEXT }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MayBeSetByEnvFrom { variable, sources } => {
                write!(
                    f,
                    "{variable} may also be set by envFrom ({sources}); the injected value overrides it"
                )
            }
            Self::CertificateNotChecked { object } => {
                write!(f, "{} is mounted as optional; it was not checked whether it exists", shown(object))
            }
            Self::OptedInBySelector { name } => {
                write!(f, "opted in by the selector of Instrumentation \"{name}\"")
            }
            Self::OwnerNotLearned { owner } => {
                write!(
                    f,
                    "the owner lookup for {} timed out; attributes derived from its name were used",
                    shown(owner)
                )
            }
            Self::OwnersNotLookedUp { count } => {
                write!(
                    f,
                    "at most {MOST_LOOKUPS} owners of a pod are looked up, the controller first; {count} more were \
                     not, and the pod has no attributes of their owners"
                )
            }
            Self::ResourcesLowered { requests, limits, due_to } => {
                f.write_str("the resources of the init containers were adjusted so that the pod's requests and limits stay the same")?;
                if !due_to.is_empty() {
                    write!(f, ", and so that {} accepts the pod", due_to.join(", "))?;
                }
                write!(f, ": requests {}; limits {}", text(requests), text(limits))
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
                    "the resources of the sidecar were adjusted so that {due_to} accepts the pod: requests {}; limits {}",
                    text(requests),
                    text(limits)
                )
            }
            Self::Image(choice) => choice.fmt(f),
            Self::OtherAgent(other) => other.fmt(f),
            Self::ImageLacksArm64 { image } => {
                write!(
                    f,
                    "the pod runs on arm64 nodes only, and {} has no build for arm64; set an image that has one",
                    text(image)
                )
            }
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
            Self::ImageVolume => {
                f.write_str("the image of the agent is mounted as a volume, without init containers")
            }
            Self::InitContainerKept(kept) => write!(f, "init containers copy the agent, since {kept}"),
            Self::DeliveryUnknown { on, value } => f.write_str(&delivery_unknown(on, value)),
            Self::Exporter(problem) => problem.fmt(f),
            Self::Attributes(problem) => problem.fmt(f),
        }
    }
}

fn delivery_unknown(on: impl fmt::Display, value: &str) -> String {
    format!(
        "the annotation {DELIVERY_ANNOTATION} of {on} is \"{}\", which is not a delivery and is ignored; valid: {}",
        text(value),
        Delivery::NAMES.join(", ")
    )
}
