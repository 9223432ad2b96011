//! Checks a value by the CRD's own schema: types, values, patterns, bounds.
//!
//! Knows the keywords that the schema has; a test fails when it gets one more.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Number, Value};

use super::{Cause, Verdict, text};
use crate::api::{
    crd::{PATTERNS, Pattern},
    quantity::Quantity,
};

/// Checks a value and everything in it. `path` is the field's.
pub fn check(verdict: &mut Verdict, path: &str, schema: &Value, value: &Value) {
    Check { verdict, path }.value(schema, value);
}

struct Check<'c> {
    verdict: &'c mut Verdict,
    path: &'c str,
}

impl Check<'_> {
    fn value(&mut self, schema: &Value, value: &Value) {
        if schema["x-kubernetes-int-or-string"] == true {
            return self.quantity(value);
        }
        match (schema["type"].as_str().unwrap_or_default(), value) {
            ("object", Value::Object(members)) => self.object(schema, members),
            ("array", Value::Array(items)) => self.array(schema, items),
            ("string", Value::String(text)) => self.string(schema, text),
            ("boolean", Value::Bool(_)) => {}
            ("integer", Value::Number(number)) if number.is_i64() => self.integer(schema, value),
            (expected, _) => self.wrong_type(expected, value),
        }
    }

    fn refuse(&mut self, cause: Cause, message: impl Into<String>) {
        self.verdict.refuse(cause, self.path, message);
    }

    fn below(&mut self, path: &str, schema: &Value, value: &Value) {
        Check { verdict: self.verdict, path }.value(schema, value);
    }

    fn object(&mut self, schema: &Value, members: &Map<String, Value>) {
        if let Some(most) = exceeds(members.len(), &schema["maxProperties"]) {
            self.refuse(Cause::TooMany, format!("has {} entries; valid: {most} at most", members.len()));
        }
        let (known, others) = (&schema["properties"], &schema["additionalProperties"]);
        for (key, value) in members {
            let path = member_path(self.path, key);
            match known.get(key) {
                // The API server drops a null, or keeps it where the schema lets it; it means "not set".
                Some(_) if value.is_null() => {}
                Some(schema) => self.below(&path, schema, value),
                None if others.is_object() => self.below(&path, others, value),
                None => self.unknown(&path, key, known),
            }
        }
        for field in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if members.get(field).is_none_or(Value::is_null) {
                self.verdict.refuse(Cause::Required, member_path(self.path, field), "is missing");
            }
        }
    }

    fn unknown(&mut self, path: &str, key: &str, known: &Value) {
        let Some(known) = known.as_object() else { return };
        let suggestion = text::suggestion(key, known.keys().map(String::as_str));
        let message = format!("is not a field{suggestion}; the API server drops it");
        self.verdict.warn("unknown-field", path, message);
    }

    fn array(&mut self, schema: &Value, items: &[Value]) {
        if let Some(most) = exceeds(items.len(), &schema["maxItems"]) {
            return self
                .refuse(Cause::TooMany, format!("has {} entries; valid: {most} at most", items.len()));
        }
        for (index, item) in items.iter().enumerate() {
            self.below(&format!("{}[{index}]", self.path), &schema["items"], item);
        }
    }

    fn string(&mut self, schema: &Value, written: &str) {
        let length = written.chars().count();
        if schema["minLength"].as_u64().is_some_and(|least| least > 0) && written.is_empty() {
            return self.refuse(Cause::Required, "is empty");
        }
        if let Some(valid) = schema["enum"].as_array() {
            return self.choice(valid, written);
        }
        if let Some(most) = exceeds(length, &schema["maxLength"]) {
            return self.refuse(Cause::TooLong, format!("has {length} characters; valid: {most} at most"));
        }
        if let Some(pattern) = schema["pattern"].as_str() {
            self.pattern(pattern, written);
        }
    }

    fn choice(&mut self, valid: &[Value], written: &str) {
        let valid: Vec<_> = valid.iter().filter_map(Value::as_str).collect();
        if valid.contains(&written) {
            return;
        }
        let field =
            self.path.trim_end_matches(|letter: char| letter.is_ascii_digit() || "[]".contains(letter));
        let noun = match field.rsplit('.').next() {
            Some("type") => "a sampler",
            Some("propagators") => "a propagator",
            Some("imagePullPolicy") => "a pull policy",
            Some("operator") => "an operator",
            _ => "valid here",
        };
        let suggestion = text::suggestion(written, valid.iter().copied());
        let (shown, valid) = (text::quoted(written), text::list(valid));
        self.refuse(Cause::NotSupported, format!("{shown} is not {noun}{suggestion}; valid: {valid}"));
    }

    fn pattern(&mut self, pattern: &str, written: &str) {
        let (known, regex) = compiled(pattern);
        if !regex.is_match(written) {
            self.misfit(known, written);
        }
    }

    fn misfit(&mut self, pattern: &Pattern, written: &str) {
        let message = format!("{} is not {}; valid: {}", text::quoted(written), pattern.noun, pattern.valid);
        self.refuse(Cause::Invalid, message);
    }

    fn quantity(&mut self, value: &Value) {
        match value {
            Value::String(written) if written.trim_start().starts_with('-') => self.negative(value),
            // Stricter than the pattern, as Kubernetes is when it reads one.
            Value::String(written) if Quantity::of(value).is_none() => self.misfit(&PATTERNS[0], written),
            Value::String(_) => {}
            Value::Number(number) if whole(number).is_some_and(|number| number < 0) => self.negative(value),
            Value::Number(number) if whole(number).is_some() => {}
            Value::Number(_) => {
                let message =
                    format!("{value} is not a whole number; valid: text, such as \"500m\" or \"0.5\"");
                self.refuse(Cause::TypeInvalid, message);
            }
            _ => self.wrong_type("quantity", value),
        }
    }

    fn integer(&mut self, schema: &Value, value: &Value) {
        let number = value.as_i64().unwrap_or_default();
        if schema["format"] == "int32" && i32::try_from(number).is_err() {
            let message = format!("{number} is out of range; valid: {} to {}", i32::MIN, i32::MAX);
            self.refuse(Cause::Invalid, message);
        }
    }

    fn negative(&mut self, value: &Value) {
        self.refuse(Cause::Invalid, format!("{} is negative; valid: 0 or more", text::shown(value)));
    }

    fn wrong_type(&mut self, expected: &str, value: &Value) {
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        let valid = match expected {
            "string" if value.is_number() || value.is_boolean() => "text; put it in quotes",
            "string" => "text",
            "boolean" => "true or false",
            "integer" => "a whole number",
            "quantity" => "a quantity, such as 100m or 64Mi",
            "array" => "a list",
            _ => "an object",
        };
        let is_plain = value.is_string() || value.is_number() || value.is_boolean();
        // The value of a variable may be a secret.
        let subject = match value {
            _ if is_plain && self.path.rsplit('.').next() != Some("value") => {
                format!("{} is {found}", text::shown(value))
            }
            _ => format!("is {found}"),
        };
        self.refuse(Cause::TypeInvalid, format!("{subject}; valid: {valid}"));
    }
}

