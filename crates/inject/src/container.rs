//! Builds an added container.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::{
    edit::{NewContainer, NewMount, Place, container_at},
    env::{Change, Entry, Env},
    fitting::{self, Refusal},
    injection::Injection,
    json,
    note::Note,
    pod_security::is_privileged,
    reason::Reason,
    settings::InitResources,
};

/// An added container while it is built.
#[derive(Debug)]
pub struct Draft {
    name: String,
    members: Map<String, Value>,
}

impl Draft {
    /// A container with a name and an image.
    pub fn new(name: &str, image: &str) -> Self {
        let mut draft = Self { name: name.to_owned(), members: Map::new() };
        draft.member("name", Some(name.into())).member("image", Some(image.into()));
        draft
    }

    /// Sets a member that is a list of strings, such as the command.
    pub fn words<T: AsRef<str>>(&mut self, name: &'static str, words: &[T]) -> &mut Self {
        self.member(name, Some(words.iter().map(AsRef::as_ref).collect()))
    }

    /// Sets the variables. Unchanged variables of a container of the pod
    /// are copied with every field.
    pub fn env(&mut self, env: &Env<'_>, own: &[Value]) -> &mut Self {
        let unchanged = |entry: &Entry<'_>| {
            let index = entry.origin.filter(|_| entry.change == Change::None);
            index.and_then(|index| own.get(index).cloned())
        };
        let entries = env.entries().iter().map(|entry| unchanged(entry).unwrap_or_else(|| json!(entry)));
        self.member("env", (!env.entries().is_empty()).then(|| entries.collect()))
    }

    /// Sets the mounts: copies of a container's own ones, then the added ones.
    pub fn mounts(&mut self, own: Vec<Value>, ours: &[NewMount<'_>]) -> &mut Self {
        let all = own.into_iter().chain(ours.iter().map(|mount| json!(mount)));
        self.member("volumeMounts", Some(all.collect()))
    }

    /// Sets the pull policy, if there is one.
    pub fn pull_policy(&mut self, policy: Option<&str>) -> &mut Self {
        self.member("imagePullPolicy", policy.filter(|policy| !policy.is_empty()).map(Value::from))
    }

    /// Sets a member, if there is a value.
    pub fn member(&mut self, name: &'static str, value: Option<Value>) -> &mut Self {
        if let Some(value) = value {
            self.members.insert(name.to_owned(), value);
        }
        self
    }

    /// The container.
    pub fn finish(self) -> NewContainer {
        NewContainer { name: self.name, json: self.members.into() }
    }
}

/// The security context of init containers: the Instrumentation's, or else
/// that of a target, which can read what the target can.
pub fn security_context(injection: &Injection<'_, '_>, target: Place) -> Option<Value> {
    let said = injection.instrumentation().security_context.as_ref();
    let own = container_at(injection.facts.pod, target).security_context;
    // An unreadable security context of a target is treated as not set.
    said.cloned().or_else(|| json::value_of(own?).ok())
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
/// `before` of the original pod, as JSON. Adds a note about adjustments.
pub fn init_resources(injection: &mut Injection<'_, '_>, place: usize) -> Value {
    let said = present_claims(injection);
    let (facts, limits) = (injection.facts, injection.limits());
    // With `exact` a check is needed only if something bounds the pod.
    let is_free = facts.pod.spec.resources.is_none() && limits.is_empty();
    if facts.init_resources == InitResources::Exact && is_free {
        return said.into_owned();
    }
    let site = fitting::Site { demand: injection.demand(), limits, place };
    let fitted = fitting::init_container(&said, site, facts.init_resources);
    let Some(fitted) = fitted else { return said.into_owned() };
    fitted.notes.into_iter().for_each(|note| injection.note(note));
    fitted.resources
}

/// The resources of a sidecar, as JSON. Adds a note about
/// adjustments.
///
/// # Errors
/// The reason why the namespace would reject the pod.
pub fn sidecar_resources(injection: &Injection<'_, '_>) -> Result<(Value, Vec<Note>), Reason> {
    let said = present_claims(injection);
    if injection.facts.pod.spec.resources.is_none() && injection.limits().is_empty() {
        return Ok((said.into_owned(), Vec::new()));
    }
    match fitting::sidecar(&said, injection.demand(), injection.limits()) {
        Ok(Some(fitted)) => Ok((fitted.resources, fitted.notes)),
        Ok(None) => Ok((said.into_owned(), Vec::new())),
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
