//! What is injected and will probably not do what was meant is a warning, once, wherever warnings appear.

use otel_webhook_api::ANNOTATION_PREFIX;
use otel_webhook_inject::{LABEL, MESSAGE, STATUS, Settings, language::LanguageSet};
use otel_webhook_review::LONGEST_WARNING;
use otel_webhook_testkit::{
    objects::{NAMESPACE, asking, instrumentation},
    surroundings::with,
};
use serde_json::{Value, json};

use crate::{
    cli::{run, succeed, values},
    logs::Log,
    routes::{PODS, Webhook, create, patched},
};

/// Something that is warned of; `tests/cases/warnings.yaml` of the crate `inject` has all.
struct Case {
    code: &'static str,
    language: &'static str,
    /// The Instrumentation's specification.
    spec: Value,
    /// Fields of the pod's specification.
    pod: Value,
    sentence: &'static str,
}

fn cases() -> [Case; 2] {
    let dotnet = "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-dotnet:1.15.0";
    [
        Case {
            code: "EndpointWithoutScheme",
            language: "java",
            spec: json!({"exporter": {"endpoint": "collector:4317"}}),
            pod: json!({}),
            sentence: "OTEL_EXPORTER_OTLP_ENDPOINT is \"collector:4317\", without a scheme; set it to http://collector:4317",
        },
        Case {
            code: "ImageLacksArm64",
            language: "dotnet",
            spec: json!({"dotnet": {"image": dotnet}}),
            pod: json!({"nodeSelector": {"kubernetes.io/arch": "arm64"}}),
            sentence: "the pod runs on arm64 nodes only, and \
                       ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-dotnet:1.15.0 has no build for \
                       arm64; set an image that has one",
        },
    ]
}

impl Case {
    /// The pod that asks.
    fn pod(&self) -> Value {
        let mut pod = asking(&[self.language], json!({}));
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        pod["metadata"]["namespace"] = json!(NAMESPACE);
        let spec = pod["spec"].as_object_mut().expect("an object");
        spec.extend(self.pod.as_object().expect("an object").clone());
        pod
    }

    fn deployment(&self) -> Value {
        let Value::Object(mut template) = self.pod() else { unreachable!("a pod is an object") };
        template.remove("apiVersion");
        template.remove("kind");
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": NAMESPACE}, "spec": {"template": template}})
    }

    /// The warning with what it is about.
    fn told(&self) -> String {
        format!("{} in app: {}", self.language, self.sentence)
    }

    /// The response to the review of an object.
    async fn response(&self, path: &str, resource: &str, object: &Value) -> Value {
        let settings = Settings { languages: LanguageSet::all(), ..Settings::default() };
        let webhook = Webhook::new(&[instrumentation("inst", self.spec.clone())], settings);
        let response = webhook.response(path, &create(resource, object)).await;
        assert_eq!(response["allowed"], true);
        response
    }

    /// Instrumentation and Deployment as a stream.
    fn stream(&self) -> String {
        format!("{}\n---\n{}\n", instrumentation("inst", self.spec.clone()), self.deployment())
    }
}

#[tokio::test]
async fn the_terminal_of_whoever_creates_a_pod_shows_each_warning_once_and_so_does_the_stamp() {
    for case in cases() {
        let pod = case.pod();
        let response = case.response(PODS, "pods", &pod).await;
        assert_eq!(response["warnings"], json!([format!("otel-webhook: {}", case.told())]));
        let patched = patched(&pod, &response);
        assert_eq!(patched["metadata"]["labels"][LABEL], "true", "{}", case.code);
        let status = patched["metadata"]["annotations"][STATUS].as_str().expect("a stamp");
        let status: Value = serde_json::from_str(status).expect("JSON");
        assert_eq!(status[0]["warnings"], json!([case.code]), "{status}");
        assert!(!status.to_string().contains(case.sentence), "{status}");
        let message = patched["metadata"]["annotations"][MESSAGE].as_str().expect("sentences");
        assert_eq!(message.replace('\n', " "), case.told(), "{}", case.code);

        let again = case.response(PODS, "pods", &patched).await;
        assert_eq!((&again["warnings"], &again["patch"]), (&Value::Null, &Value::Null), "{}", case.code);
    }
}

#[tokio::test]
async fn the_log_has_the_code_and_not_the_value() {
    for case in cases() {
        let log = Log::default();
        let logging = log.keep();
        case.response(PODS, "pods", &case.pod()).await;
        drop(logging);
        let (lines, text) = (log.lines(), log.text());
        let [line] = &lines[..] else { panic!("not one line: {text}") };
        assert_eq!(line["level"], "INFO");
        assert_eq!(line["fields"]["warned"], format!("{}/app={}", case.language, case.code));
        assert!(!text.contains(case.sentence), "{text}");
    }
}

