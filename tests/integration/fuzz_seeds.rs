//! The seeds of the fuzz targets, and what fuzzing has found, on the stable compiler. `make fuzz`
//! searches for more.

use otel_webhook_store::manifest::{Style, read, write};
use otel_webhook_testkit::fuzzed::{TARGETS, documents, seeds};

#[test]
fn seeds_of_the_core_hold() {
    for (name, target) in TARGETS {
        for (path, data) in seeds(name) {
            println!("{path}");
            target(&data);
        }
    }
}

#[test]
fn seeds_of_documents_hold() {
    for (path, data) in seeds("documents") {
        println!("{path}");
        let values = |text: &str| {
            let documents = read(text, "input").ok()?;
            Some(documents.into_iter().map(|document| document.value).collect())
        };
        documents(&data, values, |value| write(value, Style::of("")));
    }
}
