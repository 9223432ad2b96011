//! Defaults of an Instrumentation: images and resources.

use std::collections::BTreeMap;

use super::{
    annotations::ANNOTATION_PREFIX,
    images,
    otlp::{Agent, Protocol},
    quantity::Quantity,
};

/// The defaults of a language.
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
    /// CPU and memory requests of the init container.
    pub requests: Requests,
    /// Whether the agent's volume can have a size limit or a claim.
    pub has_volume: bool,
    /// The version of the agent with breaking changes, to which the operator does not upgrade by itself.
    pub breaking: Option<&'static str>,
    /// The size of the default image's agent in its volume (`docs/operations/sizes.md`).
    pub size: Quantity,
    /// The language's own fields and their defaults.
    pub others: &'static [(&'static str, &'static str)],
    /// How the agent exports.
    pub export: Export,
    /// The first version of the default image that runs on arm64; `None` if no version does.
    pub arm64_since: Option<Release>,
    /// How the agent reads resource attributes.
    pub decoding: Decoding,
}

/// Requests for CPU and memory, by name.
pub type Requests = [(&'static str, &'static str); 2];

/// The first two numbers of a version.
pub type Release = (u64, u64);

/// How an agent reads the values of `OTEL_RESOURCE_ATTRIBUTES`, which are percent-encoded (D34).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoding {
    /// It decodes them.
    Each,
    /// It decodes them since this version of the default image.
    Since(Release),
    /// It decodes them, and discards all of them if one cannot be decoded.
    AllOrNone,
    /// It does not decode them.
    Never,
}

/// How an agent exports.
#[derive(Debug)]
pub struct Export {
    /// The default protocols, each with the first version that has it.
    pub protocols: &'static [(Release, Protocol)],
    /// The only protocol that the agent supports, if it supports only one.
    pub only: Option<Protocol>,
    /// The directive that sets the endpoint, for an agent that reads no variables.
    pub directive: Option<&'static str>,
}

/// Every language that has an image.
pub static LANGUAGES: [&LanguageDefaults; 7] = [&JAVA, &NODEJS, &PYTHON, &DOTNET, &GO, &APACHE_HTTPD, &NGINX];

/// CPU and memory limits of every language's init container.
pub const LIMITS: [(&str, &str); 2] = [("cpu", "500m"), ("memory", "256Mi")];

/// CPU and memory requests of the init container of an agent in `spec.agents`.
pub const AGENT_REQUESTS: Requests = [("cpu", "50m"), ("memory", "64Mi")];

/// Size limit of the volume that holds an agent.
pub const VOLUME_SIZE: &str = "200Mi";

/// Java's defaults.
pub const JAVA: LanguageDefaults = LanguageDefaults {
    language: "java",
    field: "java",
    resources: "resources",
    image: images::JAVA,
    requests: [("cpu", "50m"), ("memory", "64Mi")],
    has_volume: true,
    breaking: Some("2.0.0"),
    size: Quantity::mebibytes(24),
    others: &[],
    // 2.0.0 changed the default from gRPC.
    export: Export {
        protocols: &[((0, 0), Protocol::Grpc), ((2, 0), Protocol::Http)],
        only: None,
        directive: None,
    },
    arm64_since: Some((0, 0)),
    decoding: Decoding::Each,
};

/// Node.js' defaults.
pub const NODEJS: LanguageDefaults = LanguageDefaults {
    language: "nodejs",
    field: "nodejs",
    resources: "resourceRequirements",
    image: images::NODEJS,
    requests: [("cpu", "50m"), ("memory", "128Mi")],
    has_volume: true,
    breaking: None,
    size: Quantity::mebibytes(132),
    others: &[],
    // Until operator v0.119 a program in the image chose the exporter, by default gRPC; since then the
    // SDK of Node.js chooses it.
    export: Export {
        protocols: &[((0, 0), Protocol::Grpc), ((0, 56), Protocol::Http)],
        only: None,
        directive: None,
    },
    arm64_since: Some((0, 0)),
    // The SDK since 2.6 (opentelemetry-js #6261); before, a part of the errors did so.
    decoding: Decoding::AllOrNone,
};

