//! What the API server is told to send, to whom, and whom it is to trust.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use otel_webhook_testkit::objects::items;
use serde_json::{Value, json};

use crate::helm::{NAMESPACE, matrix, objects_of, of_kind, server, services, the, values};

const KINDS: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// All entries of both configurations.
fn webhooks(objects: &[Value]) -> Vec<Value> {
    let configurations = KINDS.iter().flat_map(|kind| of_kind(objects, kind));
    configurations.flat_map(|found| found["webhooks"].as_array().expect("webhooks").clone()).collect()
}

/// An empty one would be fought for by the tool that fills it in and a GitOps tool.
#[test]
fn an_authority_is_rendered_only_where_it_is_known() {
    for file in matrix() {
        let objects = objects_of(&file);
        let given = ["files", "annotated"].iter().any(|name| file == values(name));
        for webhook in webhooks(objects) {
            let bundle = &webhook["clientConfig"]["caBundle"];
            assert_eq!(bundle.is_string(), given, "{}: {bundle}", file.display());
            if given {
                let pem = BASE64_STANDARD.decode(bundle.as_str().expect("text")).expect("base64");
                assert!(pem.starts_with(b"-----BEGIN CERTIFICATE-----\n"), "{}", file.display());
                assert!(pem.ends_with(b"-----END CERTIFICATE-----\n"), "{}", file.display());
            }
        }
    }
}

#[test]
fn cert_manager_is_told_whose_authority_to_fill_in() {
    for name in ["cert-manager", "issuer"] {
        let objects = objects_of(&values(name));
        let certificates = of_kind(objects, "Certificate");
        let serving = certificates.iter().find(|found| found["spec"]["dnsNames"].is_array());
        let serving = &serving.expect("a serving certificate")["metadata"];
        let expected = format!("{}/{}", NAMESPACE, serving["name"].as_str().expect("a name"));
        for configuration in KINDS.map(|kind| the(objects, kind)) {
            assert_eq!(configuration["metadata"]["annotations"]["cert-manager.io/inject-ca-from"], expected);
        }
    }
    for name in ["default", "files"] {
        for configuration in KINDS.map(|kind| the(objects_of(&values(name)), kind).clone()) {
            assert!(configuration["metadata"]["annotations"].is_null(), "{name}: {configuration}");
        }
    }
}

/// For users who may read neither.
#[test]
fn the_settings_are_those_of_the_deployment_and_of_the_registration() {
    for file in matrix() {
        let objects = objects_of(&file);
        let is_settings = |found: &&Value| found["data"]["mutatingWebhookConfiguration"].is_string();
        let found = of_kind(objects, "ConfigMap").into_iter().find(is_settings);
        let Some(settings) = found else {
            assert!(file == values("least"), "{}", file.display());
            continue;
        };
        let manifest = |key: &str| -> Value {
            serde_json::from_str(settings["data"][key].as_str().expect("a text")).expect("JSON")
        };
        let mut expected = the(objects, KINDS[0]).clone();
        for webhook in expected["webhooks"].as_array_mut().expect("webhooks") {
            webhook["clientConfig"].as_object_mut().expect("an object").remove("caBundle");
        }
        assert_eq!(manifest("mutatingWebhookConfiguration"), expected, "{}", file.display());
        let (pod, spec) = (manifest("pod"), server(objects));
        assert_eq!(pod["spec"]["containers"][0]["args"], spec["containers"][0]["args"]);
        assert_eq!(pod["spec"]["serviceAccountName"], spec["serviceAccountName"]);
        assert_eq!(pod["metadata"]["namespace"], NAMESPACE);
        for variable in items(&pod["spec"]["containers"][0]["env"]) {
            assert!(items(&spec["containers"][0]["env"]).any(|own| own == variable), "{variable}");
            assert!(variable["name"].as_str().is_some_and(|name| name.starts_with("OTEL_WEBHOOK_")));
        }
    }
}

