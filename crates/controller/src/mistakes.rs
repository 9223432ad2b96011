//! Mistakes in workloads, namespaces and pods, for people who only look at the cluster.
//!
//! ```text
//! watches of metadata of workloads ── generation or annotations changed ──> the workload is read once ──┐
//! metadata of pods of other owners ───────────────────────────────────────────────────────────────────┴─> mistakes
//! ```
//! A workload that nothing opts in is compared with the selectors of Instrumentations, and read again when these change.
//!
//! Which field is meant follows from the workload: in its metadata, a key has no effect, and in its pod template it may
//! have one. What is read first is what shows a mistake in its own metadata or in that of a pod.

use std::{
    collections::{HashMap, HashSet, VecDeque, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use futures::{
    FutureExt, StreamExt,
    future::BoxFuture,
    stream::{BoxStream, SelectAll},
};
use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, StatefulSet},
    batch::v1::CronJob,
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    runtime::{watcher, watcher::Event},
};
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use super::watches;
use otel_webhook_fleet::{
    mistakes::{self, Finding, MistakeRow, PodMistakes, SELECTS_NOTHING},
    report::Report,
    workload::Workload,
};
use otel_webhook_inject::{
    Settings,
    catalogue::{Namespace, Stored},
    nearly::{self, Near},
    reason::ObjectName,
    template::{self, Around},
};
use otel_webhook_store::{
    InstrumentationHead, Snapshot,
    api_client::RequestBackoff,
    reduced::{Metadata, rollouts},
    scope::Scope,
};

/// The number of workloads on a page of metadata.
const PAGE: u32 = 250;

/// The maximum number of workloads that the mistake of a selector names.
const MOST_NEAR: usize = 3;

/// The time between two reads of workloads.
const PACE: Duration = Duration::from_millis(50);

/// How often it is asked whether Rollouts are served.
const PERIOD_OF_DISCOVERY: Duration = Duration::from_secs(60);

/// An object with mistakes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistaken {
    /// The object.
    pub object: Workload,
    /// Its API version and its UID, for an Event; `None` if they are not known.
    pub identity: Option<(String, String)>,
    /// Its mistakes.
    pub findings: Vec<Finding>,
}

/// The mistakes of a workload that was read.
struct Read {
    uid: String,
    findings: Vec<Finding>,
}

/// A workload, and the answer to its request.
type Found = (Workload, Result<Option<Value>, kube::Error>);

type Listed = (usize, watcher::Result<Event<Metadata>>);

/// The mistakes of a cluster.
pub struct Mistakes {
    client: Client,
    scope: Scope,
    kinds: Vec<ApiResource>,
    events: SelectAll<BoxStream<'static, Listed>>,
    /// The names of a list in progress, by kind.
    listing: HashMap<usize, HashSet<Workload>>,
    /// The workloads, each with a digest of its generation, its labels and the mistakes in its metadata.
    heads: HashMap<Workload, u64>,
    /// Those that were read and have mistakes.
    read: HashMap<Workload, Read>,
    /// The Instrumentations that would opt a workload that was read in, but for one label.
    near: HashMap<Workload, Vec<ObjectName>>,
    /// The workloads to read, the one that is being read first.
    due: VecDeque<Workload>,
    reading: Option<BoxFuture<'static, Found>>,
    next_read: Instant,
    backoff: RequestBackoff,
    asking: Option<BoxFuture<'static, bool>>,
    next_question: Instant,
    /// Digests of what opts pods in, by namespace, when workloads were last compared with it; `None` at first.
    opting_in: Option<HashMap<Box<str>, u64>>,
}

impl Mistakes {
    /// Begins to watch.
    pub fn watch(client: &Client, scope: &Scope) -> Self {
        let mut mistakes = Self {
            client: client.clone(),
            scope: scope.clone(),
            kinds: Vec::new(),
            events: SelectAll::new(),
            listing: HashMap::new(),
            heads: HashMap::new(),
            read: HashMap::new(),
            near: HashMap::new(),
            due: VecDeque::new(),
            reading: None,
            next_read: Instant::now(),
            backoff: RequestBackoff::default(),
            asking: None,
            next_question: Instant::now(),
            opting_in: None,
        };
        for kind in [
            ApiResource::erase::<Deployment>(&()),
            ApiResource::erase::<StatefulSet>(&()),
            ApiResource::erase::<DaemonSet>(&()),
            ApiResource::erase::<CronJob>(&()),
        ] {
            mistakes.follow(kind);
        }
        mistakes
    }

