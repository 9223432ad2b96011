//! The AdmissionReview around whatever object is reviewed, borrowed from its bytes.

use serde::Deserialize;
use thiserror::Error;

use otel_webhook_inject::text::{Object, Text, object_or_default};

/// Why a body is no review that could be answered.
#[derive(Debug, Error)]
pub enum MalformedReview {
    /// The body is not JSON, or not an AdmissionReview.
    #[error("the body is not an AdmissionReview of admission.k8s.io/v1: {0}")]
    NotAReview(#[from] serde_json::Error),
    /// Another version of the review.
    #[error("apiVersion: \"{0}\" is not spoken here; valid: admission.k8s.io/v1")]
    Version(String),
    /// Something else of the same group.
    #[error("kind: \"{0}\" is not answered here; valid: AdmissionReview")]
    Kind(String),
    /// There is nothing to answer to.
    #[error("request.uid: is missing; an answer has to carry it")]
    NoUid,
    /// The registration sends something else to an endpoint that must not let it pass.
    #[error("request.resource: \"{0}\" is not reviewed here; valid: instrumentations.opentelemetry.io")]
    Resource(String),
    /// There is nothing to review.
    #[error("request.object: is missing; {0} has to bring it")]
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

/// As little of a review as can be answered.
#[derive(Deserialize)]
struct Least<'a> {
    #[serde(borrow, default)]
    uid: Text<'a>,
}

/// What a review asks.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope<'a, Reviewed> {
    /// What the answer has to carry; never empty.
    #[serde(borrow, default)]
    pub uid: Text<'a>,
    /// Name of the object; empty while it is still to be made up.
    #[serde(default)]
    pub name: Text<'a>,
    /// Namespace of the request; the object's own may be absent.
    #[serde(default)]
    pub namespace: Text<'a>,
    /// What is done with the object.
    #[serde(default)]
    pub operation: Text<'a>,
    /// The part of the object that is reviewed; empty for the whole.
    #[serde(default)]
    pub sub_resource: Text<'a>,
    /// Which kind of object it is.
    #[serde(default, deserialize_with = "object_or_default")]
    pub resource: Resource<'a>,
    /// The object as it will be.
    pub object: Option<Reviewed>,
    /// The object as it is.
    pub old_object: Option<Reviewed>,
}

/// A kind of object.
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
    /// Reads a review.
    ///
    /// # Errors
    /// When there is no uid to answer to, or an object is not what it should be.
    pub fn parse(body: &'a [u8]) -> Result<Self, MalformedReview> {
        let request: Self = request(body)?;
        if request.uid.is_empty() { Err(MalformedReview::NoUid) } else { Ok(request) }
    }
}

/// The uid of a review of which nothing else can be read.
///
/// # Errors
/// When there is no uid to answer to.
pub fn uid(body: &[u8]) -> Result<Text<'_>, MalformedReview> {
    let Least { uid } = request(body)?;
    if uid.is_empty() { Err(MalformedReview::NoUid) } else { Ok(uid) }
}

fn request<'a, Request: Deserialize<'a>>(body: &'a [u8]) -> Result<Request, MalformedReview> {
    let Object(review) = serde_json::from_slice::<Object<Review<'a, Request>>>(body)?;
    match (&*review.api_version, &*review.kind) {
        (VERSION, KIND) => Ok(review.request.0),
        (VERSION, kind) => Err(MalformedReview::Kind(kind.to_owned())),
        (version, _) => Err(MalformedReview::Version(version.to_owned())),
    }
}
