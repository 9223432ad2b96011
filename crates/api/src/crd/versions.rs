//! The CRD with several versions: the schema of v1beta1 is that of v1alpha1 with the fields under their other paths,
//! and those that only v1beta1 has.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::{
    declarative,
    otlp::PROTOCOLS,
    version::{Version, moved, only_in},
};

/// The CustomResourceDefinition with these versions, one of which objects are stored in.
pub fn of(served: &[Version], storage: Version) -> Value {
    let mut crd = super::crd();
    let alpha = crd["spec"]["versions"][0].clone();
    let versions = Version::ALL.into_iter().filter(|version| served.contains(version) || *version == storage);
    let version = |version: Version| {
        let mut entry = match version {
            Version::V1alpha1 => alpha.clone(),
            Version::V1beta1 => beta(&alpha),
        };
        entry["served"] = served.contains(&version).into();
        entry["storage"] = (version == storage).into();
        entry
    };
    crd["spec"]["versions"] = versions.map(version).collect();
    crd
}

/// The schema of the specification in v1beta1.
pub(super) static BETA_SPEC: LazyLock<Value> = LazyLock::new(|| {
    let crd = super::crd();
    beta(&crd["spec"]["versions"][0])["schema"]["openAPIV3Schema"]["properties"]["spec"].take()
});

fn beta(alpha: &Value) -> Value {
    let mut beta = alpha.clone();
    beta["name"] = Version::V1beta1.name().into();
    for column in beta["additionalPrinterColumns"].as_array_mut().into_iter().flatten() {
        let path = column["jsonPath"].as_str().unwrap_or_default();
        let path = path.strip_prefix('.').unwrap_or(path).to_owned();
        column["jsonPath"] = format!(".{}", Version::V1beta1.field(&path)).into();
    }
    spec(&mut beta["schema"]["openAPIV3Schema"]["properties"]["spec"]);
    beta
}

fn spec(spec: &mut Value) {
    let members = &mut spec["properties"];
    let variables = members["env"].clone();
    let taken: Vec<_> = moved().iter().map(|field| take(members, &field.alpha)).collect();
    for field in only_in(Version::V1alpha1) {
        take(members, &field);
    }
    let switch = |text: &str| json!({"description": text, "nullable": true, "type": "boolean"});
    let group = |text: &str, properties: Value| json!({"description": text, "nullable": true, "type": "object", "properties": properties});
    members["envConfig"] = group(
        "The SDK configuration by environment variables. Cannot be set together with `declarativeConfig`.",
        json!({}),
    );
    members["resource"]["properties"]["k8sMetadata"] = group(
        "Resource attributes of Kubernetes (`k8s.*`).",
        json!({"enabled": switch("Whether they are added, as by default.")}),
    );
    members["resource"]["properties"]["serviceMetadata"] = group(
        "Resource attributes of the service (`service.*`).",
        json!({"enabled": switch("Whether they are derived from metadata of Kubernetes, as by default.")}),
    );
    for (field, schema) in moved().iter().zip(taken) {
        put(members, &field.beta, schema);
    }
    members["envConfig"]["properties"]["exporter"]["properties"]["protocol"] = json!({
        "description": "The protocol of OTLP (`OTEL_EXPORTER_OTLP_PROTOCOL`).",
        "nullable": true, "type": "string", "enum": PROTOCOLS,
    });
    let env = &mut members["envConfig"]["properties"]["env"];
    *env = variables;
    env["description"] = "Environment variables of every target; those of `spec.env` override them.".into();
    for schema in members.as_object_mut().into_iter().flat_map(|members| members.values_mut()) {
        // The rule reads a field that is not there.
        if schema["properties"].get("volumeLimitSize").is_none()
            && let Some(rules) = schema.get_mut("x-kubernetes-validations").and_then(Value::as_array_mut)
        {
            rules.retain(|rule| {
                !rule["rule"].as_str().is_some_and(|text| text.contains("self.volumeLimitSize"))
            });
        }
    }
    members[declarative::FIELD]["description"] = "The file by which agents configure their SDK, instead of `envConfig`: \
        a document of the OpenTelemetry configuration schema. Its members `onUnsupported` and `assumeSupported` are not \
        part of the file."
        .into();
}

/// Takes the schema of a field out of those of the members above it.
fn take(members: &mut Value, field: &[&str]) -> Value {
    match field {
        [name] => members.as_object_mut().and_then(|members| members.shift_remove(*name)).unwrap_or_default(),
        [name, below @ ..] => take(&mut members[*name]["properties"], below),
        [] => Value::Null,
    }
}

fn put(members: &mut Value, field: &[&str], schema: Value) {
    match field {
        [name] => members[*name] = schema,
        [name, below @ ..] => put(&mut members[*name]["properties"], below, schema),
        [] => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v1beta1_has_the_fields_of_v1alpha1_under_its_own_paths() {
        let crd = of(&Version::ALL, Version::V1alpha1);
        let [alpha, beta] = crd["spec"]["versions"].as_array().expect("a list").as_slice() else {
            panic!("not two versions");
        };
        assert_eq!(*alpha, super::super::crd()["spec"]["versions"][0]);
        assert_eq!(
            (&beta["name"], &beta["served"], &beta["storage"]),
            (&json!("v1beta1"), &json!(true), &json!(false))
        );
        let spec = &beta["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
        let names = |value: &Value| {
            value["properties"].as_object().expect("members").keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(names(&spec["envConfig"]), ["exporter", "propagators", "sampler", "env"]);
        assert_eq!(names(&spec["envConfig"]["properties"]["exporter"]), ["endpoint", "tls", "protocol"]);
        assert_eq!(names(&spec["resource"]), ["k8sMetadata", "serviceMetadata", "attributes"]);
        assert_eq!(names(&spec["resource"]["properties"]["k8sMetadata"]), ["enabled", "includeUIDs"]);
        for gone in ["exporter", "propagators", "sampler", "defaults"] {
            assert_eq!(spec.get(gone), None, "{gone}");
        }
        for language in crate::defaults::LANGUAGES {
            let own = &spec[language.field];
            let found = ["resources", "resourceRequirements", "volumeLimitSize", "attrs"]
                .map(|name| own["properties"].get(name).is_some());
            assert_eq!(found, [true, false, false, false], "{}", language.field);
        }
        let columns = beta["additionalPrinterColumns"].as_array().expect("a list").iter();
        let paths: Vec<_> = columns.filter_map(|column| column["jsonPath"].as_str()).collect();
        assert!(paths.contains(&".spec.envConfig.exporter.endpoint"), "{paths:?}");
        assert!(paths.contains(&".metadata.creationTimestamp"), "{paths:?}");
    }

    #[test]
    fn one_version_is_enough() {
        assert_eq!(of(&[Version::V1alpha1], Version::V1alpha1), super::super::crd());
        let crd = of(&[Version::V1beta1], Version::V1beta1);
        assert_eq!(crd["spec"]["versions"][0]["name"], "v1beta1");
        assert_eq!(crd["spec"]["versions"][0]["storage"], true);
        assert_eq!(crd["spec"]["versions"].as_array().map(Vec::len), Some(1));
    }
}
