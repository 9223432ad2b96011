//! Variables and texts of a specification.

use std::collections::HashSet;

use crate::env::Setting;
use otel_webhook_api::{EnvVar, Raw, is_hollow};

/// The variables of a list, each once: the first entry is used.
pub fn settings(list: &[EnvVar]) -> Vec<Setting> {
    let mut settings: Vec<Setting> = Vec::with_capacity(list.len());
    let mut known = HashSet::new();
    for variable in list.iter().filter(|variable| known.insert(&variable.name)) {
        let from = variable.value_from.as_ref().map(Raw::value);
        settings.push(Setting {
            name: variable.name.clone(),
            value: variable.value.clone().unwrap_or_default(),
            from: from.filter(|from| !is_hollow(from)).cloned().map(Box::new),
        });
    }
    settings
}

/// A non-empty string.
pub fn filled(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}
