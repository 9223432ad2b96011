//! Which pods an Instrumentation is for: what the schema cannot say of keys and values.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::{Cause, Verdict, text};
use crate::api::crd::QUALIFIED_NAME;

static NAME: LazyLock<Regex> = LazyLock::new(|| Regex::new(QUALIFIED_NAME).expect("tried in a test"));

/// Checks a selector.
pub fn check(verdict: &mut Verdict, selector: &Value) {
    for key in selector["matchLabels"].as_object().into_iter().flatten().map(|(key, _)| key) {
        if !NAME.is_match(key) {
            let shown = text::quoted(key);
            let message = format!("{shown} is not a label's name; valid: such as \"app.kubernetes.io/name\"");
            verdict.refuse(Cause::Invalid, "spec.selector.matchLabels", message);
        }
    }
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten().enumerate();
    for (index, expression) in expressions {
        let field = format!("spec.selector.matchExpressions[{index}].values");
        let has_values = expression["values"].as_array().is_some_and(|values| !values.is_empty());
        match expression["operator"].as_str() {
            Some(operator @ ("In" | "NotIn")) if !has_values => {
                verdict.refuse(
                    Cause::Required,
                    field,
                    format!("is empty; {operator} needs at least one value"),
                );
            }
            Some(operator @ ("Exists" | "DoesNotExist")) if has_values => {
                verdict.refuse(Cause::Invalid, field, format!("has values; valid for {operator}: none"));
            }
            _ => {}
        }
    }
}
