//! Lists of environment variables.

use serde_json::Value;

use super::{
    secret, source, text,
    text::Path,
    verdict::{Cause, Verdict},
};
use crate::values::is_directive_name;

/// Variables that injection extends.
const EXTENDED: [&str; 7] = [
    "JAVA_TOOL_OPTIONS",
    "NODE_OPTIONS",
    "PYTHONPATH",
    "DOTNET_STARTUP_HOOKS",
    "DOTNET_ADDITIONAL_DEPS",
    "DOTNET_SHARED_STORE",
    "LD_LIBRARY_PATH",
];

/// Checks the variables of targets.
pub fn check(verdict: &mut Verdict, field: Path<'_>, list: &Value) {
    each(list, |index, name, variable| {
        let field = field.item(index);
        check_one(verdict, field, name, variable);
        if EXTENDED.contains(&name) {
            let message = format!(
                "{name} is extended by injection; containers that set it themselves ignore this value"
            );
            verdict.warn("extended-variable", field, message);
        }
    });
}

/// Checks the directives of a web server's module, which have the form of variables.
pub fn check_attrs(verdict: &mut Verdict, field: Path<'_>, list: &Value) {
    each(list, |index, name, variable| {
        let field = field.item(index);
        check_one(verdict, field, name, variable);
        if !name.is_empty() && !is_directive_name(name) {
            let message = format!(
                "{} is not the name of a directive; valid: letters, digits and _",
                text::quoted(name)
            );
            verdict.reject(Cause::Invalid, field.member("name"), message);
        }
        if variable["value"].as_str().is_some_and(|value| value.contains(char::is_control)) {
            let message =
                "has a control character, which could begin another directive; valid: one line of text";
            verdict.reject(Cause::Invalid, field.member("value"), message);
        }
    });
}

fn each(list: &Value, mut visit: impl FnMut(usize, &str, &Value)) {
    for (index, variable) in list.as_array().into_iter().flatten().enumerate() {
        visit(index, variable["name"].as_str().unwrap_or_default(), variable);
    }
}

fn check_one(verdict: &mut Verdict, field: Path<'_>, name: &str, variable: &Value) {
    let value = variable["value"].as_str().unwrap_or_default();
    source::check(verdict, field.member("valueFrom"), &variable["valueFrom"], !value.is_empty());
    if secret::is_credential(name, value) {
        let shown = text::quoted(name);
        let message = format!(
            "the value of {shown} looks like a credential, which everyone with read access to Instrumentations or pods can see; \
             take it from a Secret by valueFrom"
        );
        verdict.warn("plain-credential", field, message);
    }
}
