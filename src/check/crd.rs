//! Checks whether the CRD is installed, and has every field of this version.

use serde_json::Value;

use super::result::{CheckResult, Code};
use otel_webhook_api::{Version, crd};
use otel_webhook_server::subject::Subject;

pub use otel_webhook_server::tls::managed::CRD as NAME;

/// The annotation of objects that Helm does not delete.
const KEEP: &str = "helm.sh/resource-policy";

const APPLY: &str = "apply it: otel-webhook crd | kubectl apply --server-side --force-conflicts -f -";

/// Returns the results for the CRD of the cluster.
pub fn results(served: Option<&Value>) -> Vec<CheckResult> {
    let about = |result: CheckResult| result.about(Subject::new("CustomResourceDefinition", "", NAME));
    let Some(served) = served else {
        return vec![about(CheckResult::new(Code::CrdMissing, "not found").advise(APPLY))];
    };
    let ours = crd::of(&Version::ALL, Version::V1alpha1);
    let versions: Vec<_> = versions(&ours).filter_map(|our| Some((our, serving(served, our)?))).collect();
    if versions.is_empty() {
        let known = Version::ALL.map(Version::name).join(" or ");
        let problem = format!("does not serve {known} (yet)");
        return vec![about(CheckResult::new(Code::CrdNotServed, problem).advise(APPLY))];
    }
    let mut pruned = Vec::new();
    for (our, their) in versions {
        let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
        missing(&schema(our), &schema(their), "", &mut pruned);
    }
    pruned.sort_unstable();
    pruned.dedup();
    let mut results = vec![about(if pruned.is_empty() {
        CheckResult::new(Code::CrdCurrent, "has every field of this version")
    } else {
        let mut problem = format!("is of another version, and drops these fields: {}", pruned.join(", "));
        if pruned.iter().any(|path| path.starts_with("status")) {
            problem
                .push_str("; without its status, an Instrumentation does not show what the controller found");
        }
        CheckResult::new(Code::CrdPrunesFields, problem)
            .advise(format!("everything else works; to use these fields, {APPLY}"))
    })];
    results.extend(release(served).map(about));
    results
}

fn versions(crd: &Value) -> impl Iterator<Item = &Value> {
    crd["spec"]["versions"].as_array().into_iter().flatten()
}

/// Returns the same version of the CRD of the cluster, if it is served, once the CRD is established.
fn serving<'s>(served: &'s Value, ours: &Value) -> Option<&'s Value> {
    let conditions = served["status"]["conditions"].as_array().into_iter().flatten();
    let is_established = conditions
        .into_iter()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
    let mut versions =
        versions(served).filter(|version| version["name"] == ours["name"] && version["served"] == true);
    versions.next().filter(|_| is_established)
}

/// Collects the paths of the fields that one schema has and another drops. If a whole object is missing, only its
/// own path.
fn missing(ours: &Value, theirs: &Value, path: &str, found: &mut Vec<String>) {
    if theirs["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    for (name, field) in ours["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match &theirs["properties"][name] {
            Value::Null if theirs["additionalProperties"].is_object() => {}
            Value::Null => found.push(path),
            their_field => missing(field, their_field, &path, found),
        }
    }
    if ours["items"].is_object() {
        missing(&ours["items"], &theirs["items"], &format!("{path}[]"), found);
    }
}

/// Returns whether Helm set an annotation: Helm ignores annotations that were added to the object later.
fn is_set_by_helm(object: &Value, annotation: &str) -> bool {
    let managers = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    managers.into_iter().any(|entry| {
        let is_helm = entry["manager"].as_str().is_some_and(|name| name.starts_with("helm"));
        let annotations = &entry["fieldsV1"]["f:metadata"]["f:annotations"];
        is_helm && !annotations[format!("f:{annotation}")].is_null()
    })
}

