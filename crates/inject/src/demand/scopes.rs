//! The attributes of a pod that the scopes of quotas check.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    limits::PodScopes,
    pod::{Pod, Spec},
    text::{List, object_or_default},
};

/// Reads these attributes, except for the quality of service class.
pub fn of<'p>(pod: &'p Pod<'p>) -> PodScopes<'p> {
    let class = &*pod.spec.priority_class_name;
    PodScopes {
        is_terminating: is_terminating(&pod.spec),
        is_best_effort: false,
        priority_class: Some(class).filter(|class| !class.is_empty()),
        has_cross_namespace_affinity: pod.spec.affinity.is_some_and(is_cross_namespace),
    }
}

fn is_terminating(spec: &Spec<'_>) -> bool {
    let seconds = spec.active_deadline_seconds.and_then(|raw| raw.get().parse::<i64>().ok());
    seconds.is_some_and(|seconds| seconds >= 0)
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Affinity<'a> {
    #[serde(borrow, deserialize_with = "object_or_default")]
    pod_affinity: Terms<'a>,
    #[serde(deserialize_with = "object_or_default")]
    pod_anti_affinity: Terms<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Terms<'a> {
    #[serde(borrow, rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    required: List<Term<'a>>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    preferred: List<Preferred<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Preferred<'a> {
    #[serde(borrow, deserialize_with = "object_or_default")]
    pod_affinity_term: Term<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Term<'a> {
    #[serde(borrow)]
    namespaces: Option<Vec<&'a RawValue>>,
    namespace_selector: Option<&'a RawValue>,
}

fn is_cross_namespace(affinity: &RawValue) -> bool {
    let affinity: Affinity<'_> = serde_json::from_str(affinity.get()).unwrap_or_default();
    [affinity.pod_affinity, affinity.pod_anti_affinity].iter().any(|terms| {
        let preferred = terms.preferred.iter().map(|preferred| &preferred.pod_affinity_term);
        terms.required.iter().chain(preferred).any(Term::is_cross_namespace)
    })
}

impl Term<'_> {
    fn is_cross_namespace(&self) -> bool {
        self.namespaces.as_ref().is_some_and(|names| !names.is_empty()) || self.namespace_selector.is_some()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn scopes(spec: &Value) -> (bool, Option<String>, bool) {
        let text = json!({"spec": spec}).to_string();
        let pod = Pod::parse(&text).expect("a pod");
        let scopes = of(&pod);
        let class = scopes.priority_class.map(str::to_owned);
        (scopes.is_terminating, class, scopes.has_cross_namespace_affinity)
    }

    #[test]
    fn deadline_priority_and_affinity_are_read() {
        assert_eq!(scopes(&json!({})), (false, None, false));
        let spec = json!({"activeDeadlineSeconds": 0, "priorityClassName": "high"});
        assert_eq!(scopes(&spec), (true, Some("high".to_owned()), false));
        assert!(!scopes(&json!({"activeDeadlineSeconds": null, "affinity": null})).0);
    }

    #[test]
    fn terms_with_namespaces_are_cross_namespace() {
        let required = |term: Value| json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}});
        let preferred = |term: Value| {
            let list = json!([{"weight": 1, "podAffinityTerm": term}]);
            json!({"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": list}}})
        };
        for (term, crosses) in [
            (json!({"topologyKey": "a"}), false),
            (json!({"namespaces": []}), false),
            (json!({"namespaces": ["a"]}), true),
            (json!({"namespaceSelector": {}}), true),
            (json!({"namespaceSelector": null}), false),
        ] {
            assert_eq!(scopes(&required(term.clone())).2, crosses, "{term}");
            assert_eq!(scopes(&preferred(term.clone())).2, crosses, "{term}");
        }
    }
}
