//! Notes and warnings about an injected container.

mod sentence;

use super::{
    attribute_problem,
    cluster::Obstacle,
    declarative,
    delivery::{Kept, On},
    other_agent::OtherAgent,
    reason::ObjectName,
    shown::Names,
};
use otel_webhook_api::{image::Choice, otlp, quantity::Quantity};

/// With less memory than this, the kernel may kill a copying container (reason `OOMKilled`).
pub const LEAST_MEMORY: Quantity = Quantity::mebibytes(128);

/// Whether something should be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something is probably a mistake: shown by `kubectl`, and an error for `validate --strict`.
    Warning,
    /// Something was decided on the way.
    Note,
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident: $level:ident, $remedy:literal;)*) => {
        /// The codes of notes and warnings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code {
            $($(#[doc = $doc])* $name,)*
        }

        impl Code {
            /// All of them, in the order of the list.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The stable code, in camel case.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// Whether something should be changed.
            pub fn level(self) -> Level {
                match self {
                    $(Self::$name => Level::$level,)*
                }
            }

            /// What it means, and what to do, both in Markdown.
            pub fn texts(self) -> [&'static str; 2] {
                match self {
                    $(Self::$name => [concat!($($doc),*), $remedy],)*
                }
            }
        }
    };
}

codes! {
    /// The container's variables load another agent: `-javaagent`, a known profiler or APM in
    /// `JAVA_TOOL_OPTIONS`, `JDK_JAVA_OPTIONS`, `_JAVA_OPTIONS`, `NODE_OPTIONS`, `PYTHONPATH`, or another
    /// `CORECLR_PROFILER`.
    OtherAgent: Warning, "remove the other agent, or opt out";
    /// The node selector or the required node affinity demands arm64, and the default image has no build
    /// for it: .NET before 1.16.
    ImageLacksArm64: Warning, "use an image with a build for arm64, or opt out";
    /// The init container may fail when it runs again, as after a restart of the node: the agent's image is
    /// not named as the operator's, such as `autoinstrumentation-nodejs`, so that its `cp` is not given
    /// `-f`; or Apache HTTPD's configuration is a mounted ConfigMap, which is made of links.
    CopyMayFailAgain: Warning,
        "if `cp` of the image knows `-f`, name its repository as the operator does, or use image \
         volumes (docs/guides/image-volumes.md); for Apache HTTPD, mount single files by `subPath`";
    /// An OTLP endpoint such as `collector:4317` or `htp://collector:4317`; agents expect a URL of HTTP.
    EndpointWithoutScheme: Warning, "set a URL, such as `http://collector:4317`";
    /// Port 4317 with `http/protobuf`, or 4318 with `grpc`. If no protocol is set, the agent's default
    /// applies: `http/protobuf` for Java 2, Node.js, Python, .NET and Go, `grpc` for Java 1, Apache HTTPD
    /// and nginx.
    PortContradictsProtocol: Warning, "change the port, or set `OTEL_EXPORTER_OTLP_PROTOCOL`";
    /// The agents leave less than 50Mi of the pod's limit of ephemeral storage.
    LittleStorageLeft: Warning, "raise the limit; see docs/operations/sizes.md";
    /// `volumeLimitSize` is smaller than the agent.
    VolumeLimitTooSmall: Warning, "raise it";
    /// The key of a resource attribute is empty, or has `,`, `=` or a control character.
    AttributeSkipped: Warning, "correct the key";
    /// Node.js would discard all resource attributes, because one cannot be decoded, has an `=` that is not
    /// encoded, or is longer than 255 characters.
    AttributesDiscarded: Warning, "correct the attribute";
    /// The image for .NET is older than 1.14 and does not decode resource attributes, and a value has an
    /// escape.
    AttributeNotDecoded: Warning, "use a newer image, or another value";
    /// Apache HTTPD and nginx: the value of a resource attribute has a comma.
    AttributeSplit: Warning, "use another value";
    /// No container is named, and the pod has only known proxies and helpers.
    OnlyHelpers: Warning, "name the container";
    /// The annotation `otel-webhook/delivery` of the pod or its namespace is not `initContainer`,
    /// `imageVolume` or `auto`; it is ignored.
    DeliveryUnknown: Warning, "correct the value";
    /// The image of the agent is mounted, and the API server or a node that the pod may run on is not known to mount
    /// images. The pod may not start there.
    ImageVolumeNotSupported: Warning, "set the delivery `auto` or `initContainer`, or keep the pod off the node";
    /// The annotation `otel-webhook/default-image-…` of the namespace is not an image reference; it is
    /// ignored.
    DefaultImageInvalid: Warning, "correct the value";
    /// Added variables, such as `OTEL_SERVICE_NAME`, may also be set by `envFrom`; the injected values override
    /// them.
    MayBeSetByEnvFrom: Note, "set the variable in `env` to keep its value";
    /// The Secret or ConfigMap of `spec.exporter.tls` is mounted as optional, and was not checked.
    CertificateNotChecked: Note,
        "see that it exists in the namespace of the pod; otel-webhook check does \
         (docs/operations/runbook.md#exporterfilesmissing)";
    /// Neither pod nor namespace opts in, but the selector of an Instrumentation does.
    OptedInBySelector: Note, "nothing";
    /// The lookup of an owner timed out after 300 ms; the attributes follow from its name.
    OwnerNotLearned: Note, "nothing; if it is frequent, see how the API server responds";
    /// The pod has more than three owners that would have to be looked up; the controller and the first
    /// others were, and the attributes of the owners of the rest are missing.
    OwnersNotLookedUp: Note, "nothing";
    /// The init containers have other resources than in the Instrumentation, so that the pod's requests and
    /// limits stay the same and its namespace accepts it.
    ResourcesLowered: Note, "nothing; `--init-resources=exact` keeps them";
    /// The pod's resources leave little memory for its init containers, which may be killed (`OOMKilled`).
    MemoryTooLittle: Note, "raise the memory limit of the container";
    /// The Instrumentation's image is a recorded default of an earlier version, and the present default is
    /// used.
    ImageReplaced: Note, "nothing";
    /// The Instrumentation's image is a recorded default, and is used although the present default is
    /// another one.
    ImageKept: Note,
        "set `--default-image` or `--image-registry` to replace it, or remove the image from the \
         Instrumentation";
    /// The namespace has a default image for the language, which is used instead of the Instrumentation's
    /// or the installation's default.
    ImageOfNamespace: Note,
        "nothing; remove the annotation `otel-webhook/default-image-…` of the namespace to end it";
    /// No container is named, and known proxies and helpers before the selected one were skipped.
    HelpersSkipped: Note, "name the container if another one was meant";
    /// The pod must not run as root and sets no user, so the init containers have one: that of the target,
    /// or the first of the namespace's range on OpenShift, or 65532.
    UserSet: Note, "nothing";
    /// The sidecar has other resources than the Instrumentation says, so that the API server accepts the
    /// pod.
    SidecarFitted: Note, "nothing";
    /// The image of the agent is mounted, and no init container is added.
    ImageVolume: Note, "nothing; see docs/guides/image-volumes.md";
    /// Init containers copy the agent although image volumes were chosen, with the reason, such as a node
    /// that cannot mount images.
    InitContainerKept: Note, "nothing, or what the sentence names";
    /// The agent cannot use the file of `spec.declarativeConfig`, and has variables for what these express.
    DeclarativeConfigByVariables: Note, "use an agent that reads the file; see docs/guides/declarative-config.md";
    /// The agent reads the file of `spec.declarativeConfig`.
    DeclarativeConfigRead: Note, "nothing; otel-webhook config prints the file of a pod";
    /// The agent reads the file of `spec.declarativeConfig`, but not all of it.
    DeclarativeConfigLimited: Note, "what the sentence names; see docs/guides/declarative-config.md";
    /// `spec.probes` is `drop`, and the agent cannot drop the spans of probes. The sentence has a rule for a Collector.
    ProbesNotDropped: Note, "add the rule to a Collector";
    /// The container sets the variable with the path of a configuration file itself, which is used.
    OwnConfigFile: Note, "remove the variable to use the file of the Instrumentation";
}

