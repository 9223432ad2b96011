//! The labels of a namespace.

use std::sync::Arc;

use crate::{language::is_read_as_label, selector::Labels};
use otel_webhook_api::ANNOTATION_PREFIX;

/// The label with the name of a namespace, which every namespace has.
const NAME: &str = "kubernetes.io/metadata.name";

/// The labels of a namespace, sorted by their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NamespaceLabels(Arc<[(Box<str>, Box<str>)]>);

impl NamespaceLabels {
    /// Returns the labels of a namespace, and the one with its name, which files may not have.
    pub fn of(name: &str, labels: impl IntoIterator<Item = (String, String)>) -> Self {
        let others = labels.into_iter().filter(|(key, _)| key != NAME);
        let named = (NAME.to_owned(), name.to_owned());
        let mut all: Vec<(Box<str>, Box<str>)> =
            others.chain([named]).map(|(key, value)| (key.into(), value.into())).collect();
        all.sort_unstable();
        Self(all.into())
    }

    /// Those that are read as annotations, by the rest of their keys.
    pub fn opt_in(&self) -> Vec<(Box<str>, Box<str>)> {
        let ours =
            self.0.iter().filter_map(|(key, value)| Some((key.strip_prefix(ANNOTATION_PREFIX)?, value)));
        let read = ours.filter(|(key, value)| is_read_as_label(key, value));
        read.map(|(key, value)| (key.into(), value.clone())).collect()
    }
}

impl Labels for NamespaceLabels {
    fn value(&self, key: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(label, _)| (**label).cmp(key)).ok()?;
        Some(&self.0[at].1)
    }
}
