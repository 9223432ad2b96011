//! What v1beta1 has and v1alpha1 has not, also where an object is stored as v1alpha1.

use otel_webhook_api::{Version, defaults::JAVA, in_version};
use otel_webhook_testkit::{
    objects::{NAMESPACE, asking, instrumentation},
    surroundings::{Injected, Surroundings},
};
use serde_json::{Value, json};

fn injected(spec: &Value, version: Version, language: &str) -> Injected {
    let object = json!({
        "apiVersion": Version::V1beta1.api_version(), "kind": "Instrumentation",
        "metadata": {"name": "inst", "namespace": NAMESPACE}, "spec": spec,
    });
    let around = Surroundings::new([in_version(&object, version).into_owned()]);
    let mut pod = asking(&[language], json!({"image": "example.com/app:1"}));
    pod["metadata"]["annotations"]["resource.opentelemetry.io/team"] = json!("a");
    let injected = around.inject(&pod);
    assert_eq!(injected.codes(), [format!("{language}/app: Injected")], "{spec}");
    injected
}

#[test]
fn d44_the_protocol_and_the_common_variables_are_set() {
    let spec = json!({
        "envConfig": {
            "exporter": {"endpoint": "http://c:4318", "protocol": "http/protobuf"},
            "env": [{"name": "A", "value": "config"}, {"name": "B", "value": "config"}, {"name": "C", "value": "config"}],
        },
        "env": [{"name": "B", "value": "env"}, {"name": "C", "value": "env"}],
        "java": {"env": [{"name": "C", "value": "java"}]},
    });
    for version in Version::ALL {
        let injected = injected(&spec, version, "java");
        let values = ["A", "B", "C", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"]
            .map(|name| injected.value("app", name).unwrap_or_default());
        assert_eq!(values, ["config", "env", "java", "http://c:4318", "http/protobuf"], "{version}");
    }
}

#[test]
fn d45_no_attributes_are_derived_in_any_version_where_metadata_is_off() {
    let spec = json!({"resource": {
        "attributes": {"k8s.cluster.name": "own", "service.name": "own"},
        "k8sMetadata": {"enabled": false, "includeUIDs": true},
        "serviceMetadata": {"enabled": false},
    }});
    for version in Version::ALL {
        for language in ["java", "nodejs", "python", "dotnet", "go", "sdk"] {
            let injected = injected(&spec, version, language);
            let spec = &injected.pod["spec"]["containers"];
            let container = if language == "go" { &spec[1] } else { &spec[0] };
            let env = container["env"].as_array().expect("variables");
            let value = |name: &str| env.iter().find(|one| one["name"] == name).map(|one| &one["value"]);
            assert_eq!(
                value("OTEL_RESOURCE_ATTRIBUTES"),
                Some(&json!("k8s.cluster.name=own,service.name=own,team=a")),
                "{language} in {version}"
            );
            assert_eq!(value("OTEL_SERVICE_NAME"), None, "{language} in {version}");
        }
    }
}

#[test]
fn the_name_of_the_service_that_the_pod_sets_stays() {
    let spec = json!({"resource": {"serviceMetadata": {"enabled": false}}});
    let object = json!({
        "apiVersion": Version::V1beta1.api_version(), "kind": "Instrumentation",
        "metadata": {"name": "inst", "namespace": NAMESPACE}, "spec": spec,
    });
    let mut pod = asking(&["java"], json!({}));
    pod["metadata"]["annotations"]["resource.opentelemetry.io/service.name"] = json!("shop");
    let injected = Surroundings::new([object]).inject(&pod);
    assert_eq!(injected.value("app", "OTEL_SERVICE_NAME"), Some("shop"));
    let attributes = injected.value("app", "OTEL_RESOURCE_ATTRIBUTES").expect("attributes");
    assert!(attributes.contains("k8s.container.name=app"), "{attributes}");
    assert!(!attributes.contains("service."), "{attributes}");
}

/// An attribute of the file without a value would make the agent reject the file.
#[test]
fn a_file_names_a_service_of_which_no_name_is_derived() {
    let provider = json!({"processors": [{"batch": {"exporter": {"console": {}}}}]});
    for (attributes, expected) in [
        (json!({}), "${OTEL_SERVICE_NAME:-unknown_service}"),
        (json!({"service.name": "shop"}), "${OTEL_SERVICE_NAME:-shop}"),
        (json!({"service.name": "a}${B}"}), "${OTEL_SERVICE_NAME:-unknown_service}"),
    ] {
        let spec = json!({
            "declarativeConfig": {"file_format": "1.0", "tracer_provider": provider},
            "resource": {"attributes": attributes, "serviceMetadata": {"enabled": false}},
        });
        let injected = injected(&spec, Version::V1beta1, "java");
        let file = injected.pod["metadata"]["annotations"]["otel-webhook/declarative-config-java"].as_str();
        let file = file.expect("a file");
        assert!(file.contains(&format!("\"value\": \"{expected}\"\n")), "{file}");
    }
}

#[test]
fn d46_labels_name_the_service_by_their_own_field_only() {
    let name = |object: &Value| {
        let mut pod = asking(&["java"], json!({}));
        pod["metadata"]["labels"] = json!({"app.kubernetes.io/name": "shop"});
        let injected = Surroundings::new([object.clone()]).inject(&pod);
        injected.value("app", "OTEL_SERVICE_NAME").map(str::to_owned)
    };
    let alpha = instrumentation("inst", json!({"defaults": {"useLabelsForResourceAttributes": true}}));
    let beta = in_version(&alpha, Version::V1beta1).into_owned();
    assert_eq!([name(&alpha), name(&beta)], [Some("shop".to_owned()), Some("shop".to_owned())]);
    let mut enabled = beta;
    enabled["metadata"].as_object_mut().expect("metadata").remove("annotations");
    enabled["spec"] = json!({"resource": {"serviceMetadata": {"enabled": true}}});
    assert_ne!(name(&enabled).as_deref(), Some("shop"));
}

#[test]
fn d47_a_language_without_an_image_is_injected_with_the_default_one() {
    let injected = injected(&json!({"java": {}}), Version::V1beta1, "java");
    assert_eq!(injected.pod["spec"]["initContainers"][0]["image"], JAVA.image);
}

#[test]
fn d47_with_required_images_a_language_without_one_is_skipped_in_v1beta1() {
    let codes = |api_version: &str, spec: &Value| {
        let object = json!({
            "apiVersion": api_version, "kind": "Instrumentation",
            "metadata": {"name": "inst", "namespace": NAMESPACE}, "spec": spec,
        });
        let mut around = Surroundings::new([object]);
        around.settings.require_images = true;
        let injected = around.inject(&asking(&["java"], json!({"image": "example.com/app:1"})));
        injected.codes()
    };
    let (beta, alpha) = (Version::V1beta1.api_version(), Version::V1alpha1.api_version());
    assert_eq!(codes(beta, &json!({"java": {}})), ["java: ImageRequired"]);
    assert_eq!(codes(beta, &json!({"java": {"image": "own:1"}})), ["java/app: Injected"]);
    assert_eq!(codes(alpha, &json!({"java": {}})), ["java/app: Injected"]);
}
