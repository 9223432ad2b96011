//! All watches as one stream of changes.

use std::{fmt::Debug, time::Duration};

use futures::{
    Stream, StreamExt, future,
    stream::{self, BoxStream},
};
use k8s_openapi::{
    api::core::v1::{LimitRange, Namespace, ResourceQuota, ServiceAccount},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client, Resource,
    api::{ApiResource, DynamicObject, PartialObjectMeta},
    runtime::{WatchStreamExt, utils::Backoff, watcher, watcher::Event},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::watched::Watched;
use otel_webhook_api::Instrumentation;
use otel_webhook_inject::limits::{ENFORCE_MOUNTABLE_SECRETS, LimitKind};

/// The page size of lists. A page is completely in memory, and much larger than what is stored of it.
const PAGE: u32 = 100;

/// An event of a watch.
pub struct Change {
    /// The watch.
    pub watched: Watched,
    /// Its objects as documents, with only the used metadata.
    pub told: Result<Event<Value>, watcher::Error>,
}

/// Returns all watches.
pub fn changes(client: &Client) -> impl Stream<Item = Change> + use<> {
    let full = |kind: ApiResource| Api::<DynamicObject>::all_with(client.clone(), &kind);
    let namespaces = Api::<PartialObjectMeta<Namespace>>::all(client.clone());
    let accounts = Api::<PartialObjectMeta<ServiceAccount>>::all(client.clone());
    let ranges = full(ApiResource::erase::<LimitRange>(&()));
    let quotas = full(ApiResource::erase::<ResourceQuota>(&()));
    let instrumentations = full(ApiResource::erase::<Instrumentation>(&()));
    stream::select_all([
        watch(instrumentations, Watched::Instrumentation, whole),
        watch(namespaces, Watched::Namespace, |object| (object.metadata, json!({}))),
        watch(ranges, Watched::Limit(LimitKind::Range), whole),
        watch(quotas, Watched::Limit(LimitKind::Quota), whole),
        watch(accounts, Watched::Limit(LimitKind::ServiceAccount), |object| (object.metadata, json!({}))),
    ])
}

fn whole(object: DynamicObject) -> (ObjectMeta, Value) {
    (object.metadata, object.data)
}

/// Waits longer after each failed list. Each attempt begins with an event, which would reset the usual backoff; this
/// one is reset after two minutes without an error.
#[derive(Default)]
struct Patient(watcher::DefaultBackoff);

impl Iterator for Patient {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0.next()
    }
}

impl Backoff for Patient {
    fn reset(&mut self) {}
}

/// Watches objects of one kind; `parts` splits them into metadata and the rest.
fn watch<K>(api: Api<K>, watched: Watched, parts: fn(K) -> (ObjectMeta, Value)) -> BoxStream<'static, Change>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let document = move |object: K| {
        let (metadata, rest) = parts(object);
        watched.document(&metadata, rest)
    };
    let events = watcher(api, watcher::Config::default().page_size(PAGE)).backoff(Patient::default());
    let changes =
        events.map(move |told| Change { watched, told: told.map(|event| converted(event, document)) });
    changes.filter(|change| future::ready(!change.is_irrelevant())).boxed()
}

fn converted<K>(event: Event<K>, convert: impl Fn(K) -> Value) -> Event<Value> {
    match event {
        Event::Apply(object) => Event::Apply(convert(object)),
        Event::Delete(object) => Event::Delete(convert(object)),
        Event::InitApply(object) => Event::InitApply(convert(object)),
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
    }
}

impl Change {
    /// Returns whether to drop an object: most ServiceAccounts do not restrict Secrets. Dropped objects of a list are
    /// treated as deleted, which is correct.
    fn is_irrelevant(&self) -> bool {
        let is_account = self.watched == Watched::Limit(LimitKind::ServiceAccount);
        let is_strict =
            |object: &Value| !object["metadata"]["annotations"][ENFORCE_MOUNTABLE_SECRETS].is_null();
        matches!(&self.told, Ok(Event::InitApply(object)) if is_account && !is_strict(object))
    }
}

impl Watched {
    /// Returns the object as a document, with its type, which lists omit.
    fn document(self, metadata: &ObjectMeta, mut rest: Value) -> Value {
        rest["apiVersion"] = match self {
            Self::Instrumentation => Instrumentation::api_version(&()).into(),
            Self::Namespace | Self::Limit(_) => "v1".into(),
        };
        rest["kind"] = self.kind().into();
        rest["metadata"] = json!({
            "name": metadata.name,
            "namespace": metadata.namespace,
            "labels": metadata.labels,
            "annotations": metadata.annotations,
            "generation": metadata.generation,
        });
        rest
    }
}
