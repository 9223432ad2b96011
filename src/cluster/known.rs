//! The objects that the webhook watches, listed once with the permissions of the user, and the decision with them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{LimitRange, Namespace, Node, ResourceQuota, ServiceAccount},
};
use kube::core::ApiResource;
use serde_json::Value;

use super::{
    object::{labels, text, typed},
    reader::{Asked, ClusterReader, FailedRequest, Part},
    running::Release,
};
use crate::flags::InjectionFlags;
use otel_webhook_fleet::restart::annotations::RESTART;
use otel_webhook_inject::{
    Outcome, Settings,
    limits::LimitKind,
    mistakes::{self, Mistake},
    nearly::{self, Near},
    object,
    size::shown,
    template::{Around, Workload},
};
use otel_webhook_server::{registration::Labels, subject::Subject};
use otel_webhook_store::{
    Snapshot, Writer,
    owners::OwnerBook,
    unread::{Unread, Unsure},
};

/// The annotation by which a pod or a namespace opts in to the operator's collector sidecar.
pub const COLLECTOR: &str = "sidecar.opentelemetry.io/inject";

/// The objects and settings that decisions depend on.
pub struct Known {
    /// The settings of the installation.
    pub settings: Settings,
    /// The store of the webhook.
    pub snapshot: Arc<Snapshot>,
    /// The stored Instrumentations, by namespace and name.
    pub instrumentations: HashMap<(String, String), Value>,
    /// Owners of ReplicaSets without a Deployment.
    pub book: OwnerBook,
    /// Labels of each namespace.
    pub namespaces: BTreeMap<String, Labels>,
    /// The annotations of namespaces about restarts.
    pub consents: BTreeMap<String, String>,
    /// Namespaces that opt in to the operator's collector sidecar.
    pub collectors: BTreeSet<String>,
    /// Annotations and labels of namespaces that have no effect.
    pub mistakes: Vec<(Subject, Mistake)>,
    /// What the user may not read.
    pub unread: Unread,
    /// The requests that failed.
    pub failed: Vec<FailedRequest>,
    writer: Writer,
}

/// The injection flags that decisions are based on.
#[derive(Clone, Debug)]
pub struct Flags<'f> {
    /// The flags.
    pub injection: &'f InjectionFlags,
    /// The objects that can pause all injection; none if no webhook was found.
    pub release: Option<Release>,
    /// Why the webhook's own flags are unknown, if these stand in for them.
    pub unread: Option<String>,
    /// Instrumentations that are not stored yet, and are used as if they were.
    pub ahead: Vec<Value>,
}

/// The decision about a new pod.
#[derive(Debug)]
pub struct Decided {
    /// The findings that are certain, and the patch.
    pub outcome: Outcome,
    /// The languages for which the result is unknown.
    pub unsure: Vec<Unsure>,
}

impl Known {
    /// Lists the objects for all namespaces, or for one.
    pub async fn list(cluster: &ClusterReader, scope: Option<&str>, flags: Flags<'_>) -> Self {
        let namespace = flags.release.as_ref().map(|release| &*release.namespace);
        let writer = flags.injection.writer(namespace);
        let settings = flags.injection.settings();
        let default = settings.default_instrumentation.clone();
        let mut known = Self {
            settings,
            snapshot: Arc::default(),
            instrumentations: HashMap::new(),
            book: OwnerBook::default(),
            namespaces: BTreeMap::new(),
            consents: BTreeMap::new(),
            collectors: BTreeSet::new(),
            mistakes: Vec::new(),
            unread: Unread { flags: flags.unread, default, ..Unread::default() },
            failed: Vec::new(),
            writer,
        };
        known.list_namespaces(cluster, scope).await;
        if let Some(release) = &flags.release {
            known.read_release(cluster, scope, release).await;
        }
        known.list_instrumentations(cluster, scope).await;
        flags.ahead.into_iter().for_each(|object| known.put_instrumentation(object));
        let ignored = list_limits(cluster, scope, &mut known.writer).await;
        known.failed.extend(ignored);
        if flags.injection.watches_nodes() {
            known.list_nodes(cluster).await;
        }
        known.publish();
        known
    }

