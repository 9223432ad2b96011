//! Selectors that match the pods of a workload but for one label.

use otel_webhook_api::validation::nearest;

use crate::{
    compiled::{Compiled, OptIn},
    finding::Finding,
    mistakes::{Fault, Mistake},
    reason::ObjectName,
    selector::{Labels as _, Selector, Unmet},
    shown::shown,
    template::{Around, Workload},
};

/// The maximum number of Instrumentations that are reported for a workload.
const MOST: usize = 3;

/// An Instrumentation that would opt the pods of a workload in by its selectors, but for one label.
#[derive(Debug)]
pub struct Near {
    /// The Instrumentation.
    pub instrumentation: ObjectName,
    /// What is wrong with the label.
    pub mistake: Mistake,
    /// Whether the label was meant to match: it is misspelt, or is on the workload instead of its pod template.
    pub is_meant: bool,
}

/// The Instrumentations that would opt a workload in but for one label, those first of which the label was meant to
/// match. There are none where `findings` shows that something opts it in, or out.
pub fn one_label_away(workload: &Workload<'_>, around: &Around<'_>, findings: &[Finding]) -> Vec<Near> {
    if !findings.is_empty() {
        return Vec::new();
    }
    let (mut meant, mut others) = (Vec::new(), Vec::new());
    let mut near = candidates(around).filter_map(|one| one.near(workload, around));
    while meant.len() < MOST
        && let Some(one) = near.next()
    {
        if one.is_meant {
            meant.push(one);
        } else if others.len() < MOST {
            others.push(one);
        }
    }
    meant.extend(others);
    meant.truncate(MOST);
    meant
}

/// The mistakes in the labels of a workload for which a selector does not opt it in.
pub fn selected(workload: &Workload<'_>, around: &Around<'_>, findings: &[Finding]) -> Vec<Mistake> {
    one_label_away(workload, around, findings).into_iter().filter_map(Near::meant).collect()
}

impl Near {
    /// The mistake, if the label was meant to match.
    pub fn meant(self) -> Option<Mistake> {
        self.is_meant.then_some(self.mistake)
    }
}

/// An Instrumentation that opts pods in by its selectors.
struct Candidate<'p> {
    compiled: &'p Compiled,
    /// The requirement of its `namespaceSelector` that the namespace does not match.
    unmet_by_namespace: Option<Unmet<'p>>,
}

/// The Instrumentations that opt pods of the namespace in by their selectors, or would but for one label of the namespace.
fn candidates<'p>(around: &Around<'p>) -> impl Iterator<Item = Candidate<'p>> {
    let of = |namespace: &str| {
        let known = around.catalogue.namespace(namespace).into_iter();
        known.flat_map(|known| known.instrumentations.opting_in())
    };
    // Labels of a namespace that is not listed are not known.
    let labels = around.catalogue.namespace(around.namespace).filter(|known| known.is_listed);
    let labels = labels.map(|known| &known.labels);
    let across = move |opt_in: &'p OptIn| -> Option<Option<Unmet<'p>>> {
        let mut unmet = opt_in.unmet_by_namespace(labels?);
        (unmet.len() < 2).then(|| unmet.pop())
    };
    let default = around.settings.default_instrumentation.as_ref();
    let of_default = default.into_iter().flat_map(move |ObjectName { namespace, .. }| of(namespace));
    let of_default = of_default.filter(|(_, opt_in)| opt_in.selects_namespaces());
    let of_default = of_default.filter_map(move |(compiled, opt_in)| {
        Some(Candidate { compiled, unmet_by_namespace: across(opt_in)? })
    });
    let own = of(around.namespace).filter(|(_, opt_in)| !opt_in.selects_namespaces());
    own.map(|(compiled, _)| Candidate { compiled, unmet_by_namespace: None }).chain(of_default)
}

