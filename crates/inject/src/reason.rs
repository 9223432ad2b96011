//! The reasons why a container was injected or skipped, and why no data of it arrives: two closed lists.
//!
//! The code of a reason is stable. It is used in metric labels and audit
//! annotations, and people search for it; the sentence is for people.

use std::fmt;

pub use super::object_name::ObjectName;
use super::{
    growth::Excess,
    pause::Pause,
    shown::{LONGEST_TEXT, Names, Short, shown},
    storage::Shortage,
};
use otel_webhook_api::ANNOTATION_PREFIX;
pub use silent::Silent;

/// Something that must have a unique name in a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// A volume.
    Volume,
    /// A container or init container.
    Container,
    /// The path of a mount.
    MountPath,
    /// The variable for the original value of an extended variable.
    Variable,
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Volume => "volume",
            Self::Container => "container",
            Self::MountPath => "mount path",
            Self::Variable => "variable",
        })
    }
}

/// The sign that a pod is already injected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    /// A container that the operator or the webhook adds, by its name.
    Container(String),
    /// A mounted volume of an agent's image, by its name.
    ImageVolume(String),
    /// The variables of a container, by its name.
    Variables(String),
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Container(name) => write!(f, "it has the container \"{}\"", shown(name)),
            Self::ImageVolume(name) => write!(f, "it mounts the image volume \"{}\"", shown(name)),
            Self::Variables(name) => {
                write!(f, "its container \"{}\" has the variables that injection adds", shown(name))
            }
        }
    }
}

/// A container that an annotation names and the pod does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Its name.
    One(String),
    /// The number of those that have no finding themselves.
    More(usize),
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(name) => write!(f, "container \"{}\"", shown(name)),
            Self::More(count) => write!(f, "{count} more named containers"),
        }
    }
}

/// An existing annotation, or a label that is read as one, and its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// Its key, without the prefix.
    pub key: &'static str,
    /// Whether it is an annotation of the namespace, not of the pod.
    pub of_namespace: bool,
    /// Whether it is a label.
    pub is_label: bool,
}

impl fmt::Display for Annotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owner = if self.of_namespace { "namespace" } else { "pod" };
        let kind = if self.is_label { "label" } else { "annotation" };
        write!(f, "the {kind} {ANNOTATION_PREFIX}{} of the {owner}", self.key)
    }
}

/// Whether a reason is what the pod's author asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Severity {
    /// It is: the result was asked for, or there is nothing to do.
    Fine,
    /// It opted in and is not injected, which is warned of.
    Trouble,
}

/// What the result of a reason depends on, besides the language's annotations. Where it is not readable, the
/// result is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DependsOn {
    /// Only the pod.
    Pod,
    /// The annotations and labels of the namespace.
    Namespace,
    /// The flags of the webhook.
    Flags,
    /// The Instrumentations in the namespace of the named one.
    Named,
    /// The Instrumentations of the pod's namespace, and whether flags name a default one.
    Selection,
    /// The Instrumentations that were chosen from.
    Chosen,
    /// The used Instrumentation, the containers and the other languages of the pod.
    Used,
}

/// A list of codes, each with its meaning, its sentence, and the remedy: `fix` where it follows the sentence, `said`
/// where the sentence says it already.
macro_rules! described {
    ($(#[doc = $about:literal])* $list:ident: $(
        $(#[doc = $doc:literal])*
        $name:ident $({ $($field:ident: $kind:ty),* $(,)? })? => $text:literal, $place:ident $remedy:literal;
    )*) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the sentence explains the fields")]
        pub enum $list {
            $($(#[doc = $doc])* $name $({ $($field: $kind),* })?,)*
        }

        impl $list {
            /// All of them, in the order of the list.
            pub const ALL: &'static [Described] = &[$(Described {
                code: stringify!($name),
                meaning: concat!($($doc),*),
                sentence: $text,
                remedy: $remedy,
            }),*];

            /// The stable code, in camel case.
            pub fn code(&self) -> &'static str {
                match self {
                    $(Self::$name { .. } => stringify!($name),)*
                }
            }

            /// What to do. `None` if the sentence says it.
            pub fn remedy(&self) -> Option<&'static str> {
                match self {
                    $(Self::$name { .. } => described!(@remedy $place $remedy),)*
                }
            }
        }

        impl fmt::Display for $list {
            /// The sentence for people. It names the object, the value and what would be valid.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name $({ $($field),* })? => write!(f, $text $(, $($field = Shown($field)),*)?),)*
                }
            }
        }
    };
    (@remedy fix $remedy:literal) => { Some($remedy) };
    (@remedy said $remedy:literal) => { None };
}

