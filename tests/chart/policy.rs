//! The policies: the webhook's `ServiceAccount` changes only `caBundle`, the controller's only two annotations.
//! `tests/install` and `tests/e2e` try them on an API server.

use otel_webhook_fleet::restart::annotations::{CONFIG, RECORD};
use otel_webhook_testkit::objects::items;
use serde_json::{Value, json};

use crate::helm::{NAMESPACE, RELEASE, matrix, objects, objects_of, objects_with, of_kind, template, values};
use crate::schemas::{Schemas, fields};

const KINDS: [&str; 2] = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];

/// What the names of the policies end with.
const CERTIFICATES: &str = "-certificates";
const CONVERSION: &str = "-conversion";
const RESTARTS: &str = "-restarts";

fn count(objects: &[Value], of: &str) -> [usize; 2] {
    KINDS.map(|kind| named(objects, kind, of).count())
}

fn named<'o>(objects: &'o [Value], kind: &str, of: &str) -> impl Iterator<Item = &'o Value> {
    let is_of =
        move |object: &&Value| object["metadata"]["name"].as_str().is_some_and(|name| name.ends_with(of));
    of_kind(objects, kind).into_iter().filter(is_of)
}

/// The specifications of a policy and of its binding.
fn specs<'o>(objects: &'o [Value], of: &str) -> [&'o Value; 2] {
    KINDS.map(|kind| &named(objects, kind, of).next().expect(kind)["spec"])
}

/// Elsewhere there is no right to change them.
#[test]
fn each_policy_is_where_its_objects_may_be_patched() {
    for file in matrix() {
        let objects = objects_of(&file);
        for (of, group) in [
            (CERTIFICATES, "admissionregistration.k8s.io"),
            (CONVERSION, "apiextensions.k8s.io"),
            (RESTARTS, "apps"),
        ] {
            let rules = of_kind(objects, "ClusterRole").into_iter().flat_map(|role| items(&role["rules"]));
            let may_patch = rules
                .filter(|rule| rule["apiGroups"] == json!([group]))
                .any(|rule| items(&rule["verbs"]).any(|verb| verb == "patch"));
            assert_eq!(count(objects, of), [usize::from(may_patch); 2], "{} {of}", file.display());
        }
    }
}

#[test]
fn both_can_be_omitted() {
    for (set, expected) in
        [("rbac.admissionPolicy=true", 1), ("rbac.admissionPolicy=false", 0), ("rbac.create=false", 0)]
    {
        let objects = objects_with(&["controller.restarts.enabled=true", set]);
        assert_eq!([CERTIFICATES, RESTARTS].map(|of| count(&objects, of)), [[expected; 2]; 2], "{set}");
    }
}

#[test]
fn a_kubernetes_without_policies_gets_none() {
    for (version, expected) in [("1.29.15", 0), ("1.30.0-gke.1", 1), ("1.31.2", 1)] {
        let args = ["--kube-version", version, "--set", "controller.restarts.enabled=true"];
        let objects = objects(&template("helm3", &args).expect("rendered"));
        assert_eq!([CERTIFICATES, RESTARTS].map(|of| count(&objects, of)), [[expected; 2]; 2], "{version}");
    }
}

#[test]
fn each_policy_is_about_its_service_account() {
    let in_release = |account: &str| format!("system:serviceaccount:{NAMESPACE}:{account}");
    let own = |suffix: &str| in_release(&format!("{RELEASE}-otel-webhook{suffix}"));
    let default = objects_with(&["controller.restarts.enabled=true"]);
    let everything = objects_of(&values("everything"));
    for (objects, of, condition, account) in [
        (&*default, CERTIFICATES, "by-the-webhook", own("")),
        (everything, CERTIFICATES, "by-the-webhook", in_release("runner")),
        (&*default, RESTARTS, "by-the-controller", own("-controller")),
        (everything, RESTARTS, "by-the-controller", in_release("teller")),
    ] {
        let [policy, binding] = specs(objects, of);
        let expression = format!("request.userInfo.username == '{account}'");
        assert_eq!(policy["matchConditions"], json!([{"name": condition, "expression": expression}]));
        let name = &named(objects, KINDS[0], of).next().expect("a policy")["metadata"]["name"];
        assert_eq!(binding, &json!({"policyName": name, "validationActions": ["Deny"]}));
    }
}

/// A field that Kubernetes adds to webhooks would be left open.
#[test]
fn the_policy_compares_every_field_of_a_webhook_but_the_bundle() {
    let objects = objects_of(&values("default"));
    let validations = specs(objects, CERTIFICATES)[0]["validations"].to_string();
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

#[test]
fn the_policy_compares_every_field_of_the_crd_but_the_bundle() {
    let both = objects_with(&["crds.served={v1alpha1,v1beta1}"]);
    let validations = specs(&both, CONVERSION)[0]["validations"].to_string();
    let all = Schemas::versions().into_iter().flat_map(|version| {
        let of = |kind: &str| {
            let package = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";
            fields(&version, &format!("{package}.{kind}"))
        };
        [
            "CustomResourceDefinitionSpec",
            "CustomResourceConversion",
            "WebhookConversion",
            "WebhookClientConfig",
        ]
        .map(of)
        .concat()
    });
    // What has parts is compared by them.
    for field in
        all.filter(|field| !["caBundle", "conversion", "webhook", "clientConfig"].contains(&field.as_str()))
    {
        assert!(validations.contains(&format!(".?{field} == ")), "{field}: {validations}");
    }
}

/// All fields of a part are compared but those that are named: the annotations, what is a separate part, and what
/// the API server sets.
#[test]
fn the_policy_of_restarts_names_what_may_change() {
    let objects = objects_of(&values("everything"));
    let [policy, _] = specs(objects, RESTARTS);
    let rules = &policy["matchConstraints"]["resourceRules"];
    assert_eq!(rules[0]["resources"], json!(["deployments", "statefulsets", "daemonsets"]));
    assert_eq!(policy["failurePolicy"], "Fail");
    let variable = |name: &str| {
        let found = items(&policy["variables"]).find(|variable| variable["name"] == name);
        found.expect(name)["expression"].as_str().expect("an expression").to_owned()
    };
    let skipped: Value = serde_saphyr::from_str(&variable("skipped")).expect("a map of lists");
    let expected = json!({
        "metadata": ["annotations", "generation", "managedFields", "resourceVersion"],
        "metadata.annotations": [RECORD, "deprecated.daemonset.template.generation"],
        "spec": ["template"],
        "spec.template": ["metadata", "spec"],
        "spec.template.metadata": ["annotations"],
        "spec.template.metadata.annotations": [CONFIG],
        "spec.template.spec": [],
    });
    assert_eq!(skipped, expected);
    assert_eq!(variable("old"), variable("new").replace("object.", "oldObject."));
    for part in skipped.as_object().expect("a map").keys() {
        assert!(variable("new").contains(&format!("'{part}': ")), "{part}");
    }
}
