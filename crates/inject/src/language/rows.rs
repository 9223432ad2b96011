//! The rows of the language table.

use otel_webhook_api::{AGENTS_FIELD, LanguageSettings, defaults};

use super::row::{ImageVolume, Language, LanguageId, Mark, Names, Shape};

/// Volume and init container of the javaagent.
pub const JAVA_AGENT: &str = "opentelemetry-auto-instrumentation-java";
/// The prefix of the names of init containers for Java's extensions; a number follows.
pub const JAVA_EXTENSION: &str = "opentelemetry-auto-instrumentation-extension-";
/// Volume and init container of the agent for Node.js.
pub const NODEJS_AGENT: &str = "opentelemetry-auto-instrumentation-nodejs";
/// Volume and init container of the agent for Python.
pub const PYTHON_AGENT: &str = "opentelemetry-auto-instrumentation-python";
/// Volume and init container of the agent for .NET.
pub const DOTNET_AGENT: &str = "opentelemetry-auto-instrumentation-dotnet";
/// The sidecar with the agent for Go.
pub const GO_SIDECAR: &str = "opentelemetry-auto-instrumentation";
/// The init container that copies a web server's configuration, from the application's image.
pub const WEB_SERVER_CLONE: &str = "otel-agent-source-container-clone";
/// The init container that adds the module to the configuration of Apache HTTPD.
pub const APACHE_ATTACH: &str = "otel-agent-attach-apache";
/// The init container that adds the module to the configuration of nginx.
pub const NGINX_ATTACH: &str = "otel-agent-attach-nginx";
/// The prefix of the names of volume and init container of an agent in `spec.agents`; its name follows.
pub const GENERIC_AGENT: &str = "opentelemetry-auto-instrumentation-agent-";

/// Java.
pub const JAVA: Language = Language {
    id: LanguageId::Java,
    name: "java",
    inject: "inject-java",
    containers: "java-container-names",
    annotations: &[],
    field: "java",
    names: Names::Instrumentation,
    defaults: Some(&defaults::JAVA),
    enabled_by_default: true,
    shape: Shape::Copied,
    image_volume: ImageVolume::Whole,
    exports_from_target: true,
    in_init_containers: true,
    extended: &["JAVA_TOOL_OPTIONS"],
    marks: &[Mark::Init(JAVA_AGENT), Mark::InitWithNumber(JAVA_EXTENSION)],
    settings: |spec| spec.java.as_ref().map(LanguageSettings::from).unwrap_or_default(),
};

/// Node.js.
pub const NODEJS: Language = Language {
    id: LanguageId::Nodejs,
    name: "nodejs",
    inject: "inject-nodejs",
    containers: "nodejs-container-names",
    annotations: &[],
    field: "nodejs",
    names: Names::Instrumentation,
    defaults: Some(&defaults::NODEJS),
    enabled_by_default: true,
    shape: Shape::Copied,
    image_volume: ImageVolume::Folder,
    exports_from_target: true,
    in_init_containers: true,
    extended: &["NODE_OPTIONS"],
    marks: &[Mark::Init(NODEJS_AGENT)],
    settings: |spec| spec.nodejs.as_ref().map(LanguageSettings::from).unwrap_or_default(),
};

/// Python.
pub const PYTHON: Language = Language {
    id: LanguageId::Python,
    name: "python",
    inject: "inject-python",
    containers: "python-container-names",
    annotations: &["otel-python-platform"],
    field: "python",
    names: Names::Instrumentation,
    defaults: Some(&defaults::PYTHON),
    enabled_by_default: true,
    shape: Shape::Copied,
    image_volume: ImageVolume::Folder,
    exports_from_target: true,
    in_init_containers: true,
    extended: &["PYTHONPATH"],
    marks: &[Mark::Init(PYTHON_AGENT)],
    settings: |spec| spec.python.as_ref().map(LanguageSettings::from).unwrap_or_default(),
};

