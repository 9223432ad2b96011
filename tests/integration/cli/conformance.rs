//! The operator's own results through the command line.

use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use otel_webhook_testkit::conformance::{comparison, injection_cases, is_comparable, languages};
use serde_json::Value;

use super::{Run, run};

/// Programs that run at the same time.
const WORKERS: usize = 2;

/// The documents of a case, the pod last.
fn stream(case: &Value) -> String {
    let lists =
        ["instrumentations", "objects"].iter().flat_map(|list| case[*list].as_array().into_iter().flatten());
    let documents = [&case["namespace"]].into_iter().chain(lists).chain([&case["pod"]]);
    let lines: Vec<String> = documents.filter(|document| !document.is_null()).map(Value::to_string).collect();
    lines.join("\n---\n")
}

/// What is wrong with the program's answer to a case.
fn failure(case: &Value) -> Option<String> {
    let namespace = case["requestNamespace"].as_str().expect("a namespace");
    let languages = languages(case).names();
    let arguments = ["inject", "-f", "-", "-n", namespace, "-o", "json", "--languages", &languages];
    let Run { out, err, code } =
        run(&[&arguments[..], &["--stamp=false", "--init-resources=exact"]].concat(), &stream(case));
    let last = out.lines().last().unwrap_or_default();
    let pod: Value = serde_json::from_str(last).unwrap_or_default();
    let is_unchanged = case["expect"]["injected"] == false;
    let untouched = case["pod"].to_string();
    let as_it_came = !is_unchanged || last == untouched;
    let (after, expected) = comparison(case, &pod);
    if code == 0 && as_it_came && after == expected {
        return None;
    }
    Some(format!(
        "{}: exit code {code}\n  {err}\n  got      {last}\n  expected {}",
        case["id"], case["expect"]
    ))
}

#[test]
fn every_expectation_is_met() {
    let cases: Vec<Value> = injection_cases().into_iter().filter(is_comparable).collect();
    assert!(cases.len() > 1_600, "{} cases", cases.len());
    let (next, ran) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    failures.lock().unwrap().extend(failure(case));
                    ran.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} cases differ:\n{}", failures.len(), failures.join("\n"));
    assert_eq!(ran.into_inner(), cases.len());
}
