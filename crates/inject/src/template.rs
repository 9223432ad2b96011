//! The pod of a Kubernetes object: a pod, or a pod template.

use serde_json::Value;

use otel_webhook_api::ANNOTATION_PREFIX;

use super::{
    build::build,
    catalogue::Catalogue,
    decide::decide,
    input::Input,
    outcome::Outcome,
    pod::{OwnerReference, Pod},
    settings::Settings,
    text::{List, Text},
    workload::Owners,
};

/// A pod, or a workload with a pod template.
#[derive(Debug)]
pub struct Workload<'v> {
    /// Its kind.
    pub kind: String,
    /// Its name, or the prefix of its generated name.
    pub name: String,
    /// The namespace in its metadata.
    pub namespace: Option<String>,
    /// The labels of the workload itself; null for a pod.
    pub labels: Value,
    /// The labels by which the workload finds its pods (`spec.selector.matchLabels`).
    pub match_labels: Value,
    /// What the workload's pods will have in addition to the template; `None` for a pod.
    pub template: Option<Template>,
    /// The pod, or the template.
    pub pod: &'v mut Value,
}

/// What is known about the future pods of a template.
#[derive(Debug)]
pub struct Template {
    /// Path of the template in the object, such as `spec.template`.
    pub path: String,
    /// The owner reference of its pods; `None` while its name is not generated.
    pub owner: Option<OwnerReference<'static>>,
}

/// The kinds of workloads: group, kind, and path of the template.
pub const TEMPLATES: [(&str, &str, &str); 6] = [
    ("apps", "Deployment", "/spec/template"),
    ("apps", "StatefulSet", "/spec/template"),
    ("apps", "DaemonSet", "/spec/template"),
    ("apps", "ReplicaSet", "/spec/template"),
    ("batch", "Job", "/spec/template"),
    ("batch", "CronJob", "/spec/jobTemplate/spec/template"),
];

/// Where workloads of other kinds have a pod template, such as an Argo Rollout.
const USUAL_PATHS: [&str; 2] = ["/spec/template", "/spec/jobTemplate/spec/template"];

/// The path of the pod in an object: empty for a pod, and of the template for a workload. `None` if there is none.
///
/// Objects of unknown kinds have a pod template if it has a list of containers.
pub fn pod_path(object: &Value, api_version: &str, kind: &str) -> Option<&'static str> {
    if api_version == "v1" && kind == "Pod" {
        return Some("");
    }
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    if let Some(row) = TEMPLATES.iter().find(|row| group == row.0 && kind == row.1) {
        return Some(row.2);
    }
    let has_containers = |path: &str| {
        let template = object.pointer(path);
        template.is_some_and(|template| template["spec"]["containers"].is_array())
    };
    USUAL_PATHS.into_iter().find(|path| has_containers(path))
}

/// The path of a field as messages have it, such as `spec.template`.
pub(crate) fn dotted(path: &str) -> String {
    path.trim_start_matches('/').replace('/', ".")
}

/// The context of a workload.
#[derive(Clone, Copy)]
pub struct Around<'p> {
    /// Its namespace.
    pub namespace: &'p str,
    /// Namespaces and their Instrumentations.
    pub catalogue: &'p Catalogue,
    /// The settings of the installation.
    pub settings: &'p Settings,
    /// The owner lookup.
    pub owners: &'p dyn Owners,
}

impl<'v> Workload<'v> {
    /// Reads an object, if it is a pod or has a pod template.
    pub fn of(object: &'v mut Value, api_version: &str, kind: &str) -> Option<Self> {
        let path = pod_path(object, api_version, kind)?;
        let text = |field: &str| {
            let text = object["metadata"][field].as_str().filter(|text| !text.is_empty());
            text.map(str::to_owned)
        };
        let (name, namespace, uid) = (text("name"), text("namespace"), text("uid"));
        let shown = name.clone().or_else(|| text("generateName")).unwrap_or_default();
        let owner = name.map(|name| OwnerReference {
            api_version: owned(api_version.to_owned()),
            kind: owned(kind.to_owned()),
            name: owned(name),
            uid: owned(uid.unwrap_or_default()),
            controller: Some(true),
        });
        let labels = if path.is_empty() { Value::Null } else { object["metadata"]["labels"].clone() };
        let match_labels = object["spec"]["selector"]["matchLabels"].clone();
        let template = (!path.is_empty()).then(|| Template { path: dotted(path), owner });
        let pod = object.pointer_mut(path).filter(|pod| pod.is_object())?;
        Some(Self { kind: kind.to_owned(), name: shown, namespace, labels, match_labels, template, pod })
    }

    /// Path of a field of the pod in the object.
    pub fn path(&self, field: &str) -> String {
        match &self.template {
            Some(template) => format!("{}.{field}", template.path),
            None => field.to_owned(),
        }
    }

    /// Calls a function with the parsed pod.
    ///
    /// # Errors
    /// If the pod cannot be parsed.
    pub fn view<T>(
        &self,
        around: &Around<'_>,
        look: impl FnOnce(Input<'_>) -> T,
    ) -> Result<T, serde_json::Error> {
        let text = self.pod.to_string();
        let mut pod = Pod::parse(&text)?;
        if let Some(template) = &self.template {
            template.dress(&mut pod);
        }
        let Around { namespace, catalogue, settings, .. } = *around;
        Ok(look(Input { pod: &pod, namespace, catalogue, settings }))
    }

    /// Returns whether the pod has a key, without the prefix, as a label and not as an annotation.
    pub fn has_label(&self, word: &str) -> bool {
        let key = format!("{ANNOTATION_PREFIX}{word}");
        let has = |list: &str| self.pod["metadata"][list].get(&key).is_some();
        has("labels") && !has("annotations")
    }

    /// The result for the pod.
    ///
    /// # Errors
    /// If the pod cannot be parsed.
    pub fn outcome(&self, around: &Around<'_>) -> Result<Outcome, serde_json::Error> {
        self.view(around, |input| build(decide(input), around.owners))
    }
}

fn owned(text: String) -> Text<'static> {
    Text(text.into())
}

impl Template {
    /// Adds to a parsed template what its pods will have, as far as it is
    /// known. Controllers copy labels and annotations from a template, and
    /// generate the rest of a pod's metadata.
    fn dress(&self, pod: &mut Pod<'_>) {
        pod.metadata.name = Text::default();
        pod.metadata.generate_name = Text::default();
        pod.metadata.owner_references = List(self.owner.iter().cloned().collect());
    }
}
