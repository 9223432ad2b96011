use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::inject::{
    pod::Pod,
    text::{Map, RawJson, Text},
};

const CAPTURED: &str = include_str!("../../../../../tests/data/captured/deployment-pod-create.json");

/// A review, as far as it is read.
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "compared as they are shown")]
struct Review<'a> {
    #[serde(borrow)]
    request: Request<'a>,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "compared as they are shown")]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(borrow)]
    uid: Text<'a>,
    object: Option<Pod<'a>>,
    #[serde(rename = "dryRun")]
    dry_run: Option<RawJson<'a>>,
}

#[test]
fn what_an_api_server_sends_is_read_without_giving_up_and_to_the_same() {
    let read: Review<'_> = read(CAPTURED).expect("nothing unusual");
    let expected: Review<'_> = serde_json::from_str(CAPTURED).expect("a review");
    assert_eq!(format!("{read:?}"), format!("{expected:?}"));
}

#[test]
fn a_review_that_breaks_off_is_refused_wherever_it_does() {
    let text = CAPTURED.trim_end();
    for (end, _) in text.char_indices() {
        let broken = &text[..end];
        let problem = from_str::<Review<'_>>(broken).expect_err(broken).to_string();
        let expected = serde_json::from_str::<Review<'_>>(broken).expect_err(broken).to_string();
        assert_eq!(problem, expected);
    }
}

#[test]
fn strings_are_borrowed_or_unescaped() {
    let map: Map<'_> = read(r#"{"a" : "ü", "b\"\u0041":"\\\"]}"}"#).expect("usual");
    assert_eq!(map.iter().collect::<Vec<_>>(), [("a", "ü"), ("b\"A", "\\\"]}")]);
}

#[test]
fn skipped_and_raw_values_end_where_they_end() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Two<'a> {
        #[serde(borrow)]
        raw: RawJson<'a>,
        last: u8,
    }
    for raw in [r#"{"a":["]",{"\\":"\"}"}]}"#, "[]", r#""x,\"}""#, "-1.5E+3", "true", "null", "[[[[]]]]"] {
        let text = format!("{{\"skipped\":{raw} , \"raw\": {raw},\"last\":1 }} ");
        let two: Two<'_> = read(&text).expect("usual");
        assert_eq!((two.raw.get(), two.last), (raw, 1));
        assert_eq!(two, serde_json::from_str(&text).expect("JSON"));
    }
}

#[test]
fn what_is_unusual_is_left_to_serde_json() {
    for text in ["1.5", "01", "-0", "1e3", "12345678901234567890", "[1,]", "{\"a\":1,}", "[1 2]", "tru", ""] {
        assert!(read::<Value>(text).is_err(), "{text}");
    }
    assert_eq!(from_str::<Value>("1.5").expect("a number"), 1.5);
    let deep = "[".repeat(1_000_000);
    assert!(
        from_str::<Value>(&deep).expect_err("too deep").to_string().starts_with("recursion limit exceeded")
    );
    assert!(from_slice::<Value>(b"\"\xff\"").is_err());
}

/// Values with everything that makes JSON hard to read.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[\\PC\"\\\\\n]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map("[\\PC\"\\\\]{0,4}", inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_it_was(value in values(), pretty: bool) {
        let text = if pretty { format!("{value:#}") } else { value.to_string() };
        prop_assert_eq!(from_str::<Value>(&text).expect("JSON"), serde_json::from_str::<Value>(&text).expect("JSON"));
    }

    #[test]
    fn nothing_is_taken_that_serde_json_refuses(value in values(), at: prop::sample::Index, with in "[\\]\\[{}\",:0-9a-z\\\\ ]?") {
        let mut text = value.to_string();
        let at = text.floor_char_boundary(at.index(text.len() + 1));
        let end = text.ceil_char_boundary((at + 1).min(text.len()));
        text.replace_range(at..end, &with);
        if let Ok(read) = read::<Value>(&text) {
            prop_assert_eq!(read, serde_json::from_str::<Value>(&text).expect("taken by both"));
        }
    }
}
