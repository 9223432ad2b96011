//! Reviews of Instrumentations: completed, then judged.
//!
//! The API server asks in this order: defaults, the CRD's schema, the verdict.
//! What the schema refuses never comes to the verdict, and the API server's
//! own words for it neither suggest anything nor come all at once. So the
//! first answer already warns of every error; it refuses none, since another
//! webhook may still change the object.

use serde::Deserialize;
use serde_json::Value;

use super::answering::Admission;
use otel_webhook_api as api;
use otel_webhook_api::{
    InstrumentationSpec,
    defaults::DefaultImages,
    sizes::AgentSizes,
    validation::{self, Verdict},
};
use otel_webhook_inject as inject;
use otel_webhook_inject::{catalogue::Catalogue, text::Text};
use otel_webhook_review::{AdmissionResponse, MalformedReview, envelope::Envelope, refusal::Status};

/// An Instrumentation that is created or updated.
struct Change<'a> {
    namespace: Text<'a>,
    name: Text<'a>,
    new: Value,
    old: Option<Value>,
}

impl Admission {
    /// Answers a review with the defaults of an Instrumentation.
    ///
    /// # Errors
    /// When `body` is not a review of an Instrumentation.
    pub fn mutate_instrumentation(&self, body: &[u8]) -> Result<Vec<u8>, MalformedReview> {
        let (uid, change) = read(body)?;
        let Some(change) = change else { return Ok(AdmissionResponse::allowed(&uid, None).write()) };
        let patch = api::defaulting(&change.new, &self.images);
        let verdict = validation::validate(&change.new, change.old.as_ref());
        let errors = verdict.errors.iter().map(ToString::to_string);
        Ok(AdmissionResponse::patched(&uid, &patch)
            .warning(errors.chain(self.replaced_images(&change.new)))
            .write())
    }

    /// Answers a review with the verdict on an Instrumentation.
    ///
    /// # Errors
    /// When `body` is not a review of an Instrumentation.
    pub fn validate_instrumentation(&self, body: &[u8]) -> Result<Vec<u8>, MalformedReview> {
        let (uid, change) = read(body)?;
        // Whatever is deleted may go, however bad it is.
        let Some(change) = change else { return Ok(AdmissionResponse::allowed(&uid, None).write()) };
        let Change { namespace, name, new, old } = change;
        let catalogue = &self.store.snapshot().catalogue;
        let sizes = &self.settings.sizes;
        let verdict = judge(&new, old.as_ref(), &namespace, catalogue, &self.images, sizes);
        let answer = if verdict.is_allowed() {
            AdmissionResponse::allowed(&uid, None)
        } else {
            let fields: Vec<_> = verdict.errors.iter().map(|error| &*error.field).collect();
            tracing::info!(%namespace, %name, fields = fields.join(","), "an Instrumentation was refused");
            AdmissionResponse::refused(&uid, Status::invalid(&name, &verdict.errors))
        };
        Ok(answer.warning(&verdict.warnings).write())
    }

    /// The images that defaulting replaces in an object, as warnings.
    fn replaced_images(&self, object: &Value) -> impl Iterator<Item = String> {
        let replaced = self.images.choices(object).filter(|(_, choice)| choice.is_replaced());
        replaced.map(|(language, choice)| format!("spec.{}.image: {choice}", language.field))
    }
}

/// The uid to answer to, and what is created or updated, if anything is.
fn read(body: &[u8]) -> Result<(Text<'_>, Option<Change<'_>>), MalformedReview> {
    let envelope = Envelope::<Value>::parse(body)?;
    let Envelope { uid, name, namespace, operation, sub_resource, resource, object, old_object } = envelope;
    if (&*resource.group, &*resource.resource) != ("opentelemetry.io", "instrumentations") {
        return Err(MalformedReview::Resource(format!("{}.{}", resource.resource, resource.group)));
    }
    if !["CREATE", "UPDATE"].contains(&&*operation) || !sub_resource.is_empty() {
        return Ok((uid, None));
    }
    let Some(mut new) = object else { return Err(MalformedReview::NoObject(operation.to_string())) };
    // The API server stores the status that was there before, whatever is sent.
    let status = old_object.as_ref().and_then(|old| old.get("status")).cloned();
    if let Some(members) = new.as_object_mut() {
        members.insert("status".to_owned(), status.unwrap_or_default());
    }
    Ok((uid, Some(Change { namespace, name, new, old: old_object })))
}

/// Judges an Instrumentation by itself, by the sizes of agents, beside the others of its namespace, and beside the
/// default images.
pub fn judge(
    new: &Value,
    old: Option<&Value>,
    namespace: &str,
    catalogue: &Catalogue,
    images: &DefaultImages,
    sizes: &AgentSizes,
) -> Verdict {
    let mut verdict = validation::validate(new, old);
    // One that cannot be used takes part in no choice; one that goes, not much longer.
    let is_going = !new["metadata"]["deletionTimestamp"].is_null();
    if !is_going {
        validation::check_images(&mut verdict, new, images);
        validation::warn_of_sizes(&mut verdict, &new["spec"], sizes);
    }
    if verdict.is_allowed()
        && !is_going
        && let Ok(spec) = Option::<InstrumentationSpec>::deserialize(&new["spec"])
    {
        let name = new["metadata"]["name"].as_str().unwrap_or_default();
        let rivals = inject::rivals(catalogue, namespace, name, &spec.unwrap_or_default());
        if !rivals.is_empty() {
            let rivals: Vec<_> = rivals.iter().map(|rival| format!("{rival:?}")).collect();
            let message = format!(
                "ties with {}: a pod that asks with \"true\" and fits both gets no agent; \
                 set spec.selector or spec.priority apart",
                rivals.join(", ")
            );
            verdict.warn("selector-tie", "spec.selector", message);
        }
    }
    verdict
}
