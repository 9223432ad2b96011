//! The ConversionReview of the API server: objects of one version, and the same objects of another one.
//!
//! Objects are read, converted and written one after the other: as documents, those of a large review would be many
//! times as large as their text.

use std::fmt;

use otel_webhook_api::{Version, convert};
use otel_webhook_inject::{
    shown::shown,
    text::{Object, Text},
};
use serde::{
    Deserialize, Deserializer as _,
    de::{Error, SeqAccess, Visitor},
};
use serde_json::{Value, json, value::RawValue};

use super::{bounds::text_in_line, envelope::MalformedReview};

const VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "ConversionReview";

/// The largest object, in bytes: the API server accepts none that is larger. A document takes several times as much.
const LARGEST: usize = 3 * 1024 * 1024;

/// The response to a ConversionReview.
#[derive(Debug)]
pub struct Conversion {
    /// The review for the API server.
    pub review: Vec<u8>,
    /// Why the objects were not converted; `None` if they were.
    pub failure: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    #[serde(borrow, default)]
    api_version: Text<'a>,
    #[serde(default)]
    kind: Text<'a>,
    request: Object<Request<'a>>,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow, default)]
    uid: Text<'a>,
    #[serde(default, rename = "desiredAPIVersion")]
    desired: Text<'a>,
    /// None for null, too.
    objects: Option<&'a RawValue>,
}

/// Converts the objects of a review. If one cannot be converted, none is returned.
///
/// # Errors
/// If `body` is not a review with a uid, which a response requires.
pub fn respond(body: &[u8]) -> Result<Conversion, MalformedReview> {
    let Object(review): Object<Review<'_>> =
        serde_json::from_slice(body).map_err(MalformedReview::NotAConversion)?;
    match (&*review.api_version, &*review.kind) {
        (VERSION, KIND) => {}
        (VERSION, kind) => return Err(MalformedReview::Kind(kind.to_owned(), KIND)),
        (version, _) => return Err(MalformedReview::Version(version.to_owned(), VERSION)),
    }
    let Request { uid, desired, objects } = review.request.0;
    if uid.is_empty() {
        return Err(MalformedReview::NoUid);
    }
    let start = json!({"uid": &*uid}).to_string();
    // Without the brace at its end, so that more members can follow.
    let start = &start[..start.len() - 1];
    let head = format!(r#"{{"apiVersion":"{VERSION}","kind":"{KIND}","response":{start}"#);
    Ok(match converted(&desired, objects, &head) {
        Ok(mut review) => {
            review.extend_from_slice(br#"],"result":{"status":"Success"}}}"#);
            Conversion { review, failure: None }
        }
        Err(failure) => {
            let failure = text_in_line(&failure);
            let result = json!({"status": "Failure", "message": failure});
            let review = format!(r#"{head},"result":{result}}}}}"#).into_bytes();
            Conversion { review, failure: Some(failure) }
        }
    })
}

/// Returns the response up to the last object.
fn converted(desired: &str, objects: Option<&RawValue>, head: &str) -> Result<Vec<u8>, String> {
    let to = Version::of(desired).ok_or_else(|| {
        let known = Version::ALL.map(Version::api_version).join(", ");
        format!("request.desiredAPIVersion: \"{desired}\" is not supported; valid: {known}")
    })?;
    let objects = objects.map_or("[]", RawValue::get);
    let mut review = Vec::with_capacity(head.len() + objects.len() + 64);
    review.extend_from_slice(head.as_bytes());
    review.extend_from_slice(br#","convertedObjects":["#);
    let mut failure = None;
    let list = Objects { to, review: &mut review, failure: &mut failure };
    let read = serde_json::Deserializer::from_str(objects).deserialize_seq(list);
    match (failure, read) {
        (Some(failure), _) => Err(failure),
        (None, Err(problem)) => Err(format!("request.objects: {problem}")),
        (None, Ok(())) => Ok(review),
    }
}

/// Reads the list of objects and writes the converted ones, up to the first that cannot be converted.
struct Objects<'w> {
    to: Version,
    review: &'w mut Vec<u8>,
    failure: &'w mut Option<String>,
}

impl<'de> Visitor<'de> for Objects<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut index = 0;
        while let Some(raw) = list.next_element::<&'de RawValue>()? {
            match one(raw.get(), self.to) {
                Ok(object) => {
                    self.review.extend_from_slice(if index == 0 { b"" } else { b"," });
                    serde_json::to_writer(&mut *self.review, &object).map_err(A::Error::custom)?;
                }
                Err(problem) => {
                    *self.failure = Some(format!("request.objects[{index}]{}: {problem}", named(raw.get())));
                    return Ok(());
                }
            }
            index += 1;
        }
        Ok(())
    }
}

/// Converts one object.
fn one(text: &str, to: Version) -> Result<Value, String> {
    if text.len() > LARGEST {
        return Err(format!("has {} bytes; at most {LARGEST} are valid", text.len()));
    }
    let object: Value = serde_json::from_str(text).map_err(|problem| problem.to_string())?;
    convert(&object, to).map_err(|problem| problem.to_string())
}

/// The name of an object for a message, as far as it can be read.
fn named(text: &str) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Metadata<'a> {
        #[serde(borrow)]
        namespace: Text<'a>,
        name: Text<'a>,
    }
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        kind: Text<'a>,
        metadata: Object<Metadata<'a>>,
    }
    let named = serde_json::from_str(text);
    named.map_or_else(
        |_| String::new(),
        |Object(Named { kind, metadata: Object(Metadata { namespace, name }) })| {
            format!(" ({} {}/{})", shown(&kind), shown(&namespace), shown(&name))
        },
    )
}
