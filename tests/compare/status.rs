//! Pods without what may differ between versions.

use otel_webhook_inject::{MESSAGE, STATUS, language::LANGUAGES};
use serde_json::Value;

/// What the status annotation has for people, or by its own way.
const MAY_DIFFER: [&str; 5] = ["hash", "image", "message", "notes", "warnings"];

/// Codes of reasons that were renamed on purpose (CHANGELOG.md): the old one, and the present one.
const RENAMED: [(&str, &str); 1] = [("NamespaceSteppedBack", "NamespaceLanguageIgnored")];

/// A document without the annotation with sentences, without the texts and the hash of its status annotation, and
/// without the resources of added init containers, which have been the target's since docs/adr/0018.
pub fn comparable(mut document: Value) -> Value {
    for spec in ["/spec", "/spec/template/spec"] {
        let containers = document.pointer_mut(spec).and_then(|spec| spec.get_mut("initContainers"));
        for container in containers.and_then(Value::as_array_mut).into_iter().flatten() {
            let name = container["name"].as_str().unwrap_or_default();
            let mut marks = LANGUAGES.iter().flat_map(|language| language.marks);
            if marks.any(|mark| mark.is(true, name)) {
                container.as_object_mut().expect("a container").remove("resources");
            }
        }
    }
    for metadata in ["/metadata", "/spec/template/metadata"] {
        let annotations = document.pointer_mut(metadata).and_then(|metadata| metadata.get_mut("annotations"));
        let Some(annotations) = annotations.and_then(Value::as_object_mut) else { continue };
        annotations.remove(MESSAGE);
        let Some(status) = annotations.get_mut(STATUS) else { continue };
        let mut entries: Vec<Value> =
            status.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
            entry.retain(|name, _| !MAY_DIFFER.contains(&name.as_str()));
            let renamed =
                RENAMED.iter().find(|(old, _)| entry.get("outcome").is_some_and(|code| code == old));
            if let Some((_, present)) = renamed {
                entry.insert("outcome".to_owned(), (*present).into());
            }
        }
        *status = entries.into();
    }
    document
}
