//! The part of an Instrumentation for each language.

#[cfg(feature = "schema")]
use crate::{
    Delivery,
    crd::{
        patterns::{CONFIG_PATH, IMAGE, MOST_VARIABLES},
        pod::{Claim, ContainerSecurity, Resources},
        rules,
    },
};
#[cfg(feature = "schema")]
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::values::{EnvVar, Raw};

/// Settings of the Java agent.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("x-kubernetes-validations" = [rules::claim_or_limit()])))]
#[serde(rename_all = "camelCase", default)]
pub struct Java {
    /// Image of the init container that copies the javaagent.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = IMAGE)))]
    pub image: Option<String>,
    /// How the agent gets into pods; overrides `spec.delivery`.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = Delivery::NAMES)))]
    pub delivery: Option<String>,
    /// Environment variables of Java targets; they override those of `spec.env`.
    #[cfg_attr(feature = "schema", schemars(length(max = MOST_VARIABLES)))]
    pub env: Option<Vec<EnvVar>>,
    /// Size limit of the agent's volume. Deprecated: use `volumeClaimTemplate`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Quantity>"))]
    pub volume_limit_size: Option<Raw>,
    /// Claim of an ephemeral volume, used instead of an emptyDir.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Claim>"))]
    pub volume_claim_template: Option<Raw>,
    /// Resources of the init containers.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Resources>"))]
    pub resources: Option<Raw>,
    /// Extensions of the agent, each copied by its own init container.
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub extensions: Option<Vec<Extension>>,
}

/// An image with javaagent extensions.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Extension {
    /// Image with the extensions.
    #[cfg_attr(feature = "schema", schemars(length(min = 1), regex(pattern = IMAGE)))]
    pub image: String,
    /// Folder in the image; its content is copied.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub dir: String,
}

/// Settings of the Node.js, Python or .NET agent.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("x-kubernetes-validations" = [rules::claim_or_limit()])))]
#[serde(rename_all = "camelCase", default)]
pub struct Agent {
    /// Image of the init container that copies the agent.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = IMAGE)))]
    pub image: Option<String>,
    /// How the agent gets into pods; overrides `spec.delivery`.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = Delivery::NAMES)))]
    pub delivery: Option<String>,
    /// Environment variables of the language's targets; they override those of `spec.env`.
    #[cfg_attr(feature = "schema", schemars(length(max = MOST_VARIABLES)))]
    pub env: Option<Vec<EnvVar>>,
    /// Size limit of the agent's volume. Deprecated: use `volumeClaimTemplate`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Quantity>"))]
    pub volume_limit_size: Option<Raw>,
    /// Claim of an ephemeral volume, used instead of an emptyDir.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Claim>"))]
    pub volume_claim_template: Option<Raw>,
    /// Resources of the init container.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Resources>"))]
    pub resource_requirements: Option<Raw>,
}

/// Settings of the Go sidecar.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("x-kubernetes-validations" = [rules::claim_or_limit()])))]
#[serde(rename_all = "camelCase")]
pub struct Go {
    /// Image of the sidecar.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = IMAGE)))]
    pub image: Option<String>,
    /// Environment variables of the sidecar; they override those of `spec.env`.
    #[cfg_attr(feature = "schema", schemars(length(max = MOST_VARIABLES)))]
    pub env: Option<Vec<EnvVar>>,
    /// Not used by Go, which has no volume for an agent. Deprecated.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Quantity>"))]
    pub volume_limit_size: Option<Raw>,
    /// Not used by Go, which has no volume for an agent.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Claim>"))]
    pub volume_claim_template: Option<Raw>,
    /// Resources of the sidecar.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Resources>"))]
    pub resource_requirements: Option<Raw>,
    /// Security context of the sidecar; by default privileged, as user 0.
    #[cfg_attr(feature = "schema", schemars(with = "Option<ContainerSecurity>"))]
    pub security_context: Option<Raw>,
}

