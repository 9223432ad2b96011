//! The AdmissionReview that the API server sends, borrowed from its bytes.

use serde::{Deserialize, de::IgnoredAny};
use thiserror::Error;

use crate::inject::{pod::Pod, text::Text};

/// Why a body is no review that could be answered.
#[derive(Debug, Error)]
pub enum MalformedReview {
    /// The body is not JSON, or not an AdmissionReview.
    #[error("the body is not an AdmissionReview of admission.k8s.io/v1: {0}")]
    NotAReview(#[from] serde_json::Error),
    /// Another version of the review.
    #[error("apiVersion: \"{0}\" is not spoken here; valid: admission.k8s.io/v1")]
    Version(String),
    /// There is nothing to answer to.
    #[error("request.uid: is missing; an answer has to carry it")]
    NoUid,
}

/// A request that can be answered.
#[derive(Debug)]
pub struct Request<'a> {
    /// What the answer has to carry.
    pub uid: Text<'a>,
    /// Namespace of the request; the pod's own may be absent.
    pub namespace: Text<'a>,
    /// The pod, or why there is none to inject into.
    pub pod: Result<Pod<'a>, Skip>,
}

/// Why a request is answered without looking for annotations.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Skip {
    /// Pods are injected when they are created, and never later.
    #[error("operation {operation} of {resource} is not CREATE of pods")]
    NotCreated {
        /// The operation.
        operation: String,
        /// The resource, with its subresource.
        resource: String,
    },
    /// The registration sends something else.
    #[error("{0} is not a pod; the webhook configuration should send pods only")]
    NotAPod(String),
    /// The object is not a pod as the API server sends it.
    #[error("the pod cannot be read: {problem}")]
    Unreadable {
        /// What the parser says.
        problem: String,
    },
}

impl Skip {
    /// What whoever sent the object should hear, if anything.
    pub fn warning(&self) -> Option<String> {
        (!matches!(self, Self::NotCreated { .. })).then(|| self.to_string())
    }
}

const VERSION: &str = "admission.k8s.io/v1";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a, Object> {
    #[serde(borrow, default)]
    api_version: Text<'a>,
    request: Envelope<'a, Object>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a, Object> {
    #[serde(borrow, default)]
    uid: Text<'a>,
    #[serde(default)]
    namespace: Text<'a>,
    #[serde(default)]
    operation: Text<'a>,
    #[serde(default)]
    sub_resource: Text<'a>,
    #[serde(default)]
    resource: Resource<'a>,
    object: Option<Object>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resource<'a> {
    #[serde(borrow)]
    group: Text<'a>,
    resource: Text<'a>,
}

impl<'a> Request<'a> {
    /// Reads a review. A pod that cannot be read is no reason to leave the
    /// review without an answer.
    ///
    /// # Errors
    /// When there is no uid to answer to.
    pub fn parse(body: &'a [u8]) -> Result<Self, MalformedReview> {
        match serde_json::from_slice::<Review<'a, Pod<'a>>>(body) {
            Ok(review) => review.check(Ok),
            Err(problem) => {
                let review: Review<'a, IgnoredAny> = serde_json::from_slice(body)?;
                review.check(|_| Err(Skip::Unreadable { problem: problem.to_string() }))
            }
        }
    }
}

impl<'a, Object> Review<'a, Object> {
    fn check(
        self,
        read: impl FnOnce(Object) -> Result<Pod<'a>, Skip>,
    ) -> Result<Request<'a>, MalformedReview> {
        let Self { api_version, request } = self;
        if &*api_version != VERSION {
            return Err(MalformedReview::Version(api_version.to_string()));
        }
        if request.uid.is_empty() {
            return Err(MalformedReview::NoUid);
        }
        let pod = match (&*request.resource.group, &*request.resource.resource, &*request.sub_resource) {
            ("", "pods", "") if &*request.operation == "CREATE" => match request.object {
                Some(object) => read(object),
                None => Err(Skip::Unreadable { problem: "request.object is missing".to_owned() }),
            },
            ("", "pods", sub_resource) => Err(Skip::NotCreated {
                operation: request.operation.to_string(),
                resource: if sub_resource.is_empty() {
                    "pods".to_owned()
                } else {
                    format!("pods/{sub_resource}")
                },
            }),
            (_, resource, _) => Err(Skip::NotAPod(format!("\"{resource}\""))),
        };
        Ok(Request { uid: request.uid, namespace: request.namespace, pod })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review(request: &str) -> String {
        format!(r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{request}}}"#)
    }

    #[test]
    fn what_is_no_created_pod_is_skipped_with_its_reason() {
        let pods = r#""resource":{"group":"","version":"v1","resource":"pods"}"#;
        let nodes = r#""resource":{"group":"","version":"v1","resource":"nodes"}"#;
        for (request, reason) in [
            (
                format!(r#"{{"uid":"u","operation":"UPDATE",{pods},"object":{{}}}}"#),
                "operation UPDATE of pods is not CREATE of pods",
            ),
            (
                format!(r#"{{"uid":"u","operation":"DELETE",{pods},"object":null}}"#),
                "operation DELETE of pods is not CREATE of pods",
            ),
            (
                format!(r#"{{"uid":"u","operation":"CREATE","subResource":"binding",{pods},"object":{{}}}}"#),
                "operation CREATE of pods/binding is not CREATE of pods",
            ),
            (
                format!(r#"{{"uid":"u","operation":"CREATE",{pods}}}"#),
                "the pod cannot be read: request.object is missing",
            ),
            (
                format!(r#"{{"uid":"u","operation":"CREATE",{nodes},"object":{{}}}}"#),
                "\"nodes\" is not a pod; the webhook configuration should send pods only",
            ),
        ] {
            let text = review(&request);
            let request = Request::parse(text.as_bytes()).expect("it has a uid");
            assert_eq!(request.pod.expect_err("skipped").to_string(), reason);
        }
    }

    #[test]
    fn a_pod_that_cannot_be_read_is_still_answered() {
        let text = review(
            r#"{"uid":"u","operation":"CREATE","resource":{"resource":"pods"},"object":{"spec":{"containers":3}}}"#,
        );
        let request = Request::parse(text.as_bytes()).expect("it has a uid");
        assert_eq!(&*request.uid, "u");
        let skip = request.pod.expect_err("no pod");
        assert!(
            matches!(&skip, Skip::Unreadable { problem } if problem.contains("expected a list")),
            "{skip}"
        );
    }

    #[test]
    fn what_has_no_uid_or_another_version_cannot_be_answered() {
        for (text, reason) in [
            (review("{}"), "request.uid: is missing; an answer has to carry it"),
            (
                review(r#"{"uid":"u"}"#).replace("/v1\"", "/v1beta1\""),
                "apiVersion: \"admission.k8s.io/v1beta1\" is not spoken here; valid: admission.k8s.io/v1",
            ),
        ] {
            assert_eq!(Request::parse(text.as_bytes()).expect_err("malformed").to_string(), reason);
        }
    }
}
