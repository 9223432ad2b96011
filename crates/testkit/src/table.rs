//! The table of good and bad Instrumentations (`tests/data/resources.yaml`).

use std::fs;

use serde_json::{Value, json};

use crate::files;

/// One row of the table.
pub struct Row {
    /// What it shows.
    pub what: String,
    /// The Instrumentation.
    pub object: Value,
    /// What validation says.
    pub errors: Vec<String>,
    /// A part of what the API server says with the CRD alone, if it refuses.
    pub crd: Option<String>,
    /// Kinds of warnings, sorted.
    pub warnings: Vec<String>,
}

/// All rows, each with its own name.
pub fn rows() -> Vec<Row> {
    let text = fs::read_to_string(files::path("tests/data/resources.yaml")).expect("the table is there");
    let rows: Vec<Value> = serde_saphyr::from_str(&text).expect("the table is a list in YAML");
    rows.iter().enumerate().map(|(index, row)| Row::new(index, row)).collect()
}

impl Row {
    fn new(index: usize, row: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let list = |key: &str| row[key].as_array().into_iter().flatten().filter_map(text).collect();
        let mut spec = row["spec"].clone();
        lengthen(&mut spec);
        let object = json!({
            "apiVersion": "opentelemetry.io/v1alpha1",
            "kind": "Instrumentation",
            "metadata": {"name": format!("row-{index}"), "namespace": "default"},
            "spec": spec,
        });
        let mut warnings: Vec<_> = list("warnings");
        warnings.sort();
        let what = text(&row["what"]).expect("every row says what it shows");
        Self { what, object, errors: list("errors"), crd: text(&row["crd"]), warnings }
    }
}

/// `@@257@@` stands for a text of so many letters.
pub fn lengthen(value: &mut Value) {
    match value {
        Value::String(text) => {
            let length = text.strip_prefix("@@").and_then(|rest| rest.strip_suffix("@@")?.parse().ok());
            if let Some(length) = length {
                *text = "a".repeat(length);
            }
        }
        Value::Object(members) => members.values_mut().for_each(lengthen),
        Value::Array(items) => items.iter_mut().for_each(lengthen),
        _ => {}
    }
}
