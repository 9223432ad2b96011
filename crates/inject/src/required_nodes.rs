//! Whether a pod requires nodes of one architecture or operating system.

use super::{
    cluster::{Expression, Placement, Term},
    pod::Spec,
};

/// A property of nodes.
struct Property {
    /// The labels with it; the older one is still set.
    labels: [&'static str; 2],
    /// The value.
    value: &'static str,
}

const ARM64: Property =
    Property { labels: ["kubernetes.io/arch", "beta.kubernetes.io/arch"], value: "arm64" };
const WINDOWS: Property =
    Property { labels: ["kubernetes.io/os", "beta.kubernetes.io/os"], value: "windows" };

/// Whether a pod runs on arm64 nodes only.
pub fn is_arm64_only(spec: &Spec<'_>) -> bool {
    ARM64.is_required(spec)
}

/// Whether a pod runs on Windows nodes only.
pub fn is_windows_only(spec: &Spec<'_>) -> bool {
    let by_os = spec.os.as_ref().is_some_and(|os| &*os.name == WINDOWS.value);
    by_os || WINDOWS.is_required(spec)
}

impl Property {
    /// Whether a pod requires it by its node selector, or by every term of its required node affinity.
    fn is_required(&self, spec: &Spec<'_>) -> bool {
        if self.labels.iter().any(|label| spec.node_selector.get(label) == Some(self.value)) {
            return true;
        }
        let placement = Placement::of(spec);
        let terms = placement.terms();
        let demands = |term: &Term<'_>| term.match_expressions.iter().any(|one| self.is_demanded(one));
        !terms.is_empty() && terms.iter().all(demands)
    }

    /// Whether only nodes with it match.
    fn is_demanded(&self, expression: &Expression<'_>) -> bool {
        let values = expression.values();
        self.labels.contains(&&*expression.key)
            && &*expression.operator == "In"
            && !values.is_empty()
            && values.iter().all(|value| &**value == self.value)
    }
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
    fn windows_is_required_in_the_same_ways_and_by_the_pods_os() {
        let is_windows = |spec: &Value| {
            let text = json!({"spec": spec}).to_string();
            is_windows_only(&Pod::parse(&text).expect("a pod").spec)
        };
        let term = |value: &str| {
            let os = json!({"key": "kubernetes.io/os", "operator": "In", "values": [value]});
            json!({"matchExpressions": [os]})
        };
        assert!(is_windows(&json!({"os": {"name": "windows"}})));
        assert!(is_windows(&json!({"nodeSelector": {"kubernetes.io/os": "windows"}})));
        assert!(is_windows(&affinity(&json!([term("windows"), term("windows")]))));
        assert!(!is_windows(&affinity(&json!([term("windows"), term("linux")]))));
        assert!(!is_windows(&json!({"os": {"name": "linux"}})));
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
