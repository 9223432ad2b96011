//! Reads pods one by one, at a bounded rate.

use std::{sync::Arc, time::Duration};

use futures::{
    FutureExt, StreamExt,
    future::{self, BoxFuture},
    stream::FuturesUnordered,
};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
};
use serde_json::Value;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::turns::Turns;
use otel_webhook_fleet::census::{Census, Template};

/// The interval of requests: 20 each second.
const INTERVAL: Duration = Duration::from_millis(50);

/// How many requests are in progress at most.
const AT_ONCE: usize = 10;

/// How long no pod is read after a failure.
const REST: Duration = Duration::from_secs(10);

/// The pods that are to be read, and those that are being read.
pub struct Reads {
    client: Client,
    waiting: Turns<Template>,
    in_progress: FuturesUnordered<BoxFuture<'static, Read>>,
    pace: Interval,
}

/// The result of reading a pod.
pub struct Read {
    /// Its UID.
    pub uid: Arc<str>,
    /// The version for which it was read.
    pub version: Box<str>,
    /// The pod; none if there is none of its name.
    pub found: Result<Option<Value>, kube::Error>,
}

impl Reads {
    /// Returns reads with this client.
    pub fn new(client: Client) -> Self {
        let mut pace = interval(INTERVAL);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { client, waiting: Turns::default(), in_progress: FuturesUnordered::new(), pace }
    }

    /// Returns whether requests are in progress.
    pub fn are_in_progress(&self) -> bool {
        !self.in_progress.is_empty()
    }

    /// Adds a pod of the census, which the watch has shown in this version; an empty one for a pod that was never read.
    pub fn push(&mut self, census: &Census, uid: &str, version: &str) {
        if let Some((template, uid)) = census.template(uid).zip(census.uid(uid)) {
            self.waiting.push(template, uid, version);
        }
    }

    /// Delays further requests, since one failed.
    pub fn rest(&mut self) {
        self.pace.reset_after(REST);
    }

    /// Waits for the next result. Begins requests in the meantime if `may_begin`.
    pub async fn next(&mut self, census: &Census, may_begin: bool) -> Read {
        loop {
            let has_room = self.in_progress.len() < AT_ONCE && !self.waiting.is_empty();
            tokio::select! {
                Some(read) = self.in_progress.next(), if !self.in_progress.is_empty() => return read,
                _ = self.pace.tick(), if may_begin && has_room => self.begin(census),
                else => return future::pending().await,
            }
        }
    }

    fn begin(&mut self, census: &Census) {
        let Some((uid, version)) = self.waiting.pop(|template| census.is_proven(template)) else { return };
        // Read meanwhile by a list, or gone.
        let is_read =
            if version.is_empty() { census.is_read(&uid) } else { census.is_read_at(&uid, &version) };
        let Some((namespace, name)) = census.place(&uid).filter(|_| !is_read) else { return };
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &kind());
        let name = name.to_owned();
        let read = async move {
            let found = api.get_opt(&name).await;
            let found = found.map(|pod| pod.and_then(|pod| serde_json::to_value(pod).ok()));
            Read { uid, version, found }
        };
        self.in_progress.push(read.boxed());
    }
}

/// Untyped: the complete type of a pod would add half a megabyte to the program.
pub fn kind() -> ApiResource {
    ApiResource::erase::<Pod>(&())
}

#[cfg(test)]
mod tests {
    use hyper::{Request, Response};
    use kube::client::Body;
    use otel_webhook_fleet::pod::RunningPod;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn what_a_list_has_shown_meanwhile_is_not_read_again() {
        let silent = |_: Request<Body>| future::pending::<Result<Response<Body>, std::io::Error>>();
        let mut reads = Reads::new(Client::new(tower::service_fn(silent), "default"));
        let mut census = Census::default();
        let mut pod = json!({
            "metadata": {
                "name": "order-1", "namespace": "shop", "uid": "order-1", "resourceVersion": "1",
                "creationTimestamp": "2026-11-24T12:00:00Z",
            },
            "spec": {"containers": [{"name": "app", "image": "app"}]}, "status": {"phase": "Running"},
        });
        census.put(RunningPod::of_metadata(&pod["metadata"]).expect("a running pod"));
        reads.push(&census, "order-1", "");
        census.put(RunningPod::read(&pod).expect("a running pod"));
        reads.begin(&census);
        assert!(!reads.are_in_progress() && reads.waiting.is_empty(), "it was read");

        // The watch shows a newer version.
        pod["metadata"]["resourceVersion"] = json!("2");
        census.put(RunningPod::of_metadata(&pod["metadata"]).expect("a running pod"));
        reads.push(&census, "order-1", "2");
        reads.begin(&census);
        assert!(reads.are_in_progress(), "its newer version was not read");
    }
}
