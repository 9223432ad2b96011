use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn documents(text: &str) -> Vec<Document<'_>> {
    read(text, "x.yaml").unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn message(text: &str) -> String {
    read(text, "x.yaml").err().unwrap_or_else(|| panic!("{text:?} was read")).to_string()
}

/// Number and line of each document that is not blank, and its `a`.
fn found(text: &str) -> Vec<(usize, usize, Value)> {
    let documents = documents(text).into_iter().filter(|document| !document.is_blank());
    documents.map(|document| (document.number, document.line, document.value["a"].clone())).collect()
}

fn object(a: &str) -> String {
    format!("apiVersion: v1\nkind: A\na: {a}\n")
}

/// Returns the value of a document with `a: <text>`.
fn scalar(text: &str) -> Value {
    documents(&object(text))[0].value["a"].clone()
}

#[test]
fn documents_are_separated_by_lines_of_three_dashes() {
    let (one, two) = (object("1"), object("2"));
    for (text, lines) in [
        (format!("{one}---\n{two}"), [1, 5]),
        (format!("---\n{one}---\n{two}"), [2, 6]),
        (format!("# head\n---\n{one}--- # next\n\n{two}---\n"), [3, 8]),
        (format!("{one}...\n---\n{two}...\n"), [1, 6]),
        (format!("%YAML 1.2\n---\n{one}...\n{two}"), [3, 7]),
        (format!("\u{feff}{one}---\r\n{two}"), [1, 5]),
        (format!("{one}---\t\n{two}---   \n# tail\n"), [1, 5]),
        (format!("{}---\r\n{}", one.replace('\n', "\r\n"), two.replace('\n', "\r\n")), [1, 5]),
    ] {
        let expected = vec![(1, lines[0], json!(1)), (2, lines[1], json!(2))];
        assert_eq!(found(&text), expected, "{text:?}");
    }
}

#[test]
fn blank_documents_are_numbered_and_have_no_object() {
    let text = format!("---\n# only a comment\n---\n\n---\nnull\n---\n{}", object("4"));
    assert_eq!(found(&text), [(4, 8, json!(4))]);
    assert!(documents("").is_empty());
    assert!(documents("\n# nothing\n").iter().all(Document::is_blank));
}

#[test]
fn dashes_within_a_document_do_not_split_it() {
    let text = "apiVersion: v1\nkind: A\na: |\n  ---\n  text\nb: ---x\n";
    assert_eq!(found(text), [(1, 1, json!("---\ntext\n"))]);
}

#[test]
fn head_and_text_are_the_unchanged_stream() {
    for text in [
        "# head\n---\n# more\nkind: A\napiVersion: v1 # why\n\n---\n\n--- # c\n{\"kind\":\"A\",\"apiVersion\":\"v1\"}\n \n",
        "{\"kind\":\"A\", \"apiVersion\":\"v1\"}{\"kind\":\"A\",\"apiVersion\":\"v1\"}\n\n{\"kind\":\"A\",\"apiVersion\":\"v1\"}",
        "kind: A\r\napiVersion: v1\r\n...\r\n---\r\n",
    ] {
        let again: String = documents(text).iter().flat_map(|one| [one.head, one.text]).collect();
        assert_eq!(again, text);
    }
}

#[test]
fn documents_that_start_with_a_brace_are_json() {
    let json = |a: u8| format!("{{\"apiVersion\":\"v1\",\n\"kind\":\"A\",\"a\":{a}}}");
    let text = format!("# c\n{}{}\n {}\n---\n--- {}\n# tail\n...\n", json(1), json(2), json(3), json(4));
    let expected = [(1, 2, json!(1)), (2, 3, json!(2)), (3, 5, json!(3)), (5, 8, json!(4))];
    assert_eq!(found(&text), expected);
    assert!(message("{apiVersion: v1, kind: A}").contains("line 1: invalid JSON: key must be a string"));
    // The YAML parser would accept this, or read it differently.
    let escaped = r#"{"apiVersion":"v1","kind":"A","a":"\ud83d\ude00\/	"}"#.replace('\t', "\\t");
    assert_eq!(found(&escaped)[0].2, json!("😀/\t"));
}

