//! Label selectors, as Kubernetes has them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::text::Map;

/// A selector that asks for something.
#[derive(Debug)]
pub struct Selector(Vec<Requirement>);

#[derive(Debug)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Debug)]
enum Operator {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
}

impl Selector {
    /// Reads a selector; none where it asks for nothing.
    ///
    /// # Errors
    /// A sentence that names an operator that is not known.
    pub fn new(selector: &LabelSelector) -> Result<Option<Self>, String> {
        let labels = selector.match_labels.iter().flatten();
        let mut requirements: Vec<_> = labels
            .map(|(key, value)| Requirement { key: key.clone(), operator: Operator::In(vec![value.clone()]) })
            .collect();
        for expression in selector.match_expressions.iter().flatten() {
            let values = expression.values.clone().unwrap_or_default();
            let operator = match expression.operator.as_str() {
                "In" => Operator::In(values),
                "NotIn" => Operator::NotIn(values),
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    return Err(format!(
                        "spec.selector.matchExpressions: \"{other}\" is not an operator; valid: In, NotIn, Exists, DoesNotExist"
                    ));
                }
            };
            requirements.push(Requirement { key: expression.key.clone(), operator });
        }
        Ok((!requirements.is_empty()).then_some(Self(requirements)))
    }

    /// Whether labels meet every requirement.
    pub fn matches(&self, labels: &Map<'_>) -> bool {
        self.0.iter().all(|requirement| {
            let value = labels.get(&requirement.key);
            let among = |values: &[String]| value.is_some_and(|value| values.iter().any(|one| one == value));
            match &requirement.operator {
                Operator::In(values) => among(values),
                Operator::NotIn(values) => !among(values),
                Operator::Exists => value.is_some(),
                Operator::DoesNotExist => value.is_none(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operator_means_what_it_means_in_kubernetes() {
        let labels: Map<'_> = serde_json::from_str(r#"{"app":"order","tier":"a"}"#).expect("labels");
        for (expression, expected) in [
            (r#"{"key":"app","operator":"In","values":["order","cart"]}"#, true),
            (r#"{"key":"app","operator":"In","values":["cart"]}"#, false),
            (r#"{"key":"app","operator":"NotIn","values":["cart"]}"#, true),
            (r#"{"key":"none","operator":"NotIn","values":["cart"]}"#, true),
            (r#"{"key":"app","operator":"NotIn","values":["order"]}"#, false),
            (r#"{"key":"tier","operator":"Exists"}"#, true),
            (r#"{"key":"none","operator":"Exists"}"#, false),
            (r#"{"key":"none","operator":"DoesNotExist"}"#, true),
            (r#"{"key":"tier","operator":"DoesNotExist"}"#, false),
        ] {
            let text = format!(r#"{{"matchLabels":{{"app":"order"}},"matchExpressions":[{expression}]}}"#);
            let selector: LabelSelector = serde_json::from_str(&text).expect("a selector");
            let selector = Selector::new(&selector).expect("valid").expect("asks for something");
            assert_eq!(selector.matches(&labels), expected, "{expression}");
        }
    }

    #[test]
    fn an_unknown_operator_is_named() {
        let text = r#"{"matchExpressions":[{"key":"app","operator":"Like"}]}"#;
        let selector: LabelSelector = serde_json::from_str(text).expect("a selector");
        let problem = Selector::new(&selector).expect_err("no such operator");
        assert!(problem.contains("\"Like\"") && problem.contains("DoesNotExist"), "{problem}");
    }
}
