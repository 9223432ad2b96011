//! The nodes that a pod requires: by name, node selector and required node affinity.

use serde::Deserialize;

use super::node::Node;
use crate::{
    pod::Spec,
    text::{List, Map, Object, Text, object_or_default},
};

/// What a pod requires of its node.
#[derive(Debug)]
pub struct Placement<'s> {
    node_name: &'s str,
    selector: &'s Map<'s>,
    /// `None` if there is no required node affinity.
    terms: Option<Vec<Term<'s>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Affinity<'a> {
    #[serde(borrow, deserialize_with = "object_or_default")]
    node_affinity: NodeAffinity<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NodeAffinity<'a> {
    #[serde(borrow, rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    required: Option<Object<Required<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Required<'a> {
    #[serde(borrow)]
    node_selector_terms: List<Term<'a>>,
}

/// One of several alternatives.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Term<'a> {
    /// Requirements on labels.
    #[serde(borrow)]
    pub match_expressions: List<Expression<'a>>,
    match_fields: List<Expression<'a>>,
}

/// All expressions of a term have to match.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Expression<'a> {
    /// The key of a label, or a field.
    #[serde(borrow)]
    pub key: Text<'a>,
    /// How the values are compared.
    pub operator: Text<'a>,
    values: Option<Vec<Text<'a>>>,
}

impl<'s> Placement<'s> {
    /// Reads it from a pod. An affinity that cannot be read is ignored: the API server rejects the pod.
    pub fn of(spec: &'s Spec<'_>) -> Self {
        let required = spec.affinity.and_then(|affinity| {
            let Object(affinity) = serde_json::from_str::<Object<Affinity<'s>>>(affinity.get()).ok()?;
            affinity.node_affinity.required
        });
        Self {
            node_name: &spec.node_name,
            selector: &spec.node_selector,
            terms: required.map(|Object(required)| required.node_selector_terms.0),
        }
    }

    /// The alternatives of the required node affinity; none if there is no affinity.
    pub fn terms(&self) -> &[Term<'s>] {
        self.terms.as_deref().unwrap_or_default()
    }

    /// Whether the pod may run on a node.
    pub fn allows(&self, name: &str, node: &Node) -> bool {
        let is_named = self.node_name.is_empty() || self.node_name == name;
        let is_selected = || self.selector.iter().all(|(key, value)| node.label(key) == Some(value));
        let is_wanted =
            || self.terms.as_ref().is_none_or(|terms| terms.iter().any(|term| term.allows(name, node)));
        is_named && is_selected() && is_wanted()
    }
}

impl Term<'_> {
    fn allows(&self, name: &str, node: &Node) -> bool {
        let (labels, fields) = (&self.match_expressions, &self.match_fields);
        // An empty term matches no node.
        let is_empty = labels.is_empty() && fields.is_empty();
        let of_field = |key: &str| (key == "metadata.name").then_some(name);
        !is_empty
            && labels.iter().all(|one| one.matches(node.label(&one.key)))
            && fields.iter().all(|one| one.matches(of_field(&one.key)))
    }
}

impl Expression<'_> {
    /// The values.
    pub fn values(&self) -> &[Text<'_>] {
        self.values.as_deref().unwrap_or_default()
    }

    /// With an operator that is not known, the node might match.
    fn matches(&self, value: Option<&str>) -> bool {
        let is_among = value.is_some_and(|value| self.values().iter().any(|one| **one == *value));
        match &*self.operator {
            "In" => is_among,
            "NotIn" => !is_among,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            "Gt" => self.numbers(value).is_some_and(|(own, bound)| own > bound),
            "Lt" => self.numbers(value).is_some_and(|(own, bound)| own < bound),
            _ => true,
        }
    }

    /// A value and the bound, if both are whole numbers.
    fn numbers(&self, value: Option<&str>) -> Option<(i64, i64)> {
        Some((value?.parse().ok()?, self.values().first()?.parse().ok()?))
    }
}
