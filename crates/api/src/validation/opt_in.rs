//! Opt-in by the Instrumentation: what it injects into, and where it may.

use serde_json::Value;

use super::{
    selector, text,
    text::Path,
    verdict::{Cause, Verdict},
};

/// Checks what a specification opts in.
pub fn check(verdict: &mut Verdict, path: Path<'_>, spec: &Value) {
    let (languages, namespaces) = (languages(spec), &spec["namespaceSelector"]);
    selector::check(verdict, path.member("namespaceSelector"), namespaces);
    if !languages.is_empty() && spec["selector"].is_null() {
        let message = "is not set; spec.inject requires it, so that it is clear which pods are injected; set \
                       spec.selector: {} for all pods";
        verdict.reject(Cause::Required, path.member("selector"), message);
    }
    if languages.is_empty() && !namespaces.is_null() {
        let message =
            "has no effect without spec.inject; set the languages to inject, such as [java], or remove it";
        verdict.reject(Cause::Invalid, path.member("namespaceSelector"), message);
    }
    if languages.len() > 1 {
        let message = format!(
            "opts pods in to several languages ({}); only pods that list the containers of each are injected; use \
             an Instrumentation for each language, with its own spec.selector",
            text::list(languages)
        );
        verdict.warn("several-languages", path.member("inject"), message);
    }
}

/// Checks that an Instrumentation may select pods of other namespaces: only those in the namespace of the default
/// Instrumentation may. `default` is that namespace.
pub fn check_namespaces(verdict: &mut Verdict, object: &Value, namespace: &str, default: Option<&str>) {
    if object["spec"]["namespaceSelector"].is_null() || default == Some(namespace) {
        return;
    }
    let place = match default {
        Some(default) => format!("namespace {}", text::quoted(default)),
        None => "this installation has none".to_owned(),
    };
    let message = format!(
        "selects pods of other namespaces, which is allowed only in the namespace of --default-instrumentation \
         ({place}); remove it to inject into pods of namespace {}",
        text::quoted(namespace)
    );
    verdict.reject(Cause::Invalid, "spec.namespaceSelector", message);
}

/// The languages that a specification opts in to, each once.
fn languages(spec: &Value) -> Vec<&str> {
    let mut languages = Vec::new();
    for language in spec["inject"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !languages.contains(&language) {
            languages.push(language);
        }
    }
    languages
}
