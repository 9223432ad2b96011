//! What an Instrumentation opts in without an annotation.

use crate::{
    held::{Held, held},
    language::{self, LanguageSet},
    selector::{Labels, Selector, Unmet},
};
use otel_webhook_api::{InstrumentationSpec, LabelSelector};

/// What an Instrumentation opts in: the pods that its selector matches.
#[derive(Debug)]
pub struct OptIn {
    /// The languages.
    pub languages: LanguageSet,
    namespaces: Namespaces,
}

/// The namespaces of the pods.
#[derive(Debug)]
enum Namespaces {
    /// Its own.
    Own,
    /// All.
    All,
    /// Those that the selector matches.
    Selected(Selector),
}

held!(OptIn: namespaces; languages);

impl Held for Namespaces {
    fn held(&self) -> usize {
        match self {
            Self::Own | Self::All => 0,
            Self::Selected(selector) => selector.held(),
        }
    }
}

impl OptIn {
    /// Reads a specification. An opt-in without a selector is invalid and not used.
    ///
    /// # Errors
    /// A message that names the invalid field.
    pub(super) fn of(spec: &InstrumentationSpec) -> Result<Option<Self>, String> {
        let names = spec.inject.iter().flatten().filter_map(|name| language::named(name));
        let languages = names.fold(LanguageSet::NONE, LanguageSet::with);
        if languages == LanguageSet::NONE || spec.selector.is_none() {
            return Ok(None);
        }
        let selector = compiled("spec.namespaceSelector", spec.namespace_selector.as_ref())?;
        let namespaces = match selector {
            Some(selector) => Namespaces::Selected(selector),
            None if spec.namespace_selector.is_some() => Namespaces::All,
            None => Namespaces::Own,
        };
        Ok(Some(Self { languages, namespaces }))
    }

    /// Whether it selects namespaces.
    pub fn selects_namespaces(&self) -> bool {
        !matches!(self.namespaces, Namespaces::Own)
    }

    /// The selector of namespaces; `None` if there is none, or if it selects all.
    pub fn namespaces(&self) -> Option<&Selector> {
        match &self.namespaces {
            Namespaces::Selected(selector) => Some(selector),
            Namespaces::Own | Namespaces::All => None,
        }
    }

    /// The requirements of its selector of namespaces that these labels do not match.
    pub fn unmet_by_namespace(&self, labels: &impl Labels) -> Vec<Unmet<'_>> {
        self.namespaces().map(|selector| selector.unmet_by(|key| labels.value(key))).unwrap_or_default()
    }

    /// Whether it selects a namespace with these labels.
    pub fn selects(&self, namespace: &impl Labels) -> bool {
        self.namespaces().is_none_or(|selector| selector.matches(namespace))
    }
}

/// Compiles the selector of a field: `None` if there is none, or if it selects all.
///
/// # Errors
/// A message that names the field.
pub(super) fn compiled(field: &str, selector: Option<&LabelSelector>) -> Result<Option<Selector>, String> {
    let compiled = selector.map(Selector::new).transpose();
    compiled.map(Option::flatten).map_err(|problem| format!("{field}.{problem}"))
}
