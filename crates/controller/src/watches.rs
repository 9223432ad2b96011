//! Watches of objects, or of their metadata alone.

use std::{collections::HashMap, fmt::Debug};

use futures::{StreamExt, stream::BoxStream};
use kube::{
    Client, Resource,
    api::ApiResource,
    core::DynamicResourceScope,
    runtime::{
        watcher,
        watcher::{Config, Event},
    },
};
use serde::de::DeserializeOwned;

use otel_webhook_store::scope::{Events, Scope, follow, place};

/// Watches objects of a kind. Of [`Metadata`](otel_webhook_store::reduced::Metadata), the API server sends
/// nothing else.
pub fn watch<K>(client: &Client, scope: &Scope, kind: ApiResource, config: Config) -> Events<K>
where
    K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
    K: Clone + DeserializeOwned + Debug + Send + 'static,
{
    let client = client.clone();
    scope.watch(move |namespace| {
        let (api, config) = place::<K>(&client, &kind, namespace, config.clone());
        follow(api, config)
    })
}

/// Objects of one kind, by a watch.
pub struct Watched<K, V> {
    events: BoxStream<'static, watcher::Result<Event<K>>>,
    /// The objects of a list in progress.
    listing: HashMap<String, V>,
    objects: HashMap<String, V>,
    is_listed: bool,
    kind: &'static str,
    reduce: fn(K) -> Option<(String, V)>,
}

impl<K, V> Watched<K, V> {
    /// Returns the objects of a watch, each reduced when it arrives to its name and what is kept.
    pub fn new(
        events: BoxStream<'static, watcher::Result<Event<K>>>,
        kind: &'static str,
        reduce: fn(K) -> Option<(String, V)>,
    ) -> Self {
        Self { events, listing: HashMap::new(), objects: HashMap::new(), is_listed: false, kind, reduce }
    }
}

impl<K: Clone + Send + 'static, V: PartialEq> Watched<K, V> {
    /// Returns whether all objects are known.
    pub fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// Returns the objects by their names.
    pub fn objects(&self) -> &HashMap<String, V> {
        &self.objects
    }

    /// Waits for an event. Returns whether something has changed.
    pub async fn step(&mut self) -> bool {
        match self.events.next().await {
            Some(Ok(event)) => self.take(event),
            Some(Err(error)) => {
                tracing::warn!(kind = self.kind, %error, "a watch failed; retrying");
                false
            }
            // Watches have no end.
            None => std::future::pending().await,
        }
    }

    fn take(&mut self, event: Event<K>) -> bool {
        let reduce = self.reduce;
        match event {
            Event::Init => self.listing.clear(),
            Event::InitApply(object) => self.listing.extend(reduce(object)),
            Event::InitDone => {
                self.objects = std::mem::take(&mut self.listing);
                self.is_listed = true;
                return true;
            }
            Event::Apply(object) => {
                let Some((name, value)) = reduce(object) else { return false };
                let is_changed = self.objects.get(&name) != Some(&value);
                self.objects.insert(name, value);
                return is_changed;
            }
            Event::Delete(object) => {
                return reduce(object).is_some_and(|(name, _)| self.objects.remove(&name).is_some());
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use hyper::{Request, Response, header::ACCEPT};
    use k8s_openapi::api::core::v1::Pod;
    use kube::client::Body;

    use super::*;
    use otel_webhook_store::reduced::Metadata;

    #[tokio::test]
    async fn metadata_alone_is_asked_for() {
        let (told, mut asked) = futures::channel::mpsc::unbounded();
        let answer = move |request: Request<Body>| {
            let accepted = request.headers()[ACCEPT].to_str().expect("text").to_owned();
            let sent = told.unbounded_send(accepted);
            async move {
                sent.expect("the test listens");
                std::future::pending::<Result<Response<Body>, std::io::Error>>().await
            }
        };
        let client = Client::new(tower::service_fn(answer), "default");
        let kind = ApiResource::erase::<Pod>(&());
        let mut events = watch::<Metadata>(&client, &Scope::Cluster, kind, Config::default());
        let asked = tokio::select! {
            asked = asked.next() => asked.expect("a request"),
            () = async { while events.next().await.is_some() {} } => panic!("watches have no end"),
        };
        assert!(asked.contains("as=PartialObjectMetadataList"), "{asked}");
    }
}
