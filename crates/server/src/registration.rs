//! The webhook configurations: which objects API servers send to which webhook.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    api::admissionregistration::v1::{
        MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhook,
        ValidatingWebhookConfiguration, WebhookClientConfig,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};

use crate::{Endpoint, subject::Subject};
use otel_webhook_inject::selector::{Selector, Unmet};

/// Kind of the configurations of mutating webhooks.
pub const MUTATING: &str = "MutatingWebhookConfiguration";

/// Kind of the configurations of validating webhooks.
pub const VALIDATING: &str = "ValidatingWebhookConfiguration";

/// Name of the chart's match condition that the pod itself has an annotation that opts in.
const ANNOTATED: &str = "opted-in";

/// The default name of the configurations.
const USUAL_NAME: &str = "otel-webhook";

/// The suffix of the names of all webhooks in the chart's configurations.
const DOMAIN: &str = ".otel-webhook.io";

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

/// One webhook of a configuration.
#[derive(Debug)]
pub struct Hook {
    /// Kind of the configuration.
    pub kind: &'static str,
    /// Name of the configuration. API servers call webhooks in this order.
    pub configuration: String,
    /// Name of the webhook in the configuration.
    pub name: String,
    /// The backend.
    pub backend: Backend,
    /// The `caBundle`; empty if there is none.
    pub bundle: Vec<u8>,
    /// Whether the failure policy is Fail.
    pub fails_closed: bool,
    /// Whether it has match conditions; they are not evaluated here.
    pub has_conditions: bool,
    /// Whether the chart's match condition selects only pods that opt in themselves.
    annotated_only: bool,
    rules: Vec<RuleWithOperations>,
    namespaces: Option<Selector>,
    objects: Option<Selector>,
}

/// The configurations of this webhook, and the other webhooks that inject.
#[derive(Debug, Default)]
pub struct Registration {
    /// Names of this webhook's configurations.
    pub names: Vec<String>,
    /// All webhooks of these configurations.
    pub ours: Vec<Hook>,
    /// The other webhooks that inject into pods, in the order of their calls.
    pub others: Vec<Hook>,
}

impl Registration {
    /// Finds this webhook's configurations by `names`, or if there are none, by the names of their webhooks.
    pub fn new(
        names: &[String],
        mutating: &[MutatingWebhookConfiguration],
        validating: &[ValidatingWebhookConfiguration],
    ) -> Self {
        let mutating = mutating.iter().flat_map(mutating_hooks);
        let hooks: Vec<Hook> = mutating.chain(validating.iter().flat_map(validating_hooks)).collect();
        let names = if names.is_empty() { found(&hooks) } else { names.to_vec() };
        let (ours, others): (Vec<_>, Vec<_>) =
            hooks.into_iter().partition(|hook| names.contains(&hook.configuration));
        let is_other = |hook: &Hook| hook.kind == MUTATING && hook.injects();
        let mut others: Vec<_> = others.into_iter().filter(is_other).collect();
        others.sort_by(|one, other| one.configuration.cmp(&other.configuration));
        Self { names, ours, others }
    }

    /// Returns this webhook's entries for pods.
    pub fn pods(&self) -> impl Iterator<Item = &Hook> {
        self.ours.iter().filter(|hook| hook.kind == MUTATING && hook.sends("", "pods"))
    }

    /// Returns the webhooks that inject and select a pod, in the order of their calls; see [`Hook::selects`].
    pub fn reviewers(&self, namespace: &Labels, pod: &Labels, asks_itself: bool) -> Vec<&Hook> {
        let all = self.pods().chain(&self.others);
        let mut hooks: Vec<_> = all.filter(|hook| hook.selects(namespace, pod, asks_itself)).collect();
        hooks.sort_by(|one, other| one.configuration.cmp(&other.configuration));
        hooks
    }
}

/// Returns the names of the configurations that are this webhook's by their own name or that of a webhook in them;
/// the default name if there are none.
fn found(hooks: &[Hook]) -> Vec<String> {
    let is_ours = |hook: &&Hook| hook.configuration == USUAL_NAME || hook.name.ends_with(DOMAIN);
    let names: BTreeSet<_> = hooks.iter().filter(is_ours).map(|hook| hook.configuration.clone()).collect();
    if names.is_empty() { vec![USUAL_NAME.to_owned()] } else { names.into_iter().collect() }
}

impl Hook {
    /// Returns the configuration that contains it.
    pub fn subject(&self) -> Subject {
        Subject::new(self.kind, "", &self.configuration)
    }

    /// Returns whether its rules match the creation of a resource.
    pub fn sends(&self, group: &str, resource: &str) -> bool {
        let has = |list: &Option<Vec<String>>, wanted: &str| {
            list.iter().flatten().any(|item| item == wanted || item == "*")
        };
        self.rules.iter().any(|rule| {
            let any_resource = rule.resources.iter().flatten().any(|item| item == "*/*");
            has(&rule.api_groups, group)
                && (has(&rule.resources, resource) || any_resource)
                && has(&rule.operations, "CREATE")
                && rule.scope.as_deref() != Some("Cluster")
        })
    }

