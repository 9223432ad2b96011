//! The annotations of pod and namespace (docs/reference/injection.md, "Opting in"), and the labels that are read as such.

use super::{catalogue::Namespace, language::is_read_as_label, pod::Pod, reason::Annotation, text::Map};
use otel_webhook_api::ANNOTATION_PREFIX;

/// The maximum number of agents of `spec.agents` for a pod: as many as an Instrumentation may have.
pub const MOST_AGENTS: usize = 16;

/// Entries by the rest of their keys.
type Entries = [(Box<str>, Box<str>)];

/// The annotations with the prefix, by the rest of their keys.
#[derive(Clone, Debug)]
pub struct Annotations<'p> {
    pod: Vec<(&'p str, &'p str)>,
    pod_labels: Vec<(&'p str, &'p str)>,
    namespace: &'p Entries,
    namespace_labels: &'p Entries,
}

/// The entries of a map that have the prefix, without it.
pub fn under_prefix<'a>(entries: &'a Map<'_>) -> impl Iterator<Item = (&'a str, &'a str)> {
    let ours = |(key, value): (&'a str, &'a str)| Some((key.strip_prefix(ANNOTATION_PREFIX)?, value));
    entries.iter().filter_map(ours)
}

impl<'p> Annotations<'p> {
    /// Reads a pod's annotations; those of the namespace are in the catalogue.
    pub fn new(pod: &'p Pod<'p>, namespace: Option<&'p Namespace>) -> Self {
        let labels = under_prefix(&pod.metadata.labels);
        Self {
            pod: under_prefix(&pod.metadata.annotations).collect(),
            pod_labels: labels.filter(|(key, value)| is_read_as_label(key, value)).collect(),
            namespace: namespace.map_or(&[], |known| &known.annotations),
            namespace_labels: namespace.map_or(&[], |known| &known.opt_in_labels),
        }
    }

    /// Whether there is none at all, so that none of them can opt in.
    pub fn is_empty(&self) -> bool {
        self.pod.is_empty()
            && self.pod_labels.is_empty()
            && self.namespace.is_empty()
            && self.namespace_labels.is_empty()
    }

    /// The pod's own value. A label overrides an annotation.
    pub fn of_pod(&self, name: &str) -> Option<&'p str> {
        let last = |entries: &[(&'p str, &'p str)]| {
            entries.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| *value)
        };
        last(&self.pod_labels).or_else(|| last(&self.pod))
    }

    /// The namespace's value. A label overrides an annotation.
    pub fn of_namespace(&self, name: &str) -> Option<&'p str> {
        let find = |entries: &'p Entries| {
            let found = entries.iter().find(|(key, _)| **key == *name);
            found.map(|(_, value)| &**value)
        };
        find(self.namespace_labels).or_else(|| find(self.namespace))
    }

    /// The effective annotation, and its parsed value; `None` if it has no value.
    pub fn said(&self, key: &'static str) -> Option<(Annotation, &'p str)> {
        let value = self.effective(key);
        let of_namespace = self.of_pod(key) != Some(value);
        let is_label = if of_namespace {
            self.namespace_labels.iter().any(|(label, _)| **label == *key)
        } else {
            self.pod_labels.iter().any(|(label, _)| *label == key)
        };
        (!value.is_empty()).then_some((Annotation { key, of_namespace, is_label }, value))
    }

    /// The effective value. If the pod has "true", it is the name that the namespace
    /// has, unless the namespace opts out; any other value of the pod overrides the namespace.
    pub fn effective(&self, name: &str) -> &'p str {
        let pod = self.of_pod(name).unwrap_or_default();
        let namespace = self.of_namespace(name).unwrap_or_default();
        if namespace.is_empty() {
            pod
        } else if pod.is_empty() || (is_true(pod) && !is_false(namespace)) {
            namespace
        } else {
            pod
        }
    }
}

/// The value of an `inject-*` annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask<'p> {
    /// Empty.
    Nothing,
    /// Opts out.
    No,
    /// Opts in with the Instrumentation of the namespace.
    Any,
    /// Opts in with this Instrumentation.
    Named {
        /// Its namespace; `None` for the pod's.
        namespace: Option<&'p str>,
        /// Its name.
        name: &'p str,
    },
    /// Opts in to this agent of `spec.agents`.
    Agent {
        /// Its name.
        name: &'p str,
    },
}