/// Else a webhook that is down could keep itself from starting.
#[test]
fn the_own_namespace_is_never_sent() {
    for file in matrix() {
        for webhook in webhooks(objects_of(&file)) {
            let expressions =
                webhook["namespaceSelector"]["matchExpressions"].as_array().expect("a selector");
            let without = expressions.iter().find(|expression| {
                expression["key"] == "kubernetes.io/metadata.name" && expression["operator"] == "NotIn"
            });
            let without =
                without.expect("namespaces that are left out")["values"].as_array().expect("a list");
            assert!(without.contains(&json!(NAMESPACE)), "{webhook}");
            let resources = webhook["rules"][0]["resources"][0].as_str().expect("a resource");
            let system = without.contains(&json!("kube-system"));
            assert_eq!(system, resources != "instrumentations", "{webhook}");
        }
    }
}

#[test]
fn reviews_go_to_the_service_or_to_the_url() {
    let objects = objects_of(&values("host-network"));
    let [service, _] = services(objects);
    for webhook in webhooks(objects) {
        let target = &webhook["clientConfig"]["service"];
        assert_eq!(target["name"], service["metadata"]["name"]);
        assert_eq!(target["namespace"], service["metadata"]["namespace"]);
        assert_eq!(target["port"], service["spec"]["ports"][0]["port"]);
    }
    let paths = |objects: &[Value], pointer| {
        let texts = webhooks(objects).into_iter().map(move |webhook| webhook.pointer(pointer).cloned());
        texts.map(|text| text.expect("a target").as_str().expect("text").to_owned()).collect::<Vec<_>>()
    };
    let by_service = paths(objects, "/clientConfig/service/path");
    let by_url = paths(objects_of(&values("outside")), "/clientConfig/url");
    let expected: Vec<_> = by_service.iter().map(|path| format!("https://192.0.2.7:9443{path}")).collect();
    assert_eq!(by_url, expected);
    assert_eq!(by_service.len(), 5);
}

/// The server gets the CA and no key; what sends reviews in its place gets the key and no more of the CA.
#[test]
fn client_certificates_are_asked_for_only_with_a_client_ca() {
    let mounted = |spec: &Value, name: &str| {
        let volumes = spec["volumes"].as_array().cloned().unwrap_or_default();
        let found = volumes.into_iter().find(|volume| volume["name"] == name);
        found.map(|volume| volume["secret"].clone())
    };
    let items =
        |names: &[&str]| json!(names.iter().map(|key| json!({"key": key, "path": key})).collect::<Vec<_>>());

    assert_eq!(mounted(server(objects_of(&values("default"))), "client-ca"), None);

    let objects = objects_of(&values("everything"));
    let expected = json!({"secretName": "client-ca", "items": items(&["ca.crt"])});
    assert_eq!(mounted(server(objects), "client-ca"), Some(expected));
    assert_eq!(mounted(server(objects), "client"), None);
    for spec in [&the(objects, "Pod")["spec"], &the(objects, "Job")["spec"]["template"]["spec"]] {
        let expected = json!({"secretName": "client", "items": items(&["tls.crt", "tls.key"])});
        assert_eq!(mounted(spec, "client"), Some(expected));
        assert_eq!(
            spec["containers"][0]["args"]
                .as_array()
                .map(|args| args.contains(&json!("--client-key=/client/tls.key"))),
            Some(true)
        );
    }
}

#[test]
fn only_the_managed_mode_may_read_a_secret() {
    for name in ["cert-manager", "issuer", "files", "annotated"] {
        let objects = objects_of(&values(name));
        for role in ["ClusterRole", "Role"].into_iter().flat_map(|kind| of_kind(objects, kind)) {
            for rule in items(&role["rules"]) {
                assert!(!rule["resources"].to_string().contains("secrets"), "{name}: {rule}");
                let is_registration = rule["apiGroups"] == json!(["admissionregistration.k8s.io"]);
                // The controller reads which pods are sent.
                assert!(!is_registration || rule["verbs"] == json!(["get"]), "{name}: {rule}");
            }
        }
    }
}
