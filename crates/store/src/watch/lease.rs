//! The Lease of the release, watched for the annotation that pauses all injection. It can be annotated where the
//! namespace of the release cannot be read, as by a controller that watches some namespaces only.

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, api::ApiResource, runtime::watcher::Config};

use crate::{
    reduced::Whole,
    scope::{Events, follow},
};
use otel_webhook_inject::reason::ObjectName;

/// Returns the events of the Lease. The replica that leads renews it every few seconds.
pub fn events(client: &Client, ObjectName { namespace, name }: &ObjectName) -> Events<Whole> {
    let kind = ApiResource::erase::<Lease>(&());
    let api: Api<Whole> = Api::namespaced_with(client.clone(), namespace, &kind);
    follow(api, Config::default().fields(&format!("metadata.name={name}")))
}
