//! Mends what the linked types say too narrowly or at too great a length.

use serde_json::{Map, Value, json};

use super::patterns::QUANTITY;

/// What a claim template may say of its metadata; the rest is the cluster's.
const TEMPLATE_METADATA: [&str; 5] = ["annotations", "finalizers", "labels", "name", "namespace"];

/// Mends the schema of the whole resource.
pub fn mend(schema: &mut Value) {
    // A resource that leaves everything to the defaults is complete without a `spec`.
    remove(schema, "required");
    for language in schema["properties"]["spec"]["properties"].as_object_mut().into_iter().flatten() {
        if let Some(claim) = language.1.pointer_mut("/properties/volumeClaimTemplate") {
            mend_claim(claim);
        }
    }
    mend_node(schema);
}

/// Typed clients store a claim template that nobody set as an empty object.
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
        // are more than `kubectl apply` can note in its annotation (256 KiB).
        let short = first_sentence(text);
        node.insert("description".into(), json!(short));
    }
    if is_quantity || node.contains_key("x-kubernetes-int-or-string") {
        return mend_quantity(node);
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

/// The types call a quantity a string. Kubernetes takes a number as well
/// (`cpu: 1`), and a schema that refused it would refuse resources that the
/// operator serves today.
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