/// .NET.
pub const DOTNET: Language = Language {
    id: LanguageId::Dotnet,
    name: "dotnet",
    inject: "inject-dotnet",
    containers: "dotnet-container-names",
    annotations: &["otel-dotnet-auto-runtime"],
    field: "dotnet",
    names: Names::Instrumentation,
    defaults: Some(&defaults::DOTNET),
    enabled_by_default: true,
    shape: Shape::Copied,
    image_volume: ImageVolume::Folder,
    exports_from_target: true,
    in_init_containers: true,
    extended: &["DOTNET_STARTUP_HOOKS", "DOTNET_ADDITIONAL_DEPS", "DOTNET_SHARED_STORE"],
    marks: &[Mark::Init(DOTNET_AGENT)],
    settings: |spec| spec.dotnet.as_ref().map(LanguageSettings::from).unwrap_or_default(),
};

/// Go.
pub const GO: Language = Language {
    id: LanguageId::Go,
    name: "go",
    inject: "inject-go",
    containers: "go-container-names",
    annotations: &["otel-go-auto-target-exe"],
    field: "go",
    names: Names::Instrumentation,
    defaults: Some(&defaults::GO),
    enabled_by_default: false,
    shape: Shape::Sidecar,
    image_volume: ImageVolume::NotCopied,
    exports_from_target: false,
    in_init_containers: false,
    extended: &[],
    marks: &[Mark::Sidecar(GO_SIDECAR)],
    settings: |spec| spec.go.as_ref().map(LanguageSettings::from).unwrap_or_default(),
};

/// Apache HTTPD.
pub const APACHE_HTTPD: Language = Language {
    id: LanguageId::ApacheHttpd,
    name: "apache-httpd",
    inject: "inject-apache-httpd",
    containers: "apache-httpd-container-names",
    annotations: &[],
    field: "apacheHttpd",
    names: Names::Instrumentation,
    defaults: Some(&defaults::APACHE_HTTPD),
    enabled_by_default: true,
    shape: Shape::WebServer,
    image_volume: ImageVolume::Never,
    exports_from_target: false,
    in_init_containers: false,
    extended: &[],
    marks: &[Mark::Init(WEB_SERVER_CLONE), Mark::Init(APACHE_ATTACH)],
    settings: |spec| spec.apache_httpd.as_ref().map(LanguageSettings::from).unwrap_or_default(),
};

/// nginx.
pub const NGINX: Language = Language {
    id: LanguageId::Nginx,
    name: "nginx",
    inject: "inject-nginx",
    // The operator's own spelling, unlike that of the other languages.
    containers: "inject-nginx-container-names",
    annotations: &[],
    field: "nginx",
    names: Names::Instrumentation,
    defaults: Some(&defaults::NGINX),
    enabled_by_default: false,
    shape: Shape::WebServer,
    image_volume: ImageVolume::Never,
    exports_from_target: false,
    in_init_containers: false,
    extended: &["LD_LIBRARY_PATH"],
    marks: &[Mark::Init(WEB_SERVER_CLONE), Mark::Init(NGINX_ATTACH)],
    settings: |spec| spec.nginx.as_ref().map(LanguageSettings::from).unwrap_or_default(),
};

/// SDK only: variables for applications that contain an SDK.
pub const SDK: Language = Language {
    id: LanguageId::Sdk,
    name: "sdk",
    inject: "inject-sdk",
    containers: "sdk-container-names",
    annotations: &[],
    field: "",
    names: Names::Instrumentation,
    defaults: None,
    enabled_by_default: true,
    shape: Shape::Variables,
    image_volume: ImageVolume::NotCopied,
    exports_from_target: true,
    in_init_containers: true,
    extended: &[],
    marks: &[],
    settings: |_| LanguageSettings::default(),
};

/// Agents that Instrumentations describe themselves, in `spec.agents`.
pub const AGENT: Language = Language {
    id: LanguageId::Agent,
    name: "agent",
    inject: "inject-agent",
    containers: "agent-container-names",
    annotations: &[],
    field: AGENTS_FIELD,
    names: Names::Agents,
    defaults: None,
    enabled_by_default: true,
    shape: Shape::Copied,
    image_volume: ImageVolume::Folder,
    exports_from_target: true,
    in_init_containers: true,
    extended: &[],
    marks: &[Mark::InitWithName(GENERIC_AGENT)],
    settings: |_| LanguageSettings::default(),
};
