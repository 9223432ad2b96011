//! The watches as the source, next to a small API server in this process.

mod nodes;
mod paused;
mod sizes;

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use futures::channel::mpsc;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Bytes, Frame};
use hyper::{Request, Response};
use kube::Client;
use otel_webhook_api::{Version, defaults::DefaultImages};
use otel_webhook_inject::{limits::Limits, size::SizeLimits};
use otel_webhook_store::{
    Store, Writer,
    api_client::paged,
    watch::{self, Sources},
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::logs::Log;

const LIMIT: Duration = Duration::from_secs(30);

/// What is listed and watched, by the plural of its kind.
const ALL: [&str; 5] = ["instrumentations", "namespaces", "limitranges", "resourcequotas", "serviceaccounts"];

type Body = UnsyncBoxBody<Bytes, Infallible>;
type Events = mpsc::UnboundedSender<Result<Frame<Bytes>, Infallible>>;

/// How a list is answered.
enum Listing {
    Items(Vec<Value>),
    /// An object that is no list.
    Object(Value),
    Forbidden,
    /// Not yet.
    Held,
}

#[derive(Default)]
struct State {
    lists: BTreeMap<String, Listing>,
    watches: BTreeMap<String, Events>,
    /// How often each was listed.
    listed: BTreeMap<String, usize>,
    /// What is not watched before it is listed again, since the version is forgotten.
    forgotten: BTreeSet<String>,
    /// How many items each page had.
    pages: BTreeMap<String, Vec<usize>>,
}

/// The API server.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<State>>);

impl Server {
    /// Without any object.
    fn empty() -> Self {
        let server = Self::default();
        for plural in ALL {
            server.list(plural, Listing::Items(Vec::new()));
        }
        server.serve(&["v1alpha1"]);
        server
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nobody panics with it")
    }

    /// Answers lists so from now on.
    fn list(&self, plural: &str, listing: Listing) {
        self.state().lists.insert(plural.to_owned(), listing);
    }

    /// Says in discovery that these versions of Instrumentations are served.
    fn serve(&self, served: &[&str]) {
        for version in Version::ALL {
            let resource = json!({"name": "instrumentations", "singularName": "", "namespaced": true,
                "kind": "Instrumentation", "verbs": ["list", "watch"]});
            let resources = if served.contains(&version.name()) { vec![resource] } else { Vec::new() };
            let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version.api_version(),
                "resources": resources});
            self.list(version.name(), Listing::Object(list));
        }
    }

    /// Tells an event to whoever watches, once somebody does.
    async fn tell(&self, plural: &str, kind: &str, object: &Value) {
        let event = format!("{}\n", json!({"type": kind, "object": object}));
        until(|| {
            let state = self.state();
            let events = state.watches.get(plural)?;
            events.unbounded_send(Ok(Frame::data(event.clone().into()))).ok()
        })
        .await;
    }

    fn listed(&self, plural: &str) -> usize {
        self.state().listed.get(plural).copied().unwrap_or_default()
    }

    async fn answer(self, request: Request<kube::client::Body>) -> Result<Response<Body>, Infallible> {
        let plural = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
        if request.uri().query().unwrap_or_default().contains("watch=true") {
            if self.state().forgotten.contains(&plural) {
                let mut response = Response::new(Full::from(gone().to_string()).boxed_unsync());
                *response.status_mut() = hyper::StatusCode::GONE;
                return Ok(response);
            }
            let (events, told) = mpsc::unbounded();
            self.state().watches.insert(plural, events);
            return Ok(Response::new(StreamBody::new(told).boxed_unsync()));
        }
        *self.state().listed.entry(plural.clone()).or_default() += 1;
        self.state().forgotten.remove(&plural);
        let query = request.uri().query().unwrap_or_default().to_owned();
        let (status, document) = until(|| match self.state().lists.get(&plural)? {
            Listing::Items(items) => Some((200, sizes::page(items, &query))),
            Listing::Object(object) => Some((200, object.clone())),
            Listing::Forbidden => Some((403, json!({
                "apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403,
                "message": format!("{plural} is forbidden"),
            }))),
            Listing::Held => None,
        })
        .await;
        let items = document["items"].as_array().map(Vec::len);
        self.state().pages.entry(plural).or_default().extend(items);
        let mut response = Response::new(Full::from(document.to_string()).boxed_unsync());
        *response.status_mut() = hyper::StatusCode::from_u16(status).expect("a status");
        Ok(response)
    }

    /// Follows this server.
    fn follow(&self) -> Following {
        self.follow_with(SizeLimits::default(), Sources::default())
    }

    fn follow_with(&self, limits: SizeLimits, sources: Sources) -> Following {
        let writer =
            Writer::new(DefaultImages::default()).with_size_limits(limits, ["release"]).with_labels(false);
        let writer = writer.with_release(Some("release"));
        let server = self.clone();
        let client = Client::new(tower::service_fn(move |request| server.clone().answer(request)), "default");
        let client = paged(&client);
        let (store, ready) = (writer.store(), Arc::new(Mutex::new(false)));
        let is_ready = Arc::clone(&ready);
        let on_ready = move || *is_ready.lock().expect("nobody panics with it") = true;
        let task = tokio::spawn(watch::follow(client, sources, writer, on_ready));
        Following { store, ready, task }
    }
}