    async fn list_namespaces(&mut self, cluster: &ClusterReader, scope: Option<&str>) {
        let kind = ApiResource::erase::<Namespace>(&());
        let take = |namespace: Value| {
            let name = text(&namespace["metadata"]["name"]);
            if namespace["metadata"]["annotations"][COLLECTOR].as_str().is_some_and(|value| value != "false")
            {
                self.collectors.insert(name.clone());
            }
            if let Some(consent) = namespace["metadata"]["annotations"][RESTART].as_str() {
                self.consents.insert(name.clone(), consent.to_owned());
            }
            let subject = Subject::new("Namespace", "", &name);
            let mistakes = mistakes::of(&namespace, "v1", "Namespace").into_iter();
            self.mistakes.extend(mistakes.map(|mistake| (subject.clone(), mistake)));
            self.namespaces.insert(name, labels(&namespace));
            self.writer.put(&typed(namespace, "v1", "Namespace"));
        };
        let told = match scope {
            Some(name) => {
                let found = cluster.get_value(&kind, None, name).await;
                found.map(|found| found.into_iter().for_each(take))
            }
            None => cluster.each(&kind, None, Part::Metadata, take).await,
        };
        self.unread.namespaces = told.is_err();
        self.failed.extend(told.err());
    }

    /// Reads what can pause all injection.
    async fn read_release(&mut self, cluster: &ClusterReader, scope: Option<&str>, release: &Release) {
        let Release { namespace, lease } = release;
        let of_pause = |FailedRequest { question, problem }| {
            let problem = format!("{problem}; whether all injection is paused by it is not known");
            FailedRequest { question, problem }
        };
        // The others are listed.
        if scope.is_some_and(|scope| scope != namespace) {
            let kind = ApiResource::erase::<Namespace>(&());
            match cluster.get_value(&kind, None, namespace).await {
                Ok(Some(found)) => {
                    self.writer.put(&typed(found, "v1", "Namespace"));
                }
                Ok(None) => {}
                Err(failed) => self.failed.push(of_pause(failed)),
            }
        }
        let Some(name) = lease else { return };
        match cluster.get_value(&ApiResource::erase::<Lease>(&()), Some(namespace), name).await {
            Ok(found) => {
                let pauses = found.filter(|lease| object::is_paused(&lease["metadata"]));
                self.writer.set_paused_lease(pauses.as_ref().map(object::name_of));
            }
            Err(failed) => self.failed.push(of_pause(failed)),
        }
    }

    /// Lists the Instrumentations of all namespaces, since a pod may name those of others; if the user may not, those
    /// of the namespace.
    async fn list_instrumentations(&mut self, cluster: &ClusterReader, scope: Option<&str>) {
        let Err(refused) = self.take_instrumentations(cluster, None).await else { return };
        self.unread.listed = Some(BTreeSet::new());
        let Some(name) = scope else { return self.failed.push(refused) };
        let of_default = self.unread.default.as_ref().map(|default| default.namespace.to_string());
        for namespace in
            [Some(name.to_owned()), of_default.filter(|other| other != name)].into_iter().flatten()
        {
            let told = self.list_more(cluster, &namespace).await;
            self.failed.extend(told.err().filter(|_| namespace == name));
        }
    }

    /// Lists the Instrumentations of these namespaces as well, as far as the user may. Returns whether some were
    /// listed that were not before.
    pub async fn learn(&mut self, cluster: &ClusterReader, namespaces: BTreeSet<String>) -> bool {
        let mut is_more = false;
        for namespace in namespaces {
            is_more |= self.list_more(cluster, &namespace).await.is_ok();
        }
        self.publish();
        is_more
    }

    async fn list_more(&mut self, cluster: &ClusterReader, namespace: &str) -> Asked<()> {
        self.take_instrumentations(cluster, Some(namespace)).await?;
        self.unread.listed.get_or_insert_default().insert(namespace.to_owned());
        Ok(())
    }

