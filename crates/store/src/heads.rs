//! What the controller uses of Instrumentations and namespaces in addition to what injection does.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use jiff::Timestamp;
use serde_json::Value;

use otel_webhook_fleet::restart::annotations;
use otel_webhook_inject::{
    mistakes::{self, Mistake},
    object,
    reason::ObjectName,
};

/// The objects of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Heads {
    /// The Instrumentations.
    pub instrumentations: HashMap<ObjectName, Arc<InstrumentationHead>>,
    /// The namespaces.
    pub namespaces: HashMap<Box<str>, Arc<NamespaceHead>>,
}

/// An Instrumentation.
#[derive(Debug, Default)]
pub struct InstrumentationHead {
    /// When it was created.
    pub created: Option<Timestamp>,
    /// Its generation.
    pub generation: i64,
    /// Its version.
    pub version: String,
    /// Its UID.
    pub uid: String,
    /// Its annotation about restarts.
    pub consent: Option<String>,
    /// Its annotation that resumes restarts.
    pub resume: Option<String>,
    /// Its status, as text: a document needs ten times the memory.
    status: Box<str>,
}

/// A namespace.
#[derive(Debug, Default)]
pub struct NamespaceHead {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotation about restarts.
    pub consent: Option<String>,
    /// Its UID.
    pub uid: String,
    /// The mistakes in its metadata.
    pub mistakes: Vec<Mistake>,
}

impl InstrumentationHead {
    /// Reads an Instrumentation.
    pub fn of(document: &Value) -> Self {
        let metadata = &document["metadata"];
        let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
        Self {
            created: metadata["creationTimestamp"].as_str().and_then(|time| time.parse().ok()),
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            version: text(&metadata["resourceVersion"]).unwrap_or_default(),
            uid: text(&metadata["uid"]).unwrap_or_default(),
            consent: text(&metadata["annotations"][annotations::RESTART]),
            resume: text(&metadata["annotations"][annotations::RESUME]),
            status: document["status"].to_string().into(),
        }
    }

    /// Returns the status; null if there is none.
    pub fn status(&self) -> Value {
        serde_json::from_str(&self.status).unwrap_or_default()
    }
}

impl NamespaceHead {
    /// Reads a namespace.
    pub fn of(document: &Value) -> Self {
        let metadata = &document["metadata"];
        Self {
            labels: object::strings(&metadata["labels"]),
            consent: metadata["annotations"][annotations::RESTART].as_str().map(ToOwned::to_owned),
            uid: metadata["uid"].as_str().unwrap_or_default().to_owned(),
            mistakes: mistakes::of(document, "v1", "Namespace"),
        }
    }
}

impl Heads {
    /// Returns the labels of a namespace.
    pub fn labels(&self, namespace: &str) -> &BTreeMap<String, String> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        self.namespaces.get(namespace).map_or(&NONE, |namespace| &namespace.labels)
    }
}
