//! Security contexts of injected containers: what the API server refuses in a
//! pod and the schema cannot say.

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
        let message = "\"Unmasked\" needs a pod with hostUsers false, which few are; valid: Default";
        verdict.refuse(Cause::Invalid, field.member("procMount"), message);
    }
    if !is_hollow(&context["windowsOptions"]) {
        let message = "is set; agents come in Linux images only, and a pod for Linux must not have it";
        verdict.refuse(Cause::Invalid, field.member("windowsOptions"), message);
    }
}

/// The kernel lets a privileged process gain privileges in any case, so both at once mean nothing.
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
        let message = format!("false cannot stand beside {gains}; valid: one of the two");
        verdict.refuse(Cause::Invalid, field.member("allowPrivilegeEscalation"), message);
    }
}

fn check_profile(verdict: &mut Verdict, field: Path<'_>, profile: &Value) {
    let field = field.member("localhostProfile");
    let is_local = profile["type"] == "Localhost";
    match profile["localhostProfile"].as_str() {
        None if is_local => {
            verdict.refuse(Cause::Required, field, "is missing; the type Localhost needs it");
        }
        Some(name) if !is_local => {
            let shown = text::quoted(name);
            let message =
                format!("{shown} cannot be set beside that type; valid: with the type Localhost only");
            verdict.refuse(Cause::Invalid, field, message);
        }
        Some(name) if !is_below(name) => {
            let message = format!(
                "{} is not a profile of the node; valid: a name or a path below the kubelet's folder of profiles",
                text::quoted(name)
            );
            verdict.refuse(Cause::Invalid, field, message);
        }
        _ => {}
    }
}

/// Whether a path stays below the folder that it begins in.
fn is_below(path: &str) -> bool {
    !path.is_empty()
        && path.trim() == path
        && !path.starts_with('/')
        && path.split('/').all(|part| part != "..")
}
