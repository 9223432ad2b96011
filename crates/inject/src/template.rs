//! The pod of a Kubernetes object: itself, or what its template will make.

use serde_json::Value;

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

/// A pod, or an object that makes pods from a template.
#[derive(Debug)]
pub struct Workload<'v> {
    /// Its kind.
    pub kind: String,
    /// Its name, or what its name will begin with.
    pub name: String,
    /// The namespace that it names itself.
    pub namespace: Option<String>,
    /// What the object's pods will have beside what the template says; none for a pod.
    pub template: Option<Template>,
    /// The pod, or the template.
    pub pod: &'v mut Value,
}

/// What is known of the pods of a template that do not exist yet.
#[derive(Debug)]
pub struct Template {
    /// Path of the template in the object, such as `spec.template`.
    pub path: String,
    /// The object, as its pods will name it; none while its name is still to be made up.
    pub owner: Option<OwnerReference<'static>>,
}

/// The kinds that make pods: group, kind, and where the template is.
pub const TEMPLATES: [(&str, &str, &str); 6] = [
    ("apps", "Deployment", "/spec/template"),
    ("apps", "StatefulSet", "/spec/template"),
    ("apps", "DaemonSet", "/spec/template"),
    ("apps", "ReplicaSet", "/spec/template"),
    ("batch", "Job", "/spec/template"),
    ("batch", "CronJob", "/spec/jobTemplate/spec/template"),
];

/// What is known around a workload.
#[derive(Clone, Copy)]
pub struct Around<'p> {
    /// Its namespace.
    pub namespace: &'p str,
    /// Namespaces and their Instrumentations.
    pub catalogue: &'p Catalogue,
    /// What the installation decides.
    pub settings: &'p Settings,
    /// Whom owners belong to.
    pub owners: &'p dyn Owners,
}

impl<'v> Workload<'v> {
    /// The workload that an object of this type is, if it is one.
    pub fn of(object: &'v mut Value, api_version: &str, kind: &str) -> Option<Self> {
        let is_pod = api_version == "v1" && kind == "Pod";
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let row = TEMPLATES.iter().find(|row| group == row.0 && kind == row.1);
        let path = if is_pod { "" } else { row?.2 };
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
        let dotted = path.trim_start_matches('/').replace('/', ".");
        let template = (!is_pod).then_some(Template { path: dotted, owner });
        let pod = object.pointer_mut(path).filter(|pod| pod.is_object())?;
        Some(Self { kind: kind.to_owned(), name: shown, namespace, template, pod })
    }

    /// Path of a field of the pod in the object.
    pub fn path(&self, field: &str) -> String {
        match &self.template {
            Some(template) => format!("{}.{field}", template.path),
            None => field.to_owned(),
        }
    }

    /// Shows the pod to someone as the core sees it.
    ///
    /// # Errors
    /// When the pod is not as the API server sends it.
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

    /// What the core makes of the pod.
    ///
    /// # Errors
    /// When the pod is not as the API server sends it.
    pub fn outcome(&self, around: &Around<'_>) -> Result<Outcome, serde_json::Error> {
        self.view(around, |input| build(decide(input), around.owners))
    }
}

fn owned(text: String) -> Text<'static> {
    Text(text.into())
}

impl Template {
    /// Gives the view of a template what its pods will have, as far as it is
    /// known. Controllers take labels and annotations from a template, and
    /// make up the rest of a pod's metadata.
    fn dress(&self, pod: &mut Pod<'_>) {
        pod.metadata.name = Text::default();
        pod.metadata.generate_name = Text::default();
        pod.metadata.owner_references = List(self.owner.iter().cloned().collect());
    }
}
