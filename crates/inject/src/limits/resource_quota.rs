//! ResourceQuotas: bounds of the sum over all pods, or all claims, of a namespace, and the scopes that decide which
//! ones are counted.

use std::fmt;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{limit_range::ResourceList, name_of};
use crate::{
    pod::{Pod, Spec},
    text::{List, object_or_default},
};
use otel_webhook_api::quantity::Quantity;

/// A ResourceQuota, as far as injection could exceed it: without
/// counts of pods and other objects, which injection does not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceQuota {
    /// Its name.
    pub name: Box<str>,
    /// The bounds, by the names of the quota, such as `requests.cpu`. The API
    /// server uses `status.hard`, which follows `spec.hard` with a delay:
    /// if both have a resource, the smaller amount is used. Files
    /// usually have only the specification.
    pub hard: ResourceList,
    /// The used amounts of `status.used`; a missing one is
    /// treated as zero. They may be out of date.
    pub used: ResourceList,
    /// The requirements on counted pods or claims; all have to match.
    pub scopes: Box<[ScopeRequirement]>,
}

/// The suffix of bounds on the claims of one storage class.
const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";

/// The bounds on claims: their storage and their number.
const STORAGE: &str = "requests.storage";
const CLAIMS: &str = "persistentvolumeclaims";
const CLAIM_OBJECTS: &str = "count/persistentvolumeclaims";

/// The bounds on the number of pods.
pub const PODS: [&str; 2] = ["pods", "count/pods"];

impl ResourceQuota {
    /// Parses a quota. Unreadable parts are skipped, with a message.
    pub fn read(object: &Value, problems: &mut Vec<String>) -> Self {
        let (spec, status) = (&object["spec"], &object["status"]);
        let scopes = ScopeRequirement::read_all(spec, problems);
        // A sidecar may change a pod's class from `BestEffort`, so that another quota counts it.
        let by_class = scopes.iter().any(|one| matches!(one.scope, Scope::BestEffort | Scope::NotBestEffort));
        let is_of_use = |name: &str| is_of_use(name) || by_class && PODS.contains(&name);
        let mut list =
            |value: &Value, field: &str| ResourceList::read(value, field, problems).only(is_of_use);
        let hard = list(&spec["hard"], "spec.hard").least(&list(&status["hard"], "status.hard"));
        let used = list(&status["used"], "status.used").only(|name| hard.get(name).is_some());
        Self { name: name_of(object), hard, used, scopes }
    }

    /// Whether it counts a pod.
    pub fn counts_pod(&self, pod: &PodScopes<'_>) -> bool {
        self.scopes.iter().all(|scope| scope.is_met_by(pod))
    }

    /// Whether it counts a claim with this class of volume
    /// attributes, if any. A quota with scopes of pods counts no claims.
    pub fn counts_claim(&self, attributes_class: Option<&str>) -> bool {
        self.scopes.iter().all(|requirement| match requirement.scope {
            Scope::VolumeAttributesClass => requirement.takes(attributes_class),
            Scope::Other(_) => true,
            _ => false,
        })
    }

    /// Whether each container and init container of a counted pod requires
    /// a request for a resource. Only bounds of CPU and memory require it, and not
    /// if the whole pod has resources.
    pub fn requires_request(&self, resource: &str) -> bool {
        let names = ["cpu", "memory", "requests.cpu", "requests.memory"];
        let bounded = names.iter().filter(|name| self.hard.get(name).is_some());
        bounded.map(|name| name.strip_prefix("requests.").unwrap_or(name)).any(|name| name == resource)
    }

    /// Whether each container and init container of a counted pod requires a limit for a resource.
    pub fn requires_limit(&self, resource: &str) -> bool {
        let names = ["limits.cpu", "limits.memory"];
        names
            .iter()
            .filter(|name| self.hard.get(name).is_some())
            .any(|name| name["limits.".len()..] == *resource)
    }