/// The whole number that is meant; YAML has `1e3` and `1.0` as floating-point
/// numbers, and `kubectl` sends them as whole ones.
fn whole(number: &Number) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[allow(clippy::cast_possible_truncation, reason = "a whole number below the bound is exact")]
    let from_float = |float: f64| (float.fract() == 0.0 && float.abs() < EXACT).then_some(float as i64);
    number.as_i64().or_else(|| number.as_f64().and_then(from_float))
}

/// The bound that a size is beyond, if it is.
fn exceeds(size: usize, bound: &Value) -> Option<u64> {
    bound.as_u64().filter(|bound| size as u64 > *bound)
}

/// Keys of maps may have dots in them; then they stand in brackets, as the API server writes them.
pub fn member_path(path: &str, key: &str) -> String {
    let is_plain = key.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if is_plain { format!("{path}.{key}") } else { format!("{path}[{key}]") }
}

fn compiled(pattern: &str) -> &'static (&'static Pattern, Regex) {
    static COMPILED: LazyLock<Vec<(&Pattern, Regex)>> = LazyLock::new(|| {
        let compile = |pattern: &'static Pattern| {
            (pattern, Regex::new(pattern.regex).expect("patterns are tried in a test"))
        };
        PATTERNS.iter().map(compile).collect()
    });
    let found = COMPILED.iter().find(|(known, _)| known.regex == pattern);
    found.expect("every pattern of the schema is in the table; a test sees to it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::crd;

    const KEYWORDS: [&str; 18] = [
        "additionalProperties",
        "anyOf",
        "description",
        "enum",
        "format",
        "items",
        "maxItems",
        "maxLength",
        "maxProperties",
        "minLength",
        "minimum",
        "nullable",
        "pattern",
        "properties",
        "required",
        "type",
        "x-kubernetes-int-or-string",
        "x-kubernetes-validations",
    ];

    fn visit(node: &Value, see: &mut impl FnMut(&Map<String, Value>)) {
        let Some(members) = node.as_object() else { return };
        see(members);
        for property in node["properties"].as_object().into_iter().flatten() {
            visit(property.1, see);
        }
        visit(&node["items"], see);
        visit(&node["additionalProperties"], see);
    }

    #[test]
    fn every_keyword_and_pattern_of_the_schema_is_understood() {
        visit(crd::spec_schema(), &mut |node| {
            for (keyword, value) in node {
                assert!(KEYWORDS.contains(&keyword.as_str()), "{keyword}: {value}");
                if keyword == "pattern" {
                    compiled(value.as_str().expect("a pattern is text"));
                }
            }
        });
    }
}