/// A note about an injected container.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Note {
    /// Added variables may also be set by `envFrom`; the injected values override them.
    MayBeSetByEnvFrom {
        /// The variables.
        variables: Names,
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
    /// The image of the agent is mounted, and not every node is known to mount images.
    ImageVolumeNotSupported(Obstacle),
    /// Init containers copy the agent although image volumes were chosen.
    InitContainerKept(Kept),
    /// The agent cannot drop the spans of probes.
    ProbesNotDropped,
    /// What the agent gets of the file.
    Declarative(declarative::Limit),
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
    pub fn is_warning(&self) -> bool {
        self.kind().level() == Level::Warning
    }

    /// The level as a word.
    pub fn level(&self) -> &'static str {
        if self.is_warning() { "warning" } else { "note" }
    }

    /// The stable code, in camel case.
    pub fn code(&self) -> &'static str {
        self.kind().name()
    }

    fn kind(&self) -> Code {
        use {attribute_problem::Problem, declarative::Limit, otlp::Problem as Otlp};
        match self {
            Self::MayBeSetByEnvFrom { .. } => Code::MayBeSetByEnvFrom,
            Self::CertificateNotChecked { .. } => Code::CertificateNotChecked,
            Self::OptedInBySelector { .. } => Code::OptedInBySelector,
            Self::OwnerNotLearned { .. } => Code::OwnerNotLearned,
            Self::OwnersNotLookedUp { .. } => Code::OwnersNotLookedUp,
            Self::ResourcesLowered { .. } => Code::ResourcesLowered,
            Self::MemoryTooLittle { .. } => Code::MemoryTooLittle,
            Self::Image(choice) if choice.is_replaced() => Code::ImageReplaced,
            Self::Image(_) => Code::ImageKept,
            Self::ImageOfNamespace { .. } => Code::ImageOfNamespace,
            Self::OtherAgent(_) => Code::OtherAgent,
            Self::ImageLacksArm64 { .. } => Code::ImageLacksArm64,
            Self::CopyMayFailAgain { .. } => Code::CopyMayFailAgain,
            Self::UserSet { .. } => Code::UserSet,
            Self::HelpersSkipped { .. } => Code::HelpersSkipped,
            Self::OnlyHelpers { .. } => Code::OnlyHelpers,
            Self::LittleStorageLeft { .. } => Code::LittleStorageLeft,
            Self::VolumeLimitTooSmall { .. } => Code::VolumeLimitTooSmall,
            Self::SidecarFitted { .. } => Code::SidecarFitted,
            Self::ImageVolume => Code::ImageVolume,
            Self::ImageVolumeNotSupported(_) => Code::ImageVolumeNotSupported,
            Self::InitContainerKept(_) => Code::InitContainerKept,
            Self::ProbesNotDropped => Code::ProbesNotDropped,
            Self::Declarative(Limit::ByVariables { .. }) => Code::DeclarativeConfigByVariables,
            Self::Declarative(Limit::Read { lost: "", .. }) => Code::DeclarativeConfigRead,
            Self::Declarative(Limit::Read { .. }) => Code::DeclarativeConfigLimited,
            Self::Declarative(Limit::OwnFile { .. }) => Code::OwnConfigFile,
            Self::DeliveryUnknown { .. } => Code::DeliveryUnknown,
            Self::DefaultImageInvalid { .. } => Code::DefaultImageInvalid,
            Self::Exporter(Otlp::NoScheme { .. }) => Code::EndpointWithoutScheme,
            Self::Exporter(Otlp::Port { .. }) => Code::PortContradictsProtocol,
            Self::Attributes(Problem::Key { .. }) => Code::AttributeSkipped,
            Self::Attributes(Problem::Discarded { .. }) => Code::AttributesDiscarded,
            Self::Attributes(Problem::NotDecoded { .. }) => Code::AttributeNotDecoded,
            Self::Attributes(Problem::Split { .. }) => Code::AttributeSplit,
        }
    }
}
