//! What the API server asks about a pod, borrowed from its bytes.

use serde::de::IgnoredAny;
use thiserror::Error;

use super::envelope::{Envelope, MalformedReview};
use crate::inject::{pod::Pod, text::Text};

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

impl<'a> Request<'a> {
    /// Reads a review. A pod that cannot be read is no reason to leave the
    /// review without an answer.
    ///
    /// # Errors
    /// When there is no uid to answer to.
    pub fn parse(body: &'a [u8]) -> Result<Self, MalformedReview> {
        match Envelope::<Pod<'a>>::parse(body) {
            Ok(envelope) => Ok(Self::of(envelope, Ok)),
            Err(MalformedReview::NotAReview(problem)) => {
                let envelope = Envelope::<IgnoredAny>::parse(body)?;
                Ok(Self::of(envelope, |_| Err(Skip::Unreadable { problem: problem.to_string() })))
            }
            Err(malformed) => Err(malformed),
        }
    }

    fn of<Object>(
        envelope: Envelope<'a, Object>,
        read: impl FnOnce(Object) -> Result<Pod<'a>, Skip>,
    ) -> Self {
        let Envelope { uid, namespace, operation, sub_resource, resource, object, .. } = envelope;
        let pod = match (&*resource.group, &*resource.resource, &*sub_resource) {
            ("", "pods", "") if &*operation == "CREATE" => match object {
                Some(object) => read(object),
                None => Err(Skip::Unreadable { problem: "request.object is missing".to_owned() }),
            },
            ("", "pods", sub_resource) => Err(Skip::NotCreated {
                operation: operation.to_string(),
                resource: if sub_resource.is_empty() {
                    "pods".to_owned()
                } else {
                    format!("pods/{sub_resource}")
                },
            }),
            (_, resource, _) => Err(Skip::NotAPod(format!("\"{resource}\""))),
        };
        Self { uid, namespace, pod }
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
