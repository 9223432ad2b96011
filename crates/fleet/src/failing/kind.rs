//! The kinds of failures: which reasons of kubelets they are, what they mean, and what to do.

use serde_json::Value;

/// Why a container cannot start or stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An image cannot be pulled.
    ImagePull,
    /// The name of an image is not valid.
    ImageName,
    /// An image is not on the node, and is never pulled.
    ImageNeverPull,
    /// Something that the container refers to, or its security context, does not allow to create it.
    Config,
    /// The container runtime cannot create it.
    Create,
    /// The container runtime cannot start its command.
    Run,
    /// It ends again and again.
    Crash,
    /// It was ended since it needs more memory than its limit.
    Memory,
    /// The pod is on no node, since the claim of a volume is not bound.
    Claim,
}

/// Which part of a pod fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// A container that injection added.
    Container,
    /// A volume that injection added, in a container that mounts it.
    Volume,
    /// A container of the application.
    Application,
}

/// Reasons for which a container waits (kubelet's `pkg/kubelet/images`, `kuberuntime` and `container`, and `cri-api`), and
/// whether the kubelet has given it up for a while. Those that it has at a first attempt may be gone at the next.
pub(super) const WAITING: [(&str, Kind, bool); 14] = [
    ("ImagePullBackOff", Kind::ImagePull, true),
    ("ErrImagePull", Kind::ImagePull, false),
    ("ImageInspectError", Kind::ImagePull, false),
    ("RegistryUnavailable", Kind::ImagePull, false),
    ("SignatureValidationFailed", Kind::ImagePull, false),
    ("InvalidImageName", Kind::ImageName, true),
    ("ErrImageNeverPull", Kind::ImageNeverPull, true),
    ("CreateContainerConfigError", Kind::Config, true),
    ("CreateContainerError", Kind::Create, true),
    ("PreCreateHookError", Kind::Create, false),
    ("PreStartHookError", Kind::Run, false),
    ("PostStartHookError", Kind::Run, false),
    ("RunContainerError", Kind::Run, false),
    ("CrashLoopBackOff", Kind::Crash, true),
];

/// Returns whether a kubelet that says so of a container has given it up for a while.
pub fn is_given_up(reason: &str) -> bool {
    WAITING.iter().any(|(known, _, is_given_up)| *known == reason && *is_given_up)
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 9] = [
        Self::ImagePull,
        Self::ImageName,
        Self::ImageNeverPull,
        Self::Config,
        Self::Create,
        Self::Run,
        Self::Crash,
        Self::Memory,
        Self::Claim,
    ];

    /// Returns the kind of a reason for which a container waits; `None` if it is only slow.
    pub fn of_waiting(reason: &str) -> Option<Self> {
        WAITING.iter().find(|(known, ..)| *known == reason).map(|(_, kind, _)| *kind)
    }

    /// Returns the kind of a container's end, by its `terminated` state.
    pub(super) fn of_end(end: &Value) -> Self {
        match end["reason"].as_str() {
            Some("OOMKilled") => Self::Memory,
            Some("StartError" | "ContainerCannotRun") => Self::Run,
            _ => Self::Crash,
        }
    }

    /// Whether the container has run and ended.
    pub fn is_end(self) -> bool {
        matches!(self, Self::Crash | Self::Memory)
    }

    /// Returns the code in tables, Events, metrics and JSON: the kubelet's own word for it.
    pub fn code(self) -> &'static str {
        match self {
            Self::ImagePull => "ImagePullBackOff",
            Self::ImageName => "InvalidImageName",
            Self::ImageNeverPull => "ErrImageNeverPull",
            Self::Config => "CreateContainerConfigError",
            Self::Create => "CreateContainerError",
            Self::Run => "RunContainerError",
            Self::Crash => "CrashLoopBackOff",
            Self::Memory => "OOMKilled",
            Self::Claim => "Unschedulable",
        }
    }

    /// Returns what it means for a part of a pod, and what to do.
    pub fn texts(self, part: Part) -> (&'static str, &'static str) {
        match (self, part) {
            (Self::ImagePull, _) => (
                "the image of the agent cannot be pulled",
                "correct the image in the Instrumentation, or let the nodes pull it: the imagePullSecrets of the pod \
                 and its ServiceAccount apply",
            ),
            (Self::ImageName, _) => {
                ("the name of the agent's image is not valid", "correct the image in the Instrumentation")
            }
            (Self::ImageNeverPull, _) => (
                "the image of the agent is not on the node, and its pull policy is Never",
                "load the image on all nodes, or change imagePullPolicy of the Instrumentation",
            ),
            (Self::Config, Part::Volume) => (
                "a folder of the agent's image, or of the volume, cannot be mounted",
                "use an image made for injection, or delivery: initContainer",
            ),
            (Self::Config, Part::Application) => (
                "an object that a variable refers to does not exist, or the security context prevents its creation",
                "create what the message names; spec.env of the Instrumentation may refer to it",
            ),
            (Self::Config, _) => (
                "the pod's security context, or an object that the container refers to, prevents its creation",
                "set what the message names; initContainerSecurityContext of the Instrumentation applies to added init \
                 containers",
            ),
            (Self::Create, Part::Volume) => (
                "the container runtime cannot mount the agent's volume",
                "use delivery: initContainer where nodes cannot mount image volumes",
            ),
            (Self::Create, _) => {
                ("the container runtime cannot create the added container", "correct what the message names")
            }
            (Self::Run, Part::Volume) => (
                "the container does not start with the agent's volume",
                "correct what the message names, or use delivery: initContainer",
            ),
            (Self::Run, _) => (
                "the image of the agent does not have the command that copies or runs it",
                "use an image made for injection, such as those of the OpenTelemetry Operator",
            ),
            (Self::Crash, Part::Application) => (
                "the container ends again and again with the agent in it",
                "read its log; another version or configuration of the agent may help, else opt the workload out",
            ),
            (Self::Crash, _) => (
                "the added container ends again and again",
                "read its log; it says what cannot be copied or run",
            ),
            (Self::Memory, Part::Application) => (
                "the container needs more memory than its limit with the agent in it",
                "raise its memory limit by what the agent needs",
            ),
            (Self::Claim, _) => (
                "the claim of the agent's volume is not bound, so the pod is scheduled to no node",
                "correct volumeClaimTemplate of the Instrumentation, such as its storageClassName, or remove it",
            ),
            (Self::Memory, _) => (
                "the added container needs more memory than its limit",
                "raise the memory limit of the language in the Instrumentation",
            ),
        }
    }
}
