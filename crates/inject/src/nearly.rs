//! Selectors that nearly match the pods of a workload: a label is misspelt, or is on the workload instead of its pod
//! template.

use otel_webhook_api::validation::nearest;

use crate::{
    compiled::{Compiled, OptIn},
    finding::Finding,
    mistakes::{Fault, Mistake},
    reason::ObjectName,
    shown::shown,
    template::{Around, Workload},
};

/// The maximum number of Instrumentations that are reported for a workload.
const MOST: usize = 3;

/// The mistakes in the labels of a workload that nothing opts in: of each, an Instrumentation would opt it in by its
/// selector without the mistake. There are none where `findings` shows that something opts it in, or out.
pub fn selected(workload: &Workload<'_>, around: &Around<'_>, findings: &[Finding]) -> Vec<Mistake> {
    if !findings.is_empty() {
        return Vec::new();
    }
    opting_in(around).filter_map(|compiled| mistake(workload, compiled)).take(MOST).collect()
}

/// The Instrumentations that opt pods of the namespace in by their selectors.
fn opting_in<'p>(around: &Around<'p>) -> impl Iterator<Item = &'p Compiled> {
    let of = |namespace: &str| {
        let known = around.catalogue.namespace(namespace).into_iter();
        known.flat_map(|known| known.instrumentations.opting_in())
    };
    // Labels of a namespace that is not listed are not known.
    let own = around.catalogue.namespace(around.namespace).filter(|known| known.is_listed);
    let labels = own.map(|known| &known.labels);
    let across = move |opt_in: &OptIn| labels.is_some_and(|labels| opt_in.selects(labels));
    let default = around.settings.default_instrumentation.as_ref();
    let of_default = default.into_iter().flat_map(move |ObjectName { namespace, .. }| of(namespace));
    let of_default = of_default.filter(move |(_, opt_in)| opt_in.selects_namespaces() && across(opt_in));
    let own = of(around.namespace).filter(|(_, opt_in)| !opt_in.selects_namespaces());
    own.chain(of_default).map(|(compiled, _)| &**compiled)
}

fn mistake(workload: &Workload<'_>, compiled: &Compiled) -> Option<Mistake> {
    let labels = workload.pod["metadata"]["labels"].as_object();
    let value = |key: &str| labels?.get(key)?.as_str();
    let unmet = compiled.selector.as_ref()?.unmet_by(value);
    let [unmet] = &unmet[..] else { return None };
    let by = format!("the selector of Instrumentation \"{}\" requires the label", compiled.name);
    let at = workload.path("metadata.labels");
    let found = |field: String, value: &str, message: String, remedy: String| {
        Some(Mistake { fault: Fault::NearlySelected, field, value: value.to_owned(), message, remedy })
    };
    // A workload finds its pods by this label, which is no mistake and cannot be changed.
    let is_of_workload = |key: &str| !workload.match_labels[key].is_null();
    let key = unmet.key();
    if let Some(written) = value(key).filter(|_| !is_of_workload(key)) {
        // Another number is another version or another one of several, and a label may have the name of its workload.
        let values = unmet.values().iter().map(String::as_str);
        let values = values.filter(|value| without_digits(value) != without_digits(written));
        let meant = nearest(written, values).filter(|_| written != workload.name)?;
        let message = format!("{by} {key}: \"{meant}\", but the value is \"{}\"", shown(written));
        return found(format!("{at}[{key}]"), written, message, format!("set {key}: \"{meant}\" in {at}"));
    }
    if let Some(own) = workload.labels[key].as_str().filter(|own| unmet.is_met_by(own)) {
        let message = format!("{by} {key} on the pod template, but only the {} has it", workload.kind);
        let remedy = format!("set {key}: \"{}\" in {at}", shown(own));
        return found(format!("metadata.labels[{key}]"), own, message, remedy);
    }
    let others = labels?.iter().filter_map(|(key, value)| Some((&**key, value.as_str()?)));
    let others = others.filter(|(key, value)| unmet.is_met_by(value) && !is_of_workload(key));
    let written = nearest(key, others.map(|(key, _)| key))?;
    let message = format!("{by} {key}, but the pods have {}", shown(written));
    found(format!("{at}[{written}]"), value(written)?, message, format!("rename it to {key}"))
}

fn without_digits(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}
