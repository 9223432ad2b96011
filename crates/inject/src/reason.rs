//! Why a container got its agent, or did not: one closed list.
//!
//! The code of a reason is stable. It is the metric label and the audit
//! annotation, and people search for it; the sentence is for people.

use std::fmt;

use super::storage::limit::Shortage;
use otel_webhook_api::ANNOTATION_PREFIX;

/// The namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

/// Something that a pod can have only one of by a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// A volume.
    Volume,
    /// A container or init container.
    Container,
    /// A path at which a container has a mount.
    MountPath,
    /// A variable that would have to hold the user's original value.
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

/// What says that a pod is injected already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    /// A container that the operator or the product adds, by its name.
    Container(String),
    /// The variables of a container, by its name.
    Variables(String),
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Container(name) => write!(f, "it has the container \"{name}\""),
            Self::Variables(name) => {
                write!(f, "its container \"{name}\" has the variables that injection adds")
            }
        }
    }
}

/// An annotation that is there, and on which object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// Its key, after the prefix.
    pub key: &'static str,
    /// Whether it is the namespace's, and not the pod's own.
    pub of_namespace: bool,
}

impl fmt::Display for Annotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owner = if self.of_namespace { "namespace" } else { "pod" };
        write!(f, "the annotation {ANNOTATION_PREFIX}{} of the {owner}", self.key)
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident $({ $($(#[$fdoc:meta])* $field:ident: $kind:ty),* $(,)? })? => $text:literal;)*) => {
        /// Why a container got a language's agent, or why not.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the sentence of a reason says what its fields are")]
        pub enum Reason {
            $($(#[$doc])* $name $({ $($(#[$fdoc])* $field: $kind),* })?,)*
        }

        impl Reason {
            /// Every code there is, in the order of the list.
            pub const CODES: &'static [&'static str] = &[$(stringify!($name)),*];

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
    /// All that would be added is there already.
    NothingToAdd => "nothing to add: the container has every variable already";
    /// The annotation says no.
    SwitchedOff { annotation: Annotation } => "switched off by {annotation}";
    /// The language is not among the enabled ones.
    LanguageDisabled { language: &'static str } => "the language {language} is not enabled in this installation; --languages lists the enabled ones";
    /// The pod carries one of the injected containers, or the variables.
    AlreadyInjected { sign: Sign } => "the pod is injected already: {sign}";
    /// The annotation says "true", and there is nothing to choose from.
    NoInstrumentation { namespace: String, advice: &'static str } => "there is no Instrumentation in namespace \"{namespace}\" and no default is set; {advice}";
    /// Every resource of the namespace has a selector, and none fits.
    NoneSelectsPod { namespace: String, names: Vec<String> } => "no Instrumentation of namespace \"{namespace}\" selects this pod: the selectors of {names} do not match its labels";
    /// More than one fits equally well.
    AmbiguousInstrumentation { namespace: String, names: Vec<String> } => "several Instrumentations of namespace \"{namespace}\" fit equally: {names}; name one in the annotation, or set spec.selector or spec.priority";
    /// The named one does not exist.
    InstrumentationNotFound { name: ObjectName, known: Vec<String> } => "the Instrumentation \"{name}\" does not exist; in that namespace there are: {known}";
    /// It is in another namespace, and is not there or not for the pod's namespace. Which of the two is not told.
    InstrumentationNotGranted { name: ObjectName, namespace: String, granted: Vec<String> } => "the Instrumentation \"{name}\" does not exist or is not granted to namespace \"{namespace}\"; its owner grants it by the annotation otel-webhook/allowed-namespaces. Granted in that namespace: {granted}";
    /// Instrumentations are used in their own namespace only.
    CrossNamespaceDenied { name: ObjectName, namespace: String } => "the Instrumentation \"{name}\" would be one of another namespace, which --cross-namespace=deny does not allow; create one in namespace \"{namespace}\" and name that";
    /// The one for namespaces that have none does not exist.
    DefaultInstrumentationNotFound { name: ObjectName } => "the default Instrumentation \"{name}\" does not exist; create it, or name another one by --default-instrumentation";
    /// It exists and cannot be used.
    InstrumentationInvalid { name: ObjectName, problem: String } => "the Instrumentation \"{name}\" cannot be used: {problem}";
    /// The pod has no such container.
    ContainerNotFound { container: String, known: Vec<String> } => "there is no container \"{container}\" in the pod; there are: {known}";
    /// A list of container names with no name in it.
    NoContainerNamed { annotations: Vec<Annotation>, known: Vec<String> } => "no container is named by {annotations}; the pod has: {known}";
    /// One name twice for the same language.
    ContainerNamedTwice { container: String, language: &'static str, annotations: Vec<Annotation> } => "the container \"{container}\" is named twice for {language}, by {annotations}; name it once";
    /// Several languages, and no telling which container is whose.
    ContainerListMissing { languages: Vec<String>, missing: Vec<String> } => "several languages are asked for ({languages}), and each needs a list of its containers; annotate the pod with {missing}";
    /// The namespace asks for one language, the pod itself for another.
    NamespaceLanguageIgnored { languages: Vec<String> } => "asked for by the namespace only; the pod's own request ({languages}) comes first, and there is no list of containers to tell them apart";
    /// The language does not run in init containers.
    InitContainer { container: String } => "\"{container}\" is an init container, which this language does not support";
    /// The value may not exist, and a reference to it would stay as it is written.
    OptionalReference { variable: String } => "{variable} is read from an optional reference; were it missing, the agent's own options would be lost with it. Make the reference required or set the variable to a value";
    /// .NET is instrumented by the image itself.
    AutoHomeSet => "OTEL_DOTNET_AUTO_HOME is set already, so .NET is taken as instrumented by its image";
    /// A platform that the agent does not come for.
    PlatformUnknown { annotation: Annotation, value: String, valid: Vec<String> } => "{annotation} is \"{value}\", which is no platform of this agent; valid: {valid}";
    /// What would be added is there under the same name.
    NameTaken { what: Taken, name: String } => "the pod has a {what} \"{name}\" of its own";
    /// The pod is for Windows nodes.
    WindowsPod => "the pod is for Windows; the agents come in Linux images only";
    /// Go needs to see the other containers' processes.
    ProcessNamespaceNotShared => "spec.shareProcessNamespace is false; the Go agent has to see the processes of the application";
    /// The Go agent attaches to one process.
    TargetExecutableMissing => "OTEL_GO_AUTO_TARGET_EXE is set nowhere; give the path of the program by the annotation instrumentation.opentelemetry.io/otel-go-auto-target-exe of the pod";
    /// The Go agent attaches to one container.
    SeveralContainers { annotation: Annotation, containers: String } => "{annotation} is \"{containers}\", which has a comma; Go takes one container";
    /// Go's sidecar is privileged, or an Instrumentation gives init containers what the namespace does not allow.
    PodSecurity { namespace: String, level: String, refused: String } => "namespace \"{namespace}\" enforces the pod security level \"{level}\", which refuses {refused}";
    /// Go's sidecar asks for more than a LimitRange or a quota leaves.
    ResourcesRefused { object: String, problem: String } => "{object} would reject the pod with the sidecar: {problem}; lower spec.go.resourceRequirements of the Instrumentation, or raise the bound";
    /// The volume's claim would be rejected.
    ClaimRefused { field: String, object: String, problem: String } => "{object} would reject the claim of {field}, and the pod would wait for it: {problem}; change the template, or raise the bound";
    /// The pod's ServiceAccount allows no Secret but those that it lists.
    SecretRefused { account: String, secret: String } => "ServiceAccount \"{account}\" allows its pods no Secret but those that it lists (kubernetes.io/enforce-mountable-secrets), and the Instrumentation refers to Secret \"{secret}\"; choose an Instrumentation without it, or another ServiceAccount";
    /// The kubelet made the pod for a static one.
    MirrorPod => "the pod mirrors a static pod of its node, to which nothing may be added; add the agent to the static pod's manifest";
    /// A configuration path that leaves no folder to mount.
    ConfigPath { field: &'static str, value: String } => "{field}: \"{value}\" leaves no folder of its own to mount; give an absolute path of a file or folder below the root";
    /// The kubelet would evict the pod, again and again.
    EphemeralStorage { shortage: Box<Shortage> } => "{shortage}";
    /// The pod has no container at all.
    NoContainers => "the pod has no containers";
    /// A list of a container that is not as the API server sends it.
    ContainerUnreadable { container: String, problem: String } => "the container \"{container}\" cannot be read: {problem}";
}

/// How a field shows in a sentence.
struct Shown<'a, T: ?Sized>(&'a T);

impl<T: fmt::Display + ?Sized> fmt::Display for Shown<'_, T>
where
    T: NotAList,
{
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
impl NotAList for Annotation {}
impl NotAList for Box<Shortage> {}

impl Reason {
    /// Something is there under the name that would be added.
    pub fn taken(what: Taken, name: &str) -> Self {
        Self::NameTaken { what, name: name.to_owned() }
    }

    /// Whether the language's agent or variables went in.
    pub fn is_injected(&self) -> bool {
        matches!(self, Self::Injected)
    }

    /// Whether somebody ought to hear of it: asked for and not there.
    pub fn is_trouble(&self) -> bool {
        !matches!(
            self,
            Self::Injected | Self::NothingToAdd | Self::SwitchedOff { .. } | Self::AlreadyInjected { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_the_value_and_what_is_valid() {
        let reason =
            Reason::ContainerNotFound { container: "ap".into(), known: vec!["app".into(), "proxy".into()] };
        assert_eq!(reason.code(), "ContainerNotFound");
        assert_eq!(reason.to_string(), "there is no container \"ap\" in the pod; there are: app, proxy");
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
