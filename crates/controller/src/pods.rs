//! The running pods: their metadata by a watch, their containers once each, and their statuses when they change.
//!
//! ```text
//! watch of metadata ──> unread pods, or new versions ── many unread: a list in pages;
//!                                                       else: one request each, paced ──> census
//! ```
//! After the start, and where a namespace begins to opt in, there are many. A watch of whole pods would cost the API
//! server and this process many times as much for as long as it runs. Metadata does not show what a kubelet writes to the
//! status, but that it has: the version of the pod is another one.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    sync::Arc,
};

use futures::{StreamExt, stream::BoxStream};
use kube::{
    Client,
    runtime::{watcher, watcher::Event},
};
use serde_json::{Value, value::RawValue};

use super::{
    interest::{Asking, is_of_interest, opt_ins},
    raw,
    reads::{Read, Reads, kind},
    watches,
};
use otel_webhook_fleet::{
    census::Census, count::Counted, mistakes::PodMistakes, next::Around, pod::RunningPod, workload::Workload,
};
use otel_webhook_store::{
    api_client::RequestBackoff,
    reduced::Metadata,
    scope::{Events, Scope},
};

/// The field selector of pods that have not ended.
pub const RUNNING: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// The number of pods on a page of metadata.
const HEADS: u32 = 250;

/// If more pods are unread, they are listed.
const MANY: usize = 50;

type Page = Result<Vec<Box<RawValue>>, kube::Error>;

/// The running pods.
pub struct Pods {
    client: Client,
    scope: Scope,
    census: Census,
    events: Events<Metadata>,
    /// The UIDs of the pods of a list of metadata in progress, as the census has them.
    seen: Option<HashSet<Arc<str>>>,
    is_listed: bool,
    /// Whether a list of whole pods was begun since the last list of metadata.
    is_list_begun: bool,
    /// Pods that were deleted while whole pods are listed: its pages show them as they were at its beginning.
    deleted: HashSet<String>,
    /// Pods of the census whose containers are to be read, by their UIDs.
    unread: BTreeSet<Arc<str>>,
    /// Pods of the census that are to be read one by one, the unread ones among them.
    reads: Reads,
    /// The list of whole pods in progress.
    listing: Option<BoxStream<'static, Page>>,
    /// The namespace of that list.
    listed_namespace: Option<String>,
    /// When the next list may begin.
    backoff: RequestBackoff,
    /// Namespaces to list, since they opt in now.
    namespaces: VecDeque<String>,
    /// What opts in the pods of namespaces.
    asking: Asking,
    /// Workloads with an agent in a container that ends again and again, the pods of which are compared.
    suspects: HashSet<Workload>,
    /// Whether a pod was found to fail since that was last asked.
    has_found_failing: bool,
    /// The mistakes of pods, whether they are of interest or not; `None` if they are not reported.
    mistakes: Option<PodMistakes>,
    /// The UIDs of a list of metadata in progress, of all pods with mistakes.
    seen_mistaken: HashSet<Box<str>>,
}

impl Pods {
    /// Begins to watch.
    pub fn watch(client: &Client, scope: &Scope) -> Self {
        let config = watcher::Config::default().fields(RUNNING).page_size(HEADS);
        let events = watches::watch(client, scope, kind(), config);
        Self {
            client: client.clone(),
            census: Census::default(),
            scope: scope.clone(),
            events,
            seen: None,
            is_listed: false,
            is_list_begun: false,
            deleted: HashSet::new(),
            unread: BTreeSet::new(),
            reads: Reads::new(client.clone()),
            listing: None,
            listed_namespace: None,
            backoff: RequestBackoff::default(),
            namespaces: VecDeque::new(),
            asking: HashMap::new(),
            suspects: HashSet::new(),
            has_found_failing: false,
            mistakes: None,
            seen_mistaken: HashSet::new(),
        }
    }

    /// Notes the mistakes of pods, too.
    pub fn with_mistakes(self, are_wanted: bool) -> Self {
        Self { mistakes: are_wanted.then(PodMistakes::default), ..self }
    }

    /// Returns the mistakes of pods, if they are noted.
    pub fn mistakes(&mut self) -> Option<&mut PodMistakes> {
        self.mistakes.as_mut()
    }

    /// Returns the pods that have an agent or opt in, to count them.
    pub fn census(&mut self) -> &mut Census {
        &mut self.census
    }

    /// Returns whether all pods are known, if only by their metadata.
    pub fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// Returns whether all pods are known by their containers.
    pub fn are_all_read(&self) -> bool {
        self.is_listed && self.unread.is_empty() && self.listing.is_none()
    }

    /// Returns whether a pod was found to fail since the last call.
    pub fn has_found_failing(&mut self) -> bool {
        std::mem::take(&mut self.has_found_failing)
    }

