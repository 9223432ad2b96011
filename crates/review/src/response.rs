//! The response to a request, and the AdmissionReview around it.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use base64::Engine;
use json_patch::Patch;

use super::{
    bounds::{summary_of, warning_of, warnings_of},
    refusal::Status,
};
use otel_webhook_inject::{Finding, Outcome, Warning, reason::Reason, shown::shown};
use serde::Serialize;
use serde_json::value::RawValue;

/// The response to one request.
#[derive(Debug)]
pub struct AdmissionResponse<'a> {
    uid: &'a str,
    allowed: bool,
    /// Operations as JSON text; `None` if the object is not changed.
    patch: Option<Cow<'a, str>>,
    warnings: Vec<String>,
    audit: Option<Audit>,
    status: Option<Status>,
}

/// The decision panicked. Its message is in the log by the panic hook.
#[derive(Clone, Copy, Debug)]
pub struct Panicked;

/// The audit annotation with the decision.
///
/// Two names, since an injected pod may be reviewed twice: the API server calls
/// again when anything changed the pod afterwards, such as another webhook. It does
/// not overwrite an annotation, and would log a warning for every such pod.
#[derive(Debug)]
struct Audit {
    /// Whether it has the second name: the pod was already injected.
    is_found: bool,
    text: String,
}

impl Audit {
    fn of(outcome: &Outcome) -> Self {
        let any = |is: fn(&Reason) -> bool| outcome.findings.iter().any(|finding| is(&finding.reason));
        let before =
            |reason: &Reason| matches!(reason, Reason::AlreadyInjected { .. } | Reason::NothingToAdd);
        let is_found = any(before) && !any(Reason::is_injected);
        Self { is_found, text: summary(outcome) }
    }

    fn annotation(&self) -> (&'static str, &str) {
        (if self.is_found { "found-injected" } else { "injection" }, &self.text)
    }
}

impl<'a> AdmissionResponse<'a> {
    /// Allows the pod unchanged.
    pub fn allowed(uid: &'a str, warning: Option<&str>) -> Self {
        Self {
            uid,
            allowed: true,
            patch: None,
            warnings: warning.iter().map(warning_of).collect(),
            audit: None,
            status: None,
        }
    }

    /// Allows the object with these operations.
    pub fn patched(uid: &'a str, patch: &Patch) -> Self {
        let text = || serde_json::to_string(patch).expect("operations are JSON").into();
        Self { patch: (!patch.is_empty()).then(text), ..Self::allowed(uid, None) }
    }

    /// Rejects the object.
    pub fn rejected(uid: &'a str, status: Status) -> Self {
        Self { allowed: false, status: Some(status), ..Self::allowed(uid, None) }
    }

    /// The same with warnings for the client.
    #[must_use]
    pub fn warning<W: fmt::Display>(self, warnings: impl IntoIterator<Item = W>) -> Self {
        Self { warnings: warnings_of(warnings), ..self }
    }

    /// The same with warnings after those that it has.
    #[must_use]
    pub fn also(mut self, warnings: Vec<String>) -> Self {
        if !warnings.is_empty() {
            self.warnings = warnings_of(self.warnings.drain(..).chain(warnings));
        }
        self
    }

    /// The response for a decision.
    pub fn of(uid: &'a str, outcome: &'a Result<Outcome, Panicked>) -> Self {
        let Ok(outcome) = outcome else {
            return Self::allowed(uid, Some("otel-webhook failed; the pod is not injected"));
        };
        let asked = !outcome.findings.is_empty();
        Self {
            warnings: warnings_of(outcome.all_warnings().iter().map(Prefixed)),
            audit: asked.then(|| Audit::of(outcome)),
            patch: Some(outcome.patch.text().into()).filter(|_| !outcome.patch.is_empty()),
            ..Self::allowed(uid, None)
        }
    }

    /// Each language and container with the code of its reason, such as
    /// `java/order=Injected python=NoInstrumentation`. `None` if nothing was opted in to.
    pub fn summary(&self) -> Option<&str> {
        self.audit.as_ref().map(|audit| audit.text.as_str())
    }

