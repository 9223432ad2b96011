//! Whether a pod requires nodes of one architecture.

use serde::Deserialize;

use super::{
    pod::Spec,
    text::{List, Object, Text, object_or_default},
};

/// Labels of nodes with their architecture; the older one is still set.
const LABELS: [&str; 2] = ["kubernetes.io/arch", "beta.kubernetes.io/arch"];

const ARM64: &str = "arm64";

/// Whether a pod runs on arm64 nodes only, by its node selector or by every term of its required node
/// affinity.
pub fn is_arm64_only(spec: &Spec<'_>) -> bool {
    if LABELS.iter().any(|label| spec.node_selector.get(label) == Some(ARM64)) {
        return true;
    }
    let Some(affinity) = spec.affinity else { return false };
    let Object(affinity) = serde_json::from_str::<Object<Affinity<'_>>>(affinity.get()).unwrap_or_default();
    let terms = affinity.node_affinity.required.node_selector_terms;
    let demands = |term: &Term<'_>| term.match_expressions.iter().any(Expression::is_arm64);
    !terms.is_empty() && terms.iter().all(demands)
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
    #[serde(
        borrow,
        rename = "requiredDuringSchedulingIgnoredDuringExecution",
        deserialize_with = "object_or_default"
    )]
    required: Required<'a>,
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
struct Term<'a> {
    #[serde(borrow)]
    match_expressions: List<Expression<'a>>,
}

/// All expressions of a term have to match.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Expression<'a> {
    #[serde(borrow)]
    key: Text<'a>,
    operator: Text<'a>,
    values: Vec<Text<'a>>,
}

impl Expression<'_> {
    fn is_arm64(&self) -> bool {
        let values = &self.values;
        let is_label = LABELS.contains(&&*self.key);
        is_label
            && &*self.operator == "In"
            && !values.is_empty()
            && values.iter().all(|value| &**value == ARM64)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::pod::Pod;

    fn is_arm64(spec: &Value) -> bool {
        let text = json!({"spec": spec}).to_string();
        is_arm64_only(&Pod::parse(&text).expect("a pod").spec)
    }

    fn affinity(terms: &Value) -> Value {
        let required = json!({"nodeSelectorTerms": terms});
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}})
    }

    fn term(operator: &str, values: &[&str]) -> Value {
        let arch = json!({"key": "kubernetes.io/arch", "operator": operator, "values": values});
        json!({"matchExpressions": [{"key": "zone", "operator": "Exists"}, arch]})
    }

    #[test]
    fn the_node_selector_or_every_term_of_the_affinity_requires_it() {
        assert!(is_arm64(&json!({"nodeSelector": {"kubernetes.io/arch": "arm64"}})));
        assert!(is_arm64(&json!({"nodeSelector": {"beta.kubernetes.io/arch": "arm64"}})));
        assert!(is_arm64(&affinity(&json!([term("In", &["arm64"])]))));
        assert!(is_arm64(&affinity(&json!([term("In", &["arm64"]), term("In", &["arm64", "arm64"])]))));
        for other in [
            json!({}),
            json!({"nodeSelector": {"kubernetes.io/arch": "amd64"}}),
            json!({"affinity": null}),
            json!({"affinity": "none"}),
            affinity(&json!([])),
            affinity(&json!([term("In", &["arm64"]), term("In", &["amd64"])])),
            affinity(&json!([term("In", &["arm64", "amd64"])])),
            affinity(&json!([term("NotIn", &["arm64"])])),
            affinity(&json!([term("In", &[])])),
            affinity(&json!([{"matchFields": []}])),
        ] {
            assert!(!is_arm64(&other), "{other}");
        }
    }
}
