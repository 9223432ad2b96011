//! The annotation `otel-webhook/status`, field by field.

use otel_webhook_inject::{LABEL, MESSAGE, STATUS};
use regex::Regex;

use super::{beginning, code, prose, source, table};

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
        "\n## {MESSAGE}\n\nSentences about what was not injected and about warnings, absent if nothing is amiss.\n"
    );
    text
}

/// Words of the comments that have a page of their own.
const LINKS: [(&str, &str); 2] =
    [("Reason code", "[Reason code](reasons.md#reasons)"), ("the notes", "the [notes](reasons.md#notes)")];

fn fields() -> Vec<[String; 3]> {
    let text = source::text("crates/inject/src/stamp.rs");
    let (_, entry) = text.split_once("struct Entry<'f> {").expect("the entry");
    let entry = entry.split_once("\n}").expect("its end").0;
    let field =
        Regex::new(r"(?m)((?:^ +///.*\n)*)((?:^ +#\[.*\n)*)^ +pub ([a-z_]+): (.+),$").expect("an expression");
    let renamed = Regex::new("rename = \"([a-zA-Z]+)\"").expect("an expression");
    let row = |found: regex::Captures<'_>| {
        let name = renamed.captures(&found[2]).map_or_else(|| found[3].to_owned(), |name| name[1].to_owned());
        let comment = found[1].replace("///", "").replace("[`MESSAGE`]", &code(MESSAGE));
        let meaning = LINKS.iter().fold(prose(&comment), |text, (words, link)| text.replace(words, link));
        assert!(!meaning.is_empty(), "the field {name} of the stamp has no meaning");
        let kind = match &found[4] {
            kind if kind.starts_with("Vec<") => "array of strings",
            kind if kind.contains("i64") || kind.contains("usize") => "number",
            _ => "string",
        };
        [code(name), kind.to_owned(), meaning]
    };
    field.captures_iter(entry).map(row).collect()
}
