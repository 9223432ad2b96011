//! Sets keywords of a schema.

use serde_json::Value;

/// Sets keywords of a member, if it exists.
pub fn set(members: &mut Value, name: &str, keywords: Value) {
    if let (Some(node), Value::Object(keywords)) =
        (members.get_mut(name).and_then(Value::as_object_mut), keywords)
    {
        node.extend(keywords);
    }
}