/// A store that follows.
struct Following {
    store: Store,
    ready: Arc<Mutex<bool>>,
    task: JoinHandle<()>,
}

impl Following {
    fn is_ready(&self) -> bool {
        *self.ready.lock().expect("nobody panics with it")
    }

    async fn ready(&self) {
        until(|| self.is_ready().then_some(())).await;
    }

    /// Waits until what bounds a namespace is so.
    async fn limits(&self, namespace: &str, is_so: impl Fn(&Limits) -> bool) {
        until(|| {
            let snapshot = self.store.snapshot();
            let known = snapshot.catalogue.namespace(namespace);
            is_so(&known.map(|known| known.limits.clone()).unwrap_or_default()).then_some(())
        })
        .await;
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Waits for something, and panics where it does not come.
async fn until<T>(probe: impl FnMut() -> Option<T>) -> T {
    tokio::time::timeout(LIMIT, wait(probe)).await.expect("it comes")
}

/// The same, where it takes minutes of a paused clock.
async fn until_later<T>(probe: impl FnMut() -> Option<T>) -> T {
    tokio::time::timeout(20 * LIMIT, wait(probe)).await.expect("it comes")
}

async fn wait<T>(mut probe: impl FnMut() -> Option<T>) -> T {
    loop {
        match probe() {
            Some(found) => return found,
            None => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

/// The answer for a version that is too old.
fn gone() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "code": 410, "reason": "Expired", "message": "too old",
        "status": "Failure"})
}

fn metadata(name: &str) -> Value {
    json!({"namespace": "shop", "name": name, "resourceVersion": "2"})
}

fn range(name: &str, least: &str) -> Value {
    let items = json!([{"type": "Container", "min": {"cpu": least}}]);
    json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata(name), "spec": {"limits": items}})
}

fn quota(used: &str) -> Value {
    let hard = json!({"limits.cpu": "4"});
    json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata("all"),
        "spec": {"hard": hard}, "status": {"hard": hard, "used": {"limits.cpu": used}},
    })
}

fn account(name: &str, is_strict: bool) -> Value {
    let mut metadata = metadata(name);
    if is_strict {
        metadata["annotations"] = json!({"kubernetes.io/enforce-mountable-secrets": "true"});
    }
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
}

fn ranges(limits: &Limits) -> Vec<&str> {
    limits.limit_ranges().iter().map(|range| &*range.name).collect()
}

fn left(limits: &Limits) -> Option<String> {
    Some(limits.quotas().first()?.left_of_limits("cpu")?.to_string())
}

#[tokio::test]
async fn what_bounds_a_namespace_is_listed_and_followed() {
    let server = Server::empty();
    server.list("limitranges", Listing::Items(vec![range("a", "10m"), range("b", "10m")]));
    server.list("resourcequotas", Listing::Items(vec![quota("1")]));
    server.list("serviceaccounts", Listing::Items(vec![account("default", false), account("strict", true)]));
    let following = server.follow();
    following.ready().await;
    following
        .limits("shop", |limits| ranges(limits) == ["a", "b"] && left(limits).as_deref() == Some("3"))
        .await;
    let strict = |limits: &Limits| ["default", "strict"].map(|name| limits.enforces_mountable_secrets(name));
    following.limits("shop", |limits| strict(limits) == [false, true]).await;

    server.tell("limitranges", "DELETED", &range("a", "10m")).await;
    server.tell("limitranges", "ADDED", &range("c", "10m")).await;
    for used in 1..=30 {
        server.tell("resourcequotas", "MODIFIED", &quota(&format!("{}m", used * 100))).await;
    }
    server.tell("serviceaccounts", "MODIFIED", &account("default", true)).await;
    server.tell("serviceaccounts", "MODIFIED", &account("strict", false)).await;
    following.limits("shop", |limits| ranges(limits) == ["b", "c"]).await;
    following.limits("shop", |limits| left(limits).as_deref() == Some("1")).await;
    following.limits("shop", |limits| strict(limits) == [true, false]).await;
}