    /// What remains for requests for a resource; `None` if it is not bounded.
    pub fn left_of_requests(&self, resource: &str) -> Option<Quantity> {
        // CPU, memory, ephemeral storage and huge pages have two names; a resource
        // with a domain, such as a GPU, only the one with `requests.`.
        let short = if resource.contains('/') { None } else { self.left(resource) };
        [short, self.left_of("requests.", resource)].into_iter().flatten().min()
    }

    /// What remains for limits of a resource; `None` if it is not bounded.
    pub fn left_of_limits(&self, resource: &str) -> Option<Quantity> {
        self.left_of("limits.", resource)
    }

    /// What remains for the storage of claims of a storage class; `None` if it is not bounded.
    pub fn left_of_storage(&self, class: Option<&str>) -> Option<Quantity> {
        let of_class = class.and_then(|class| self.left_of(&format!("{class}{STORAGE_CLASS}"), STORAGE));
        [self.left(STORAGE), of_class].into_iter().flatten().min()
    }

    /// What remains for the number of claims of a storage class; `None` if it is not bounded.
    pub fn left_of_claims(&self, class: Option<&str>) -> Option<Quantity> {
        let of_class = class.and_then(|class| self.left_of(&format!("{class}{STORAGE_CLASS}"), CLAIMS));
        [self.left(CLAIMS), self.left(CLAIM_OBJECTS), of_class].into_iter().flatten().min()
    }

    /// What remains of a bound, by its name in the quota.
    pub fn left(&self, name: &str) -> Option<Quantity> {
        Some(self.hard.get(name)?.less(self.used.get(name).unwrap_or_default()))
    }

    fn left_of(&self, prefix: &str, resource: &str) -> Option<Quantity> {
        let is_bound = |name: &str| name.strip_prefix(prefix) == Some(resource);
        let name = self.hard.iter().map(|(name, _)| name).find(|name| is_bound(name))?;
        self.left(name)
    }
}

/// Whether injection can change the used amount of a bound.
fn is_of_use(name: &str) -> bool {
    let is_compute = || ["cpu", "memory", "ephemeral-storage", CLAIMS, CLAIM_OBJECTS].contains(&name);
    let is_prefixed = || ["requests.", "limits.", "hugepages-"].iter().any(|prefix| name.starts_with(prefix));
    is_compute() || is_prefixed() || name.contains(STORAGE_CLASS)
}

/// A requirement of a quota on counted pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeRequirement {
    /// The scope.
    pub scope: Scope,
    /// The operator.
    pub operator: ScopeOperator,
    /// The values, for `In` and `NotIn`.
    pub values: Box<[Box<str>]>,
}

/// The scopes of quotas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Pods with `spec.activeDeadlineSeconds`.
    Terminating,
    /// Pods without `spec.activeDeadlineSeconds`.
    NotTerminating,
    /// Pods of the quality of service class `BestEffort`.
    BestEffort,
    /// Pods of another class.
    NotBestEffort,
    /// Pods by `spec.priorityClassName`.
    PriorityClass,
    /// Pods with affinity terms that name other namespaces.
    CrossNamespacePodAffinity,
    /// Claims by their class of volume attributes; no pods.
    VolumeAttributesClass,
    /// An unknown scope, by its name.
    Other(Box<str>),
}

/// The operator of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeOperator {
    /// One of the values.
    In,
    /// None of the values, or no value.
    NotIn,
    /// Any value.
    Exists,
    /// No value.
    DoesNotExist,
}

/// The attributes of a pod that scopes check.
#[derive(Clone, Copy, Debug, Default)]
pub struct PodScopes<'p> {
    /// Whether `spec.activeDeadlineSeconds` is set, to zero or more.
    pub is_terminating: bool,
    /// Whether its quality of service class is `BestEffort`.
    pub is_best_effort: bool,
    /// `spec.priorityClassName`, if it is not empty.
    pub priority_class: Option<&'p str>,
    /// Whether a term of its affinity or anti-affinity to pods has `namespaces` or a `namespaceSelector`.
    pub has_cross_namespace_affinity: bool,
}

