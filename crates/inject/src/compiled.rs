//! An Instrumentation made ready for use, once, when it is stored: defaults
//! applied, variables merged, JSON written.

mod about;
mod shared;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value};

use super::{
    env::Setting,
    exporter::Exporter,
    json,
    language::{LANGUAGES, Language},
    reason::ObjectName,
    resource::Policy,
    selector::Selector,
};
use otel_webhook_api::{
    ALLOWED_NAMESPACES, AllowedNamespaces, EnvVar, InstrumentationSpec, Settings,
    defaults::{DefaultImages, LIMITS, LanguageDefaults, VOLUME_SIZE},
    image::Choice,
    is_hollow,
    quantity::Quantity,
};

pub use about::{About, Reported};
pub use shared::Shared;

/// An Instrumentation, ready for use.
#[derive(Debug)]
pub struct Compiled {
    /// Its namespace and name.
    pub name: ObjectName,
    /// Its generation, which counts its changes.
    pub generation: Option<i64>,
    /// The namespaces besides its own that it allows to use it.
    pub allowed: AllowedNamespaces,
    /// Which pods it is for; none for all of them.
    pub selector: Option<Selector>,
    /// Among several that fit, the higher one is used.
    pub priority: i32,
    /// Variables of every target.
    pub env: Vec<Setting>,
    /// Where telemetry is sent.
    pub exporter: Exporter,
    /// Resource attributes.
    pub resource: Policy,
    /// Propagators and sampler, as variables.
    pub propagators: Option<String>,
    /// Sampler and its argument.
    pub sampler: Option<(String, Option<String>)>,
    /// Pull policy of injected images.
    pub image_pull_policy: Option<String>,
    /// JSON of the init containers' security context.
    pub security_context: Option<String>,
    /// One for each row of the language table, in its order.
    pub languages: Vec<Arc<Prepared>>,
    /// Why it cannot be used for some of them, by their places.
    problems: BTreeMap<usize, Box<str>>,
    /// See [`Compiled::hash`]; one for each language.
    hashes: Vec<u32>,
}

/// A language's part of an Instrumentation, ready for use.
#[derive(Debug, PartialEq)]
pub struct Prepared {
    /// Image of the init container or sidecar.
    pub image: String,
    /// The choice of the image, where users have to know of it.
    pub reported: Reported,
    /// The language's variables.
    pub env: Vec<Setting>,
    /// The volume's source as JSON: `"emptyDir":{…}` or `"ephemeral":{…}`.
    pub volume: String,
    /// The size limit of the agent's volume; none where it is a claim or has no limit.
    pub size_limit: Option<Quantity>,
    /// The emptyDir's part of it, whatever the claim template says.
    pub empty_dir: String,
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
    /// JSON of Go's security context.
    pub security_context: Option<String>,
}

/// Requests, limits and claims.
#[derive(Debug, PartialEq)]
pub struct Resources {
    /// As the Instrumentation has them, with what it leaves open filled in.
    pub value: Value,
    /// The same as JSON text.
    pub json: String,
    /// Names of the claims among them.
    pub claims: Vec<String>,
}

impl Compiled {
    /// Makes an Instrumentation ready.
    ///
    /// # Errors
    /// A sentence that says which field cannot be used.
    pub fn new(
        name: ObjectName,
        generation: Option<i64>,
        about: &About,
        spec: &InstrumentationSpec,
        images: &DefaultImages,
    ) -> Result<Self, String> {
        let resource = spec.resource.clone().unwrap_or_default();
        let sampler = spec.sampler.clone().unwrap_or_default();
        let labels = spec.defaults.as_ref().and_then(|defaults| defaults.use_labels_for_resource_attributes);
        let selector = spec.selector.as_ref().map(Selector::new).transpose()?.flatten();
        let security_context = spec.init_container_security_context.as_ref();
        let compiled = Self {
            name,
            generation,
            allowed: AllowedNamespaces::new(about.annotations.get(ALLOWED_NAMESPACES).map(String::as_str)),
            selector,
            priority: spec.priority.unwrap_or_default(),
            env: settings(spec.env.as_deref().unwrap_or_default()),
            exporter: Exporter::new(&spec.exporter.clone().unwrap_or_default()),
            resource: Policy {
                attributes: resource.resource_attributes.unwrap_or_default().into_iter().collect(),
                with_uids: resource.add_k8s_uid_attributes.unwrap_or_default(),
                use_labels: labels.unwrap_or_default(),
            },
            propagators: spec.propagators.as_ref().filter(|list| !list.is_empty()).map(|list| list.join(",")),
            sampler: filled(sampler.kind).map(|kind| (kind, filled(sampler.argument))),
            image_pull_policy: filled(spec.image_pull_policy.clone()),
            security_context: security_context
                .filter(|raw| !raw.value().is_null())
                .map(|raw| json::of(raw.value())),
            languages: LANGUAGES
                .iter()
                .map(|language| Arc::new(prepare(language, spec, about, images)))
                .collect(),
            problems: BTreeMap::new(),
            hashes: Vec::new(),
        };
        Ok(compiled.with_hashes())
    }
}

impl Compiled {
    /// The same, kept from use for languages, by their fields in the
    /// specification, each with the reason.
    #[must_use]
    pub fn unusable_for(mut self, languages: &BTreeMap<&str, String>) -> Self {
        for (index, language) in LANGUAGES.iter().enumerate() {
            let problem = language.defaults.and_then(|defaults| languages.get(defaults.field));
            self.problems.extend(problem.map(|problem| (index, problem.as_str().into())));
        }
        self
    }

    /// Why it cannot be used for a language, if it cannot.
    pub fn problem(&self, language: &Language) -> Option<&str> {
        self.problems.get(&language.index()).map(|problem| &**problem)
    }

