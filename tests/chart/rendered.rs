//! What values render, by the rows of `rendered.yaml`.

use std::fs;

use serde::Deserialize;
use serde_json::Value;

use crate::helm::{objects_of, objects_with, of_kind, repository, values};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    of: Option<String>,
    #[serde(default)]
    set: Vec<String>,
    kind: String,
    #[serde(default)]
    name: String,
    count: Option<usize>,
    #[serde(default)]
    at: String,
    /// The outer level is whether the row has it, since it may be null.
    #[serde(default, deserialize_with = "given")]
    is: Option<Value>,
    #[serde(default)]
    has: Value,
    #[serde(default)]
    lacks: Vec<String>,
}

fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Row {
    fn check(&self) -> Result<(), String> {
        let set: Vec<_> = self.set.iter().map(String::as_str).collect();
        let rendered = if self.of.is_none() { objects_with(&set) } else { Vec::new() };
        let objects = self.of.as_ref().map_or(&*rendered, |file| objects_of(&values(file)));
        let mut found = of_kind(objects, &self.kind);
        found.retain(|object| self.name.is_empty() || object["metadata"]["name"] == *self.name);
        if found.len() != self.count.unwrap_or(1) {
            return Err(format!("there are {}", found.len()));
        }
        let at = |value: &Value, pointer: &str| value.pointer(pointer).cloned().unwrap_or_default();
        for value in found.iter().map(|object| at(object, &self.at)) {
            let texts = || value.as_array().into_iter().flatten().filter_map(Value::as_str);
            let has = match &self.has {
                Value::Object(fields) => fields.iter().all(|(pointer, field)| at(&value, pointer) == *field),
                Value::Array(parts) => parts.iter().filter_map(Value::as_str).all(|part| {
                    texts().any(|text| text == part) || value.as_str().is_some_and(|text| text.contains(part))
                }),
                _ => true,
            };
            let lacks = self.lacks.iter().all(|start| !texts().any(|text| text.starts_with(start)));
            if !has || !lacks || self.is.as_ref().is_some_and(|is| value != *is) {
                return Err(format!("it is {value}"));
            }
        }
        Ok(())
    }
}

#[test]
fn values_render_what_they_are_for() {
    let text = fs::read_to_string(repository("tests/chart/rendered.yaml")).expect("the rows");
    let rows: Vec<Row> = serde_saphyr::from_str(&text).expect("YAML");
    let wrong: Vec<_> =
        rows.iter().filter_map(|row| row.check().err().map(|found| format!("{row:?}\n  {found}"))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
