//! Label selectors of Kubernetes.

use std::fmt;

use otel_webhook_api::LabelSelector;

use super::{
    held::{Held, held},
    text::Map,
};

/// Labels of an object.
pub trait Labels {
    /// The value of a label, if it exists.
    fn value(&self, key: &str) -> Option<&str>;
}

impl Labels for Map<'_> {
    fn value(&self, key: &str) -> Option<&str> {
        self.get(key)
    }
}

/// A non-empty selector.
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

held!(Requirement: key, operator;);

impl Held for Selector {
    fn held(&self) -> usize {
        self.0.held()
    }
}

impl Held for Operator {
    fn held(&self) -> usize {
        match self {
            Self::In(values) | Self::NotIn(values) => values.held(),
            Self::Exists | Self::DoesNotExist => 0,
        }
    }
}

impl Selector {
    /// Compiles a selector; `None` if it is empty.
    ///
    /// # Errors
    /// A message that names an unknown operator.
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
                        "matchExpressions: \"{other}\" is not an operator; valid: In, NotIn, Exists, DoesNotExist"
                    ));
                }
            };
            requirements.push(Requirement { key: expression.key.clone(), operator });
        }
        Ok((!requirements.is_empty()).then_some(Self(requirements)))
    }

    /// Whether labels can match both selectors.
    pub fn may_meet(&self, other: &Self) -> bool {
        let pairs = self.0.iter().flat_map(|one| other.0.iter().map(move |other| (one, other)));
        !pairs.filter(|(one, other)| one.key == other.key).any(|(one, other)| {
            one.operator.excludes(&other.operator) || other.operator.excludes(&one.operator)
        })
    }

    /// Whether labels match every requirement.
    pub fn matches(&self, labels: &impl Labels) -> bool {
        self.matches_by(|key| labels.value(key))
    }

    /// Whether the labels that `value` returns match every requirement.
    pub fn matches_by<'l>(&self, value: impl Fn(&str) -> Option<&'l str>) -> bool {
        self.0.iter().all(|one| one.operator.is_met_by(value(&one.key)))
    }

    /// Whether the labels that `value` returns have one that a requirement needs.
    pub fn has_label_of<'l>(&self, value: impl Fn(&str) -> Option<&'l str>) -> bool {
        let needs = |operator: &Operator| matches!(operator, Operator::In(_) | Operator::Exists);
        self.0.iter().any(|one| needs(&one.operator) && one.operator.is_met_by(value(&one.key)))
    }

    /// The requirements that the labels that `value` returns do not match.
    pub fn unmet_by<'l>(&self, value: impl Fn(&str) -> Option<&'l str>) -> Vec<Unmet<'_>> {
        self.0.iter().filter(|one| !one.operator.is_met_by(value(&one.key))).map(Unmet).collect()
    }
}

/// A requirement that labels do not match.
pub struct Unmet<'s>(&'s Requirement);

impl Unmet<'_> {
    /// The key of the label.
    pub fn key(&self) -> &str {
        &self.0.key
    }

    /// The values of the label that match, if they are listed.
    pub fn values(&self) -> &[String] {
        match &self.0.operator {
            Operator::In(values) => values,
            _ => &[],
        }
    }

    /// Whether the label matches with this value.
    pub fn is_met_by(&self, value: &str) -> bool {
        self.0.operator.is_met_by(Some(value))
    }

    /// A value of the label that matches. `None` if the label has to be removed or changed.
    pub fn value(&self) -> Option<&str> {
        match &self.0.operator {
            Operator::In(values) => values.first().map(String::as_str),
            Operator::Exists => Some("true"),
            Operator::NotIn(_) | Operator::DoesNotExist => None,
        }
    }
}

impl fmt::Display for Unmet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Requirement { key, operator } = self.0;
        match operator {
            Operator::In(values) => write!(f, "{key} In ({})", values.join(", ")),
            Operator::NotIn(values) => write!(f, "{key} NotIn ({})", values.join(", ")),
            Operator::Exists => write!(f, "{key} Exists"),
            Operator::DoesNotExist => write!(f, "{key} DoesNotExist"),
        }
    }
}

impl Operator {
    /// Whether the value of a label matches, or its absence.
    fn is_met_by(&self, value: Option<&str>) -> bool {
        let among = |values: &[String]| value.is_some_and(|value| values.iter().any(|one| one == value));
        match self {
            Self::In(values) => among(values),
            Self::NotIn(values) => !among(values),
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
        }
    }

    /// Whether neither a value nor its absence matches both.
    fn excludes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::In(values), Self::In(others)) => !values.iter().any(|value| others.contains(value)),
            (Self::In(values), Self::NotIn(others)) => values.iter().all(|value| others.contains(value)),
            (Self::In(_) | Self::Exists, Self::DoesNotExist) => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operator_matches_as_in_kubernetes() {
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
            let selector = Selector::new(&selector).expect("valid").expect("it is not empty");
            assert_eq!(selector.matches(&labels), expected, "{expression}");
        }
    }

    #[test]
    fn selectors_overlap_unless_a_key_excludes_it() {
        let selector = |expression: &str| {
            let text = format!(r#"{{"matchExpressions":[{expression}]}}"#);
            let selector: LabelSelector = serde_json::from_str(&text).expect("a selector");
            Selector::new(&selector).expect("valid").expect("it is not empty")
        };
        let order = selector(r#"{"key":"app","operator":"In","values":["order"]}"#);
        for (expression, expected) in [
            (r#"{"key":"app","operator":"In","values":["order","cart"]}"#, true),
            (r#"{"key":"app","operator":"In","values":["cart"]}"#, false),
            (r#"{"key":"tier","operator":"In","values":["cart"]}"#, true),
            (r#"{"key":"app","operator":"NotIn","values":["order"]}"#, false),
            (r#"{"key":"app","operator":"Exists"}"#, true),
            (r#"{"key":"app","operator":"DoesNotExist"}"#, false),
        ] {
            let other = selector(expression);
            assert_eq!(
                (order.may_meet(&other), other.may_meet(&order)),
                (expected, expected),
                "{expression}"
            );
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
