//! `check --review`: sends one review to the URL of a webhook, like an API server.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use hyper::Uri;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::result::{CheckResult, Code};
use crate::{
    cli::{
        client::{Connection, HttpResponse, Target},
        failure::Failure,
    },
    server::Endpoint,
    tls::trust::{Bundle, ShownChain},
};

/// The uid of the request, which the response must repeat.
const UID: &str = "otel-webhook-check";

/// The URL of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewUrl {
    /// The server.
    pub target: Target,
    /// The path.
    pub path: String,
}

/// Parses a URL. The path defaults to that of the webhook for pods.
///
/// # Errors
/// The message says what is wrong with it.
pub fn parse_url(text: &str) -> Result<ReviewUrl, String> {
    let valid = "such as https://otel-webhook.otel-webhook.svc/mutate-v1-pod";
    let url: Uri = text.parse().map_err(|error| format!("{error}; expected a URL {valid}"))?;
    if url.scheme_str() != Some("https") {
        return Err(format!("API servers call webhooks over https only; expected a URL {valid}"));
    }
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    if host.is_empty() {
        return Err(format!("the URL has no host; expected a URL {valid}"));
    }
    let target = Target { host: host.to_owned(), port: url.port_u16().unwrap_or(443) };
    let path = Some(url.path()).filter(|path| !path.is_empty() && *path != "/");
    Ok(ReviewUrl { target, path: path.unwrap_or(Endpoint::MutatePod.path()).to_owned() })
}

/// Sends a review and returns the results.
///
/// # Errors
/// If the file of the CA bundle cannot be read.
pub async fn review(
    url: &ReviewUrl,
    ca: Option<&Path>,
    patience: Duration,
) -> Result<Vec<CheckResult>, Failure> {
    let bundle = ca.map(read_bundle).transpose()?;
    let mut results = Vec::new();
    let exchange = exchange(url, bundle.as_ref(), &mut results);
    if tokio::time::timeout(patience, exchange).await.is_err() {
        let target = &url.target;
        results.push(if results.is_empty() {
            CheckResult::new(
                Code::NotConnected,
                format!("the connection to {target} timed out after {patience:?}"),
            )
        } else {
            CheckResult::new(
                Code::AnswerWrong,
                format!("the response of {target} timed out after {patience:?}"),
            )
        });
    }
    Ok(results)
}

fn read_bundle(file: &Path) -> Result<Bundle, Failure> {
    let unreadable =
        |error: &dyn std::fmt::Display| Failure::unreadable(format!("{}: {error}", file.display()));
    let text = std::fs::read(file).map_err(|error| unreadable(&error))?;
    Bundle::from_pem(&text).map_err(|error| unreadable(&error))
}

async fn exchange(url: &ReviewUrl, bundle: Option<&Bundle>, results: &mut Vec<CheckResult>) {
    let began = Instant::now();
    let mut connection = match Connection::open(&url.target).await {
        Ok(connection) => connection,
        Err(error) => return results.push(CheckResult::new(Code::NotConnected, error.to_string())),
    };
    let (target, address, took) = (&url.target, connection.address, began.elapsed());
    results.push(CheckResult::new(
        Code::Connected,
        format!("connected to {target} at {address} in {took:.1?}, including the handshake"),
    ));
    let verdict = verify(&connection, bundle, &target.host);
    let is_trusted = verdict.code != Code::VerificationFailed;
    results.push(verdict);
    // An API server sends nothing to a webhook that it does not trust.
    if is_trusted {
        let began = Instant::now();
        let answer = connection.post(&url.path, body().to_string()).await;
        results.push(match answer {
            Ok(answer) => check_response(&answer, &url.path, began.elapsed()),
            Err(error) => {
                CheckResult::new(Code::AnswerWrong, format!("no response from {}: {error}", url.path))
            }
        });
    }
}

fn verify(connection: &Connection, bundle: Option<&Bundle>, host: &str) -> CheckResult {
    let shown = match ShownChain::new(connection.chain.clone()) {
        Ok(shown) => shown,
        Err(error) => {
            return CheckResult::new(
                Code::VerificationFailed,
                format!("the certificate cannot be read: {error}"),
            );
        }
    };
    let validity = format!("for {}, valid until {}", shown.leaf.names.join(", "), shown.leaf.not_after);
    let Some(bundle) = bundle else {
        return CheckResult::new(
            Code::NotVerified,
            format!("the certificate was not verified; it is {validity}"),
        )
        .advise("to verify it, set its CA by --ca FILE");
    };
    match bundle.verify(&shown, host, Timestamp::now()) {
        Ok(()) => CheckResult::new(Code::Verified, format!("the certificate is verified; it is {validity}")),
        Err(distrust) => CheckResult::new(Code::VerificationFailed, distrust.to_string()),
    }
}

