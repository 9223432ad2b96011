//! The real program on files and streams.

mod certs;
mod check;
mod config;
mod conformance;
mod convert;
mod crd;
mod default;
mod explain;
mod inject;
mod streams;
mod tenants;
mod validate;
mod version;

use std::{
    io::Write,
    process::{Command, Output, Stdio},
};

/// An Instrumentation of namespace `default`, in which tests put their pods.
pub const INSTRUMENTATION: &str = "apiVersion: opentelemetry.io/v1alpha1
kind: Instrumentation
metadata:
  name: inst
spec:
  exporter:
    endpoint: http://collector:4318
";

/// The same as it was stored with a default image of Java.
pub fn with_recorded(image: &str) -> String {
    let record = "instrumentation.opentelemetry.io/default-auto-instrumentation-java-image";
    INSTRUMENTATION
        .replace("  name: inst\n", &format!("  name: inst\n  annotations: {{{record}: {image:?}}}\n"))
        .replace("spec:\n", &format!("spec:\n  sampler: {{type: always_on}}\n  java: {{image: {image:?}}}\n"))
}

/// Default images of Java of other versions, and what is said of them.
pub const RECORDED: [(&str, &str); 3] = [
    (
        "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-java:2.29.0",
        "the recorded default image \"ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-java:2.29.0\" is \
         replaced by the default \"ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-java:2.30.0\"",
    ),
    (
        "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-java:2.31.0",
        "the recorded default image \"ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-java:2.31.0\" is not \
         replaced by the default \"ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-java:2.30.0\": the \
         default is an older version",
    ),
    (
        "mirror.example.com:5000/java:2.29.0",
        "the recorded default image \"mirror.example.com:5000/java:2.29.0\" is not replaced by the default \
         \"ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-java:2.30.0\": its repository is not that \
         of the built-in default; to replace it, set --default-image or --image-registry to your own registry",
    ),
];

/// What a run of the program came to.
pub struct Run {
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// Exit code.
    pub code: i32,
}

/// Runs the program with a text on its standard input.
pub fn run(arguments: &[&str], input: &str) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_otel-webhook"));
    // What the developer's shell has set must not change a test.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("OTEL_WEBHOOK_")) {
        command.env_remove(name);
    }
    // What is done to resources is told in notes; the test of that says so itself.
    command.env("OTEL_WEBHOOK_INIT_RESOURCES", "exact");
    let pipes = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("the program is built");
    let mut stdin = child.stdin.take().expect("a pipe");
    let output = std::thread::scope(|scope| {
        // Written next to the reading, so that neither side waits for the other.
        scope.spawn(move || {
            // A program that has seen enough closes its end.
            let _ = stdin.write_all(input.as_bytes());
        });
        child.wait_with_output().expect("the program runs")
    });
    let Output { status, stdout, stderr } = output;
    Run {
        out: String::from_utf8(stdout).expect("UTF-8"),
        err: String::from_utf8(stderr).expect("UTF-8"),
        code: status.code().expect("an exit code"),
    }
}

/// Runs the program, which has to succeed.
pub fn succeed(arguments: &[&str], input: &str) -> Run {
    let run = run(arguments, input);
    assert_eq!(run.code, 0, "{}", run.err);
    run
}

/// Runs `inject` on a stream of documents, without the stamp.
pub fn inject(arguments: &[&str], documents: &[&str]) -> Run {
    let common = ["inject", "-f", "-", "--stamp=false"];
    succeed(&[&common, arguments].concat(), &documents.join("---\n"))
}

/// The documents of a run of `inject -o json`.
pub fn values(run: &Run) -> Vec<serde_json::Value> {
    run.out.lines().map(|line| serde_json::from_str(line).expect("a document a line")).collect()
}

/// A pod that asks for Java.
pub fn pod(metadata: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata:
  {metadata}
  annotations:
    instrumentation.opentelemetry.io/inject-java: \"true\"
spec:
  containers:
    - name: app
      image: app:1
"
    )
}
