//! The reviews that a real API server sent, answered by the real binary over
//! one kept-alive HTTP/1.1 connection.

use std::fs;

use base64::{Engine, prelude::BASE64_STANDARD};
use hyper::StatusCode;
use serde_json::{Value, json};

use crate::binary::Binary;
use crate::server::harness::Client;

pub fn captured(name: &str) -> String {
    let path = format!("{}/tests/data/captured/{name}.json", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(path).expect("a captured review")
}

/// The pod of a review and the pod after the answer's patch.
fn patched(review: &str, answer: &Value) -> (Value, Value) {
    let review: Value = serde_json::from_str(review).expect("JSON");
    let before = review["request"]["object"].clone();
    let mut after = before.clone();
    if let Some(patch) = answer["response"]["patch"].as_str() {
        assert_eq!(answer["response"]["patchType"], "JSONPatch");
        let patch = BASE64_STANDARD.decode(patch).expect("base64");
        let patch: json_patch::Patch = serde_json::from_slice(&patch).expect("operations");
        json_patch::patch(&mut after, &patch).expect("the patch applies");
    }
    (before, after)
}

fn attributes(pod: &Value, container: &str) -> String {
    let containers = pod["spec"]["containers"].as_array().expect("containers");
    let container = containers.iter().find(|one| one["name"] == container).expect("the container");
    let env = container["env"].as_array().expect("variables");
    let variable = env.iter().find(|one| one["name"] == "OTEL_RESOURCE_ATTRIBUTES").expect("the attributes");
    variable["value"].as_str().expect("a value").to_owned()
}

#[tokio::test]
async fn captured_reviews_are_answered_over_one_connection() {
    let stored: Value = serde_json::from_str(&captured("instrumentation-create")).expect("JSON");
    let source = stored["request"]["object"].to_string();
    let server = Binary::start(&[("instrumentation.json", &source)], &[]).await;
    let mut client = server.client().await;
    for (name, container, expected) in [
        ("deployment-pod-create", "order", "k8s.deployment.name=order"),
        ("statefulset-pod-create", "ledger", "k8s.statefulset.name=ledger"),
        ("job-pod-create", "settle", "k8s.job.name=settle-now"),
        ("bare-pod-create", "app", "k8s.container.name=app"),
    ] {
        let review = captured(name);
        let (before, after) = patched(&review, &answer(&mut client, &review).await);
        assert_ne!(before, after, "{name}");
        let found = attributes(&after, container);
        assert!(found.contains(expected), "{name}: {found}");
    }
    let update = captured("pod-update");
    let answered = answer(&mut client, &update).await;
    assert!(answered["response"].get("patch").is_none(), "an update is never injected: {answered}");
}

async fn answer(client: &mut Client, review: &str) -> Value {
    let answered = client.review(review.to_owned()).await.expect("the connection is kept");
    assert_eq!(answered.status, StatusCode::OK, "{}", answered.text);
    let answer: Value = serde_json::from_str(&answered.text).expect("JSON");
    let sent: Value = serde_json::from_str(review).expect("JSON");
    assert_eq!(answer["response"]["uid"], sent["request"]["uid"]);
    assert_eq!(answer["response"]["allowed"], json!(true));
    answer
}
