//! The objects of a document: the document itself, or the items of a list.

use serde_json::Value;

use crate::manifest::{TypeMeta, item_type};

/// Visits every object with its type. Items of a typed list have the type of the list.
pub fn each(object: &mut Value, visit: &mut dyn FnMut(&mut Value, &TypeMeta)) {
    let said = TypeMeta::of(object);
    walk(object, said.as_ref(), visit);
}

fn walk(object: &mut Value, object_type: Option<&TypeMeta>, visit: &mut dyn FnMut(&mut Value, &TypeMeta)) {
    let Some(object_type) = object_type else { return };
    let Some(item_type) = item_type(object) else {
        return visit(object, object_type);
    };
    for item in object.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
        let said = TypeMeta::of(item);
        walk(item, Some(said.as_ref().unwrap_or(&item_type)), visit);
    }
}

/// Returns whether this is the type of Instrumentations.
pub fn is_instrumentation(object_type: &TypeMeta) -> bool {
    object_type.api_version == "opentelemetry.io/v1alpha1" && object_type.kind == "Instrumentation"
}