impl Candidate<'_> {
    fn near(&self, workload: &Workload<'_>, around: &Around<'_>) -> Option<Near> {
        // An empty selector matches all pods.
        let selector = self.compiled.selector.as_ref();
        let labels = workload.pod["metadata"]["labels"].as_object();
        let value = |key: &str| labels?.get(key)?.as_str();
        let mut unmet = selector.map(|selector| selector.unmet_by(value)).unwrap_or_default();
        let (mistake, is_meant) = match (unmet.pop(), &self.unmet_by_namespace) {
            (None, Some(unmet)) => (self.of_namespace(unmet, around)?, false),
            (Some(one), None) if unmet.is_empty() => self.of_label(&one, selector?, workload)?,
            _ => return None,
        };
        Some(Near { instrumentation: self.compiled.name.clone(), mistake, is_meant })
    }

    /// What is wrong with a label of the pods, and whether it was meant to match.
    fn of_label(
        &self,
        unmet: &Unmet<'_>,
        selector: &Selector,
        workload: &Workload<'_>,
    ) -> Option<(Mistake, bool)> {
        let labels = workload.pod["metadata"]["labels"].as_object();
        let value = |key: &str| labels?.get(key)?.as_str();
        let by = format!("the selector of Instrumentation \"{}\" requires the label", self.compiled.name);
        let at = workload.path("metadata.labels");
        // A workload finds its pods by this label, which is no mistake and cannot be changed.
        let is_of_workload = |key: &str| !workload.match_labels[key].is_null();
        let key = unmet.key();
        if let Some(written) = value(key).filter(|_| !is_of_workload(key)) {
            // Another number is another version or another one of several, and a label may have the name of its
            // workload.
            let values = unmet.values().iter().map(String::as_str);
            let values = values.filter(|value| without_digits(value) != without_digits(written));
            let meant = nearest(written, values).filter(|_| written != workload.name)?;
            let message = format!("{by} {key}: \"{meant}\", but the value is \"{}\"", shown(written));
            let remedy = format!("set {key}: \"{meant}\" in {at}");
            return Some((mistake(format!("{at}[{key}]"), written, message, remedy), true));
        }
        if let Some(own) = workload.labels[key].as_str().filter(|own| unmet.is_met_by(own)) {
            let message = format!("{by} {key} on the pod template, but only the {} has it", workload.kind);
            let remedy = format!("set {key}: \"{}\" in {at}", shown(own));
            return Some((mistake(format!("metadata.labels[{key}]"), own, message, remedy), true));
        }
        let others = labels.into_iter().flatten().filter_map(|(key, value)| Some((&**key, value.as_str()?)));
        let others = others.filter(|(key, value)| unmet.is_met_by(value) && !is_of_workload(key));
        if let Some(written) = nearest(key, others.map(|(key, _)| key)) {
            let message = format!("{by} {key}, but the pods have {}", shown(written));
            let remedy = format!("rename it to {key}");
            return Some((mistake(format!("{at}[{written}]"), value(written)?, message, remedy), true));
        }
        // Any workload lacks the label of a selector that has no other.
        let wanted = unmet.value().filter(|_| value(key).is_none() && selector.has_label_of(value))?;
        let message = format!("{by} {key}, which the pods do not have");
        let remedy = format!("set {key}: \"{}\" in {at}", shown(wanted));
        Some((mistake(format!("{at}[{key}]"), "", message, remedy), false))
    }

    /// What label the namespace lacks.
    fn of_namespace(&self, unmet: &Unmet<'_>, around: &Around<'_>) -> Option<Mistake> {
        let (key, wanted, namespace) = (unmet.key(), shown(unmet.value()?), around.namespace);
        let labels = &around.catalogue.namespace(namespace)?.labels;
        if labels.value(key).is_some() {
            return None;
        }
        let message = format!(
            "the selector of Instrumentation \"{}\" matches the pods, but its namespaceSelector requires the label \
             {key}, which namespace \"{namespace}\" does not have",
            self.compiled.name
        );
        let remedy = format!("kubectl label namespace {namespace} {key}={wanted}");
        Some(mistake("metadata.namespace".to_owned(), namespace, message, remedy))
    }
}

fn mistake(field: String, value: &str, message: String, remedy: String) -> Mistake {
    Mistake { fault: Fault::NearlySelected, field, value: value.to_owned(), message, remedy }
}

fn without_digits(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}
