//! Claims of ephemeral volumes: what the API server refuses in a pod and the
//! schema cannot say.

use serde_json::Value;

use super::{
    path::Path,
    selector, text,
    verdict::{Cause, Verdict},
};
use crate::{quantity::Quantity, raw::is_hollow};

/// Checks a claim template. One that says nothing counts as none.
pub fn check(verdict: &mut Verdict, field: Path<'_>, claim: &Value) {
    if is_hollow(claim) || !claim.is_object() {
        return;
    }
    check_metadata(verdict, field.member("metadata"), &claim["metadata"]);
    let (field, spec) = (field.member("spec"), &claim["spec"]);
    check_modes(verdict, field, spec);
    check_size(verdict, field, spec);
    selector::check(verdict, field.member("selector"), &spec["selector"]);
    check_sources(verdict, field, spec);
}

/// A template has no name: the claim is called after the pod and the volume.
fn check_metadata(verdict: &mut Verdict, field: Path<'_>, metadata: &Value) {
    for (name, value) in metadata.as_object().into_iter().flatten() {
        if !["annotations", "labels"].contains(&&**name) && !is_hollow(value) {
            let message = "cannot be set in a claim template; valid: labels and annotations";
            verdict.refuse(Cause::Invalid, field.member(name), message);
        }
    }
    for (map, is_lower) in [("annotations", true), ("labels", false)] {
        for key in metadata[map].as_object().into_iter().flatten().map(|(key, _)| key) {
            // Names of annotations may have capitals in their domain.
            let name = if is_lower { key.to_lowercase() } else { key.clone() };
            if !text::is_qualified(&name) {
                let shown = text::quoted(key);
                let message = format!("{shown} is not a name; valid: such as \"example.com/team\"");
                verdict.refuse(Cause::Invalid, format!("{field}.{map}"), message);
            }
        }
    }
}

fn check_modes(verdict: &mut Verdict, field: Path<'_>, spec: &Value) {
    let modes = spec["accessModes"].as_array().map_or(&[][..], Vec::as_slice);
    if modes.is_empty() {
        let message = "is not set; the API server refuses pods with such a claim; valid: [ReadWriteOnce]";
        verdict.refuse(Cause::Required, format!("{field}.accessModes"), message);
    }
    if modes.len() > 1 && modes.iter().any(|mode| mode == "ReadWriteOncePod") {
        let message = "has ReadWriteOncePod beside others; valid: ReadWriteOncePod alone";
        verdict.refuse(Cause::Invalid, format!("{field}.accessModes"), message);
    }
    if spec["volumeMode"] == "Block" {
        let message = "\"Block\" has no folder that an agent could be copied into; valid: Filesystem";
        verdict.refuse(Cause::Invalid, format!("{field}.volumeMode"), message);
    }
}

fn check_size(verdict: &mut Verdict, field: Path<'_>, spec: &Value) {
    let field = || format!("{field}.resources.requests.storage");
    let size = &spec["resources"]["requests"]["storage"];
    if size.is_null() {
        let message = "is not set; the API server refuses pods with such a claim; valid: such as 1Gi";
        verdict.refuse(Cause::Required, field(), message);
    } else if Quantity::of(size).is_some_and(Quantity::is_zero) {
        let message = format!("{} is no size; valid: more than 0, such as 1Gi", text::shown(size));
        verdict.refuse(Cause::Invalid, field(), message);
    }
}

/// What the volume is filled from: two fields that have to say the same.
fn check_sources(verdict: &mut Verdict, field: Path<'_>, spec: &Value) {
    for name in ["dataSource", "dataSourceRef"] {
        let source = &spec[name];
        let is_core = source["apiGroup"].as_str().is_none_or(str::is_empty);
        if is_core && source["kind"].as_str().is_some_and(|kind| kind != "PersistentVolumeClaim") {
            let message = "is missing; only a PersistentVolumeClaim has none";
            verdict.refuse(Cause::Required, format!("{field}.{name}.apiGroup"), message);
        }
    }
    let (one, other) = (&spec["dataSource"], &spec["dataSourceRef"]);
    if one.is_null() || other.is_null() {
        return;
    }
    let differ = ["apiGroup", "kind", "name"].iter().any(|member| one[member] != other[member]);
    if differ || other["namespace"].as_str().is_some_and(|namespace| !namespace.is_empty()) {
        let message = "names something else than dataSourceRef; valid: one of the two";
        verdict.refuse(Cause::Invalid, format!("{field}.dataSource"), message);
    }
}
