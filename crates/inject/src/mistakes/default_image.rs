//! Mistakes in the default images of a namespace (D39).

use super::fault::Fault;
use crate::{image, shown::shown};
use otel_webhook_api::defaults::LANGUAGES;

/// What is wrong with the annotation for a language: the rest of the sentence, and what to do.
pub fn fault(language: &str, value: &str, is_of_namespace: bool) -> Option<(Fault, String, String)> {
    if !is_of_namespace {
        let message = "only has an effect on namespaces".to_owned();
        return Some((Fault::NamespacesOnly, message, "set it on the namespace".to_owned()));
    }
    let names: Vec<_> = LANGUAGES.iter().map(|known| known.language).collect();
    if !names.contains(&language) {
        let message = format!("names no language with an image: \"{}\"", shown(language));
        return Some((Fault::DefaultImageInvalid, message, format!("use one of {}", names.join(", "))));
    }
    let message = || format!("is \"{}\", which is not an image reference and is ignored", shown(value));
    let remedy = || format!("set a reference such as registry.example.com/agents/{language}:1.0");
    (!image::is_reference(value)).then(|| (Fault::DefaultImageInvalid, message(), remedy()))
}
