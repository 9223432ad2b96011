//! Other webhooks that inject, such as the operator's: in which namespaces, and in which order.

use std::collections::BTreeMap;

use super::result::{CheckResult, Code};
use crate::registration::{Hook, Labels, Registration};

/// How many namespaces a message lists.
const NAMED: usize = 5;

/// Returns the results for other webhooks that inject, according to the labels of the namespaces.
pub fn results(registration: &Registration, namespaces: &BTreeMap<String, Labels>) -> Vec<CheckResult> {
    if registration.others.is_empty() {
        let message = "no other webhook injects auto-instrumentation";
        return vec![CheckResult::new(Code::NoOtherInjector, message)];
    }
    registration.others.iter().map(|other| of(registration, other, namespaces)).collect()
}

fn of(registration: &Registration, other: &Hook, namespaces: &BTreeMap<String, Labels>) -> CheckResult {
    let both: Vec<(&str, &Hook)> = namespaces
        .iter()
        .filter(|(_, labels)| other.selects_namespace(labels))
        .filter_map(|(name, labels)| {
            let ours = registration.pods().find(|hook| hook.selects_namespace(labels))?;
            Some((&**name, ours))
        })
        .collect();
    let Some((_, ours)) = both.first() else {
        let message = format!("{} injects, but in other namespaces than this webhook", other.name);
        return CheckResult::new(Code::OtherInjectorApart, message).about(other.subject());
    };
    let names: Vec<_> = both.iter().map(|(name, _)| *name).collect();
    let (first, second) =
        if other.configuration < ours.configuration { (other, *ours) } else { (*ours, other) };
    let message = format!(
        "{} also selects the pods of {}; {} is called before {} because of their names, and each skips pods \
         that are already injected",
        other.name,
        list(&names),
        first.configuration,
        second.configuration,
    );
    let advice = "separate them by their namespace selectors; see docs/migration.md";
    CheckResult::new(Code::OtherInjectorBeside, message).about(other.subject()).advise(advice)
}

/// Returns `3 namespaces (a, b, c)`, with the first few names.
fn list(names: &[&str]) -> String {
    let noun = if names.len() == 1 { "namespace" } else { "namespaces" };
    let first = names[..names.len().min(NAMED)].join(", ");
    let more = if names.len() > NAMED { ", …" } else { "" };
    format!("{} {noun} ({first}{more})", names.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::registration::tests::{labels, operator, registration},
        *,
    };

    fn namespaces(names: &[&str]) -> BTreeMap<String, Labels> {
        names.iter().map(|name| ((*name).to_owned(), labels(name))).collect()
    }

    fn said(others: &[serde_json::Value], names: &[&str]) -> Vec<(Code, String)> {
        let registration = registration(others, |_, _| ());
        let results = results(&registration, &namespaces(names));
        results.iter().map(|result| (result.code, result.line())).collect()
    }

    #[test]
    fn webhooks_are_called_in_the_order_of_their_configurations_names() {
        let name = "opentelemetry-operator-mutation";
        let (code, line) = &said(&[operator(name, json!({}))], &["shop"])[0];
        assert_eq!(*code, Code::OtherInjectorBeside);
        let order = "also selects the pods of 1 namespace (shop); opentelemetry-operator-mutation is called \
                     before otel-webhook because of their names";
        assert!(line.contains(order), "{line}");
        let (_, line) = &said(&[operator("z-operator", json!({}))], &["shop"])[0];
        assert!(line.contains("otel-webhook is called before z-operator"), "{line}");
    }

    #[test]
    fn only_namespaces_that_both_select_are_reported() {
        let names = ["a", "b", "c", "d", "e", "f", "kube-system"];
        let (_, line) = &said(&[operator("o", json!({}))], &names)[0];
        assert!(line.contains("also selects the pods of 6 namespaces (a, b, c, d, e, …);"), "{line}");
        let only = json!({"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}});
        let (code, line) = &said(&[operator("o", only)], &names)[0];
        assert_eq!(*code, Code::OtherInjectorApart);
        assert!(line.contains("mpod.kb.io injects, but in other namespaces than this webhook"), "{line}");
    }

    #[test]
    fn none_is_fine() {
        assert_eq!(said(&[], &["shop"])[0].0, Code::NoOtherInjector);
    }
}
