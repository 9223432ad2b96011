//! Applies the events of the watches to the store, and tracks the progress of their lists.

use std::{collections::BTreeSet, error::Error, mem};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::{watcher, watcher::Event};

use super::{changes::Change, pace::News, sources::Sources, watched::Watched};
use crate::{Writer, reduced::Whole};
use otel_webhook_inject::{limits::LimitKind, object};

/// The progress of each watch.
#[derive(Default)]
pub struct Lists {
    instrumentations: List,
    namespaces: List,
    nodes: List,
    lease: List,
    /// Whether the version of the API server was read, or could not be.
    server_is_asked: bool,
    limits: [List; LimitKind::ALL.len()],
}

/// The objects of a list in progress. Objects that it no longer contains are removed at its end.
#[derive(Default)]
struct List {
    seen: Option<BTreeSet<(String, String)>>,
    is_complete: bool,
    is_forbidden: bool,
}

impl Lists {
    /// Returns the lists before anything is read. What is not watched counts as listed.
    pub fn of(sources: &Sources) -> Self {
        let nodes = List { is_complete: !sources.nodes, ..List::default() };
        let lease = List { is_complete: sources.lease.is_none(), ..List::default() };
        Self { nodes, lease, server_is_asked: !sources.nodes, ..Self::default() }
    }

    /// Takes the version of the API server. Returns how much it affects.
    pub fn take_server(&mut self, writer: &mut Writer, version: Option<&str>) -> News {
        self.server_is_asked = true;
        News::of(writer.set_server_version(version))
    }

    /// Returns whether everything is listed, except for what may not be listed.
    pub fn are_complete(&self) -> bool {
        let needed = [&self.instrumentations, &self.namespaces];
        let known = |list: &List| list.is_complete || list.is_forbidden;
        let mut optional = self.limits.iter().chain([&self.nodes, &self.lease]);
        needed.iter().all(|list| list.is_complete) && optional.all(known) && self.server_is_asked
    }

    /// Returns whether Instrumentations are listed, and no list is in progress.
    pub fn are_instrumentations_complete(&self) -> bool {
        self.instrumentations.is_complete && self.instrumentations.seen.is_none()
    }

    /// Applies a change. Returns how much it affects.
    pub fn take(&mut self, writer: &mut Writer, change: Change) -> News {
        let Change { watched, event } = change;
        let list = match watched {
            Watched::Instrumentation(_) => &mut self.instrumentations,
            Watched::Namespace => &mut self.namespaces,
            Watched::Node => &mut self.nodes,
            Watched::Lease => &mut self.lease,
            Watched::Limit(kind) => &mut self.limits[kind as usize],
        };
        match event {
            Ok(event) => list.take(writer, watched, event),
            Err(error) => {
                list.fail(watched, &error);
                News::Nothing
            }
        }
    }
}

impl List {
    fn take(&mut self, writer: &mut Writer, watched: Watched, event: Event<Whole>) -> News {
        match event {
            // Each attempt to list begins with this event, even if it fails.
            Event::Init => {
                self.seen = Some(BTreeSet::new());
                News::Nothing
            }
            Event::InitApply(object) => {
                if let Some(seen) = &mut self.seen {
                    seen.insert(identity(&object));
                }
                News::of(watched.put(writer, &object))
            }
            Event::Apply(object) => {
                self.work_again(watched);
                let is_changed = watched.put(writer, &object);
                if is_changed && watched == Watched::Limit(LimitKind::Quota) {
                    News::Usage
                } else {
                    News::of(is_changed)
                }
            }
            Event::Delete(object) => {
                self.work_again(watched);
                let (namespace, name) = identity(&object);
                News::of(watched.forget(writer, &namespace, &name))
            }
            Event::InitDone => {
                self.work_again(watched);
                self.is_complete = true;
                News::of(watched.keep(writer, &self.seen.take().unwrap_or_default()))
            }
        }
    }

    /// Logs why a watch failed. A missing permission for what the webhook can do without is logged once.
    fn fail(&mut self, watched: Watched, error: &watcher::Error) {
        let kind = watched.kind();
        let error = Advice { error, watched };
        match watched.optional().filter(|_| error.is_forbidden()) {
            None => tracing::warn!(kind, %error, "a watch failed; retrying"),
            Some(kinds) if !mem::replace(&mut self.is_forbidden, true) => {
                tracing::warn!(kind, %error, "a watch is forbidden; {kinds} are used only as last read");
            }
            Some(_) => {}
        }
    }

    fn work_again(&mut self, watched: Watched) {
        if mem::take(&mut self.is_forbidden) {
            let kinds = watched.optional().unwrap_or_default();
            tracing::info!(kind = watched.kind(), "{kinds} can be read again");
        }
    }
}

