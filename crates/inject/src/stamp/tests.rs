//! What the stamp of a pod has.

use serde_json::{Value, json};

use super::*;
use crate::{
    finding::Used,
    reason::{Annotation, ObjectName, Unknown},
    shown::Names,
};

fn finding(language: &'static str, container: Option<&str>, reason: Reason) -> Finding {
    let container = container.map(str::to_owned);
    Finding { language, agent: None, container, instrumentation: None, reason, notes: Vec::new() }
}

#[test]
fn the_label_shows_whether_everything_or_a_part_or_nothing_was_injected() {
    let one = |language, reason| finding(language, Some("app"), reason);
    let ghost =
        || Reason::ContainerNotFound { container: Unknown::One("ghost".to_owned()), known: Names::default() };
    let disabled = || Reason::LanguageDisabled { language: "go" };
    let annotation = Annotation { key: "inject-go", of_namespace: false, is_label: false };
    let off = Reason::SwitchedOff { annotation };
    for (findings, expected) in [
        (vec![one("java", Reason::Injected)], "true"),
        (vec![one("java", Reason::Injected), one("go", off)], "true"),
        (vec![one("java", Reason::Injected), one("sdk", Reason::NothingToAdd)], "true"),
        (vec![one("java", ghost()), one("java", Reason::Injected)], "partial"),
        (vec![one("java", Reason::Injected), one("go", disabled())], "partial"),
        (vec![one("java", ghost()), one("go", disabled())], "false"),
    ] {
        assert_eq!(
            of(&findings, None, &Map::default()).labels,
            [(LABEL, expected.to_owned())],
            "{findings:?}"
        );
    }
}

#[test]
fn the_status_has_all_known_fields_only() {
    let name = ObjectName { namespace: "shop".into(), name: "inst".into() };
    let used = || {
        let (hash, image) = ("00c0ffee".into(), Some("registry/java:1".into()));
        Some(Used { name: name.clone(), generation: Some(7), hash, image })
    };
    let noted = |object: &str| {
        let image = "registry/java:1".to_owned();
        vec![Note::CertificateNotChecked { object: object.to_owned() }, Note::ImageLacksArm64 { image }]
    };
    let java = |container, object| Finding {
        instrumentation: used(),
        notes: noted(object),
        ..finding("java", Some(container), Reason::Injected)
    };
    let refused = Reason::ContainerNotFound {
        container: Unknown::One("\"web\"".to_owned()),
        known: Names::of(["app"]),
    };
    let off = Reason::SwitchedOff {
        annotation: Annotation { key: "inject-go", of_namespace: false, is_label: false },
    };
    let text = status(&[
        java("one", "Secret a"),
        java("two", "Secret a"),
        finding("nodejs", None, refused),
        finding("go", None, off),
    ]);
    let status: Value = serde_json::from_str(&text).expect("JSON");
    let read = parse(&text);
    assert_eq!(json!(read), status, "what is written is read");
    assert_eq!(read.iter().map(Entry::is_injected).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(
        status,
        json!([
            {
                "language": "java",
                "outcome": "Injected",
                "instrumentation": "shop/inst",
                "generation": 7,
                "hash": "00c0ffee",
                "image": "registry/java:1",
                "containers": ["one", "two"],
                "warnings": ["ImageLacksArm64"],
                "notes": ["Secret a is mounted as optional; it was not checked whether it exists"],
            },
            {"language": "nodejs", "outcome": "ContainerNotFound"},
            {
                "language": "go",
                "outcome": "SwitchedOff",
                "message": "opted out by the annotation instrumentation.opentelemetry.io/inject-go of the pod",
            },
        ])
    );
}

#[test]
fn what_this_webhook_does_not_write_is_no_stamp_and_what_it_may_write_later_is_skipped() {
    for text in ["", "no JSON", "{}", r#"[{"language": 1}]"#] {
        assert_eq!(parse(text), [], "{text}");
    }
    let read = parse(r#"[{"language": "java", "outcome": "Injected", "later": {"a": 1}}]"#);
    assert_eq!((read.len(), &*read[0].language, read[0].is_injected()), (1, "java", true));
}