#[test]
fn compact_json_keeps_the_text_of_every_value() {
    let text = r#" { "b" : [ 1e3 , 1.0, 9007199254740993, null ] , "a" : "x \" y \\" , "b" : "\u0041  " } "#;
    assert_eq!(compact(text), r#"{"b":[1e3,1.0,9007199254740993,null],"a":"x \" y \\","b":"\u0041  "}"#);
}

#[test]
fn plain_yaml_reads_as_for_kubectl() {
    for (text, value) in [
        ("yes", json!(true)),
        ("Off", json!(false)),
        ("\"yes\"", json!("yes")),
        ("0777", json!(511)),
        ("\"0777\"", json!("0777")),
        ("1_000", json!(1000)),
        ("1.0", json!(1.0)),
        ("'1.0'", json!("1.0")),
        ("1e3", json!(1000.0)),
        ("1:30", json!("1:30")),
        ("2026-08-01", json!("2026-08-01")),
        ("~", Value::Null),
        ("9007199254740993", json!(9_007_199_254_740_993_u64)),
        ("!!str 5", json!("5")),
        ("500m", json!("500m")),
        ("{b: [1, {c: d}]}", json!({"b": [1, {"c": "d"}]})),
    ] {
        assert_eq!(scalar(text), value, "{text}");
    }
}

#[test]
fn anchors_aliases_and_merge_keys_work() {
    let text = "apiVersion: v1\nkind: A\nbase: &base {x: 1, y: 2}\na: {<<: *base, y: 3}\nb: *base\n";
    let value = &documents(text)[0].value;
    assert_eq!(value["a"], json!({"x": 1, "y": 3}));
    assert_eq!(value["b"], json!({"x": 1, "y": 2}));
}

#[test]
fn a_failure_names_document_line_and_what_is_wrong() {
    let first = object("1");
    for (text, expected) in [
        ("a: [1".to_owned(), "x.yaml: document 1, line 1: invalid YAML: unclosed bracket '['"),
        (
            format!("{first}---\nkind: A\nkind: B\n"),
            "x.yaml: document 2, line 6: invalid YAML: duplicate key \"kind\" in an object",
        ),
        (format!("{first}---\nx: *no\n"), "x.yaml: document 2, line 5: invalid YAML: alias references"),
        ("%YAML 1.2\n---\nx: *no\n".to_owned(), "x.yaml: document 1, line 3: invalid YAML: alias references"),
        (
            format!("{first}---\n{{\"kind\": \"A\",\n \"b\""),
            "x.yaml: document 2, line 6: invalid JSON: EOF while parsing an object (column 4)",
        ),
        (
            "- a\n".to_owned(),
            "x.yaml: document 1, line 1: expected a Kubernetes object with apiVersion and kind, found a list",
        ),
        (
            "[]".to_owned(),
            "x.yaml: document 1, line 1: expected a Kubernetes object with apiVersion and kind, found a list",
        ),
        (
            format!("{first}---\n\nkind: A\n"),
            "x.yaml: document 2, line 6: the document has no \"apiVersion\"; every object needs",
        ),
        (
            "apiVersion: v1\nkind: 3\n".to_owned(),
            "x.yaml: document 1, line 1: the document has no \"kind\" of type string (found 3); every object",
        ),
        (
            "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1}]\n".to_owned(),
            "x.yaml: document 1, line 1: the document: items[0] has no \"kind\"; every object",
        ),
        (
            "apiVersion: opentelemetry.io/v1\nkind: Instrumentation\n".to_owned(),
            "x.yaml: document 1, line 1: apiVersion of the document: \"opentelemetry.io/v1\" of an Instrumentation \
             is not known; known are opentelemetry.io/v1alpha1 and opentelemetry.io/v1beta1",
        ),
        (
            "apiVersion: v1\nkind: List\nitems: [{apiVersion: opentelemetry.io/v2, kind: Instrumentation}]\n"
                .to_owned(),
            "x.yaml: document 1, line 1: apiVersion of the document: items[0]: \"opentelemetry.io/v2\" of an",
        ),
    ] {
        let message = message(&text);
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn aliases_and_nesting_are_limited() {
    let deep = format!("apiVersion: v1\nkind: A\na: {}{}\n", "[".repeat(5000), "]".repeat(5000));
    assert!(message(&deep).contains("invalid YAML"));
    let deep =
        format!("{{\"apiVersion\":\"v1\",\"kind\":\"A\",\"a\":{}{}}}", "[".repeat(5000), "]".repeat(5000));
    assert!(message(&deep).contains("invalid JSON: recursion limit exceeded"));
    let laughs = (1..12).fold("apiVersion: v1\nkind: A\na0: &a0 [x, x]\n".to_owned(), |text, level| {
        let before = format!("*a{}", level - 1);
        format!("{text}a{level}: &a{level} [{}]\n", [before.as_str(); 10].join(", "))
    });
    assert!(message(&laughs).contains("invalid YAML"));
}

#[test]
fn a_document_may_be_large() {
    let items = "- {apiVersion: v1, kind: A, data: {x: 1, y: 2, z: 3}}\n".repeat(40_000);
    let text = format!("apiVersion: v1\nkind: List\nitems:\n{items}");
    assert_eq!(documents(&text)[0].value["items"].as_array().map(Vec::len), Some(40_000));
}

#[test]
fn the_indentation_of_lists_is_kept() {
    let value = json!({"a": [{"b": ["c"]}]});
    for text in ["a:\n  - b:\n      - c\n", "a:\n- b:\n  - c\n"] {
        assert_eq!(write(&value, Style::of(text)), text);
    }
}

#[test]
fn strings_that_look_like_other_types_are_quoted() {
    for text in
        ["yes", "N", "on", "true", "null", "~", "", "0777", "0o7", "1_0", "1e3", "1.0", "0x1f", "1:30"]
    {
        let written = write(&json!(text), Style { indented_lists: false });
        assert!(written.starts_with('"') || written.starts_with('\''), "{written}");
    }
}

fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        any::<String>(),
        "[ \\t\\n\\ra:#\\-'\"{}0-9.]{0,12}",
        Just("x y ".repeat(60)),
        Just("line\n  indented\n\nend\n\n".to_owned()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn written_values_read_the_same(value in value(), indented_lists: bool) {
        let object = json!({"apiVersion": "v1", "kind": "A", "a": value});
        let text = write(&object, Style { indented_lists });
        let read = read(&text, "x").map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(&read[0].value, &object, "{}", text);
    }
}
