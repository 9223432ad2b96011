//! Objects as users apply them.

use serde_json::{Map, Value, json};

use otel_webhook_api::ANNOTATION_PREFIX;

/// A pod of one container, `app`, with these annotations under the prefix.
pub fn asking(name: &str, annotations: &[(&str, &str)]) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "annotations": prefixed(annotations)},
        "spec": {"containers": [{"name": "app", "image": "registry.example.com/app:1.0"}]},
    })
}

/// A pod that opts in to Java.
pub fn java(name: &str) -> Value {
    asking(name, &[("inject-java", "true")])
}

/// Annotations under the prefix.
pub fn prefixed(annotations: &[(&str, &str)]) -> Value {
    let entries =
        annotations.iter().map(|(name, value)| (format!("{ANNOTATION_PREFIX}{name}"), Value::from(*value)));
    Value::Object(entries.collect::<Map<_, _>>())
}

/// The template of such a pod, with the label `app`.
pub fn template_asking(app: &str, annotations: &[(&str, &str)]) -> Value {
    let mut pod = asking("", annotations);
    json!({
        "metadata": {"labels": {"app": app}, "annotations": pod["metadata"]["annotations"].take()},
        "spec": pod["spec"].take(),
    })
}

/// The template of pods that opt in to Java.
pub fn template(app: &str) -> Value {
    template_asking(app, &[("inject-java", "true")])
}

/// An object of a namespace, with the label `app`.
pub fn object(version: &str, kind: &str, namespace: &str, name: &str, spec: &Value) -> Value {
    let metadata = json!({"name": name, "namespace": namespace, "labels": {"app": name}});
    json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})
}

/// The specification of a workload with the pods of a template.
pub fn workload(replicas: usize, template: &Value) -> Value {
    json!({"replicas": replicas, "selector": {"matchLabels": template["metadata"]["labels"]}, "template": template})
}

/// A Deployment with the pods of a template, and the name of its label `app`.
pub fn deployment_of(namespace: &str, replicas: usize, template: &Value) -> Value {
    let name = template["metadata"]["labels"]["app"].as_str().expect("a name");
    object("apps/v1", "Deployment", namespace, name, &workload(replicas, template))
}

/// A Deployment with pods that opt in to Java.
pub fn deployment(namespace: &str, name: &str, replicas: usize) -> Value {
    deployment_of(namespace, replicas, &template(name))
}

/// An Instrumentation.
pub fn instrumentation(namespace: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec,
    })
}

/// The binding of a role of the cluster in a namespace, to the ServiceAccount `default` of that namespace.
pub fn bound_to_default(namespace: &str, role: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": format!("default-{role}"), "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
    })
}
