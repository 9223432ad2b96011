//! Values of the chart, in commands and in text.

use std::sync::LazyLock;

use serde_json::Value;

use crate::reference::source;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(&source::text("charts/otel-webhook/values.schema.json")).expect("JSON")
});

/// What is wrong with the values that a command of helm sets for our chart.
pub fn problem(arguments: &[String]) -> Option<String> {
    if !arguments
        .iter()
        .any(|word| word.ends_with("otel-webhook/otel-webhook") || word == "charts/otel-webhook")
    {
        return None;
    }
    let mut set = arguments.windows(2).filter(|pair| pair[0].starts_with("--set")).map(|pair| &pair[1]);
    set.find_map(|assignment| {
        let path = assignment.split_once('=').map_or(&**assignment, |(path, _)| path);
        // A dot in a key is written with a backslash.
        let path: Vec<_> = path.replace("\\.", "\0").split('.').map(ToOwned::to_owned).collect();
        let path: Vec<_> = path.iter().map(|part| part.split('[').next().unwrap_or_default()).collect();
        (!exists(&path)).then(|| format!("the chart has no value {}", path.join(".")))
    })
}

/// Whether the chart has a value of this path.
pub fn exists(path: &[&str]) -> bool {
    let mut now = resolved(&SCHEMA);
    for part in path {
        if let Some(next) = now["properties"].get(*part) {
            now = resolved(next);
            continue;
        }
        // An object of Kubernetes, or with keys of any name.
        return now["additionalProperties"] != Value::Bool(false)
            && now["properties"].get(*part).is_none()
            && now != &*SCHEMA;
    }
    true
}

/// Whether the first part of a path is a value of the chart.
pub fn begins(path: &str) -> bool {
    SCHEMA["properties"].get(path).is_some()
}

/// What a reference leads to.
fn resolved(schema: &'static Value) -> &'static Value {
    let Some(link) = schema["$ref"].as_str() else { return schema };
    let found = link.strip_prefix('#').and_then(|pointer| SCHEMA.pointer(pointer));
    found.unwrap_or_else(|| panic!("{link} leads nowhere"))
}

/// What is wrong with a file of values.
pub fn problem_of(values: &Value) -> Option<String> {
    let mut paths = Vec::new();
    collect(values, &mut Vec::new(), &mut paths);
    let wrong = paths.into_iter().find(|path| !exists(&path.iter().map(String::as_str).collect::<Vec<_>>()));
    wrong.map(|path| format!("the chart has no value {}", path.join(".")))
}

fn collect(values: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    for (key, value) in values.as_object().into_iter().flatten() {
        path.push(key.clone());
        found.push(path.clone());
        collect(value, path, found);
        path.pop();
    }
}
