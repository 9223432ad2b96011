use serde_json::{Value, json};

use super::*;
use crate::{
    compiled::{About, OptIn},
    language::{JAVA, NODEJS},
    reason::ObjectName,
    text::Map,
};
use otel_webhook_api::{InstrumentationSpec, defaults::DefaultImages};

fn stored(name: &str, spec: &Value) -> Stored {
    let spec: InstrumentationSpec = serde_json::from_value(spec.clone()).expect("a specification");
    let name = ObjectName { namespace: "shop".into(), name: name.into() };
    let compiled = Compiled::new(name, None, &About::default(), &spec, &DefaultImages::default());
    Stored::Ready(Arc::new(compiled.expect("valid")))
}

/// Selectors of every kind, with each of three priorities, for pods of the namespace and of others.
fn all() -> Vec<Stored> {
    let selectors = [
        json!({}),
        json!({"matchLabels": {"app": "order"}}),
        json!({"matchLabels": {"app": "order", "tier": "a"}}),
        json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["order", "cart", "order"]}]}),
        json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["cart"]}]}),
        json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}),
        json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}),
    ];
    let mut all = Vec::new();
    for (at, selector) in selectors.iter().enumerate() {
        for priority in 0..3 {
            let spec = json!({"inject": ["java"], "selector": selector, "priority": priority});
            all.push(stored(&format!("own-{at}-{priority}"), &spec));
            for (number, namespaces) in selectors.iter().enumerate() {
                let mut spec = spec.clone();
                spec["namespaceSelector"] = namespaces.clone();
                all.push(stored(&format!("across-{at}-{number}-{priority}"), &spec));
            }
        }
    }
    all.push(stored("not-opting-in", &json!({"selector": {"matchLabels": {"app": "order"}}, "priority": 9})));
    all
}

fn labels(text: &str) -> Map<'_> {
    serde_json::from_str(text).expect("labels")
}

fn names(best: Best<'_>) -> Vec<&str> {
    best.into_found().into_iter().map(|ready| &*ready.name.name).collect()
}

/// The best ones of those that match, by checking all.
fn expected(all: &[Stored], matches: impl Fn(&Compiled, &OptIn) -> bool) -> Vec<&str> {
    let matching = all.iter().filter_map(opts_in).filter(|ready| {
        let opt_in = ready.opt_in.as_ref().expect("it opts in");
        matches(ready, opt_in)
    });
    let matching: Vec<_> = matching.collect();
    let best = matching.iter().map(|ready| rank(ready)).max();
    let mut names: Vec<_> = matching
        .into_iter()
        .filter(|ready| Some(rank(ready)) == best)
        .map(|ready| &*ready.name.name)
        .collect();
    names.sort_unstable();
    names
}

const PODS: [&str; 6] = [
    "{}",
    r#"{"app":"order"}"#,
    r#"{"app":"cart","tier":"b"}"#,
    r#"{"tier":"a","app":"order"}"#,
    r#"{"other":"x"}"#,
    r#"{"app":"cart","app":"order"}"#,
];

#[test]
fn the_best_ones_are_those_of_checking_all() {
    let all = all();
    let index = OptIns::of(&all);
    for text in PODS {
        let pod = labels(text);
        let own = |ready: &Compiled, opt_in: &OptIn| !opt_in.selects_namespaces() && selects(ready, &pod);
        assert_eq!(names(index.own(&JAVA, &pod)), expected(&all, own), "{text}");
        for namespace in PODS {
            let other = labels(namespace);
            let across = |ready: &Compiled, opt_in: &OptIn| {
                opt_in.selects_namespaces() && selects(ready, &pod) && opt_in.selects(&other)
            };
            let found = names(index.across(&JAVA, &other, &pod));
            assert_eq!(found, expected(&all, across), "{text} in {namespace}");
        }
        assert!(index.own(&NODEJS, &pod).is_empty());
    }
    assert!(OptIns::of(&all[all.len() - 1..]).is_empty(), "it does not opt in");
}

/// Either the keys of the index or the labels are looked up.
#[test]
fn there_may_be_more_keys_than_labels() {
    let of = |at: usize| {
        let expression = json!({"key": format!("k-{at}"), "operator": "Exists"});
        stored(
            &format!("k-{at}"),
            &json!({"inject": ["java"], "selector": {"matchExpressions": [expression]}}),
        )
    };
    let all: Vec<_> = (0..9).map(of).collect();
    let index = OptIns::of(&all);
    for text in [r#"{"k-3":"a"}"#.to_owned(), format!(r#"{{"k-3":"a"{}}}"#, r#","other":"a""#.repeat(20))] {
        assert_eq!(names(index.own(&JAVA, &labels(&text))), ["k-3"], "{text}");
    }
}

#[test]
fn of_many_only_candidates_are_checked() {
    let of = |at: usize| {
        let labels = json!({"app": "order", "instance": format!("i-{at}")});
        stored(&format!("i-{at}"), &json!({"inject": ["java"], "selector": {"matchLabels": labels}}))
    };
    let all: Vec<_> = (0..1_000).map(of).collect();
    let index = OptIns::of(&all);
    let pod = labels(r#"{"app":"order","instance":"i-7"}"#);
    let mut checked = 0;
    index.own[&JAVA.index()].lists(&pod, |list| checked += list.len());
    assert_eq!((checked, names(index.own(&JAVA, &pod))), (1, vec!["i-7"]));
    let for_all = |at: usize| {
        stored(&format!("p-{at:04}"), &json!({"inject": ["java"], "selector": {}, "priority": at}))
    };
    let all: Vec<_> = (0..1_000).map(for_all).collect();
    let index = OptIns::of(&all);
    let checked = std::cell::Cell::new(0);
    let mut best = Best::default();
    index.own[&JAVA.index()].lists(&pod, |list| {
        best.take(list, &JAVA, |_| {
            checked.set(checked.get() + 1);
            true
        });
    });
    assert_eq!((checked.get(), names(best)), (1, vec!["p-0999"]), "the highest priority is first");
}
