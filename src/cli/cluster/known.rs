//! The objects that the webhook watches, listed once with the permissions of the user, and the decision with them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use k8s_openapi::api::core::v1::{LimitRange, Namespace, ResourceQuota, ServiceAccount};
use kube::core::ApiResource;
use serde_json::Value;

use super::{
    object::{labels, text, typed},
    reader::{ClusterReader, NotTold, Part},
    registration::Labels,
};
use crate::{
    cli::flags::InjectionFlags,
    store::{Snapshot, Writer, owners::OwnerBook},
};
use otel_webhook_api::Instrumentation;
use otel_webhook_inject::{
    Outcome, Settings,
    limits::LimitKind,
    template::{Around, Workload},
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
    /// Namespaces that opt in to the operator's collector sidecar.
    pub collectors: BTreeSet<String>,
    /// The requests that failed.
    pub not_told: Vec<NotTold>,
}

impl Known {
    /// Lists the objects for all namespaces, or for one.
    pub async fn list(cluster: &ClusterReader, scope: Option<&str>, injection: &InjectionFlags) -> Self {
        let (mut writer, mut instrumentations) = (injection.writer(), HashMap::new());
        let (mut collectors, mut labels_of, mut not_told) = (BTreeSet::new(), BTreeMap::new(), Vec::new());
        let namespaces = ApiResource::erase::<Namespace>(&());
        let mut take = |namespace: Value| {
            let name = text(&namespace["metadata"]["name"]);
            if namespace["metadata"]["annotations"][COLLECTOR].as_str().is_some_and(|value| value != "false")
            {
                collectors.insert(name.clone());
            }
            labels_of.insert(name, labels(&namespace));
            writer.put(&typed(namespace, "v1", "Namespace"));
        };
        let told = match scope {
            Some(name) => {
                let found = cluster.get_value(&namespaces, None, name).await;
                found.map(|found| found.into_iter().for_each(&mut take))
            }
            None => cluster.each(&namespaces, None, Part::Metadata, take).await,
        };
        not_told.extend(told.err());
        let kind = ApiResource::erase::<Instrumentation>(&());
        let mut take = |object: Value| {
            let object = typed(object, &kind.api_version, &kind.kind);
            writer.put(&object);
            let metadata = &object["metadata"];
            instrumentations.insert((text(&metadata["namespace"]), text(&metadata["name"])), object);
        };
        // A pod may name Instrumentations of other namespaces.
        let mut told = cluster.each(&kind, None, Part::Whole, &mut take).await;
        if let (Err(_), Some(_)) = (&told, scope) {
            told = cluster.each(&kind, scope, Part::Whole, take).await.and(told);
        }
        not_told.extend(told.err());
        not_told.extend(list_limits(cluster, scope, &mut writer).await);
        writer.publish();
        Self {
            settings: injection.settings(),
            snapshot: writer.store().snapshot(),
            instrumentations,
            book: OwnerBook::default(),
            namespaces: labels_of,
            collectors,
            not_told,
        }
    }

    /// Returns what the webhook would decide about a new pod of a workload.
    ///
    /// # Errors
    /// If the pod cannot be read.
    pub fn decide(&self, workload: &Workload<'_>, namespace: &str) -> Result<Outcome, String> {
        workload.outcome(&self.around(namespace)).map_err(|problem| problem.to_string())
    }

    /// Returns what decisions about the workloads of a namespace depend on.
    pub fn around<'k>(&'k self, namespace: &'k str) -> Around<'k> {
        let catalogue = &self.snapshot.catalogue;
        Around { namespace, catalogue, settings: &self.settings, owners: &self.book }
    }
}

/// Lists LimitRanges, ResourceQuotas and ServiceAccounts. Without them, the results may differ from the webhook's.
async fn list_limits(cluster: &ClusterReader, scope: Option<&str>, writer: &mut Writer) -> Vec<NotTold> {
    let mut not_told = Vec::new();
    for (kind, resource, part) in [
        (LimitKind::Range, ApiResource::erase::<LimitRange>(&()), Part::Whole),
        (LimitKind::Quota, ApiResource::erase::<ResourceQuota>(&()), Part::Whole),
        (LimitKind::ServiceAccount, ApiResource::erase::<ServiceAccount>(&()), Part::Metadata),
    ] {
        let take = |object: Value| {
            writer.put_limit(kind, &object);
        };
        let told = cluster.each(&resource, scope, part, take).await;
        not_told.extend(told.err().map(|NotTold { question, problem }| {
            let problem = format!("{problem}; the results ignore these objects");
            NotTold { question, problem }
        }));
    }
    not_told
}
