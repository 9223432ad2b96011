//! The annotation `otel-webhook/status`, field by field.

use std::collections::BTreeSet;

use otel_webhook_inject::{LABEL, MESSAGE, STATUS};
use otel_webhook_testkit::{objects::asking, surroundings::with};
use serde_json::json;

use super::{beginning, code, table};

pub fn page() -> String {
    let purpose = format!(
        "What the webhook writes to pods that opted in: the label `{LABEL}`, and the annotations `{STATUS}` and \
         `{MESSAGE}`. `--stamp=false` omits them."
    );
    let mut text = beginning("Schema of the stamp", &purpose);
    text += &format!(
        "\n## {LABEL}\n\n`true` if all languages were injected that the pod opted in to, `partial` if some \
         were, `false` if none was.\n\n## {STATUS}\n\nA JSON array with an object for each language and result, of at \
         most 2,048 bytes: notes, sentences and names of containers are omitted first. A field that has no value is missing.\n\n"
    );
    text += &table(["field", "type", "meaning"], fields());
    text += "\nThe hash begins with the version of its format, as in `v1:`. The same configuration has the same \
             hash in every release.\n";
    text += &format!(
        "\n## {MESSAGE}\n\nSentences about what was not injected and about warnings, absent if there are no problems.\n"
    );
    text
}

/// Name, type and meaning of each field.
const FIELDS: [(&str, &str, &str); 13] = [
    ("language", "string", "Language, such as `java`."),
    ("agent", "string", "Agent of `spec.agents`."),
    ("outcome", "string", "[Reason code](reasons.md#reasons), such as `Injected`."),
    ("instrumentation", "string", "`namespace/name` of the Instrumentation."),
    ("generation", "number", "Generation of the Instrumentation, which counts its changes."),
    ("hash", "string", "Hash of the effective configuration."),
    ("image", "string", "Image of the agent."),
    ("delivery", "string", "How the agent gets into the pod, if not by init containers."),
    ("containers", "array of strings", "Names of the containers with this result, at most 100."),
    ("moreContainers", "number", "The number of containers that are not listed."),
    (
        "message",
        "string",
        "Sentence of the reason, if it is neither an injection nor in `otel-webhook/message`.",
    ),
    ("warnings", "array of strings", "Codes of the warnings; their sentences are in otel-webhook/message."),
    ("notes", "array of strings", "Sentences of the [notes](reasons.md#notes), at most 10."),
];

fn fields() -> impl Iterator<Item = [String; 3]> {
    FIELDS.into_iter().map(|(name, kind, meaning)| [code(name), kind.to_owned(), meaning.to_owned()])
}

#[test]
fn every_field_of_a_stamp_is_in_the_reference() {
    let spec =
        json!({"java": {"image": "own:1"}, "exporter": {"endpoint": "c:4317"}, "delivery": "imageVolume"});
    let mut around = with(spec);
    around.settings.stamp = true;
    let stamped = around.inject(&asking(&["java", "sdk", "nginx"], json!({}))).pod;
    let status = stamped["metadata"]["annotations"][STATUS].as_str().expect("a stamp");
    let entries: Vec<serde_json::Map<_, _>> = serde_json::from_str(status).expect("JSON");
    let found: BTreeSet<_> = entries.iter().flat_map(|entry| entry.keys().map(String::as_str)).collect();
    assert!(found.len() > 7, "{status}");
    let unknown: Vec<_> = found.iter().filter(|name| FIELDS.iter().all(|row| row.0 != **name)).collect();
    assert!(unknown.is_empty(), "{unknown:?} are not in the reference");
}
