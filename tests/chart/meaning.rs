//! The other objects, and what stays when the release goes.

use std::collections::BTreeSet;

use otel_webhook_testkit::objects::items;
use serde_json::{Value, json};

use crate::helm::{
    HELMS, NAMESPACE, chart, matrix, objects_of, objects_with, of_kind, run, server, the, tool, values,
};

#[test]
fn the_chart_is_of_the_version_of_the_program() {
    let text = std::fs::read_to_string(chart().join("Chart.yaml")).expect("Chart.yaml");
    let chart: Value = serde_saphyr::from_str(&text).expect("YAML");
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn objects_are_in_the_namespace_of_the_release() {
    let without = ["CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"];
    for file in matrix() {
        for object in objects_of(&file) {
            let kind = object["kind"].as_str().expect("a kind");
            let cluster_wide = without.contains(&kind)
                || kind.ends_with("WebhookConfiguration")
                || kind.starts_with("ValidatingAdmissionPolicy");
            let expected = if cluster_wide { Value::Null } else { json!(NAMESPACE) };
            assert_eq!(object["metadata"]["namespace"], expected, "{kind}");
        }
    }
}

#[test]
fn nodes_may_be_read_only_where_they_are_watched() {
    let is_watched = |set: &[&str]| {
        let objects = objects_with(set);
        let rules = of_kind(&objects, "ClusterRole").into_iter().flat_map(|role| items(&role["rules"]));
        let may_read = rules.filter(|rule| rule["resources"] == json!(["nodes"])).count();
        let args = crate::helm::args(&objects);
        let is_flagged = args.iter().any(|arg| arg == "--watch-nodes" || arg == "--delivery=auto");
        assert_eq!(may_read, usize::from(is_flagged), "{set:?}");
        is_flagged
    };
    assert!(!is_watched(&[]) && !is_watched(&["injection.delivery=imageVolume"]));
    assert!(is_watched(&["injection.delivery=auto"]) && is_watched(&["injection.watchNodes=true"]));
}

#[test]
fn the_definition_is_the_one_of_the_program() {
    let objects = objects_with(&[]);
    let program: Value = serde_saphyr::from_str(&otel_webhook::crd_yaml()).expect("YAML");
    assert_eq!(the(&objects, "CustomResourceDefinition")["spec"], program["spec"]);
}

#[test]
fn the_default_instrumentation_is_known_to_the_server() {
    let objects = objects_of(&values("everything"));
    let name = the(objects, "Instrumentation")["metadata"]["name"].as_str().expect("a name");
    let named = format!("--default-instrumentation={NAMESPACE}/{name}");
    assert!(crate::helm::args(objects).contains(&named), "{named}");
}

/// As the server judges it, since nothing judges it on its way into the cluster.
#[test]
fn the_default_instrumentation_of_the_values_is_a_good_one() {
    let objects = objects_with(&["defaultInstrumentation.enabled=true"]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("default.json");
    std::fs::write(&file, the(&objects, "Instrumentation").to_string()).expect("written");
    let program = env!("CARGO_BIN_EXE_otel-webhook");
    let said = run(std::process::Command::new(program).args(["validate", "-f"]).arg(&file));
    let said = said.unwrap_or_else(|complaint| panic!("{complaint}"));
    assert!(!said.contains("warning"), "{said}");
}

#[test]
fn cert_manager_makes_a_chain_or_asks_an_issuer() {
    let objects = objects_of(&values("cert-manager"));
    let [ca, serving] = of_kind(objects, "Certificate")[..] else { panic!("two certificates") };
    let issuer = |name: &str| {
        let issuers = of_kind(objects, "Issuer");
        issuers.into_iter().find(|found| found["metadata"]["name"] == name).expect(name)["spec"].clone()
    };
    let name =
        |certificate: &Value| certificate["spec"]["issuerRef"]["name"].as_str().expect("a name").to_owned();
    assert_eq!(issuer(&name(ca)), json!({"selfSigned": {}}));
    assert_eq!(ca["spec"]["isCA"], true);
    assert_eq!(issuer(&name(serving)), json!({"ca": {"secretName": ca["spec"]["secretName"]}}));
    let objects = objects_of(&values("issuer"));
    let serving = the(objects, "Certificate");
    let volume = &server(objects)["volumes"][0];
    assert_eq!(volume["secret"]["secretName"], serving["spec"]["secretName"]);
}

/// A serving certificate of the old CA is replaced before the old CA ends.
#[test]
fn the_authority_is_renewed_longer_before_its_end_than_a_certificate_lives() {
    let objects = objects_with(&["certificates.mode=cert-manager"]);
    let [ca, serving] = of_kind(&objects, "Certificate")[..] else { panic!("two certificates") };
    let hours = |value: &Value| {
        value
            .as_str()
            .and_then(|text| text.strip_suffix('h'))
            .expect("hours")
            .parse::<u32>()
            .expect("a number")
    };
    assert!(hours(&ca["spec"]["renewBefore"]) > hours(&serving["spec"]["duration"]));
}

/// Names are made of the release's, which may be as long as helm lets it be.
#[test]
fn a_long_name_is_cut_where_kubernetes_would_refuse_it() {
    let release = "a-release-with-a-name-of-as-many-as-fifty-three-lette";
    assert_eq!(release.len(), 53);
    for helm in HELMS {
        let mut command = std::process::Command::new(tool(helm));
        let text =
            run(command.args(["template", release, "--set=crds.served={v1alpha1,v1beta1}"]).arg(chart()))
                .expect("rendered");
        let objects = crate::helm::objects(&text);
        let names: BTreeSet<_> = of_kind(&objects, "Service")
            .into_iter()
            .map(|service| service["metadata"]["name"].as_str().expect("a name"))
            .collect();
        assert_eq!(names.len(), 4, "{names:?}");
        assert!(names.iter().all(|name| name.len() <= 63 && !name.ends_with('-')), "{names:?}");
        let configuration = the(&objects, "MutatingWebhookConfiguration");
        let crd = the(&objects, "CustomResourceDefinition");
        let targets = [
            &configuration["webhooks"][0]["clientConfig"],
            &crd["spec"]["conversion"]["webhook"]["clientConfig"],
        ];
        let targets = targets.map(|target| target["service"]["name"].as_str().expect("a Service"));
        assert_ne!(targets[0], targets[1]);
        assert!(targets.iter().all(|target| names.contains(target)), "{targets:?} {names:?}");
    }
}
