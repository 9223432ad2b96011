//! Paths of fields: those that an API has, and those that an object uses.

use std::collections::BTreeSet;

use serde_json::Value;

/// Every field below a definition of an API's description, down to what has no
/// fields of its own.
pub fn defined(openapi: &Value, definition: &str, path: &str) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    Walk { openapi, paths: &mut paths }.properties(definition, path, &mut vec![definition]);
    paths
}

/// Every path that an object uses, with those of the objects in it.
pub fn used(value: &Value, path: &str) -> BTreeSet<String> {
    let mut paths = BTreeSet::from([path.to_owned()]);
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                paths.extend(used(member, &format!("{path}.{name}")));
            }
        }
        Value::Array(items) => paths.extend(items.iter().flat_map(|item| used(item, path))),
        _ => {}
    }
    paths
}

struct Walk<'a> {
    openapi: &'a Value,
    paths: &'a mut BTreeSet<String>,
}

impl<'a> Walk<'a> {
    /// `within` are the definitions on the way, for those that contain themselves.
    fn properties(&mut self, definition: &'a str, path: &str, within: &mut Vec<&'a str>) -> bool {
        let properties = self.openapi["definitions"][definition]["properties"].as_object();
        for (name, schema) in properties.into_iter().flatten() {
            let path = format!("{path}.{name}");
            let inner = referred(schema).or_else(|| referred(&schema["items"]));
            match inner.filter(|inner| !within.contains(inner)) {
                Some(inner) => {
                    within.push(inner);
                    if !self.properties(inner, &path, within) {
                        self.paths.insert(path);
                    }
                    within.pop();
                }
                None => {
                    self.paths.insert(path);
                }
            }
        }
        properties.is_some()
    }
}

fn referred(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/definitions/")
}
