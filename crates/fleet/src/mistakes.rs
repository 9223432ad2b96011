//! Mistakes for people who do not apply objects from a terminal: annotations and labels that nothing reads, and what pods
//! were injected with in spite of a warning.
//!
//! Metadata of pods shows both. Which field of a workload is meant is only known from the workload itself, so the mistakes
//! of its object replace those of its pods where it is read.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use jiff::Timestamp;
use otel_webhook_inject::{
    MESSAGE, STATUS,
    mistakes::{self, Fault, Mistake},
    note::{Code, Level},
    shown::{LONGEST_TEXT, Short},
    stamp,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{pod::RunningPod, workload::Workload};

/// The code of an Instrumentation with a selector that matches no running pod.
pub const SELECTS_NOTHING: &str = "selector-matches-nothing";

/// How many rows a report has; the others are counted.
pub const MOST: usize = 500;

/// How many of them an Instrumentation has in its status.
pub const MOST_IN_STATUS: usize = 5;

/// How many workloads are known by the mistakes of their pods. Those that come later are not.
const MOST_WORKLOADS: usize = 5000;

/// A mistake in an object, or in what pods were injected with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The code of the mistake or of the warning.
    pub code: &'static str,
    /// Path of the annotation or the label; empty for a warning.
    pub field: String,
    /// What is wrong, as a sentence.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

/// A mistake with its object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MistakeRow {
    /// The object; the namespace of a Namespace is its name.
    #[serde(flatten)]
    pub object: Workload,
    /// The mistake.
    #[serde(flatten)]
    pub finding: Finding,
}

impl From<Mistake> for Finding {
    fn from(mistake: Mistake) -> Self {
        let Mistake { fault, field, message, remedy, .. } = mistake;
        Self { code: fault.code(), field, message, remedy }
    }
}

/// Returns the codes of all mistakes and warnings.
pub fn codes() -> impl Iterator<Item = &'static str> {
    let warnings = Code::ALL.iter().filter(|code| code.level() == Level::Warning);
    let faults = Fault::ALL.iter().map(|fault| fault.code());
    faults.chain([SELECTS_NOTHING]).chain(warnings.map(|code| code.name()))
}

/// Returns the mistakes in the metadata of an object.
pub fn of(object: &Value, api_version: &str, kind: &str) -> Vec<Finding> {
    mistakes::of(object, api_version, kind).into_iter().map(Finding::from).collect()
}

/// Returns the mistakes in the own metadata of a workload, if its pod template has no annotation: a workload without them
/// need not be read.
pub fn of_metadata(metadata: &Value, api_version: &str, kind: &str) -> Vec<Finding> {
    let template = json!({"spec": {"containers": []}});
    let spec = json!({"template": template, "jobTemplate": {"spec": {"template": template}}});
    of(&json!({"metadata": metadata, "spec": spec}), api_version, kind)
}

/// The mistakes of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfPod {
    /// Those in its metadata.
    pub own: Vec<Finding>,
    /// Those that it was injected with, by its stamp.
    pub warnings: Vec<Finding>,
}

impl OfPod {
    /// Reads the metadata of a pod.
    pub fn read(metadata: &Value) -> Self {
        Self { own: of(&json!({"metadata": metadata}), "v1", "Pod"), warnings: warnings(metadata) }
    }

    fn is_empty(&self) -> bool {
        self.own.is_empty() && self.warnings.is_empty()
    }
}

fn warnings(metadata: &Value) -> Vec<Finding> {
    let annotation = |key: &str| metadata["annotations"][key].as_str().unwrap_or_default();
    let (status, message) = (annotation(STATUS), annotation(MESSAGE));
    // The annotation of a pod that was not reviewed can have any length.
    let bounded = || Short { what: message, longest: LONGEST_TEXT }.to_string();
    // Most stamps have none.
    if !status.contains("\"warnings\"") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for entry in stamp::parse(status).iter().filter(|entry| entry.is_injected()) {
        let known = |name: &str| Code::ALL.iter().find(|code| code.name() == name);
        for code in entry.warnings.iter().filter_map(|name| known(name)) {
            let [meaning, remedy] = code.texts().map(plain);
            let message = if message.is_empty() { meaning } else { bounded() };
            findings.push(Finding { code: code.name(), field: String::new(), message, remedy });
        }
    }
    findings.sort();
    findings.dedup();
    findings
}

/// Returns Markdown without its marks of code.
fn plain(markdown: &str) -> String {
    markdown.trim().replace('`', "")
}

/// Workloads with pods that have mistakes. A template is kept once.
#[derive(Debug, Default)]
pub struct PodMistakes {
    pods: HashMap<Box<str>, (Arc<Workload>, u64)>,
    workloads: HashMap<Arc<Workload>, BTreeMap<u64, OfTemplate>>,
    /// The workloads of which something has changed since that was asked.
    changed: HashSet<Arc<Workload>>,
}

/// The pods of a template.
#[derive(Debug)]
pub struct OfTemplate {
    /// Their mistakes.
    pub found: OfPod,
    /// API version and UID of the workload, if the pods name it as their owner.
    pub identity: Option<(String, String)>,
    pods: usize,
    /// When the youngest of them was created, as far as was seen.
    created: Timestamp,
}

