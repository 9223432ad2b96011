//! Reviews of Instrumentations: defaulting, then validation.
//!
//! The API server first calls the mutating webhook, then checks the CRD's schema, then calls the validating
//! webhook. If the schema rejects an object, the validating webhook is not called, and the API server's message
//! has only some of the errors and no suggestions. So the response of the mutating webhook already warns about
//! every error. It rejects none, since another webhook may still change the object.

use serde_json::Value;

use super::{answering::Admission, in_use, opt_in};
use otel_webhook_api as api;
use otel_webhook_api::{
    Version,
    defaults::DefaultImages,
    in_version, read as read_spec,
    validation::{self, Verdict},
    version_of,
};
use otel_webhook_inject as inject;
use otel_webhook_inject::{Settings, catalogue::Catalogue, size::size_of, text::Text};
use otel_webhook_review::{AdmissionResponse, MalformedReview, envelope::Envelope, refusal::Status};

/// What is asked about an Instrumentation.
enum Request<'a> {
    /// It is created or updated.
    Change(Change<'a>),
    /// It is deleted; as it is stored.
    Deletion(Option<Value>),
    /// Something that is always allowed.
    Other,
}

/// An Instrumentation that is created or updated.
struct Change<'a> {
    namespace: Text<'a>,
    name: Text<'a>,
    new: Value,
    old: Option<Value>,
}

impl Admission {
    /// Responds with a patch that defaults an Instrumentation.
    ///
    /// # Errors
    /// If `body` is not a review of an Instrumentation.
    pub fn mutate_instrumentation(&self, body: &[u8]) -> Result<Vec<u8>, MalformedReview> {
        let (uid, request) = read(body)?;
        let Request::Change(change) = request else {
            return Ok(AdmissionResponse::allowed(&uid, None).write());
        };
        let patch = api::defaulting(&change.new, &self.images);
        let verdict = validation::validate(&change.new, change.old.as_ref());
        let errors = verdict.errors.iter().map(ToString::to_string);
        Ok(AdmissionResponse::patched(&uid, &patch)
            .warning(errors.chain(self.replaced_images(&change.new)))
            .write())
    }

    /// Validates an Instrumentation and allows or rejects it.
    ///
    /// # Errors
    /// If `body` is not a review of an Instrumentation.
    pub fn validate_instrumentation(&self, body: &[u8]) -> Result<Vec<u8>, MalformedReview> {
        let (uid, request) = read(body)?;
        // Deletions are always allowed.
        let change = match request {
            Request::Change(change) => change,
            Request::Deletion(old) => {
                let warning = old.as_ref().and_then(in_use::deleted);
                return Ok(AdmissionResponse::allowed(&uid, warning.as_deref()).write());
            }
            Request::Other => return Ok(AdmissionResponse::allowed(&uid, None).write()),
        };
        let Change { namespace, name, new, old } = change;
        let catalogue = &self.store.snapshot().catalogue;
        let mut verdict = validate(&new, old.as_ref(), &namespace, catalogue, &self.images, &self.settings);
        if new["metadata"]["deletionTimestamp"].is_null() {
            opt_in::warn(&mut verdict, &new, old.as_ref(), &namespace, self.only_annotated);
            if let Some(old) = &old {
                in_use::changed(&mut verdict, &new, old);
            }
        }
        let answer = if verdict.is_allowed() {
            AdmissionResponse::allowed(&uid, None)
        } else {
            let fields: Vec<_> = verdict.errors.iter().map(|error| &*error.field).collect();
            // As strings, which text logs quote.
            let (namespace, name) = (&*namespace, &*name);
            tracing::info!(namespace, name, fields = fields.join(","), "rejected an Instrumentation");
            AdmissionResponse::rejected(&uid, Status::invalid(name, &verdict.errors))
        };
        Ok(answer.warning(&verdict.warnings).write())
    }

