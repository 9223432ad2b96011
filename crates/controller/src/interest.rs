//! Which pods are of interest: those that opt in, by themselves or by their namespace, and those that look injected.

use std::collections::HashMap;

use serde_json::Value;

use otel_webhook_fleet::{
    next::{Around, NextPod},
    pod::RunningPod,
};
use otel_webhook_inject::{LABEL, STATUS, catalogue::Namespace};

/// What opts in the pods of namespaces, by their names.
pub type Asking = HashMap<Box<str>, Vec<OptIn>>;

/// An annotation or a label of a namespace, or an Instrumentation with its selectors.
pub type OptIn = (Box<str>, Box<str>);

/// Returns what opts in the pods of a namespace that do not opt in themselves.
pub fn opt_ins(namespace: &Namespace, around: &Around<'_>) -> Vec<OptIn> {
    let default = around.settings.default_instrumentation.as_ref();
    let default = default.and_then(|default| around.catalogue.namespace(&default.namespace));
    let across = default.into_iter().flat_map(|default| default.instrumentations.opting_in());
    let across =
        across.filter(|(_, opt_in)| opt_in.selects_namespaces() && opt_in.selects(&namespace.labels));
    let own = namespace.instrumentations.opting_in().filter(|(_, opt_in)| !opt_in.selects_namespaces());
    let selecting = own.chain(across).map(|(one, opt_in)| {
        let selectors = format!("{:?} {opt_in:?}", one.selector);
        (one.name.to_string().into(), selectors.into())
    });
    let said = namespace.annotations.iter().chain(&namespace.opt_in_labels).cloned();
    said.chain(selecting).collect()
}

/// Returns whether a pod opts in, or looks injected by its metadata.
pub fn is_of_interest(metadata: &Value, pod: &RunningPod, around: &Around<'_>) -> bool {
    let is_stamped = metadata["annotations"][STATUS].is_string() || metadata["labels"][LABEL].is_string();
    let next = || NextPod::of(&pod.shape, &pod.workload.namespace, around);
    is_stamped || next().is_ok_and(|next| !next.languages.is_empty())
}
