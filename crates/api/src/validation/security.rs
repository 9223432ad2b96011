//! Security contexts of injected containers: what the API server rejects in a
//! pod and the schema cannot express.

use serde_json::Value;

use super::{
    path::Path,
    text,
    verdict::{Cause, Verdict},
};
use crate::raw::is_hollow;

/// Checks a security context.
pub fn check(verdict: &mut Verdict, field: Path<'_>, context: &Value) {
    check_escalation(verdict, field, context);
    for profile in ["appArmorProfile", "seccompProfile"] {
        check_profile(verdict, field.member(profile), &context[profile]);
    }
    if context["procMount"] == "Unmasked" {
        let message = "\"Unmasked\" requires hostUsers: false of the pod; valid: Default";
        verdict.reject(Cause::Invalid, field.member("procMount"), message);
    }
    if !is_hollow(&context["windowsOptions"]) {
        let message = "is set; agents have images for Linux only, and pods for Linux must not set it";
        verdict.reject(Cause::Invalid, field.member("windowsOptions"), message);
    }
}

/// A privileged process can always gain privileges, so the API server rejects both together.
fn check_escalation(verdict: &mut Verdict, field: Path<'_>, context: &Value) {
    let added = context["capabilities"]["add"].as_array().into_iter().flatten();
    let gains = if context["privileged"] == true {
        "privileged"
    } else if added.into_iter().any(|capability| capability == "CAP_SYS_ADMIN") {
        "the capability CAP_SYS_ADMIN"
    } else {
        return;
    };
    if context["allowPrivilegeEscalation"] == false {
        let message = format!("false cannot be set together with {gains}; valid: one of the two");
        verdict.reject(Cause::Invalid, field.member("allowPrivilegeEscalation"), message);
    }
}

fn check_profile(verdict: &mut Verdict, field: Path<'_>, profile: &Value) {
    let field = field.member("localhostProfile");
    let is_local = profile["type"] == "Localhost";
    match profile["localhostProfile"].as_str() {
        None if is_local => {
            verdict.reject(Cause::Required, field, "is missing; the type Localhost requires it");
        }
        Some(name) if !is_local => {
            let shown = text::quoted(name);
            let message =
                format!("{shown} cannot be set with this type; valid: with the type Localhost only");
            verdict.reject(Cause::Invalid, field, message);
        }
        Some(name) if !is_below(name) => {
            let message = format!(
                "{} is not the path of a profile; valid: a path relative to the kubelet's folder of profiles",
                text::quoted(name)
            );
            verdict.reject(Cause::Invalid, field, message);
        }
        _ => {}
    }
}

/// Whether a relative path stays below its folder.
fn is_below(path: &str) -> bool {
    !path.is_empty()
        && path.trim() == path
        && !path.starts_with('/')
        && path.split('/').all(|part| part != "..")
}
