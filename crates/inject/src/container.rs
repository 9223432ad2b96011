//! What an added container takes from the pod and the Instrumentation.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    edit::{Place, container_at, unreadable},
    fitting::{self, Refusal},
    injection::Injection,
    json,
    note::Note,
    pod_security::is_privileged,
    reason::Reason,
    settings::InitResources,
};

/// The security context of init containers: the Instrumentation's, or else
/// that of a target, which can read what the target can.
pub fn security_context<'p>(injection: &Injection<'_, 'p>, target: Place) -> Option<Cow<'p, Value>> {
    let said = injection.instrumentation().security_context.as_ref();
    let own = container_at(injection.facts.pod, target).security_context;
    // `check_security_context` was called for each target.
    said.map(Cow::Borrowed).or_else(|| json::value_of(own?).ok().map(Cow::Owned))
}

/// Checks that the security context of a target can be copied, if init containers have that one.
///
/// # Errors
/// The reason for an unreadable container.
pub fn check_security_context(injection: &Injection<'_, '_>, target: Place) -> Result<(), Reason> {
    let container = container_at(injection.facts.pod, target);
    match container.security_context.filter(|_| injection.instrumentation().security_context.is_none()) {
        None => Ok(()),
        Some(own) => json::value_of(own).map(drop).map_err(|error| unreadable(container, &error)),
    }
}

/// The mounts for a copy of a container with another security context. The
/// API server allows `Bidirectional` mount propagation in privileged containers only.
pub fn copied_mounts(mut own: Vec<Value>, security_context: Option<&Value>) -> Vec<Value> {
    const PROPAGATION: &str = "mountPropagation";
    if !security_context.is_some_and(is_privileged) {
        let mounts = own.iter_mut().filter_map(Value::as_object_mut);
        for mount in
            mounts.filter(|mount| mount.get(PROPAGATION).is_some_and(|value| value == "Bidirectional"))
        {
            mount.shift_remove(PROPAGATION);
        }
    }
    own
}

/// The resources of init containers before the init container at
/// `place` of the original pod. Adds a note about adjustments.
pub fn init_resources<'p>(injection: &mut Injection<'_, 'p>, place: usize) -> Cow<'p, Value> {
    let said = present_claims(injection);
    let (facts, limits) = (injection.facts, injection.limits());
    // With `exact` a check is needed only if something bounds the pod.
    let is_free = facts.pod.spec.resources.is_none() && limits.is_empty();
    if facts.init_resources == InitResources::Exact && is_free {
        return said;
    }
    let site = fitting::Site { demand: injection.demand(), limits, place };
    let fitted = fitting::init_container(&said, site, facts.init_resources);
    let Some(fitted) = fitted else { return said };
    fitted.notes.into_iter().for_each(|note| injection.note(note));
    Cow::Owned(fitted.resources)
}

/// The resources of a sidecar, with notes about adjustments.
///
/// # Errors
/// The reason why the namespace would reject the pod.
pub fn sidecar_resources<'p>(injection: &Injection<'_, 'p>) -> Result<(Cow<'p, Value>, Vec<Note>), Reason> {
    let said = present_claims(injection);
    if injection.facts.pod.spec.resources.is_none() && injection.limits().is_empty() {
        return Ok((said, Vec::new()));
    }
    match fitting::sidecar(&said, injection.demand(), injection.limits()) {
        Ok(Some(fitted)) => Ok((Cow::Owned(fitted.resources), fitted.notes)),
        Ok(None) => Ok((said, Vec::new())),
        Err(Refusal { object, problem }) => Err(Reason::ResourcesRefused { object, problem }),
    }
}

/// The language's resources without claims that the pod does not have (D17).
fn present_claims<'p>(injection: &Injection<'_, 'p>) -> Cow<'p, Value> {
    let resources = &injection.prepared().resources;
    let pod_claims = &injection.facts.pod.spec.resource_claims;
    let known = |claim: &str| pod_claims.iter().any(|own| *own.name == *claim);
    if resources.claims.iter().all(|claim| known(claim)) {
        return Cow::Borrowed(&resources.value);
    }
    let mut value = resources.value.clone();
    if let Some(claims) = value.get_mut("claims").and_then(Value::as_array_mut) {
        claims.retain(|claim| claim["name"].as_str().is_some_and(known));
        if claims.is_empty() {
            value.as_object_mut().map(|members| members.remove("claims"));
        }
    }
    Cow::Owned(value)
}
