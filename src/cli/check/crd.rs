//! Whether the CRD is there, and has every field that this version knows.

use serde_json::Value;

use super::result::{CheckResult, Code, Subject};
use otel_webhook_api::crd;

/// Name of the CRD.
pub const NAME: &str = "instrumentations.opentelemetry.io";

/// The annotation of what helm leaves behind.
const KEEP: &str = "helm.sh/resource-policy";

const APPLY: &str = "apply it: otel-webhook crd | kubectl apply --server-side --force-conflicts -f -";

/// What is to be said of the CRD that the cluster has.
pub fn results(served: Option<&Value>) -> Vec<CheckResult> {
    let about = |result: CheckResult| result.about(Subject::new("CustomResourceDefinition", "", NAME));
    let Some(served) = served else {
        return vec![about(CheckResult::new(Code::CrdMissing, "is not there").advise(APPLY))];
    };
    let ours = crd::crd();
    let Some(version) = serving(served, &ours) else {
        let problem = "does not serve v1alpha1, or not yet";
        return vec![about(CheckResult::new(Code::CrdNotServed, problem).advise(APPLY))];
    };
    let mut pruned = Vec::new();
    let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
    missing(&schema(&ours["spec"]["versions"][0]), &schema(version), "", &mut pruned);
    let mut results = vec![about(if pruned.is_empty() {
        CheckResult::new(Code::CrdCurrent, "has every field of this version")
    } else {
        let problem = format!("drops what is written to {}: it is not of this version", pruned.join(", "));
        CheckResult::new(Code::CrdPrunesFields, problem)
            .advise(format!("all else works; to have these, {APPLY}"))
    })];
    results.extend(release(served).map(about));
    results
}

/// The version that is used, once the API server has taken the CRD in.
fn serving<'s>(served: &'s Value, ours: &Value) -> Option<&'s Value> {
    let conditions = served["status"]["conditions"].as_array().into_iter().flatten();
    let is_established = conditions
        .into_iter()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
    let versions = served["spec"]["versions"].as_array().into_iter().flatten();
    let wanted = &ours["spec"]["versions"][0]["name"];
    let mut versions = versions.filter(|version| version["name"] == *wanted && version["served"] == true);
    versions.next().filter(|_| is_established)
}

/// Paths of the fields that one schema has and another would drop; of a field that
/// is missing as a whole, its own path alone.
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

/// Whether helm set an annotation. It goes by what its release says, and not by
/// what somebody has written on the object since.
fn is_set_by_helm(object: &Value, annotation: &str) -> bool {
    let managers = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    managers.into_iter().any(|entry| {
        let is_helm = entry["manager"].as_str().is_some_and(|name| name.starts_with("helm"));
        let annotations = &entry["fieldsV1"]["f:metadata"]["f:annotations"];
        is_helm && !annotations[format!("f:{annotation}")].is_null()
    })
}

/// A warning where an uninstall of a helm release would delete the CRD.
fn release(served: &Value) -> Option<CheckResult> {
    let annotation = |key: &str| served["metadata"]["annotations"][key].as_str();
    let name = annotation("meta.helm.sh/release-name")?;
    let namespace = annotation("meta.helm.sh/release-namespace").unwrap_or_default();
    if annotation(KEEP) == Some("keep") && is_set_by_helm(served, KEEP) {
        return None;
    }
    let problem = format!(
        "belongs to the helm release {name} of namespace {namespace}, whose uninstall deletes it, and every \
         Instrumentation with it"
    );
    let advice = "have that release keep it before you uninstall: docs/migration.md says how";
    Some(CheckResult::new(Code::CrdGoesWithRelease, problem).advise(advice))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Ours as an API server has it.
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
    fn our_own_is_current() {
        let [(code, line)] = &codes(Some(&stored()))[..] else { panic!("one result") };
        assert_eq!(*code, Code::CrdCurrent);
        let expected = "ok       crd           CustomResourceDefinition instrumentations.opentelemetry.io: has \
                        every field of this version";
        assert_eq!(line, expected);
    }

    #[test]
    fn none_and_one_that_is_not_served_are_failures() {
        assert_eq!(codes(None)[0].0, Code::CrdMissing);
        let mut other = stored();
        other["spec"]["versions"][0]["served"] = json!(false);
        assert_eq!(codes(Some(&other))[0].0, Code::CrdNotServed);
        let mut young = stored();
        young["status"] = json!({});
        assert_eq!(codes(Some(&young))[0].0, Code::CrdNotServed);
    }

    #[test]
    fn what_an_older_one_drops_is_named_by_its_path() {
        let mut old = stored();
        for field in ["selector", "priority"] {
            spec(&mut old).as_object_mut().unwrap().remove(field);
        }
        let variable = &mut spec(&mut old)["env"]["items"]["properties"]["valueFrom"]["properties"];
        variable.as_object_mut().unwrap().remove("fileKeyRef");
        let (code, line) = &codes(Some(&old))[0];
        assert_eq!(*code, Code::CrdPrunesFields);
        let named = "drops what is written to spec.env[].valueFrom.fileKeyRef, spec.priority, spec.selector:";
        assert!(line.contains(named), "{line}");
        assert!(line.contains("otel-webhook crd | kubectl apply"), "{line}");
    }

    #[test]
    fn what_keeps_all_fields_drops_none() {
        let mut lax = stored();
        lax["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        assert_eq!(codes(Some(&lax))[0].0, Code::CrdCurrent);
    }

    #[test]
    fn one_that_goes_with_a_release_is_warned_of_until_it_is_kept() {
        let mut owned = stored();
        owned["metadata"]["annotations"] = json!({"meta.helm.sh/release-name": "operator",
            "meta.helm.sh/release-namespace": "observability"});
        let (code, line) = &codes(Some(&owned))[1];
        assert_eq!(*code, Code::CrdGoesWithRelease);
        assert!(line.contains("the helm release operator of namespace observability"), "{line}");
        owned["metadata"]["annotations"][KEEP] = json!("keep");
        let by = |manager: &str| {
            let fields = json!({"f:metadata": {"f:annotations": {format!("f:{KEEP}"): {}}}});
            json!([{"manager": manager, "fieldsV1": fields}])
        };
        owned["metadata"]["managedFields"] = by("kubectl-annotate");
        assert_eq!(codes(Some(&owned))[1].0, Code::CrdGoesWithRelease, "helm does not look at it");
        owned["metadata"]["managedFields"] = by("helm");
        assert_eq!(codes(Some(&owned)).len(), 1);
    }
}