macro_rules! reasons {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident $({ $($field:ident: $kind:ty),* $(,)? })?: $severity:ident, $depends_on:ident
            => $text:literal,
            $place:ident $remedy:literal;
    )*) => {
        described! {
            /// Why a language was injected into a container, or skipped.
            Reason: $($(#[doc = $doc])* $name $({ $($field: $kind),* })? => $text, $place $remedy;)*
        }

        impl Reason {
            fn severity(&self) -> Severity {
                match self {
                    $(Self::$name { .. } => Severity::$severity,)*
                }
            }

            /// What it depends on.
            pub fn depends_on(&self) -> DependsOn {
                match self {
                    $(Self::$name { .. } => DependsOn::$depends_on,)*
                }
            }
        }
    };
}

/// A row of the list, for documentation.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// The code.
    pub code: &'static str,
    /// What it means, in Markdown.
    pub meaning: &'static str,
    /// The sentence, with the names of its fields in braces.
    pub sentence: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

// Each has, in addition, whether it is trouble, and what it depends on.
reasons! {
    /// The agent was added.
    Injected: Fine, Used
        => "injected",
        said "nothing";
    /// Everything that injection would add is already set; a variable that is removed is set again.
    NothingToAdd: Fine, Used
        => "nothing to add: the container has every variable already",
        said "nothing";
    /// The annotation or label is `"false"`.
    SwitchedOff { annotation: Annotation }: Fine, Namespace
        => "opted out by {annotation}",
        said "remove it to opt in";
    /// `--languages` (in the chart `injection.languages`) does not list the language.
    LanguageDisabled { language: &'static str }: Trouble, Flags
        => "the language {language} is not enabled in this installation; --languages lists the enabled ones",
        fix "enable the language by --languages (in the chart: injection.languages), or remove the annotation";
    /// The pod has the containers or the variables of an injection, by an earlier review or by the
    /// operator.
    AlreadyInjected { sign: Sign }: Fine, Pod
        => "the pod is already injected: {sign}",
        said "nothing; if another injector added them, see docs/guides/migration.md";
    /// The annotation `otel-webhook/paused` of the installation, the namespace or the Instrumentation is
    /// `true`.
    Paused { by: Pause, command: String }: Trouble, Used
        => "injection is paused by the annotation otel-webhook/paused of {by}; to resume: {command}",
        said "remove the annotation to resume; see docs/operations/pause.md";
    /// The namespace has no Instrumentation, and there is no default.
    NoInstrumentation { namespace: String, advice: &'static str }: Trouble, Selection
        => "there is no Instrumentation in namespace \"{namespace}\" and no default is set; {advice}",
        said "create one, or set --default-instrumentation";
    /// Every Instrumentation of the namespace has a selector, and none matches the pod.
    NoneSelectsPod { namespace: String, names: Names }: Trouble, Selection
        => "no Instrumentation of namespace \"{namespace}\" selects this pod: the selectors of {names} do not match its labels",
        fix "change the labels or the selectors, or name an Instrumentation in the annotation";
    /// Several Instrumentations match with the same priority.
    AmbiguousInstrumentation { namespace: String, names: Names }: Trouble, Chosen
        => "several Instrumentations of namespace \"{namespace}\" match this pod with the same priority: {names}; name one in the annotation, or set spec.selector or spec.priority",
        said "name one in the annotation, or set spec.selector or spec.priority";
    /// Several Instrumentations opt the pod in by their selectors, with the same priority.
    AmbiguousOptIn { namespace: String, names: Names }: Trouble, Chosen
        => "several Instrumentations of namespace \"{namespace}\" opt this pod in by their selectors, with the same priority: {names}; set spec.selector or spec.priority, or name one in an annotation of the pod",
        said "set spec.selector or spec.priority, or name one in an annotation";
    /// The annotation names an Instrumentation that does not exist.
    InstrumentationNotFound { name: ObjectName, known: Names }: Trouble, Named
        => "Instrumentation \"{name}\" not found; its namespace has: {known}",
        fix "name one of these, or create it";
    /// It is in another namespace, and does not exist or is not granted to the pod's namespace by
    /// `otel-webhook/allowed-namespaces`. Which of the two is not said.
    InstrumentationNotGranted { name: ObjectName, namespace: String, granted: Names }: Trouble, Named
        => "Instrumentation \"{name}\" not found, or not granted to namespace \"{namespace}\" by its annotation otel-webhook/allowed-namespaces; granted Instrumentations of its namespace: {granted}",
        fix "name a granted one, or have the namespace granted";
    /// The annotation names an Instrumentation of another namespace, and `--cross-namespace=deny`.
    CrossNamespaceDenied { name: ObjectName, namespace: String }: Trouble, Flags
        => "Instrumentation \"{name}\" is in another namespace, which --cross-namespace=deny does not allow; create one in namespace \"{namespace}\" and name it",
        said "create an Instrumentation in the pod's namespace";
    /// The Instrumentation of `--default-instrumentation` does not exist.
    DefaultInstrumentationNotFound { name: ObjectName }: Trouble, Named
        => "default Instrumentation \"{name}\" not found; create it, or set another one by --default-instrumentation",
        said "create it, or set another one";
    /// It cannot be used: it was stored with an error, as before the webhook was installed, or is too large
    /// (docs/operations/configuration.md#sizes-of-what-is-read).
    InstrumentationInvalid { name: ObjectName, problem: String }: Trouble, Chosen
        => "Instrumentation \"{name}\" cannot be used: {problem}",
        fix "fix the Instrumentation; otel-webhook validate lists all errors";
    /// No Instrumentation that the pod may use has the agent that `inject-agent` names.
    AgentNotFound { agent: String, known: Names }: Trouble, Used
        => "agent \"{agent}\" not found in spec.agents of the Instrumentations that the pod may use; they have: {known}",
        fix "name one of these, or add it to spec.agents of an Instrumentation; see docs/guides/generic-agent.md";
    /// `inject-agent` names more than 16 agents, the most that an Instrumentation can have.
    TooManyAgents { annotation: Annotation, most: usize }: Trouble, Used
        => "{annotation} names more than {most} agents; name at most {most}",
        said "name fewer";
    /// A list names a container that the pod does not have.
    ContainerNotFound { container: Unknown, known: Names }: Trouble, Used
        => "{container} not found; the pod has: {known}",
        fix "name containers of the pod in the annotation";
    /// A list of containers has no name in it.
    NoContainerNamed { annotations: Vec<Annotation>, known: Names }: Trouble, Used
        => "no container is named by {annotations}; the pod has: {known}",
        fix "name containers of the pod in the annotation";
    /// One container is named twice for one language; the language is not injected.
    ContainerNamedTwice { container: String, language: &'static str, annotations: Vec<Annotation> }: Trouble, Used
        => "container \"{container}\" is named twice for {language}, by {annotations}; name it once",
        said "name it once";
    /// Several languages are opted in to, and one has no list of containers.
    ContainerListMissing { languages: Vec<String>, missing: Vec<String> }: Trouble, Used
        => "the pod opts in to several languages ({languages}), and each needs a list of its containers; annotate the pod with {missing}",
        said "add the annotation that the reason names";
    /// The namespace opts in to one language, the pod itself to another one, without lists of containers.
    NamespaceLanguageIgnored { languages: Vec<String> }: Trouble, Used
        => "the namespace's language is ignored because the pod itself opts in to {languages}, and there is no list of containers for each language",
        fix "list the containers of each language";
    /// A selector opts in to one language, pod or namespace to another one, without lists of containers.
    SelectorLanguageIgnored { name: ObjectName, languages: Vec<String> }: Fine, Used
        => "the opt-in by the selector of Instrumentation \"{name}\" is ignored because the pod or its namespace opts in to {languages}, and there is no list of containers for each language",
        fix "list the containers of each language";
    /// `spec.namespaceSelector` is set outside the namespace of `--default-instrumentation`.
    NamespaceSelectorDenied { name: ObjectName }: Trouble, Flags
        => "Instrumentation \"{name}\" sets spec.namespaceSelector, which is allowed only in the namespace of --default-instrumentation, so its spec.inject is not used; remove spec.namespaceSelector",
        said "remove the field; see docs/guides/opt-in.md#pods-of-other-namespaces";
    /// A list names an init container, which the language does not support.
    InitContainer { container: String }: Trouble, Used
        => "\"{container}\" is an init container, which this language does not support",
        fix "name another container";
    /// A variable to be extended has an `optional` `valueFrom`. If its object were missing, a reference to
    /// it would stay unexpanded.
    OptionalReference { variable: String }: Trouble, Used
        => "{variable} is set from an optional reference; if it were missing, the options of the agent would be lost, too; make the reference required, or set a value",
        said "make the reference required, or set a value";
    /// The container sets `OTEL_DOTNET_AUTO_HOME` itself, so its image is already instrumented for .NET.
    AutoHomeSet: Trouble, Used
        => "the container sets OTEL_DOTNET_AUTO_HOME, so its image is treated as already instrumented",
        fix "remove the variable, or opt out";
    /// The value of `otel-python-platform` or `otel-dotnet-auto-runtime` is not a platform of the agent.
    PlatformUnknown { annotation: Annotation, value: String, valid: Vec<String> }: Trouble, Used
        => "{annotation} is \"{value}\", which is not a platform of this agent; valid: {valid}",
        fix "set one of the valid platforms";
    /// The pod has a volume, container, mount or variable with a name that would be added.
    NameTaken { what: Taken, name: String }: Trouble, Used
        => "the pod already has a {what} \"{name}\"",
        fix "rename the pod's own, or opt out";
    /// `spec.os`, the node selector or every term of the required node affinity demands Windows.
    WindowsPod: Trouble, Pod
        => "the pod is for Windows; agents have images for Linux only",
        fix "opt out";
    /// Go needs a shared process namespace, and `shareProcessNamespace` is `false`.
    ProcessNamespaceNotShared: Trouble, Used
        => "spec.shareProcessNamespace is false, but the Go agent needs access to the processes of the application",
        fix "remove spec.shareProcessNamespace";
    /// Go needs the path of the executable, and `OTEL_GO_AUTO_TARGET_EXE` is not set.
    TargetExecutableMissing: Trouble, Used
        => "OTEL_GO_AUTO_TARGET_EXE is not set; set the path of the executable in the annotation instrumentation.opentelemetry.io/otel-go-auto-target-exe of the pod",
        said "set the annotation instrumentation.opentelemetry.io/otel-go-auto-target-exe";
    /// Go attaches to one container, and several are named.
    SeveralContainers { annotation: Annotation, containers: String }: Trouble, Used
        => "{annotation} is \"{containers}\", which has a comma; Go supports only one container",
        fix "name one container";
    /// The pod security level of the namespace rejects a container that would be added: Go's, or one with
    /// what the Instrumentation gives to init containers.
    PodSecurity { namespace: String, level: String, refused: String }: Trouble, Used
        => "namespace \"{namespace}\" enforces the pod security level \"{level}\", which rejects {refused}",
        fix "change the security context of the Instrumentation, or the level of the namespace";
    /// The Instrumentation gives init containers more privileges, and `--init-containers-privileged=deny`.
    PrivilegedInitContainer { name: ObjectName, field: String }: Trouble, Flags
        => "Instrumentation \"{name}\" sets spec.initContainerSecurityContext.{field}, which --init-containers-privileged=deny does not allow; remove it from the Instrumentation, or use another one",
        said "remove the field from the Instrumentation, or use another one";
    /// The pod must not run as root (`runAsNonRoot: true`) and the user of the added container is 0, so the
    /// kubelet would not start it.
    RootNotAllowed { what: &'static str, advice: &'static str }: Trouble, Used
        => "runAsNonRoot is true and {what} would run as root, so the kubelet would not start the pod; {advice}",
        said "set another user in the pod or in spec.initContainerSecurityContext; for Go, runAsNonRoot: false in spec.go.securityContext";
    /// The pod must not run as root and sets no user and no `fsGroup`, so the init containers could not
    /// write to the volume of `volumeClaimTemplate`.
    ClaimNotWritable { field: String, user: i64 }: Trouble, Used
        => "the init containers would run as user {user}, since the pod must not run as root, and could not write to the volume of {field}; set spec.securityContext.fsGroup of the pod, or remove the template",
        said "set spec.securityContext.fsGroup of the pod, or remove the template";
    /// The node selector or the required node affinity demands arm64, and the default image of Apache HTTPD
    /// and nginx is for x86-64.
    ModuleLacksArm64 { image: String }: Trouble, Used
        => "the pod runs on arm64 nodes only, and {image} has no build for arm64, so its init container would not start; set an image that has one, or opt out",
        said "use an image with a build for arm64, or opt out";
    /// A LimitRange or a ResourceQuota of the namespace would reject the pod with Go's sidecar.
    ResourcesRejected { object: String, problem: String }: Trouble, Used
        => "{object} would reject the pod with the sidecar: {problem}; lower spec.go.resourceRequirements of the Instrumentation, or change {object}",
        said "lower what the Instrumentation sets, or raise the limit";
    /// A LimitRange or a ResourceQuota would reject the claim of `volumeClaimTemplate`.
    ClaimRejected { field: String, object: String, problem: String }: Trouble, Used
        => "{object} would reject the claim of {field}, and the pod would wait for it: {problem}; change the template, or {object}",
        said "change the template, or raise the limit";
    /// The ServiceAccount has `kubernetes.io/enforce-mountable-secrets`, and does not list a Secret of the
    /// Instrumentation.
    SecretNotAllowed { account: String, secret: String }: Trouble, Used
        => "ServiceAccount \"{account}\" allows only the Secrets that it lists (kubernetes.io/enforce-mountable-secrets), and the Instrumentation refers to Secret \"{secret}\"; use an Instrumentation without it, or another ServiceAccount",
        said "use another Instrumentation or ServiceAccount";
    /// The pod is the mirror pod of a static pod, which its kubelet created from a file.
    MirrorPod: Trouble, Pod
        => "the pod is the mirror pod of a static pod, which cannot be changed; add the agent to the static pod's manifest",
        said "add the agent to the static pod's manifest";
    /// The Instrumentation is stored as v1beta1 and has no image for the language, which `--require-images` requires, as
    /// the operator does.
    ImageRequired { name: ObjectName, field: String }: Trouble, Flags
        => "Instrumentation \"{name}\" does not set {field}, which this installation requires in v1beta1 (--require-images)",
        fix "set the image";
    /// The configuration path of a web server is relative, or the root itself.
    ConfigPath { field: &'static str, value: String }: Trouble, Used
        => "{field}: \"{value}\" cannot be mounted over; set an absolute path of a file or folder below the root",
        said "set an absolute path below the root";
    /// The name or the value of a directive of a web server has control characters, or more than 8,000
    /// bytes (nginx: 4,000).
    DirectiveInvalid { field: String, directive: String, problem: &'static str }: Trouble, Used
        => "{field}: the directive {directive} {problem}",
        fix "correct the field";
    /// The agents do not fit into the pod's limit of ephemeral storage, so the kubelet would evict the pod.
    EphemeralStorage { shortage: Box<Shortage> }: Trouble, Used
        => "{shortage}",
        fix "raise the limit of ephemeral storage; see docs/operations/sizes.md";
    /// The pod would be larger than `--max-pod-size` (1536Ki), or more than 256Ki and four times the pod
    /// would be added.
    PodTooLarge { excess: Excess }: Trouble, Used
        => "{excess}; name fewer containers, or shorten the variables and resource attributes of the Instrumentation and of the pod's annotations",
        said "name fewer containers, or shorten the variables and resource attributes that are added to each";
    /// The agent cannot use the file of `spec.declarativeConfig`, or it is not known whether it can.
    DeclarativeConfigUnsupported { agent: String, why: String, valid: String }: Trouble, Used
        => "{agent} cannot use spec.declarativeConfig: {why}; {valid}",
        said "see docs/guides/declarative-config.md#which-agent-can-use-it";
    /// The file of `spec.declarativeConfig` is larger than `--max-declarative-config-size` (16Ki).
    DeclarativeConfigTooLarge { size: usize, most: usize }: Trouble, Flags
        => "the file of spec.declarativeConfig has {size} bytes; valid: at most {most} (--max-declarative-config-size)",
        fix "shorten the file";
    /// With the file of `spec.declarativeConfig`, the annotations of the pod would have more than 256Ki.
    AnnotationsTooLarge { size: usize, most: usize }: Trouble, Used
        => "the annotations of the pod leave no room for the {size} bytes of spec.declarativeConfig; valid: {most} bytes in all",
        fix "remove annotations of the pod, or shorten the file";
    /// The pod has an empty list of containers; the API server rejects it.
    NoContainers: Trouble, Pod
        => "the pod has no containers",
        fix "correct the containers of the pod";
    /// A part of a container is not as the API server sends it.
    ContainerUnreadable { container: String, problem: String }: Trouble, Used
        => "container \"{container}\" cannot be read: {problem}",
        fix "correct the containers of the pod";
}

mod silent;

/// A field in a sentence.
struct Shown<'a, T: ?Sized>(&'a T);

impl<T: fmt::Display + ?Sized> fmt::Display for Shown<'_, T>
where
    T: NotAList,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Short { what: self.0, longest: LONGEST_TEXT }.fmt(f)
    }
}

impl fmt::Display for Shown<'_, Names> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: fmt::Display> fmt::Display for Shown<'_, Vec<T>> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (index, item) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            item.fmt(f)?;
        }
        Ok(())
    }
}

