//! A cluster with one Instrumentation, and pods in it.

use std::collections::{BTreeMap, HashMap};

use otel_webhook_api::{ANNOTATION_PREFIX, defaults::DefaultImages};
use otel_webhook_fleet::{
    census::Census,
    count::{self, Known},
    heard::Heard,
    next::{self, Doubts, NoDoubts},
    pod::RunningPod,
    report::{Report, WorkloadRow},
    state::State,
};
use otel_webhook_inject::{
    Settings,
    catalogue::Catalogue,
    language::{self, LANGUAGES, LanguageSet},
    template::{Around, Workload},
};
use otel_webhook_testkit::known;
use serde_json::{Value, json};

/// An endpoint.
pub const ENDPOINT: &str = "http://collector:4317";

/// An agent of the Instrumentation.
pub const AGENT: &str = "php";

fn agent(name: &str) -> Value {
    json!({"name": name, "image": format!("own/{name}:1"), "directory": "/agent"})
}

/// A language of a workload: its name, that of the workload, the state, and the code of the reason.
pub type Row = (&'static str, String, State, Option<String>);

/// An Instrumentation, and the settings of the webhook.
pub struct Cluster {
    /// The settings.
    pub settings: Settings,
    /// The Instrumentation.
    pub objects: Vec<Value>,
}

impl Cluster {
    /// A cluster whose Instrumentation `shop/inst` has this endpoint.
    pub fn new(endpoint: &str) -> Self {
        let instrumentation = json!({"apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
            "metadata": {"name": "inst", "namespace": "shop"},
            "spec": {"exporter": {"endpoint": endpoint}, "agents": [agent(AGENT), agent("ruby")]}});
        let settings = Settings { languages: LanguageSet::all(), stamp: true, ..Settings::default() };
        Self { settings, objects: vec![instrumentation] }
    }

    /// The same, and the Instrumentation opts in all pods to a language.
    pub fn opting_in(mut self, language: &str) -> Self {
        self.objects[0]["spec"]["inject"] = json!([language]);
        self.objects[0]["spec"]["selector"] = json!({});
        self
    }

    /// The same with or without the stamp.
    pub fn with_stamp(mut self, stamp: bool) -> Self {
        self.settings.stamp = stamp;
        self
    }

    /// What the webhook knows.
    pub fn catalogue(&self) -> Catalogue {
        known::Known::of(&self.objects, &DefaultImages::default()).catalogue
    }

    /// A pod after injection.
    pub fn injected(&self, mut pod: Value) -> Value {
        let known = known::Known::of(&self.objects, &DefaultImages::default());
        let around = Around {
            namespace: "shop",
            catalogue: &known.catalogue,
            settings: &self.settings,
            owners: &known.owners,
        };
        let workload = Workload::of(&mut pod, "v1", "Pod").expect("a pod");
        let patch = workload.outcome(&around).expect("readable").patch.operations();
        json_patch::patch(&mut pod, &patch).expect("applies");
        pod
    }
}

/// A pod that opts in to these languages, each in its own container.
pub fn pod(languages: &[&str]) -> Value {
    let mut containers = Vec::new();
    let mut annotations = json!({format!("{ANNOTATION_PREFIX}otel-go-auto-target-exe"): "/app"});
    for name in languages {
        let language = language::named(name).expect("a language");
        annotations[format!("{ANNOTATION_PREFIX}{}", language.inject)] =
            json!(if language.names_agents() { AGENT } else { "true" });
        annotations[format!("{ANNOTATION_PREFIX}{}", language.containers)] = json!(format!("app-{name}"));
        containers.push(json!({"name": format!("app-{name}"), "image": "app"}));
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop", "uid": "u",
        "creationTimestamp": "2026-11-01T00:00:00Z", "annotations": annotations},
        "spec": {"containers": containers}})
}

/// Returns the rows of all workloads.
pub fn rows(report: &Report) -> Vec<Row> {
    let language = |name: &str| LANGUAGES.iter().find(|row| row.name == name).expect("a language").name;
    let of = |row: &WorkloadRow| {
        let name = row.workload.name.clone();
        let own = row.languages.iter();
        own.map(|one| (language(one.language), name.clone(), one.state, one.reason.map(str::to_owned)))
            .collect::<Vec<_>>()
    };
    report.workloads.iter().flat_map(of).collect()
}

/// Counts pods.
pub fn report(cluster: &Cluster, pods: impl Iterator<Item = RunningPod>) -> Report {
    report_with(cluster, pods, true, &NoDoubts)
}

/// Counts pods that the registration selects or not, with what the user may read.
pub fn report_with(
    cluster: &Cluster,
    pods: impl Iterator<Item = RunningPod>,
    is_selected: bool,
    doubts: &dyn Doubts,
) -> Report {
    let mut census = Census::default();
    for pod in pods {
        census.put(pod);
    }
    count_census((cluster, &cluster.catalogue()), &census, is_selected, doubts, None)
}

/// Counts the pods of a census.
pub fn report_of(cluster: &Cluster, census: &Census) -> Report {
    report_knowing(cluster, &cluster.catalogue(), census)
}

/// The same with what the cluster's objects were compiled to.
pub fn report_knowing(cluster: &Cluster, catalogue: &Catalogue, census: &Census) -> Report {
    count_census((cluster, catalogue), census, true, &NoDoubts, None)
}

/// The same with what a source reports.
pub fn report_hearing(cluster: &Cluster, census: &Census, heard: Option<&Heard>) -> Report {
    count_census((cluster, &cluster.catalogue()), census, true, &NoDoubts, heard)
}

fn count_census(
    (cluster, catalogue): (&Cluster, &Catalogue),
    census: &Census,
    is_selected: bool,
    doubts: &dyn Doubts,
    heard: Option<&Heard>,
) -> Report {
    let created = HashMap::from([("shop/inst".to_owned(), "2026-01-01T00:00:00Z".parse().expect("a time"))]);
    let around = next::Around { catalogue, settings: &cluster.settings };
    let is_selected = |_: &str, _: &BTreeMap<String, String>, _| is_selected;
    let known = Known { around, created: &created, is_selected: &is_selected, heard };
    count::count_with(census, &known, doubts).report
}