#[tokio::test]
async fn what_is_not_listed_again_is_gone() {
    let server = Server::empty();
    server.list("limitranges", Listing::Items(vec![range("a", "10m"), range("b", "10m")]));
    server.list("serviceaccounts", Listing::Items(vec![account("strict", true), account("other", true)]));
    let following = server.follow();
    following.ready().await;
    following.limits("shop", |limits| ranges(limits) == ["a", "b"]).await;
    server.list("limitranges", Listing::Items(vec![range("b", "10m")]));
    server.list("serviceaccounts", Listing::Items(vec![account("strict", false), account("other", true)]));
    // Of one, the watch says that its version is forgotten; of the other, the next watch is refused.
    server.tell("limitranges", "ERROR", &gone()).await;
    server.state().forgotten.insert("serviceaccounts".to_owned());
    server.state().watches.remove("serviceaccounts");
    following.limits("shop", |limits| ranges(limits) == ["b"]).await;
    following.limits("shop", |limits| !limits.enforces_mountable_secrets("strict")).await;
    following.limits("shop", |limits| limits.enforces_mountable_secrets("other")).await;
}

#[tokio::test]
async fn nothing_is_ready_before_what_bounds_pods_is_known() {
    for held in ["limitranges", "resourcequotas", "serviceaccounts"] {
        let server = Server::empty();
        let shop = json!({"metadata": {"name": "shop", "resourceVersion": "2"}});
        server.list("namespaces", Listing::Items(vec![shop]));
        server.list(held, Listing::Held);
        let following = server.follow();
        for plural in ALL.iter().filter(|plural| **plural != held) {
            until(|| server.state().watches.contains_key(*plural).then_some(())).await;
        }
        until(|| following.store.snapshot().catalogue.is_listed("shop").then_some(())).await;
        until(|| (server.listed(held) > 0).then_some(())).await;
        assert!(!following.is_ready(), "{held}");
        server.list(held, Listing::Items(Vec::new()));
        following.ready().await;
    }
}

/// A role of an earlier version, say.
#[tokio::test]
async fn what_may_not_be_listed_is_said_once_and_not_waited_for() {
    let log = Log::default();
    let _logging = log.keep();
    let server = Server::empty();
    server.list("limitranges", Listing::Forbidden);
    let following = server.follow();
    following.ready().await;
    until(|| (server.listed("limitranges") > 1).then_some(())).await;
    let said = || {
        let lines: Vec<String> = log.text().lines().map(str::to_owned).collect();
        lines
            .into_iter()
            .filter(|line| line.contains("otel_webhook") && line.contains("LimitRange"))
            .collect::<Vec<_>>()
    };
    let lines = said();
    assert_eq!(lines.len(), 1, "{lines:?}");
    for part in [
        "WARN",
        "LimitRanges, ResourceQuotas and ServiceAccounts are used only as last read",
        "limitranges is forbidden",
        "`otel-webhook rbac`",
    ] {
        assert!(lines[0].contains(part), "{part}: {lines:?}");
    }
    server.list("limitranges", Listing::Items(vec![range("a", "10m")]));
    following.limits("shop", |limits| ranges(limits) == ["a"]).await;
    until(|| said().last()?.contains("can be read again").then_some(())).await;
}

/// Instrumentations and namespaces are needed, whatever the reason why they are not known.
#[tokio::test]
async fn what_injection_cannot_do_without_is_waited_for() {
    let server = Server::empty();
    server.list("namespaces", Listing::Forbidden);
    let following = server.follow();
    until(|| (server.listed("namespaces") > 1).then_some(())).await;
    assert!(!following.is_ready());
    server.list("namespaces", Listing::Items(Vec::new()));
    following.ready().await;
}

#[tokio::test(start_paused = true)]
async fn another_served_version_is_listed_and_followed() {
    let server = Server::empty();
    let following = server.follow();
    following.ready().await;
    assert_eq!(following.store.snapshot().version, Version::V1alpha1);
    for (served, followed) in [
        (&["v1alpha1", "v1beta1"][..], Version::V1beta1),
        (&["v1alpha1"], Version::V1alpha1),
        (&["v1beta1"], Version::V1beta1),
    ] {
        let listed = server.listed("instrumentations");
        server.serve(served);
        until(|| {
            let is_listed = server.listed("instrumentations") > listed;
            (is_listed && following.store.snapshot().version == followed).then_some(())
        })
        .await;
    }
    // While none is served, what was known stays.
    let asked = server.listed("v1alpha1");
    server.serve(&[]);
    until(|| (server.listed("v1alpha1") > asked + 1).then_some(())).await;
    assert_eq!(following.store.snapshot().version, Version::V1beta1);
}
