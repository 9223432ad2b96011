//! Without cert-manager: the webhook makes its own certificates. It is what
//! the chart does when nobody tells it anything.

use std::fs;
use std::process::Command;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use otel_webhook_server::tls::SelfSigned;
use otel_webhook_testkit::{objects::items, until::until};
use serde_json::{Value, json};

use super::values;
use crate::cluster::Cluster;
use crate::helm::Release;
use crate::pod::{Pod, Ports};

/// With the name under which the API server reaches it here.
fn managed(ports: Ports, more: Value) -> Value {
    let mut all = values(ports, json!({"certificates": {"extraNames": ["localhost"]}}));
    super::merge(&mut all, more);
    all
}

pub fn helm3(cluster: &Cluster) {
    goes_round(cluster, "helm3");
}

pub fn helm4(cluster: &Cluster) {
    goes_round(cluster, "helm4");
}

fn goes_round(cluster: &Cluster, program: &'static str) {
    let ports = Ports::free();
    let release = Release::new(cluster, program, &format!("{program}-release"));
    let apps = format!("{program}-apps");
    cluster.namespace(&apps);
    let installed = release.install(&managed(ports, json!({})));
    assert!(installed.stdout.contains("kind: Instrumentation"), "what to do next: {}", installed.stdout);
    let mut pod = Pod::start(cluster, &release.namespace, ports);
    cluster.instrumentation(&apps);
    cluster.until_injected(&apps);
    let trusted = bundles(cluster);

    // The bundle is the server's: helm must not take it away, or pods would
    // start without their agents until it is put back.
    cluster.during_traffic(&apps, |traffic| {
        release.upgrade(&managed(ports, json!({"injection": {"languages": ["nodejs"]}})));
        traffic.goes_on();
        assert_eq!(bundles(cluster), trusted, "{program} upgrade left the bundles alone");
    });
    pod.restart();
    pod.until_ready();
    cluster.until_untouched(&apps);

    release.rollback("1");
    pod.restart();
    pod.until_ready();
    cluster.until_injected(&apps);
    assert_eq!(bundles(cluster), trusted, "{program} rollback left the bundles alone");

    release.uninstall();
    drop(pod);
    let left = |kind: &str, name: &str| cluster.find_in(&release.namespace, kind, name).is_some();
    for kind in
        ["mutatingwebhookconfiguration", "validatingwebhookconfiguration", "clusterrole", "deployment"]
    {
        assert!(!left(kind, "otel-webhook"), "{kind} is still there");
    }
    for kind in ["clusterrole", "role", "deployment", "service", "poddisruptionbudget"] {
        assert!(!left(kind, "otel-webhook-controller"), "{kind} of the controller is still there");
    }
    assert!(left("crd", "instrumentations.opentelemetry.io"), "the CRD is kept, as the values say");
    assert!(
        cluster.find_in(&apps, "instrumentation", "default").is_some(),
        "nobody's Instrumentations are lost"
    );
    let pod = cluster.create_java(&apps, "after");
    assert!(pod.is_untouched() && pod.warnings.is_empty(), "{} {}", pod.warnings, pod.pod);
}

/// What `helm test` runs in the cluster, run here with the address of this machine.
pub fn tested(cluster: &Cluster) {
    let ports = Ports::free();
    let release = Release::new(cluster, "helm3", "tested-release");
    release.install(&managed(ports, json!({})));
    let pod = Pod::start(cluster, &release.namespace, ports);
    let hooks = release.hooks();
    let test = hooks.iter().find(|object| {
        object["kind"] == "Pod" && object["metadata"]["annotations"]["helm.sh/hook"] == "test"
    });
    let spec = &test.expect("a test of the release")["spec"];
    let secret = spec["volumes"][0]["secret"]["secretName"].as_str().expect("a Secret with the authority");
    let authority = cluster.plane.dir().join("ca.crt");
    fs::write(&authority, cluster.secret(&release.namespace, secret, "ca.crt")).expect("a file");
    let arguments = items(&spec["containers"][0]["args"]).map(|argument| {
        let argument = argument.as_str().expect("text");
        argument.replace("/authority/ca.crt", &authority.display().to_string())
    });

    let ran = Command::new(env!("CARGO_BIN_EXE_otel-webhook")).env_clear().args(arguments).output();

    let ran = ran.expect("the program can be started");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(said.contains("connected to localhost") && said.contains("3 ok, 0 warnings"), "{said}");
    drop(pod);
}

