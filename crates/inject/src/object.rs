//! From a Kubernetes object, untyped, to what a decision depends on.
//!
//! Objects are read one by one: one that cannot be used is kept with its
//! problem, and the others go on.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::{
    catalogue::{Instrumentations, Namespace, NamespaceLabels, Stored},
    compiled::{About, Compiled, Shared},
    language,
    limits::{LimitKind, Limits},
    reason::ObjectName,
    user,
    workload::OwnerKind,
};
use otel_webhook_api::{
    ALLOWED_NAMESPACES, ANNOTATION_PREFIX, AllowedNamespaces, DELIVERY_ANNOTATION, Version,
    annotations::{self, PAUSED_ANNOTATION},
    defaults::{DefaultImages, NAMESPACE_IMAGE_PREFIX},
    image, in_version, read,
    validation::{Unusable, unusable},
};

/// The kinds of which anything is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An Instrumentation.
    Instrumentation,
    /// A Namespace.
    Namespace,
    /// An object that owns pods and has an owner itself.
    Owner(OwnerKind),
    /// An object that bounds the pods of its namespace.
    Limit(LimitKind),
    /// A Node.
    Node,
}

/// The label by which a namespace enforces a pod security level.
pub const ENFORCE: &str = "pod-security.kubernetes.io/enforce";

/// The annotation of a namespace of OpenShift with the users of its pods, such as `1000650000/10000`.
pub const USERS: &str = "openshift.io/sa.scc.uid-range";

/// The kind of an object, if anything of it is kept.
pub fn kind_of(object: &Value) -> Option<Kind> {
    match (object["apiVersion"].as_str()?, object["kind"].as_str()?) {
        (version, "Instrumentation") => Version::of(version).map(|_| Kind::Instrumentation),
        ("v1", "Namespace") => Some(Kind::Namespace),
        ("v1", "Node") => Some(Kind::Node),
        ("apps/v1", "ReplicaSet") => Some(Kind::Owner(OwnerKind::ReplicaSet)),
        ("batch/v1", "Job") => Some(Kind::Owner(OwnerKind::Job)),
        ("v1", kind) => LimitKind::ALL.into_iter().find(|known| known.name() == kind).map(Kind::Limit),
        _ => None,
    }
}

/// An object with the namespace that counts for it, where it names none.
pub fn located<'o>(object: &'o Value, namespace: &str) -> Cow<'o, Value> {
    let is_namespaced = kind_of(object).is_some_and(|kind| !matches!(kind, Kind::Namespace | Kind::Node));
    let names_one = object["metadata"]["namespace"].as_str().is_some_and(|name| !name.is_empty());
    let mut object = Cow::Borrowed(object);
    if is_namespaced
        && !names_one
        && let Some(metadata) = object.to_mut().get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    object
}

/// Makes an Instrumentation ready, or keeps what is wrong with it. Nobody may
/// have judged it before it came here.
pub fn instrumentation(object: &Value, images: &DefaultImages, shared: &mut Shared) -> Stored {
    let metadata = &object["metadata"];
    let name = name_of(object);
    let about = About {
        annotations: strings(&metadata["annotations"]),
        blocked: image::blocked(object).map(str::to_owned).collect(),
    };
    let Unusable { at_all, for_languages } = unusable(object);
    let alpha = in_version(object, Version::V1alpha1);
    let spec = at_all.map_or_else(|| read(object, &without(&alpha["spec"], &for_languages)), Err);
    let compiled = spec
        .and_then(|spec| Compiled::new(name.clone(), metadata["generation"].as_i64(), &about, &spec, images));
    let compiled = compiled.map(|compiled| compiled.unusable_for(&for_languages).sharing(shared));
    match compiled {
        Ok(compiled) => Stored::Ready(Arc::new(compiled)),
        Err(problem) => unusable_instrumentation(object, &problem),
    }
}

/// An Instrumentation that is not used, and why.
pub fn unusable_instrumentation(object: &Value, problem: &str) -> Stored {
    let allowed = object["metadata"]["annotations"][ALLOWED_NAMESPACES].as_str();
    Stored::Invalid {
        name: name_of(object),
        problem: problem.into(),
        allowed: AllowedNamespaces::new(allowed),
        is_paused: is_paused(&object["metadata"]),
    }
}

/// The namespace and name of an object.
pub fn name_of(object: &Value) -> ObjectName {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().into();
    ObjectName { namespace: text("namespace"), name: text("name") }
}

/// What a Namespace says of use, and its name.
pub fn namespace(object: &Value) -> (Box<str>, Namespace) {
    let metadata = &object["metadata"];
    // Only those that are used, whatever else there is.
    let ours = with_prefix(metadata, ANNOTATION_PREFIX);
    let ours = ours.filter(|(key, _)| language::keys().any(|known| *known == **key));
    let labels: NamespaceLabels = metadata["name"]
        .as_str()
        .map(|name| NamespaceLabels::of(name, strings(&metadata["labels"])))
        .unwrap_or_default();
    let namespace = Namespace {
        is_listed: true,
        annotations: ours.collect(),
        is_paused: is_paused(metadata),
        delivery: metadata["annotations"][DELIVERY_ANNOTATION].as_str().map(Into::into),
        default_images: with_prefix(metadata, NAMESPACE_IMAGE_PREFIX).collect(),
        opt_in_labels: labels.opt_in(),
        labels,
        enforced_level: metadata["labels"][ENFORCE].as_str().map(Into::into),
        first_user: metadata["annotations"][USERS].as_str().and_then(user::first_of),
        instrumentations: Instrumentations::default(),
        limits: Limits::default(),
    };
    (metadata["name"].as_str().unwrap_or_default().into(), namespace)
}

/// Whether the annotation `otel-webhook/paused` of an object pauses.
pub fn is_paused(metadata: &Value) -> bool {
    annotations::is_paused(metadata["annotations"][PAUSED_ANNOTATION].as_str())
}

/// The annotations with a prefix, by the rest of their keys.
fn with_prefix(metadata: &Value, prefix: &str) -> impl Iterator<Item = (Box<str>, Box<str>)> {
    let annotations = metadata["annotations"].as_object().into_iter().flatten();
    annotations
        .filter_map(move |(key, value)| Some((key.strip_prefix(prefix)?.into(), value.as_str()?.into())))
}

/// A specification without what it says of languages that it cannot be used for.
fn without<'s>(spec: &'s Value, languages: &BTreeMap<&str, String>) -> Cow<'s, Value> {
    let mut spec = Cow::Borrowed(spec);
    for field in languages.keys() {
        spec.to_mut()[*field] = Value::Null;
    }
    spec
}

/// The entries of a map whose values are text, such as labels.
pub fn strings(map: &Value) -> BTreeMap<String, String> {
    let entries = map.as_object().into_iter().flatten();
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    entries.filter_map(text).collect()
}
