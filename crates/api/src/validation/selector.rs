//! Label selectors: what the schema cannot express about keys and values.

use serde_json::Value;

use super::{
    text,
    text::Path,
    verdict::{Cause, Verdict},
};

/// Checks a selector.
pub fn check(verdict: &mut Verdict, field: Path<'_>, selector: &Value) {
    for key in selector["matchLabels"].as_object().into_iter().flatten().map(|(key, _)| key) {
        if !text::is_qualified(key) {
            let shown = text::quoted(key);
            let message = format!("{shown} is not a label key; valid: such as \"app.kubernetes.io/name\"");
            verdict.reject(Cause::Invalid, format!("{field}.matchLabels"), message);
        }
    }
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten().enumerate();
    for (index, expression) in expressions {
        let field = || format!("{field}.matchExpressions[{index}].values");
        let has_values = expression["values"].as_array().is_some_and(|values| !values.is_empty());
        match expression["operator"].as_str() {
            Some(operator @ ("In" | "NotIn")) if !has_values => {
                verdict.reject(
                    Cause::Required,
                    field(),
                    format!("is empty; {operator} needs at least one value"),
                );
            }
            Some(operator @ ("Exists" | "DoesNotExist")) if has_values => {
                verdict.reject(Cause::Invalid, field(), format!("has values; valid for {operator}: none"));
            }
            _ => {}
        }
    }
}