    /// Waits for news of pods, or reads some. Returns whether something has changed.
    pub async fn step(&mut self, around: &Around<'_>) -> bool {
        self.begin_list();
        let may_read = self.is_listed && self.listing.is_none() && !self.is_list_due();
        tokio::select! {
            Some(event) = self.events.next() => self.take(event, around),
            page = next_page(&mut self.listing), if self.listing.is_some() => self.take_page(page, around),
            read = self.reads.next(&self.census, may_read) => self.take_read(read),
        }
    }

    /// Notes the namespaces with pods that do not opt in themselves. Pods in those where something opts in that did not
    /// before are read again.
    pub fn follow_namespaces(&mut self, around: &Around<'_>) {
        let namespaces = around.catalogue.namespaces.iter();
        let asking = namespaces.map(|(name, namespace)| (name.clone(), opt_ins(namespace, around)));
        let asking: Asking = asking.filter(|(_, own)| !own.is_empty()).collect();
        let changed = asking.iter().filter(|(name, own)| self.asking.get(*name) != Some(own));
        let changed: Vec<_> = changed.map(|(name, _)| name.to_string()).collect();
        // Before the first list, nothing was left out because of a namespace.
        if self.is_listed {
            self.namespaces.extend(changed);
        }
        self.asking = asking;
    }

    /// Lists the namespaces of workloads that are suspected now: their pods that do not opt in are compared with the
    /// others.
    pub fn follow_suspects(&mut self, counted: &Counted) {
        let rows = &counted.report.workloads;
        self.suspects.retain(|one| rows.binary_search_by(|row| row.workload.cmp(one)).is_ok());
        for workload in &counted.suspects {
            if self.suspects.insert(workload.clone()) && !self.namespaces.contains(&workload.namespace) {
                self.namespaces.push_back(workload.namespace.clone());
            }
        }
    }

    fn is_list_due(&self) -> bool {
        self.unread.len() > MANY || !self.namespaces.is_empty()
    }

    /// Begins to list whole pods, if there is a reason to. Next to the first list of metadata, it begins as soon as there
    /// are many: whatever was deleted since then, the watch will tell.
    fn begin_list(&mut self) {
        let are_many = self.unread.len() > MANY;
        // What a read in progress finds may be newer than the list.
        let is_busy = self.listing.is_some() || self.reads.are_in_progress() || !self.backoff.is_over();
        if is_busy || !self.is_listed && (self.is_list_begun || !are_many) {
            return;
        }
        let namespace = match &self.scope {
            Scope::Cluster if are_many => {
                self.namespaces.clear();
                None
            }
            Scope::Namespaces(all) if are_many && self.namespaces.is_empty() => {
                self.namespaces.extend(all.iter().cloned());
                self.namespaces.pop_front()
            }
            _ => match self.namespaces.pop_front() {
                Some(namespace) => Some(namespace),
                None => return,
            },
        };
        tracing::debug!(unread = self.unread.len(), namespace, "listing pods");
        self.is_list_begun = true;
        self.listed_namespace.clone_from(&namespace);
        self.listing = Some(raw::pods(self.client.clone(), namespace).boxed());
    }

    fn take(&mut self, event: watcher::Result<Event<Metadata>>, around: &Around<'_>) -> bool {
        match event {
            Ok(Event::Init) => {
                self.seen = Some(HashSet::new());
                self.seen_mistaken.clear();
                self.is_list_begun = false;
                false
            }
            Ok(Event::InitApply(pod)) => {
                let uid = pod.metadata.uid.clone().unwrap_or_default();
                let is_changed = self.put_metadata(pod, around);
                if let Some(seen) = &mut self.seen {
                    seen.extend(self.census.uid(&uid));
                }
                if self.mistakes.as_ref().is_some_and(|mistakes| mistakes.has(&uid)) {
                    self.seen_mistaken.insert(uid.into());
                }
                is_changed
            }
            Ok(Event::InitDone) => {
                let seen = self.seen.take().unwrap_or_default();
                self.census.keep(&seen);
                if let Some(mistakes) = &mut self.mistakes {
                    mistakes.keep(&std::mem::take(&mut self.seen_mistaken));
                }
                self.unread.retain(|uid| seen.contains(uid));
                self.is_listed = true;
                // A list that began before this one may show pods on its later pages that are gone by now.
                if self.listing.is_some() && !self.is_list_begun {
                    self.namespaces.extend(self.listed_namespace.take());
                    self.end_list();
                } else {
                    self.wait_for_unread();
                }
                true
            }
            Ok(Event::Apply(pod)) => self.put_metadata(pod, around),
            Ok(Event::Delete(pod)) => self.delete(pod.metadata.uid.as_deref().unwrap_or_default()),
            Err(error) => {
                tracing::warn!(%error, "the watch of pods failed; retrying");
                false
            }
        }
    }

