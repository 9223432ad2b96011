//! Kubernetes watches as the source: Instrumentations, LimitRanges and ResourceQuotas completely, namespaces and
//! ServiceAccounts by their metadata, nodes, if they are watched, by labels and versions, and the Lease of the release.
//!
//! Objects are watched untyped and parsed one by one, since a typed watch fails as a whole on the first object that
//! cannot be parsed, and since a parsed object is many times as large as its text.

mod changes;
mod lists;
mod nodes;
mod pace;
mod sources;
mod watched;

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use kube::Client;
use serde_json::{Value, json};
use tokio::{sync::Notify, time::Instant};

use super::Writer;
use crate::served;
use changes::{Change, changes};
use lists::Lists;
use otel_webhook_api::Version;
use otel_webhook_inject::limits::LimitKind;
use pace::{News, Pace};
pub use sources::Sources;

/// How many events are processed before a snapshot: a burst is published once, a single event immediately. Until
/// then, the text of the objects is in memory.
const BATCH: usize = 64;

/// How often Instrumentations are listed again if there is memory for some that were not used, and are not kept.
const LIST_AGAIN: Duration = Duration::from_mins(2);

/// Returns the rules of a role for the watches.
pub fn rules() -> [Value; 3] {
    let limits = LimitKind::ALL.map(LimitKind::resource);
    [
        json!({"apiGroups": ["opentelemetry.io"], "resources": ["instrumentations"], "verbs": ["list", "watch"]}),
        json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]}),
        json!({"apiGroups": [""], "resources": limits, "verbs": ["list", "watch"]}),
    ]
}

/// Returns the rules of a role for the watch of nodes.
pub fn node_rules() -> [Value; 1] {
    [json!({"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]})]
}

/// Returns the rules of a Role for the watch of the Lease. The name `LEASE` is a placeholder.
pub fn lease_rules() -> [Value; 1] {
    [json!({
        "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": ["LEASE"],
        "verbs": ["list", "watch"],
    })]
}

/// Something new.
#[expect(clippy::large_enum_variant, reason = "nearly all are changes")]
enum Update {
    Change(Change),
    Server(Option<String>),
    /// Instrumentations are read and written in this version.
    Version(Version),
    /// [`LIST_AGAIN`] has passed.
    Elapsed,
}

/// Watches and publishes, forever, in the namespaces of the sources. Calls `on_ready` once everything is listed: a pod that is injected before its
/// LimitRanges and ResourceQuotas are known might be rejected. It does not wait for those that may not be listed.
/// See docs/adr/0010-limits-are-watched.md.
pub async fn follow(client: Client, sources: Sources, mut writer: Writer, on_ready: impl FnOnce()) {
    let versions = if sources.nodes { nodes::versions(&client).boxed() } else { stream::pending().boxed() };
    let again = Arc::new(Notify::new());
    let (current, version) = tokio::sync::watch::channel(None);
    let changes = changes(&client, &sources, version, &again).map(Update::Change);
    let served = served::versions(client).map(Update::Version).boxed();
    let elapsed =
        stream::repeat(()).then(|()| tokio::time::sleep(LIST_AGAIN)).map(|()| Update::Elapsed).boxed();
    let others = stream::select_all([versions.map(Update::Server).boxed(), elapsed, served]);
    let mut changes = stream::select(changes, others).ready_chunks(BATCH);
    let (mut lists, mut pace) = (Lists::of(&sources), Pace::default());
    let mut on_ready = Some(on_ready);
    loop {
        let batch = match pace.until() {
            None => changes.next().await,
            Some(until) => match tokio::time::timeout_at(until, changes.next()).await {
                Ok(batch) => batch,
                Err(_) => Some(Vec::new()),
            },
        };
        let Some(batch) = batch else { return };
        let take = |update| match update {
            Update::Change(change) => lists.take(&mut writer, change),
            Update::Server(version) => lists.take_server(&mut writer, version.as_deref()),
            Update::Version(version) => {
                writer.set_version(version);
                if current.send_replace(Some(version)).is_some() {
                    again.notify_one();
                }
                News::Nothing
            }
            Update::Elapsed => {
                if lists.are_instrumentations_complete() && writer.has_room_for_unused() {
                    again.notify_one();
                }
                News::Nothing
            }
        };
        let news = batch.into_iter().map(take).max();
        if pace.is_due(news.unwrap_or(News::Nothing), Instant::now()) {
            writer.publish();
        }
        if lists.are_complete()
            && let Some(on_ready) = on_ready.take()
        {
            on_ready();
        }
    }
}
