//! The controller while the API server fails one request in three, or ends every watch: what it says becomes true all the
//! same, workloads are restarted once, and requests stay few.

use std::{
    env,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Instant,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use otel_webhook_testkit::{cluster::client::client, runner::note, until::until};
use serde_json::json;
use tokio::runtime::Runtime;

use super::restarts::{SHOP, change, consenting, create, revision, shop};
use crate::{
    cluster::{Cluster, java},
    controller::{Controller, deployment},
};

/// For how long requests fail, in seconds; without it, for one round of changes.
const LENGTH: &str = "OTEL_WEBHOOK_BROWN_OUT_SECONDS";

/// What fails.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// One request in three, by status 500 or 429.
    Requests,
    /// Every watch, since its version is gone.
    Watches,
}

/// Answers requests by those of the API server, but for those that fail.
struct Server {
    client: kube::Client,
    fault: Fault,
    requests: AtomicUsize,
    failed: AtomicUsize,
}

impl Server {
    async fn answer(State(server): State<Arc<Self>>, request: Request) -> Response {
        let number = server.requests.fetch_add(1, SeqCst);
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let failure = |code: u16, reason: &str| {
            json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason,
                "message": "the test lets it fail"})
        };
        let (code, body) = match server.fault {
            Fault::Requests if number % 6 == 2 => (500, failure(500, "InternalError")),
            Fault::Requests if number % 6 == 5 => (429, failure(429, "TooManyRequests")),
            // As API servers do: by an event.
            Fault::Watches if is_watch => (200, json!({"type": "ERROR", "object": failure(410, "Expired")})),
            _ => return server.forward(request).await,
        };
        server.failed.fetch_add(1, SeqCst);
        let code = StatusCode::from_u16(code).expect("a status code");
        (code, [("content-type", "application/json")], format!("{body}\n")).into_response()
    }

    async fn forward(&self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let body = to_bytes(body, usize::MAX).await.expect("a body").to_vec();
        let request = axum::http::Request::from_parts(parts, kube::client::Body::from(body));
        match self.client.send(request).await {
            Ok(response) => response.map(Body::new),
            Err(_) => StatusCode::BAD_GATEWAY.into_response(),
        }
    }
}

/// A server before that of a kubeconfig; it ends when this is dropped.
struct Failing {
    server: Arc<Server>,
    kubeconfig: PathBuf,
    _runtime: Runtime,
}

impl Failing {
    fn before(kubeconfig: &Path, fault: Fault) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let (requests, failed) = <(AtomicUsize, AtomicUsize)>::default();
        let client = runtime.block_on(client(kubeconfig));
        let server = Arc::new(Server { client, fault, requests, failed });
        let router = Router::new().fallback(Server::answer).with_state(Arc::clone(&server));
        let listener = runtime.block_on(tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))));
        let listener = listener.expect("a free port");
        let address = listener.local_addr().expect("a bound port");
        runtime.spawn(async { axum::serve(listener, router).await });
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "failing",
            "clusters": [{"name": "failing", "cluster": {"server": format!("http://{address}")}}],
            "users": [{"name": "failing", "user": {}}],
            "contexts": [{"name": "failing", "context": {"cluster": "failing", "user": "failing"}}],
        });
        let path = kubeconfig.with_extension("failing");
        std::fs::write(&path, config.to_string()).expect("the scratch folder is writable");
        Self { server, kubeconfig: path, _runtime: runtime }
    }
}

/// One request in three fails.
pub fn requests(_: &Cluster) {
    goes_on(Fault::Requests);
}

/// The version of every watch is gone.
pub fn watches(_: &Cluster) {
    goes_on(Fault::Watches);
}

fn goes_on(fault: Fault) {
    let cluster = &Cluster::with_node(&[]);
    shop(cluster, &[]);
    create(cluster, &consenting(deployment(SHOP, "order", 2), "rollout"));
    let controller = Controller::with_restarts(cluster);
    let failing = Failing::before(controller.kubeconfig(), fault);
    let controller = controller.connecting_by(failing.kubeconfig.clone());
    controller.start();
    let length = env::var(LENGTH).map_or(0, |seconds| seconds.parse().expect("seconds"));
    let began = Instant::now();
    let mut rounds = 0;
    loop {
        rounds += 1;
        let missed = format!("missed-{rounds}");
        {
            let _stopped = cluster.webhook.stop();
            cluster.create(SHOP, &java(&missed));
        }
        controller.expect(SHOP, "default", &json!({"matched": 3, "injected": 2, "missed": 1}));
        change(cluster, &format!("http://collector-{rounds}:4317"));
        let restarted = (rounds + 1).to_string();
        until("the workload is restarted", || (revision(cluster, SHOP, "order") == restarted).then_some(()));
        controller.expect(SHOP, "default", &json!({"matched": 3, "injected": 2, "missed": 1}));
        cluster.run(&["delete", "pod", &missed, "--namespace", SHOP, "--now"]);
        controller.expect(SHOP, "default", &json!({"matched": 2, "injected": 2}));
        if began.elapsed().as_secs() >= length {
            break;
        }
    }
    assert_eq!(revision(cluster, SHOP, "order"), (rounds + 1).to_string(), "restarted once for each change");
    controller.stop();
    let (requests, failed) = (failing.server.requests.load(SeqCst), failing.server.failed.load(SeqCst));
    let seconds = began.elapsed().as_secs();
    note(&format!("{rounds} rounds in {seconds} s: {failed} of {requests} requests failed"));
    assert!(failed > 0, "nothing failed");
}
