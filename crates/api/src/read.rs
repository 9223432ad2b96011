//! Reads an Instrumentation of any version as one type: that of v1alpha1, and what only v1beta1 has.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use crate::{
    conversion::{CONVERSION_ANNOTATION, in_version, version_of},
    otlp::PROTOCOLS,
    spec::InstrumentationSpec,
    values::EnvVar,
    version::Version,
};

/// What v1beta1 has and v1alpha1 has no field for.
#[derive(Clone, Debug, Default)]
pub struct OnlyBeta {
    /// Whether it is stored as v1beta1, where the operator injects only the languages that have an image.
    pub is_stored_as_beta: bool,
    /// `envConfig.exporter.protocol`, if it is valid.
    pub protocol: Option<String>,
    /// `envConfig.env`.
    pub env: Vec<EnvVar>,
    /// Whether `resource.k8sMetadata.enabled` is false.
    pub without_k8s_metadata: bool,
    /// Whether `resource.serviceMetadata.enabled` is false.
    pub without_service_metadata: bool,
}

/// Reads a specification of v1alpha1, and what only v1beta1 has from the whole object, of any version: an object of
/// v1beta1 that is stored as v1alpha1 keeps it in an annotation.
///
/// # Errors
/// A message that begins with the field's path.
pub fn read(object: &Value, spec: &Value) -> Result<InstrumentationSpec, String> {
    let spec = Option::<InstrumentationSpec>::deserialize(spec).map_err(|error| format!("spec: {error}"))?;
    Ok(InstrumentationSpec { only_beta: OnlyBeta::of(object)?, ..spec.unwrap_or_default() })
}

impl OnlyBeta {
    fn of(object: &Value) -> Result<Self, String> {
        let Some(beta) = beta(object) else { return Ok(Self::default()) };
        let spec = &beta["spec"];
        let config = &spec["envConfig"];
        let protocol = config["exporter"]["protocol"].as_str().filter(|name| PROTOCOLS.contains(name));
        let env = Option::<Vec<EnvVar>>::deserialize(&config["env"])
            .map_err(|error| format!("spec.envConfig.env: {error}"))?;
        let is_off = |group: &str| spec["resource"][group]["enabled"] == false;
        Ok(Self {
            is_stored_as_beta: version_of(object) == Ok(Version::V1beta1),
            protocol: protocol.map(str::to_owned),
            env: env.unwrap_or_default(),
            without_k8s_metadata: is_off("k8sMetadata"),
            without_service_metadata: is_off("serviceMetadata"),
        })
    }
}

/// Returns an object as v1beta1, if it has anything that only v1beta1 has.
pub fn beta(object: &Value) -> Option<Cow<'_, Value>> {
    let is_kept = || !object["metadata"]["annotations"][CONVERSION_ANNOTATION].is_null();
    let version = version_of(object).ok()?;
    (version == Version::V1beta1 || is_kept()).then(|| in_version(object, Version::V1beta1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_of_v1beta1_is_read_as_such_in_whatever_version_it_is_stored() {
        let beta = json!({
            "apiVersion": "opentelemetry.io/v1beta1", "kind": "Instrumentation", "metadata": {"name": "java"},
            "spec": {
                "envConfig": {
                    "exporter": {"endpoint": "http://c:4318", "protocol": "http/json"},
                    "env": [{"name": "A", "value": "1"}],
                },
                "resource": {"k8sMetadata": {"enabled": false}, "serviceMetadata": {"enabled": true}},
            },
        });
        let alpha = in_version(&beta, Version::V1alpha1).into_owned();
        for object in [&beta, &alpha] {
            let spec = read(object, &alpha["spec"]).expect("valid");
            assert_eq!(
                spec.exporter.and_then(|exporter| exporter.endpoint).as_deref(),
                Some("http://c:4318")
            );
            let OnlyBeta { is_stored_as_beta, protocol, env, without_k8s_metadata, without_service_metadata } =
                spec.only_beta;
            assert_eq!(is_stored_as_beta, object["apiVersion"] == Version::V1beta1.api_version());
            assert_eq!((protocol.as_deref(), &*env[0].name), (Some("http/json"), "A"));
            assert_eq!((without_k8s_metadata, without_service_metadata), (true, false));
        }
        let plain = json!({
            "apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation", "metadata": {"name": "java"},
            "spec": {"exporter": {"protocol": "grpc"}, "envConfig": beta["spec"]["envConfig"]},
        });
        let spec = read(&plain, &plain["spec"]).expect("valid");
        assert_eq!((spec.only_beta.protocol, spec.only_beta.env.len()), (None, 0));
    }
}
