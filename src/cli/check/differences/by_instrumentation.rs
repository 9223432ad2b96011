//! Differences that are derived from the Instrumentation that is used, or from the existing ones.

use super::seen::{Seen, entries};
use otel_webhook_api::{RESOURCE_PREFIX, defaults::Decoding};
use otel_webhook_inject::{
    Note,
    attribute_value::{is_encoded, is_key},
    language::LANGUAGES,
};

/// D9: the operator expects exactly one, and has no selectors and priorities.
pub fn chosen_among_several(seen: &Seen<'_>) -> bool {
    let namespace = seen.case.around.namespace;
    let count = seen.case.instrumentations.keys().filter(|(own, _)| own == namespace).count();
    let is_any = |key: &str| {
        let mut said = seen.annotation(key).into_iter().flatten().filter(|value| !value.is_empty());
        let is_true = |value: &str| value.eq_ignore_ascii_case("true");
        said.next().is_some_and(is_true) && said.all(is_true)
    };
    let asks = |name: &str| LANGUAGES.iter().any(|language| language.name == name && is_any(language.inject));
    let found = seen.injected().any(|(finding, _)| asks(finding.language));
    count > 1 && found || count == 1 && seen.has("NoneSelectsPod")
}

/// D14: it sets a variable that the language extends.
pub fn sets_what_is_extended(seen: &Seen<'_>) -> bool {
    seen.used().any(|(object, language)| {
        let field = language.defaults.map_or("", |defaults| defaults.field);
        let [common, own] = [&object["spec"]["env"], &object["spec"][field]["env"]];
        language.extended.iter().any(|name| {
            let from = |list| entries(list, name).any(|entry| entry["valueFrom"].is_object());
            let is_path = ["PYTHONPATH", "LD_LIBRARY_PATH"].contains(name);
            let is_set = |list| entries(list, name).next().is_some();
            from(own) || !is_set(own) && (from(common) || is_path && is_set(common))
        })
    })
}

/// D28: the stored default image is replaced by the current one.
pub fn image_follows_default(seen: &Seen<'_>) -> bool {
    let is_replaced = |note: &Note| matches!(note, Note::Image(choice) if choice.is_replaced());
    seen.findings().iter().flat_map(|finding| &finding.notes).any(is_replaced)
}

/// D34: values of resource attributes are encoded, and keys that cannot be written skipped.
pub fn attribute_encoded(seen: &Seen<'_>) -> bool {
    let annotations = seen.case.pod["metadata"]["annotations"].as_object();
    let annotated = annotations.into_iter().flatten();
    let annotated: Vec<_> = annotated
        .filter_map(|(key, value)| Some((key.strip_prefix(RESOURCE_PREFIX)?, value.as_str()?)))
        .filter(|(key, _)| *key != "service.name")
        .collect();
    seen.used().any(|(object, language)| {
        let decodes = language.defaults.is_none_or(|defaults| defaults.decoding != Decoding::Never);
        let of_resource = object["spec"]["resource"]["resourceAttributes"].as_object().into_iter().flatten();
        let of_resource = of_resource.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
        let mut all = of_resource.chain(annotated.iter().copied());
        all.any(|(key, value)| !is_key(key) || decodes && is_encoded(value))
    })
}
