//! The policy that keeps the webhook's `ServiceAccount` to `caBundle`; `tests/install` tries it on an API server.

use otel_webhook_testkit::objects::items;
use serde_json::{Value, json};

use crate::helm::{
    NAMESPACE, RELEASE, matrix, objects, objects_of, objects_with, of_kind, template, the, values,
};
use crate::schemas::{Schemas, fields};

const KINDS: [&str; 2] = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];

fn count(objects: &[Value]) -> [usize; 2] {
    KINDS.map(|kind| of_kind(objects, kind).len())
}

/// In the other modes it has no right to change them.
#[test]
fn the_policy_is_where_the_webhook_may_change_configurations() {
    for file in matrix() {
        let objects = objects_of(&file);
        let rules = of_kind(objects, "ClusterRole").into_iter().flat_map(|role| items(&role["rules"]));
        let may_patch = rules
            .filter(|rule| rule["apiGroups"] == json!(["admissionregistration.k8s.io"]))
            .any(|rule| items(&rule["verbs"]).any(|verb| verb == "patch"));
        assert_eq!(count(objects), [usize::from(may_patch); 2], "{}", file.display());
    }
    assert_eq!(count(&objects_with(&["rbac.admissionPolicy=false"])), [0, 0]);
}

#[test]
fn a_kubernetes_without_policies_gets_none() {
    for (version, expected) in [("1.29.15", 0), ("1.30.0-gke.1", 1), ("1.31.2", 1)] {
        let text = template("helm3", &["--kube-version", version]).expect("rendered");
        assert_eq!(count(&objects(&text)), [expected; 2], "{version}");
    }
}

#[test]
fn the_policy_is_about_the_service_account_of_the_server() {
    let in_release = |account: &str| format!("system:serviceaccount:{NAMESPACE}:{account}");
    let own = in_release(&format!("{RELEASE}-otel-webhook"));
    for (file, account) in [("default", own), ("everything", in_release("runner"))] {
        let objects = objects_of(&values(file));
        let policy = the(objects, KINDS[0]);
        let expected = json!([{"name": "by-the-webhook", "expression": format!("request.userInfo.username == '{account}'")}]);
        assert_eq!(policy["spec"]["matchConditions"], expected, "{file}");
        let binding = &the(objects, KINDS[1])["spec"];
        assert_eq!(
            binding,
            &json!({"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]})
        );
    }
}

/// A field that Kubernetes adds to webhooks would be left open.
#[test]
fn the_policy_compares_every_field_of_a_webhook_but_the_bundle() {
    let objects = objects_of(&values("default"));
    let validations = the(objects, KINDS[0])["spec"]["validations"].to_string();
    let all = Schemas::versions().into_iter().flat_map(|version| {
        ["MutatingWebhook", "ValidatingWebhook", "WebhookClientConfig"]
            .into_iter()
            .flat_map(move |kind| fields(&version, &format!("io.k8s.api.admissionregistration.v1.{kind}")))
    });
    for field in all.filter(|field| !["caBundle", "clientConfig"].contains(&field.as_str())) {
        let compared = format!(".?{field} == ");
        assert!(validations.contains(&compared) || field == "name", "{field}: {validations}");
    }
}
