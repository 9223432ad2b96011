//! Security contexts of injected containers: what the API server rejects in a
//! pod and the schema cannot express.

use std::fmt;

use serde_json::Value;

use super::{
    text,
    text::Path,
    verdict::{Cause, Verdict},
};
use crate::values::is_hollow;

/// A field that gives a container more privileges than it has by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privilege {
    /// The path of the field in the security context.
    pub field: &'static str,
    /// Its value.
    pub value: String,
}

impl fmt::Display for Privilege {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.value)
    }
}

/// The fields of a security context that give more privileges. Copying an agent needs none of them.
pub fn privileges(context: &Value) -> Vec<Privilege> {
    let given = |field: &'static str, is_given: bool, value: &str| {
        is_given.then(|| Privilege { field, value: value.to_owned() })
    };
    let added = context["capabilities"]["add"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let added = text::list(added);
    [
        given("privileged", context["privileged"] == true, "true"),
        given("runAsUser", context["runAsUser"] == 0, "0"),
        given("allowPrivilegeEscalation", context["allowPrivilegeEscalation"] == true, "true"),
        given("capabilities.add", !added.is_empty(), &text::shortened(&added)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Warns about a security context of init containers that gives more privileges.
pub fn warn_of_privileges(verdict: &mut Verdict, field: Path<'_>, context: &Value) {
    for privilege in privileges(context) {
        let message = format!(
            "{} gives the init containers of every pod that uses this Instrumentation more privileges than copying \
             an agent needs; remove it (--init-containers-privileged=deny skips such pods)",
            privilege.value
        );
        let field = format!("{field}.{}", privilege.field);
        verdict.warn("privileged-init-containers", field, message);
    }
}

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
