//! Corrects parts of the generated schema that are too strict or too long.

use serde_json::{Map, Value, json};

use super::patterns::QUANTITY;

/// The metadata that a claim template may have; the API server sets the rest.
const TEMPLATE_METADATA: [&str; 5] = ["annotations", "finalizers", "labels", "name", "namespace"];

/// Corrects the schema of the whole resource.
pub fn mend(schema: &mut Value) {
    // A resource that uses only defaults is complete without a `spec`.
    remove(schema, "required");
    for language in schema["properties"]["spec"]["properties"].as_object_mut().into_iter().flatten() {
        for claim in ["/properties/volumeClaimTemplate", "/items/properties/volumeClaimTemplate"] {
            if let Some(claim) = language.1.pointer_mut(claim) {
                mend_claim(claim);
            }
        }
    }
    mend_node(schema);
}

/// Typed clients store a claim template that is not set as an empty object.
fn mend_claim(claim: &mut Value) {
    remove(claim, "required");
    if let Some(metadata) =
        claim.pointer_mut("/properties/metadata/properties").and_then(Value::as_object_mut)
    {
        metadata.retain(|field, _| TEMPLATE_METADATA.contains(&field.as_str()));
    }
}

fn remove(node: &mut Value, key: &str) {
    if let Some(node) = node.as_object_mut() {
        node.shift_remove(key);
    }
}

fn mend_node(schema: &mut Value) {
    let Some(node) = schema.as_object_mut() else {
        return;
    };
    let text = node.get("description").and_then(Value::as_str);
    let is_quantity = text.is_some_and(|text| text.starts_with("Quantity is a fixed-point representation"));
    if is_quantity {
        node.insert("description".into(), json!("A quantity, such as 100m or 64Mi."));
    } else if let Some(text) = text {
        // Whole pages of the Kubernetes reference, once for each language,
        // do not fit into the annotation of `kubectl apply` (256 KiB).
        let short = first_sentence(text);
        node.insert("description".into(), json!(short));
    }
    if is_quantity || node.contains_key("x-kubernetes-int-or-string") {
        return mend_quantity(node);
    }
    for bound in ["minimum", "maximum"] {
        // Written as 0.0, as kube does, it would come back from helm as 0.
        if let Some(whole) = node.get(bound).and_then(Value::as_f64).filter(|bound| bound.fract() == 0.0) {
            #[expect(clippy::cast_possible_truncation, reason = "bounds of our own, of 32 bits")]
            node.insert(bound.into(), json!(whole as i64));
        }
    }
    if node.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint")) {
        // The API server warns of a format that it does not know.
        node.shift_remove("format");
    }
    for key in ["properties", "additionalProperties", "items"] {
        match node.get_mut(key) {
            Some(Value::Object(members)) if key == "properties" => {
                members.values_mut().for_each(mend_node);
            }
            Some(inner) => mend_node(inner),
            None => {}
        }
    }
}

/// In the types a quantity is a string. Kubernetes also accepts a number
/// (`cpu: 1`), and a schema that rejected it would reject resources that the
/// operator accepts.
fn mend_quantity(node: &mut Map<String, Value>) {
    node.shift_remove("type");
    node.insert("x-kubernetes-int-or-string".into(), json!(true));
    node.insert("anyOf".into(), json!([{"type": "integer"}, {"type": "string"}]));
    node.insert("pattern".into(), json!(QUANTITY));
    node.insert("minimum".into(), json!(0));
}

/// The text up to the first full stop that ends a sentence.
fn first_sentence(text: &str) -> String {
    let line = text.split("\n\n").next().unwrap_or(text).replace('\n', " ");
    match line.find(". ") {
        Some(end) => line[..=end].to_owned(),
        None => line,
    }
}