impl Watched {
    /// Documents are made one by one, since they are many times as large as the text of their objects.
    fn put(self, writer: &mut Writer, object: &Whole) -> bool {
        match self {
            Self::Instrumentation(_) => {
                let size = object.spec.as_ref().map_or(0, |spec| spec.get().len() as u64);
                writer.put_instrumentation(&self.document(object, writer.fits(size)), size);
                true
            }
            Self::Namespace => writer.put(&self.document(object, false)),
            Self::Node => writer.put_node(&self.document(object, false)),
            Self::Lease => {
                let document = self.document(object, false);
                let is_paused = object::is_paused(&document["metadata"]);
                writer.set_paused_lease(is_paused.then(|| object::name_of(&document)))
            }
            Self::Limit(kind) => writer.put_limit(kind, &self.document(object, true)),
        }
    }

    fn forget(self, writer: &mut Writer, namespace: &str, name: &str) -> bool {
        match self {
            Self::Instrumentation(_) => writer.forget_instrumentation(namespace, name),
            Self::Namespace => writer.forget_namespace(name),
            Self::Node => return writer.forget_node(name),
            Self::Lease => return writer.set_paused_lease(None),
            Self::Limit(kind) => return writer.forget_limit(kind, namespace, name),
        }
        true
    }

    fn keep(self, writer: &mut Writer, seen: &BTreeSet<(String, String)>) -> bool {
        let is_seen = |namespace: &str, name: &str| seen.contains(&(namespace.to_owned(), name.to_owned()));
        match self {
            Self::Instrumentation(_) => writer.keep_instrumentations(is_seen),
            Self::Namespace => writer.keep_namespaces(|name| is_seen("", name)),
            Self::Node => return writer.keep_nodes(|name| is_seen("", name)),
            Self::Lease => return seen.is_empty() && writer.set_paused_lease(None),
            Self::Limit(kind) => return writer.keep_limits(kind, is_seen),
        }
        true
    }
}

/// Returns the namespace and the name.
fn identity(object: &Whole) -> (String, String) {
    let ObjectMeta { namespace, name, .. } = &object.metadata;
    (namespace.clone().unwrap_or_default(), name.clone().unwrap_or_default())
}

/// The error of a watch, with a remedy if there is one.
struct Advice<'e> {
    error: &'e watcher::Error,
    watched: Watched,
}

impl Advice<'_> {
    fn is_forbidden(&self) -> bool {
        self.status() == 403
    }

    fn status(&self) -> u16 {
        match self.error {
            watcher::Error::InitialListFailed(kube::Error::Api(status))
            | watcher::Error::WatchStartFailed(kube::Error::Api(status))
            | watcher::Error::WatchFailed(kube::Error::Api(status))
            | watcher::Error::WatchError(status) => status.code,
            _ => 0,
        }
    }
}

impl std::fmt::Display for Advice<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = self.error.to_string();
        f.write_str(&text)?;
        // A failed connection is only "client error (Connect)"; the reason is at the end of the chain.
        if let Some(cause) = root_cause(self.error).filter(|cause| !text.contains(cause)) {
            write!(f, ": {cause}")?;
        }
        match (self.status(), self.watched) {
            (404, Watched::Instrumentation(_)) => {
                write!(f, "; is the CRD installed? `otel-webhook crd | kubectl apply --server-side -f -`")
            }
            (403, Watched::Lease) => {
                write!(
                    f,
                    "; grant the service account list and watch on it: `otel-webhook rbac --controller` prints the Role"
                )
            }
            (403, _) => {
                let verbs = "list and watch on it in all namespaces";
                write!(f, "; grant the service account {verbs}: `otel-webhook rbac` prints the roles")
            }
            _ => Ok(()),
        }
    }
}

fn root_cause(error: &dyn Error) -> Option<String> {
    std::iter::successors(error.source(), |&error| error.source()).last().map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("client error (Connect)")]
    struct Connect(#[source] io::Error);

    #[test]
    fn the_cause_of_a_failed_watch_is_told_once() {
        let told = |error: watcher::Error| Advice { error: &error, watched: Watched::Namespace }.to_string();
        let refused = Connect(io::ErrorKind::ConnectionRefused.into());
        let error = watcher::Error::InitialListFailed(kube::Error::Service(refused.into()));
        let expected =
            "failed to perform initial object list: ServiceError: client error (Connect): connection refused";
        assert_eq!(told(error), expected);
        let plain: io::Error = io::ErrorKind::ConnectionRefused.into();
        let error = watcher::Error::InitialListFailed(kube::Error::Service(plain.into()));
        assert_eq!(told(error), "failed to perform initial object list: ServiceError: connection refused");
    }
}