    /// Notes that a pod is gone, or about to end.
    fn delete(&mut self, uid: &str) -> bool {
        if self.listing.is_some() {
            self.deleted.insert(uid.to_owned());
        }
        if let Some(mistakes) = &mut self.mistakes {
            mistakes.forget(uid);
        }
        self.forget(uid)
    }

    fn forget(&mut self, uid: &str) -> bool {
        self.unread.remove(uid);
        self.census.forget(uid)
    }

    fn put_metadata(&mut self, pod: Metadata, around: &Around<'_>) -> bool {
        let metadata = serde_json::to_value(pod.metadata).expect("metadata is JSON");
        let uid = metadata["uid"].as_str().unwrap_or_default();
        let Some(running) = RunningPod::of_metadata(&metadata) else { return self.delete(uid) };
        if let Some(mistakes) = &mut self.mistakes {
            mistakes.put(&running, &metadata);
        }
        if !self.suspects.contains(&running.workload) && !is_of_interest(&metadata, &running, around) {
            return self.forget(uid);
        }
        let version = running.resource_version.clone();
        let is_changed = self.census.put(running);
        if !self.census.is_read(uid) {
            self.unread.extend(self.census.uid(uid));
        }
        // Those of the first list are listed as a whole.
        if self.is_listed && !self.census.is_read_at(uid, &version) {
            self.reads.push(&self.census, uid, &version);
        }
        is_changed
    }

    /// Reads one by one what a list did not show, unless a list will.
    fn wait_for_unread(&mut self) {
        if self.listing.is_some() || self.is_list_due() {
            return;
        }
        self.unread.iter().for_each(|uid| self.reads.push(&self.census, uid, ""));
    }

    fn put_whole(&mut self, pod: &Value, around: Option<&Around<'_>>) -> bool {
        let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
        self.unread.remove(uid);
        let running = RunningPod::read(pod).filter(|running| !self.deleted.contains(&running.uid));
        let keep = |running: &RunningPod| {
            around.is_none_or(|around| {
                running.agents.as_ref().is_some_and(|agents| !agents.is_empty())
                    || self.suspects.contains(&running.workload)
                    || is_of_interest(&pod["metadata"], running, around)
            })
        };
        let is_changed = match running.filter(keep) {
            Some(running) => self.census.put(running),
            None => self.census.forget(uid),
        };
        self.has_found_failing |= is_changed && self.census.is_failing(uid);
        is_changed
    }

    fn take_page(&mut self, page: Option<Page>, around: &Around<'_>) -> bool {
        match page {
            None => {
                self.backoff.succeed();
                self.end_list();
                false
            }
            Some(Ok(items)) => {
                let mut is_changed = false;
                for item in items {
                    match raw::pod(item.get()) {
                        Ok(pod) => is_changed |= self.put_whole(&pod, Some(around)),
                        Err(error) => tracing::warn!(%error, "a pod cannot be read"),
                    }
                }
                is_changed
            }
            Some(Err(error)) => {
                tracing::warn!(%error, "pods cannot be listed; it is tried again later");
                self.backoff.fail(&error);
                self.namespaces.extend(self.listed_namespace.take());
                self.end_list();
                false
            }
        }
    }

    fn end_list(&mut self) {
        self.listing = None;
        self.deleted = HashSet::new();
        if self.is_listed {
            self.wait_for_unread();
        }
    }

    fn take_read(&mut self, read: Read) -> bool {
        // Deleted while it was read.
        if self.census.uid(&read.uid).is_none() {
            return false;
        }
        match read.found {
            Ok(Some(pod)) if pod["metadata"]["uid"] == *read.uid => self.put_whole(&pod, None),
            // Another one has its name; the watch tells of both.
            Ok(_) => self.forget(&read.uid),
            Err(error) => {
                tracing::warn!(%error, "a pod cannot be read; it is tried again later");
                self.reads.push(&self.census, &read.uid, &read.version);
                self.reads.rest();
                false
            }
        }
    }
}

