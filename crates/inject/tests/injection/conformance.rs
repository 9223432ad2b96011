//! The operator's own results, case by case (`tests/data/conformance`).

use std::collections::BTreeMap;

use otel_webhook_api::{Version, in_version};
use otel_webhook_testkit::{
    conformance::{asked, comparison, injection_cases, is_comparable, languages, marks},
    models::sanity,
    objects::{compare, items},
    surroundings::{Injected, Surroundings},
};
use serde_json::Value;

/// How many cases have an expectation; a file that is cut short is noticed.
const FEWEST: usize = 1670;

/// What the core makes of a case.
fn inject(case: &Value) -> Injected {
    inject_in(case, Version::V1alpha1)
}

/// What the core makes of a case with the Instrumentations in a version.
fn inject_in(case: &Value, version: Version) -> Injected {
    let instrumentations =
        items(&case["instrumentations"]).map(|object| in_version(object, version).into_owned());
    let others = items(&case["objects"]).chain([&case["namespace"]]).cloned();
    let mut around = Surroundings::new(instrumentations.chain(others));
    case["requestNamespace"].as_str().expect("a namespace").clone_into(&mut around.namespace);
    around.settings.languages = languages(case);
    around.inject(&case["pod"])
}

type Counts = BTreeMap<String, usize>;

fn count(counts: &mut Counts, keys: impl IntoIterator<Item = String>) {
    for key in keys {
        *counts.entry(key).or_default() += 1;
    }
}

#[test]
fn every_expectation_is_met() {
    let (mut by_language, mut by_mark) = (Counts::new(), Counts::new());
    let mut failures = Vec::new();
    let cases = injection_cases();
    let expected: Vec<_> = cases.iter().filter(|case| is_comparable(case)).collect();
    let mut compared = 0;
    for case in &expected {
        let (after, wanted) = comparison(case, &inject(case).pod);
        let differences = compare("", &after, &wanted);
        count(&mut by_language, asked(case));
        count(&mut by_mark, marks(case));
        compared += 1;
        if !differences.is_empty() {
            failures.push(format!("{} {}\n    {}", case["id"], case["diverges"], differences.join("\n    ")));
        }
    }
    println!("compared {compared} cases; by language {by_language:#?}; by mark {by_mark:#?}");
    assert!(failures.is_empty(), "{} cases differ:\n{}", failures.len(), failures.join("\n"));
    assert_eq!(compared, expected.len());
    assert!(compared >= FEWEST, "only {compared} cases have an expectation");
}

#[test]
fn the_cases_in_v1beta1_give_the_same_pods() {
    let mut converted = 0;
    for case in injection_cases() {
        let beta = inject_in(&case, Version::V1beta1);
        let alpha = inject(&case);
        assert_eq!(beta.pod, alpha.pod, "{}", case["id"]);
        assert_eq!(beta.codes(), alpha.codes(), "{}", case["id"]);
        converted += items(&case["instrumentations"])
            .filter(|object| {
                in_version(object, Version::V1beta1)["apiVersion"] == Version::V1beta1.api_version()
            })
            .count();
    }
    assert!(converted >= FEWEST, "only {converted} Instrumentations were converted");
}

#[test]
fn what_cannot_write_to_its_claim_is_skipped() {
    let is_expected = |case: &&Value| !case["expect"].is_null() && !is_comparable(case);
    let cases = injection_cases();
    let skipped: Vec<_> =
        cases.iter().filter(is_expected).map(|case| (&case["id"], inject(case).codes())).collect();
    assert_eq!(skipped.len(), 4);
    for (id, codes) in skipped {
        assert!(codes.iter().any(|code| code.ends_with(": ClaimNotWritable")), "{id}: {codes:?}");
    }
}

#[test]
fn every_pod_comes_out_sane() {
    let mut by_mark = Counts::new();
    let mut failures = Vec::new();
    for case in injection_cases() {
        let faults = sanity::faults(&case["pod"], &inject(&case).pod);
        if case["expect"].is_null() {
            count(&mut by_mark, marks(&case));
        }
        if !faults.is_empty() {
            failures.push(format!("{} {}\n    {}", case["id"], case["diverges"], faults.join("\n    ")));
        }
    }
    println!("without an expectation, by mark: {by_mark:#?}");
    assert!(failures.is_empty(), "{} pods have faults:\n{}", failures.len(), failures.join("\n"));
}
