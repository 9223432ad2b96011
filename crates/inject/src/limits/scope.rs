//! The scopes of ResourceQuotas, which decide which pods are counted.

use std::fmt;

use serde_json::Value;

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
