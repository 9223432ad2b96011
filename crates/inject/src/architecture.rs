//! Whether a pod requires nodes of one architecture.

use super::{
    cluster::{Expression, Placement, Term},
    pod::Spec,
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
    let placement = Placement::of(spec);
    let terms = placement.terms();
    let demands = |term: &Term<'_>| term.match_expressions.iter().any(is_arm64);
    !terms.is_empty() && terms.iter().all(demands)
}

/// Whether only nodes of that architecture match.
fn is_arm64(expression: &Expression<'_>) -> bool {
    let values = expression.values();
    let is_label = LABELS.contains(&&*expression.key);
    is_label
        && &*expression.operator == "In"
        && !values.is_empty()
        && values.iter().all(|value| &**value == ARM64)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::pod::Pod;

    fn is_required(spec: &Value) -> bool {
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
        assert!(is_required(&json!({"nodeSelector": {"kubernetes.io/arch": "arm64"}})));
        assert!(is_required(&json!({"nodeSelector": {"beta.kubernetes.io/arch": "arm64"}})));
        assert!(is_required(&affinity(&json!([term("In", &["arm64"])]))));
        assert!(is_required(&affinity(&json!([term("In", &["arm64"]), term("In", &["arm64", "arm64"])]))));
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
            assert!(!is_required(&other), "{other}");
        }
    }
}