trait NotAList {}
impl NotAList for String {}
impl NotAList for &str {}
impl NotAList for ObjectName {}
impl NotAList for Taken {}
impl NotAList for Sign {}
impl NotAList for usize {}
impl NotAList for i64 {}
impl NotAList for u16 {}
impl NotAList for Unknown {}
impl NotAList for Excess {}
impl NotAList for Annotation {}
impl NotAList for Box<Shortage> {}
impl NotAList for Pause {}

impl Reason {
    /// The reason for what is paused.
    pub fn paused(by: Pause) -> Self {
        let command = by.resume_command();
        Self::Paused { by, command }
    }

    /// The reason for a name that is already used.
    pub fn taken(what: Taken, name: &str) -> Self {
        Self::NameTaken { what, name: name.to_owned() }
    }

    /// The Instrumentation that it is about, if the sentence names one.
    pub fn instrumentation(&self) -> Option<&ObjectName> {
        match self {
            Self::InstrumentationNotFound { name, .. }
            | Self::InstrumentationNotGranted { name, .. }
            | Self::DefaultInstrumentationNotFound { name }
            | Self::InstrumentationInvalid { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Whether the language was injected.
    pub fn is_injected(&self) -> bool {
        matches!(self, Self::Injected)
    }

    /// Whether it has a warning: opted in but not injected.
    pub fn is_trouble(&self) -> bool {
        self.severity() == Severity::Trouble
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_the_value_and_what_is_valid() {
        let (container, known) = (Unknown::One("ap".to_owned()), Names::of(["app", "proxy"]));
        let reason = Reason::ContainerNotFound { container, known };
        assert_eq!(reason.code(), "ContainerNotFound");
        assert_eq!(reason.to_string(), "container \"ap\" not found; the pod has: app, proxy");
    }
}
