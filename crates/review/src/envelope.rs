//! The AdmissionReview around an object of any kind, borrowed from its bytes.

use serde::Deserialize;
use thiserror::Error;

use otel_webhook_inject::text::{Object, Text, object_or_default};

/// Why there is no response to a body.
#[derive(Debug, Error)]
pub enum MalformedReview {
    /// The body is not JSON, or not an AdmissionReview.
    #[error("the body is not an AdmissionReview of admission.k8s.io/v1: {0}")]
    NotAReview(#[from] serde_json::Error),
    /// The body is not JSON, or not a ConversionReview.
    #[error("the body is not a ConversionReview of apiextensions.k8s.io/v1: {0}")]
    NotAConversion(#[source] serde_json::Error),
    /// Another version of the review, and the valid one.
    #[error("apiVersion: \"{0}\" is not supported; valid: {1}")]
    Version(String, &'static str),
    /// Another kind of the same group, and the valid one.
    #[error("kind: \"{0}\" is not supported; valid: {1}")]
    Kind(String, &'static str),
    /// The uid is missing, which a response requires.
    #[error("request.uid: is missing; a response requires it")]
    NoUid,
    /// The webhook configuration sends another resource to an endpoint that must not allow it.
    #[error(
        "request.resource: \"{0}\" is not supported by this endpoint; valid: instrumentations.opentelemetry.io"
    )]
    Resource(String),
    /// The object is missing.
    #[error("request.object: is missing; {0} requires it")]
    NoObject(String),
}

const VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a, Request> {
    #[serde(borrow, default)]
    api_version: Text<'a>,
    #[serde(default)]
    kind: Text<'a>,
    request: Object<Request>,
}

/// The least of a review that can have a response.
#[derive(Deserialize)]
struct Least<'a> {
    #[serde(borrow, default)]
    uid: Text<'a>,
}

/// An admission request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope<'a, Reviewed> {
    /// The uid for the response; never empty.
    #[serde(borrow, default)]
    pub uid: Text<'a>,
    /// Name of the object; empty if it is not generated yet.
    #[serde(default)]
    pub name: Text<'a>,
    /// Namespace of the request; the object's own may be missing.
    #[serde(default)]
    pub namespace: Text<'a>,
    /// The operation.
    #[serde(default)]
    pub operation: Text<'a>,
    /// The subresource; empty for the whole object.
    #[serde(default)]
    pub sub_resource: Text<'a>,
    /// The resource.
    #[serde(default, deserialize_with = "object_or_default")]
    pub resource: Resource<'a>,
    /// The new object.
    pub object: Option<Reviewed>,
    /// The old object.
    pub old_object: Option<Reviewed>,
}

/// A resource of the API.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Resource<'a> {
    /// Its API group.
    #[serde(borrow)]
    pub group: Text<'a>,
    /// Its plural name.
    pub resource: Text<'a>,
}

impl<'a, Reviewed: Deserialize<'a>> Envelope<'a, Reviewed> {
    /// Parses a review.
    ///
    /// # Errors
    /// If there is no uid, or an object is invalid.
    pub fn parse(body: &'a [u8]) -> Result<Self, MalformedReview> {
        let request: Self = request(body)?;
        if request.uid.is_empty() { Err(MalformedReview::NoUid) } else { Ok(request) }
    }
}

/// The uid of a review that is unreadable otherwise.
///
/// # Errors
/// If there is no uid.
pub fn uid(body: &[u8]) -> Result<Text<'_>, MalformedReview> {
    let Least { uid } = request(body)?;
    if uid.is_empty() { Err(MalformedReview::NoUid) } else { Ok(uid) }
}

fn request<'a, Request: Deserialize<'a>>(body: &'a [u8]) -> Result<Request, MalformedReview> {
    let Object(review) = serde_json::from_slice::<Object<Review<'a, Request>>>(body)?;
    match (&*review.api_version, &*review.kind) {
        (VERSION, KIND) => Ok(review.request.0),
        (VERSION, kind) => Err(MalformedReview::Kind(kind.to_owned(), KIND)),
        (version, _) => Err(MalformedReview::Version(version.to_owned(), VERSION)),
    }
}
