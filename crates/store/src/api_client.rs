//! Clients of the API server for processes that run for long: each request has a deadline, connections can be replaced,
//! and lists come in pages that are bounded in bytes.
//!
//! A connection that stays open and answers nothing, as after a node or a firewall has lost its state, is found by the
//! deadlines. Requests are not repeated here: who makes them knows when they may be made again ([`RequestBackoff`]).

mod backoff;

pub use backoff::RequestBackoff;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::stream;
use http_body_util::{BodyExt, Either, Full, LengthLimitError, Limited, StreamBody};
use hyper::{
    Request, Response, Uri,
    body::{self, Bytes, Frame},
    http::uri::PathAndQuery,
};
use kube::{Client, Config, client::Body};
use thiserror::Error;
use tokio::{
    select,
    sync::watch,
    time::{Instant, sleep_until, timeout},
};

/// How long the API server may take until the head of a response. It gives up most requests itself after a minute, and
/// watches are answered at once.
const HEAD: Duration = Duration::from_secs(20);

/// How long a response may pause. A watch without any event ends after a minute (`scope.rs`).
const PAUSE: Duration = Duration::from_secs(75);

/// The minimum interval of watches of the same objects. One that the API server ends at once would otherwise be begun
/// again and again.
const WATCHES: Duration = Duration::from_secs(1);

/// The maximum length of a page of several objects, in bytes. One object can have nine MiB: those that are stored have
/// 1.5 MiB at most, and some characters are six in JSON.
const LONGEST_PAGE: usize = 4 * 1024 * 1024;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Why a request was given up.
#[derive(Debug, Error)]
enum GivenUp {
    #[error("the API server did not answer within {0:?}")]
    Unanswered(Duration),
    #[error("the connection to the API server was replaced")]
    Replaced,
}

/// The connections of a client. Clones share them.
#[derive(Clone)]
pub struct Connections {
    open: Arc<dyn Fn() -> kube::Result<Client> + Send + Sync>,
    current: Arc<watch::Sender<Client>>,
}

impl Connections {
    /// Returns connections to a cluster. They are opened when they are needed.
    ///
    /// # Errors
    /// If the configuration cannot be used.
    pub fn to(mut config: Config) -> kube::Result<Self> {
        config.default_retry = false;
        Self::opened_by(move || Client::try_from(config.clone()))
    }

    /// Returns connections that are opened by a function.
    ///
    /// # Errors
    /// If it fails.
    pub fn opened_by(open: impl Fn() -> kube::Result<Client> + Send + Sync + 'static) -> kube::Result<Self> {
        let current = Arc::new(watch::Sender::new(open()?));
        Ok(Self { open: Arc::new(open), current })
    }

    /// Returns the same, with its own connections.
    ///
    /// # Errors
    /// If the configuration cannot be used.
    pub fn another(&self) -> kube::Result<Self> {
        Ok(Self { open: Arc::clone(&self.open), current: Arc::new(watch::Sender::new((self.open)()?)) })
    }

    /// Opens new connections. What waits for an answer fails.
    pub fn replace(&self) {
        match (self.open)() {
            Ok(client) => drop(self.current.send_replace(client)),
            Err(error) => tracing::warn!(%error, "no new connection to the API server; the last one is used"),
        }
    }

    /// Returns a client that uses the connections, with deadlines and bounded pages.
    pub fn client(&self) -> Client {
        let namespace = self.current.borrow().default_namespace().to_owned();
        let current = Arc::clone(&self.current);
        let watches = Arc::new(Watches::default());
        let service = tower::service_fn(move |request: Request<Body>| {
            let mut used = current.subscribe();
            let client = used.borrow_and_update().clone();
            let begin = watches.begin(request.uri());
            async move {
                sleep_until(begin).await;
                let response = select! {
                    answered = timeout(HEAD, client.send(request)) => {
                        answered.map_err(|_| Failure::from(GivenUp::Unanswered(HEAD)))??
                    }
                    () = replaced(&mut used) => return Err(Failure::from(GivenUp::Replaced)),
                };
                Ok(response.map(|body| within_deadlines(body, used)))
            }
        });
        paged(&Client::new(service, namespace))
    }
}

async fn replaced(used: &mut watch::Receiver<Client>) {
    if used.changed().await.is_err() {
        // Nobody can replace them any longer.
        std::future::pending::<()>().await;
    }
}

/// Returns a body that fails when it pauses for too long, or its connection was replaced.
fn within_deadlines<B>(
    body: B,
    used: watch::Receiver<Client>,
) -> StreamBody<stream::BoxStream<'static, Result<Frame<Bytes>, Failure>>>
where
    B: body::Body<Data = Bytes, Error: Into<Failure>> + Send + Unpin + 'static,
{
    let frames = stream::unfold(Some((body, used)), |state| async {
        let (mut body, mut used) = state?;
        let given_up = select! {
            frame = timeout(PAUSE, body.frame()) => match frame {
                Ok(frame) => return frame.map(|frame| (frame.map_err(Into::into), Some((body, used)))),
                Err(_) => GivenUp::Unanswered(PAUSE),
            },
            () = replaced(&mut used) => GivenUp::Replaced,
        };
        Some((Err(given_up.into()), None))
    });
    StreamBody::new(Box::pin(frames))
}