    /// The whole review as JSON.
    pub fn write(&self) -> Vec<u8> {
        let patch = self.patch.as_deref().map(base64_json);
        let review = Review {
            api_version: "admission.k8s.io/v1",
            kind: "AdmissionReview",
            response: Body {
                uid: self.uid,
                allowed: self.allowed,
                warnings: &self.warnings,
                audit_annotations: self.audit.as_ref().map(|audit| BTreeMap::from([audit.annotation()])),
                status: self.status.as_ref(),
                patch_type: patch.is_some().then_some("JSONPatch"),
                patch,
            },
        };
        json(&review)
    }
}

/// The standard alphabet, by vector instructions if the processor has them. Created once, with its tables.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
static BASE64: std::sync::LazyLock<base64::engine::Simd> =
    std::sync::LazyLock::new(|| base64::engine::Simd::standard(base64::engine::general_purpose::PAD));

/// The standard alphabet.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
use base64::prelude::BASE64_STANDARD as BASE64;

/// A text in base64, as a JSON string. It is most of a response, and has no character to escape.
fn base64_json(text: &str) -> Box<RawValue> {
    let json = ["\"", &BASE64.encode(text), "\""].concat();
    RawValue::from_string(json).expect("base64 in quotes is a JSON string")
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("strings and maps of strings are JSON")
}

/// `AdmissionReview` of `admission.k8s.io/v1` with only a response.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Body<'a>,
}

/// `AdmissionResponse` as JSON; fields without a value are omitted.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    audit_annotations: Option<BTreeMap<&'static str, &'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a Status>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    /// The patch in base64, as a JSON string.
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<Box<RawValue>>,
}

/// `java/order=Injected python=NoInstrumentation`: each language and container with its code.
fn summary(outcome: &Outcome) -> String {
    summary_of(outcome.findings.iter().map(Summed))
}

/// A warning with the name of the program.
struct Prefixed<'w>(&'w Warning<'w>);

impl fmt::Display for Prefixed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "otel-webhook: {}", self.0)
    }
}

/// A finding in the summary; with the number of containers if it is about several.
struct Summed<'f>(&'f Finding);

impl fmt::Display for Summed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(finding) = self;
        f.write_str(&finding.name())?;
        if let Some(container) = &finding.container {
            write!(f, "/{}", shown(container))?;
        }
        write!(f, "={}", finding.reason.code())?;
        if finding.count() > 1 { write!(f, "({})", finding.count()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use otel_webhook_inject::reason::Sign;

    fn audited(reasons: Vec<Reason>) -> serde_json::Value {
        let finding = |reason| Finding {
            language: "java",
            agent: None,
            container: None,
            instrumentation: None,
            reason,
            notes: Vec::new(),
        };
        let findings = reasons.into_iter().map(finding).collect();
        let outcome = Ok(Outcome { findings, ..Outcome::default() });
        let text = AdmissionResponse::of("u", &outcome).write();
        let mut review: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        review["response"]["auditAnnotations"].take()
    }

    #[test]
    fn a_second_review_does_not_overwrite_the_audit_annotation_of_the_first() {
        let already = || Reason::AlreadyInjected { sign: Sign::Container("c".to_owned()) };
        let disabled = || Reason::LanguageDisabled { language: "go" };
        let injection = |text: &str| serde_json::json!({ "injection": text });
        let found = |text: &str| serde_json::json!({ "found-injected": text });
        assert_eq!(audited(vec![Reason::Injected]), injection("java=Injected"));
        assert_eq!(
            audited(vec![Reason::Injected, Reason::NothingToAdd]),
            injection("java=Injected java=NothingToAdd")
        );
        assert_eq!(audited(vec![disabled()]), injection("java=LanguageDisabled"));
        assert_eq!(audited(vec![already()]), found("java=AlreadyInjected"));
        assert_eq!(audited(vec![already(), disabled()]), found("java=AlreadyInjected java=LanguageDisabled"));
        assert_eq!(audited(vec![Reason::NothingToAdd]), found("java=NothingToAdd"));
    }

    #[test]
    fn the_response_after_a_panic_allows_the_pod_with_a_warning() {
        let text = AdmissionResponse::of("u", &Err(Panicked)).write();
        let review: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        assert_eq!(review["response"]["allowed"], true);
        assert_eq!(review["response"]["warnings"][0], "otel-webhook failed; the pod is not injected");
        assert!(review["response"].get("patch").is_none());
    }
}
