//! All checks of one object.

use serde_json::Value;

use super::{
    agents, declarative, exporter, language, opt_in, sampler, schema, security, selector, text,
    text::Path,
    variables,
    verdict::{Cause, Verdict},
};
use crate::{
    agent::AGENTS_FIELD,
    annotations::{self, ALLOWED_NAMESPACES, PAUSED_ANNOTATION},
    crd,
};

/// Checks an object, before or after defaulting.
pub fn judge(object: &Value) -> Verdict {
    let mut verdict = Verdict::default();
    check_name(&mut verdict, &object["metadata"]);
    check_allowed(&mut verdict, &object["metadata"]["annotations"][ALLOWED_NAMESPACES]);
    check_paused(&mut verdict, &object["metadata"]["annotations"][PAUSED_ANNOTATION]);
    let (path, spec) = (Path::Root("spec"), &object["spec"]);
    if !spec.is_null() {
        schema::check(&mut verdict, path, crd::schema::spec(), spec);
    }
    let context = "initContainerSecurityContext";
    security::check(&mut verdict, path.member(context), &spec[context]);
    security::warn_of_privileges(&mut verdict, path.member(context), &spec[context]);
    sampler::check(&mut verdict, &spec["sampler"]);
    selector::check(&mut verdict, path.member("selector"), &spec["selector"]);
    opt_in::check(&mut verdict, path, spec);
    declarative::check(&mut verdict, path, spec);
    exporter::check(&mut verdict, object);
    variables::check(&mut verdict, path.member("env"), &spec["env"]);
    language::check(&mut verdict, path, spec);
    agents::check(&mut verdict, path.member(AGENTS_FIELD), &spec[AGENTS_FIELD]);
    verdict
}

/// The API server checks names before any webhook; files were not checked.
fn check_name(verdict: &mut Verdict, metadata: &Value) {
    let is_given = |field: &str| metadata[field].as_str().is_some_and(|name| !name.is_empty());
    if !is_given("name") && !is_given("generateName") {
        verdict.reject(Cause::Required, "metadata.name", "is missing; every object needs a name");
    } else if let Some(name) = metadata["name"].as_str()
        && !text::is_dns_name(name)
        && !name.is_empty()
    {
        let shown = text::quoted(name);
        let message = format!("{shown} is not a name; valid: lower-case letters, digits, - and .");
        verdict.reject(Cause::Invalid, "metadata.name", message);
    }
}

/// A value that is not clear pauses nothing, which may not be what was meant.
fn check_paused(verdict: &mut Verdict, annotation: &Value) {
    if let Some(value) = annotation.as_str().filter(|value| annotations::is_unclear(value)) {
        let message =
            format!("is {}, which pauses nothing; {}", text::quoted(value), annotations::UNCLEAR_REMEDY);
        verdict.warn("paused-unclear", format!("metadata.annotations[{PAUSED_ANNOTATION}]"), message);
    }
}

/// An entry that is not the name of a namespace allows none, which is safe, but probably a mistake.
fn check_allowed(verdict: &mut Verdict, annotation: &Value) {
    for entry in annotations::malformed(annotation.as_str().unwrap_or_default()) {
        let message = format!(
            "{} is not the name of a namespace, so it allows none; valid: a comma-separated list of namespaces \
             (lower-case letters, digits and -, at most 63 characters each), or \"*\" for all",
            text::quoted(entry)
        );
        let field = format!("metadata.annotations[{ALLOWED_NAMESPACES}]");
        verdict.warn("allowed-namespaces", field, message);
    }
}
