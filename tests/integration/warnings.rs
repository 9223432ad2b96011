//! What is injected and will probably not do what was meant is a warning, once, wherever warnings appear.

use std::sync::Arc;

use axum::{Router, body::Body, http::Request};
use base64::{Engine, prelude::BASE64_STANDARD};
use http_body_util::BodyExt;
use otel_webhook::{
    admission::Admission,
    api::{ANNOTATION_PREFIX, defaults::DefaultImages},
    inject::{LABEL, STATUS, Settings, language::LanguageSet},
    server::webhook_router,
    store::Writer,
    telemetry::Metrics,
};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::{
    cli::{run, succeed, values},
    support::{NAMESPACE, asking, instrumentation, with},
};

/// Something that is warned of.
struct Case {
    /// Its code.
    code: &'static str,
    /// The language that is asked for.
    language: &'static str,
    /// The Instrumentation's specification.
    spec: Value,
    /// Fields of the pod's container.
    container: Value,
    /// The warning itself.
    sentence: &'static str,
}

fn cases() -> Vec<Case> {
    vec![Case {
        code: "EndpointWithoutScheme",
        language: "java",
        spec: json!({"exporter": {"endpoint": "collector:4317"}}),
        container: json!({}),
        sentence: "OTEL_EXPORTER_OTLP_ENDPOINT is \"collector:4317\", without a scheme; set it to \
                   http://collector:4317",
    }]
}

impl Case {
    /// The pod that asks.
    fn pod(&self) -> Value {
        let mut pod = asking(&[self.language], self.container.clone());
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        pod["metadata"]["namespace"] = json!(NAMESPACE);
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

    fn router(&self) -> Router {
        let mut writer = Writer::new(DefaultImages::default());
        writer.put(&instrumentation("inst", self.spec.clone()));
        writer.publish();
        let metrics = Arc::new(Metrics::new());
        let settings = Settings { languages: LanguageSet::all(), ..Settings::default() };
        let admission = Admission::new(writer.store(), settings, None, Arc::clone(&metrics));
        webhook_router(Arc::new(admission), metrics)
    }

    /// The response to the review of an object.
    async fn response(&self, path: &str, kind: &str, object: &Value) -> Value {
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {"uid": "u-1", "operation": "CREATE", "namespace": NAMESPACE, "object": object,
                "resource": {"group": "", "version": "v1", "resource": kind}},
        });
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(Body::from(review.to_string())).expect("a request");
        let response = self.router().oneshot(request).await.expect("an answer");
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        let mut review: Value = serde_json::from_slice(&body).expect("a review");
        assert_eq!(review["response"]["allowed"], true);
        review["response"].take()
    }

    /// Instrumentation and Deployment as a stream.
    fn stream(&self) -> String {
        format!("{}\n---\n{}\n", instrumentation("inst", self.spec.clone()), self.deployment())
    }
}

/// The pod after the patch of a response.
fn patched(pod: &Value, response: &Value) -> Value {
    let patch = BASE64_STANDARD.decode(response["patch"].as_str().expect("a patch")).expect("base64");
    let mut patched = pod.clone();
    let patch: json_patch::Patch = serde_json::from_slice(&patch).expect("operations");
    json_patch::patch(&mut patched, &patch).expect("it applies");
    patched
}

#[tokio::test]
async fn the_terminal_of_whoever_creates_a_pod_shows_each_warning_once_and_so_does_the_stamp() {
    for case in cases() {
        let pod = case.pod();
        let response = case.response("/mutate-v1-pod", "pods", &pod).await;
        assert_eq!(response["warnings"], json!([format!("otel-webhook: {}", case.told())]));
        let patched = patched(&pod, &response);
        assert_eq!(patched["metadata"]["labels"][LABEL], "true", "{}", case.code);
        let status = patched["metadata"]["annotations"][STATUS].as_str().expect("a stamp");
        let status: Value = serde_json::from_str(status).expect("JSON");
        let notes = status[0]["notes"].as_array().expect("notes");
        assert!(notes.contains(&json!(case.sentence)), "{status}");

        let again = case.response("/mutate-v1-pod", "pods", &patched).await;
        assert_eq!((&again["warnings"], &again["patch"]), (&Value::Null, &Value::Null), "{}", case.code);
    }
}

#[tokio::test]
async fn the_terminal_of_whoever_applies_a_workload_shows_it() {
    for case in cases() {
        let response = case.response("/validate-workloads", "deployments", &case.deployment()).await;
        assert_eq!(response["warnings"], json!([format!("otel-webhook: {}", case.told())]));
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

#[test]
fn one_thing_in_several_containers_and_languages_is_one_warning() {
    let mut pod = asking(&["java", "nodejs"], json!({}));
    pod["spec"]["containers"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"name": "other", "image": "other:1"}));
    pod["metadata"]["annotations"][format!("{ANNOTATION_PREFIX}container-names")] = json!("app,other");
    let injected = with(json!({"exporter": {"endpoint": "collector:4317"}})).inject(&pod);
    let sentence = cases().remove(0).sentence;
    assert_eq!(injected.outcome.warnings(), [format!("java in app: {sentence} (and 3 more)")]);
}
