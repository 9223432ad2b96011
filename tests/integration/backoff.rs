//! Requests that fail again and again are made more and more rarely: an API server that is short of breath is not asked
//! for more.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
    io,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use arc_swap::ArcSwapOption;
use futures::{
    future::{BoxFuture, join_all},
    stream,
};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{Method, Request, Response, body::Bytes, body::Frame, header::ACCEPT};
use kube::Client;
use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_controller::{Controller, Election, RestartSettings};
use otel_webhook_fleet::restart::Pace;
use otel_webhook_inject::{
    Settings,
    reason::ObjectName,
    workload::{OwnerKind, OwnerQuery},
};
use otel_webhook_managed_certs::plan::Policy;
use otel_webhook_server::tls::{
    CurrentCertificate,
    managed::{Managed, Place},
};
use otel_webhook_store::{
    Writer,
    api_client::Connections,
    cluster::{ClusterLookup, deadline},
    scope::Scope,
    watch::{self, Sources},
};
use otel_webhook_telemetry::Metrics;
use serde_json::{Value, json};
use tokio::{
    task::JoinHandle,
    time::{interval, sleep, sleep_until, timeout},
};

/// How long requests fail before they are counted, and how long they are counted.
const BEFORE: Duration = Duration::from_secs(10);
const COUNTED: Duration = Duration::from_secs(5);

/// How many requests of a kind may be made in that time: two each second.
const MOST: usize = 10;

type Body = UnsyncBoxBody<Bytes, io::Error>;

/// How a request fails.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The connection is reset.
    Reset,
    /// The response is empty: a watch has ended.
    Empty,
    /// The status is this one; of watches, it is an event.
    Status(u16),
    /// There is no response.
    Silence,
}

const FAULTS: [Fault; 6] =
    [Fault::Reset, Fault::Empty, Fault::Status(500), Fault::Status(410), Fault::Status(429), Fault::Silence];

/// An API server that fails some kinds of requests.
#[derive(Clone)]
struct Server {
    failing: BTreeSet<String>,
    fault: Fault,
    /// How many pods there are: many are listed, and few are read one by one.
    pods: usize,
    asked: Arc<Mutex<Vec<(String, Instant)>>>,
    /// The Secret of the certificates, once it is written.
    secret: Arc<Mutex<Option<Value>>>,
}

impl Server {
    fn new(pods: usize, failing: BTreeSet<String>, fault: Fault) -> Self {
        Self { failing, fault, pods, asked: Arc::default(), secret: Arc::default() }
    }

    fn kinds(&self) -> BTreeSet<String> {
        self.asked.lock().expect("not poisoned").iter().map(|(kind, _)| kind.clone()).collect()
    }

    /// How many requests of a kind were made since then.
    fn since(&self, then: Instant, kind: &str) -> usize {
        let asked = self.asked.lock().expect("not poisoned");
        asked.iter().filter(|(known, at)| known == kind && *at >= then).count()
    }

    fn connections(&self) -> Connections {
        let server = self.clone();
        let open = move || {
            let server = server.clone();
            let answer = move |request| server.clone().answer(request);
            Ok(Client::new(tower::service_fn(answer), "release"))
        };
        Connections::opened_by(open).expect("a client")
    }

