//! Checks a value by the schema of the CRD: types, values, patterns, bounds.

use serde_json::{Map, Number, Value};

use super::{
    text,
    text::Path,
    verdict::{Cause, Verdict},
};
use crate::{
    crd::{
        Pattern,
        schema::{self, Kind, Schema},
    },
    quantity::Quantity,
};

/// Checks a value and everything in it. `path` is the path of the field.
pub fn check(verdict: &mut Verdict, path: Path<'_>, schema: &Schema, value: &Value) {
    Check { verdict, path }.value(schema, value);
}

struct Check<'c> {
    verdict: &'c mut Verdict,
    path: Path<'c>,
}

impl Check<'_> {
    fn value(&mut self, schema: &Schema, value: &Value) {
        match (schema.kind, value) {
            _ if schema.is_quantity => self.quantity(value),
            (Some(Kind::Object), Value::Object(members)) => self.object(schema, members),
            (Some(Kind::Array), Value::Array(items)) => self.array(schema, items),
            (Some(Kind::String), Value::String(text)) => self.string(schema, text),
            (Some(Kind::Boolean), Value::Bool(_)) => {}
            (Some(Kind::Integer), Value::Number(number)) if number.is_i64() => self.integer(schema, value),
            (expected, _) => self.wrong_type(expected, value),
        }
    }

    fn reject(&mut self, cause: Cause, message: impl Into<String>) {
        self.verdict.reject(cause, self.path, message);
    }

    fn below(&mut self, path: Path<'_>, schema: &Schema, value: &Value) {
        Check { verdict: self.verdict, path }.value(schema, value);
    }

    fn object(&mut self, schema: &Schema, members: &Map<String, Value>) {
        if let Some(most) = exceeds(members.len(), schema.max_properties) {
            self.reject(Cause::TooMany, format!("has {} entries; valid: at most {most}", members.len()));
        }
        for (key, value) in members {
            let above = self.path;
            let path = above.member(key);
            match schema.properties.get(key.as_str()) {
                // The API server drops a null, or keeps it if the schema allows it; it means "not set".
                Some(_) if value.is_null() => {}
                Some(schema) => self.below(path, schema, value),
                None => match &schema.additional_properties {
                    Some(others) => self.below(path, others, value),
                    None if schema.preserves_unknown => {}
                    None => self.unknown(path, key, schema),
                },
            }
        }
        for field in &schema.required {
            if members.get(&**field).is_none_or(Value::is_null) {
                self.verdict.reject(Cause::Required, self.path.member(field), "is missing");
            }
        }
    }

    fn unknown(&mut self, path: Path<'_>, key: &str, schema: &Schema) {
        let suggestion = text::suggestion(key, schema.properties.keys().map(|known| &**known));
        let message = format!("is not a field{suggestion}; the API server drops it");
        self.verdict.warn("unknown-field", path, message);
    }

    fn array(&mut self, schema: &Schema, items: &[Value]) {
        if let Some(most) = exceeds(items.len(), schema.max_items) {
            return self
                .reject(Cause::TooMany, format!("has {} entries; valid: at most {most}", items.len()));
        }
        let list = self.path;
        for (index, item) in items.iter().enumerate() {
            if let Some(schema) = &schema.items {
                self.below(list.item(index), schema, item);
            }
        }
    }

    fn string(&mut self, schema: &Schema, written: &str) {
        let length = written.chars().count();
        if schema.min_length > 0 && written.is_empty() {
            return self.reject(Cause::Required, "is empty");
        }
        if let Some(valid) = &schema.choice {
            return self.choice(valid, written);
        }
        if let Some(most) = exceeds(length, schema.max_length) {
            return self.reject(Cause::TooLong, format!("has {length} characters; valid: at most {most}"));
        }
        if let Some(known) = schema.pattern.filter(|known| !known.regex.is_match(written)) {
            self.misfit(known.pattern, written);
        }
    }

    fn choice(&mut self, valid: &[Box<str>], written: &str) {
        let valid = valid.iter().map(|word| &**word);
        if valid.clone().any(|word| word == written) {
            return;
        }
        let noun = choice_noun(self.path);
        let suggestion = text::suggestion(written, valid.clone());
        let (shown, valid) = (text::quoted(written), text::list(valid));
        self.reject(Cause::NotSupported, format!("{shown} is not {noun}{suggestion}; valid: {valid}"));
    }

    fn misfit(&mut self, pattern: &Pattern, written: &str) {
        let message = format!("{} is not {}; valid: {}", text::quoted(written), pattern.noun, pattern.valid);
        self.reject(Cause::Invalid, message);
    }

    fn quantity(&mut self, value: &Value) {
        match value {
            Value::String(written) if written.trim_start().starts_with('-') => self.negative(value),
            // Stricter than the pattern, as the parser of Kubernetes.
            Value::String(written) if Quantity::of(value).is_none() => {
                self.misfit(schema::quantity(), written);
            }
            Value::String(_) => {}
            Value::Number(number) if whole(number).is_some_and(|number| number < 0) => self.negative(value),
            Value::Number(number) if whole(number).is_some() => {}
            Value::Number(_) => {
                let message =
                    format!("{value} is not a whole number; valid: text, such as \"500m\" or \"0.5\"");
                self.reject(Cause::TypeInvalid, message);
            }
            _ => self.wrong_type(None, value),
        }
    }

    fn integer(&mut self, schema: &Schema, value: &Value) {
        let number = value.as_i64().unwrap_or_default();
        if schema.format.as_deref() == Some("int32") && i32::try_from(number).is_err() {
            let message = format!("{number} is out of range; valid: {} to {}", i32::MIN, i32::MAX);
            self.reject(Cause::Invalid, message);
        }
        if let (Some(least), Some(most)) = (schema.minimum, schema.maximum)
            && !(least..=most).contains(&number)
        {
            self.reject(Cause::Invalid, format!("{number} is out of range; valid: {least} to {most}"));
        }
    }

    fn negative(&mut self, value: &Value) {
        self.reject(Cause::Invalid, format!("{} is negative; valid: 0 or more", text::shown(value)));
    }

    fn wrong_type(&mut self, expected: Option<Kind>, value: &Value) {
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        let valid = match expected {
            Some(Kind::String) if value.is_number() || value.is_boolean() => "text; put it in quotes",
            Some(Kind::String) => "text",
            Some(Kind::Boolean) => "true or false",
            Some(Kind::Integer) => "a whole number",
            Some(Kind::Array) => "a list",
            Some(Kind::Object) => "an object",
            None => "a quantity, such as 100m or 64Mi",
        };
        let is_plain = value.is_string() || value.is_number() || value.is_boolean();
        // The value of a variable may be a secret.
        let subject = match value {
            _ if is_plain && self.path.last_names().0 != "value" => {
                format!("{} is {found}", text::shown(value))
            }
            _ => format!("is {found}"),
        };
        self.reject(Cause::TypeInvalid, format!("{subject}; valid: {valid}"));
    }
}

/// The noun for the strings of a closed list, by the path of the field.
fn choice_noun(path: Path<'_>) -> &'static str {
    match path.last_names() {
        ("type", "sampler") => "a sampler",
        ("inject", _) => "a language",
        ("propagators", _) => "a propagator",
        ("delivery", _) => "a delivery",
        ("mode", _) => "a mode",
        ("imagePullPolicy", _) => "a pull policy",
        ("operator", _) => "an operator",
        ("accessModes", _) => "an access mode",
        _ => "valid here",
    }
}

/// The value as a whole number; in YAML `1e3` and `1.0` are floating-point
/// numbers, but `kubectl` sends them as whole numbers.
fn whole(number: &Number) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[allow(clippy::cast_possible_truncation, reason = "a whole number below the bound is exact")]
    let from_float = |float: f64| (float.fract() == 0.0 && float.abs() < EXACT).then_some(float as i64);
    number.as_i64().or_else(|| number.as_f64().and_then(from_float))
}

/// The bound that a size exceeds, if any.
fn exceeds(size: usize, bound: Option<usize>) -> Option<usize> {
    bound.filter(|bound| size > *bound)
}
