//! Claims of ephemeral volumes: what the API server rejects in a pod and the
//! schema cannot express.

use serde_json::Value;

use super::{
    selector, text,
    text::Path,
    verdict::{Cause, Verdict},
};
use crate::{quantity::Quantity, values::is_hollow};

/// Checks a claim template. An empty one is treated as not set.
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

/// A template has no name: the claim is named after the pod and the volume.
fn check_metadata(verdict: &mut Verdict, field: Path<'_>, metadata: &Value) {
    for (name, value) in metadata.as_object().into_iter().flatten() {
        if !["annotations", "labels"].contains(&&**name) && !is_hollow(value) {
            let message = "cannot be set in a claim template; valid: labels and annotations";
            verdict.reject(Cause::Invalid, field.member(name), message);
        }
    }
    for (map, is_lower) in [("annotations", true), ("labels", false)] {
        for key in metadata[map].as_object().into_iter().flatten().map(|(key, _)| key) {
            // The domain of an annotation key may have upper-case letters.
            let name = if is_lower { key.to_lowercase() } else { key.clone() };
            if !text::is_qualified(&name) {
                let shown = text::quoted(key);
                let message = format!("{shown} is not a name; valid: such as \"example.com/team\"");
                verdict.reject(Cause::Invalid, format!("{field}.{map}"), message);
            }
        }
    }
}

fn check_modes(verdict: &mut Verdict, field: Path<'_>, spec: &Value) {
    let modes = spec["accessModes"].as_array().map_or(&[][..], Vec::as_slice);
    if modes.is_empty() {
        let message = "is not set; the API server rejects pods with such a claim; valid: [ReadWriteOnce]";
        verdict.reject(Cause::Required, format!("{field}.accessModes"), message);
    }
    if modes.len() > 1 && modes.iter().any(|mode| mode == "ReadWriteOncePod") {
        let message = "has ReadWriteOncePod and other modes; valid: ReadWriteOncePod only";
        verdict.reject(Cause::Invalid, format!("{field}.accessModes"), message);
    }
    if spec["volumeMode"] == "Block" {
        let message = "\"Block\" has no file system to copy an agent into; valid: Filesystem";
        verdict.reject(Cause::Invalid, format!("{field}.volumeMode"), message);
    }
}

fn check_size(verdict: &mut Verdict, field: Path<'_>, spec: &Value) {
    let field = || format!("{field}.resources.requests.storage");
    let size = &spec["resources"]["requests"]["storage"];
    if size.is_null() {
        let message = "is not set; the API server rejects pods with such a claim; valid: such as 1Gi";
        verdict.reject(Cause::Required, field(), message);
    } else if Quantity::of(size).is_some_and(Quantity::is_zero) {
        let message = format!("{} is not a size; valid: more than 0, such as 1Gi", text::shown(size));
        verdict.reject(Cause::Invalid, field(), message);
    }
}

/// The source of the volume's content: two fields that have to be equal.
fn check_sources(verdict: &mut Verdict, field: Path<'_>, spec: &Value) {
    for name in ["dataSource", "dataSourceRef"] {
        let source = &spec[name];
        let is_core = source["apiGroup"].as_str().is_none_or(str::is_empty);
        if is_core && source["kind"].as_str().is_some_and(|kind| kind != "PersistentVolumeClaim") {
            let message = "is missing; only the kind PersistentVolumeClaim has no API group";
            verdict.reject(Cause::Required, format!("{field}.{name}.apiGroup"), message);
        }
    }
    let (one, other) = (&spec["dataSource"], &spec["dataSourceRef"]);
    if one.is_null() || other.is_null() {
        return;
    }
    let differ = ["apiGroup", "kind", "name"].iter().any(|member| one[member] != other[member]);
    if differ || other["namespace"].as_str().is_some_and(|namespace| !namespace.is_empty()) {
        let message = "differs from dataSourceRef; valid: one of the two";
        verdict.reject(Cause::Invalid, format!("{field}.dataSource"), message);
    }
}
