//! The chart's values, as helm-docs writes them into the chart's README from `values.yaml`.

use super::{beginning, source};

pub fn page() -> String {
    let purpose = "Every value of the chart `otel-webhook`, with its default. Unknown values are rejected by name. \
                   The [chart's README](https://github.com/otel-webhook/otel-webhook/blob/main/charts/otel-webhook/README.md) \
                   explains what belongs together.";
    beginning("Values of the chart", purpose)
        + "\n"
        + values().trim().replace("\n### ", "\n## ").as_str()
        + "\n"
}

/// The tables of the README, without their heading.
fn values() -> String {
    let readme = source::text("charts/otel-webhook/README.md");
    let (_, values) = readme.split_once("\n## Values\n").expect("a section of values");
    values.to_owned()
}

#[test]
fn every_value_of_the_schema_is_in_the_reference() {
    let schema: serde_json::Value =
        serde_json::from_str(&source::text("charts/otel-webhook/values.schema.json")).expect("JSON");
    let page = page();
    for name in schema["properties"].as_object().expect("properties").keys() {
        // What a parent chart passes on.
        if ["global", "tags", "enabled"].contains(&&**name) {
            continue;
        }
        assert!(
            [format!("| {name} "), format!("| {name}.")].iter().any(|row| page.contains(row)),
            "the value {name} is not in the reference"
        );
    }
}
