//! All watches as one stream of changes.

use std::sync::Arc;

use futures::{
    Stream, StreamExt, future,
    stream::{self, BoxStream},
};
use k8s_openapi::api::core::v1::{LimitRange, Namespace, ResourceQuota, ServiceAccount};
use kube::{
    Client,
    api::ApiResource,
    runtime::{watcher, watcher::Config, watcher::Event},
};

use tokio::sync::Notify;

use super::{lease, nodes, sources::Sources, watched::Watched};
use crate::{
    reduced::Whole,
    scope::{Scope, follow, place},
};
use otel_webhook_api::Instrumentation;
use otel_webhook_inject::limits::{ENFORCE_MOUNTABLE_SECRETS, LimitKind};

/// An event of a watch.
pub struct Change {
    /// The watch.
    pub watched: Watched,
    /// Its objects.
    pub told: Result<Event<Whole>, watcher::Error>,
}

/// Returns all watches. That of Instrumentations begins again, with a list, whenever `again` is notified.
pub fn changes(
    client: &Client,
    sources: &Sources,
    again: &Arc<Notify>,
) -> impl Stream<Item = Change> + use<> {
    let watches = [
        (ApiResource::erase::<Instrumentation>(&()), Watched::Instrumentation),
        (ApiResource::erase::<Namespace>(&()), Watched::Namespace),
        (ApiResource::erase::<LimitRange>(&()), Watched::Limit(LimitKind::Range)),
        (ApiResource::erase::<ResourceQuota>(&()), Watched::Limit(LimitKind::Quota)),
        (ApiResource::erase::<ServiceAccount>(&()), Watched::Limit(LimitKind::ServiceAccount)),
    ];
    let watches = watches.map(|(kind, watched)| {
        let (client, scope) = (client.clone(), sources.scope.clone());
        let begin = move || watch(&client, &scope, kind.clone(), watched);
        if watched == Watched::Instrumentation { begun_again(begin, again) } else { begin() }
    });
    let nodes = sources.nodes.then(|| {
        let change = |told| Change { watched: Watched::Node, told };
        nodes::events(client).map(change).boxed()
    });
    let lease = sources.lease.as_ref().map(|name| {
        let change = |told| Change { watched: Watched::Lease, told };
        lease::events(client, name).map(change).boxed()
    });
    stream::select_all(watches.into_iter().chain(nodes).chain(lease))
}

/// Begins a watch again whenever `again` is notified.
fn begun_again(
    begin: impl Fn() -> BoxStream<'static, Change> + Send + 'static,
    again: &Arc<Notify>,
) -> BoxStream<'static, Change> {
    let again = Arc::clone(again);
    let until_notified = move || {
        let again = Arc::clone(&again);
        begin().take_until(async move { again.notified().await })
    };
    stream::repeat_with(until_notified).flatten().boxed()
}

/// Watches objects of one kind.
fn watch(client: &Client, scope: &Scope, kind: ApiResource, watched: Watched) -> BoxStream<'static, Change> {
    let client = client.clone();
    let events = scope.watch(move |namespace| {
        let (api, config) = place::<Whole>(&client, &kind, namespace, Config::default());
        follow(api, config)
    });
    let changes = events.map(move |told| Change { watched, told });
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
        matches!(&self.told, Ok(Event::InitApply(object)) if is_account && !is_strict(object))
    }
}
