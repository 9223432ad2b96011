//! What holds where an Instrumentation does not say: images and resources.

use std::collections::BTreeMap;

use super::ANNOTATION_PREFIX;

/// What is taken for a language whose settings are left open.
#[derive(Debug)]
pub struct LanguageDefaults {
    /// The language's name, as on the command line and in annotations.
    pub language: &'static str,
    /// Its field in the specification.
    pub field: &'static str,
    /// The field in it that holds limits and requests.
    pub resources: &'static str,
    /// Image of the init container or sidecar.
    pub image: &'static str,
    /// CPU and memory that the init container asks for.
    pub requests: [(&'static str, &'static str); 2],
    /// Whether the agent's volume takes a size limit or a claim.
    pub has_volume: bool,
    /// The version of the agent with breaking changes, which the operator does not cross by itself.
    pub breaking: Option<&'static str>,
    /// The language's own fields and what they are by default.
    pub others: &'static [(&'static str, &'static str)],
}

/// Every language that has an image.
pub static LANGUAGES: [&LanguageDefaults; 7] = [&JAVA, &NODEJS, &PYTHON, &DOTNET, &GO, &APACHE_HTTPD, &NGINX];

/// CPU and memory limits of every language's init container.
pub const LIMITS: [(&str, &str); 2] = [("cpu", "500m"), ("memory", "256Mi")];

/// Size limit of the volume that holds an agent.
pub const VOLUME_SIZE: &str = "200Mi";

/// Java's defaults.
pub const JAVA: LanguageDefaults = LanguageDefaults {
    language: "java",
    field: "java",
    resources: "resources",
    image: "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-java:2.30.0",
    requests: [("cpu", "50m"), ("memory", "64Mi")],
    has_volume: true,
    breaking: Some("2.0.0"),
    others: &[],
};

/// Node.js' defaults.
pub const NODEJS: LanguageDefaults = LanguageDefaults {
    language: "nodejs",
    field: "nodejs",
    resources: "resourceRequirements",
    image: "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-nodejs:0.78.0",
    requests: [("cpu", "50m"), ("memory", "128Mi")],
    has_volume: true,
    breaking: None,
    others: &[],
};

/// Python's defaults.
pub const PYTHON: LanguageDefaults = LanguageDefaults {
    language: "python",
    field: "python",
    resources: "resourceRequirements",
    image: "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-python:0.64b0",
    requests: [("cpu", "50m"), ("memory", "64Mi")],
    has_volume: true,
    breaking: None,
    others: &[],
};

/// .NET's defaults.
pub const DOTNET: LanguageDefaults = LanguageDefaults {
    language: "dotnet",
    field: "dotnet",
    resources: "resourceRequirements",
    image: "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-dotnet:1.16.0",
    requests: [("cpu", "50m"), ("memory", "128Mi")],
    has_volume: true,
    breaking: Some("1.3.0"),
    others: &[],
};

/// Go's defaults.
pub const GO: LanguageDefaults = LanguageDefaults {
    language: "go",
    field: "go",
    resources: "resourceRequirements",
    image: "ghcr.io/open-telemetry/opentelemetry-go-instrumentation/autoinstrumentation-go:v0.24.0",
    requests: [("cpu", "50m"), ("memory", "64Mi")],
    has_volume: false,
    breaking: None,
    others: &[],
};

/// Apache HTTPD's defaults.
pub const APACHE_HTTPD: LanguageDefaults = LanguageDefaults {
    language: "apache-httpd",
    field: "apacheHttpd",
    resources: "resourceRequirements",
    image: "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-apache-httpd:1.0.4",
    requests: [("cpu", "1m"), ("memory", "128Mi")],
    has_volume: true,
    breaking: None,
    others: &[("version", "2.4"), ("configPath", "/usr/local/apache2/conf")],
};

/// nginx' defaults; its module comes in the image of Apache HTTPD's.
pub const NGINX: LanguageDefaults = LanguageDefaults {
    language: "nginx",
    field: "nginx",
    resources: "resourceRequirements",
    image: APACHE_HTTPD.image,
    requests: [("cpu", "1m"), ("memory", "128Mi")],
    has_volume: false,
    breaking: None,
    others: &[("configFile", "/etc/nginx/nginx.conf")],
};

/// The annotation in which defaulting notes the default image it took.
pub fn image_annotation(language: &str) -> String {
    format!("{ANNOTATION_PREFIX}default-auto-instrumentation-{language}-image")
}

/// The default images of this installation.
#[derive(Clone, Debug, Default)]
pub struct DefaultImages {
    /// Images that take the place of the built-in ones, by language.
    pub overrides: BTreeMap<String, String>,
    /// A registry, with or without a path, that takes the place of the default images' own.
    pub registry: Option<String>,
}

impl DefaultImages {
    /// Whether the administrator set the default image of a language, by itself or by its registry.
    pub fn is_set(&self, language: &LanguageDefaults) -> bool {
        self.registry.is_some() || self.overrides.contains_key(language.language)
    }

    /// The image of a language whose Instrumentation names none.
    pub fn image(&self, defaults: &LanguageDefaults) -> String {
        if let Some(image) = self.overrides.get(defaults.language) {
            return image.clone();
        }
        match (&self.registry, defaults.image.split_once('/')) {
            (Some(registry), Some((_, path))) => format!("{}/{path}", registry.trim_end_matches('/')),
            _ => defaults.image.to_owned(),
        }
    }
}
