//! The least that a webhook can be: it allows every pod and changes none, behind the listener, the TLS and the
//! runtime of the product.

use std::{borrow::Cow, fs, path::Path};

use axum::{
    Router,
    body::Bytes,
    http::{HeaderName, header},
    routing::post,
};
use otel_webhook::tls::SelfSigned;
use serde::Deserialize;
use serde_json::json;

use crate::stack;

/// Makes this program that server; the next argument is the folder with its certificate.
pub const ARGUMENT: &str = "allow-everything";

/// Where it is called.
pub const PATH: &str = "/allow";

/// The names of the files in the folder.
pub const CERTIFICATE: &str = "tls.crt";
pub const KEY: &str = "tls.key";

/// All that it reads of a review.
#[derive(Deserialize)]
struct Review<'r> {
    #[serde(borrow)]
    request: Request<'r>,
}

#[derive(Deserialize)]
struct Request<'r> {
    #[serde(borrow)]
    uid: Cow<'r, str>,
}

/// Answers until the process is ended.
pub fn serve(folder: &Path) {
    let read = |file| fs::read_to_string(folder.join(file)).expect("a file of the certificate");
    let pair = SelfSigned { ca_pem: String::new(), certificate_pem: read(CERTIFICATE), key_pem: read(KEY) };
    stack::serve(Router::new().route(PATH, post(allow)), &pair);
}

async fn allow(body: Bytes) -> ([(HeaderName, &'static str); 1], String) {
    let review: Review<'_> = serde_json::from_slice(&body).expect("a review");
    let answer = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {"uid": review.request.uid, "allowed": true},
    });
    ([(header::CONTENT_TYPE, "application/json")], answer.to_string())
}