/// Returns a client that asks for fewer objects of a list where a page would be too long.
///
/// The users of a namespace can create objects of 1.5 MiB, and a page is in memory some times over while it is read.
/// Most objects are short: with few on a page, the lists of a large cluster would take minutes.
pub fn paged(client: &Client) -> Client {
    let (inner, namespace) = (client.clone(), client.default_namespace().to_owned());
    let sizes = Arc::new(Sizes::default());
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, sizes) = (inner.clone(), Arc::clone(&sizes));
        async move {
            let Some(asked) = objects_asked_for(request.uri()) else {
                return Ok(client.send(request).await?.map(Either::Right));
            };
            // It has no body.
            let (head, _) = request.into_parts();
            let path = head.uri.path().to_owned();
            let mut size = sizes.of(&path).unwrap_or(asked).min(asked);
            loop {
                let mut head = head.clone();
                head.uri = with_limit(&head.uri, size);
                let (answered, body) =
                    client.send(Request::from_parts(head, Body::empty())).await?.into_parts();
                let longest = if size == 1 { usize::MAX } else { LONGEST_PAGE };
                match Limited::new(body, longest).collect().await {
                    Ok(page) => {
                        let page = page.to_bytes();
                        // Twice as many of the same length would not be too long.
                        let next = if page.len() < LONGEST_PAGE / 2 { size * 2 } else { size };
                        sizes.set(path, (next < asked).then_some(next));
                        return Ok::<_, Failure>(Response::from_parts(
                            answered,
                            Either::Left(Full::from(page)),
                        ));
                    }
                    Err(error) if error.is::<LengthLimitError>() => {
                        size = (size / 4).max(1);
                        tracing::info!(path, size, "objects are large; listing fewer on a page");
                    }
                    Err(error) => return Err(error),
                }
            }
        }
    });
    Client::new(service, namespace)
}

/// When the last watch of the same objects began, or will begin.
#[derive(Default)]
struct Watches(Mutex<HashMap<String, Instant>>);

impl Watches {
    /// Returns when a request may be made.
    fn begin(&self, uri: &Uri) -> Instant {
        let now = Instant::now();
        let query = uri.query().unwrap_or_default();
        if !query.split('&').any(|pair| pair == "watch=true") {
            return now;
        }
        let objects = query.split('&').find(|pair| pair.starts_with("fieldSelector=")).unwrap_or_default();
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = begun.entry(format!("{}?{objects}", uri.path()));
        *last.and_modify(|last| *last = now.max(*last + WATCHES)).or_insert(now)
    }
}

/// How many objects pages have, by the path of their list, where those that are asked for would be too many.
#[derive(Default)]
struct Sizes(Mutex<HashMap<String, u32>>);

impl Sizes {
    fn of(&self, path: &str) -> Option<u32> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(path).copied()
    }

    fn set(&self, path: String, size: Option<u32>) {
        let mut sizes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match size {
            Some(size) => drop(sizes.insert(path, size)),
            None => drop(sizes.remove(&path)),
        }
    }
}

/// Returns the number of objects of the page that a request asks for, if it asks for one.
fn objects_asked_for(uri: &Uri) -> Option<u32> {
    uri.query()?.split('&').find_map(|pair| pair.strip_prefix("limit="))?.parse().ok()
}

fn with_limit(uri: &Uri, limit: u32) -> Uri {
    let pairs = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.starts_with("limit="));
    let query = pairs.fold(format!("limit={limit}"), |query, pair| query + "&" + pair);
    let mut parts = uri.clone().into_parts();
    let replaced = PathAndQuery::try_from(format!("{}?{query}", uri.path()));
    parts.path_and_query = replaced.ok().or(parts.path_and_query);
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}

#[cfg(test)]
mod tests {
    use std::io;

    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{Api, api::ListParams};
    use serde_json::{Value, json};

    use super::*;

