//! `check --review`: sends one review to the URL of a webhook, like an API server.

use std::{
    error::Error as _,
    path::Path,
    time::{Duration, Instant},
};

use hyper::Uri;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::result::{CheckResult, Code};
use crate::{
    client::{Connection, HttpResponse, Target},
    output::Failure,
};
use otel_webhook_managed_certs::certificate::{NamedPem, ServingCertificate};
use otel_webhook_server::{
    Endpoint,
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

/// Sends a review and returns the results. `client` are the files of a client certificate and its key.
///
/// # Errors
/// If a file cannot be read or used.
pub async fn review(
    url: &ReviewUrl,
    ca: Option<&Path>,
    client: Option<(&Path, &Path)>,
    patience: Duration,
) -> Result<Vec<CheckResult>, Failure> {
    let bundle = ca.map(read_bundle).transpose()?;
    let client = client.map(|(certificate, key)| read_client(certificate, key)).transpose()?;
    let mut results = Vec::new();
    let exchange = exchange(url, bundle.as_ref(), client, &mut results);
    if tokio::time::timeout(patience, exchange).await.is_err() {
        let target = &url.target;
        results.push(if results.is_empty() {
            CheckResult::new(
                Code::NotConnected,
                format!("the connection to {target} timed out after {patience:?}"),
            )
        } else {
            CheckResult::new(
                Code::ResponseInvalid,
                format!("the response of {target} timed out after {patience:?}"),
            )
        });
    }
    Ok(results)
}

fn read_bundle(file: &Path) -> Result<Bundle, Failure> {
    Bundle::from_pem(&read(file)?)
        .map_err(|error| Failure::unreadable(format!("{}: {error}", file.display())))
}

fn read_client(certificate: &Path, key: &Path) -> Result<ServingCertificate, Failure> {
    let (certificate_pem, key_pem) = (read(certificate)?, read(key)?);
    let [name, key_name] = [certificate, key].map(Path::to_string_lossy);
    let certificate = NamedPem { name: &name, pem: &certificate_pem };
    ServingCertificate::from_pem(certificate, NamedPem { name: &key_name, pem: &key_pem })
        .map_err(Failure::unreadable)
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(|error| Failure::unreadable(format!("{}: {error}", file.display())))
}

async fn exchange(
    url: &ReviewUrl,
    bundle: Option<&Bundle>,
    client: Option<ServingCertificate>,
    results: &mut Vec<CheckResult>,
) {
    let began = Instant::now();
    let mut connection = match Connection::open_as(&url.target, client).await {
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
            Err(error) => no_response(&error, &url.path),
        });
    }
}

/// In TLS 1.3 a server rejects the certificate of a client only after the client's handshake.
fn no_response(error: &hyper::Error, path: &str) -> CheckResult {
    let cause = error.source().map(|source| format!(": {source}")).unwrap_or_default();
    let advice = "if the webhook runs with --client-ca, set --client-cert and --client-key to a certificate of \
                  that CA with a name of --client-name; its log has the reason at level debug";
    CheckResult::new(Code::ResponseInvalid, format!("no response from {path}: {error}{cause}")).advise(advice)
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
    let wrong = |problem: String| CheckResult::new(Code::ResponseInvalid, format!("{path}: {problem}"));
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
            assert_eq!(found.code, Code::ResponseInvalid);
            assert!(found.message.contains(problem), "{}", found.message);
        }
    }
}