/// Returns API version and UID of the workload of a pod, if it is the pod itself or its owner.
fn identity(workload: &Workload, metadata: &Value) -> Option<(String, String)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if workload.kind == "Pod" {
        return Some(("v1".to_owned(), text(&metadata["uid"])?));
    }
    let mut owners = metadata["ownerReferences"].as_array()?.iter();
    let own = owners.find(|owner| owner["kind"] == *workload.kind && owner["name"] == *workload.name)?;
    Some((text(&own["apiVersion"])?, text(&own["uid"])?))
}

impl PodMistakes {
    /// Notes a pod.
    pub fn put(&mut self, pod: &RunningPod, metadata: &Value) {
        let found = OfPod::read(metadata);
        let before = self.pods.get(&*pod.uid);
        if before.is_some_and(|(workload, template)| {
            (&**workload, *template) == (&pod.workload, pod.template)
                && self
                    .workloads
                    .get(workload)
                    .and_then(|known| known.get(template))
                    .map(|known| &known.found)
                    == Some(&found)
        }) {
            return;
        }
        self.forget(&pod.uid);
        let is_known = self.workloads.contains_key(&pod.workload);
        if found.is_empty() || !is_known && self.workloads.len() >= MOST_WORKLOADS {
            return;
        }
        let known = self.workloads.get_key_value(&pod.workload).map(|(known, _)| Arc::clone(known));
        let workload = known.unwrap_or_else(|| Arc::new(pod.workload.clone()));
        let templates = self.workloads.entry(Arc::clone(&workload)).or_default();
        let uid: Box<str> = pod.uid.as_str().into();
        let template = templates.entry(pod.template).or_insert_with(|| OfTemplate {
            found: OfPod::default(),
            identity: identity(&workload, metadata),
            pods: 0,
            created: pod.created,
        });
        template.pods += 1;
        if template.found != found {
            template.found = found;
            self.changed.insert(Arc::clone(&workload));
        }
        template.created = template.created.max(pod.created);
        self.pods.insert(uid, (workload, pod.template));
    }

    /// Returns whether a pod with this UID has mistakes.
    pub fn has(&self, uid: &str) -> bool {
        self.pods.contains_key(uid)
    }

    /// Notes that a pod is gone.
    pub fn forget(&mut self, uid: &str) {
        let Some((workload, template)) = self.pods.remove(uid) else { return };
        let Some(templates) = self.workloads.get_mut(&workload) else { return };
        if let Some(known) = templates.get_mut(&template) {
            known.pods -= 1;
            if known.pods == 0 {
                templates.remove(&template);
                self.changed.insert(Arc::clone(&workload));
            }
        }
        if templates.is_empty() {
            self.workloads.remove(&workload);
        }
    }

    /// Keeps only these pods.
    pub fn keep(&mut self, uids: &HashSet<Box<str>>) {
        let gone: Vec<_> = self.pods.keys().filter(|uid| !uids.contains(*uid)).cloned().collect();
        for uid in &gone {
            self.forget(uid);
        }
    }

    /// Returns the workloads of which something has changed since the last call.
    pub fn changed(&mut self) -> HashSet<Arc<Workload>> {
        std::mem::take(&mut self.changed)
    }

    /// Returns the workloads.
    pub fn workloads(&self) -> impl Iterator<Item = &Workload> {
        self.workloads.keys().map(|workload| &**workload)
    }

    /// Returns the mistakes of the youngest pods of a workload.
    pub fn of(&self, workload: &Workload) -> Option<&OfTemplate> {
        self.workloads.get(workload)?.values().max_by_key(|template| template.created)
    }
}