/// With the token of the webhook: the role lets it patch its configurations and the CRD, and the policies `caBundle` in
/// them.
pub fn bundle_alone(cluster: &Cluster) {
    let ports = Ports::free();
    let release = Release::new(cluster, "helm3", "policy-release");
    release.install(&managed(ports, json!({"crds": {"served": ["v1alpha1", "v1beta1"]}})));
    let account = format!("--as=system:serviceaccount:{}:otel-webhook", release.namespace);
    let of_webhooks = [
        ("/metadata/annotations", json!({"cert-manager.io/inject-ca-from": "a/b"}), "not metadata"),
        ("/webhooks", json!([]), "not the list of webhooks"),
        ("/webhooks/0/timeoutSeconds", json!(29), "not other fields of a webhook"),
        ("/webhooks/0/clientConfig/url", json!("https://192.0.2.9/"), "not other fields of a webhook"),
        ("/webhooks/0/rules/0/resources", json!(["secrets"]), "not other fields of a webhook"),
        ("/webhooks/0/namespaceSelector", json!({}), "not other fields of a webhook"),
        ("/webhooks/0/objectSelector", json!({"matchLabels": {"a": "b"}}), "not other fields of a webhook"),
    ];
    let other = "not other fields of a CustomResourceDefinition";
    let of_crd = [
        ("/metadata/annotations", json!({"cert-manager.io/inject-ca-from": "a/b"}), "not metadata"),
        ("/spec/versions/0/served", json!(false), other),
        ("/spec/versions/1/schema/openAPIV3Schema/properties/spec", json!({"type": "object"}), other),
        ("/spec/conversion/webhook/clientConfig/url", json!("https://192.0.2.9/"), other),
        ("/spec/conversion/webhook/conversionReviewVersions", json!(["v1", "v2"]), other),
        ("/spec/conversion", json!({"strategy": "None"}), other),
        ("/spec/names/shortNames", json!(["a"]), other),
    ];
    let bundle = "/webhooks/0/clientConfig/caBundle";
    for (kind, name, bundle, denied) in [
        ("mutatingwebhookconfiguration", "otel-webhook", bundle, &of_webhooks),
        ("validatingwebhookconfiguration", "otel-webhook", bundle, &of_webhooks),
        (
            "crd",
            "instrumentations.opentelemetry.io",
            "/spec/conversion/webhook/clientConfig/caBundle",
            &of_crd,
        ),
    ] {
        let patch = |path: &str, value: &Value| {
            let patch = json!([{"op": "add", "path": path, "value": value}]).to_string();
            let args = ["patch", kind, name, "--type=json", &account, "--patch", &patch];
            cluster.plane.kubectl(&args)
        };
        // Another value each time: what a patch allowed before leaves as it is, no policy denies.
        let mut values = 0..;
        until("the API server has the policy", || {
            let value = format!("attempt-{}", values.next()?);
            (!patch("/metadata/labels/by", &json!(value)).ok).then_some(())
        });
        let authority = SelfSigned::generate(&["localhost"]).expect("a CA").ca_pem;
        let ran = patch(bundle, &json!(BASE64_STANDARD.encode(authority)));
        assert!(ran.ok, "{kind}: {}", ran.stderr);
        for (path, value, changed) in denied {
            let ran = patch(path, value);
            assert!(!ran.ok && ran.stderr.contains(changed), "{kind} {path}: {}{}", ran.stdout, ran.stderr);
        }
    }
    release.uninstall();
}

/// The bundle of every webhook of the release.
fn bundles(cluster: &Cluster) -> Vec<String> {
    let kinds = ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"];
    let webhooks = kinds.iter().flat_map(|kind| {
        let found = cluster.find(kind, "otel-webhook").unwrap_or_else(|| panic!("no {kind}"));
        items(&found["webhooks"]).cloned().collect::<Vec<_>>()
    });
    let bundle = |webhook: Value| webhook["clientConfig"]["caBundle"].as_str().unwrap_or_default().to_owned();
    let bundles: Vec<_> = webhooks.map(bundle).collect();
    assert!(bundles.iter().all(|bundle| !bundle.is_empty()), "a bundle is missing: {bundles:?}");
    bundles
}