    fn follow(&mut self, kind: ApiResource) {
        let number = self.kinds.len();
        let config = watcher::Config::default().page_size(PAGE);
        let events = watches::watch::<Metadata>(&self.client, &self.scope, kind.clone(), config);
        self.events.push(events.map(move |event| (number, event)).boxed());
        self.kinds.push(kind);
    }

    /// Waits for news of workloads, or reads one. Returns whether something has changed.
    pub async fn step(&mut self, snapshot: &Snapshot, settings: &Settings) -> bool {
        self.begin_read();
        self.ask_for_rollouts();
        let (is_reading, is_asking) = (self.reading.is_some(), self.asking.is_some());
        let has_due = !self.due.is_empty() && !is_reading;
        tokio::select! {
            Some((kind, event)) = self.events.next() => self.take(kind, event),
            (workload, found) = pending_or(&mut self.reading), if is_reading => {
                self.reading = None;
                self.take_read(workload, found, snapshot, settings)
            }
            is_served = pending_or(&mut self.asking), if is_asking => {
                self.asking = None;
                if is_served {
                    self.follow(rollouts());
                }
                false
            }
            () = sleep_until(self.next_read), if has_due => false,
        }
    }

    /// Notes the workloads of pods of which the mistakes have changed.
    pub fn follow_pods(&mut self, pods: &mut PodMistakes) -> bool {
        let changed = pods.changed();
        let is_changed = !changed.is_empty();
        for workload in changed {
            let has_own = pods.of(&workload).is_some_and(|found| !found.found.own.is_empty());
            if has_own && self.heads.contains_key(&*workload) {
                self.push(Workload::clone(&workload), true);
            }
        }
        is_changed
    }

    /// Lets workloads be read again where something else opts pods in.
    pub fn follow_opt_ins(&mut self, snapshot: &Snapshot, settings: &Settings) {
        let now = opting_in(snapshot, settings);
        let Some(before) = self.opting_in.replace(now.clone()) else { return };
        let is_other = |name: &str| before.get(name) != now.get(name);
        let again = self.heads.keys().filter(|workload| is_other(&workload.namespace));
        for workload in again.cloned().collect::<Vec<_>>() {
            self.push(workload, false);
        }
    }

    /// Returns all objects with mistakes.
    pub fn all(&self, pods: &PodMistakes, snapshot: &Snapshot, report: &Report) -> Vec<Mistaken> {
        let mut all = Vec::new();
        let of_pods = pods.workloads().filter(|workload| !self.read.contains_key(workload));
        for object in self.read.keys().chain(of_pods) {
            let (found, read) = (pods.of(object), self.read.get(object));
            let own = match (read, found) {
                (Some(read), _) => &read.findings[..],
                // Its template is mended, or it is read soon.
                (None, Some(_)) if self.heads.contains_key(object) => &[],
                (None, Some(found)) => &found.found.own,
                (None, None) => &[],
            };
            let warnings = found.map(|found| &found.found.warnings[..]).unwrap_or_default();
            let findings: Vec<_> = own.iter().chain(warnings).cloned().collect();
            let identity = read
                .and_then(|read| Some((self.resource(&object.kind)?.api_version.clone(), read.uid.clone())))
                .or_else(|| found?.identity.clone());
            if !findings.is_empty() {
                all.push(Mistaken { object: object.clone(), identity, findings });
            }
        }
        all.extend(of_namespaces(snapshot));
        all.extend(self.selectors(snapshot, report));
        all
    }

    /// Returns the Instrumentations with a selector that matches no running pod.
    fn selectors(&self, snapshot: &Snapshot, report: &Report) -> Vec<Mistaken> {
        let used: HashSet<_> = { &report.instrumentations }
            .iter()
            .filter(|row| row.pods.matched > 0)
            .map(|row| (&*row.namespace, &*row.name))
            .collect();
        let selecting = snapshot.heads.instrumentations.iter().filter(|(name, _)| {
            let known = snapshot.catalogue.namespace(&name.namespace);
            let stored = known.and_then(|known| known.instrumentations.get(&name.name));
            matches!(stored, Some(Stored::Ready(compiled)) if compiled.selector.is_some())
                && !used.contains(&(&*name.namespace, &*name.name))
        });
        let mut near: HashMap<&ObjectName, Vec<&Workload>> = HashMap::new();
        for (workload, names) in &self.near {
            for name in names {
                near.entry(name).or_default().push(workload);
            }
        }
        let mistaken = |(name, head): (&ObjectName, &Arc<InstrumentationHead>)| Mistaken {
            object: Workload::new("Instrumentation", &name.namespace, &name.name),
            identity: Some((snapshot.version.api_version().to_owned(), head.uid.clone())),
            findings: vec![selects_nothing(name, near.remove(name).unwrap_or_default())],
        };
        selecting.map(mistaken).collect()
    }