/// Python's defaults.
pub const PYTHON: LanguageDefaults = LanguageDefaults {
    language: "python",
    field: "python",
    resources: "resourceRequirements",
    image: images::PYTHON,
    requests: [("cpu", "50m"), ("memory", "64Mi")],
    has_volume: true,
    breaking: None,
    size: Quantity::mebibytes(28),
    others: &[],
    // Injection sets the protocol. The image has no exporter for gRPC (its requirements.txt).
    export: Export { protocols: &[((0, 0), Protocol::Http)], only: Some(Protocol::Http), directive: None },
    arm64_since: Some((0, 0)),
    decoding: Decoding::Each,
};

/// .NET's defaults.
pub const DOTNET: LanguageDefaults = LanguageDefaults {
    language: "dotnet",
    field: "dotnet",
    resources: "resourceRequirements",
    image: images::DOTNET,
    requests: [("cpu", "50m"), ("memory", "128Mi")],
    has_volume: true,
    breaking: Some("1.3.0"),
    size: Quantity::mebibytes(150),
    others: &[],
    export: Export { protocols: &[((0, 0), Protocol::Http)], only: None, directive: None },
    // Operator v0.157 (#3270): before, the image for arm64 had the profiler of amd64.
    arm64_since: Some((1, 16)),
    // 1.14.0 contains the SDK 1.15.0 (opentelemetry-dotnet #6737).
    decoding: Decoding::Since((1, 14)),
};

/// Go's defaults.
pub const GO: LanguageDefaults = LanguageDefaults {
    language: "go",
    field: "go",
    resources: "resourceRequirements",
    image: images::GO,
    requests: [("cpu", "50m"), ("memory", "64Mi")],
    has_volume: false,
    breaking: None,
    size: Quantity::ZERO,
    others: &[],
    // v0.8.0-alpha changed the exporter from gRPC, v0.2.0-alpha added arm64 (its changelog).
    export: Export {
        protocols: &[((0, 0), Protocol::Grpc), ((0, 8), Protocol::Http)],
        only: None,
        directive: None,
    },
    arm64_since: Some((0, 2)),
    decoding: Decoding::Each,
};

/// Apache HTTPD's defaults.
pub const APACHE_HTTPD: LanguageDefaults = LanguageDefaults {
    language: "apache-httpd",
    field: "apacheHttpd",
    resources: "resourceRequirements",
    image: images::APACHE_HTTPD,
    requests: [("cpu", "1m"), ("memory", "128Mi")],
    has_volume: true,
    breaking: None,
    size: Quantity::mebibytes(150),
    others: &[("version", "2.4"), ("configPath", "/usr/local/apache2/conf")],
    // The module links only the exporter for gRPC (opentelemetry-cpp-contrib #614).
    export: Export {
        protocols: &[((0, 0), Protocol::Grpc)],
        only: Some(Protocol::Grpc),
        directive: Some("ApacheModuleOtelExporterEndpoint"),
    },
    // Published for amd64 only (operator #2469).
    arm64_since: None,
    // The module's SDK is older than opentelemetry-cpp #4364.
    decoding: Decoding::Never,
};

/// nginx' defaults; its module is in the image of Apache HTTPD's.
pub const NGINX: LanguageDefaults = LanguageDefaults {
    language: "nginx",
    field: "nginx",
    resources: "resourceRequirements",
    image: images::NGINX,
    requests: [("cpu", "1m"), ("memory", "128Mi")],
    has_volume: false,
    breaking: None,
    size: APACHE_HTTPD.size,
    others: &[("configFile", "/etc/nginx/nginx.conf")],
    export: Export { directive: Some("NginxModuleOtelExporterEndpoint"), ..APACHE_HTTPD.export },
    arm64_since: APACHE_HTTPD.arm64_since,
    decoding: APACHE_HTTPD.decoding,
};

impl LanguageDefaults {
    /// Returns what is known about the exporter of the agent in an image: its default protocol if the image
    /// has the name of the default image, in any registry.
    pub fn agent(&self, image: &str) -> Agent {
        let release = release(image);
        let is_since = |(since, _): &&(Release, _)| release.is_none_or(|release| release >= *since);
        let default = self.export.protocols.iter().rev().find(is_since).map(|(_, protocol)| *protocol);
        if self.is_name_of(image) { Agent { default, only: self.export.only } } else { Agent::UNKNOWN }
    }

    /// The first version that decodes resource attributes, if an image is known to be older.
    pub fn decodes_since(&self, image: &str) -> Option<Release> {
        let Decoding::Since(since) = self.decoding else { return None };
        self.is_before(image, since).then_some(since)
    }