async fn next_page(listing: &mut Option<BoxStream<'static, Page>>) -> Option<Page> {
    listing.as_mut()?.next().await
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use hyper::{Request, Response};
    use kube::client::Body;
    use otel_webhook_inject::{STATUS, Settings, catalogue::Catalogue};
    use serde_json::json;

    use super::*;

    /// A client of an API server that has many pods and cannot list them as a whole.
    fn failing(status: u16, lists: &Arc<AtomicUsize>) -> Client {
        let lists = Arc::clone(lists);
        let answer = move |request: Request<Body>| {
            let of_metadata = request
                .headers()
                .values()
                .any(|value| value.to_str().is_ok_and(|value| value.contains("PartialObjectMetadata")));
            let query = request.uri().query().unwrap_or_default().to_owned();
            let (status, body) = if of_metadata {
                let pod = |number: usize| {
                    let name = format!("order-{number}");
                    json!({"metadata": {
                        "name": name, "namespace": "shop", "uid": name, "resourceVersion": "1",
                        "creationTimestamp": "2026-11-24T12:00:00Z", "annotations": {STATUS: "[]"},
                    }})
                };
                let items: Vec<_> = (0..2 * MANY).map(pod).collect();
                (200, json!({"metadata": {"resourceVersion": "1"}, "items": items}))
            } else {
                lists.fetch_add(1, Ordering::Relaxed);
                (status, json!({"kind": "Status", "status": "Failure", "code": status, "message": "no"}))
            };
            async move {
                if query.contains("watch=") {
                    std::future::pending::<()>().await;
                }
                let body = Body::from(serde_json::to_vec(&body).expect("JSON"));
                Ok::<_, std::io::Error>(Response::builder().status(status).body(body).expect("a response"))
            }
        };
        Client::new(tower::service_fn(answer), "default")
    }

    #[tokio::test]
    async fn a_list_that_fails_is_tried_again_later() {
        let (catalogue, settings) = (Catalogue::default(), Settings::default());
        let around = Around { catalogue: &catalogue, settings: &settings };
        for status in [500, 410, 403] {
            let lists = Arc::default();
            let mut pods = Pods::watch(&failing(status, &lists), &Scope::Cluster);
            while pods.backoff.is_over() {
                pods.step(&around).await;
            }
            for _ in 0..1000 {
                // The leader looks again whenever something else happens.
                tokio::select! {
                    biased;
                    _ = pods.step(&around) => {}
                    () = tokio::task::yield_now() => {}
                }
            }
            assert_eq!(lists.load(Ordering::Relaxed), 1, "{status} is answered by the next list at once");
            while !pods.backoff.is_over() {
                tokio::task::yield_now().await;
            }
            pods.step(&around).await;
            assert_eq!(lists.load(Ordering::Relaxed), 2, "after the rest");
            assert!(!pods.backoff.is_over() && !pods.are_all_read(), "it failed again");
        }
    }

    #[tokio::test]
    async fn a_pod_that_was_deleted_while_it_was_read_does_not_come_back() {
        let mut pods = Pods::watch(&failing(500, &Arc::default()), &Scope::Cluster);
        let pod = json!({
            "metadata": {
                "name": "order-1", "namespace": "shop", "uid": "order-1", "resourceVersion": "2",
                "creationTimestamp": "2026-11-24T12:00:00Z", "annotations": {STATUS: "[]"},
            },
            "spec": {"containers": [{"name": "app", "image": "app"}]}, "status": {"phase": "Running"},
        });
        let read = || Read { uid: "order-1".into(), version: "1".into(), found: Ok(Some(pod.clone())) };
        assert!(!pods.take_read(read()), "the watch has shown its end");
        assert_eq!(pods.census().uid("order-1"), None);
        pods.census.put(RunningPod::of_metadata(&pod["metadata"]).expect("a running pod"));
        assert!(pods.take_read(read()), "it is there");
        assert!(pods.census().is_read("order-1"));
    }

    #[tokio::test]
    async fn a_list_that_began_before_pods_were_listed_again_puts_none_back() {
        let (catalogue, settings) = (Catalogue::default(), Settings::default());
        let around = Around { catalogue: &catalogue, settings: &settings };
        let metadata = json!({
            "name": "order-1", "namespace": "shop", "uid": "order-1", "resourceVersion": "1",
            "creationTimestamp": "2026-11-24T12:00:00Z", "annotations": {STATUS: "[]"},
        });
        let known: Metadata = serde_json::from_value(json!({"metadata": metadata})).expect("metadata");
        for is_begun_since in [false, true] {
            let mut pods = Pods::watch(&failing(500, &Arc::default()), &Scope::Cluster);
            for event in [Event::Init, Event::InitApply(known.clone()), Event::InitDone] {
                pods.take(Ok(event), &around);
            }
            pods.listing = Some(futures::stream::pending().boxed());
            // The API server has forgotten the version of the watch, and the pod was deleted meanwhile.
            pods.take(Ok(Event::Init), &around);
            pods.is_list_begun = is_begun_since;
            pods.take(Ok(Event::InitDone), &around);
            assert_eq!(pods.census().uid("order-1"), None);
            assert_eq!(pods.listing.is_some(), is_begun_since, "its next page may have the pod");
        }
    }
}