    /// Returns a kind that can be read.
    fn resource(&self, kind: &str) -> Option<&ApiResource> {
        self.kinds.iter().find(|known| known.kind == kind)
    }

    /// Lets a workload be read: next, if it shows a mistake.
    fn push(&mut self, workload: Workload, is_next: bool) {
        // What is being read may have changed since.
        let first = usize::from(self.reading.is_some());
        let known = self.due.iter().skip(first).position(|known| *known == workload);
        match (known, is_next) {
            (Some(_), false) => {}
            (known, true) => {
                known.map(|position| self.due.remove(first + position));
                self.due.insert(first, workload);
            }
            (None, false) => self.due.push_back(workload),
        }
    }

    fn take(&mut self, kind: usize, event: watcher::Result<Event<Metadata>>) -> bool {
        match event {
            Ok(Event::Init) => {
                self.listing.insert(kind, HashSet::new());
                false
            }
            Ok(Event::InitApply(object)) => {
                let workload = self.name(kind, &object);
                self.put(kind, workload.clone(), object);
                self.listing.entry(kind).or_default().insert(workload);
                false
            }
            Ok(Event::InitDone) => {
                let seen = self.listing.remove(&kind).unwrap_or_default();
                let name = &self.kinds[kind].kind;
                let is_kept = |known: &Workload| known.kind != *name || seen.contains(known);
                self.heads.retain(|known, _| is_kept(known));
                let count = self.read.len();
                self.read.retain(|known, _| is_kept(known));
                self.near.retain(|known, _| is_kept(known));
                count != self.read.len()
            }
            Ok(Event::Apply(object)) => {
                let workload = self.name(kind, &object);
                self.put(kind, workload, object)
            }
            Ok(Event::Delete(object)) => {
                let workload = self.name(kind, &object);
                self.heads.remove(&workload);
                self.forget(&workload)
            }
            Err(error) => {
                let kind = &self.kinds[kind].kind;
                tracing::warn!(kind, %error, "a watch failed; retrying");
                false
            }
        }
    }

    fn name(&self, kind: usize, object: &Metadata) -> Workload {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let metadata = &object.metadata;
        Workload::new(&self.kinds[kind].kind, &text(&metadata.namespace), &text(&metadata.name))
    }

    /// Notes the metadata of a workload.
    fn put(&mut self, kind: usize, workload: Workload, object: Metadata) -> bool {
        let resource = &self.kinds[kind];
        let (generation, labels) = (object.metadata.generation, object.metadata.labels.clone());
        let metadata = serde_json::to_value(object.metadata).expect("metadata is JSON");
        let own = mistakes::of_metadata(&metadata, &resource.api_version, &resource.kind);
        let mut hasher = DefaultHasher::new();
        let own_mistakes: Vec<_> = own.iter().map(|finding| (&finding.field, &finding.message)).collect();
        // Its generation does not count changes of its labels.
        (generation, &labels, own_mistakes).hash(&mut hasher);
        let digest = hasher.finish();
        let may_be_wrong = !own.is_empty();
        if self.heads.insert(workload.clone(), digest) != Some(digest) {
            self.push(workload, may_be_wrong);
        }
        false
    }

