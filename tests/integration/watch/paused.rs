//! Whether injection is paused.

use otel_webhook_inject::{reason::ObjectName, size::SizeLimits};
use serde_json::{Value, json};

use super::{Following, Listing, Server, Sources, until};
use crate::logs::Log;

fn object(api_version: &str, kind: &str, namespace: Option<&str>, name: &str, paused: Option<&str>) -> Value {
    let annotations = json!({"otel-webhook/paused": paused, "other": "1"});
    let metadata =
        json!({"namespace": namespace, "name": name, "resourceVersion": "2", "annotations": annotations});
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {}});
    if paused.is_none() {
        object["metadata"]["annotations"] = json!({});
    }
    object
}

fn namespace(name: &str, paused: Option<&str>) -> Value {
    object("v1", "Namespace", None, name, paused)
}

fn instrumentation(paused: Option<&str>) -> Value {
    object("opentelemetry.io/v1alpha1", "Instrumentation", Some("shop"), "inst", paused)
}

fn lease(paused: Option<&str>) -> Value {
    object("coordination.k8s.io/v1", "Lease", Some("release"), "leader", paused)
}

fn sources() -> Sources {
    Sources {
        lease: Some(ObjectName { namespace: "release".into(), name: "leader".into() }),
        ..Sources::default()
    }
}

fn server() -> Server {
    let server = Server::empty();
    server.list("namespaces", Listing::Items(vec![namespace("shop", None), namespace("release", None)]));
    server.list("instrumentations", Listing::Items(vec![instrumentation(None)]));
    server.list("leases", Listing::Items(vec![lease(None)]));
    server
}

async fn pauses(following: &Following, expected: &[&str]) {
    let pauses = || {
        let pauses = following.store.snapshot().catalogue.pauses();
        pauses.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    until(|| (pauses() == expected).then_some(())).await;
}

/// The plural of a kind, an object of it with a value of the annotation, and its name.
type Made = (&'static str, fn(Option<&str>) -> Value, &'static str);

#[tokio::test]
async fn each_object_pauses_and_resumes_with_its_annotation() {
    let server = server();
    let following = server.follow_with(SizeLimits::default(), sources());
    following.ready().await;
    pauses(&following, &[]).await;
    let makers: [Made; 4] = [
        ("namespaces", |paused| namespace("shop", paused), "Namespace shop"),
        ("namespaces", |paused| namespace("release", paused), "Namespace release"),
        ("instrumentations", instrumentation, "Instrumentation shop/inst"),
        ("leases", lease, "Lease release/leader"),
    ];
    for (plural, make, name) in makers {
        server.tell(plural, "MODIFIED", &make(Some("True"))).await;
        pauses(&following, &[name]).await;
        server.tell(plural, "MODIFIED", &make(Some("yes"))).await;
        pauses(&following, &[]).await;
        server.tell(plural, "MODIFIED", &make(Some("true"))).await;
        pauses(&following, &[name]).await;
        server.tell(plural, "MODIFIED", &make(None)).await;
        pauses(&following, &[]).await;
    }
    for (plural, make, name) in makers {
        server.tell(plural, "MODIFIED", &make(Some("true"))).await;
        pauses(&following, &[name]).await;
        server.tell(plural, "DELETED", &make(Some("true"))).await;
        pauses(&following, &[]).await;
    }
}

#[tokio::test]
async fn nothing_is_ready_before_the_lease_is_known() {
    let server = server();
    server.list("leases", Listing::Held);
    let following = server.follow_with(SizeLimits::default(), sources());
    until(|| (server.listed("leases") > 0).then_some(())).await;
    assert!(!following.is_ready());
    server.list("leases", Listing::Items(vec![lease(Some("true"))]));
    following.ready().await;
    pauses(&following, &["Lease release/leader"]).await;
}

#[tokio::test]
async fn a_lease_that_may_not_be_read_pauses_nothing_and_delays_nothing() {
    let log = Log::default();
    let _logging = log.keep();
    let server = server();
    server.list("leases", Listing::Forbidden);
    server.follow_with(SizeLimits::default(), sources()).ready().await;
    until(|| log.text().contains("`otel-webhook rbac --controller` prints the Role").then_some(())).await;
}
