//! The hash by which a pod's status annotation tells whether it was injected with the current configuration.
//!
//! It is computed from the canonical JSON of what is configured for one language: keys sorted, nothing
//! empty, defaults and images filled in. It does not depend on names in this code, so it stays the same
//! from one version of the program to the next. If the document has to change in a way that changes
//! the hash of an unchanged configuration, the version before the colon changes as well.

use serde_json::{Value, json};

use super::{
    generic::{Extended, Generic},
    prepared::Prepared,
};
use crate::{env::Setting, exporter::Exporter, language::Language, resource::Policy};
use otel_webhook_api::Delivery;

/// The version of the document, and what separates it from the digits.
const VERSION: &str = "v1:";

/// The configuration for every language.
pub struct Common<'c> {
    /// Variables of every target.
    pub env: &'c [Setting],
    /// The exporter.
    pub exporter: &'c Exporter,
    /// Resource attributes.
    pub resource: &'c Policy,
    /// Propagators, comma-separated.
    pub propagators: Option<&'c str>,
    /// The sampler and its argument.
    pub sampler: Option<(&'c str, Option<&'c str>)>,
    /// The file that agents are configured by, as it was written.
    pub declarative: Option<&'c Value>,
    /// Whether spans of probes are dropped.
    pub drops_probes: bool,
    /// Pull policy of injected images.
    pub image_pull_policy: Option<&'c str>,
    /// The init containers' security context.
    pub security_context: Option<&'c Value>,
}

/// The hash of a language's configuration: FNV-1a of 32 bits. It distinguishes configurations, and is not
/// used for security.
pub fn of(common: &Common<'_>, language: &Language, part: &Prepared, image: &str) -> u32 {
    // Of an agent that cannot be mounted, it changes nothing.
    let delivery = part.delivery.filter(|_| language.can_be_mounted());
    let text = document(common, part, image, delivery).to_string();
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Formats a hash: the version, and eight digits.
pub fn written(hash: u32) -> String {
    format!("{VERSION}{hash:08x}")
}

/// The hash of several agents in one pod, in their order.
pub fn joined(one: &str, other: &str) -> Box<str> {
    [one, "+", other].concat().into()
}

/// The result of comparing a pod's hash with the present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// The pod was injected with the current configuration.
    Current,
    /// The configuration has changed since the pod was injected.
    Stale,
    /// The pod's hash was written by another version of the program, and cannot be compared.
    Unknown,
}

impl Freshness {
    /// Compares the hash of a pod's status with the present one of the same Instrumentation and language.
    pub fn of(stamped: &str, present: &str) -> Self {
        match stamped.strip_prefix(VERSION) {
            Some(_) if stamped == present => Self::Current,
            Some(_) => Self::Stale,
            None => Self::Unknown,
        }
    }
}

/// The canonical JSON of a language's configuration.
fn document(common: &Common<'_>, part: &Prepared, image: &str, delivery: Option<Delivery>) -> Value {
    let exporter = object([
        ("env", variables(common.exporter.variables())),
        ("objects", common.exporter.objects().collect()),
    ]);
    let resource = object([
        ("attributes", pairs(&common.resource.attributes)),
        ("addK8sUIDAttributes", common.resource.with_uids.into()),
        ("useLabelsForResourceAttributes", common.resource.use_labels.into()),
        ("withoutK8sMetadata", common.resource.without_k8s.into()),
        ("withoutServiceMetadata", common.resource.without_service.into()),
    ]);
    let sampler =
        common.sampler.map(|(kind, argument)| object([("type", kind.into()), ("argument", argument.into())]));
    let extension = |(image, dir): &(String, String)| json!({"image": image, "dir": dir});
    let language = object([
        ("image", image.into()),
        ("delivery", delivery.map(Delivery::name).into()),
        ("env", variables(&part.env)),
        ("volume", part.volume.clone()),
        ("resources", part.resources.value.clone()),
        ("extensions", part.extensions.iter().map(extension).collect()),
        ("attrs", pairs(&part.attrs)),
        ("version", part.version.as_deref().into()),
        ("config", part.config.as_deref().into()),
        ("securityContext", part.security_context.clone().into()),
        ("agent", part.generic.as_ref().map(agent).into()),
    ]);
    let mut document = object([
        ("env", variables(common.env)),
        ("exporter", exporter),
        ("resource", resource),
        ("propagators", common.propagators.into()),
        ("sampler", sampler.into()),
        ("declarativeConfig", common.declarative.cloned().into()),
        ("dropsProbes", common.drops_probes.into()),
        ("imagePullPolicy", common.image_pull_policy.into()),
        ("initContainerSecurityContext", common.security_context.cloned().into()),
        ("language", language),
    ]);
    document.sort_all_objects();
    document
}

/// What only an agent of `spec.agents` has.
fn agent(agent: &Generic) -> Value {
    let extended = |one: &Extended| {
        object([
            ("name", one.name.as_str().into()),
            ("value", one.value.as_str().into()),
            ("isFirst", one.is_first.into()),
            ("separator", one.separator.as_str().into()),
        ])
    };
    object([
        ("name", (&*agent.name).into()),
        ("directory", agent.folder.as_str().into()),
        ("mountPath", agent.mount_path.as_str().into()),
        ("extended", agent.extended.iter().map(extended).collect()),
    ])
}

