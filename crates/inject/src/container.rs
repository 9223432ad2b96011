//! Writing an injected container: what each of them has, in one place.

use std::borrow::Cow;

use serde_json::{Map, Value, value::RawValue};

use super::{
    edit::{NewContainer, NewMount, Place, container_at},
    env::{Change, Entry, Env},
    fitting::{self, Fitted, Refusal},
    injection::Injection,
    json,
    note::Note,
    patch::write_mount,
    pod_security::is_privileged,
    reason::Reason,
    settings::InitResources,
};

/// A container of ours while it is written.
#[derive(Debug)]
pub struct Draft {
    name: String,
    json: String,
}

impl Draft {
    /// A container of a name and an image.
    pub fn new(name: &str, image: &str) -> Self {
        let mut json = String::with_capacity(1024);
        json::member(&mut json, r#"{"name":"#, name);
        json::member(&mut json, r#","image":"#, image);
        Self { name: name.to_owned(), json }
    }

    /// A member that is a list of words, such as the command.
    pub fn words<T: AsRef<str>>(&mut self, name: &'static str, words: &[T]) -> &mut Self {
        self.member(name);
        json::list(&mut self.json, words, |out, word| json::string(out, word.as_ref()));
        self
    }

    /// The variables. Those that a container of the pod has itself and that
    /// are as they were are copied from its raw text, with every field.
    pub fn env(&mut self, env: &Env<'_>, own: &[&RawValue]) -> &mut Self {
        if !env.entries().is_empty() {
            self.member("env");
            json::list(&mut self.json, env.entries(), |out, entry| write_entry(out, entry, own));
        }
        self
    }

    /// The mounts: copies of a container's own ones, then ours.
    pub fn mounts(&mut self, own: &[Cow<'_, str>], ours: &[NewMount<'_>]) -> &mut Self {
        self.member("volumeMounts");
        self.json.push('[');
        for (index, raw) in own.iter().enumerate() {
            self.json.push_str(if index == 0 { "" } else { "," });
            self.json.push_str(raw);
        }
        for (index, mount) in ours.iter().enumerate() {
            self.json.push_str(if index == 0 && own.is_empty() { "" } else { "," });
            write_mount(&mut self.json, mount);
        }
        self.json.push(']');
        self
    }

    /// The pull policy, if there is one.
    pub fn pull_policy(&mut self, policy: Option<&str>) -> &mut Self {
        if let Some(policy) = policy.filter(|policy| !policy.is_empty()) {
            self.member("imagePullPolicy");
            json::string(&mut self.json, policy);
        }
        self
    }

    /// The security context of init containers.
    pub fn security_of(&mut self, injection: &Injection<'_, '_>, target: Place) -> &mut Self {
        self.raw("securityContext", security_context(injection, target))
    }

    /// A member whose value is JSON already, if there is one.
    pub fn raw(&mut self, name: &'static str, value: Option<&str>) -> &mut Self {
        if let Some(value) = value {
            self.member(name);
            self.json.push_str(value);
        }
        self
    }

    /// The container as it was written.
    pub fn finish(mut self) -> NewContainer {
        self.json.push('}');
        NewContainer { name: self.name, json: self.json }
    }

    fn member(&mut self, name: &'static str) {
        self.json.extend([",\"", name, "\":"]);
    }
}

/// The security context of init containers: the Instrumentation's, or else
/// that of a target, which can read what the target can.
pub fn security_context<'p>(injection: &Injection<'_, 'p>, target: Place) -> Option<&'p str> {
    let own = container_at(injection.facts.pod, target).security_context.map(RawValue::get);
    injection.instrumentation().security_context.as_deref().or(own)
}

/// The mounts of a container for one that is a copy of it, under another security context. The
/// API server lets none but privileged containers mount anything on their node.
pub fn copied_mounts<'p>(own: &[&'p RawValue], security_context: Option<&str>) -> Vec<Cow<'p, str>> {
    const PROPAGATION: &str = "mountPropagation";
    let is_privileged = security_context.is_some_and(is_privileged);
    let copied = |mount: &&'p RawValue| {
        let text = mount.get();
        if is_privileged || !text.contains(PROPAGATION) {
            return Cow::Borrowed(text);
        }
        let mut members: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
        match members.get(PROPAGATION) {
            Some(value) if value == "Bidirectional" => {
                members.remove(PROPAGATION);
                Cow::Owned(json::of(&members))
            }
            _ => Cow::Borrowed(text),
        }
    };
    own.iter().map(copied).collect()
}

/// The resources of init containers that go before the init container at
/// `before` of the pod as it came, as JSON. What was done to them is noted.
pub fn init_resources<'p>(injection: &mut Injection<'_, 'p>, place: usize) -> Cow<'p, str> {
    let said = present_claims(injection);
    let (facts, limits) = (injection.facts, injection.limits());
    // The operator's way takes a look only where something bounds the pod.
    let is_free = facts.pod.spec.resources.is_none() && limits.is_empty();
    if facts.init_resources == InitResources::Exact && is_free {
        return as_said(injection, &said);
    }
    let site = fitting::Site { demand: injection.demand(), limits, place };
    let fitted = fitting::init_container(&said, site, facts.init_resources);
    written(injection, &said, fitted)
}

/// The resources of a container that runs beside the others, as JSON. What was
/// done to them is among the notes.
///
/// # Errors
/// The reason why the namespace would reject the pod.
pub fn sidecar_resources<'p>(injection: &Injection<'_, 'p>) -> Result<(Cow<'p, str>, Vec<Note>), Reason> {
    let said = present_claims(injection);
    if injection.facts.pod.spec.resources.is_none() && injection.limits().is_empty() {
        return Ok((as_said(injection, &said), Vec::new()));
    }
    match fitting::sidecar(&said, injection.demand(), injection.limits()) {
        Ok(Some(fitted)) => Ok((fitted.json.into(), fitted.notes)),
        Ok(None) => Ok((as_said(injection, &said), Vec::new())),
        Err(Refusal { object, problem }) => Err(Reason::ResourcesRefused { object, problem }),
    }
}

fn written<'p>(
    injection: &mut Injection<'_, 'p>,
    said: &Cow<'p, Value>,
    fitted: Option<Fitted>,
) -> Cow<'p, str> {
    let Some(fitted) = fitted else { return as_said(injection, said) };
    fitted.notes.into_iter().for_each(|note| injection.note(note));
    fitted.json.into()
}

/// The JSON of resources, which was written when the Instrumentation was stored.
fn as_said<'p>(injection: &Injection<'_, 'p>, said: &Cow<'p, Value>) -> Cow<'p, str> {
    match said {
        Cow::Borrowed(_) => injection.prepared().resources.json.as_str().into(),
        Cow::Owned(changed) => json::of(changed).into(),
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

fn write_entry(out: &mut String, entry: &Entry<'_>, own: &[&RawValue]) {
    let unchanged = entry.origin.filter(|_| entry.change == Change::None);
    match unchanged.and_then(|index| own.get(index)) {
        Some(raw) => out.push_str(raw.get()),
        None => entry.write(out),
    }
}
