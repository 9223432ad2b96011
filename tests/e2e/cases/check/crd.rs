//! A CRD that is not ours, as `otel-webhook check` finds it.

use otel_webhook_testkit::cluster::control_plane::ControlPlane;
use serde_json::{Value, json};

use super::until_found;
use crate::registration;

/// One that drops fields, and goes with the release of the operator.
pub fn older(plane: &ControlPlane) {
    let mut old: Value = serde_saphyr::from_str(registration::CRD).expect("YAML");
    let spec = old.pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/spec").expect("a schema");
    let fields = spec["properties"].as_object_mut().expect("fields");
    fields.retain(|name, _| name != "selector" && name != "priority");
    // Its rules need the fields.
    spec.as_object_mut().expect("an object").remove("x-kubernetes-validations");
    old["metadata"]["annotations"] = json!({"meta.helm.sh/release-name": "operator",
        "meta.helm.sh/release-namespace": "observability"});
    registration::apply(plane, &old.to_string());
    let said = until_found(plane, "CrdPrunesFields", 0);
    assert!(said.contains("drops these fields: spec.priority, spec.selector"), "{said}");
    assert!(until_found(plane, "CrdGoesWithRelease", 0).contains("the Helm release observability/operator"));
}