    async fn answer(self, request: Request<kube::client::Body>) -> Result<Response<Body>, io::Error> {
        let kind = kind(&request);
        self.asked.lock().expect("not poisoned").push((kind.clone(), Instant::now()));
        let is_watch = kind.starts_with("watch ");
        match Some(self.fault).filter(|_| self.failing.contains(&kind)) {
            None => {}
            Some(Fault::Reset) => return Err(io::ErrorKind::ConnectionReset.into()),
            Some(Fault::Empty) => return Ok(response(200, "")),
            Some(Fault::Silence) => pending().await,
            Some(Fault::Status(code)) => {
                let status = status(code);
                let event = json!({"type": "ERROR", "object": status});
                return Ok(if is_watch {
                    response(200, &format!("{event}\n"))
                } else {
                    response(code, &status.to_string())
                });
            }
        }
        if is_watch {
            return Ok(Response::new(
                StreamBody::new(stream::pending::<Result<Frame<Bytes>, _>>()).boxed_unsync(),
            ));
        }
        let (head, body) = request.into_parts();
        let sent = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let sent: Value = serde_json::from_slice(&sent).unwrap_or_default();
        let name = head.uri.path().rsplit('/').next().unwrap_or_default().to_owned();
        let (code, document) = match (head.method, kind.split(' ').collect::<Vec<_>>()[..].as_ref()) {
            (Method::GET, ["list", resource, ..]) => {
                let items = self.items(resource);
                (
                    200,
                    json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"}, "items": items}),
                )
            }
            (Method::GET, [_, "pods"]) => (200, pod(&name)),
            (Method::GET, [_, "deployments", ..]) => (200, json!({"metadata": {"name": name, "uid": "d"}})),
            (Method::GET, [_, "replicasets" | "jobs" | "namespaces", ..]) => (
                200,
                json!({"apiVersion": "v1", "kind": "PartialObjectMetadata", "metadata": {"name": name, "uid": "u"}}),
            ),
            (Method::GET, [_, "mutatingwebhookconfigurations" | "validatingwebhookconfigurations", ..]) => {
                (200, configuration())
            }
            (Method::GET, [_, "secrets"]) if self.secret().is_some() => {
                (200, self.secret().unwrap_or_default())
            }
            (Method::GET, _) => (404, status(404)),
            (Method::PATCH, _) if sent.is_array() => (200, configuration()),
            _ => {
                let mut stored = sent;
                stored["metadata"]["resourceVersion"] = "2".into();
                if kind == "patch secrets" {
                    *self.secret.lock().expect("not poisoned") = Some(stored.clone());
                }
                (200, stored)
            }
        };
        Ok(response(code, &document.to_string()))
    }

    fn secret(&self) -> Option<Value> {
        self.secret.lock().expect("not poisoned").clone()
    }

    fn items(&self, resource: &str) -> Vec<Value> {
        match resource {
            "pods" => (0..self.pods).map(|number| pod(&format!("order-{number}"))).collect(),
            "namespaces" => vec![json!({"metadata": {"name": "shop", "resourceVersion": "1"}})],
            "instrumentations" => vec![json!({
                "metadata": {"namespace": "shop", "name": "default", "uid": "i", "resourceVersion": "1", "generation": 1,
                    "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {},
            })],
            "mutatingwebhookconfigurations" | "validatingwebhookconfigurations" => vec![configuration()],
            _ => Vec::new(),
        }
    }
}

/// The kind of a request: its verb, its resource, and whether it asks for metadata only.
fn kind(request: &Request<kube::client::Body>) -> String {
    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
    let segments: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let of_group = &segments[if segments[0] == "api" { 2 } else { 3 }.min(segments.len())..];
    let own = match of_group {
        ["namespaces", _, own @ ..] if !own.is_empty() => own,
        own => own,
    };
    let verb = match (request.method(), own) {
        (&Method::GET, _) if query.contains("watch=true") => "watch",
        (&Method::GET, [_]) => "list",
        (&Method::GET, _) => "get",
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        _ => "patch",
    };
    let accepted =
        request.headers().get(ACCEPT).and_then(|accepted| accepted.to_str().ok()).unwrap_or_default();
    let metadata = if accepted.contains("PartialObjectMetadata") { " metadata" } else { "" };
    let resource = own.first().copied().unwrap_or("version");
    let part = own.get(2).map(|part| format!("/{part}")).unwrap_or_default();
    format!("{verb} {resource}{part}{metadata}")
}

fn response(code: u16, text: &str) -> Response<Body> {
    let body = Full::from(text.to_owned()).map_err(|never| match never {}).boxed_unsync();
    Response::builder().status(code).header("retry-after", "1").body(body).expect("a response")
}

fn status(code: u16) -> Value {
    let reason = if code == 404 { "NotFound" } else { "Failure" };
    json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "on purpose",
        "details": {"retryAfterSeconds": 1}})
}

