//! The CustomResourceDefinition, made from the types.

use kube::CustomResourceExt;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::Instrumentation;

/// Samplers that the OpenTelemetry specification and the operator know.
pub const SAMPLERS: [&str; 9] = [
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
    "jaeger_remote",
    "parentbased_jaeger_remote",
    "xray",
];

/// Propagators that the OpenTelemetry specification and the operator know.
pub const PROPAGATORS: [&str; 8] =
    ["tracecontext", "baggage", "b3", "b3multi", "jaeger", "xray", "ottrace", "none"];

/// What a quantity looks like, as Kubernetes itself writes it into schemas.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// The CustomResourceDefinition of Instrumentation, as `otel-webhook crd` prints it.
pub fn crd() -> Value {
    let mut crd =
        serde_json::to_value(Instrumentation::crd()).expect("a CustomResourceDefinition is plain JSON");
    for version in members(&mut crd["spec"]["versions"]) {
        repair(&mut version["schema"]["openAPIV3Schema"]);
    }
    crd
}

/// The YAML of [`crd`].
pub fn yaml() -> String {
    serde_saphyr::to_string(&crd()).expect("plain JSON is YAML")
}

pub(super) fn samplers(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "nullable": true, "enum": SAMPLERS})
}

pub(super) fn propagators(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "nullable": true,
        "items": {"type": "string", "enum": PROPAGATORS},
    })
}

fn members(list: &mut Value) -> impl Iterator<Item = &mut Value> {
    list.as_array_mut().into_iter().flatten()
}

/// Mends what the linked types say too narrowly or at too great a length.
fn repair(schema: &mut Value) {
    let Some(node) = schema.as_object_mut() else {
        return;
    };
    if let Some(text) = node.get("description").and_then(Value::as_str) {
        // The types call a quantity a string. Kubernetes takes a number as
        // well (`cpu: 1`), and a schema that refused it would refuse resources
        // that the operator serves today.
        if text.starts_with("Quantity is a fixed-point representation") {
            node.insert("x-kubernetes-int-or-string".into(), json!(true));
            node.insert("pattern".into(), json!(QUANTITY));
            node.insert("description".into(), json!("A quantity, such as 100m or 64Mi."));
            node.remove("type");
            node.insert("anyOf".into(), json!([{"type": "integer"}, {"type": "string"}]));
            return;
        }
        // Whole pages of the Kubernetes reference, once for each language,
        // are more than `kubectl apply` can note in its annotation (256 KiB).
        let short = first_sentence(text);
        node.insert("description".into(), json!(short));
    }
    for key in ["properties", "additionalProperties", "items"] {
        match node.get_mut(key) {
            Some(Value::Object(members)) if key == "properties" => {
                members.values_mut().for_each(repair);
            }
            Some(inner) => repair(inner),
            None => {}
        }
    }
}

/// The text up to the first full stop that ends a sentence.
fn first_sentence(text: &str) -> String {
    let line = text.split("\n\n").next().unwrap_or(text).replace('\n', " ");
    match line.find(". ") {
        Some(end) => line[..=end].to_owned(),
        None => line,
    }
}