    /// Whether an image has the name of the default image, such as `autoinstrumentation-java`, in any registry: a
    /// mirror keeps it.
    pub fn is_name_of(&self, image: &str) -> bool {
        name(image) == name(self.image)
    }

    /// Whether an image with the name of the default image is known to be older than a version.
    pub fn is_before(&self, image: &str, since: Release) -> bool {
        self.is_name_of(image) && release(image).is_some_and(|release| release < since)
    }

    /// Whether an image is known to have no build for arm64. Nothing is known about other repositories.
    pub fn lacks_arm64(&self, image: &str) -> bool {
        let is_before = |since| release(image).is_some_and(|release| release < since);
        repository(image) == repository(self.image) && self.arm64_since.is_none_or(is_before)
    }
}

/// An image reference without its tag and its digest.
fn repository(image: &str) -> &str {
    let named = image.split('@').next().unwrap_or_default();
    let name = named.rfind('/').map_or(0, |slash| slash + 1);
    named[name..].find(':').map_or(named, |colon| &named[..name + colon])
}

/// The last part of an image's repository, which a mirror keeps.
fn name(image: &str) -> Option<&str> {
    repository(image).rsplit('/').next()
}

/// The first two numbers of an image's tag, such as `2.30.0` or `0.64b0`.
pub fn release(image: &str) -> Option<Release> {
    let tag = image.split('@').next()?.strip_prefix(repository(image))?.strip_prefix(':')?;
    let (major, rest) = tag.strip_prefix('v').unwrap_or(tag).split_once('.')?;
    let minor = rest.split(|letter: char| !letter.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The annotation in which defaulting records the default image that it set.
pub fn image_annotation(language: &str) -> String {
    format!("{ANNOTATION_PREFIX}default-auto-instrumentation-{language}-image")
}

/// The beginning of the annotations of a namespace with the default images of its pods; the language follows.
pub const NAMESPACE_IMAGE_PREFIX: &str = "otel-webhook/default-image-";

/// The default images of this installation.
#[derive(Clone, Debug, Default)]
pub struct DefaultImages {
    /// Images that replace the built-in ones, by language.
    pub overrides: BTreeMap<String, String>,
    /// A registry, with or without a path, that replaces the registry of the default images.
    pub registry: Option<String>,
}

impl DefaultImages {
    /// Whether the administrator set the default image of a language, or its registry.
    pub fn is_set(&self, language: &LanguageDefaults) -> bool {
        self.registry.is_some() || self.overrides.contains_key(language.language)
    }

    /// The image of a language for an Instrumentation that sets none.
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

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATOR: &str = "ghcr.io/open-telemetry/opentelemetry-operator";

    #[test]
    fn the_default_protocol_is_that_of_the_images_version() {
        for (defaults, image, protocol) in [
            (&JAVA, "ghcr.io/o/autoinstrumentation-java:1.33.6", Some(Protocol::Grpc)),
            (&JAVA, "mirror:5000/autoinstrumentation-java:2.4.0-release", Some(Protocol::Http)),
            (&JAVA, "autoinstrumentation-java@sha256:00", Some(Protocol::Http)),
            (&JAVA, "registry.example.com/agents/java:1.0", None),
            (&NODEJS, "autoinstrumentation-nodejs:0.53.0", Some(Protocol::Grpc)),
            (&GO, GO.image, Some(Protocol::Http)),
            (&GO, "autoinstrumentation-go:v0.7.0-alpha", Some(Protocol::Grpc)),
            (&NGINX, NGINX.image, Some(Protocol::Grpc)),
        ] {
            assert_eq!(defaults.agent(image).default, protocol, "{image}");
        }
    }

    #[test]
    fn builds_for_arm64_are_known_for_the_default_repositories_only() {
        for (defaults, image, lacks) in [
            (&DOTNET, DOTNET.image.to_owned(), false),
            (&DOTNET, format!("{OPERATOR}/autoinstrumentation-dotnet:1.15.0"), true),
            (&DOTNET, format!("{OPERATOR}/autoinstrumentation-dotnet:latest"), false),
            (&DOTNET, "mirror.example.com/autoinstrumentation-dotnet:1.15.0".to_owned(), false),
            (&APACHE_HTTPD, APACHE_HTTPD.image.to_owned(), true),
            (&NGINX, format!("{}@sha256:00", NGINX.image), true),
            (&JAVA, JAVA.image.to_owned(), false),
        ] {
            assert_eq!(defaults.lacks_arm64(&image), lacks, "{image}");
        }
    }
}
