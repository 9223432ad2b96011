//! The reviews that a real API server sent, answered by the real binary over
//! one kept-alive HTTP/1.1 connection.

use hyper::StatusCode;
use otel_webhook_testkit::files::captured;
use serde_json::{Value, json};

use crate::{binary::Binary, routes::patched, server::harness::Client};

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
        let sent: Value = serde_json::from_str(&review).expect("JSON");
        let before = &sent["request"]["object"];
        let after = patched(before, &answer(&mut client, &review).await["response"]);
        assert_ne!(*before, after, "{name}");
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
