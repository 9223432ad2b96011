//! The compiled part of an Instrumentation for a language.

use serde_json::{Map, Value, json};

use super::{
    about::{About, Reported},
    generic::Generic,
    settings::{filled, settings},
};
use crate::{
    env::Setting,
    held::held,
    language::{ImageVolume, Language},
};
use otel_webhook_api::{
    Delivery, InstrumentationSpec, LanguageSettings,
    defaults::{DefaultImages, LIMITS, Requests, VOLUME_SIZE},
    image::Choice,
    is_hollow,
    quantity::Quantity,
};

/// The compiled part of an Instrumentation for a language.
#[derive(Debug, PartialEq)]
pub struct Prepared {
    /// Image of the init container or sidecar.
    pub image: String,
    /// Whether the image is a default one, which that of a namespace replaces.
    pub has_default_image: bool,
    /// The choice of the image, if users have to know about it.
    pub reported: Reported,
    /// The language's variables.
    pub env: Vec<Setting>,
    /// How the agent gets into pods, if the Instrumentation says.
    pub delivery: Option<Delivery>,
    /// The volume's source: `{"emptyDir": {…}}` or `{"ephemeral": {…}}`.
    pub volume: Value,
    /// The size limit of the agent's volume; `None` if it is a claim or has no limit.
    pub size_limit: Option<Quantity>,
    /// The emptyDir of the volume, even if there is a claim template.
    pub empty_dir: Value,
    /// Resources of the init containers or the sidecar.
    pub resources: Resources,
    /// Java's extensions: image and folder.
    pub extensions: Vec<(String, String)>,
    /// Directives of a web server's module.
    pub attrs: Vec<(String, String)>,
    /// Version of the web server.
    pub version: Option<String>,
    /// Configuration folder or file of the web server.
    pub config: Option<String>,
    /// Go's security context.
    pub security_context: Option<Value>,
    /// What only an agent of `spec.agents` has.
    pub generic: Option<Generic>,
}

held!(Prepared: image, reported, env, volume, empty_dir, resources, extensions, attrs, version, config, security_context, generic;
    has_default_image, delivery, size_limit);

/// Requests, limits and claims.
#[derive(Debug, PartialEq)]
pub struct Resources {
    /// The resources of the Instrumentation, with defaults.
    pub value: Value,
    /// Names of the claims.
    pub claims: Vec<String>,
}

held!(Resources: value, claims;);

/// Prepares a language's part.
pub fn prepare(
    language: &Language,
    spec: &InstrumentationSpec,
    about: &About,
    images: &DefaultImages,
) -> Prepared {
    let said = (language.settings)(spec);
    let defaults = language.defaults;
    let choice = defaults.map(|defaults| images.choose(defaults, about.stored(defaults, said.image)));
    let prepared = prepare_with(language, &said, defaults.map(|defaults| &defaults.requests), spec);
    let is_limited = defaults.is_some_and(|defaults| defaults.has_volume);
    Prepared {
        image: choice.as_ref().map(|choice| choice.image.clone()).unwrap_or_default(),
        has_default_image: choice.as_ref().is_some_and(|choice| !choice.is_chosen()),
        reported: Reported(choice.filter(Choice::is_reported)),
        size_limit: prepared.size_limit.filter(|_| is_limited),
        ..prepared
    }
}

/// Prepares what does not depend on default images.
pub fn prepare_with(
    language: &Language,
    said: &LanguageSettings<'_>,
    requests: Option<&Requests>,
    spec: &InstrumentationSpec,
) -> Prepared {
    let empty_dir = empty_dir(said);
    let claim = said.volume_claim_template.filter(|claim| !is_hollow(claim));
    let volume =
        claim.map_or_else(|| empty_dir.clone(), |claim| json!({"ephemeral": {"volumeClaimTemplate": claim}}));
    let attrs = said.attrs.iter().map(|attr| (attr.name.clone(), attr.value.clone().unwrap_or_default()));
    Prepared {
        image: String::new(),
        has_default_image: false,
        reported: Reported(None),
        size_limit: size_limit(said.volume_limit_size).filter(|_| claim.is_none()),
        delivery: delivery(language, said.delivery, spec),
        env: settings(said.env),
        volume,
        empty_dir,
        resources: Resources::new(said.resources, requests),
        extensions: said.extensions.iter().map(|one| (one.image.clone(), one.dir.clone())).collect(),
        attrs: attrs.collect(),
        version: filled(said.version.map(str::to_owned)),
        config: filled(said.config.map(str::to_owned)),
        security_context: said.security_context.filter(|value| !value.is_null()).cloned(),
        generic: None,
    }
}