/// Sorts rows and keeps the worst. Returns how many are left out.
///
/// What nothing reads comes before what was injected with a warning. Each namespace keeps its worst ones before another
/// keeps more, so that nobody's mistakes displace those of others.
pub fn bound(rows: &mut Vec<MistakeRow>, most: usize) -> usize {
    let by_severity = |a: &MistakeRow, b: &MistakeRow| {
        (a.finding.field.is_empty(), a).cmp(&(b.finding.field.is_empty(), b))
    };
    rows.sort_by(by_severity);
    rows.dedup();
    let more = rows.len().saturating_sub(most);
    if more > 0 {
        let mut counts: HashMap<String, usize> = HashMap::new();
        let ranked = std::mem::take(rows).into_iter().map(|row| {
            let rank = counts.entry(row.object.namespace.clone()).or_default();
            *rank += 1;
            (*rank, row)
        });
        let mut ranked: Vec<_> = ranked.collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.truncate(most);
        rows.extend(ranked.into_iter().map(|(_, row)| row));
        rows.sort_by(by_severity);
    }
    more
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, hash: &str, second: i64, annotations: &Value) -> Value {
        let created = Timestamp::from_second(1_700_000_000 + second).expect("a time").to_string();
        json!({
            "namespace": "shop", "name": name, "uid": name, "creationTimestamp": created,
            "labels": {"pod-template-hash": hash}, "annotations": annotations,
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("order-{hash}"),
                "uid": hash, "controller": true}],
        })
    }

    fn put(known: &mut PodMistakes, metadata: &Value) {
        known.put(&RunningPod::of_metadata(metadata).expect("a running pod"), metadata);
    }

    #[test]
    fn the_mistakes_of_the_youngest_template_are_those_of_the_workload() {
        let order = Workload::new("Deployment", "shop", "order");
        let misspelt = json!({"instrumentation.opentelemetry.io/inject-jva": "true"});
        let mut known = PodMistakes::default();
        put(&mut known, &pod("a", "5d", 0, &misspelt));
        put(&mut known, &pod("b", "5d", 1, &misspelt));
        assert_eq!(known.changed().len(), 1, "once for each template");
        let of = known.of(&order).expect("a mistake");
        assert_eq!((of.found.own[0].code, &of.identity), ("unknown-annotation", &None));
        let warned = json!({
            STATUS: r#"[{"language":"java","outcome":"Injected","hash":"v1:0","warnings":["EndpointWithoutScheme"]}]"#,
            MESSAGE: "java: the endpoint has no scheme",
        });
        put(&mut known, &pod("c", "6e", 2, &warned));
        assert_eq!(known.changed().len(), 1);
        let found = &known.of(&order).expect("a warning").found;
        let [finding] = &found.warnings[..] else { panic!("{found:?}") };
        assert_eq!(
            (finding.code, &*finding.message),
            ("EndpointWithoutScheme", "java: the endpoint has no scheme")
        );
        assert_eq!(finding.remedy, "set a URL, such as http://collector:4317");
        // The rollout ends: the pods of the former template are gone, then the annotation is mended.
        known.keep(&HashSet::from(["c".into()]));
        assert_eq!(known.of(&order).expect("a warning").found.own, []);
        put(&mut known, &pod("c", "6e", 2, &json!({})));
        assert_eq!((known.of(&order).is_none(), known.workloads().count(), known.pods.len()), (true, 0, 0));
        assert_eq!(known.changed().len(), 1, "it is mended");
    }

    #[test]
    fn a_pod_names_itself_or_its_owner_for_events() {
        let misspelt = json!({"instrumentation.opentelemetry.io/inject-jva": "true"});
        for (owner, workload, expected) in [
            (Value::Null, Workload::new("Pod", "shop", "a"), ("v1", "a")),
            (
                json!([{"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "ml", "uid": "r", "controller": true}]),
                Workload::new("RayCluster", "shop", "ml"),
                ("ray.io/v1", "r"),
            ),
        ] {
            let mut metadata = pod("a", "5d", 0, &misspelt);
            metadata["ownerReferences"] = owner;
            let mut known = PodMistakes::default();
            put(&mut known, &metadata);
            let identity = known.of(&workload).and_then(|of| of.identity.clone());
            assert_eq!(identity, Some((expected.0.to_owned(), expected.1.to_owned())));
        }
    }

    #[test]
    fn the_own_metadata_of_a_workload_says_whether_to_read_it() {
        let on =
            |annotations: Value| of_metadata(&json!({"annotations": annotations}), "batch/v1", "CronJob");
        assert_eq!(on(json!({"instrumentation.opentelemetry.io/inject-java": "true"})).len(), 1);
        assert_eq!(on(json!({"team": "shop", "otel-webhook/restart": "rollout"})), []);
    }

    #[test]
    fn reports_are_bounded_and_begin_with_what_nothing_reads() {
        let row = |number: usize, field: &str| MistakeRow {
            object: Workload::new("Deployment", "shop", &format!("{number:03}")),
            finding: Finding {
                code: "a",
                field: field.to_owned(),
                message: String::new(),
                remedy: String::new(),
            },
        };
        let mut rows: Vec<_> = (0..10).map(|number| row(number, if number < 8 { "" } else { "x" })).collect();
        assert_eq!((bound(&mut rows, 3), rows.len()), (7, 3));
        assert_eq!(rows.iter().map(|row| &*row.object.name).collect::<Vec<_>>(), ["008", "009", "000"]);

        let mut rows: Vec<_> = (0..10).map(|number| row(number, "x")).collect();
        let mut other = row(0, "");
        other.object.namespace = "team-b".into();
        rows.push(other.clone());
        assert_eq!((bound(&mut rows, 3), rows.len()), (8, 3));
        assert_eq!(rows[2], other, "the first of each namespace stays");
    }

    #[test]
    fn the_sentence_of_a_stamp_that_others_wrote_is_bounded() {
        let stamp = r#"[{"language":"java","outcome":"Injected","hash":"v1:0","warnings":["EndpointWithoutScheme"]}]"#;
        let found = warnings(&json!({"annotations": {STATUS: stamp, MESSAGE: "m".repeat(200_000)}}));
        assert!(found[0].message.len() < LONGEST_TEXT + 10, "{}", found[0].message.len());
    }

    #[test]
    fn codes_are_unique() {
        let all: Vec<_> = codes().collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "{all:?}");
    }
}