    /// Returns whether it selects an object, by the labels of the object and of its namespace, and by whether the
    /// object itself opts in.
    pub fn selects(&self, namespace: &Labels, object: &Labels, asks_itself: bool) -> bool {
        self.exclusion(namespace, object, asks_itself).is_none()
    }

    /// Returns why it does not select an object; none if it does.
    pub fn exclusion(&self, namespace: &Labels, object: &Labels, asks_itself: bool) -> Option<Exclusion<'_>> {
        let by_namespace = self.namespaces.as_ref().and_then(|selector| unmet_by(selector, namespace));
        let by_object = || self.objects.as_ref().and_then(|selector| unmet_by(selector, object));
        let by_condition = || (self.annotated_only && !asks_itself).then_some(Exclusion::NotAnnotated);
        let by_namespace = by_namespace.map(Exclusion::Namespace);
        by_namespace.or_else(|| by_object().map(Exclusion::Object)).or_else(by_condition)
    }

    /// Returns whether its namespace selector matches.
    pub fn selects_namespace(&self, namespace: &Labels) -> bool {
        is_met(self.namespaces.as_ref(), namespace)
    }

    /// Returns whether this injects: the operator, or another installation of this webhook.
    fn injects(&self) -> bool {
        let is_path = self.backend.path() == Endpoint::MutatePod.path();
        self.sends("", "pods") && (is_path || self.name.starts_with("mpod.kb.io"))
    }
}

/// The first reason why a webhook does not select an object.
pub enum Exclusion<'h> {
    /// The namespace selector does not match.
    Namespace(Unmet<'h>),
    /// The object selector does not match.
    Object(Unmet<'h>),
    /// The pod itself does not opt in, as the match condition requires.
    NotAnnotated,
}

fn unmet_by<'s>(selector: &'s Selector, labels: &Labels) -> Option<Unmet<'s>> {
    selector.unmet_by(|key| labels.get(key).map(String::as_str)).into_iter().next()
}

fn is_met(selector: Option<&Selector>, labels: &Labels) -> bool {
    selector.is_none_or(|selector| selector.matches_by(|key| labels.get(key).map(String::as_str)))
}

/// Returns a selector. API servers validate them, so that all can be read.
fn read(selector: Option<&LabelSelector>) -> Option<Selector> {
    let selector = selector.and_then(|selector| serde_json::to_value(selector).ok());
    let selector = selector.and_then(|selector| serde_json::from_value(selector).ok());
    selector.and_then(|selector| Selector::new(&selector).ok().flatten())
}

fn conditions(conditions: Option<&[MatchCondition]>) -> impl Iterator<Item = &str> {
    conditions.unwrap_or_default().iter().map(|condition| &*condition.name)
}

macro_rules! hooks {
    ($name:ident, $configuration:ty, $webhook:ty, $kind:expr) => {
        fn $name(configuration: &$configuration) -> Vec<Hook> {
            let name = configuration.metadata.name.clone().unwrap_or_default();
            let webhooks = configuration.webhooks.iter().flatten();
            let hook = |webhook: &$webhook| Hook {
                kind: $kind,
                configuration: name.clone(),
                name: webhook.name.clone(),
                backend: Backend::of(&webhook.client_config),
                bundle: webhook.client_config.ca_bundle.clone().map(|bundle| bundle.0).unwrap_or_default(),
                fails_closed: webhook.failure_policy.as_deref() != Some("Ignore"),
                annotated_only: conditions(webhook.match_conditions.as_deref()).any(|name| name == ANNOTATED),
                has_conditions: webhook.match_conditions.as_ref().is_some_and(|list| !list.is_empty()),
                rules: webhook.rules.clone().unwrap_or_default(),
                namespaces: read(webhook.namespace_selector.as_ref()),
                objects: read(webhook.object_selector.as_ref()),
            };
            webhooks.map(hook).collect()
        }
    };
}

// Two types with the same fields.
hooks!(mutating_hooks, MutatingWebhookConfiguration, MutatingWebhook, MUTATING);
hooks!(validating_hooks, ValidatingWebhookConfiguration, ValidatingWebhook, VALIDATING);

/// The backend of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Backend {
    /// A Service of the cluster.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The port.
        port: i32,
        /// The path.
        path: String,
    },
    /// A URL.
    Url(String),
}

impl Backend {
    /// Returns the backend of a webhook.
    pub fn of(config: &WebhookClientConfig) -> Self {
        match &config.service {
            Some(service) => Self::Service {
                namespace: service.namespace.clone(),
                name: service.name.clone(),
                port: service.port.unwrap_or(443),
                path: service.path.clone().unwrap_or_else(|| "/".to_owned()),
            },
            None => Self::Url(config.url.clone().unwrap_or_default()),
        }
    }

    /// Returns the path of the webhook.
    pub fn path(&self) -> String {
        match self {
            Self::Service { path, .. } => path.clone(),
            Self::Url(url) => {
                url.parse::<hyper::Uri>().map_or_else(|_| String::new(), |url| url.path().to_owned())
            }
        }
    }
}

impl std::fmt::Display for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Service { namespace, name, port, .. } => {
                write!(f, "Service {namespace}/{name}, port {port}")
            }
            Self::Url(url) => f.write_str(url),
        }
    }
}