    /// A client of a server with objects of these lengths, which notes how many each request asks for.
    fn listing(lengths: &[usize], asked: &Arc<Mutex<Vec<usize>>>) -> Client {
        let (lengths, asked) = (lengths.to_vec(), Arc::clone(asked));
        let answer = move |request: Request<Body>| {
            let number = |name: &str| {
                let mut pairs = request.uri().query()?.split('&').filter_map(|pair| pair.split_once('='));
                pairs.find(|(key, _)| *key == name)?.1.parse::<usize>().ok()
            };
            let (first, limit) = (number("continue").unwrap_or(0), number("limit").expect("a page"));
            asked.lock().expect("not poisoned").push(limit);
            let next = (first + limit).min(lengths.len());
            let object = |number: usize| -> Value {
                json!({"metadata": {"name": format!("c-{number}")}, "data": {"a": "a".repeat(lengths[number])}})
            };
            let items: Vec<_> = (first..next).map(object).collect();
            let more = if next < lengths.len() { next.to_string() } else { String::new() };
            let page = json!({"apiVersion": "v1", "kind": "ConfigMapList", "items": items,
                "metadata": {"resourceVersion": "1", "continue": more}});
            async move { Ok::<_, io::Error>(Response::new(Body::from(page.to_string().into_bytes()))) }
        };
        Client::new(tower::service_fn(answer), "default")
    }

    async fn names(client: Client) -> Vec<String> {
        let api: Api<ConfigMap> = Api::default_namespaced(client);
        let (mut names, mut page) = (Vec::new(), ListParams::default().limit(100));
        loop {
            let list = api.list(&page).await.expect("a page");
            names.extend(list.items.into_iter().filter_map(|object| object.metadata.name));
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return names,
            }
        }
    }

    #[tokio::test]
    async fn pages_have_as_many_objects_as_fit() {
        const MIB: usize = 1024 * 1024;
        let large_ones_first = [&[3 * MIB, 3 * MIB][..], &[10; 200]].concat();
        for (lengths, expected) in [
            (vec![10; 250], vec![100, 100, 100]),
            // 100, 25 and 6 of them would be too long.
            (vec![3 * MIB / 2; 5], vec![100, 25, 6, 1, 2, 2]),
            (vec![6 * MIB; 2], vec![100, 25, 6, 1, 1]),
            (large_ones_first, vec![100, 25, 6, 1, 1, 1, 2, 4, 8, 16, 32, 64, 100]),
        ] {
            let asked = Arc::default();
            let all: Vec<_> = (0..lengths.len()).map(|number| format!("c-{number}")).collect();
            assert_eq!(names(paged(&listing(&lengths, &asked))).await, all);
            let asked = std::mem::take(&mut *asked.lock().expect("not poisoned"));
            assert_eq!(asked, expected, "{} objects of {} bytes and so on", lengths.len(), lengths[0]);
        }
    }

    #[test]
    fn watches_of_the_same_objects_begin_a_second_apart() {
        let watches = Watches::default();
        let begin = |uri: &'static str| watches.begin(&Uri::from_static(uri));
        let first = begin("/api/v1/pods?watch=true&fieldSelector=a&resourceVersion=1");
        assert!(first <= Instant::now());
        assert_eq!(begin("/api/v1/pods?watch=true&fieldSelector=a&resourceVersion=2"), first + WATCHES);
        assert_eq!(begin("/api/v1/pods?fieldSelector=a&watch=true&resourceVersion=2"), first + 2 * WATCHES);
        for other in
            ["/api/v1/pods?watch=true&fieldSelector=b", "/api/v1/nodes?watch=true", "/api/v1/pods?limit=1"]
        {
            assert!(begin(other) <= Instant::now(), "{other}");
        }
    }

    /// A client of a server that answers nothing.
    fn silent() -> Client {
        let answer = |_: Request<Body>| std::future::pending::<Result<Response<Body>, io::Error>>();
        Client::new(tower::service_fn(answer), "default")
    }

    #[tokio::test]
    async fn what_waits_fails_when_connections_are_replaced() {
        let asked = Arc::default();
        let clients = Mutex::new(vec![listing(&[10], &asked), silent()]);
        let open = move || Ok(clients.lock().expect("not poisoned").pop().expect("two are opened"));
        let connections = Connections::opened_by(open).expect("a client");
        let client = connections.client();
        let waiting = tokio::spawn({
            let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
            async move { api.list(&ListParams::default().limit(1)).await }
        });
        while connections.current.receiver_count() == 0 {
            tokio::task::yield_now().await;
        }
        connections.replace();
        let error = waiting.await.expect("no panic").expect_err("it was given up");
        assert!(error.to_string().contains("the connection to the API server was replaced"), "{error}");
        assert_eq!(names(client).await, ["c-0"], "the same client uses the new connection");
    }

    #[tokio::test]
    async fn a_body_fails_when_its_connection_is_replaced() {
        let (sender, used) = watch::channel(silent());
        let endless = StreamBody::new(stream::pending::<Result<Frame<Bytes>, io::Error>>());
        let mut body = within_deadlines(endless, used);
        sender.send_replace(silent());
        let error = body.frame().await.expect("a frame").expect_err("it was given up");
        assert!(matches!(error.downcast_ref(), Some(GivenUp::Replaced)), "{error}");
        assert!(body.frame().await.is_none(), "it has ended");
    }
}
