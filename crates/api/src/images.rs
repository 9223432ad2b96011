//! The default images of agents. `release/agents` compares the versions in this file with those of an operator's
//! release, and writes them; CONTRIBUTING.md says what belongs to such a change.

/// Java.
pub const JAVA: &str = "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-java:2.30.0";

/// Node.js.
pub const NODEJS: &str = "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-nodejs:0.78.0";

/// Python.
pub const PYTHON: &str = "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-python:0.64b0";

/// .NET.
pub const DOTNET: &str = "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-dotnet:1.16.0";

/// Go.
pub const GO: &str = "ghcr.io/open-telemetry/opentelemetry-go-instrumentation/autoinstrumentation-go:v0.24.0";

/// Apache HTTPD.
pub const APACHE_HTTPD: &str =
    "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-apache-httpd:1.0.4";

/// nginx; its module is in the image of Apache HTTPD's.
pub const NGINX: &str = APACHE_HTTPD;