/// Returns a warning if the uninstallation of a Helm release would delete the CRD.
fn release(served: &Value) -> Option<CheckResult> {
    let annotation = |key: &str| served["metadata"]["annotations"][key].as_str();
    let name = annotation("meta.helm.sh/release-name")?;
    let namespace = annotation("meta.helm.sh/release-namespace").unwrap_or_default();
    if annotation(KEEP) == Some("keep") && is_set_by_helm(served, KEEP) {
        return None;
    }
    let problem = format!(
        "belongs to the Helm release {namespace}/{name}: uninstalling the release deletes the CRD and all \
         Instrumentations"
    );
    let advice = "make the release keep it before you uninstall the release; see docs/guides/migration.md";
    Some(CheckResult::new(Code::CrdDeletedWithRelease, problem).advise(advice))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The CRD of this version as an API server stores it.
    fn stored() -> Value {
        let mut crd = crd::crd();
        crd["status"] = json!({"conditions": [{"type": "Established", "status": "True"}]});
        crd
    }

    fn spec(crd: &mut Value) -> &mut Value {
        &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    }

    fn codes(served: Option<&Value>) -> Vec<(Code, String)> {
        results(served).into_iter().map(|result| (result.code, result.line())).collect()
    }

    #[test]
    fn the_crd_of_this_version_is_current() {
        let [(code, line)] = &codes(Some(&stored()))[..] else { panic!("one result") };
        assert_eq!(*code, Code::CrdCurrent);
        let expected = "ok       crd           CustomResourceDefinition instrumentations.opentelemetry.io: has \
                        every field of this version";
        assert_eq!(line, expected);
    }

    #[test]
    fn a_missing_crd_and_one_that_is_not_served_are_failures() {
        assert_eq!(codes(None)[0].0, Code::CrdMissing);
        let mut other = stored();
        other["spec"]["versions"][0]["served"] = json!(false);
        assert_eq!(codes(Some(&other))[0].0, Code::CrdNotServed);
        let mut young = stored();
        young["status"] = json!({});
        assert_eq!(codes(Some(&young))[0].0, Code::CrdNotServed);
    }

    #[test]
    fn fields_that_an_older_crd_drops_are_reported() {
        let mut old = stored();
        for field in ["selector", "priority"] {
            spec(&mut old).as_object_mut().unwrap().remove(field);
        }
        let variable = &mut spec(&mut old)["env"]["items"]["properties"]["valueFrom"]["properties"];
        variable.as_object_mut().unwrap().remove("fileKeyRef");
        let (code, line) = &codes(Some(&old))[0];
        assert_eq!(*code, Code::CrdPrunesFields);
        let named = "drops these fields: spec.env[].valueFrom.fileKeyRef, spec.priority, spec.selector;";
        assert!(line.contains(named), "{line}");
        assert!(line.contains("otel-webhook crd | kubectl apply"), "{line}");
    }

    #[test]
    fn a_crd_that_drops_the_status_of_the_controller_is_reported() {
        let mut old = stored();
        let schema = &mut old["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        schema["properties"]["status"]["properties"] = json!({"conditions": {"type": "array"}});
        let (code, line) = &codes(Some(&old))[0];
        assert_eq!(*code, Code::CrdPrunesFields);
        assert!(line.contains("status.pods") && line.contains("what the controller found"), "{line}");
    }

    #[test]
    fn a_schema_that_preserves_unknown_fields_drops_none() {
        let mut lax = stored();
        lax["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        assert_eq!(codes(Some(&lax))[0].0, Code::CrdCurrent);
    }

    #[test]
    fn a_crd_that_a_release_would_delete_is_reported() {
        let mut owned = stored();
        owned["metadata"]["annotations"] = json!({"meta.helm.sh/release-name": "operator",
            "meta.helm.sh/release-namespace": "observability"});
        let (code, line) = &codes(Some(&owned))[1];
        assert_eq!(*code, Code::CrdDeletedWithRelease);
        assert!(line.contains("the Helm release observability/operator"), "{line}");
        owned["metadata"]["annotations"][KEEP] = json!("keep");
        let by = |manager: &str| {
            let fields = json!({"f:metadata": {"f:annotations": {format!("f:{KEEP}"): {}}}});
            json!([{"manager": manager, "fieldsV1": fields}])
        };
        owned["metadata"]["managedFields"] = by("kubectl-annotate");
        assert_eq!(codes(Some(&owned))[1].0, Code::CrdDeletedWithRelease, "helm does not look at it");
        owned["metadata"]["managedFields"] = by("helm");
        assert_eq!(codes(Some(&owned)).len(), 1);
    }
}
