//! A Kubernetes watch as the source: Instrumentations in full, namespaces by
//! their metadata.
//!
//! Objects are watched untyped and read one by one, since a typed watch fails
//! as a whole on the first object that does not parse.

use std::collections::BTreeSet;

use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, DynamicObject, PartialObjectMeta},
    runtime::{WatchStreamExt, watcher, watcher::Event},
};
use serde_json::{Value, json};

use super::Writer;
use crate::api::Instrumentation;

/// How many events are taken in before they are shown: a burst is published
/// once, a single event at once. Until then they are in memory as they came.
const BATCH: usize = 64;

/// How many objects are listed at a time; a page is in memory as a whole, many
/// times as large as what is kept of it.
const PAGE: u32 = 100;

/// What the watches need of the cluster, as rules of a role.
pub fn rules() -> [Value; 2] {
    [
        json!({"apiGroups": ["opentelemetry.io"], "resources": ["instrumentations"], "verbs": ["list", "watch"]}),
        json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]}),
    ]
}

/// What a watch tells, whatever it watches.
enum Change {
    Instrumentation(Event<DynamicObject>),
    Namespace(Event<PartialObjectMeta<Namespace>>),
    Failed(&'static str, watcher::Error),
}

/// Objects of one kind as a list is told anew. What is not told again is gone.
#[derive(Default)]
struct Relist {
    seen: Option<BTreeSet<(String, String)>>,
    complete: bool,
}

/// Watches and publishes, for ever. `on_ready` is called once everything was
/// listed.
pub async fn follow(client: Client, mut writer: Writer, on_ready: impl FnOnce()) {
    let mut changes = changes(client).ready_chunks(BATCH);
    let (mut instrumentations, mut namespaces) = (Relist::default(), Relist::default());
    let mut on_ready = Some(on_ready);
    while let Some(batch) = changes.next().await {
        // A watch that only fails tells nothing, and must not look fresh.
        let told = batch.iter().any(|change| !matches!(change, Change::Failed(..)));
        for change in batch {
            match change {
                Change::Instrumentation(event) => instrumentations.take_instrumentation(&mut writer, event),
                Change::Namespace(event) => namespaces.take_namespace(&mut writer, event),
                Change::Failed(kind, error) => {
                    tracing::warn!(kind, error = %Advice(&error), "a watch failed; trying again");
                }
            }
        }
        if told {
            writer.publish();
        }
        if instrumentations.complete
            && namespaces.complete
            && let Some(on_ready) = on_ready.take()
        {
            on_ready();
        }
    }
}

fn changes(client: Client) -> impl Stream<Item = Change> {
    let kind = ApiResource::erase::<Instrumentation>(&());
    let config = || watcher::Config::default().page_size(PAGE);
    let instrumentations: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let instrumentations = watcher(instrumentations, config()).default_backoff().map(|event| match event {
        Ok(event) => Change::Instrumentation(event),
        Err(error) => Change::Failed("Instrumentation", error),
    });
    let namespaces = watcher(Api::<PartialObjectMeta<Namespace>>::all(client), config())
        .default_backoff()
        .map(|event| match event {
            Ok(event) => Change::Namespace(event),
            Err(error) => Change::Failed("Namespace", error),
        });
    stream::select(Box::pin(instrumentations), Box::pin(namespaces))
}

impl Relist {
    fn take_instrumentation(&mut self, writer: &mut Writer, event: Event<DynamicObject>) {
        match event {
            Event::Init => self.begin(),
            Event::InitApply(object) | Event::Apply(object) => {
                self.see(&object);
                writer.put(&document(object));
            }
            Event::Delete(object) => {
                writer.forget_instrumentation(&object.namespace().unwrap_or_default(), &object.name_any());
            }
            Event::InitDone => {
                let seen = self.end();
                writer.keep_instrumentations(|namespace, name| {
                    seen.contains(&(namespace.to_owned(), name.to_owned()))
                });
            }
        }
    }

    fn take_namespace(&mut self, writer: &mut Writer, event: Event<PartialObjectMeta<Namespace>>) {
        match event {
            Event::Init => self.begin(),
            Event::InitApply(object) | Event::Apply(object) => {
                self.see(&object);
                writer.put(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": object.metadata}));
            }
            Event::Delete(object) => writer.forget_namespace(&object.name_any()),
            Event::InitDone => {
                let seen = self.end();
                writer.keep_namespaces(|name| seen.contains(&(String::new(), name.to_owned())));
            }
        }
    }

    fn begin(&mut self) {
        self.seen = Some(BTreeSet::new());
    }

    fn see(&mut self, object: &impl ResourceExt) {
        if let Some(seen) = &mut self.seen {
            seen.insert((object.namespace().unwrap_or_default(), object.name_any()));
        }
    }

    fn end(&mut self) -> BTreeSet<(String, String)> {
        self.complete = true;
        self.seen.take().unwrap_or_default()
    }
}

/// The object as a document, with its type, which lists leave out.
fn document(object: DynamicObject) -> Value {
    let mut document = object.data;
    document["apiVersion"] = Instrumentation::api_version(&()).into();
    document["kind"] = Instrumentation::kind(&()).into();
    document["metadata"] = json!({
        "name": object.metadata.name,
        "namespace": object.metadata.namespace,
        "annotations": object.metadata.annotations,
        "generation": object.metadata.generation,
    });
    document
}

/// A watch's error, with what to do where that is known.
struct Advice<'e>(&'e watcher::Error);

impl std::fmt::Display for Advice<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let status = match self.0 {
            watcher::Error::InitialListFailed(kube::Error::Api(status))
            | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status.code,
            _ => 0,
        };
        match status {
            404 => write!(f, "; is the CRD installed? `otel-webhook crd | kubectl apply --server-side -f -`"),
            403 => write!(f, "; the service account needs get, list and watch on it in all namespaces"),
            _ => Ok(()),
        }
    }
}