/// Settings of the Apache HTTPD module.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("x-kubernetes-validations" = [rules::claim_or_limit()])))]
#[serde(rename_all = "camelCase")]
pub struct ApacheHttpd {
    /// Image of the init container that copies the module.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = IMAGE)))]
    pub image: Option<String>,
    /// Environment variables of the language's targets; they override those of `spec.env`.
    #[cfg_attr(feature = "schema", schemars(length(max = MOST_VARIABLES)))]
    pub env: Option<Vec<EnvVar>>,
    /// Size limit of the volumes. Deprecated: use `volumeClaimTemplate`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Quantity>"))]
    pub volume_limit_size: Option<Raw>,
    /// Claim of an ephemeral volume for the module.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Claim>"))]
    pub volume_claim_template: Option<Raw>,
    /// Resources of the init containers.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Resources>"))]
    pub resource_requirements: Option<Raw>,
    /// Directives of the module's configuration, by name and value.
    #[cfg_attr(feature = "schema", schemars(length(max = MOST_VARIABLES)))]
    pub attrs: Option<Vec<EnvVar>>,
    /// Version of Apache HTTPD: `2.4` (default) or `2.2`.
    pub version: Option<String>,
    /// Folder of `httpd.conf`, by default `/usr/local/apache2/conf`.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = CONFIG_PATH), length(max = 256)))]
    pub config_path: Option<String>,
}

/// Settings of the nginx module.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("x-kubernetes-validations" = [rules::claim_or_limit()])))]
#[serde(rename_all = "camelCase")]
pub struct Nginx {
    /// Image of the init container that copies the module.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = IMAGE)))]
    pub image: Option<String>,
    /// Environment variables of the language's targets; they override those of `spec.env`.
    #[cfg_attr(feature = "schema", schemars(length(max = MOST_VARIABLES)))]
    pub env: Option<Vec<EnvVar>>,
    /// Not used by nginx: its volumes have no limit. Deprecated.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Quantity>"))]
    pub volume_limit_size: Option<Raw>,
    /// Not used by nginx.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Claim>"))]
    pub volume_claim_template: Option<Raw>,
    /// Resources of the init containers.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Resources>"))]
    pub resource_requirements: Option<Raw>,
    /// Directives of the module's configuration, by name and value.
    #[cfg_attr(feature = "schema", schemars(length(max = MOST_VARIABLES)))]
    pub attrs: Option<Vec<EnvVar>>,
    /// The configuration file, by default `/etc/nginx/nginx.conf`.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = CONFIG_PATH), length(max = 256)))]
    pub config_file: Option<String>,
}

/// The fields that all languages have in common, under the same names.
#[derive(Clone, Copy, Debug, Default)]
pub struct LanguageSettings<'s> {
    /// Image of the init container or sidecar.
    pub image: Option<&'s str>,
    /// The language's variables.
    pub env: &'s [EnvVar],
    /// Size limit of the volume.
    pub volume_limit_size: Option<&'s Value>,
    /// Claim of an ephemeral volume, used instead of an emptyDir.
    pub volume_claim_template: Option<&'s Value>,
    /// Resources of the injected containers.
    pub resources: Option<&'s Value>,
    /// Java's extensions.
    pub extensions: &'s [Extension],
    /// Directives of a web server's module.
    pub attrs: &'s [EnvVar],
    /// Version of the web server.
    pub version: Option<&'s str>,
    /// Configuration folder or file of the web server.
    pub config: Option<&'s str>,
    /// Go's own security context.
    pub security_context: Option<&'s Value>,
    /// How the agent gets into pods, for those that can be mounted.
    pub delivery: Option<&'s str>,
}

macro_rules! settings {
    ($($kind:ident { $resources:ident $(, $field:ident: $own:expr)* };)*) => {
        $(impl<'s> From<&'s $kind> for LanguageSettings<'s> {
            fn from(language: &'s $kind) -> Self {
                Self {
                    image: language.image.as_deref(),
                    env: language.env.as_deref().unwrap_or_default(),
                    volume_limit_size: language.volume_limit_size.as_ref().map(Raw::value),
                    volume_claim_template: language.volume_claim_template.as_ref().map(Raw::value),
                    resources: language.$resources.as_ref().map(Raw::value),
                    $($field: $own(language),)*
                    ..Self::default()
                }
            }
        })*
    };
}

settings! {
    Java {
        resources,
        extensions: |own: &'s Java| own.extensions.as_deref().unwrap_or_default(),
        delivery: |own: &'s Java| own.delivery.as_deref()
    };
    Agent { resource_requirements, delivery: |own: &'s Agent| own.delivery.as_deref() };
    Go { resource_requirements, security_context: |own: &'s Go| own.security_context.as_ref().map(Raw::value) };
    ApacheHttpd {
        resource_requirements,
        attrs: |own: &'s ApacheHttpd| own.attrs.as_deref().unwrap_or_default(),
        version: |own: &'s ApacheHttpd| own.version.as_deref(),
        config: |own: &'s ApacheHttpd| own.config_path.as_deref()
    };
    Nginx {
        resource_requirements,
        attrs: |own: &'s Nginx| own.attrs.as_deref().unwrap_or_default(),
        config: |own: &'s Nginx| own.config_file.as_deref()
    };
}
