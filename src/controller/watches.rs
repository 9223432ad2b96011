//! Watches of objects, or of their metadata alone.

use std::fmt::Debug;

use futures::StreamExt;
use kube::{
    Client, Resource,
    api::ApiResource,
    core::DynamicResourceScope,
    runtime::{WatchStreamExt, watcher, watcher::Config},
};
use serde::de::DeserializeOwned;

use crate::scope::{Events, Patient, Scope, place};

/// Watches objects of a kind. Of [`Metadata`](super::reduced::Metadata), the API server sends
/// nothing else.
pub fn watch<K>(client: &Client, scope: &Scope, kind: ApiResource, config: Config) -> Events<K>
where
    K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
    K: Clone + DeserializeOwned + Debug + Send + 'static,
{
    let client = client.clone();
    scope.watch(move |namespace| {
        let (api, config) = place::<K>(&client, &kind, namespace, config.clone());
        watcher(api, config).backoff(Patient::default()).boxed()
    })
}

#[cfg(test)]
mod tests {
    use hyper::{Request, Response, header::ACCEPT};
    use k8s_openapi::api::core::v1::Pod;
    use kube::client::Body;

    use super::{super::reduced::Metadata, *};

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
