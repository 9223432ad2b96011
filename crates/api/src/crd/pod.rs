//! Schema keywords for parts that are copied into pods unchanged: what the API server
//! accepts there, value by value. Validation checks how values
//! depend on each other.

use serde_json::{Value, json};

use super::{
    patterns::{KEY, LABEL_VALUE, OBJECT_NAME, QUALIFIED_NAME, SHORT_NAME},
    rules::{rule, set},
};

/// The longest name of an object.
pub const LONGEST_NAME: usize = 253;

/// The highest valid user or group ID.
const HIGHEST_ID: i64 = 2_147_483_647;

/// The source of a variable's value.
pub fn source(source: &mut Value) {
    let members = &mut source["properties"];
    for object in ["configMapKeyRef", "secretKeyRef"] {
        let reference = &mut members[object]["properties"];
        set(reference, "name", json!({"minLength": 1, "maxLength": LONGEST_NAME, "pattern": OBJECT_NAME}));
        set(reference, "key", json!({"minLength": 1, "maxLength": LONGEST_NAME, "pattern": KEY}));
    }
    // Typed clients write a version that is not set as "".
    set(&mut members["fieldRef"]["properties"], "apiVersion", json!({"enum": ["v1", ""]}));
}

/// The security context of a container.
pub fn security_context(context: &mut Value) {
    let members = &mut context["properties"];
    for id in ["runAsUser", "runAsGroup"] {
        set(members, id, json!({"minimum": 0, "maximum": HIGHEST_ID}));
    }
    set(members, "procMount", json!({"enum": ["Default", "Unmasked"]}));
    for profile in ["appArmorProfile", "seccompProfile"] {
        let types = json!({"enum": ["Localhost", "RuntimeDefault", "Unconfined"]});
        set(&mut members[profile]["properties"], "type", types);
    }
}

/// Requests, limits and claims of a container.
pub fn resources(resources: &mut Value) {
    let claim = &mut resources["properties"]["claims"]["items"]["properties"];
    set(claim, "name", json!({"minLength": 1}));
    set(claim, "request", json!({"pattern": SHORT_NAME}));
}

/// A label selector.
pub fn selector(selector: &mut Value) {
    let members = &mut selector["properties"];
    let value = json!({"pattern": LABEL_VALUE, "maxLength": 63});
    set(&mut members["matchLabels"], "additionalProperties", value.clone());
    let expression = &mut members["matchExpressions"]["items"]["properties"];
    set(expression, "key", json!({"pattern": QUALIFIED_NAME, "maxLength": 317}));
    set(expression, "operator", json!({"enum": ["In", "NotIn", "Exists", "DoesNotExist"]}));
    set(&mut expression["values"], "items", value);
}

/// The claim template of an ephemeral volume.
pub fn claim(claim: &mut Value) {
    let metadata = &mut claim["properties"]["metadata"]["properties"];
    set(&mut metadata["labels"], "additionalProperties", json!({"pattern": LABEL_VALUE}));
    let members = &mut claim["properties"]["spec"]["properties"];
    selector(&mut members["selector"]);
    let modes = json!({"enum": ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]});
    set(&mut members["accessModes"], "items", modes);
    set(members, "volumeMode", json!({"enum": ["Filesystem", "Block"]}));
    for class in ["storageClassName", "volumeAttributesClassName"] {
        set(members, class, json!({"maxLength": LONGEST_NAME, "pattern": OBJECT_NAME}));
    }
    for source in ["dataSource", "dataSourceRef"] {
        let reference = &mut members[source]["properties"];
        set(reference, "apiGroup", json!({"maxLength": LONGEST_NAME, "pattern": OBJECT_NAME}));
        set(reference, "kind", json!({"minLength": 1}));
        set(reference, "name", json!({"minLength": 1}));
        set(reference, "namespace", json!({"pattern": SHORT_NAME}));
    }
}

/// An empty claim template is treated as not set. CEL cannot recognise every
/// empty form, but only those that nobody writes by accident are missing.
pub fn claim_or_limit() -> Value {
    let claim = "self.volumeClaimTemplate";
    let spec = format!("{claim}.spec");
    let text = format!(
        "!has(self.volumeLimitSize) || !has({claim}) || !has({spec}) || \
         !(has({spec}.storageClassName) || has({spec}.volumeName) || has({spec}.volumeMode) || \
         (has({spec}.accessModes) && size({spec}.accessModes) > 0) || \
         (has({spec}.resources) && has({spec}.resources.requests) && size({spec}.resources.requests) > 0))"
    );
    rule(text, "volumeClaimTemplate and volumeLimitSize cannot both be set")
}