    /// Returns the images that defaulting replaces in an object, as warnings.
    fn replaced_images(&self, object: &Value) -> impl Iterator<Item = String> {
        let replaced = self.images.choices(object).filter(|(_, choice)| choice.is_replaced());
        replaced.map(|(language, choice)| format!("spec.{}.image: {choice}", language.field))
    }
}

/// Returns the uid, and what is asked.
fn read(body: &[u8]) -> Result<(Text<'_>, Request<'_>), MalformedReview> {
    let envelope = Envelope::<Value>::parse(body)?;
    let Envelope { uid, name, namespace, operation, sub_resource, resource, object, old_object } = envelope;
    if (&*resource.group, &*resource.resource) != ("opentelemetry.io", "instrumentations") {
        return Err(MalformedReview::Resource(format!("{}.{}", resource.resource, resource.group)));
    }
    match (&*operation, sub_resource.is_empty()) {
        ("CREATE" | "UPDATE", true) => {}
        ("DELETE", true) => return Ok((uid, Request::Deletion(old_object))),
        _ => return Ok((uid, Request::Other)),
    }
    let Some(mut new) = object else { return Err(MalformedReview::NoObject(operation.to_string())) };
    // The API server ignores changes of the status.
    let status = old_object.as_ref().and_then(|old| old.get("status")).cloned();
    if let Some(members) = new.as_object_mut() {
        members.insert("status".to_owned(), status.unwrap_or_default());
    }
    Ok((uid, Request::Change(Change { namespace, name, new, old: old_object })))
}

/// Validates an Instrumentation: its fields, its default images, the sizes of agents, and ties with the others of
/// its namespace.
pub fn validate(
    new: &Value,
    old: Option<&Value>,
    namespace: &str,
    catalogue: &Catalogue,
    images: &DefaultImages,
    settings: &Settings,
) -> Verdict {
    let mut verdict = validation::validate(new, old);
    let version = version_of(new).unwrap_or_default();
    let [whole, new] = [new, &*in_version(new, Version::V1alpha1)];
    // An Instrumentation that is invalid or being deleted cannot tie with others.
    let is_deleted = !new["metadata"]["deletionTimestamp"].is_null();
    if !is_deleted {
        check_namespaces(&mut verdict, new, old, namespace, settings);
        validation::check_images(&mut verdict, new, images);
        validation::warn_of_sizes(&mut verdict, &new["spec"], &settings.sizes);
        // Other tools may use it.
        if let Err(problem) = settings.size_limits.check_one(size_of(whole)) {
            verdict.warn(
                "too-large",
                "spec",
                format!("{problem}; the webhook does not use this Instrumentation"),
            );
        }
    }
    if verdict.is_allowed()
        && !is_deleted
        && let Ok(spec) = read_spec(whole, &new["spec"])
    {
        let name = new["metadata"]["name"].as_str().unwrap_or_default();
        let rivals = inject::rivals(catalogue, namespace, name, &spec);
        if !rivals.is_empty() {
            let rivals: Vec<_> = rivals.iter().map(|rival| format!("{rival:?}")).collect();
            let message = format!(
                "ties with {}: a pod that opts in with \"true\" and matches both is not injected; \
                 set a different spec.selector or spec.priority",
                rivals.join(", ")
            );
            verdict.warn("selector-tie", "spec.selector", message);
        }
    }
    verdict.in_version(version)
}

/// Rejects a selector of namespaces where it has no effect.
fn check_namespaces(
    verdict: &mut Verdict,
    new: &Value,
    old: Option<&Value>,
    namespace: &str,
    settings: &Settings,
) {
    let default = settings.default_instrumentation.as_ref().map(|default| &*default.namespace);
    let check = |object: &Value| {
        let mut place = Verdict::default();
        validation::check_namespaces(&mut place, object, namespace, default);
        place
    };
    let mut place = check(new);
    place.forgive(old.map(|old| check(old).errors).unwrap_or_default());
    verdict.errors.extend(place.errors);
    verdict.warnings.extend(place.warnings);
}
