//! Notes and warnings about an injected container.

mod sentence;

use super::{
    attribute_problem,
    kept::{Kept, On},
    other_agent::OtherAgent,
    reason::ObjectName,
    shown::Names,
};
use otel_webhook_api::{image::Choice, otlp, quantity::Quantity};

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
    /// The default image of the namespace replaces that of the Instrumentation or the installation (D39).
    ImageOfNamespace {
        /// The image.
        image: String,
        /// The replaced image.
        instead_of: String,
    },
    /// The container already loads another agent.
    OtherAgent(OtherAgent),
    /// The pod runs on arm64 only, and the image has no build for it.
    ImageLacksArm64 {
        /// The image.
        image: String,
    },
    /// The init container may fail when it runs again, since its `cp` may not replace what it copied before (D40).
    CopyMayFailAgain {
        /// The image of the init container.
        image: String,
        /// What to do.
        advice: &'static str,
    },
    /// The init containers have a user, since the pod must not run as root (D41).
    UserSet {
        /// The user.
        user: i64,
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
    /// The default image of the namespace is no image reference, so that the installation's is used (D39).
    DefaultImageInvalid {
        /// The language.
        language: &'static str,
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
            | Self::CopyMayFailAgain { .. }
            | Self::DeliveryUnknown { .. }
            | Self::DefaultImageInvalid { .. }
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
            | Self::ImageOfNamespace { .. }
            | Self::SidecarFitted { .. }
            | Self::ImageVolume
            | Self::InitContainerKept(_)
            | Self::UserSet { .. }
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
            Self::ImageOfNamespace { .. } => "ImageOfNamespace",
            Self::OtherAgent(_) => "OtherAgent",
            Self::ImageLacksArm64 { .. } => "ImageLacksArm64",
            Self::CopyMayFailAgain { .. } => "CopyMayFailAgain",
            Self::UserSet { .. } => "UserSet",
            Self::HelpersSkipped { .. } => "HelpersSkipped",
            Self::OnlyHelpers { .. } => "OnlyHelpers",
            Self::LittleStorageLeft { .. } => "LittleStorageLeft",
            Self::VolumeLimitTooSmall { .. } => "VolumeLimitTooSmall",
            Self::SidecarFitted { .. } => "SidecarFitted",
            Self::ImageVolume => "ImageVolume",
            Self::InitContainerKept(_) => "InitContainerKept",
            Self::DeliveryUnknown { .. } => "DeliveryUnknown",
            Self::DefaultImageInvalid { .. } => "DefaultImageInvalid",
            Self::Exporter(problem) => problem.code(),
            Self::Attributes(problem) => problem.code(),
        }
    }
}