    fn begin_read(&mut self) {
        if self.reading.is_some() || Instant::now() < self.next_read || !self.backoff.is_over() {
            return;
        }
        let Some(workload) = self.due.front().cloned() else { return };
        let Some(resource) = self.resource(&workload.kind).cloned() else { return };
        self.next_read = Instant::now() + PACE;
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &workload.namespace, &resource);
        let read = async move {
            let found = api.get_opt(&workload.name).await;
            let found = found.map(|object| object.and_then(|object| serde_json::to_value(object).ok()));
            (workload, found)
        };
        self.reading = Some(read.boxed());
    }

    fn take_read(
        &mut self,
        workload: Workload,
        found: Result<Option<Value>, kube::Error>,
        snapshot: &Snapshot,
        settings: &Settings,
    ) -> bool {
        self.due.pop_front();
        match found {
            Ok(Some(mut object)) => {
                self.backoff.succeed();
                let Some(resource) = self.resource(&workload.kind) else { return false };
                let mut findings = mistakes::of(&object, &resource.api_version, &resource.kind);
                let around = Around {
                    namespace: &workload.namespace,
                    catalogue: &snapshot.catalogue,
                    settings,
                    owners: &snapshot.owners,
                };
                let near = one_label_away(&mut object, resource, &around);
                let names: Vec<_> = near.iter().map(|near| near.instrumentation.clone()).collect();
                findings.extend(near.into_iter().filter_map(Near::meant).map(Finding::from));
                let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
                let before = self.read.remove(&workload).map(|read| read.findings).unwrap_or_default();
                let near_before = self.near.remove(&workload).unwrap_or_default();
                let is_changed = before != findings || near_before != names;
                if !names.is_empty() {
                    self.near.insert(workload.clone(), names);
                }
                if !findings.is_empty() {
                    self.read.insert(workload, Read { uid, findings });
                }
                is_changed
            }
            Ok(None) => {
                self.backoff.succeed();
                self.forget(&workload)
            }
            Err(error) => {
                tracing::warn!(workload = workload.to_string(), %error, "a workload cannot be read; it is tried again");
                self.backoff.fail(&error);
                self.next_read = Instant::now() + Duration::from_secs(1);
                self.push(workload, false);
                false
            }
        }
    }

    /// Forgets what was read of a workload. Returns whether that was anything.
    fn forget(&mut self, workload: &Workload) -> bool {
        let (read, near) = (self.read.remove(workload), self.near.remove(workload));
        read.is_some() || near.is_some()
    }

    /// Asks whether Rollouts are served, until they are.
    fn ask_for_rollouts(&mut self) {
        let wanted = rollouts();
        let is_followed = self.resource(&wanted.kind).is_some();
        if self.asking.is_some() || Instant::now() < self.next_question || is_followed {
            return;
        }
        let client = self.client.clone();
        self.next_question = Instant::now() + PERIOD_OF_DISCOVERY;
        let ask = async move {
            let served = client.list_api_group_resources(&wanted.api_version).await;
            served.is_ok_and(|served| served.resources.iter().any(|resource| resource.name == wanted.plural))
        };
        self.asking = Some(ask.boxed());
    }
}