    /// The same, with the parts that it has in common with others kept once.
    #[must_use]
    pub fn sharing(mut self, shared: &mut Shared) -> Self {
        for (index, prepared) in self.languages.iter_mut().enumerate() {
            *prepared = shared.one_like(index, Arc::clone(prepared));
        }
        self
    }

    /// A short hash of what is configured for a language: the same for the
    /// same configuration, in every replica of this version.
    pub fn hash(&self, language: &Language) -> Box<str> {
        let hash = self.hashes[language.index()];
        let digit = |place: u32| char::from_digit(hash >> (4 * place) & 0xf, 16).expect("less than 16");
        (0..8).rev().map(digit).collect()
    }

    fn with_hashes(mut self) -> Self {
        let common = format!(
            "{:?}",
            (
                &self.env,
                &self.exporter,
                &self.resource,
                &self.propagators,
                &self.sampler,
                &self.image_pull_policy
            )
        );
        let of = |prepared: &Arc<Prepared>| fnv(&format!("{common}{:?}{prepared:?}", self.security_context));
        self.hashes = self.languages.iter().map(of).collect();
        self
    }
}

/// The FNV-1a hash of 32 bits: it tells configurations apart, and guards nothing.
fn fnv(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

fn prepare(
    language: &Language,
    spec: &InstrumentationSpec,
    about: &About,
    images: &DefaultImages,
) -> Prepared {
    let said = (language.settings)(spec);
    let defaults = language.defaults;
    let choice = defaults.map(|defaults| images.choose(defaults, about.stored(defaults, said.image)));
    let empty_dir = empty_dir(&said);
    let claim = said.volume_claim_template.filter(|claim| !is_hollow(claim));
    let volume = claim.map_or_else(
        || empty_dir.clone(),
        |claim| format!("\"ephemeral\":{{\"volumeClaimTemplate\":{}}}", json::of(claim)),
    );
    let attrs = said.attrs.iter().map(|attr| (attr.name.clone(), attr.value.clone().unwrap_or_default()));
    let limited = defaults.is_some_and(|defaults| defaults.has_volume) && claim.is_none();
    Prepared {
        image: choice.as_ref().map(|choice| choice.image.clone()).unwrap_or_default(),
        reported: Reported(choice.filter(Choice::is_reported)),
        size_limit: size_limit(said.volume_limit_size).filter(|_| limited),
        env: settings(said.env),
        volume,
        empty_dir,
        resources: Resources::new(said.resources, defaults),
        extensions: said.extensions.iter().map(|one| (one.image.clone(), one.dir.clone())).collect(),
        attrs: attrs.collect(),
        version: filled(said.version.map(str::to_owned)),
        config: filled(said.config.map(str::to_owned)),
        security_context: said.security_context.filter(|value| !value.is_null()).map(json::of),
    }
}

impl Resources {
    fn new(said: Option<&Value>, defaults: Option<&LanguageDefaults>) -> Self {
        let mut members = said.and_then(Value::as_object).cloned().unwrap_or_default();
        if let Some(defaults) = defaults {
            let limits_are_said = !fill(&mut members, "limits", &LIMITS);
            fill(&mut members, "requests", &defaults.requests);
            keep_within_limits(&mut members, limits_are_said);
        }
        let claims = members.get("claims").and_then(Value::as_array).into_iter().flatten();
        let claims = claims.filter_map(|claim| claim["name"].as_str().map(str::to_owned)).collect();
        let value = Value::Object(members);
        Self { json: json::of(&value), claims, value }
    }
}

/// Sets limits or requests that the Instrumentation leaves open, and says
/// whether it does. An empty object is a decision, not an opening.
fn fill(resources: &mut Map<String, Value>, key: &str, quantities: &[(&str, &str)]) -> bool {
    let is_open = resources.get(key).is_none_or(Value::is_null);
    if is_open {
        let quantities = quantities.iter().map(|(name, quantity)| ((*name).to_owned(), (*quantity).into()));
        resources.insert(key.to_owned(), Value::Object(quantities.collect()));
    }
    is_open
}

/// The API server refuses a request above its limit. Where one of the two is a
/// default it gives way to the other; where both are said, the limit counts.
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

/// The size limit of a volume. One of nothing limits nothing.
fn size_limit(said: Option<&Value>) -> Option<Quantity> {
    let limit = match said.filter(|limit| !limit.is_null()) {
        Some(limit) => Quantity::of(limit),
        None => Quantity::parse(VOLUME_SIZE),
    };
    limit.filter(|limit| !limit.is_zero())
}

fn empty_dir(said: &Settings<'_>) -> String {
    let limit = said.volume_limit_size.filter(|limit| !limit.is_null());
    let limit = limit.map_or_else(|| json::of(VOLUME_SIZE), json::of);
    format!("\"emptyDir\":{{\"sizeLimit\":{limit}}}")
}

/// The variables of a list, each once: the first entry counts.
fn settings(list: &[EnvVar]) -> Vec<Setting> {
    let mut settings: Vec<Setting> = Vec::with_capacity(list.len());
    for variable in list {
        if settings.iter().any(|known| known.name == variable.name) {
            continue;
        }
        let from = variable.value_from.as_ref().map(otel_webhook_api::Raw::value);
        settings.push(Setting {
            name: variable.name.clone(),
            value: variable.value.clone().unwrap_or_default(),
            from: from.filter(|from| !is_hollow(from)).map(json::of),
        });
    }
    settings
}

fn filled(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use otel_webhook_api::defaults::JAVA;

    #[test]
    fn no_request_is_above_its_limit() {
        let filled = |said: Value| Resources::new(Some(&said), Some(&JAVA)).value;
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
