//! What to know of a container that was injected: what cannot be seen from here, and warnings.

use std::fmt;

use super::other_agent::OtherAgent;
use otel_webhook_api::{ANNOTATION_PREFIX, image::Choice, otlp, quantity::Quantity};

/// With less memory than this, the kubelet may stop a copying container (reason `OOMKilled`).
pub const LEAST_MEMORY: Quantity = Quantity::mebibytes(128);

/// Something to know of a container that was injected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A variable that is extended may be set by `envFrom` as well; the container's list hides it then.
    MayBeSetByEnvFrom {
        /// The variable.
        variable: &'static str,
        /// Where the others come from.
        sources: Vec<String>,
    },
    /// Nobody has looked whether the exporter's certificates are there (D20).
    CertificateNotChecked {
        /// Secret or ConfigMap.
        object: String,
    },
    /// Nobody could tell in time whom an owner belongs to.
    OwnerNotLearned {
        /// Kind and name of the owner.
        owner: String,
    },
    /// Init containers have other resources than the Instrumentation says, so that the pod does not
    /// ask for more (D23) and its namespace accepts it (D32).
    ResourcesLowered {
        /// What they ask for.
        requests: String,
        /// Their limits.
        limits: String,
        /// The LimitRanges and quotas without which they would be others.
        due_to: Vec<String>,
    },
    /// The pod allows its init containers little memory (D23).
    MemoryTooLittle {
        /// How much.
        allowed: String,
    },
    /// The Instrumentation's image is a recorded default, and not the present one (D28).
    Image(Choice),
    /// The container loads another agent already.
    OtherAgent(OtherAgent),
    /// The pod is for arm64 alone, and the image has no build for it.
    ImageLacksArm64 {
        /// The image.
        image: String,
    },
    /// Nobody named a container, and known proxies and helpers stand before the one that was taken (D30).
    HelpersSkipped {
        /// The container that was taken.
        container: String,
        /// Those before it.
        skipped: Vec<String>,
    },
    /// Nobody named a container, and the pod has nothing but known proxies and helpers (D30).
    OnlyHelpers {
        /// The container that was taken.
        container: String,
        /// All containers.
        helpers: Vec<String>,
    },
    /// The agents fit into the pod's limit of ephemeral storage, but hardly.
    LittleStorageLeft {
        /// The pod's limit.
        limit: String,
        /// What the agents take.
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
    /// The sidecar has other resources than the Instrumentation says, so that the API server accepts the pod (D32).
    SidecarFitted {
        /// What it asks for.
        requests: String,
        /// Its limits.
        limits: String,
        /// The LimitRanges and quotas that bound it; none where the pod as a whole does.
        due_to: Vec<String>,
    },
    /// Telemetry will not arrive by the endpoint and the protocol that the container has.
    Exporter(otlp::Problem),
}

impl Note {
    /// Whether it is a warning: something is probably not meant, and should be changed.
    /// Warnings reach the terminal, and fail `validate --strict`.
    pub fn is_warning(&self) -> bool {
        match self {
            Self::OnlyHelpers { .. }
            | Self::LittleStorageLeft { .. }
            | Self::VolumeLimitTooSmall { .. }
            | Self::OtherAgent(_)
            | Self::ImageLacksArm64 { .. }
            | Self::Exporter(_) => true,
            Self::MayBeSetByEnvFrom { .. }
            | Self::CertificateNotChecked { .. }
            | Self::OwnerNotLearned { .. }
            | Self::ResourcesLowered { .. }
            | Self::MemoryTooLittle { .. }
            | Self::Image(_)
            | Self::SidecarFitted { .. }
            | Self::HelpersSkipped { .. } => false,
        }
    }

    /// The word for how much it matters.
    pub fn level(&self) -> &'static str {
        if self.is_warning() { "warning" } else { "note" }
    }

    /// The stable code, in camel case.
    pub fn code(&self) -> &'static str {
        match self {
            Self::MayBeSetByEnvFrom { .. } => "MayBeSetByEnvFrom",
            Self::CertificateNotChecked { .. } => "CertificateNotChecked",
            Self::OwnerNotLearned { .. } => "OwnerNotLearned",
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
            Self::Exporter(problem) => problem.code(),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MayBeSetByEnvFrom { variable, sources } => {
                let sources = sources.join(", ");
                write!(
                    f,
                    "{variable} may come from envFrom ({sources}) as well; its value there is hidden by the injected one"
                )
            }
            Self::CertificateNotChecked { object } => {
                write!(f, "{object} is mounted as optional; whether it is there was not looked at")
            }
            Self::OwnerNotLearned { owner } => {
                write!(
                    f,
                    "the API server did not say in time whom {owner} belongs to; what its name tells was used"
                )
            }
            Self::ResourcesLowered { requests, limits, due_to } => {
                f.write_str("init containers ask for no more than the pod does")?;
                if !due_to.is_empty() {
                    write!(f, " and {} accepts", due_to.join(", "))?;
                }
                write!(f, ": requests {requests}; limits {limits}")
            }
            Self::MemoryTooLittle { allowed } => {
                write!(
                    f,
                    "the pod allows init containers {allowed} of memory, which may be too little to copy an agent; if one is OOMKilled, raise the pod's memory limit to {LEAST_MEMORY}"
                )
            }
            Self::SidecarFitted { requests, limits, due_to } => {
                let due_to = if due_to.is_empty() { "spec.resources".to_owned() } else { due_to.join(", ") };
                write!(
                    f,
                    "the sidecar asks for no more than {due_to} accepts: requests {requests}; limits {limits}"
                )
            }
            Self::Image(choice) => choice.fmt(f),
            Self::OtherAgent(other) => other.fmt(f),
            Self::ImageLacksArm64 { image } => {
                write!(
                    f,
                    "the pod is for arm64 nodes, and {image} has no build for arm64; set an image that has one"
                )
            }
            Self::HelpersSkipped { container, skipped } => {
                let skipped = skipped.join(", ");
                write!(
                    f,
                    "no container is named, so \"{container}\" was taken: known proxies and helpers are skipped ({skipped})"
                )
            }
            Self::OnlyHelpers { container, helpers } => {
                let helpers = helpers.join(", ");
                write!(
                    f,
                    "no container is named, and the pod has only known proxies and helpers ({helpers}); \"{container}\", \
                     the first, was taken; name the application's by the annotation {ANNOTATION_PREFIX}container-names"
                )
            }
            Self::LittleStorageLeft { limit, need, left } => {
                write!(
                    f,
                    "the agents take {need} of the pod's {limit} of ephemeral storage; {left} are left for logs and \
                     files, and the kubelet evicts the pod when it uses more; raise resources.limits[ephemeral-storage]"
                )
            }
            Self::VolumeLimitTooSmall { field, limit, size } => {
                write!(
                    f,
                    "the agent takes {size}, more than the size limit of its volume ({limit}), so that the kubelet \
                     may evict the pod; raise spec.{field}.volumeLimitSize, or set spec.{field}.volumeClaimTemplate"
                )
            }
            Self::Exporter(problem) => problem.fmt(f),
        }
    }
}
