//! All watches as one stream of changes.

use std::sync::Arc;

use futures::{
    Stream, StreamExt, future,
    stream::{self, BoxStream},
};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{LimitRange, Namespace, ResourceQuota, ServiceAccount},
};
use kube::{
    Api, Client,
    api::ApiResource,
    runtime::{watcher, watcher::Config, watcher::Event},
};
use tokio::sync::{Notify, watch};

use super::{nodes, sources::Sources, watched::Watched};
use crate::{
    reduced::Whole,
    scope::{Events, Scope, follow, place},
    served::resource,
};
use otel_webhook_api::Version;
use otel_webhook_inject::{
    limits::{ENFORCE_MOUNTABLE_SECRETS, LimitKind},
    reason::ObjectName,
};

/// An event of a watch.
pub struct Change {
    /// The watch.
    pub watched: Watched,
    /// Its objects.
    pub event: Result<Event<Whole>, watcher::Error>,
}

/// Returns all watches. That of Instrumentations begins once their version is known, and again, with a list, whenever
/// `again` is notified.
pub fn changes(
    client: &Client,
    sources: &Sources,
    version: watch::Receiver<Option<Version>>,
    again: &Arc<Notify>,
) -> impl Stream<Item = Change> + use<> {
    let watches = [
        (ApiResource::erase::<Namespace>(&()), Watched::Namespace),
        (ApiResource::erase::<LimitRange>(&()), Watched::Limit(LimitKind::Range)),
        (ApiResource::erase::<ResourceQuota>(&()), Watched::Limit(LimitKind::Quota)),
        (ApiResource::erase::<ServiceAccount>(&()), Watched::Limit(LimitKind::ServiceAccount)),
    ];
    let watches = watches.map(|(kind, watched)| objects(client, &sources.scope, kind, watched));
    let (of, scope) = (client.clone(), sources.scope.clone());
    let instrumentations =
        move |version| objects(&of, &scope, resource(version), Watched::Instrumentation(version));
    let instrumentations = begun_again(instrumentations, version, again);
    let nodes = sources.nodes.then(|| {
        let change = |event| Change { watched: Watched::Node, event };
        nodes::events(client).map(change).boxed()
    });
    let lease = sources.lease.as_ref().map(|name| {
        let change = |event| Change { watched: Watched::Lease, event };
        lease_events(client, name).map(change).boxed()
    });
    stream::select_all(watches.into_iter().chain([instrumentations]).chain(nodes).chain(lease))
}

/// Begins a watch of the version, and again whenever `again` is notified.
fn begun_again(
    begin: impl Fn(Version) -> BoxStream<'static, Change> + Send + 'static,
    version: watch::Receiver<Option<Version>>,
    again: &Arc<Notify>,
) -> BoxStream<'static, Change> {
    let again = Arc::clone(again);
    let known = stream::unfold((), move |()| {
        let mut version = version.clone();
        async move {
            let version = *version.wait_for(Option::is_some).await.ok()?;
            Some((version?, ()))
        }
    });
    let until_notified = move |version| {
        let again = Arc::clone(&again);
        begin(version).take_until(async move { again.notified().await })
    };
    known.map(until_notified).flatten().boxed()
}

/// Watches objects of one kind.
fn objects(
    client: &Client,
    scope: &Scope,
    kind: ApiResource,
    watched: Watched,
) -> BoxStream<'static, Change> {
    let client = client.clone();
    let events = scope.watch(move |namespace| {
        let (api, config) = place::<Whole>(&client, &kind, namespace, Config::default());
        follow(api, config)
    });
    let changes = events.map(move |event| Change { watched, event });
    changes.filter(|change| future::ready(!change.is_irrelevant())).boxed()
}

impl Change {
    /// Returns whether to drop an object: most ServiceAccounts do not restrict Secrets. Dropped objects of a list are
    /// treated as deleted, which is correct.
    fn is_irrelevant(&self) -> bool {
        let is_account = self.watched == Watched::Limit(LimitKind::ServiceAccount);
        let is_strict = |object: &Whole| {
            object
                .metadata
                .annotations
                .as_ref()
                .is_some_and(|set| set.contains_key(ENFORCE_MOUNTABLE_SECRETS))
        };
        matches!(&self.event, Ok(Event::InitApply(object)) if is_account && !is_strict(object))
    }
}

/// Returns the events of the Lease of the release, which is watched for the annotation that pauses all injection: it can be
/// annotated where the namespace of the release cannot be read, as by a controller that watches some namespaces only.
fn lease_events(client: &Client, ObjectName { namespace, name }: &ObjectName) -> Events<Whole> {
    let kind = ApiResource::erase::<Lease>(&());
    let api: Api<Whole> = Api::namespaced_with(client.clone(), namespace, &kind);
    follow(api, Config::default().fields(&format!("metadata.name={name}")))
}