fn pod(name: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "shop", "uid": name, "resourceVersion": "1",
            "creationTimestamp": "2026-11-24T12:00:00Z", "labels": {"pod-template-hash": "abc"},
            "annotations": {"instrumentation.opentelemetry.io/inject-java": "true"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "order-abc", "uid": "r",
                "controller": true}],
        },
        "spec": {"containers": [{"name": "app", "image": "app"}]}, "status": {"phase": "Running"},
    })
}

fn configuration() -> Value {
    let hook = json!({"name": "pods.otel-webhook.example", "clientConfig": {}, "admissionReviewVersions": ["v1"],
        "sideEffects": "None"});
    json!({"metadata": {"name": "otel-webhook", "resourceVersion": "1"}, "webhooks": [hook]})
}

fn writer() -> Writer {
    Writer::new(DefaultImages::default()).with_release(Some("release"))
}

fn sources() -> Sources {
    let lease = ObjectName { namespace: "release".into(), name: "leader".into() };
    Sources { scope: Scope::Cluster, nodes: true, lease: Some(lease) }
}

/// What the webhook asks for.
async fn webhook(server: Server) {
    let client = server.connections().client();
    let metrics = Arc::new(Metrics::new());
    let place = Place {
        namespace: "release".to_owned(),
        secret: "certificates".to_owned(),
        configurations: vec!["otel-webhook".to_owned()],
        conversion: None,
    };
    let hour = Duration::from_hours(1);
    let policy = Policy {
        names: vec!["localhost".to_owned()],
        lifetime: hour,
        authority_lifetime: 2 * hour,
        propagation: Duration::ZERO,
    };
    let current = Arc::new(CurrentCertificate::none(Arc::clone(&metrics)));
    let managed = Managed::new(client.clone(), &place, policy, current, metrics);
    let store = watch::follow(client.clone(), sources(), writer(), || ());
    let lookups = ClusterLookup::new(client);
    let reviews = async {
        let of_lookups = ["get replicasets metadata", "get jobs metadata", "get namespaces metadata"];
        if server.failing.iter().any(|kind| !of_lookups.contains(&&**kind)) {
            return;
        }
        let mut ticks = interval(Duration::from_millis(50));
        let mut number = 0;
        loop {
            ticks.tick().await;
            number += 1;
            let name = format!("order-{number}");
            let query = |kind| OwnerQuery { kind, namespace: "shop", name: &name, uid: "u" };
            let queries = [query(OwnerKind::ReplicaSet), query(OwnerKind::Job)];
            let deadline = deadline();
            tokio::join!(lookups.owners(&queries, deadline), lookups.namespace(&name, deadline));
        }
    };
    tokio::join!(managed.run(|| ()), store, reviews);
}

/// What the controller asks for.
async fn controller(server: Server) {
    let connections = server.connections();
    let client = connections.client();
    let writer = writer().with_heads();
    let controller = Controller {
        client: client.clone(),
        settings: Settings::default(),
        store: writer.store(),
        configurations: vec!["otel-webhook".to_owned()],
        lease: ObjectName { namespace: "release".into(), name: "leader".into() },
        metrics: Arc::default(),
        report: Arc::new(ArcSwapOption::empty()),
        cluster: "here".to_owned(),
        heard: None,
        restarts: Some(RestartSettings {
            pace: Pace::default(),
            webhook_service: Some("otel-webhook".to_owned()),
            namespace: "release".to_owned(),
            config_map: "restarts".to_owned(),
        }),
        scope: Scope::Cluster,
        mistakes: true,
        metrics_namespaces: 0,
        names_all_workloads: false,
        team_label: None,
    };
    let place = ObjectName { namespace: "release".into(), name: "leader".into() };
    let mut election = Election::new(&connections, place, "own".to_owned()).expect("a client");
    let (holds, _held) = tokio::sync::watch::channel(false);
    let leading =
        async { tokio::join!(watch::follow(client, sources(), writer, || ()), controller.lead(|| ())) };
    tokio::select! {
        _ = leading => {}
        never = election.run(&holds, || ()) => match never {},
    }
}

type Part = fn(Server) -> BoxFuture<'static, ()>;

