//! The ways in which pods are created.

use serde_json::{Value, json};

/// One way to create a pod.
pub struct Way {
    /// How the table calls it.
    pub name: &'static str,
    /// The label of its namespaces, and the beginning of their names.
    pub key: &'static str,
    /// Which webhook is called.
    pub webhook: Webhook,
    /// In how many namespaces pods are created in turn.
    pub namespaces: usize,
    /// Instrumentations of each namespace; all but one select other pods.
    pub instrumentations: usize,
    /// The pods.
    pub pods: Pods,
    /// The key of the way without a webhook with which it is compared.
    pub base: &'static str,
}

/// The pods of a way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pods {
    /// They opt in.
    OptIn,
    /// They do not.
    Silent,
    /// They are sent as the product would make them: what remains is the cost of a larger pod.
    Injected,
}

/// The webhook of a way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Webhook {
    /// None.
    None,
    /// The one that allows everything.
    Hook,
    /// The same with the product's patch, which it does not have to compute.
    Constant,
    /// The same pod by the fewest operations: metadata and specification as a whole.
    Whole,
    /// The product.
    Ours(Registration),
}

/// How the product is registered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Registration {
    /// For every pod, by `reinvocationPolicy: IfNeeded`, as it is by default.
    IfNeeded,
    /// The same by `Never`.
    Never,
    /// For pods with an annotation, as by the shape `annotated`.
    Annotated,
}

/// The keys of the ways that figures with a goal are about.
pub const NONE: &str = "none";
pub const HOOK: &str = "hook";
pub const CONSTANT: &str = "constant";
pub const OURS: &str = "ours";
pub const ANNOTATED: &str = "annotated";

const ONE: Way = Way {
    name: "no webhook",
    key: NONE,
    webhook: Webhook::None,
    namespaces: 1,
    instrumentations: 1,
    pods: Pods::OptIn,
    base: NONE,
};

/// The same with the product, as it is by default.
const PRODUCT: Way =
    Way { name: "ours, IfNeeded", key: OURS, webhook: Webhook::Ours(Registration::IfNeeded), ..ONE };

/// All of them.
pub const WAYS: [Way; 12] = [
    ONE,
    Way { name: "no webhook, pod sent as injected", key: "sent-injected", pods: Pods::Injected, ..ONE },
    Way { name: "hook that allows everything", key: HOOK, webhook: Webhook::Hook, ..ONE },
    Way { name: "hook with a constant patch", key: CONSTANT, webhook: Webhook::Constant, ..ONE },
    Way { name: "hook with a constant patch of the whole pod", key: "whole", webhook: Webhook::Whole, ..ONE },
    PRODUCT,
    Way { name: "ours, Never", key: "never", webhook: Webhook::Ours(Registration::Never), ..PRODUCT },
    Way { name: "ours, pod does not opt in", key: "silent", pods: Pods::Silent, ..PRODUCT },
    Way {
        name: "ours, pod does not opt in, shape annotated",
        key: ANNOTATED,
        webhook: Webhook::Ours(Registration::Annotated),
        pods: Pods::Silent,
        ..PRODUCT
    },
    Way {
        name: "ours, 20 Instrumentations in the namespace",
        key: "twenty",
        instrumentations: 20,
        ..PRODUCT
    },
    Way { name: "no webhook, 50 namespaces", key: "none-fifty", namespaces: 50, base: "none-fifty", ..ONE },
    Way {
        name: "ours, 50 namespaces with 20 Instrumentations each",
        key: "fifty",
        namespaces: 50,
        instrumentations: 20,
        base: "none-fifty",
        ..PRODUCT
    },
];

impl Way {
    /// The names of its namespaces.
    pub fn namespaces(&self) -> Vec<String> {
        (0..self.namespaces).map(|index| format!("{}-{index:02}", self.key)).collect()
    }

    /// The name of its webhook.
    pub fn webhook_name(&self) -> String {
        format!("{}.create.example.com", self.key)
    }

    /// What its registration says in addition to where the webhook is.
    pub fn registration(&self) -> Value {
        match self.webhook {
            Webhook::Ours(Registration::Never) => json!({"reinvocationPolicy": "Never"}),
            Webhook::Ours(Registration::Annotated) => json!({"matchConditions": [{
                "name": "opted-in",
                "expression": "has(object.metadata.annotations) && object.metadata.annotations.exists(name, \
                               name.startsWith('instrumentation.opentelemetry.io/inject-'))",
            }]}),
            _ => json!({}),
        }
    }
}