#[tokio::test]
async fn the_terminal_of_whoever_applies_a_workload_shows_it() {
    for case in cases() {
        let response = case.response("/validate-workloads", "deployments.apps", &case.deployment()).await;
        let named = format!("otel-webhook: Deployment web: {}", case.told());
        let has_room = named.len() <= LONGEST_WARNING;
        let warning = if has_room { named } else { format!("otel-webhook: {}", case.told()) };
        assert_eq!(response["warnings"], json!([warning]));
    }
}

#[test]
fn explain_and_inject_say_warning_and_not_note() {
    for case in cases() {
        let text = succeed(&["explain", "-f", "-", "--languages", "all"], &case.stream()).out;
        let line = format!("  warning on {} in app: {}", case.language, case.sentence);
        assert_eq!(text.lines().filter(|said| **said == line).count(), 1, "{text}");
        let run = succeed(&["explain", "-f", "-", "-o", "json", "--languages", "all"], &case.stream());
        let finding = values(&run)[0]["findings"][0].take();
        assert_eq!(
            (&finding["outcome"], &finding["warnings"]),
            (&json!("Injected"), &json!([case.sentence]))
        );

        let said = succeed(&["inject", "-f", "-", "--languages", "all"], &case.stream()).err;
        let line = format!("Deployment/web: {} in app: warning: {}", case.language, case.sentence);
        assert_eq!(said.lines().filter(|said| **said == line).count(), 1, "{said}");
    }
}

#[test]
fn validate_warns_and_is_strict_about_it() {
    for case in cases() {
        let arguments = ["validate", "-f", "-", "-o", "json", "--languages", "all"];
        let found = values(&succeed(&arguments, &case.stream()));
        let workload = found.iter().find(|one| one["kind"] == "Deployment").expect("the Deployment");
        let annotation = format!("{ANNOTATION_PREFIX}inject-{}", case.language);
        let field = format!("spec.template.metadata.annotations[{annotation}]");
        let expected = json!([{"kind": case.code, "field": field, "message": case.told()}]);
        assert_eq!(workload["warnings"], expected);
        let strict = ["validate", "-f", "-", "--strict", "--languages", "all"];
        let file = format!("{}\n", case.deployment());
        let folder = tempfile::tempdir().expect("a folder");
        let source = instrumentation("inst", case.spec.clone()).to_string();
        std::fs::write(folder.path().join("inst.json"), source).expect("a file");
        let source = ["--source", folder.path().to_str().expect("UTF-8")];
        assert_eq!(run(&[&strict[..], &source].concat(), &file).code, 1, "{}", case.code);
    }
}

/// The Instrumentations that a text shows, without their indentation.
fn shown(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let is_first = |line: &&str| line.trim() == "apiVersion: opentelemetry.io/v1alpha1";
    let begins = lines.iter().enumerate().filter(|(_, line)| is_first(line)).map(|(at, _)| at);
    let manifest = |at: usize| {
        let indent = lines[at].len() - lines[at].trim_start().len();
        let is_last = |line: &&&str| !["END", "EOF", "---", "```"].contains(&line.trim());
        let own = lines[at..].iter().take_while(is_last);
        own.map(|line| line.get(indent..).unwrap_or_default().to_owned() + "\n").collect()
    };
    begins.map(manifest).collect()
}

#[test]
fn our_own_examples_are_valid_without_a_warning_and_their_telemetry_arrives() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect(path);
    let examples = ["deployment.yaml", "instrumentation.yaml"].map(|name| read(&format!("examples/{name}")));
    let run = run(&["validate", "-f", "-", "--strict"], &examples.join("---\n"));
    assert_eq!((run.code, run.out.contains("warning")), (0, false), "{}", run.out);

    let values: Value = serde_saphyr::from_str(&read("charts/otel-webhook/values.yaml")).expect("YAML");
    let mut manifests = vec![instrumentation("default", values["defaultInstrumentation"]["spec"].clone())];
    let mut notes = 0;
    // Not docs/guides/migration.md: what it shows is completed by `default`, and sends nothing.
    for path in ["charts/otel-webhook/templates/NOTES.txt", "README.md", "manifests/README.md"] {
        let own = shown(&read(path));
        notes += usize::from(path.ends_with("NOTES.txt")) * own.len();
        manifests.extend(own.iter().map(|text| serde_saphyr::from_str::<Value>(text).expect(path)));
    }
    assert_eq!(notes, 1, "NOTES.txt shows an Instrumentation");
    for manifest in manifests {
        let run = crate::cli::run(&["validate", "-f", "-", "--strict"], &manifest.to_string());
        assert_eq!((run.code, run.out.contains("warning")), (0, false), "{}", run.out);
        for language in ["java", "nodejs", "python", "dotnet", "sdk"] {
            let injected = with(manifest["spec"].clone()).inject(&asking(&[language], json!({})));
            assert_eq!(injected.codes(), [format!("{language}/app: Injected")]);
            assert_eq!(injected.outcome.warnings(), [""; 0], "{language} {manifest}");
        }
    }
}
