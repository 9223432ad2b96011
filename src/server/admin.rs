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
use crate::telemetry::Metrics;
use otel_webhook_fleet::restart::HASHES;

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
    use tower::ServiceExt;

    use super::*;

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
}