/// A part of the program.
struct Asking {
    what: &'static str,
    part: Part,
    pods: usize,
    /// Kinds of requests that it makes without a failure.
    kinds: &'static [&'static str],
    /// Whether others are counted, too.
    with_others: bool,
}

const ALL: [Asking; 3] = [
    Asking {
        what: "the webhook",
        part: |server| Box::pin(webhook(server)),
        pods: 0,
        kinds: &[
            "get replicasets metadata",
            "get jobs metadata",
            "get namespaces metadata",
            "get secrets",
            "patch secrets",
            "watch secrets",
            "list instrumentations",
            "watch instrumentations",
            "watch nodes",
            "watch leases",
            "patch mutatingwebhookconfigurations",
            "get version",
        ],
        with_others: true,
    },
    Asking {
        what: "the controller",
        part: |server| Box::pin(controller(server)),
        pods: 3,
        kinds: &[
            "list pods metadata",
            "watch pods metadata",
            "get pods",
            "get mutatingwebhookconfigurations",
            "patch instrumentations/status",
            "get deployments",
            "create events",
            "get leases",
            "create leases",
            "patch leases",
            "list deployments",
            "watch deployments",
            "list deployments metadata",
            "watch cronjobs metadata",
            "get configmaps",
        ],
        with_others: true,
    },
    Asking {
        what: "the controller with many pods",
        part: |server| Box::pin(controller(server)),
        pods: 60,
        kinds: &["list pods"],
        with_others: false,
    },
];

impl Asking {
    /// Begins a part, and returns the server once all of these kinds of requests were made.
    async fn begin(
        &self,
        failing: BTreeSet<String>,
        fault: Fault,
        kinds: &BTreeSet<String>,
    ) -> (Server, Running) {
        let server = Server::new(self.pods, failing, fault);
        let running = Running(tokio::spawn((self.part)(server.clone())));
        let lacks = || kinds.difference(&server.kinds()).cloned().collect::<Vec<_>>();
        let all = async {
            while !lacks().is_empty() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let made = timeout(Duration::from_secs(60), all).await;
        made.unwrap_or_else(|_| panic!("{} does not make {:?}: {:?}", self.what, lacks(), server.kinds()));
        (server, running)
    }

    /// Returns the kinds of requests, those together that do not depend on each other.
    async fn kinds(&self) -> Vec<BTreeSet<String>> {
        let expected = self.kinds.iter().map(|kind| (*kind).to_owned()).collect();
        let (server, _running) = self.begin(BTreeSet::new(), Fault::Reset, &expected).await;
        let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for kind in server.kinds().into_iter().filter(|kind| self.with_others || expected.contains(kind)) {
            let verb = kind.split(' ').next().filter(|verb| ["list", "watch"].contains(verb));
            groups.entry(verb.unwrap_or(&kind).to_owned()).or_default().insert(kind);
        }
        groups.into_values().collect()
    }

    /// Returns how many requests of these kinds are made, where there are too many.
    async fn too_many(&self, kinds: BTreeSet<String>, fault: Fault) -> Vec<String> {
        let (server, _running) = self.begin(kinds.clone(), fault, &kinds).await;
        let begun = Instant::now();
        sleep_until((begun + BEFORE + COUNTED).into()).await;
        let count = |kind: &String| server.since(begun + BEFORE, kind);
        let too_many = kinds.iter().filter(|kind| count(kind) > MOST);
        too_many.map(|kind| format!("{}: {kind} by {fault:?}: {}", self.what, count(kind))).collect()
    }
}

/// A part that runs until this is dropped.
struct Running(JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[tokio::test]
async fn each_kind_of_request_that_fails_is_made_twice_a_second_at_most() {
    let mut counted = Vec::new();
    for asking in &ALL {
        for kinds in asking.kinds().await {
            counted.extend(FAULTS.map(|fault| asking.too_many(kinds.clone(), fault)));
        }
    }
    let too_many: Vec<_> = join_all(counted).await.into_iter().flatten().collect();
    assert!(too_many.is_empty(), "more than {MOST} in {COUNTED:?}: {too_many:#?}");
}