impl ScopeRequirement {
    /// Parses `spec.scopes` and `spec.scopeSelector` of a quota. All of them have to match.
    pub(super) fn read_all(spec: &Value, problems: &mut Vec<String>) -> Box<[Self]> {
        let scopes = spec["scopes"].as_array().into_iter().flatten();
        let listed = scopes.filter_map(Value::as_str).map(|scope| Self {
            scope: Scope::of(scope),
            operator: ScopeOperator::Exists,
            values: Box::default(),
        });
        let expressions = spec["scopeSelector"]["matchExpressions"].as_array().into_iter().flatten();
        let selected = expressions.enumerate().filter_map(|(index, expression)| {
            let values = expression["values"].as_array().into_iter().flatten();
            let operator = ScopeOperator::of(&expression["operator"]);
            if operator.is_none() {
                problems.push(format!(
                    "spec.scopeSelector.matchExpressions[{index}].operator: {} is not an operator; valid: In, NotIn, Exists, DoesNotExist; the quota is assumed to match all pods that its other scopes match",
                    expression["operator"]
                ));
            }
            Some(Self {
                scope: Scope::of(expression["scopeName"].as_str().unwrap_or_default()),
                operator: operator?,
                values: values.filter_map(Value::as_str).map(Into::into).collect(),
            })
        });
        listed.chain(selected).collect()
    }

    /// Whether it matches a pod. An unknown scope is treated as matching: a
    /// newer Kubernetes may count the pod, and respecting a quota that does not
    /// is safe.
    pub fn is_met_by(&self, pod: &PodScopes<'_>) -> bool {
        match self.scope {
            Scope::Terminating => pod.is_terminating,
            Scope::NotTerminating => !pod.is_terminating,
            Scope::BestEffort => pod.is_best_effort,
            Scope::NotBestEffort => !pod.is_best_effort,
            Scope::PriorityClass => self.takes(pod.priority_class),
            Scope::CrossNamespacePodAffinity => pod.has_cross_namespace_affinity,
            Scope::VolumeAttributesClass => false,
            Scope::Other(_) => true,
        }
    }

    /// Whether the operator matches an object's value, if any.
    pub fn takes(&self, value: Option<&str>) -> bool {
        let is_listed = || value.is_some_and(|value| self.values.iter().any(|one| **one == *value));
        match self.operator {
            ScopeOperator::In => is_listed(),
            ScopeOperator::NotIn => !is_listed(),
            ScopeOperator::Exists => value.is_some(),
            ScopeOperator::DoesNotExist => value.is_none(),
        }
    }
}

impl Scope {
    fn of(name: &str) -> Self {
        match name {
            "Terminating" => Self::Terminating,
            "NotTerminating" => Self::NotTerminating,
            "BestEffort" => Self::BestEffort,
            "NotBestEffort" => Self::NotBestEffort,
            "PriorityClass" => Self::PriorityClass,
            "CrossNamespacePodAffinity" => Self::CrossNamespacePodAffinity,
            "VolumeAttributesClass" => Self::VolumeAttributesClass,
            other => Self::Other(other.into()),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(name) => f.write_str(name),
            known => write!(f, "{known:?}"),
        }
    }
}

impl ScopeOperator {
    fn of(value: &Value) -> Option<Self> {
        match value.as_str()? {
            "In" => Some(Self::In),
            "NotIn" => Some(Self::NotIn),
            "Exists" => Some(Self::Exists),
            "DoesNotExist" => Some(Self::DoesNotExist),
            _ => None,
        }
    }
}

