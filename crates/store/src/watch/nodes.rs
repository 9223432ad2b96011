//! The nodes and the version of the API server, watched for deliveries of `auto` only.

use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Client,
    api::{ApiResource, NotUsed, Object},
    runtime::{watcher, watcher::Event},
};
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;

use crate::{
    reduced::Whole,
    scope::{follow, place},
};

/// How many nodes a page has. Each has the list of its images, which is not kept.
const PAGE: u32 = 100;

/// How often the version of the API server is read.
const VERSION_PERIOD: Duration = Duration::from_mins(5);

/// A node with what is used of it.
type Reduced = Object<NotUsed, Status>;

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    node_info: NodeInfo,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeInfo {
    kubelet_version: String,
    container_runtime_version: String,
}

/// Returns the events of the nodes.
pub fn events(client: &Client) -> impl Stream<Item = watcher::Result<Event<Whole>>> + Send + use<> {
    let kind = ApiResource::erase::<Node>(&());
    let config = watcher::Config::default().page_size(PAGE);
    let (api, config) = place::<Reduced>(client, &kind, None, config);
    follow(api, config).map(|event| event.map(reduced))
}

/// Returns the version of the API server, again and again; none while it cannot be read.
pub fn versions(client: &Client) -> impl Stream<Item = Option<String>> + Send + use<> {
    stream::unfold((client.clone(), Duration::ZERO), |(client, wait)| async move {
        tokio::time::sleep(wait).await;
        let version = client.apiserver_version().await;
        if let Err(error) = &version {
            tracing::warn!(%error, "the version of the API server cannot be read; no image is mounted with auto");
        }
        Some((version.ok().map(|version| version.git_version), (client, VERSION_PERIOD)))
    })
}

fn reduced(event: Event<Reduced>) -> Event<Whole> {
    let seen = |node: Reduced| {
        let ObjectMeta { name, labels, resource_version, .. } = node.metadata;
        let metadata = ObjectMeta { name, labels, resource_version, ..ObjectMeta::default() };
        Whole { metadata, spec: None, status: to_raw_value(&node.status.unwrap_or_default()).ok() }
    };
    match event {
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
        Event::InitApply(node) => Event::InitApply(seen(node)),
        Event::Apply(node) => Event::Apply(seen(node)),
        Event::Delete(node) => Event::Delete(seen(node)),
    }
}
