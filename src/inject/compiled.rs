//! An Instrumentation made ready for use, once, when it is stored: defaults
//! applied, variables merged, JSON written.

use std::collections::BTreeMap;

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
use crate::api::{
    EnvVar, InstrumentationSpec, Settings,
    defaults::{DefaultImages, LIMITS, LanguageDefaults, VOLUME_SIZE, image_annotation},
    is_hollow,
};

/// An Instrumentation, ready for use.
#[derive(Debug)]
pub struct Compiled {
    /// Its namespace and name.
    pub name: ObjectName,
    /// Its generation, which counts its changes.
    pub generation: Option<i64>,
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
    pub languages: Vec<Prepared>,
}

/// A language's part of an Instrumentation, ready for use.
#[derive(Debug)]
pub struct Prepared {
    /// Image of the init container or sidecar.
    pub image: String,
    /// The language's variables.
    pub env: Vec<Setting>,
    /// The volume's source as JSON: `"emptyDir":{…}` or `"ephemeral":{…}`.
    pub volume: String,
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
    /// See [`Compiled::hash`].
    hash: String,
}

/// Requests, limits and claims.
#[derive(Debug)]
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
        annotations: &BTreeMap<String, String>,
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
                .map(|language| prepare(language, spec, annotations, images))
                .collect(),
        };
        Ok(compiled.with_hashes())
    }
}

impl Compiled {
    /// A short hash of what is configured for a language: the same for the
    /// same configuration, in every replica of this version.
    pub fn hash(&self, language: &Language) -> Box<str> {
        self.languages[language.index()].hash.as_str().into()
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
        for prepared in &mut self.languages {
            let own = format!("{common}{:?}{prepared:?}", self.security_context);
            prepared.hash = format!("{:08x}", fnv(own.as_bytes()));
        }
        self
    }
}

/// The FNV-1a hash of 32 bits: it tells configurations apart, and guards nothing.
fn fnv(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

fn prepare(
    language: &Language,
    spec: &InstrumentationSpec,
    annotations: &BTreeMap<String, String>,
    images: &DefaultImages,
) -> Prepared {
    let said = (language.settings)(spec);
    let defaults = language.defaults;
    let recorded = annotations.get(&image_annotation(language.name)).map(String::as_str);
    // An image that defaulting put there is not pinned: it follows the
    // product's own default (D28).
    let pinned = said.image.filter(|image| !image.is_empty() && Some(*image) != recorded);
    let image = pinned.map(str::to_owned).or_else(|| defaults.map(|defaults| images.image(defaults)));
    let empty_dir = empty_dir(&said);
    let claim = said.volume_claim_template.filter(|claim| !is_hollow(claim));
    let volume = claim.map_or_else(
        || empty_dir.clone(),
        |claim| format!("\"ephemeral\":{{\"volumeClaimTemplate\":{}}}", json::of(claim)),
    );
    let attrs = said.attrs.iter().map(|attr| (attr.name.clone(), attr.value.clone().unwrap_or_default()));
    Prepared {
        image: image.unwrap_or_default(),
        env: settings(said.env),
        volume,
        empty_dir,
        resources: Resources::new(said.resources, defaults),
        extensions: said.extensions.iter().map(|one| (one.image.clone(), one.dir.clone())).collect(),
        attrs: attrs.collect(),
        version: filled(said.version.map(str::to_owned)),
        config: filled(said.config.map(str::to_owned)),
        security_context: said.security_context.filter(|value| !value.is_null()).map(json::of),
        hash: String::new(),
    }
}

impl Resources {
    fn new(said: Option<&Value>, defaults: Option<&LanguageDefaults>) -> Self {
        let mut members = said.and_then(Value::as_object).cloned().unwrap_or_default();
        if let Some(defaults) = defaults {
            fill(&mut members, "limits", &LIMITS);
            fill(&mut members, "requests", &defaults.requests);
        }
        let claims = members.get("claims").and_then(Value::as_array).into_iter().flatten();
        let claims = claims.filter_map(|claim| claim["name"].as_str().map(str::to_owned)).collect();
        let value = Value::Object(members);
        Self { json: json::of(&value), claims, value }
    }
}

/// Sets limits or requests that the Instrumentation leaves open. An empty
/// object is a decision, not an opening.
fn fill(resources: &mut Map<String, Value>, key: &str, quantities: &[(&str, &str)]) {
    if resources.get(key).is_none_or(Value::is_null) {
        let quantities = quantities.iter().map(|(name, quantity)| ((*name).to_owned(), (*quantity).into()));
        resources.insert(key.to_owned(), Value::Object(quantities.collect()));
    }
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
        let from = variable.value_from.as_ref().map(crate::api::Raw::value);
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