/// An object of the non-empty members, so that a new field in the document changes no hash.
fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let says_something = |(_, value): &(&str, Value)| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    };
    let members = members.into_iter().filter(says_something);
    Value::Object(members.map(|(name, value)| (name.to_owned(), value)).collect())
}

fn variables(list: &[Setting]) -> Value {
    let variable = |setting: &Setting| {
        object([
            ("name", setting.name.as_str().into()),
            ("value", setting.value.as_str().into()),
            ("valueFrom", setting.from.as_deref().cloned().into()),
        ])
    };
    list.iter().map(variable).collect()
}

/// Names and values in their order, which matters if one is set twice.
fn pairs(list: &[(String, String)]) -> Value {
    list.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compiled::{About, Compiled},
        language::{GO, JAVA, NGINX, NODEJS, SDK},
        reason::ObjectName,
    };
    use otel_webhook_api::{InstrumentationSpec, defaults::DefaultImages};

    fn compiled(spec: &Value) -> Compiled {
        let name = ObjectName { namespace: "shop".into(), name: "java".into() };
        let spec: InstrumentationSpec = serde_json::from_value(spec.clone()).expect("a specification");
        Compiled::new(name, None, &About::default(), &spec, &DefaultImages::default()).expect("usable")
    }

    fn spec() -> Value {
        json!({
            "exporter": {"endpoint": "https://c:4317", "tls": {"secretName": "client", "ca_file": "ca.crt"}},
            "propagators": ["tracecontext", "b3"],
            "sampler": {"type": "parentbased_traceidratio", "argument": "0.25"},
            "resource": {"resourceAttributes": {"team": "a"}, "addK8sUIDAttributes": true},
            "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
            "initContainerSecurityContext": {"runAsNonRoot": true, "privileged": false},
            "java": {
                "image": "registry/java:1",
                "extensions": [{"image": "registry/extension:1", "dir": "/extensions"}],
                "resources": {"limits": {"memory": "64Mi"}, "requests": {"cpu": "10m"}},
            },
            "nodejs": {"image": "registry/nodejs:1", "volumeLimitSize": "100Mi"},
        })
    }

    /// These are in the annotations of running pods: another hash for the same
    /// configuration would make each of them look stale.
    #[test]
    fn the_hash_of_a_configuration_is_the_same_in_every_version() {
        let compiled = compiled(&spec());
        assert_eq!(&*compiled.hash(&JAVA), "v1:39817fa9");
        assert_eq!(&*compiled.hash(&NODEJS), "v1:33deef5d");
    }

    #[test]
    fn the_order_of_keys_does_not_matter_and_every_value_does() {
        let before = compiled(&spec());
        let mut sorted = spec();
        sorted.sort_all_objects();
        assert_eq!(compiled(&sorted).hash(&JAVA), before.hash(&JAVA));
        for (path, value) in [
            ("/exporter/endpoint", json!("https://d:4317")),
            ("/exporter/tls/secretName", json!("other")),
            ("/propagators/1", json!("b3multi")),
            ("/sampler/argument", json!("0.5")),
            ("/resource/addK8sUIDAttributes", json!(false)),
            ("/env/0/value", json!("2")),
            ("/initContainerSecurityContext/privileged", json!(true)),
            ("/java/image", json!("registry/java:2")),
            ("/java/extensions/0/dir", json!("/other")),
            ("/java/resources/limits/memory", json!("65Mi")),
        ] {
            let mut changed = spec();
            *changed.pointer_mut(path).expect("a field") = value;
            let changed = compiled(&changed);
            assert_ne!(changed.hash(&JAVA), before.hash(&JAVA), "{path}");
            assert_eq!(changed.hash(&NODEJS) == before.hash(&NODEJS), path.starts_with("/java"), "{path}");
        }
    }

    #[test]
    fn the_delivery_is_part_of_the_configuration_of_agents_that_can_be_mounted() {
        let before = compiled(&spec());
        let mut changed = spec();
        changed["delivery"] = json!("imageVolume");
        let changed = compiled(&changed);
        let is_same = |language| changed.hash(language) == before.hash(language);
        assert_eq!([&JAVA, &NODEJS, &NGINX, &GO, &SDK].map(is_same), [false, false, true, true, true]);
    }

    #[test]
    fn a_changed_file_is_a_changed_hash_of_every_language() {
        let of = |file: Value| compiled(&json!({"declarativeConfig": file}));
        let (one, other) = (of(json!({"file_format": "1.0"})), of(json!({"file_format": "1.1"})));
        let none = compiled(&json!({}));
        for language in [&JAVA, &NODEJS, &SDK] {
            assert_ne!(one.hash(language), other.hash(language));
            assert_ne!(one.hash(language), none.hash(language));
        }
    }

    #[test]
    fn a_hash_of_another_version_is_unknown_and_never_stale() {
        let present = "v1:0123abcd";
        assert_eq!(Freshness::of(present, present), Freshness::Current);
        assert_eq!(Freshness::of("v1:0123abce", present), Freshness::Stale);
        for other in ["0123abcd", "v2:0123abcd", ""] {
            assert_eq!(Freshness::of(other, present), Freshness::Unknown);
        }
    }
}
