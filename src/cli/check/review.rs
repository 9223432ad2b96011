//! `check --review`: one real review to a webhook's URL, as an API server would send it.

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

/// What the answer has to carry.
const UID: &str = "otel-webhook-check";

/// A URL that reviews are sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewUrl {
    /// The server.
    pub target: Target,
    /// The path.
    pub path: String,
}

/// Reads a URL. Without a path it is that of the webhook for pods.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn parse_url(text: &str) -> Result<ReviewUrl, String> {
    let valid = "such as https://otel-webhook.otel-webhook.svc/mutate-v1-pod";
    let url: Uri = text.parse().map_err(|error| format!("{error}; expected a URL {valid}"))?;
    if url.scheme_str() != Some("https") {
        return Err(format!("API servers call webhooks by https only; expected a URL {valid}"));
    }
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    if host.is_empty() {
        return Err(format!("there is no host in it; expected a URL {valid}"));
    }
    let target = Target { host: host.to_owned(), port: url.port_u16().unwrap_or(443) };
    let path = Some(url.path()).filter(|path| !path.is_empty() && *path != "/");
    Ok(ReviewUrl { target, path: path.unwrap_or(Endpoint::MutatePod.path()).to_owned() })
}

/// Sends a review and says what came of it.
///
/// # Errors
/// When the file of authorities cannot be read.
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
            CheckResult::new(Code::NotConnected, format!("no connection to {target} within {patience:?}"))
        } else {
            CheckResult::new(Code::AnswerWrong, format!("no answer of {target} within {patience:?}"))
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
        format!("connected to {target} at {address}, handshake included in {took:.1?}"),
    ));
    let verdict = verify(&connection, bundle, &target.host);
    let is_trusted = verdict.code != Code::VerificationFailed;
    results.push(verdict);
    // An API server would not send anything now.
    if is_trusted {
        let began = Instant::now();
        let answer = connection.post(&url.path, body().to_string()).await;
        results.push(match answer {
            Ok(answer) => judge(&answer, &url.path, began.elapsed()),
            Err(error) => CheckResult::new(Code::AnswerWrong, format!("no answer at {}: {error}", url.path)),
        });
    }
}

fn verify(connection: &Connection, bundle: Option<&Bundle>, host: &str) -> CheckResult {
    let shown = match ShownChain::new(connection.chain.clone()) {
        Ok(shown) => shown,
        Err(error) => {
            return CheckResult::new(
                Code::VerificationFailed,
                format!("the certificate cannot be used: {error}"),
            );
        }
    };
    let says = format!("for {}, valid until {}", shown.leaf.names.join(", "), shown.leaf.not_after);
    let Some(bundle) = bundle else {
        return CheckResult::new(
            Code::NotVerified,
            format!("the certificate was not verified; it is {says}"),
        )
        .advise("give its authority by --ca FILE");
    };
    match bundle.judge(&shown, host, Timestamp::now()) {
        Ok(()) => CheckResult::new(Code::Verified, format!("the certificate is verified; it is {says}")),
        Err(distrust) => CheckResult::new(Code::VerificationFailed, distrust.to_string()),
    }
}

/// A pod that asks for nothing, so that nothing is to be done to it.
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

fn judge(answer: &HttpResponse, path: &str, took: Duration) -> CheckResult {
    let wrong = |problem: String| CheckResult::new(Code::AnswerWrong, format!("{path}: {problem}"));
    let beginning: String = answer.text.trim().chars().take(200).collect();
    if !answer.status.is_success() {
        return wrong(format!("the status is {}: {beginning}", answer.status));
    }
    let review: Value = match serde_json::from_str(&answer.text) {
        Ok(review) => review,
        Err(_) => return wrong(format!("the answer is not JSON: {beginning}")),
    };
    let response = &review["response"];
    if review["kind"] != "AdmissionReview" || review["apiVersion"] != "admission.k8s.io/v1" {
        wrong(format!("the answer is no AdmissionReview of admission.k8s.io/v1: {beginning}"))
    } else if response["uid"] != UID {
        wrong(format!("the answer has the uid {}, not \"{UID}\"", response["uid"]))
    } else if response["allowed"] != true {
        wrong(format!("a pod that asks for nothing is not allowed: {beginning}"))
    } else if !response["patch"].is_null() {
        wrong("a pod that asks for nothing is changed".to_owned())
    } else {
        CheckResult::new(Code::Answered, format!("{path}: allowed, with the right uid, in {took:.1?}"))
    }
}

#[cfg(test)]
mod tests {
    use hyper::StatusCode;

    use super::*;

    #[test]
    fn a_url_has_a_host_and_what_is_missing_is_filled_in() {
        let parsed = |text: &str| {
            let ReviewUrl { target, path } = parse_url(text).expect(text);
            (target.to_string(), path)
        };
        let pods = "/mutate-v1-pod".to_owned();
        assert_eq!(parsed("https://a.b.svc"), ("a.b.svc:443".to_owned(), pods.clone()));
        assert_eq!(parsed("https://[::1]:9443/"), ("[::1]:9443".to_owned(), pods));
        assert_eq!(parsed("https://127.0.0.1:1/x"), ("127.0.0.1:1".to_owned(), "/x".to_owned()));
        for (text, problem) in [
            ("http://a/mutate-v1-pod", "by https only"),
            ("a.b.svc:443", "by https only"),
            ("https://", "expected a URL such as"),
            ("/mutate-v1-pod", "by https only"),
        ] {
            let found = parse_url(text).expect_err(text);
            assert!(found.contains(problem), "{text}: {found}");
        }
    }

    #[test]
    fn each_wrong_answer_is_told_from_the_others() {
        let of = |status: StatusCode, text: &str| {
            let answer = HttpResponse { status, text: text.to_owned() };
            judge(&answer, "/mutate-v1-pod", Duration::from_millis(1))
        };
        let review = |response: Value| {
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
                .to_string()
        };
        let fine = of(StatusCode::OK, &review(json!({"uid": UID, "allowed": true})));
        assert_eq!(
            (fine.code, &*fine.message),
            (Code::Answered, "/mutate-v1-pod: allowed, with the right uid, in 1.0ms")
        );
        for (status, text, problem) in [
            (
                StatusCode::NOT_FOUND,
                "nothing is here".to_owned(),
                "the status is 404 Not Found: nothing is here",
            ),
            (StatusCode::OK, "<html>".to_owned(), "the answer is not JSON: <html>"),
            (StatusCode::OK, "{}".to_owned(), "the answer is no AdmissionReview"),
            (StatusCode::OK, review(json!({"uid": "other", "allowed": true})), "the uid \"other\", not"),
            (StatusCode::OK, review(json!({"uid": UID, "allowed": false})), "is not allowed"),
            (StatusCode::OK, review(json!({"uid": UID, "allowed": true, "patch": "W10="})), "is changed"),
        ] {
            let found = of(status, &text);
            assert_eq!(found.code, Code::AnswerWrong);
            assert!(found.message.contains(problem), "{}", found.message);
        }
    }
}
