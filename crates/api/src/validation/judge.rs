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
    conversion::{CONVERSION_ANNOTATION, has_foreign_note, in_version, version_of},
    crd, declarative as declarative_config,
    defaults::LANGUAGES,
    read::beta,
    values::is_hollow,
    version::Version,
};

/// Checks an object of any version, before or after defaulting.
pub fn judge(object: &Value) -> Verdict {
    let mut verdict = judge_alpha(&in_version(object, Version::V1alpha1), beta(object).as_deref());
    if version_of(object) == Ok(Version::V1beta1) {
        verdict = verdict.in_version(Version::V1beta1);
        judge_beta(&mut verdict, &object["spec"]);
    }
    if has_foreign_note(object) {
        let field = format!("metadata.annotations[{CONVERSION_ANNOTATION}]");
        verdict.warn("conversion-annotation", field, "is not of a conversion and is ignored; remove it");
    }
    verdict
}

/// Adds what only the schema of v1beta1 and its own fields are checked for.
fn judge_beta(verdict: &mut Verdict, spec: &Value) {
    let (path, config) = (Path::Root("spec"), Path::Root("spec.envConfig"));
    let mut own = Verdict::default();
    if !spec.is_null() {
        schema::check(&mut own, path, crd::schema::spec_in(Version::V1beta1), spec);
    }
    let env = &spec["envConfig"]["env"];
    variables::check(&mut own, config.member("env"), env);
    if spec[declarative_config::FIELD].is_object() && !is_hollow(env) {
        own.reject_settled(
            config.member("env"),
            "cannot be set together with spec.declarativeConfig; use spec.env",
        );
    }
    for language in LANGUAGES {
        let part = &spec[language.field];
        if part.is_object() && part["image"].as_str().is_none_or(str::is_empty) {
            let message =
                "is not set: a default image is used, but the operator requires one to inject the language";
            own.warn(
                format!("image-required:{}", language.language),
                path.member(language.field).member("image"),
                message,
            );
        }
    }
    // The names of fields are those of v1beta1.
    verdict.warnings.retain(|warning| warning.kind != "unknown-field");
    own.errors.retain(|error| {
        !verdict.errors.iter().any(|known| (&known.field, &known.message) == (&error.field, &error.message))
    });
    own.warnings.retain(|warning| !verdict.warnings.contains(warning));
    verdict.errors.extend(own.errors);
    verdict.warnings.extend(own.warnings);
}

/// Checks an object of v1alpha1; `beta` is the same as v1beta1, if it has anything that only that version has.
fn judge_alpha(object: &Value, beta: Option<&Value>) -> Verdict {
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
    exporter::check(&mut verdict, object, beta.unwrap_or(&Value::Null));
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
