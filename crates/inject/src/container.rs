//! What an added container takes from the pod and the Instrumentation.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{
    demand::Asked,
    edit::{Place, container_at, is_empty_dir, unreadable},
    fitting::{self, Refusal},
    injection::Injection,
    json,
    note::Note,
    pod_security::is_privileged,
    reason::Reason,
    settings::InitResources,
    user::{Contexts, User},
};

/// The security context of init containers: the Instrumentation's, or else
/// that of a target, which can read what the target can. It has a user where the kubelet requires one (D41).
pub fn security_context<'p>(injection: &Injection<'_, 'p>, target: Place) -> Option<Cow<'p, Value>> {
    let mut context = inherited(injection, target);
    if let User::Set(user) = user(injection, target) {
        let context = context.get_or_insert_default().to_mut();
        if context.is_null() {
            *context = json!({});
        }
        if let Some(fields) = context.as_object_mut() {
            fields.insert("runAsUser".to_owned(), user.into());
        }
    }
    context
}

/// The security context of init containers, as the Instrumentation or the target has it.
fn inherited<'p>(injection: &Injection<'_, 'p>, target: Place) -> Option<Cow<'p, Value>> {
    let said = injection.instrumentation().security_context.as_ref();
    let own = container_at(injection.facts.pod, target).security_context;
    // `check_security_context` was called for each target.
    said.map(Cow::Borrowed).or_else(|| json::value_of(own?).ok().map(Cow::Owned))
}

/// The user of init containers with the security context of a target.
fn user(injection: &Injection<'_, '_>, target: Place) -> User {
    let added = inherited(injection, target);
    contexts(injection, added.as_deref(), Some(target)).user(first_user(injection))
}

fn contexts<'c>(
    injection: &'c Injection<'_, '_>,
    added: Option<&'c Value>,
    target: Option<Place>,
) -> Contexts<'c> {
    let pod = injection.facts.pod;
    let target = target.and_then(|target| container_at(pod, target).security_context);
    Contexts { added, target, pod: pod.spec.security_context }
}

fn first_user(injection: &Injection<'_, '_>) -> Option<i64> {
    injection.namespace.and_then(|namespace| namespace.first_user)
}

/// Checks that the kubelet starts init containers with the security context of a target, and that they can write to
/// a volume with this source. Returns the note about a user that they get.
///
/// # Errors
/// What the kubelet does not accept, or the claim (D41).
pub fn check_user(
    injection: &Injection<'_, '_>,
    target: Place,
    volume: &Value,
) -> Result<Option<Note>, Reason> {
    match user(injection, target) {
        User::Given => Ok(None),
        User::Root => Err(Reason::RootNotAllowed {
            what: "the init containers",
            advice: "set a runAsUser that is not 0 in the pod, or in spec.initContainerSecurityContext of the Instrumentation",
        }),
        // The kubelet makes an emptyDir writable for all users.
        User::Set(user) if !is_empty_dir(volume) && !contexts(injection, None, None).has_group() => {
            let field = format!("spec.{}.volumeClaimTemplate", injection.plan.field());
            Err(Reason::ClaimNotWritable { field, user })
        }
        User::Set(user) => Ok(Some(Note::UserSet { user })),
    }
}

/// Checks that the kubelet starts a sidecar with a security context, as root.
///
/// # Errors
/// The kubelet does not accept root (D41).
pub fn check_root(injection: &Injection<'_, '_>, added: &Value) -> Result<(), Reason> {
    match contexts(injection, Some(added), None).user(None) {
        User::Given => Ok(()),
        User::Root | User::Set(_) => Err(Reason::RootNotAllowed {
            what: "the privileged sidecar",
            advice: "set runAsNonRoot to false in spec.go.securityContext of the Instrumentation, or opt out",
        }),
    }
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

/// The resources of init containers that are added for a target: those of the Instrumentation, or else the
/// target's. Adds a note about adjustments.
pub fn init_resources<'p>(injection: &mut Injection<'_, 'p>, target: Place) -> Cow<'p, Value> {
    let said = present_claims(injection);
    let (pod, limits) = (injection.facts.pod, injection.limits());
    let is_whole = pod.spec.resources.is_some();
    let exact = match injection.facts.init_resources {
        InitResources::Neutral => None,
        // A check is needed only if something bounds the pod.
        InitResources::Exact if !is_whole && limits.is_empty() => return said,
        InitResources::Exact => {
            let before = injection.edit.init_place(target);
            Some(fitting::exact_init_container(&said, injection.demand(), limits, before))
        }
    };
    let fitted = match exact {
        Some(Ok(fitted)) => fitted,
        refused => {
            let of_target = Asked::of_container(container_at(pod, target).resources);
            let refused = refused.and_then(Result::err);
            fitting::init_container(&said, &of_target, limits, is_whole, refused)
        }
    };
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
        Err(Refusal { object, problem, .. }) => Err(Reason::ResourcesRejected { object, problem }),
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
