//! The services: one for each language that can be run here.

use serde_json::{Value, json};

/// A service of a language. Its image is of the same name.
#[derive(Clone, Copy)]
pub struct Language {
    /// As in annotations.
    pub name: &'static str,
    /// Where it serves, on loopback.
    pub port: u16,
    command: &'static [&'static str],
}

pub const JAVA: Language =
    Language { name: "java", port: 8081, command: &["/jre/bin/java", "-cp", "/app", "Service"] };
pub const NODEJS: Language = Language { name: "nodejs", port: 8082, command: &["/node", "/app/service.js"] };
pub const PYTHON: Language =
    Language { name: "python", port: 8083, command: &["/usr/bin/python3", "/app/service.py"] };

/// Each language that can be run here.
pub const LANGUAGES: [Language; 3] = [JAVA, NODEJS, PYTHON];

/// The version of each service, which is the tag of its image.
pub const VERSION: &str = "1.4.2";

impl Language {
    /// The same at another port.
    pub fn at(self, port: u16) -> Self {
        Self { port, ..self }
    }

    /// Where the service answers.
    pub fn url(self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// The annotation by which a pod opts in.
    pub fn annotation(self) -> String {
        format!("instrumentation.opentelemetry.io/inject-{}", self.name)
    }

    /// The service as a container, `app`.
    pub fn container(self, env: &[(&str, &str)]) -> Value {
        let port = self.port.to_string();
        let variables = [("PORT", port.as_str())].into_iter().chain(env.iter().copied());
        let env: Vec<_> = variables.map(|(name, value)| json!({"name": name, "value": value})).collect();
        json!({"name": "app", "image": image(self.name), "command": self.command, "env": env})
    }
}

/// An image by the name that `tests/telemetry/prepare` gives it.
pub fn image(name: &str) -> String {
    format!("localhost/otel-webhook-telemetry/{name}:{VERSION}")
}
