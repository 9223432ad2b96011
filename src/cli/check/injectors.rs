//! Other webhooks that inject, such as the operator's own: who comes first, and where both do.

use std::collections::BTreeMap;

use super::{
    registration::{Hook, Labels, Registration},
    result::{CheckResult, Code},
};

/// How many namespaces are named in a sentence.
const NAMED: usize = 5;

/// What is to be said of other webhooks that inject, by the labels of the namespaces.
pub fn results(registration: &Registration, namespaces: &BTreeMap<String, Labels>) -> Vec<CheckResult> {
    if registration.others.is_empty() {
        let message = "no other webhook injects agents";
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
        let message = format!("{} injects, but nowhere where this webhook does", other.name);
        return CheckResult::new(Code::OtherInjectorApart, message).about(other.subject());
    };
    let names: Vec<_> = both.iter().map(|(name, _)| *name).collect();
    let (first, second) =
        if other.configuration < ours.configuration { (other, *ours) } else { (*ours, other) };
    let message = format!(
        "{} gets the pods of {} as well; {} is called before {}, by their names, and whoever finds a pod \
         injected leaves it as it is",
        other.name,
        list(&names),
        first.configuration,
        second.configuration,
    );
    let advice = "part them by their namespace selectors, as docs/migration.md says";
    CheckResult::new(Code::OtherInjectorBeside, message).about(other.subject()).advise(advice)
}

/// `3 namespaces (a, b, c)`, the first few of them by name.
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
    fn who_comes_first_follows_from_the_names_of_the_configurations() {
        let name = "opentelemetry-operator-mutation";
        let (code, line) = &said(&[operator(name, json!({}))], &["shop"])[0];
        assert_eq!(*code, Code::OtherInjectorBeside);
        let order = "gets the pods of 1 namespace (shop) as well; opentelemetry-operator-mutation is called \
                     before otel-webhook, by their names";
        assert!(line.contains(order), "{line}");
        let (_, line) = &said(&[operator("z-operator", json!({}))], &["shop"])[0];
        assert!(line.contains("otel-webhook is called before z-operator"), "{line}");
    }

    #[test]
    fn only_namespaces_that_both_select_count() {
        let names = ["a", "b", "c", "d", "e", "f", "kube-system"];
        let (_, line) = &said(&[operator("o", json!({}))], &names)[0];
        assert!(line.contains("the pods of 6 namespaces (a, b, c, d, e, …) as well"), "{line}");
        let only = json!({"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}});
        let (code, line) = &said(&[operator("o", only)], &names)[0];
        assert_eq!(*code, Code::OtherInjectorApart);
        assert!(line.contains("mpod.kb.io injects, but nowhere where this webhook does"), "{line}");
    }

    #[test]
    fn none_is_fine() {
        assert_eq!(said(&[], &["shop"])[0].0, Code::NoOtherInjector);
    }
}
