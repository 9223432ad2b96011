//! Mistakes in the annotation that pauses injection.

use super::fault::Fault;
use crate::shown::shown;
use otel_webhook_api::annotations::{UNCLEAR_REMEDY, is_unclear};

/// What is wrong with the annotation: the rest of the sentence, and what to do.
pub fn fault(value: &str, is_of_namespace: bool) -> Option<(Fault, String, String)> {
    if !is_of_namespace {
        let message = "only has an effect on namespaces and Instrumentations".to_owned();
        return Some((Fault::NamespacesOnly, message, "set it on the namespace".to_owned()));
    }
    let message = || format!("is \"{}\", which pauses nothing", shown(value));
    is_unclear(value).then(|| (Fault::PausedUnclear, message(), UNCLEAR_REMEDY.to_owned()))
}