/// The delivery of a language, or else that of the specification.
fn delivery(language: &Language, own: Option<&str>, spec: &InstrumentationSpec) -> Option<Delivery> {
    let read = |said: Option<&str>| said.and_then(Delivery::parse);
    let said = read(own).or_else(|| read(spec.delivery.as_deref()));
    said.filter(|_| language.image_volume != ImageVolume::NotCopied)
}

impl Resources {
    fn new(said: Option<&Value>, requests: Option<&Requests>) -> Self {
        let mut members = said.and_then(Value::as_object).cloned().unwrap_or_default();
        if let Some(requests) = requests {
            let limits_are_said = !fill(&mut members, "limits", &LIMITS);
            fill(&mut members, "requests", requests);
            keep_within_limits(&mut members, limits_are_said);
        }
        let claims = members.get("claims").and_then(Value::as_array).into_iter().flatten();
        let claims = claims.filter_map(|claim| claim["name"].as_str().map(str::to_owned)).collect();
        let value = Value::Object(members);
        Self { value, claims }
    }
}

/// Sets limits or requests that the Instrumentation does not set, and returns
/// whether it did. An empty object is treated as set.
fn fill(resources: &mut Map<String, Value>, key: &str, quantities: &[(&str, &str)]) -> bool {
    let is_open = resources.get(key).is_none_or(Value::is_null);
    if is_open {
        let quantities = quantities.iter().map(|(name, quantity)| ((*name).to_owned(), (*quantity).into()));
        resources.insert(key.to_owned(), Value::Object(quantities.collect()));
    }
    is_open
}

/// The API server rejects a request above its limit. If one of the two is a
/// default, it is adjusted to the other; if both are set, the limit is used.
fn keep_within_limits(resources: &mut Map<String, Value>, limits_are_said: bool) {
    let map = |key: &str| resources.get(key).and_then(Value::as_object).cloned();
    let (Some(mut limits), Some(mut requests)) = (map("limits"), map("requests")) else {
        return;
    };
    for (name, request) in &mut requests {
        if let Some(limit) = limits.get_mut(name)
            && let (Some(asked), Some(most)) = (Quantity::of(request), Quantity::of(limit))
            && asked > most
        {
            let (kept, gives_way) = if limits_are_said { (limit, request) } else { (request, limit) };
            gives_way.clone_from(kept);
        }
    }
    resources.insert("limits".to_owned(), Value::Object(limits));
    resources.insert("requests".to_owned(), Value::Object(requests));
}

/// The size limit of a volume. Zero means no limit.
fn size_limit(said: Option<&Value>) -> Option<Quantity> {
    let limit = match said.filter(|limit| !limit.is_null()) {
        Some(limit) => Quantity::of(limit),
        None => Quantity::parse(VOLUME_SIZE),
    };
    limit.filter(|limit| !limit.is_zero())
}

fn empty_dir(said: &LanguageSettings<'_>) -> Value {
    let limit = said.volume_limit_size.filter(|limit| !limit.is_null());
    let limit = limit.cloned().unwrap_or_else(|| VOLUME_SIZE.into());
    json!({"emptyDir": {"sizeLimit": limit}})
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use otel_webhook_api::defaults::JAVA;

    #[test]
    fn no_request_is_above_its_limit() {
        let filled = |said: Value| Resources::new(Some(&said), Some(&JAVA.requests)).value;
        let defaults = json!({"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "50m", "memory": "64Mi"}});
        assert_eq!(filled(json!({})), defaults);
        let small = json!({"limits": {"cpu": "10m", "memory": "1Gi"}});
        assert_eq!(filled(small)["requests"], json!({"cpu": "10m", "memory": "64Mi"}));
        let large = json!({"requests": {"cpu": 2, "memory": "200M"}});
        assert_eq!(filled(large)["limits"], json!({"cpu": 2, "memory": "256Mi"}));
        let both = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1500m", "memory": "1Gi"}});
        let expected = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1", "memory": "1Gi"}});
        assert_eq!(filled(both), expected);
        let open = json!({"limits": {}, "requests": {"cpu": "9"}});
        assert_eq!(filled(open.clone()), open);
    }
}
