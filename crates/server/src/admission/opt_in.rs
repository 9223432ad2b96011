//! Warnings about Instrumentations that opt pods in, when they are applied.

use serde_json::Value;

use otel_webhook_api::validation::Verdict;

/// The annotation in which `kubectl apply` stores what was applied.
const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Fields that the operator's CRD does not have.
const OURS: [&str; 4] = ["inject", "namespaceSelector", "selector", "priority"];

/// Fields that decide which pods are opted in.
const DECIDING: [&str; 3] = ["inject", "namespaceSelector", "selector"];

/// Warns about what an Instrumentation will opt in, unless that stays the same. `only_annotated`: whether the webhook is
/// registered only for pods that opt in themselves.
pub fn warn(verdict: &mut Verdict, new: &Value, old: Option<&Value>, namespace: &str, only_annotated: bool) {
    warn_of_dropped(verdict, new);
    let (spec, field) = (&new["spec"], "spec.inject");
    let languages: Vec<_> =
        spec["inject"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let is_same = old.is_some_and(|old| DECIDING.iter().all(|field| old["spec"][field] == spec[field]));
    if languages.is_empty() || is_same {
        return;
    }
    if only_annotated {
        let message = "has no effect: API servers send only pods with their own annotation or label to the \
                       webhook (registration.pods.shape: annotated); set the shape all, or annotate the pods";
        return verdict.warn("opt-in-not-sent", field, message);
    }
    let (place, command) = if spec["namespaceSelector"].is_null() {
        (format!("namespace {namespace:?}"), format!("otel-webhook check --preview -n {namespace}"))
    } else {
        (
            "the namespaces that spec.namespaceSelector matches".to_owned(),
            "otel-webhook check --preview".to_owned(),
        )
    };
    let pods = match spec["selector"].as_object() {
        Some(selector) if selector.values().any(|part| !otel_webhook_api::is_hollow(part)) => {
            "every new pod that spec.selector matches"
        }
        _ => "every new pod",
    };
    let message = format!(
        "injects {} into {pods} in {place}, unless the pod or its namespace opts out; to see these workloads: \
         {command}",
        languages.join(", ")
    );
    verdict.warn("opts-in", field, message);
}

/// Warns about fields that were applied and that the object does not have: the stored CRD does not have them.
fn warn_of_dropped(verdict: &mut Verdict, new: &Value) {
    let applied = new["metadata"]["annotations"][APPLIED].as_str();
    let Some(applied) = applied.and_then(|text| serde_json::from_str::<Value>(text).ok()) else { return };
    let is_set = |object: &Value, field: &str| !object["spec"][field].is_null();
    let dropped = OURS.iter().filter(|field| is_set(&applied, field) && !is_set(new, field));
    let dropped: Vec<_> = dropped.map(|field| format!("spec.{field}")).collect();
    if !dropped.is_empty() {
        let message = format!(
            "the CustomResourceDefinition of the cluster does not have {}, so the API server drops it; apply that of \
             this version: otel-webhook crd | kubectl apply --server-side --force-conflicts -f -",
            dropped.join(", ")
        );
        verdict.warn("dropped-fields", dropped[0].clone(), message);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn warnings(new: &Value, old: Option<&Value>, only_annotated: bool) -> Vec<String> {
        let mut verdict = Verdict::default();
        warn(&mut verdict, new, old, "shop", only_annotated);
        verdict.warnings.iter().map(ToString::to_string).collect()
    }

    fn java(more: &Value) -> Value {
        let mut spec = json!({"inject": ["java"], "selector": {"matchLabels": {"app": "order"}}});
        json_patch::merge(&mut spec, more);
        json!({"spec": spec})
    }

    #[test]
    fn what_will_be_injected_is_told_once() {
        let new = java(&json!({}));
        let expected = "spec.inject: injects java into every new pod that spec.selector matches in namespace \"shop\", \
                        unless the pod or its namespace opts out; to see these workloads: otel-webhook check \
                        --preview -n shop";
        assert_eq!(warnings(&new, None, false), [expected]);
        assert_eq!(warnings(&new, Some(&json!({"spec": {}})), false), [expected]);
        assert_eq!(warnings(&java(&json!({"env": []})), Some(&new), false), [""; 0]);
        let all = java(
            &json!({"selector": {"matchLabels": null}, "namespaceSelector": {}, "inject": ["java", "sdk"]}),
        );
        let expected = "spec.inject: injects java, sdk into every new pod in the namespaces that \
                        spec.namespaceSelector matches, unless the pod or its namespace opts out; to see these \
                        workloads: otel-webhook check --preview";
        assert_eq!(warnings(&all, Some(&new), false), [expected]);
        assert_eq!(warnings(&json!({"spec": {"inject": [], "selector": {}}}), None, false), [""; 0]);
    }

    #[test]
    fn pods_that_never_arrive_are_told() {
        let [warning] = &warnings(&java(&json!({})), None, true)[..] else { panic!("one warning") };
        assert!(
            warning.starts_with("spec.inject: has no effect: ") && warning.contains("shape: annotated"),
            "{warning}"
        );
    }

    #[test]
    fn fields_that_the_cluster_drops_are_told() {
        let applied = |spec: &Value| json!({APPLIED: json!({"spec": spec}).to_string()});
        let spec = json!({"inject": ["java"], "selector": {}, "sampler": {"type": "always_on"}});
        let dropped =
            json!({"metadata": {"annotations": applied(&spec)}, "spec": {"sampler": {"type": "always_on"}}});
        let [warning] = &warnings(&dropped, None, false)[..] else { panic!("one warning") };
        assert!(warning.starts_with("spec.inject: the CustomResourceDefinition"), "{warning}");
        assert!(warning.contains("does not have spec.inject, spec.selector,"), "{warning}");
        let mut kept = dropped;
        kept["spec"] = spec;
        assert_eq!(warnings(&kept, Some(&kept), false), [""; 0]);
    }
}
