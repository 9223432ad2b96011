//! The CRD is there already, from the operator's release.

use otel_webhook_testkit::{cluster::control_plane::Ran, until::until};
use serde_json::{Value, json};

use super::values;
use crate::cluster::Cluster;
use crate::helm::Release;
use crate::pod::{Pod, Ports};

const NAME: &str = "instrumentations.opentelemetry.io";

/// It stays as it is, the release says so, and pods are injected all the same.
pub fn of_another_release(cluster: &Cluster) {
    operators_crd(cluster);
    let ports = Ports::free();
    let release = Release::new(cluster, "helm3", "beside-release");
    let said = install(&release, ports, json!({}));
    assert!(
        said.stdout.contains("the release operator in namespace opentelemetry-operator"),
        "{}",
        said.stdout
    );
    assert!(!fields(cluster).contains(&"priority".to_owned()), "the operator's schema is as it was");
    assert_eq!(owner(cluster), "operator");
    let _pod = Pod::start(cluster, &release.namespace, ports);
    cluster.namespace("beside-apps");
    cluster.instrumentation("beside-apps");
    cluster.until_injected("beside-apps");

    release.uninstall();

    assert_eq!(owner(cluster), "operator", "what is not ours stays");
}

/// The next upgrade that is told to makes it ours.
pub fn taken_over(cluster: &Cluster) {
    operators_crd(cluster);
    let ports = Ports::free();
    for program in ["helm3", "helm4"] {
        let release = Release::new(cluster, program, "taking-release");
        operators_crd(cluster);
        install(&release, ports, json!({}));
        assert_eq!(owner(cluster), "operator");

        release.take_over(&all(ports, json!({"crds": {"takeOver": true}})));

        assert_eq!(owner(cluster), "otel-webhook", "{program}");
        assert!(fields(cluster).contains(&"priority".to_owned()), "{program}: the schema is ours");
        release.upgrade(&all(ports, json!({})));
        assert_eq!(owner(cluster), "otel-webhook", "{program}: it stays ours without being told again");
    }
}

fn install(release: &Release, ports: Ports, more: Value) -> Ran {
    release.install(&all(ports, more))
}

fn all(ports: Ports, more: Value) -> Value {
    let mut all = values(ports, json!({"certificates": {"extraNames": ["localhost"]}}));
    super::merge(&mut all, more);
    all
}

/// A CRD as the operator's chart leaves it: helm's marks, and a schema without our fields.
fn operators_crd(cluster: &Cluster) {
    let mut crd = otel_webhook_api::crd::crd();
    crd["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "Helm"});
    crd["metadata"]["annotations"] = json!({
        "meta.helm.sh/release-name": "operator",
        "meta.helm.sh/release-namespace": "opentelemetry-operator",
    });
    let spec = crd.pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/spec").expect("a schema");
    spec.as_object_mut().expect("an object").remove("x-kubernetes-validations");
    let properties = spec["properties"].as_object_mut().expect("properties");
    properties.remove("selector");
    properties.remove("priority");
    // As helm 3 does, which most have their operator from.
    cluster.plane.kubectl(&["delete", "crd", NAME, "--ignore-not-found"]);
    let ran =
        cluster.plane.kubectl_in(&["create", "--field-manager=helm", "--filename", "-"], &crd.to_string());
    assert!(ran.ok, "{}", ran.stderr);
    until("the operator's CRD is served", || {
        cluster.plane.kubectl(&["get", NAME, "--all-namespaces"]).ok.then_some(())
    });
}

fn owner(cluster: &Cluster) -> String {
    let crd = cluster.find("crd", NAME).expect("a CRD");
    crd["metadata"]["annotations"]["meta.helm.sh/release-name"].as_str().unwrap_or_default().to_owned()
}

fn fields(cluster: &Cluster) -> Vec<String> {
    let crd = cluster.find("crd", NAME).expect("a CRD");
    let properties =
        &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    properties.as_object().expect("properties").keys().cloned().collect()
}