/// Returns a review of a pod that does not opt in, so that the webhook must not change it.
fn body() -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": UID,
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
            "requestResource": {"group": "", "version": "v1", "resource": "pods"},
            "name": "otel-webhook-check",
            "namespace": "default",
            "operation": "CREATE",
            "userInfo": {"username": "otel-webhook-check"},
            "dryRun": true,
            "object": {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "otel-webhook-check", "namespace": "default"},
                "spec": {"containers": [{"name": "app", "image": "app"}]},
            },
        },
    })
}

fn check_response(answer: &HttpResponse, path: &str, took: Duration) -> CheckResult {
    let wrong = |problem: String| CheckResult::new(Code::AnswerWrong, format!("{path}: {problem}"));
    let beginning: String = answer.text.trim().chars().take(200).collect();
    if !answer.status.is_success() {
        return wrong(format!("the status is {}: {beginning}", answer.status));
    }
    let review: Value = match serde_json::from_str(&answer.text) {
        Ok(review) => review,
        Err(_) => return wrong(format!("the response is not JSON: {beginning}")),
    };
    let response = &review["response"];
    if review["kind"] != "AdmissionReview" || review["apiVersion"] != "admission.k8s.io/v1" {
        wrong(format!("the response is not an AdmissionReview of admission.k8s.io/v1: {beginning}"))
    } else if response["uid"] != UID {
        wrong(format!("the response has the uid {}, expected \"{UID}\"", response["uid"]))
    } else if response["allowed"] != true {
        wrong(format!("a pod that does not opt in is rejected: {beginning}"))
    } else if !response["patch"].is_null() {
        wrong("a pod that does not opt in is changed".to_owned())
    } else {
        CheckResult::new(Code::Answered, format!("{path}: responded correctly in {took:.1?}"))
    }
}

#[cfg(test)]
mod tests {
    use hyper::StatusCode;

    use super::*;

    #[test]
    fn urls_need_a_host_and_have_a_default_port_and_path() {
        let parsed = |text: &str| {
            let ReviewUrl { target, path } = parse_url(text).expect(text);
            (target.to_string(), path)
        };
        let pods = "/mutate-v1-pod".to_owned();
        assert_eq!(parsed("https://a.b.svc"), ("a.b.svc:443".to_owned(), pods.clone()));
        assert_eq!(parsed("https://[::1]:9443/"), ("[::1]:9443".to_owned(), pods));
        assert_eq!(parsed("https://127.0.0.1:1/x"), ("127.0.0.1:1".to_owned(), "/x".to_owned()));
        for (text, problem) in [
            ("http://a/mutate-v1-pod", "over https only"),
            ("a.b.svc:443", "over https only"),
            ("https://", "expected a URL such as"),
            ("/mutate-v1-pod", "over https only"),
        ] {
            let found = parse_url(text).expect_err(text);
            assert!(found.contains(problem), "{text}: {found}");
        }
    }

    #[test]
    fn each_wrong_response_is_reported() {
        let of = |status: StatusCode, text: &str| {
            let answer = HttpResponse { status, text: text.to_owned() };
            check_response(&answer, "/mutate-v1-pod", Duration::from_millis(1))
        };
        let review = |response: Value| {
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
                .to_string()
        };
        let fine = of(StatusCode::OK, &review(json!({"uid": UID, "allowed": true})));
        assert_eq!(
            (fine.code, &*fine.message),
            (Code::Answered, "/mutate-v1-pod: responded correctly in 1.0ms")
        );
        for (status, text, problem) in [
            (
                StatusCode::NOT_FOUND,
                "nothing is here".to_owned(),
                "the status is 404 Not Found: nothing is here",
            ),
            (StatusCode::OK, "<html>".to_owned(), "the response is not JSON: <html>"),
            (StatusCode::OK, "{}".to_owned(), "the response is not an AdmissionReview"),
            (StatusCode::OK, review(json!({"uid": "other", "allowed": true})), "the uid \"other\", expected"),
            (StatusCode::OK, review(json!({"uid": UID, "allowed": false})), "is rejected"),
            (StatusCode::OK, review(json!({"uid": UID, "allowed": true, "patch": "W10="})), "is changed"),
        ] {
            let found = of(status, &text);
            assert_eq!(found.code, Code::AnswerWrong);
            assert!(found.message.contains(problem), "{}", found.message);
        }
    }
}
