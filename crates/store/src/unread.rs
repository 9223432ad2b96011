//! What a decision depends on and the user may not read.
//!
//! The decision is made with what could be read. A finding that could be another one is kept apart, so that no
//! message says that something does not exist which the user only may not see.

use std::{collections::BTreeSet, fmt};

use otel_webhook_inject::{
    Finding,
    reason::{DependsOn, ObjectName, Reason},
};

/// What the user may not read.
#[derive(Clone, Debug, Default)]
pub struct Unread {
    /// The namespaces with readable Instrumentations; none if all are readable.
    pub listed: Option<BTreeSet<String>>,
    /// Whether the annotations and labels of namespaces are not readable.
    pub namespaces: bool,
    /// Why the webhook's flags are unknown.
    pub flags: Option<String>,
    /// The Instrumentation of `--default-instrumentation`.
    pub default: Option<ObjectName>,
}

/// Something that a finding depends on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Missing {
    /// The Instrumentations of a namespace.
    Instrumentations(String),
    /// The annotations and labels of a namespace.
    Namespace(String),
    /// The flags of the webhook, with the reason why they are unknown.
    Flags(String),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instrumentations(namespace) => write!(
                f,
                "the Instrumentations of namespace \"{namespace}\" are not readable by you (list instrumentations \
                 in {namespace})"
            ),
            Self::Namespace(name) => {
                write!(
                    f,
                    "the annotations of namespace \"{name}\" are not readable by you (get namespaces {name})"
                )
            }
            Self::Flags(why) => f.write_str(why),
        }
    }
}

/// A language for which the result is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsure {
    /// The language.
    pub language: &'static str,
    /// What the user may not read.
    pub missing: Missing,
}

impl Unsure {
    /// Returns the namespace with the Instrumentations that were not listed.
    pub fn instrumentations_of(&self) -> Option<&str> {
        match &self.missing {
            Missing::Instrumentations(namespace) => Some(namespace),
            Missing::Namespace(_) | Missing::Flags(_) => None,
        }
    }
}

impl fmt::Display for Unsure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: unknown, since {}", self.language, self.missing)
    }
}

impl Unread {
    /// Returns what could opt in the pods of a namespace and is not readable: its annotations and labels, or the
    /// selectors of Instrumentations.
    pub fn opt_ins(&self, namespace: &str) -> Option<Missing> {
        let selecting = || {
            let default = self.default.as_ref().map(|default| &*default.namespace);
            [Some(namespace), default].into_iter().flatten().find_map(|namespace| self.unlisted(namespace))
        };
        self.annotations(namespace).or_else(selecting)
    }

    fn annotations(&self, namespace: &str) -> Option<Missing> {
        self.namespaces.then(|| Missing::Namespace(namespace.to_owned()))
    }

    /// Divides findings into those that are certain, and the languages for which the result is unknown.
    pub fn divide(&self, namespace: &str, findings: Vec<Finding>) -> (Vec<Finding>, Vec<Unsure>) {
        let mut missing: Vec<_> = findings.iter().map(|finding| self.missing(namespace, finding)).collect();
        // Whether another language is injected decides whether each needs a list of containers, and what fits.
        if let Some(first) = missing.iter().flatten().next().cloned() {
            for (finding, missing) in findings.iter().zip(&mut missing) {
                if finding.reason.depends_on() == DependsOn::Used {
                    missing.get_or_insert_with(|| first.clone());
                }
            }
        }
        let (mut certain, mut unsure) = (Vec::new(), Vec::<Unsure>::new());
        for (finding, missing) in findings.into_iter().zip(missing) {
            match missing {
                None => certain.push(finding),
                Some(missing) => {
                    let one = Unsure { language: finding.language, missing };
                    if !unsure.contains(&one) {
                        unsure.push(one);
                    }
                }
            }
        }
        certain.retain(|finding| unsure.iter().all(|one| one.language != finding.language));
        (certain, unsure)
    }

    fn missing(&self, namespace: &str, finding: &Finding) -> Option<Missing> {
        match &finding.reason {
            Reason::SwitchedOff { annotation } if !annotation.of_namespace => None,
            reason => match reason.depends_on() {
                DependsOn::Pod => None,
                _ if self.namespaces => self.annotations(namespace),
                DependsOn::Namespace => None,
                DependsOn::Flags => self.unread_flags(),
                DependsOn::Selection => self.unlisted(namespace).or_else(|| self.unread_flags()),
                DependsOn::Named => reason.instrumentation().and_then(|name| self.unlisted(&name.namespace)),
                // The default is used only where the namespace has none of its own.
                DependsOn::Chosen | DependsOn::Used => {
                    let used = finding.instrumentation.as_ref().map(|used| &used.name);
                    reason.instrumentation().or(used).and_then(|name| self.by_default(namespace, name))
                }
            },
        }
    }

    fn by_default(&self, namespace: &str, used: &ObjectName) -> Option<Missing> {
        (self.default.as_ref() == Some(used)).then(|| self.unlisted(namespace)).flatten()
    }

    fn unlisted(&self, namespace: &str) -> Option<Missing> {
        let listed = self.listed.as_ref()?;
        (!listed.contains(namespace)).then(|| Missing::Instrumentations(namespace.to_owned()))
    }

