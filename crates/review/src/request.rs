//! An admission request for a pod, borrowed from its bytes.

use serde::de::IgnoredAny;
use thiserror::Error;

use super::envelope::{self, Envelope, MalformedReview};
use otel_webhook_inject::{
    pod::Pod,
    text::{Object, Text},
};

/// An admission request for a pod.
#[derive(Debug)]
pub struct AdmissionRequest<'a> {
    /// The uid for the response.
    pub uid: Text<'a>,
    /// Namespace of the request; the pod's own may be missing.
    pub namespace: Text<'a>,
    /// The pod, or why the request is skipped. On the heap, since it is large and would be
    /// copied repeatedly.
    pub pod: Result<Box<Pod<'a>>, Skip>,
}

/// Why a request is skipped.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Skip {
    /// Pods are injected only when they are created.
    #[error("operation {operation} of {resource} is not CREATE of pods")]
    NotCreated {
        /// The operation.
        operation: String,
        /// The resource, with its subresource.
        resource: String,
    },
    /// The webhook configuration sends another resource.
    #[error("{0} is not a pod; the webhook configuration should send pods only")]
    NotAPod(String),
    /// The pod, or the review around it, is invalid.
    #[error("the {what} cannot be read: {problem}")]
    Unreadable {
        /// `pod` or `review`.
        what: &'static str,
        /// The error of the parser.
        problem: String,
    },
}

impl Skip {
    /// The warning for the client, if any.
    pub fn warning(&self) -> Option<String> {
        (!matches!(self, Self::NotCreated { .. })).then(|| self.to_string())
    }
}

impl<'a> AdmissionRequest<'a> {
    /// Parses a review. A review with an unreadable pod still gets
    /// a response.
    ///
    /// # Errors
    /// If there is no uid.
    pub fn parse(body: &'a [u8]) -> Result<Self, MalformedReview> {
        match Envelope::<Object<Box<Pod<'a>>>>::parse(body) {
            Ok(envelope) => Ok(Self::of(envelope, |Object(mut pod)| {
                // Copying the pod's JSON to measure it would cost as much as reading it.
                pod.size = body.len();
                Ok(pod)
            })),
            Err(MalformedReview::NotAReview(problem)) => {
                let unreadable = |what| Err(Skip::Unreadable { what, problem: problem.to_string() });
                match Envelope::<IgnoredAny>::parse(body) {
                    Ok(envelope) => Ok(Self::of(envelope, |_| unreadable("pod"))),
                    Err(_) => Ok(Self {
                        uid: envelope::uid(body)?,
                        namespace: Text::default(),
                        pod: unreadable("review"),
                    }),
                }
            }
            Err(malformed) => Err(malformed),
        }
    }

    fn of<Reviewed>(
        envelope: Envelope<'a, Reviewed>,
        read: impl FnOnce(Reviewed) -> Result<Box<Pod<'a>>, Skip>,
    ) -> Self {
        let Envelope { uid, namespace, operation, sub_resource, resource, object, .. } = envelope;
        let pod = match (&*resource.group, &*resource.resource, &*sub_resource) {
            ("", "pods", "") if &*operation == "CREATE" => match object {
                Some(object) => read(object),
                None => {
                    Err(Skip::Unreadable { what: "pod", problem: "request.object is missing".to_owned() })
                }
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
    fn only_created_pods_are_not_skipped() {
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
            let request = AdmissionRequest::parse(text.as_bytes()).expect("it has a uid");
            assert_eq!(request.pod.expect_err("skipped").to_string(), reason);
        }
    }

    #[test]
    fn an_unreadable_pod_gets_a_response() {
        let text = review(
            r#"{"uid":"u","operation":"CREATE","resource":{"resource":"pods"},"object":{"spec":{"containers":3}}}"#,
        );
        let request = AdmissionRequest::parse(text.as_bytes()).expect("it has a uid");
        assert_eq!(&*request.uid, "u");
        let skip = request.pod.expect_err("no pod");
        assert!(
            matches!(&skip, Skip::Unreadable { problem, .. } if problem.contains("expected a list")),
            "{skip}"
        );
    }

    #[test]
    fn an_unreadable_review_with_a_uid_gets_a_response() {
        for rest in [r#""namespace":5"#, r#""operation":["CREATE"]"#, r#""resource":["","pods"]"#] {
            let text = review(&format!(r#"{{"uid":"u",{rest},"object":{{}}}}"#));
            let request = AdmissionRequest::parse(text.as_bytes()).expect("it has a uid");
            assert_eq!(&*request.uid, "u");
            let skip = request.pod.expect_err("no pod");
            let said = skip.warning().expect("a warning");
            assert!(said.starts_with("the review cannot be read: invalid type"), "{said}");
        }
    }

    #[test]
    fn a_list_is_not_parsed_as_an_object() {
        let pod = |object: &str| {
            format!(
                r#"{{"uid":"u","operation":"CREATE","resource":{{"resource":"pods"}},"object":{object}}}"#
            )
        };
        for object in [
            "[]",
            r#"{"metadata":["a"]}"#,
            r#"{"spec":[[{"name":"app"}]]}"#,
            r#"{"spec":{"containers":[["app","image"]]}}"#,
            r#"{"spec":{"os":["windows"]}}"#,
            r#"{"metadata":{"ownerReferences":[["v1"]]}}"#,
        ] {
            let text = review(&pod(object));
            let request = AdmissionRequest::parse(text.as_bytes()).expect("it has a uid");
            let problem = request.pod.expect_err("no pod").to_string();
            let start = "the pod cannot be read: invalid type: sequence, expected an object";
            assert!(problem.starts_with(start), "{object}: {problem}");
        }
        for text in
            [r#"["admission.k8s.io/v1", "AdmissionReview", {"uid": "u"}]"#.to_owned(), review(r#"["u"]"#)]
        {
            let problem = AdmissionRequest::parse(text.as_bytes()).expect_err("malformed").to_string();
            assert!(problem.contains("invalid type: sequence, expected an object"), "{text}: {problem}");
        }
    }

    #[test]
    fn a_review_without_uid_or_of_another_version_gets_no_response() {
        for (text, reason) in [
            (review("{}"), "request.uid: is missing; a response requires it"),
            (
                review(r#"{"uid":"u"}"#).replace("/v1\"", "/v1beta1\""),
                "apiVersion: \"admission.k8s.io/v1beta1\" is not supported; valid: admission.k8s.io/v1",
            ),
            (
                review(r#"{"uid":"u"}"#).replace("AdmissionReview", "ConversionReview"),
                "kind: \"ConversionReview\" is not supported; valid: AdmissionReview",
            ),
        ] {
            assert_eq!(AdmissionRequest::parse(text.as_bytes()).expect_err("malformed").to_string(), reason);
        }
    }
}
