//! Bounds, patterns and CEL rules of `spec.agents`.

use serde_json::{Value, json};

use super::{
    names::reserved,
    patterns::{AGENT_NAME, FOLDER, IMAGE, VARIABLE},
    pod,
    rules::{add_rule, rule, set},
};

/// The longest name of an agent: with the prefix of the volume it has 63 characters.
const LONGEST_NAME: usize = 22;

/// The longest path.
const LONGEST_PATH: usize = 256;

/// Adds everything to the schema of the list.
///
/// Whether requests are above limits is left to the webhook: in a list, the rule would cost more than the API server
/// allows.
pub fn agents(list: &mut Value) {
    keyed_by_name(list, 16, &["name", "image", "directory"]);
    let agent = &mut list["items"];
    let names: Vec<_> = reserved().map(|name| format!("'{name}'")).collect();
    let reserved = format!("!(self.name in [{}])", names.join(", "));
    add_rule(agent, rule(reserved, "name must not be that of a language, \"agent\", \"true\" or \"false\""));
    add_rule(agent, pod::claim_or_limit());
    let members = &mut agent["properties"];
    set(members, "name", json!({"minLength": 1, "maxLength": LONGEST_NAME, "pattern": AGENT_NAME}));
    set(members, "image", json!({"minLength": 1, "pattern": IMAGE}));
    for path in ["directory", "mountPath"] {
        set(members, path, json!({"minLength": 1, "maxLength": LONGEST_PATH, "pattern": FOLDER}));
    }
    pod::resources(&mut members["resourceRequirements"]);
    pod::claim(&mut members["volumeClaimTemplate"]);
    variables(&mut members["env"]);
}

fn variables(list: &mut Value) {
    keyed_by_name(list, 64, &["name", "value"]);
    let variable = &mut list["items"];
    let members = &mut variable["properties"];
    set(members, "name", json!({"minLength": 1, "maxLength": 256, "pattern": VARIABLE}));
    set(members, "value", json!({"maxLength": 4096}));
    set(members, "separator", json!({"maxLength": 16}));
    // A rule takes a null of a field that may be null for a value. Of others the API server drops it.
    members["separator"].as_object_mut().expect("a member of the schema").shift_remove("nullable");
    let is_extended = "(has(self.mode) && self.mode in ['append', 'prepend'])";
    add_rule(
        variable,
        rule(
            format!("has(self.separator) == {is_extended}"),
            "separator must be set for the modes append and prepend, and for no other",
        ),
    );
    add_rule(
        variable,
        rule(
            format!("self.name != 'OTEL_RESOURCE_ATTRIBUTES' || !{is_extended}"),
            "OTEL_RESOURCE_ATTRIBUTES is extended by injection; use spec.resource.resourceAttributes",
        ),
    );
}

/// A bounded list with a unique name in each item.
fn keyed_by_name(list: &mut Value, most: usize, required: &[&str]) {
    let node = list.as_object_mut().expect("a list of the schema");
    node.insert("maxItems".into(), json!(most));
    node.insert("x-kubernetes-list-type".into(), json!("map"));
    node.insert("x-kubernetes-list-map-keys".into(), json!(["name"]));
    list["items"]["required"] = json!(required);
    for member in required {
        // In the types they have a default, so that one agent without a field does not make the whole resource unreadable.
        let member = list["items"]["properties"][member].as_object_mut().expect("a member of the schema");
        member.shift_remove("default");
    }
}