    fn unread_flags(&self) -> Option<Missing> {
        self.flags.clone().map(Missing::Flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use otel_webhook_inject::{
        Used,
        reason::{Annotation, Unknown},
        shown::Names,
    };

    fn finding(language: &'static str, reason: Reason) -> Finding {
        Finding { language, agent: None, container: None, instrumentation: None, reason, notes: Vec::new() }
    }

    fn by(namespace: &str) -> Used {
        let name = ObjectName { namespace: namespace.into(), name: "a".into() };
        Used { name, generation: None, hash: "v1:0".into(), image: None }
    }

    fn not_found(namespace: &str) -> Reason {
        let name = ObjectName { namespace: namespace.into(), name: "a".into() };
        Reason::InstrumentationNotFound { name, known: Names::of([""; 0]) }
    }

    fn none() -> Reason {
        Reason::NoInstrumentation { namespace: "shop".to_owned(), advice: "create one" }
    }

    fn only_shop() -> Unread {
        Unread { listed: Some(["shop".to_owned()].into()), ..Unread::default() }
    }

    fn unknown(unread: &Unread, findings: &[Finding]) -> Vec<String> {
        let (_, unsure) = unread.divide("shop", findings.to_vec());
        unsure.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_not_listed_could_opt_in() {
        let default = Some(ObjectName { namespace: "infra".into(), name: "a".into() });
        let (shop, with_default) = (only_shop(), Unread { default, ..only_shop() });
        assert_eq!(shop.opt_ins("shop"), None);
        assert_eq!(shop.opt_ins("other"), Some(Missing::Instrumentations("other".to_owned())));
        assert_eq!(with_default.opt_ins("shop"), Some(Missing::Instrumentations("infra".to_owned())));
        assert_eq!(Unread { listed: None, ..with_default }.opt_ins("shop"), None);
        let unread = Unread { namespaces: true, ..only_shop() };
        assert_eq!(unread.opt_ins("shop"), Some(Missing::Namespace("shop".to_owned())));
    }

    #[test]
    fn an_instrumentation_of_an_unreadable_namespace_is_not_called_missing() {
        let findings = [finding("java", not_found("ta")), finding("go", not_found("shop"))];
        let said = unknown(&only_shop(), &findings);
        let expected = "java: unknown, since the Instrumentations of namespace \"ta\" are not readable by you \
                        (list instrumentations in ta)";
        assert_eq!(said, [expected]);
        assert_eq!(unknown(&Unread::default(), &findings), Vec::<String>::new());
        let nothing = Unread { listed: Some(BTreeSet::new()), ..Unread::default() };
        assert!(unknown(&nothing, &[finding("java", none())])[0].contains("list instrumentations in shop"));
    }

    #[test]
    fn the_default_is_unknown_where_the_namespace_may_have_its_own() {
        let default = Some(by("observability").name);
        let nothing = Unread { listed: Some(["observability".to_owned()].into()), default, ..only_shop() };
        let injected =
            Finding { instrumentation: Some(by("observability")), ..finding("java", Reason::Injected) };
        assert!(unknown(&nothing, std::slice::from_ref(&injected))[0].contains("in shop"));
        assert!(unknown(&Unread { default: nothing.default, ..only_shop() }, &[injected]).is_empty());
    }

    #[test]
    fn what_the_flags_decide_is_unknown_without_them() {
        let why = "the webhook's flags are not readable by you (list mutatingwebhookconfigurations)";
        let flags = Some(why.to_owned());
        let unread = Unread { flags, ..Unread::default() };
        for reason in [none(), Reason::LanguageDisabled { language: "go" }] {
            let said = unknown(&unread, &[finding("go", reason.clone())]);
            assert!(
                said[0].ends_with("not readable by you (list mutatingwebhookconfigurations)"),
                "{said:?}"
            );
            assert!(unknown(&Unread::default(), &[finding("go", reason)]).is_empty());
        }
    }

    #[test]
    fn one_unknown_language_leaves_only_settled_results_of_the_others() {
        let annotation = Annotation { key: "inject-python", of_namespace: false, is_label: false };
        let container = Unknown::One("ap".to_owned());
        let findings = [
            finding("java", not_found("ta")),
            finding("nodejs", Reason::Injected),
            finding("nodejs", Reason::ContainerNotFound { container, known: Names::of(["app"]) }),
            finding("python", Reason::SwitchedOff { annotation }),
        ];
        let (certain, unsure) = only_shop().divide("shop", findings.to_vec());
        assert_eq!(certain, findings[3..]);
        let languages: Vec<_> = unsure.iter().map(|one| one.language).collect();
        assert_eq!(languages, ["java", "nodejs"]);
    }

    #[test]
    fn without_the_annotations_of_the_namespace_only_the_pods_own_results_are_certain() {
        let unread = Unread { namespaces: true, ..Unread::default() };
        let own = Annotation { key: "inject-python", of_namespace: false, is_label: false };
        let findings =
            [finding("java", Reason::Injected), finding("python", Reason::SwitchedOff { annotation: own })];
        let (certain, unsure) = unread.divide("shop", findings.to_vec());
        assert_eq!((certain, unsure.len()), (findings[1..].to_vec(), 1));
        assert!(unsure[0].to_string().ends_with("(get namespaces shop)"), "{}", unsure[0]);
    }
}
