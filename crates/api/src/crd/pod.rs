//! Schema keywords for parts that are copied into pods unchanged: what the API server
//! accepts there, value by value. Validation checks how values
//! depend on each other.

use std::borrow::Cow;

use serde_json::{Value, json};

use k8s_openapi::{
    api::core::v1::{EnvVarSource, PersistentVolumeClaimTemplate, ResourceRequirements, SecurityContext},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::{
    patterns::{KEY, LABEL_VALUE, OBJECT_NAME, QUALIFIED_NAME, SHORT_NAME},
    rules::{self, add_rule, set},
};

/// The schema of a type of Kubernetes, edited.
macro_rules! edited {
    ($($(#[$doc:meta])* $name:ident = $kind:ty, $edit:expr;)*) => {
        $($(#[$doc])*
        pub struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let mut schema = <$kind>::json_schema(generator).to_value();
                let edit: fn(&mut Value) = $edit;
                edit(&mut schema);
                schema.try_into().expect("an object stays one")
            }
        })*
    };
}

edited! {
    /// The source of a variable's value.
    Source = EnvVarSource, source;
    /// The security context of a container.
    ContainerSecurity = SecurityContext, security_context;
    /// Requests, limits and claims of a container.
    Resources = ResourceRequirements, |schema| {
        resources(schema);
        add_rule(schema, rules::limits_hold_requests());
    };
    /// The same in a list, where it would cost more than the API server allows to compare requests with limits: that is left
    /// to the webhook.
    ListedResources = ResourceRequirements, resources;
    /// A label selector.
    Selector = LabelSelector, |schema| {
        selector(schema);
        rules::selector(schema);
    };
    /// The claim template of an ephemeral volume.
    Claim = PersistentVolumeClaimTemplate, claim;
}

/// The longest name of an object.
pub const LONGEST_NAME: usize = 253;

/// The highest valid user or group ID.
const HIGHEST_ID: i64 = 2_147_483_647;

/// The source of a variable's value.
fn source(source: &mut Value) {
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
fn security_context(context: &mut Value) {
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
fn resources(resources: &mut Value) {
    let claim = &mut resources["properties"]["claims"]["items"]["properties"];
    set(claim, "name", json!({"minLength": 1}));
    set(claim, "request", json!({"pattern": SHORT_NAME}));
}

/// A label selector.
fn selector(selector: &mut Value) {
    let members = &mut selector["properties"];
    let value = json!({"pattern": LABEL_VALUE, "maxLength": 63});
    set(&mut members["matchLabels"], "additionalProperties", value.clone());
    let expression = &mut members["matchExpressions"]["items"]["properties"];
    set(expression, "key", json!({"pattern": QUALIFIED_NAME, "maxLength": 317}));
    set(expression, "operator", json!({"enum": ["In", "NotIn", "Exists", "DoesNotExist"]}));
    set(&mut expression["values"], "items", value);
}

/// The claim template of an ephemeral volume.
fn claim(claim: &mut Value) {
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
