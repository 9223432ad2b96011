//! The mistakes.

use serde_json::{Map, Value, json};

use crate::cluster::template;

/// The namespace of the objects.
pub const NAMESPACE: &str = "mistakes";

const PREFIX: &str = "instrumentation.opentelemetry.io/";

/// One mistake.
pub struct Row {
    /// What is wrong, for messages of the test.
    pub what: &'static str,
    /// The object.
    pub object: Value,
    /// The field that everything names.
    pub field: String,
    /// A part of what is said to be wrong.
    pub fault: &'static str,
    /// A part of what is said to do.
    pub remedy: &'static str,
}

impl Row {
    /// The kind of the object.
    pub fn kind(&self) -> &str {
        self.object["kind"].as_str().expect("a kind")
    }

    /// The name of the object.
    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().expect("a name")
    }
}

/// Where the entry of a row is.
#[derive(Clone, Copy)]
enum At {
    Own,
    Jobs,
    Template,
}

/// `key: value` as an annotation or a label of an object of a kind.
fn entry(kind: &str, number: usize, at: At, list: &str, entries: &[(&str, &str)]) -> (Value, String) {
    let name = format!("mistake-{number}");
    let pod = match kind {
        "CronJob" => "/spec/jobTemplate/spec/template/metadata",
        "Pod" | "Namespace" => "/metadata",
        _ => "/spec/template/metadata",
    };
    let path = match at {
        At::Own => "/metadata",
        At::Jobs => "/spec/jobTemplate/metadata",
        At::Template => pod,
    };
    let mut object = bare(kind, &name);
    let metadata = object.pointer_mut(path).and_then(Value::as_object_mut).expect("metadata");
    let all = metadata.entry(list).or_insert_with(|| json!({}));
    let added: Map<_, _> = entries.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    all.as_object_mut().expect("an object").extend(added);
    let dotted = path.trim_start_matches('/').replace('/', ".");
    (object, format!("{dotted}.{list}[{}]", entries[0].0))
}

/// An object that does not opt in.
fn bare(kind: &str, name: &str) -> Value {
    let metadata = json!({"name": name, "namespace": NAMESPACE});
    let mut pod = template(name);
    pod["metadata"]["annotations"] = json!({});
    let selector = json!({"matchLabels": {"app": name}});
    let (api_version, spec) = match kind {
        "Namespace" => {
            let metadata = json!({"name": name, "labels": {"case": NAMESPACE}});
            return json!({"apiVersion": "v1", "kind": kind, "metadata": metadata});
        }
        "Pod" => return json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": pod["spec"]}),
        "Job" | "CronJob" => {
            pod["spec"]["restartPolicy"] = json!("Never");
            let job = json!({"template": pod});
            let jobs = json!({"metadata": {}, "spec": job});
            let cron = json!({"schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": jobs});
            ("batch/v1", if kind == "Job" { job } else { cron })
        }
        "Rollout" => ("argoproj.io/v1alpha1", json!({"selector": selector, "template": pod})),
        // Only a ReplicaSet with pods is in use.
        "ReplicaSet" => ("apps/v1", json!({"replicas": 1, "selector": selector, "template": pod})),
        "Deployment" | "StatefulSet" => {
            ("apps/v1", json!({"replicas": 0, "selector": selector, "template": pod}))
        }
        _ => ("apps/v1", json!({"selector": selector, "template": pod})),
    };
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
}

/// What it is, kind, place, field, entries, a part of the sentence, and the remedy.
type Line<'l> = (&'static str, &'l str, At, &'l str, Vec<(&'l str, &'l str)>, &'static str, &'static str);

