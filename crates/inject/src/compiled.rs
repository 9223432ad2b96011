//! A compiled Instrumentation, prepared once when it is stored: defaults
//! applied, variables merged, JSON serialised.

mod about;
mod agent;
mod generic;
mod hash;
mod opt_in;
mod prepared;
mod settings;
mod shared;

use std::{collections::BTreeMap, iter, sync::Arc};

use serde_json::Value;

use super::{
    declarative::Declarative,
    env::Setting,
    exporter::Exporter,
    held::{Held, held},
    language::{AGENT, LANGUAGES, Language},
    reason::ObjectName,
    resource::Policy,
    selector::{Labels, Selector},
};
use otel_webhook_api::{
    ALLOWED_NAMESPACES, AllowedNamespaces, InstrumentationSpec, Raw, ResourceAttributes,
    annotations::{PAUSED_ANNOTATION, is_paused},
    defaults::DefaultImages,
};

use agent::prepare_agent;
use hash::Common;
use prepared::prepare;
use settings::{filled, settings};

pub use about::{About, Reported};
pub use generic::{Extended, Generic};
pub use hash::{Freshness, joined};
pub use opt_in::OptIn;
pub use prepared::Prepared;
pub use shared::Shared;

/// A compiled Instrumentation.
#[derive(Debug)]
pub struct Compiled {
    /// Its namespace and name.
    pub name: ObjectName,
    /// Its generation, which counts its changes.
    pub generation: Option<i64>,
    /// The other namespaces that it allows to use it.
    pub allowed: AllowedNamespaces,
    /// Whether its annotation `otel-webhook/paused` pauses its use. It is no configuration, so no hash depends on it.
    pub is_paused: bool,
    /// The selector of pods; `None` for all pods.
    pub selector: Option<Selector>,
    /// What it opts in without an annotation.
    pub opt_in: Option<OptIn>,
    /// The priority: among several that match, the highest one is used.
    pub priority: i32,
    /// Variables of every target.
    pub env: Vec<Setting>,
    /// The exporter.
    pub exporter: Exporter,
    /// Resource attributes.
    pub resource: Policy,
    /// Propagators and sampler, as variables.
    pub propagators: Option<String>,
    /// Sampler and its argument.
    pub sampler: Option<(String, Option<String>)>,
    /// The file that agents are configured by.
    pub declarative: Option<Declarative>,
    /// Whether spans of probes are dropped.
    pub drops_probes: bool,
    /// Whether it is stored as v1beta1, where the operator has no default images.
    pub is_stored_as_beta: bool,
    /// Pull policy of injected images.
    pub image_pull_policy: Option<String>,
    /// The init containers' security context.
    pub security_context: Option<Value>,
    /// One for each row of the language table, in its order, and then one for each agent of `spec.agents`.
    pub parts: Vec<Arc<Prepared>>,
    /// Why it cannot be used for some languages, by their positions in the table.
    problems: BTreeMap<usize, Box<str>>,
    /// See [`Compiled::hash_of`]; one for each part.
    hashes: Vec<u32>,
}

impl Compiled {
    /// Compiles an Instrumentation.
    ///
    /// # Errors
    /// A message that names the invalid field.
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
        let selector = opt_in::compiled("spec.selector", spec.selector.as_ref())?;
        let unnamed = spec.only_beta.without_service_metadata.then(|| unnamed_service(&resource));
        let drops_probes = spec.probes.as_deref() == Some("drop");
        let security_context = spec.init_container_security_context.as_ref();
        let languages = LANGUAGES.iter().map(|language| prepare(language, spec, about, images));
        let agents = spec.agents.iter().flatten().map(|agent| prepare_agent(agent, spec));
        let compiled = Self {
            name,
            generation,
            allowed: AllowedNamespaces::new(about.annotations.get(ALLOWED_NAMESPACES).map(String::as_str)),
            is_paused: is_paused(about.annotations.get(PAUSED_ANNOTATION).map(String::as_str)),
            selector,
            opt_in: OptIn::of(spec)?,
            priority: spec.priority.unwrap_or_default(),
            env: common(spec),
            exporter: Exporter::new(
                &spec.exporter.clone().unwrap_or_default(),
                spec.only_beta.protocol.as_deref(),
            ),
            resource: Policy {
                attributes: resource.resource_attributes.unwrap_or_default().into_iter().collect(),
                with_uids: resource.add_k8s_uid_attributes.unwrap_or_default(),
                use_labels: labels.unwrap_or_default(),
                without_k8s: spec.only_beta.without_k8s_metadata,
                without_service: spec.only_beta.without_service_metadata,
            },
            propagators: spec.propagators.as_ref().filter(|list| !list.is_empty()).map(|list| list.join(",")),
            sampler: filled(sampler.kind).map(|kind| (kind, filled(sampler.argument))),
            declarative: spec
                .declarative_config
                .as_ref()
                .map(Raw::value)
                .filter(|file| file.is_object())
                .map(|file| Declarative::new(file, drops_probes, unnamed.as_deref())),
            drops_probes,
            is_stored_as_beta: spec.only_beta.is_stored_as_beta,
            image_pull_policy: filled(spec.image_pull_policy.clone()),
            security_context: security_context.map(Raw::value).filter(|value| !value.is_null()).cloned(),
            parts: languages.chain(agents).map(Arc::new).collect(),
            problems: BTreeMap::new(),
            hashes: Vec::new(),
        };
        Ok(compiled.with_hashes())
    }
}

