//! Health and metrics, on a separate port without TLS.

use std::future::ready;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::health::Health;
use super::router::with_routes;
use crate::admission::Admission;
use otel_webhook_fleet::restart::HASHES;
use otel_webhook_telemetry::Metrics;

#[derive(Clone)]
struct Admin {
    health: Arc<Health>,
    metrics: Arc<Metrics>,
}

/// How many Instrumentations one request may name: a pod has one for each language at most.
const MOST_NAMES: usize = 16;

/// The routes of the admin port: `GET /livez` (or `/healthz`), `/readyz` and `/metrics`; and of the webhook `/hashes`,
/// by which the controller compares what replicas would inject.
pub fn admin_router(health: Arc<Health>, metrics: Arc<Metrics>, admission: Option<Arc<Admission>>) -> Router {
    let hashes = admission.map(|admission| {
        let answer = move |uri: Uri| ready(hashes(&admission, uri.query().unwrap_or_default()));
        (HASHES, "GET", get(answer))
    });
    let mut routes = vec![
        ("/livez", "GET", get(alive)),
        // The older name, which is still common.
        ("/healthz", "GET", get(alive)),
        ("/readyz", "GET", get(readyz)),
        ("/metrics", "GET", get(show_metrics)),
    ];
    routes.extend(hashes);
    with_routes(routes).with_state(Admin { health, metrics })
}

/// Counts nothing, looks up nothing, and reads the store alone. Names have no characters that a query encodes.
fn hashes(admission: &Admission, query: &str) -> String {
    let fields = || query.split('&').filter_map(|field| field.split_once('='));
    let namespace = fields().find(|(field, _)| *field == "namespace").map_or("", |(_, value)| value);
    let names = fields().filter(|(field, _)| *field == "instrumentation").map(|(_, value)| value);
    let hashes = admission.hashes(namespace, names.take(MOST_NAMES));
    hashes.iter().flat_map(|hash| [&**hash, "\n"]).collect()
}

/// Fails only if a loop makes no progress: a restart would not help against, for example, an unavailable API server.
async fn alive(State(admin): State<Admin>) -> Response {
    if admin.health.is_alive() {
        return "alive\n".into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, "a loop makes no progress\n").into_response()
}

async fn readyz(State(admin): State<Admin>) -> Response {
    let unmet = admin.health.unmet();
    if unmet.is_empty() {
        return "ready\n".into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, unmet.join("\n") + "\n").into_response()
}

async fn show_metrics(State(admin): State<Admin>) -> Response {
    ([(header::CONTENT_TYPE, Metrics::CONTENT_TYPE)], admin.metrics.encode()).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use otel_webhook_api::defaults::DefaultImages;
    use otel_webhook_inject::Settings;
    use serde_json::json;
    use tower::ServiceExt;

    use super::*;
    use otel_webhook_store::Writer;

    async fn get_text(router: &Router, path: &str) -> (StatusCode, String) {
        let request = Request::get(path).body(Body::empty()).expect("a request");
        let response = router.clone().oneshot(request).await.expect("an answer");
        let status = response.status();
        let body = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        (status, String::from_utf8(body.to_vec()).expect("text"))
    }

    #[tokio::test]
    async fn readiness_lists_unmet_conditions() {
        let health = Arc::new(Health::new());
        let store = health.condition("store", "Instrumentations are not listed yet");
        let certificate = health.condition("certificate", "there is none yet");
        let router = admin_router(Arc::clone(&health), Arc::new(Metrics::new()), None);

        let (status, text) = get_text(&router, "/readyz").await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(text, "store: Instrumentations are not listed yet\ncertificate: there is none yet\n");

        store.set(true);
        certificate.set(true);
        assert_eq!(get_text(&router, "/readyz").await, (StatusCode::OK, "ready\n".to_owned()));

        health.shut_down();
        let (status, text) = get_text(&router, "/readyz").await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(text, "shutdown: the process is shutting down\n");
    }

    #[tokio::test]
    async fn liveness_does_not_depend_on_readiness() {
        let health = Arc::new(Health::new());
        health.condition("store", "never");
        let router = admin_router(health, Arc::new(Metrics::new()), None);
        for path in ["/livez", "/healthz"] {
            assert_eq!(get_text(&router, path).await, (StatusCode::OK, "alive\n".to_owned()));
        }
    }

    /// The hashes are those that the namespace of the pods gives, and only metrics of the process change by a request.
    #[tokio::test]
    async fn hashes_of_instrumentations_are_answered_and_not_counted() {
        let mut writer = Writer::new(DefaultImages::default());
        let metadata = |name: &str| json!({"name": name, "namespace": "shop"});
        for (name, image) in [("one", "registry.example.com/java:1"), ("two", "registry.example.com/java:2")]
        {
            writer.put(&json!({
                "apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation", "metadata": metadata(name),
                "spec": {"java": {"image": image}},
            }));
        }
        writer.publish();
        let metrics = Arc::new(Metrics::new());
        let admission = Admission::new(writer.store(), Settings::default(), None, Arc::clone(&metrics));
        let router = admin_router(Arc::new(Health::new()), Arc::clone(&metrics), Some(Arc::new(admission)));
        let before = metrics.encode();
        let of = async |names: &str| get_text(&router, &format!("{HASHES}?namespace=shop{names}")).await.1;
        let (one, two) = (of("&instrumentation=shop/one").await, of("&instrumentation=shop/two").await);
        assert!(one.lines().next().is_some_and(|hash| hash.starts_with("v1:")), "{one}");
        assert_ne!(one, two);
        assert_eq!(of("&instrumentation=shop/one&instrumentation=shop/two").await, [&*one, &two].concat());
        for none in ["", "&instrumentation=shop", "&instrumentation=other/one"] {
            assert_eq!(of(none).await, "", "{none}");
        }
        let counted = |text: &str| {
            let lines = text.lines().filter(|line| line.contains("reviews") || line.contains("injections"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(counted(&metrics.encode()), counted(&before));
    }
}
