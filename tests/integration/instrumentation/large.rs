//! Instrumentations that are larger than the webhook uses.

use serde_json::json;

use super::{VALIDATE, answer, create, object, router};

#[tokio::test]
async fn one_that_is_too_large_is_allowed_with_a_warning() {
    let router = router(&[]);
    let sized = |size: usize| object("order", json!({"env": [{"name": "A", "value": "a".repeat(size)}]}));
    let answered = answer(&router, VALIDATE, &create(&sized(1_300_000))).await;
    assert_eq!(answered["allowed"], true);
    let text = "spec: its JSON has 1.3Mi, and the maximum is 128Ki (--max-instrumentation-size); the webhook does not use \
                this Instrumentation";
    let warnings = answered["warnings"].as_array().expect("a list");
    assert!(
        warnings.iter().any(|warning| warning.as_str().is_some_and(|said| said.contains(text))),
        "{warnings:?}"
    );
    let fits = answer(&router, VALIDATE, &create(&sized(100_000))).await;
    assert!(!fits["warnings"].to_string().contains("its JSON has"), "{fits}");
}
