//! The reasons why a container was injected or skipped: one closed list.
//!
//! The code of a reason is stable. It is used in metric labels and audit
//! annotations, and people search for it; the sentence is for people.

use std::fmt;

use super::{
    growth::Excess,
    shown::{LONGEST_TEXT, Names, Short, shown},
    storage::limit::Shortage,
};
use otel_webhook_api::ANNOTATION_PREFIX;

/// The namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // For each injected pod, and twice as fast as `write!`.
        f.write_str(&self.namespace)?;
        f.write_str("/")?;
        f.write_str(&self.name)
    }
}

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
    /// The number of those that have no finding of their own.
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

macro_rules! reasons {
    ($($(#[doc = $doc:literal])* $name:ident $({ $($(#[$fdoc:meta])* $field:ident: $kind:ty),* $(,)? })? => $text:literal;)*) => {
        /// Why a language was injected into a container, or skipped.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the sentence of a reason explains its fields")]
        pub enum Reason {
            $($(#[doc = $doc])* $name $({ $($(#[$fdoc])* $field: $kind),* })?,)*
        }

        impl Reason {
            /// All codes, in the order of the list.
            pub const CODES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// What each code means, in the same order.
            pub const MEANINGS: &'static [&'static str] = &[$(concat!($($doc),*)),*];

            /// The sentence of each code, in the same order, with the names of its fields in braces.
            pub const SENTENCES: &'static [&'static str] = &[$($text),*];

            /// The stable code, in camel case.
            pub fn code(&self) -> &'static str {
                match self {
                    $(Self::$name $({ $($field: _),* })? => stringify!($name),)*
                }
            }
        }

        impl fmt::Display for Reason {
            /// The sentence for people. It names the object, the value and what would be valid.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name $({ $($field),* })? => write!(f, $text $(, $($field = Shown($field)),*)?),)*
                }
            }
        }
    };
}

