//! Sets keywords of a schema, and adds rules to it.

use serde_json::{Value, json};

/// Sets keywords of a member, if it exists.
pub fn set(members: &mut Value, name: &str, keywords: Value) {
    if let (Some(node), Value::Object(keywords)) =
        (members.get_mut(name).and_then(Value::as_object_mut), keywords)
    {
        node.extend(keywords);
    }
}

/// Adds a rule to an object of the schema.
pub fn add_rule(node: &mut Value, rule: Value) {
    let node = node.as_object_mut().expect("every rule is for an object of the schema");
    let rules = node.entry("x-kubernetes-validations").or_insert_with(|| json!([]));
    rules.as_array_mut().expect("a list of rules").push(rule);
}

/// A rule with its message.
pub fn rule(rule: impl Into<String>, message: &str) -> Value {
    json!({"rule": rule.into(), "message": message})
}
