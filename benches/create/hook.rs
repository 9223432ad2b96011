//! The least that a webhook can be: it allows every pod and changes none, or gives each the same patch, behind the
//! listener, the TLS and the runtime of the product.

use std::{borrow::Cow, fs, path::Path, sync::Arc};

use axum::{
    Router,
    body::Bytes,
    http::{HeaderName, header},
    routing::post,
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use otel_webhook_server::tls::SelfSigned;
use serde::Deserialize;
use serde_json::json;

use crate::stack;

/// Makes this program that server; the next argument is the folder with its certificate.
pub const ARGUMENT: &str = "allow-everything";

/// Where it is called to change nothing.
pub const ALLOW: &str = "/allow";

/// Where it is called for the patch of the file.
pub const CONSTANT: &str = "/constant";

/// Where it is called for the patch of the other file.
pub const WHOLE: &str = "/whole";

/// The names of the files in the folder.
pub const CERTIFICATE: &str = "tls.crt";
pub const KEY: &str = "tls.key";
pub const PATCH: &str = "patch.json";
pub const WHOLE_PATCH: &str = "whole.json";

/// The name of the token's volume in the patch, which has another end in each pod.
pub const TOKEN_VOLUME: &str = "kube-api-access-xxxxx";

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
    let [patch, whole]: [Arc<str>; 2] = [PATCH, WHOLE_PATCH].map(|file| read(file).into());
    let router = Router::new()
        .route(ALLOW, post(async |body: Bytes| answer(&body, None)))
        .route(CONSTANT, post(async move |body: Bytes| answer(&body, Some(&patched(&patch, &body)))))
        .route(WHOLE, post(async move |body: Bytes| answer(&body, Some(&patched(&whole, &body)))));
    stack::serve(router, &pair);
}

/// The patch for the token's volume of this pod.
fn patched(patch: &str, body: &[u8]) -> String {
    let prefix = TOKEN_VOLUME.trim_end_matches('x');
    let body = str::from_utf8(body).expect("a review");
    let own = body.find(prefix).map_or(TOKEN_VOLUME, |at| &body[at..at + TOKEN_VOLUME.len()]);
    patch.replace(TOKEN_VOLUME, own)
}

fn answer(body: &[u8], patch: Option<&str>) -> ([(HeaderName, &'static str); 1], String) {
    let review: Review<'_> = serde_json::from_slice(body).expect("a review");
    let mut response = json!({"uid": review.request.uid, "allowed": true});
    if let Some(patch) = patch {
        response["patchType"] = "JSONPatch".into();
        response["patch"] = BASE64_STANDARD.encode(patch).into();
    }
    let answer =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    ([(header::CONTENT_TYPE, "application/json")], answer.to_string())
}