reasons! {
    /// The agent was added.
    Injected => "injected";
    /// Everything that injection would add is already set.
    NothingToAdd => "nothing to add: the container has every variable already";
    /// The annotation opts out.
    SwitchedOff { annotation: Annotation } => "opted out by {annotation}";
    /// The language is not enabled.
    LanguageDisabled { language: &'static str } => "the language {language} is not enabled in this installation; --languages lists the enabled ones";
    /// The pod has one of the injected containers, or the variables.
    AlreadyInjected { sign: Sign } => "the pod is already injected: {sign}";
    /// The annotation is "true", and there is no Instrumentation.
    NoInstrumentation { namespace: String, advice: &'static str } => "there is no Instrumentation in namespace \"{namespace}\" and no default is set; {advice}";
    /// Every Instrumentation of the namespace has a selector, and none matches.
    NoneSelectsPod { namespace: String, names: Names } => "no Instrumentation of namespace \"{namespace}\" selects this pod: the selectors of {names} do not match its labels";
    /// Several match with the same priority.
    AmbiguousInstrumentation { namespace: String, names: Names } => "several Instrumentations of namespace \"{namespace}\" match this pod with the same priority: {names}; name one in the annotation, or set spec.selector or spec.priority";
    /// Several opt the pod in with the same priority.
    AmbiguousOptIn { namespace: String, names: Names } => "several Instrumentations of namespace \"{namespace}\" opt this pod in by their selectors, with the same priority: {names}; set spec.selector or spec.priority, or name one in an annotation of the pod";
    /// The named one does not exist.
    InstrumentationNotFound { name: ObjectName, known: Names } => "Instrumentation \"{name}\" not found; its namespace has: {known}";
    /// It is in another namespace, and is not there or not for the pod's namespace. Which of the two is not
    /// told.
    InstrumentationNotGranted { name: ObjectName, namespace: String, granted: Names } => "Instrumentation \"{name}\" not found, or not granted to namespace \"{namespace}\" by its annotation otel-webhook/allowed-namespaces; granted Instrumentations of its namespace: {granted}";
    /// Instrumentations of other namespaces are not allowed.
    CrossNamespaceDenied { name: ObjectName, namespace: String } => "Instrumentation \"{name}\" is in another namespace, which --cross-namespace=deny does not allow; create one in namespace \"{namespace}\" and name it";
    /// The default Instrumentation does not exist.
    DefaultInstrumentationNotFound { name: ObjectName } => "default Instrumentation \"{name}\" not found; create it, or set another one by --default-instrumentation";
    /// It exists, but cannot be used.
    InstrumentationInvalid { name: ObjectName, problem: String } => "Instrumentation \"{name}\" cannot be used: {problem}";
    /// No Instrumentation that may be used has the agent.
    AgentNotFound { agent: String, known: Names } => "agent \"{agent}\" not found in spec.agents of the Instrumentations that the pod may use; they have: {known}";
    /// More agents than an Instrumentation can have.
    TooManyAgents { annotation: Annotation, most: usize } => "{annotation} names more than {most} agents; name at most {most}";
    /// The pod has no such container.
    ContainerNotFound { container: Unknown, known: Names } => "{container} not found; the pod has: {known}";
    /// A list of container names without a name.
    NoContainerNamed { annotations: Vec<Annotation>, known: Names } => "no container is named by {annotations}; the pod has: {known}";
    /// A container is named twice for one language.
    ContainerNamedTwice { container: String, language: &'static str, annotations: Vec<Annotation> } => "container \"{container}\" is named twice for {language}, by {annotations}; name it once";
    /// Several languages, and no list of containers for each.
    ContainerListMissing { languages: Vec<String>, missing: Vec<String> } => "the pod opts in to several languages ({languages}), and each needs a list of its containers; annotate the pod with {missing}";
    /// The namespace opts in to one language, the pod itself to another.
    NamespaceLanguageIgnored { languages: Vec<String> } => "the namespace's language is ignored because the pod itself opts in to {languages}, and there is no list of containers for each language";
    /// A selector opts in to one language, pod or namespace to another.
    SelectorLanguageIgnored { name: ObjectName, languages: Vec<String> } => "the opt-in by the selector of Instrumentation \"{name}\" is ignored because the pod or its namespace opts in to {languages}, and there is no list of containers for each language";
    /// A selector of namespaces where none may be.
    NamespaceSelectorDenied { name: ObjectName } => "Instrumentation \"{name}\" sets spec.namespaceSelector, which is allowed only in the namespace of --default-instrumentation, so its spec.inject is not used; remove spec.namespaceSelector";
    /// The language does not support init containers.
    InitContainer { container: String } => "\"{container}\" is an init container, which this language does not support";
    /// The referenced value may not exist; then a reference to it would stay unexpanded.
    OptionalReference { variable: String } => "{variable} is set from an optional reference; if it were missing, the options of the agent would be lost, too; make the reference required, or set a value";
    /// The image is already instrumented for .NET.
    AutoHomeSet => "the container sets OTEL_DOTNET_AUTO_HOME, so its image is treated as already instrumented";
    /// A platform that the agent does not support.
    PlatformUnknown { annotation: Annotation, value: String, valid: Vec<String> } => "{annotation} is \"{value}\", which is not a platform of this agent; valid: {valid}";
    /// A name to be added is already used.
    NameTaken { what: Taken, name: String } => "the pod already has a {what} \"{name}\"";
    /// The pod runs on Windows nodes.
    WindowsPod => "the pod is for Windows; agents have images for Linux only";
    /// Go needs a shared process namespace.
    ProcessNamespaceNotShared => "spec.shareProcessNamespace is false, but the Go agent needs access to the processes of the application";
    /// The Go agent needs the path of the executable.
    TargetExecutableMissing => "OTEL_GO_AUTO_TARGET_EXE is not set; set the path of the executable in the annotation instrumentation.opentelemetry.io/otel-go-auto-target-exe of the pod";
    /// The Go agent attaches to one container.
    SeveralContainers { annotation: Annotation, containers: String } => "{annotation} is \"{containers}\", which has a comma; Go supports only one container";
    /// Go's sidecar is privileged, or an Instrumentation gives init containers what the namespace does not
    /// allow.
    PodSecurity { namespace: String, level: String, refused: String } => "namespace \"{namespace}\" enforces the pod security level \"{level}\", which rejects {refused}";
    /// An Instrumentation gives init containers privileges that the installation does not allow.
    PrivilegedInitContainer { name: ObjectName, field: String } => "Instrumentation \"{name}\" sets spec.initContainerSecurityContext.{field}, which --init-containers-privileged=deny does not allow; remove it from the Instrumentation, or use another one";
    /// The kubelet would not start an added container, since the pod must not run as root.
    RootNotAllowed { what: &'static str, advice: &'static str } => "runAsNonRoot is true and {what} would run as root, so the kubelet would not start the pod; {advice}";
    /// The user of the init containers could not write to the volume of a claim, since no group may.
    ClaimNotWritable { field: String, user: i64 } => "the init containers would run as user {user}, since the pod must not run as root, and could not write to the volume of {field}; set spec.securityContext.fsGroup of the pod, or remove the template";
    /// The pod runs on arm64 nodes only, and the web server's module has no build for them.
    ModuleLacksArm64 { image: String } => "the pod runs on arm64 nodes only, and {image} has no build for arm64, so its init container would not start; set an image that has one, or opt out";
    /// A LimitRange or a quota would reject the pod with Go's sidecar.
    ResourcesRefused { object: String, problem: String } => "{object} would reject the pod with the sidecar: {problem}; lower spec.go.resourceRequirements of the Instrumentation, or change {object}";
    /// The volume's claim would be rejected.
    ClaimRefused { field: String, object: String, problem: String } => "{object} would reject the claim of {field}, and the pod would wait for it: {problem}; change the template, or {object}";
    /// The pod's ServiceAccount does not list a Secret of the Instrumentation.
    SecretRefused { account: String, secret: String } => "ServiceAccount \"{account}\" allows only the Secrets that it lists (kubernetes.io/enforce-mountable-secrets), and the Instrumentation refers to Secret \"{secret}\"; use an Instrumentation without it, or another ServiceAccount";
    /// The pod is the mirror pod of a static pod.
    MirrorPod => "the pod is the mirror pod of a static pod, which cannot be changed; add the agent to the static pod's manifest";
    /// A configuration path without a folder to mount over.
    ConfigPath { field: &'static str, value: String } => "{field}: \"{value}\" cannot be mounted over; set an absolute path of a file or folder below the root";
    /// A value that the configuration of a web server cannot have.
    DirectiveInvalid { field: String, directive: String, problem: &'static str } => "{field}: the directive {directive} {problem}";
    /// The kubelet would evict the pod.
    EphemeralStorage { shortage: Box<Shortage> } => "{shortage}";
    /// The API server or etcd would not take the pod.
    PodTooLarge { excess: Excess } => "{excess}; name fewer containers, or shorten the variables and resource attributes of the Instrumentation and of the pod's annotations";
    /// The pod has no containers.
    NoContainers => "the pod has no containers";
    /// A list of a container cannot be parsed.
    ContainerUnreadable { container: String, problem: String } => "container \"{container}\" cannot be read: {problem}";
}

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
impl NotAList for Unknown {}
impl NotAList for Excess {}
impl NotAList for Annotation {}
impl NotAList for Box<Shortage> {}

impl Reason {
    /// The reason for a name that is already used.
    pub fn taken(what: Taken, name: &str) -> Self {
        Self::NameTaken { what, name: name.to_owned() }
    }

    /// Whether the language was injected.
    pub fn is_injected(&self) -> bool {
        matches!(self, Self::Injected)
    }

    /// Whether it has a warning: opted in but not injected.
    pub fn is_trouble(&self) -> bool {
        !matches!(
            self,
            Self::Injected
                | Self::NothingToAdd
                | Self::SwitchedOff { .. }
                | Self::AlreadyInjected { .. }
                // What a selector opts in to is for pods that say nothing.
                | Self::SelectorLanguageIgnored { .. }
        )
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

    #[test]
    fn codes_are_unique_camel_case() {
        for (index, code) in Reason::CODES.iter().enumerate() {
            assert!(code.starts_with(|first: char| first.is_ascii_uppercase()));
            assert!(code.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{code}");
            assert!(!Reason::CODES[..index].contains(code), "{code} stands twice");
        }
    }
}