async fn pending_or<T>(future: &mut Option<BoxFuture<'static, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// Returns digests of what opts pods in, by namespace: its annotations and labels, and the selectors of Instrumentations.
/// Where there are no such selectors, nothing can nearly match one.
fn opting_in(snapshot: &Snapshot, settings: &Settings) -> HashMap<Box<str>, u64> {
    let Snapshot { catalogue, heads, .. } = snapshot;
    let of = |namespace: &Namespace| -> Vec<(String, i64)> {
        let opting_in = namespace.instrumentations.opting_in();
        let heads = opting_in.filter_map(|(compiled, _)| heads.instrumentations.get(&compiled.name));
        heads.map(|head| (head.uid.clone(), head.generation)).collect()
    };
    let default = settings.default_instrumentation.as_ref();
    let of_default =
        default.and_then(|default| catalogue.namespace(&default.namespace)).map(of).unwrap_or_default();
    let digests = catalogue.namespaces.iter().filter_map(|(name, namespace)| {
        let selectors = (of(namespace), &of_default);
        let Namespace { annotations, opt_in_labels, labels, .. } = &**namespace;
        let mut hasher = DefaultHasher::new();
        (&selectors, annotations, opt_in_labels, labels).hash(&mut hasher);
        (!selectors.0.is_empty() || !of_default.is_empty()).then(|| (name.clone(), hasher.finish()))
    });
    digests.collect()
}

/// Returns the Instrumentations that would opt a workload in but for one label.
fn one_label_away(object: &mut Value, resource: &ApiResource, around: &Around<'_>) -> Vec<Near> {
    let Some(workload) = template::Workload::of(object, &resource.api_version, &resource.kind) else {
        return Vec::new();
    };
    // What a pod that cannot be read opts in to is not known.
    let Ok(outcome) = workload.outcome(around) else { return Vec::new() };
    nearly::one_label_away(&workload, around, &outcome.findings)
}

/// Returns the mistakes of namespaces.
fn of_namespaces(snapshot: &Snapshot) -> impl Iterator<Item = Mistaken> {
    let namespaces = snapshot.heads.namespaces.iter().filter(|(_, head)| !head.mistakes.is_empty());
    namespaces.map(|(name, head)| Mistaken {
        object: Workload::new("Namespace", name, name),
        identity: Some(("v1".to_owned(), head.uid.clone())),
        findings: head.mistakes.iter().cloned().map(Finding::from).collect(),
    })
}

/// Returns the mistake of an Instrumentation with a selector that matches no running pod. `near` are the workloads that it
/// would select but for one label. Those of other namespaces are not named, since readers of the Instrumentation may not be
/// allowed to read these.
fn selects_nothing(instrumentation: &ObjectName, near: Vec<&Workload>) -> Finding {
    let (mut own, others): (Vec<_>, Vec<_>) =
        near.into_iter().partition(|near| *near.namespace == *instrumentation.namespace);
    own.sort();
    let named = own.iter().take(MOST_NEAR).map(|near| format!("{} {}", near.kind, near.name));
    let mut parts: Vec<_> = named.collect();
    if own.len() > MOST_NEAR {
        parts.push("others".to_owned());
    }
    if !others.is_empty() {
        parts.push("some of other namespaces".to_owned());
    }
    let mut message = "spec.selector matches no running pod that opts in".to_owned();
    let mut remedy = "compare it with the labels of the pods: kubectl get pods --show-labels";
    if !parts.is_empty() {
        message = format!("{message}; workloads that lack one label: {}", parts.join(", "));
        remedy = "otel-webhook explain names the label of each of these workloads";
    }
    Finding { code: SELECTS_NOTHING, field: "spec.selector".to_owned(), message, remedy: remedy.to_owned() }
}

/// Returns the rows of a report.
pub fn rows(all: &[Mistaken]) -> Vec<MistakeRow> {
    let of = |one: &Mistaken| {
        let object = one.object.clone();
        one.findings
            .iter()
            .map(move |finding| MistakeRow { object: object.clone(), finding: finding.clone() })
            .collect::<Vec<_>>()
    };
    all.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use hyper::{Request, Response};
    use kube::client::Body;
    use otel_webhook_api::defaults::DefaultImages;
    use otel_webhook_fleet::pod::RunningPod;
    use serde_json::json;
    use tokio::time::timeout;

    use super::*;
    use otel_webhook_store::Writer;

    const JAVA: &str = "instrumentation.opentelemetry.io/inject-java";

    /// A client of an API server with one Deployment, and the paths of what was read by name.
    fn server(deployment: &Arc<Mutex<Value>>) -> (Client, Arc<Mutex<Vec<String>>>) {
        let read = Arc::<Mutex<Vec<String>>>::default();
        let (own, deployment) = (Arc::clone(&read), Arc::clone(deployment));
        let answer = move |request: Request<Body>| {
            let (path, query) =
                (request.uri().path().to_owned(), request.uri().query().unwrap_or_default().to_owned());
            let object = deployment.lock().expect("not poisoned").clone();
            if path.ends_with("/order") {
                own.lock().expect("not poisoned").push(path.clone());
            }
            async move {
                let body = match &*path {
                    _ if query.contains("watch=true") => return std::future::pending().await,
                    path if path.ends_with("/order") => object,
                    path if path.ends_with("/deployments") => {
                        let metadata = json!({"metadata": object["metadata"]});
                        json!({"metadata": {"resourceVersion": "1"}, "items": [metadata]})
                    }
                    path if path.starts_with("/apis/argoproj.io") => {
                        json!({"groupVersion": "", "resources": []})
                    }
                    _ => json!({"metadata": {"resourceVersion": "1"}, "items": []}),
                };
                Ok::<_, std::io::Error>(Response::new(Body::from(body.to_string().into_bytes())))
            }
        };
        (Client::new(tower::service_fn(answer), "default"), read)
    }

    fn order(own: &Value, template: &Value, generation: i64) -> Value {
        json!({
            "metadata": {"namespace": "shop", "name": "order", "uid": "d", "generation": generation, "annotations": own},
            "spec": {"template": {"metadata": {"annotations": template}, "spec": {"containers": []}}},
        })
    }

    fn all(mistakes: &Mistakes, pods: &PodMistakes) -> Vec<(String, Vec<String>)> {
        let all = mistakes.all(pods, &Snapshot::default(), &Report::default());
        let findings = |one: &Mistaken| one.findings.iter().map(|finding| finding.field.clone()).collect();
        all.iter().map(|one| (one.object.to_string(), findings(one))).collect()
    }

    /// Follows until nothing is left to be read.
    async fn settle(mistakes: &mut Mistakes, until: impl Fn(&Mistakes) -> bool) {
        settle_with(mistakes, &Snapshot::default(), until).await;
    }

    async fn settle_with(mistakes: &mut Mistakes, snapshot: &Snapshot, until: impl Fn(&Mistakes) -> bool) {
        let settings = Settings::default();
        mistakes.follow_opt_ins(snapshot, &settings);
        let settled = async {
            while !until(mistakes) || !mistakes.due.is_empty() {
                mistakes.step(snapshot, &settings).await;
            }
        };
        timeout(Duration::from_secs(20), settled).await.expect("it is read");
    }

    #[tokio::test]
    async fn a_workload_is_read_once_for_each_change_and_forgotten_when_it_is_mended() {
        let stored = Arc::new(Mutex::new(order(&json!({JAVA: "true"}), &json!({}), 1)));
        let (client, read) = server(&stored);
        let mut mistakes = Mistakes::watch(&client, &Scope::Cluster);
        let mut pods = PodMistakes::default();
        settle(&mut mistakes, |known| !known.heads.is_empty()).await;
        let on_itself = vec![format!("metadata.annotations[{JAVA}]")];
        assert_eq!(all(&mistakes, &pods), [("Deployment shop/order".to_owned(), on_itself)]);
        let again = |stored: &Arc<Mutex<Value>>| -> Metadata {
            serde_json::from_value(stored.lock().expect("not poisoned").clone()).expect("metadata")
        };
        // Its status has changed.
        mistakes.take(0, Ok(Event::Apply(again(&stored))));
        assert!(mistakes.due.is_empty());
        assert_eq!(read.lock().expect("not poisoned").len(), 1);

        *stored.lock().expect("not poisoned") = order(&json!({}), &json!({"inject-jva": "true"}), 2);
        mistakes.take(0, Ok(Event::Apply(again(&stored))));
        settle(&mut mistakes, |_| true).await;
        assert_eq!(all(&mistakes, &pods), []);
        // What its old pods show is mended in the template.
        let pod = json!({
            "namespace": "shop", "name": "order-5d-1", "uid": "p", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"pod-template-hash": "5d"},
            "annotations": {"instrumentation.opentelemetry.io/inject-jva": "true"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "order-5d", "uid": "r",
                "controller": true}],
        });
        pods.put(&RunningPod::of_metadata(&pod).expect("a running pod"), &pod);
        assert!(mistakes.follow_pods(&mut pods));
        settle(&mut mistakes, |_| true).await;
        assert_eq!(all(&mistakes, &pods), []);
        assert_eq!(read.lock().expect("not poisoned").len(), 3, "once for each change");

        mistakes.take(0, Ok(Event::Delete(again(&stored))));
        let of_pod = vec!["metadata.annotations[instrumentation.opentelemetry.io/inject-jva]".to_owned()];
        assert_eq!(
            all(&mistakes, &pods),
            [("Deployment shop/order".to_owned(), of_pod)],
            "only its pods are there"
        );
    }

    #[tokio::test]
    async fn a_workload_is_compared_with_the_selectors_of_its_namespace_again_when_these_change() {
        let mut stored = order(&json!({}), &json!({}), 1);
        stored["spec"]["template"]["metadata"]["labels"] = json!({"runtime": "JVM"});
        stored["spec"]["template"]["spec"]["containers"] = json!([{"name": "app"}]);
        let (client, read) = server(&Arc::new(Mutex::new(stored)));
        let mut mistakes = Mistakes::watch(&client, &Scope::Cluster);
        settle(&mut mistakes, |known| !known.heads.is_empty()).await;
        let pods = PodMistakes::default();
        assert_eq!(all(&mistakes, &pods), []);
        let mut writer = Writer::new(DefaultImages::default()).with_heads();
        let nearly = vec!["spec.template.metadata.labels[runtime]".to_owned()];
        for (generation, value, reads, expected) in [
            (1, "jvm", 2, vec![("Deployment shop/order".to_owned(), nearly.clone())]),
            (1, "jvm", 2, vec![("Deployment shop/order".to_owned(), nearly)]),
            (2, "python", 3, Vec::new()),
        ] {
            writer.put(&json!({
                "apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
                "metadata": {"name": "jvm", "namespace": "shop", "generation": generation},
                "spec": {"inject": ["java"], "selector": {"matchLabels": {"runtime": value}}},
            }));
            writer.publish();
            settle_with(&mut mistakes, &writer.store().snapshot(), |_| true).await;
            assert_eq!(all(&mistakes, &pods), expected);
            assert_eq!(read.lock().expect("not poisoned").len(), reads);
        }
    }

    #[tokio::test]
    async fn an_instrumentation_that_selects_nothing_names_the_workloads_that_lack_one_label() {
        let mut stored = order(&json!({}), &json!({}), 1);
        stored["spec"]["template"]["metadata"]["labels"] = json!({"team": "order"});
        stored["spec"]["template"]["spec"]["containers"] = json!([{"name": "app"}]);
        let (client, _) = server(&Arc::new(Mutex::new(stored)));
        let default = ObjectName { namespace: "otel".into(), name: "default".into() };
        let settings = Settings { default_instrumentation: Some(default), ..Settings::default() };
        let mut writer = Writer::new(DefaultImages::default()).with_heads();
        let metadata = json!({"name": "shop", "labels": {"env": "test"}});
        writer.put(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}));
        let labels =
            |all: &[(&str, &str)]| json!({"matchLabels": all.iter().copied().collect::<HashMap<_, _>>()});
        let own = |labels: Value| ("shop", json!({"inject": ["java"], "selector": labels}));
        let across = |namespaces: Value| {
            let selector = labels(&[("team", "order")]);
            ("otel", json!({"inject": ["java"], "selector": selector, "namespaceSelector": namespaces}))
        };
        let (nothing, one) = ("", "; workloads that lack one label: ");
        let (of_own, of_others) =
            (format!("{one}Deployment order"), format!("{one}some of other namespaces"));
        for (what, (namespace, spec), expected) in [
            ("another label matches", own(labels(&[("team", "order"), ("runtime", "jvm")])), &*of_own),
            ("no other label matches", own(labels(&[("runtime", "jvm")])), nothing),
            (
                "two are missing",
                own(labels(&[("team", "order"), ("runtime", "jvm"), ("tier", "web")])),
                nothing,
            ),
            ("it has another value", own(labels(&[("team", "pay"), ("runtime", "jvm")])), nothing),
            ("the namespace lacks one", across(labels(&[("env", "test"), ("telemetry", "on")])), &of_others),
            ("the namespace has another value", across(labels(&[("env", "prod")])), nothing),
        ] {
            writer.put(&json!({
                "apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
                "metadata": {"name": "jvm", "namespace": namespace, "uid": what, "generation": 1}, "spec": spec,
            }));
            writer.publish();
            let snapshot = writer.store().snapshot();
            let mut mistakes = Mistakes::watch(&client, &Scope::Cluster);
            mistakes.follow_opt_ins(&snapshot, &settings);
            let settled = async {
                while mistakes.heads.is_empty() || !mistakes.due.is_empty() {
                    mistakes.step(&snapshot, &settings).await;
                }
            };
            timeout(Duration::from_secs(20), settled).await.expect("it is read");
            let all = mistakes.all(&PodMistakes::default(), &snapshot, &Report::default());
            let all = all.into_iter().filter(|one| one.object.namespace == namespace);
            let found: Vec<_> =
                all.map(|one| (one.object.to_string(), one.findings[0].message.clone())).collect();
            let message = format!("spec.selector matches no running pod that opts in{expected}");
            assert_eq!(found, [(format!("Instrumentation {namespace}/jvm"), message)], "{what}");
        }
    }

    #[test]
    fn what_shows_a_mistake_is_read_first() {
        let workload = |name: &str| Workload::new("Deployment", "shop", name);
        let silent = |_: Request<Body>| std::future::pending::<Result<Response<Body>, std::io::Error>>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let client = Client::new(tower::service_fn(silent), "default");
            let mut mistakes = Mistakes::watch(&client, &Scope::Cluster);
            for (name, is_next) in [("a", false), ("b", false), ("b", true), ("c", true), ("a", false)] {
                mistakes.push(workload(name), is_next);
            }
            assert_eq!(mistakes.due, ["c", "b", "a"].map(workload));
        });
    }
}