    async fn take_instrumentations(&mut self, cluster: &ClusterReader, namespace: Option<&str>) -> Asked<()> {
        let kind = &cluster.instrumentations;
        let take = |object: Value| {
            self.put_instrumentation(typed(object, &kind.api_version, &kind.kind));
        };
        cluster.each(kind, namespace, Part::Whole, take).await
    }

    /// Lists the nodes. Without them, the results may differ from the webhook's.
    async fn list_nodes(&mut self, cluster: &ClusterReader) {
        let take = |node: Value| {
            self.writer.put_node(&node);
        };
        match cluster.each(&ApiResource::erase::<Node>(&()), None, Part::Whole, take).await {
            Ok(()) => {
                self.writer.keep_nodes(|_| true);
                self.writer.set_server_version(cluster.version.as_deref());
            }
            Err(FailedRequest { question, problem }) => {
                let problem = format!("{problem}; the results have init containers for the delivery auto");
                self.failed.push(FailedRequest { question, problem });
            }
        }
    }

    fn put_instrumentation(&mut self, object: Value) {
        self.writer.put(&object);
        let metadata = &object["metadata"];
        self.instrumentations.insert((text(&metadata["namespace"]), text(&metadata["name"])), object);
    }

    fn publish(&mut self) {
        self.writer.publish();
        self.snapshot = self.writer.store().snapshot();
    }

    /// Returns the largest Instrumentations of a namespace, with the memory that each is charged.
    pub fn largest(&self, namespace: &str) -> String {
        let charges = self.writer.charges(namespace).into_iter().take(3);
        charges.map(|(name, charge)| format!("{name} ({})", shown(charge))).collect::<Vec<_>>().join(", ")
    }

    /// Returns what the webhook would decide about a new pod of a workload.
    ///
    /// # Errors
    /// If the pod cannot be read.
    pub fn decide(&self, workload: &Workload<'_>, namespace: &str) -> Result<Decided, String> {
        let outcome = workload.outcome(&self.around(namespace)).map_err(|problem| problem.to_string())?;
        let (findings, unsure) = self.unread.divide(namespace, outcome.findings);
        Ok(Decided { outcome: Outcome { findings, ..outcome }, unsure })
    }

    /// Returns the Instrumentations that would opt a workload in but for one label, where all that opts in is readable.
    pub fn one_label_away(&self, workload: &Workload<'_>, namespace: &str, decided: &Decided) -> Vec<Near> {
        if !decided.unsure.is_empty() {
            return Vec::new();
        }
        nearly::one_label_away(workload, &self.around(namespace), &decided.outcome.findings)
    }

    /// Returns what decisions about the workloads of a namespace depend on.
    pub fn around<'k>(&'k self, namespace: &'k str) -> Around<'k> {
        let catalogue = &self.snapshot.catalogue;
        Around { namespace, catalogue, settings: &self.settings, owners: &self.book }
    }
}

/// Lists LimitRanges, ResourceQuotas and ServiceAccounts. Without them, the results may differ from the webhook's.
async fn list_limits(
    cluster: &ClusterReader,
    scope: Option<&str>,
    writer: &mut Writer,
) -> Vec<FailedRequest> {
    let mut failed = Vec::new();
    for (kind, resource, part) in [
        (LimitKind::Range, ApiResource::erase::<LimitRange>(&()), Part::Whole),
        (LimitKind::Quota, ApiResource::erase::<ResourceQuota>(&()), Part::Whole),
        (LimitKind::ServiceAccount, ApiResource::erase::<ServiceAccount>(&()), Part::Metadata),
    ] {
        let take = |object: Value| {
            writer.put_limit(kind, &object);
        };
        let told = cluster.each(&resource, scope, part, take).await;
        failed.extend(told.err().map(|FailedRequest { question, problem }| {
            let problem = format!("{problem}; the results ignore these objects");
            FailedRequest { question, problem }
        }));
    }
    failed
}
