//! The Lease of the release, watched for the annotation that pauses all injection. It can be annotated where the
//! namespace of the release cannot be read, as by a controller that watches some namespaces only.

use futures::Stream;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client,
    api::ApiResource,
    runtime::{WatchStreamExt, watcher, watcher::Event},
};

use crate::{reduced::Whole, scope::Patient};
use otel_webhook_inject::reason::ObjectName;

/// Returns the events of the Lease. The replica that leads renews it every few seconds.
pub fn events(
    client: &Client,
    ObjectName { namespace, name }: &ObjectName,
) -> impl Stream<Item = watcher::Result<Event<Whole>>> + Send + use<> {
    let kind = ApiResource::erase::<Lease>(&());
    let api: Api<Whole> = Api::namespaced_with(client.clone(), namespace, &kind);
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    watcher(api, config).backoff(Patient::default())
}
