//! Tests of CA bundles in configurations, by applied patches.

use super::*;
use crate::authority::Authority;

fn authority() -> X509 {
    let authority = Authority::make(Timestamp::now(), std::time::Duration::from_secs(3600));
    authority.expect("a CA").certificate().clone()
}

fn object(bundles: &[Option<String>]) -> Value {
    let webhook = |(index, bundle): (usize, &Option<String>)| {
        let mut webhook = json!({
            "name": format!("{index}.example.com"), "failurePolicy": "Ignore",
            "clientConfig": {"url": "https://localhost/", "future": [1.50]},
        });
        if let Some(bundle) = bundle {
            webhook["clientConfig"]["caBundle"] = BASE64_STANDARD.encode(bundle).into();
        }
        webhook
    };
    let webhooks: Vec<_> = bundles.iter().enumerate().map(webhook).collect();
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "one", "resourceVersion": "7"}, "webhooks": webhooks,
    })
}

fn read(object: &Value) -> Configuration {
    Configuration::read(object)
}

#[test]
fn only_webhooks_with_another_ca_bundle_are_changed() {
    let (one, two) = (authority(), authority());
    let bundle = [one.clone(), two.clone()];
    let turned = [two.pem(), "# a comment\n".to_owned(), one.pem()].concat();
    let before = object(&[None, Some(one.pem()), Some(turned), Some("nonsense".to_owned())]);
    let configuration = read(&before);
    assert!(!configuration.agrees(&bundle));

    let patch = configuration.patch(&bundle);
    let mut after = before.clone();
    json_patch::patch(&mut after, &patch).expect("it applies");

    assert!(read(&after).agrees(&bundle));
    assert_eq!(read(&after).trusted(), bundle);
    assert_eq!(after["webhooks"][2], before["webhooks"][2], "the order does not matter");
    for webhook in after["webhooks"].as_array_mut().expect("webhooks") {
        webhook["clientConfig"].as_object_mut().expect("an object").shift_remove("caBundle");
    }
    assert_eq!(after, object(&[None, None, None, None]), "nothing but caBundle");
}

#[test]
fn a_patch_applies_only_to_the_version_that_was_read() {
    let before = object(&[None]);
    let patch = read(&before).patch(&[authority()]);
    for (path, value) in [("/metadata/resourceVersion", "8"), ("/webhooks/0/name", "other")] {
        let mut changed = before.clone();
        *changed.pointer_mut(path).expect("there") = value.into();
        assert!(json_patch::patch(&mut changed, &patch).is_err(), "{path}");
    }
}

#[test]
fn a_ca_is_trusted_if_all_webhooks_have_it() {
    let (one, two) = (authority(), authority());
    let both = [one.pem(), two.pem()].concat();
    let configuration = read(&object(&[Some(both.clone()), Some(two.pem())]));
    assert_eq!(configuration.trusted(), std::slice::from_ref(&two));
    assert!(!configuration.agrees(&[two]));
    assert!(read(&object(&[Some(both), None])).trusted().is_empty());
    assert!(read(&object(&[])).is_empty());
}

#[test]
fn other_managers_of_the_bundle_are_found() {
    let mut tended = object(&[None]);
    tended["metadata"]["annotations"] = json!({"cert-manager.io/inject-ca-from": "a/b"});
    let bundle = json!({"f:webhooks": {"k:{\"name\":\"a\"}": {"f:clientConfig": {"f:caBundle": {}}}}});
    let entry = |manager: &str, second: u8, fields: &Value| {
        let time = format!("2026-11-03T10:00:0{second}Z");
        json!({"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields})
    };
    tended["metadata"]["managedFields"] = json!([
        entry("helm", 5, &json!({"f:webhooks": {}})),
        entry("somebody", 2, &bundle),
        entry("kubectl-edit", 4, &bundle),
        entry("otel-webhook", 5, &bundle),
    ]);
    let configuration = read(&tended);
    assert_eq!(configuration.cainjector, Some("cert-manager.io/inject-ca-from"));
    assert_eq!(configuration.last_manager.as_deref(), Some("kubectl-edit"));
    tended["metadata"]["managedFields"] = json!([entry("otel-webhook", 1, &bundle)]);
    assert_eq!(read(&tended).last_manager, None);
}

#[test]
fn the_bundle_of_a_crd_is_changed_only_where_this_service_converts() {
    let crd = |strategy: &str| {
        json!({
            "kind": "CustomResourceDefinition", "metadata": {"name": "one", "resourceVersion": "7"},
            "spec": {"conversion": {"strategy": strategy, "webhook": {"clientConfig": {
                "service": {"namespace": "home", "name": "converts"}, "caBundle": "bm9uc2Vuc2U=",
            }}}},
        })
    };
    let bundle = [authority()];
    let read = |object: &Value| Configuration::read_crd(object, "home", "converts");
    let mut changed = crd("Webhook");
    assert!(!read(&changed).agrees(&bundle));
    let patch = read(&changed).patch(&bundle);
    json_patch::patch(&mut changed, &patch).expect("it applies");
    assert_eq!(read(&changed).trusted(), bundle);
    changed["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = "bm9uc2Vuc2U=".into();
    assert_eq!(changed, crd("Webhook"), "nothing but caBundle");

    let mut other = crd("Webhook");
    other["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["name"] = "other".into();
    assert!(json_patch::patch(&mut other, &patch).is_err(), "another Service converts since it was read");
    for unmanaged in [other, crd("None"), json!({"spec": {}})] {
        assert!(read(&unmanaged).is_empty(), "{unmanaged}");
    }
}