impl<'p> Ask<'p> {
    /// Reads a value that names agents: one each time, in their order.
    pub fn agents(value: &'p str) -> Vec<Self> {
        let mut agents = Vec::new();
        for name in value.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let ask = Self::Agent { name };
            // The list of a pod's author may be long: one more than may be used is enough.
            if !agents.contains(&ask) && agents.len() <= MOST_AGENTS {
                agents.push(ask);
            }
        }
        if agents.is_empty() {
            agents.push(Self::Agent { name: value });
        }
        agents
    }

    /// Reads a value that names an Instrumentation.
    pub fn parse(value: &'p str) -> Self {
        if value.is_empty() {
            return Self::Nothing;
        }
        if is_false(value) {
            return Self::No;
        }
        if is_true(value) {
            return Self::Any;
        }
        let (namespace, name) = match value.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, value),
        };
        Self::Named { namespace, name }
    }
}

fn is_true(value: &str) -> bool {
    value.eq_ignore_ascii_case("true")
}

fn is_false(value: &str) -> bool {
    value.eq_ignore_ascii_case("false")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pod_and_namespace_are_merged_as_the_operator_does() {
        for (pod, namespace, expected) in [
            ("", "", ""),
            ("a", "", "a"),
            ("", "true", "true"),
            ("false", "true", "false"),
            ("other", "inst", "other"),
            ("true", "False", "true"),
            ("TRUE", "inst", "inst"),
            ("true", "true", "true"),
        ] {
            let annotations = Annotations {
                pod: vec![("inject-java", pod)],
                pod_labels: Vec::new(),
                namespace: &[("inject-java".into(), namespace.into())],
                namespace_labels: &[],
            };
            assert_eq!(
                annotations.effective("inject-java"),
                expected,
                "pod {pod:?}, namespace {namespace:?}"
            );
            let said = annotations.said("inject-java");
            let of_namespace = said.map(|(annotation, _)| annotation.of_namespace);
            assert_eq!(of_namespace, (!expected.is_empty()).then_some(pod != expected), "{pod:?}");
        }
    }

    #[test]
    fn a_label_overrides_an_annotation_of_the_same_object() {
        const SET: Option<&str> = Some("inst");
        for (pod_label, pod, namespace_label, namespace, expected) in [
            (Some("false"), SET, SET, SET, ("false", false, true)),
            (Some("other"), SET, SET, SET, ("other", false, true)),
            (Some("true"), SET, Some("label"), SET, ("label", true, true)),
            (Some("true"), SET, None, SET, ("inst", true, false)),
            (Some("true"), SET, Some("false"), SET, ("true", false, true)),
            (None, SET, Some("label"), SET, ("inst", false, false)),
            (None, None, Some("false"), SET, ("false", true, true)),
        ] {
            let entry = |value: Option<&'static str>| value.map(|value| ("inject-java", value));
            let boxed = |value: Option<&'static str>| {
                let entry = entry(value).map(|(key, value)| (key.into(), value.into()));
                entry.into_iter().collect::<Vec<(Box<str>, Box<str>)>>()
            };
            let (namespace_labels, namespace) = (boxed(namespace_label), boxed(namespace));
            let annotations = Annotations {
                pod: entry(pod).into_iter().collect(),
                pod_labels: entry(pod_label).into_iter().collect(),
                namespace: &namespace,
                namespace_labels: &namespace_labels,
            };
            let (said, value) = annotations.said("inject-java").expect("a value");
            assert_eq!((value, said.of_namespace, said.is_label), expected, "{annotations:?}");
        }
    }

    #[test]
    fn a_value_names_agents_each_once() {
        let named = |name| Ask::Agent { name };
        assert_eq!(Ask::agents(" php,ruby,, php"), [named("php"), named("ruby")]);
        assert_eq!(Ask::agents("true"), [named("true")]);
        assert_eq!(Ask::agents(","), [named(",")]);
        let many: Vec<_> = (0..100).map(|number| number.to_string()).collect();
        assert_eq!(Ask::agents(&many.join(",")).len(), MOST_AGENTS + 1);
    }

    #[test]
    fn a_value_names_an_instrumentation_with_or_without_namespace() {
        let named = |namespace, name| Ask::Named { namespace, name };
        assert_eq!(Ask::parse("a"), named(None, "a"));
        assert_eq!(Ask::parse("n/a"), named(Some("n"), "a"));
        assert_eq!(Ask::parse("True"), Ask::Any);
        assert_eq!(Ask::parse("FALSE"), Ask::No);
        assert_eq!(Ask::parse(""), Ask::Nothing);
    }
}