/// The name of services of which none is derived: that of the Instrumentation, or the one that SDKs use. A name that could
/// end a reference in a configuration file is not used.
fn unnamed_service(resource: &ResourceAttributes) -> String {
    let own = resource.resource_attributes.as_ref().and_then(|own| own.get("service.name"));
    let is_plain = |name: &&String| {
        !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || "-_./".contains(letter))
    };
    own.filter(is_plain).map_or_else(|| "unknown_service".to_owned(), String::clone)
}

/// The variables of every target. Those of `spec.env` override those of `envConfig.env`, to which they may refer.
fn common(spec: &InstrumentationSpec) -> Vec<Setting> {
    let own = settings(spec.env.as_deref().unwrap_or_default());
    let mut all = settings(&spec.only_beta.env);
    all.retain(|setting| !own.iter().any(|other| other.name == setting.name));
    all.extend(own);
    all
}

held!(Compiled: name, allowed, selector, opt_in, env, exporter, resource, propagators, sampler, declarative, image_pull_policy,
    security_context, parts, problems, hashes; generation, is_paused, priority, drops_probes, is_stored_as_beta);

impl Compiled {
    /// The bytes that are charged for what its selectors cost reviews: all selectors of a namespace are compared with
    /// each of its pods, so that their memory counts eight times.
    pub fn compared(&self) -> usize {
        7 * (self.selector.held() + self.opt_in.held())
    }

    /// The bytes of the parts that it has by default, which are held once for all.
    pub fn held_by_defaults(&self, shared: &Shared) -> usize {
        self.parts.iter().filter(|part| shared.is_default(part)).map(Held::held).sum()
    }
}

impl Compiled {
    /// The same, not usable for some languages, by their fields in the
    /// specification, each with the reason.
    #[must_use]
    pub fn unusable_for(mut self, languages: &BTreeMap<&str, String>) -> Self {
        for (index, language) in LANGUAGES.iter().enumerate() {
            let problem = languages.get(language.field);
            self.problems.extend(problem.map(|problem| (index, problem.as_str().into())));
        }
        self
    }

    /// Whether its selector matches a pod; without one it matches all.
    pub fn selects(&self, pod: &impl Labels) -> bool {
        self.selector.as_ref().is_none_or(|selector| selector.matches(pod))
    }

    /// Why it cannot be used for a language, if it cannot.
    pub fn problem(&self, language: &Language) -> Option<&str> {
        self.problems.get(&language.index()).map(|problem| &**problem)
    }

    /// The same, sharing equal parts with other Instrumentations.
    #[must_use]
    pub fn sharing(mut self, shared: &mut Shared) -> Self {
        for (index, prepared) in self.parts.iter_mut().enumerate() {
            *prepared = shared.one_like(index, Arc::clone(prepared));
        }
        self
    }

    /// The part for a language, or for an agent of `spec.agents`; `None` if there is no such agent.
    pub fn part(&self, language: &Language, agent: Option<&str>) -> Option<usize> {
        let Some(agent) = agent else { return Some(language.index()) };
        self.parts.iter().position(|part| part.generic.as_ref().is_some_and(|own| *own.name == *agent))
    }

    /// The names of the agents of `spec.agents`.
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| part.generic.as_ref()).map(|own| &*own.name)
    }

    /// The hash of a language's configuration; see [`Self::hash_of`].
    pub fn hash(&self, language: &Language) -> Box<str> {
        self.hash_of(language.index())
    }

    /// The hash of the configuration of a part, such as `v1:0123abcd`; see [`hash`].
    pub fn hash_of(&self, part: usize) -> Box<str> {
        hash::written(self.hashes[part]).into()
    }

    /// The hash of the configuration of a part with this image.
    pub fn hash_with(&self, part: usize, image: &str) -> Box<str> {
        if image == self.parts[part].image {
            return self.hash_of(part);
        }
        let language = LANGUAGES.get(part).copied().unwrap_or(&AGENT);
        hash::written(hash::of(&self.common(), language, &self.parts[part], image)).into()
    }

    fn common(&self) -> Common<'_> {
        Common {
            env: &self.env,
            exporter: &self.exporter,
            resource: &self.resource,
            propagators: self.propagators.as_deref(),
            sampler: self.sampler.as_ref().map(|(kind, argument)| (kind.as_str(), argument.as_deref())),
            declarative: self.declarative.as_ref().map(|own| &own.field),
            drops_probes: self.drops_probes,
            image_pull_policy: self.image_pull_policy.as_deref(),
            security_context: self.security_context.as_ref(),
        }
    }

    fn with_hashes(mut self) -> Self {
        let common = self.common();
        // The parts after those of the rows are of the last row.
        let rows = LANGUAGES.into_iter().chain(iter::repeat(&AGENT));
        self.hashes =
            rows.zip(&self.parts).map(|(row, part)| hash::of(&common, row, part, &part.image)).collect();
        self
    }
}