/// All mistakes.
#[expect(clippy::too_many_lines, reason = "one table, a row for each mistake")]
pub fn rows() -> Vec<Row> {
    use At::{Jobs, Own, Template};
    let java = format!("{PREFIX}inject-java");
    let key = |word: &str| format!("{PREFIX}{word}");
    let (misspelt, singular, image) =
        (key("inject-jva"), key("java-container-name"), key("default-auto-instrumentation-java-image"));
    let (list, go, python) = (key("container-names"), key("inject-go"), key("inject-python"));
    let set_java = "set instrumentation.opentelemetry.io/inject-java: \"true\" in ";
    let set_list = "set instrumentation.opentelemetry.io/container-names: \"app\" in ";
    let unknown = "unknown annotation instrumentation.opentelemetry.io/inject-jva";
    let (on, prefix, label) =
        ("has no effect on the ", "is ignored because of its prefix", "has no effect; only annotations have");
    let (a, l) = ("annotations", "labels");
    let move_it = "move it to spec.template.metadata.annotations";
    let lines: Vec<Line<'_>> = vec![
        ("a misspelt annotation", "Deployment", Template, a, vec![(&misspelt, "true")], unknown, set_java),
        (
            "misspelt in a StatefulSet",
            "StatefulSet",
            Template,
            a,
            vec![(&misspelt, "true")],
            unknown,
            set_java,
        ),
        ("misspelt in a DaemonSet", "DaemonSet", Template, a, vec![(&misspelt, "true")], unknown, set_java),
        ("misspelt in a Job", "Job", Template, a, vec![(&misspelt, "true")], unknown, set_java),
        ("misspelt in a Rollout", "Rollout", Template, a, vec![(&misspelt, "true")], unknown, set_java),
        ("misspelt on a bare pod", "Pod", Template, a, vec![(&misspelt, "true")], unknown, set_java),
        ("misspelt on a namespace", "Namespace", Own, a, vec![(&misspelt, "true")], unknown, set_java),
        (
            "a misspelt list of containers",
            "Deployment",
            Template,
            a,
            vec![(&singular, "app")],
            "did you mean \"java-container-names\"?",
            "set instrumentation.opentelemetry.io/java-container-names: \"app\" in ",
        ),
        ("on the Deployment itself", "Deployment", Own, a, vec![(&java, "true")], on, move_it),
        ("on the StatefulSet itself", "StatefulSet", Own, a, vec![(&java, "true")], on, move_it),
        ("on the ReplicaSet itself", "ReplicaSet", Own, a, vec![(&java, "true")], on, move_it),
        ("on the Rollout itself", "Rollout", Own, a, vec![(&java, "true")], on, move_it),
        (
            "on the CronJob itself",
            "CronJob",
            Own,
            a,
            vec![(&java, "true")],
            on,
            "move it to spec.jobTemplate.spec.template.metadata.annotations",
        ),
        (
            "on the job template",
            "CronJob",
            Jobs,
            a,
            vec![(&java, "true")],
            "has no effect on the job template itself",
            "move it to spec.jobTemplate.spec.template.metadata.annotations",
        ),
        ("the containers on the Deployment itself", "Deployment", Own, a, vec![(&list, "app")], on, move_it),
        (
            "a domain that ends in .com",
            "Deployment",
            Template,
            a,
            vec![("opentelemetry.com/inject-java", "true")],
            prefix,
            set_java,
        ),
        (
            "without instrumentation.",
            "Deployment",
            Template,
            a,
            vec![("opentelemetry.io/inject-java", "true")],
            prefix,
            set_java,
        ),
        ("no domain", "Deployment", Template, a, vec![("inject-java", "true")], prefix, set_java),
        (
            "a wrong domain on a bare pod",
            "Pod",
            Template,
            a,
            vec![("opentelemetry.com/inject-java", "true")],
            prefix,
            set_java,
        ),
        (
            "a wrong domain on a namespace",
            "Namespace",
            Own,
            a,
            vec![("otel.io/inject-java", "true")],
            prefix,
            set_java,
        ),
        (
            "a wrong domain on the Deployment itself",
            "Deployment",
            Own,
            a,
            vec![("opentelemetry.com/inject-java", "true")],
            prefix,
            set_java,
        ),
        ("a label", "Deployment", Template, l, vec![(&list, "app")], label, set_list),
        ("a label of a bare pod", "Pod", Template, l, vec![(&list, "app")], label, set_list),
        ("a label of a namespace", "Namespace", Own, l, vec![(&list, "app")], label, set_list),
        (
            "a label of the Deployment itself",
            "Deployment",
            Own,
            l,
            vec![(&java, "true")],
            "inject-java has no effect on the Deployment itself",
            "move it to spec.template.metadata.labels",
        ),
        (
            "the image of an Instrumentation",
            "Deployment",
            Template,
            a,
            vec![(&image, "a")],
            "only has an effect on Instrumentations",
            "remove it",
        ),
        (
            "an Instrumentation that does not exist",
            "Deployment",
            Template,
            a,
            vec![(&java, "ordr")],
            "Instrumentation \"mistakes/ordr\" not found",
            "its namespace has: default",
        ),
        (
            "yes instead of true",
            "Rollout",
            Template,
            a,
            vec![(&java, "yes")],
            "Instrumentation \"mistakes/yes\" not found",
            "its namespace has: default",
        ),
        (
            "a container that does not exist",
            "Deployment",
            Template,
            a,
            vec![(&java, "true"), (&list, "ap")],
            "container \"ap\" not found",
            "the pod has: app",
        ),
        (
            "a language that is not enabled",
            "Deployment",
            Template,
            a,
            vec![(&go, "true")],
            "the language go is not enabled",
            "--languages lists the enabled ones",
        ),
        (
            "two languages without lists of containers",
            "Deployment",
            Template,
            a,
            vec![(&java, "true"), (&python, "true")],
            "the pod opts in to several languages (java, python)",
            "annotate the pod with instrumentation.opentelemetry.io/java-container-names",
        ),
    ];
    let row = |(number, (what, kind, at, of, entries, fault, remedy)): (usize, Line<'_>)| {
        let (object, field) = entry(kind, number, at, of, &entries);
        Row { what, object, field, fault, remedy }
    };
    lines.into_iter().enumerate().map(row).collect()
}