impl<'p> PodScopes<'p> {
    /// Reads the attributes of a pod, except for the quality of service class.
    pub fn of(pod: &'p Pod<'p>) -> Self {
        let class = &*pod.spec.priority_class_name;
        Self {
            is_terminating: is_terminating(&pod.spec),
            is_best_effort: false,
            priority_class: Some(class).filter(|class| !class.is_empty()),
            has_cross_namespace_affinity: pod.spec.affinity.is_some_and(is_cross_namespace),
        }
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
    use serde_json::json;

    use super::*;

    fn quota(object: &Value) -> ResourceQuota {
        let mut problems = Vec::new();
        let quota = ResourceQuota::read(object, &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        quota
    }

    fn of_hard(hard: &Value) -> ResourceQuota {
        quota(&json!({"spec": {"hard": hard}}))
    }

    fn shown(left: Option<Quantity>) -> Option<String> {
        left.map(|left| left.to_string())
    }

    #[test]
    fn the_rest_is_the_smaller_bound_minus_the_used_amount() {
        let quota = quota(&json!({
            "spec": {"hard": {"cpu": "8", "requests.memory": "4Gi", "limits.cpu": "9", "pods": "7"}},
            "status": {
                "hard": {"cpu": "4", "requests.memory": "8Gi", "limits.memory": "2Gi", "pods": "7"},
                "used": {"cpu": "1", "requests.memory": "5Gi", "pods": "3", "secrets": "2"},
            },
        }));
        assert_eq!(shown(quota.left_of_requests("cpu")).as_deref(), Some("3"));
        assert_eq!(
            shown(quota.left_of_requests("memory")).as_deref(),
            Some("0"),
            "more is used than there is"
        );
        assert_eq!(shown(quota.left_of_limits("cpu")).as_deref(), Some("9"), "not in the status yet");
        assert_eq!(
            shown(quota.left_of_limits("memory")).as_deref(),
            Some("2Gi"),
            "no longer in the specification"
        );
        assert_eq!(shown(quota.left_of_requests("ephemeral-storage")), None);
        assert_eq!((quota.left("pods"), quota.used.get("pods")), (None, None), "injection adds no pods");
        let spec = json!({"hard": {"pods": "7", "secrets": "1"}, "scopes": ["NotBestEffort"]});
        let by_class = tests::quota(&json!({"spec": spec, "status": {"used": {"pods": "3"}}}));
        assert_eq!(shown(by_class.left("pods")).as_deref(), Some("4"), "but it may change a pod's class");
    }

    #[test]
    fn resources_have_the_names_of_kubernetes() {
        let quota = of_hard(&json!({
            "cpu": "3", "requests.cpu": "2", "hugepages-2Mi": "4Mi", "requests.example.com/gpu": "1", "example.com/gpu": "0",
        }));
        assert_eq!(shown(quota.left_of_requests("cpu")).as_deref(), Some("2"));
        assert_eq!(shown(quota.left_of_requests("hugepages-2Mi")).as_deref(), Some("4Mi"));
        assert_eq!(shown(quota.left_of_requests("example.com/gpu")).as_deref(), Some("1"));
    }

    #[test]
    fn only_bounds_of_cpu_and_memory_require_containers_to_set_them() {
        for (hard, requests, limits) in [
            (json!({"cpu": "1"}), vec!["cpu"], vec![]),
            (json!({"requests.memory": "1"}), vec!["memory"], vec![]),
            (json!({"limits.cpu": "1", "limits.memory": "1"}), vec![], vec!["cpu", "memory"]),
            (json!({"requests.ephemeral-storage": "1", "limits.ephemeral-storage": "1"}), vec![], vec![]),
            (json!({"requests.example.com/gpu": "1", "hugepages-2Mi": "1"}), vec![], vec![]),
        ] {
            let quota = of_hard(&hard);
            let all = ["cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi"];
            let required: Vec<_> = all.into_iter().filter(|name| quota.requires_request(name)).collect();
            let limited: Vec<_> = all.into_iter().filter(|name| quota.requires_limit(name)).collect();
            assert_eq!((required, limited), (requests, limits), "{hard}");
        }
    }

    #[test]
    fn claims_are_bounded_in_total_and_by_storage_class() {
        let quota = of_hard(&json!({
            "requests.storage": "10Gi", "persistentvolumeclaims": "5", "count/persistentvolumeclaims": "4",
            "fast.storageclass.storage.k8s.io/requests.storage": "1Gi",
            "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "0",
        }));
        assert_eq!(shown(quota.left_of_storage(Some("fast"))).as_deref(), Some("1Gi"));
        assert_eq!(shown(quota.left_of_storage(Some("slow"))).as_deref(), Some("10Gi"));
        assert_eq!(shown(quota.left_of_claims(Some("fast"))).as_deref(), Some("0"));
        assert_eq!(shown(quota.left_of_claims(None)).as_deref(), Some("4"));
    }

    #[test]
    fn scopes_decide_which_pods_are_counted() {
        let plain = PodScopes::default();
        let urgent = PodScopes { priority_class: Some("urgent"), ..plain };
        let terminating = PodScopes { is_terminating: true, ..plain };
        let best_effort = PodScopes { is_best_effort: true, ..plain };
        let across = PodScopes { has_cross_namespace_affinity: true, ..plain };
        let selector = |scope: &str, operator: &str, values: &[&str]| json!({"scopeSelector": {"matchExpressions": [{"scopeName": scope, "operator": operator, "values": values}]}});
        for (spec, counted) in [
            (json!({}), [true, true, true, true, true]),
            (json!({"scopes": ["Terminating"]}), [false, false, true, false, false]),
            (json!({"scopes": ["NotTerminating"]}), [true, true, false, true, true]),
            (json!({"scopes": ["BestEffort"]}), [false, false, false, true, false]),
            (json!({"scopes": ["NotBestEffort"]}), [true, true, true, false, true]),
            (json!({"scopes": ["NotBestEffort", "Terminating"]}), [false, false, true, false, false]),
            (json!({"scopes": ["PriorityClass"]}), [false, true, false, false, false]),
            (selector("PriorityClass", "In", &["urgent", "high"]), [false, true, false, false, false]),
            (selector("PriorityClass", "In", &["high"]), [false; 5]),
            (selector("PriorityClass", "NotIn", &["urgent"]), [true, false, true, true, true]),
            (selector("PriorityClass", "DoesNotExist", &[]), [true, false, true, true, true]),
            (selector("CrossNamespacePodAffinity", "Exists", &[]), [false, false, false, false, true]),
            (selector("VolumeAttributesClass", "In", &["gold"]), [false; 5]),
            (selector("SomethingNew", "Exists", &[]), [true; 5]),
        ] {
            let quota = quota(&json!({"spec": spec}));
            let pods = [plain, urgent, terminating, best_effort, across];
            assert_eq!(pods.map(|pod| quota.counts_pod(&pod)), counted, "{spec}");
        }
    }

    #[test]
    fn claims_are_counted_by_their_class_of_attributes_and_not_by_scopes_of_pods() {
        for (scope, operator, expected) in [
            ("VolumeAttributesClass", "In", [true, false, false]),
            ("VolumeAttributesClass", "NotIn", [false, true, true]),
            ("VolumeAttributesClass", "Exists", [true, true, false]),
            ("Terminating", "Exists", [false; 3]),
        ] {
            let expression = json!({"scopeName": scope, "operator": operator, "values": ["gold"]});
            let quota = quota(&json!({"spec": {"scopeSelector": {"matchExpressions": [expression]}}}));
            let classes = [Some("gold"), Some("lead"), None];
            assert_eq!(classes.map(|class| quota.counts_claim(class)), expected, "{scope} {operator}");
        }
        assert!(of_hard(&json!({})).counts_claim(None));
    }

    #[test]
    fn an_unknown_operator_is_reported() {
        let expression = json!({"scopeName": "PriorityClass", "operator": "Like", "values": ["a"]});
        let object = json!({"spec": {"scopeSelector": {"matchExpressions": [expression]}}});
        let mut problems = Vec::new();
        let quota = ResourceQuota::read(&object, &mut problems);
        assert!(quota.counts_pod(&PodScopes::default()));
        assert!(
            problems[0].contains("matchExpressions[0].operator: \"Like\" is not an operator"),
            "{problems:?}"
        );
    }

    fn scopes(spec: &Value) -> (bool, Option<String>, bool) {
        let text = json!({"spec": spec}).to_string();
        let pod = Pod::parse(&text).expect("a pod");
        let scopes = PodScopes::of(&pod);
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
