//! The decision about a workload, with the knowledge of the webhook.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Value, json};

use super::{
    object::{labels, text},
    rows::{COLLECTOR, Next, Pods, Surveyed},
};
use crate::{
    cli::check::{
        differences::{self, Case, Difference},
        injected,
        result::Subject,
    },
    store::{Snapshot, owners::OwnerBook},
};
use otel_webhook_api::ANNOTATION_PREFIX;
use otel_webhook_inject::{
    Finding, InitResources, Outcome, Settings,
    language::LANGUAGES,
    template::{Around, Workload},
};

/// The objects and settings that decisions depend on.
pub struct Look {
    /// The settings of the installation.
    pub settings: Settings,
    /// The store of the webhook.
    pub snapshot: Arc<Snapshot>,
    /// The stored Instrumentations, by namespace and name.
    pub instrumentations: HashMap<(String, String), Value>,
    /// Owners of ReplicaSets without a Deployment.
    pub book: OwnerBook,
}

impl Look {
    /// Returns the row of a workload.
    pub fn at(&self, mut object: Value, subject: Subject) -> Option<Surveyed> {
        let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let workload = Workload::of(&mut object, &api_version, &kind)?;
        let around = self.around(&subject.namespace);
        let (next, differences) = match workload.outcome(&around) {
            Ok(outcome) => {
                let differences = self.differences(&workload, &around, &outcome);
                (Next::Decided(outcome.findings), differences)
            }
            Err(problem) => (Next::Unreadable(problem.to_string()), Vec::new()),
        };
        let annotations = &workload.pod["metadata"]["annotations"];
        let asks = |key: &str| annotations[format!("{ANNOTATION_PREFIX}{key}")].is_string();
        let own = LANGUAGES.into_iter().filter(|language| asks(language.inject));
        let collector = annotations[COLLECTOR].as_str().map(|value| value != "false");
        Some(Surveyed {
            own: own.map(|language| language.name).collect(),
            collector: collector.or_else(|| injected::has_collector(workload.pod).then_some(true)),
            labels: labels(workload.pod),
            subject,
            next,
            pods: Pods::default(),
            differences,
        })
    }

    /// Returns the findings for a pod without annotations, if the namespace opts in.
    pub fn at_namespace(&self, name: &str) -> Vec<Finding> {
        let mut pod = json!({"metadata": {}, "spec": {"containers": [{"name": "app", "image": "app"}]}});
        let workload = Workload::of(&mut pod, "v1", "Pod").expect("a pod");
        workload.outcome(&self.around(name)).map(|outcome| outcome.findings).unwrap_or_default()
    }

    fn around<'l>(&'l self, namespace: &'l str) -> Around<'l> {
        let catalogue = &self.snapshot.catalogue;
        Around { namespace, catalogue, settings: &self.settings, owners: &self.book }
    }

    fn differences(
        &self,
        workload: &Workload<'_>,
        around: &Around<'_>,
        outcome: &Outcome,
    ) -> Vec<Difference> {
        let settings = Settings { init_resources: InitResources::Exact, ..self.settings.clone() };
        let Ok(exact) = workload.outcome(&Around { settings: &settings, ..*around }) else {
            return Vec::new();
        };
        differences::of(&Case {
            pod: workload.pod,
            outcome,
            exact: &exact,
            around,
            owner: workload.template.as_ref().and_then(|template| template.owner.as_ref()),
            instrumentations: &self.instrumentations,
        })
    }
}
