//! An API server with many objects, which are made when they are listed: together they are larger than its memory.

use std::{convert::Infallible, future::IntoFuture};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{StatusCode, Uri},
    response::{IntoResponse, Response},
};
use futures::stream;
use serde_json::{Value, json};
use tokio::{net::TcpListener, runtime::Runtime};

/// The objects of a kind, by their number.
#[derive(Clone, Copy)]
pub struct Objects {
    /// How many there are.
    pub count: usize,
    /// Makes the text of one, which has to be quick: the server waits for the whole list.
    pub make: fn(usize) -> String,
}

/// It runs until it is dropped.
pub struct ApiServer {
    /// The kubeconfig of its client.
    pub kubeconfig: String,
    _runtime: Runtime,
}

impl ApiServer {
    /// Starts one that has these Namespaces and Instrumentations. Nothing of them changes.
    pub fn start(namespaces: Objects, instrumentations: Objects) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address");
        let router = Router::new().fallback(move |uri: Uri| async move {
            let none = Objects { count: 0, make: |_| String::new() };
            match uri.path().rsplit('/').next() {
                Some("namespaces") => answer(namespaces, &uri),
                Some("instrumentations") => answer(instrumentations, &uri),
                Some("limitranges" | "resourcequotas" | "serviceaccounts") => answer(none, &uri),
                _ => StatusCode::NOT_FOUND.into_response(),
            }
        });
        runtime.spawn(axum::serve(listener, router).into_future());
        let named = |field: &str, value: Value| json!([{"name": "faults", field: value}]);
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "faults",
            "clusters": named("cluster", json!({"server": format!("http://{address}")})),
            "users": named("user", json!({})),
            "contexts": named("context", json!({"cluster": "faults", "user": "faults"})),
        });
        Self { kubeconfig: kubeconfig.to_string(), _runtime: runtime }
    }
}

/// A page of a list, or a watch without events.
fn answer(objects: Objects, uri: &Uri) -> Response {
    let number = |name: &str| -> Option<usize> {
        let pairs = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(key, _)| *key == name)?.1.parse().ok()
    };
    if uri.query().unwrap_or_default().contains("watch=true") {
        return Body::from_stream(stream::pending::<Result<Bytes, Infallible>>()).into_response();
    }
    let first = number("continue").unwrap_or_default();
    let next = (first + number("limit").unwrap_or(objects.count)).min(objects.count);
    let metadata = json!({
        "resourceVersion": "1", "continue": (next < objects.count).then(|| next.to_string()),
    });
    let items: Vec<String> = (first..next).map(objects.make).collect();
    let items = items.join(",");
    format!(r#"{{"apiVersion":"v1","kind":"List","metadata":{metadata},"items":[{items}]}}"#).into_response()
}
