//! Values that are wrong: rejected before anything is sent, with the name of the field.

use std::fs;

use serde::Deserialize;

use crate::helm::{HELMS, repository, template};

/// A row of `refused.yaml`.
#[derive(Deserialize)]
struct Refused {
    set: Vec<String>,
    words: Vec<String>,
}

#[test]
fn a_value_that_is_wrong_is_refused_with_its_name() {
    let text = fs::read_to_string(repository("tests/chart/refused.yaml")).expect("the rows");
    let rows: Vec<Refused> = serde_saphyr::from_str(&text).expect("YAML");
    for helm in HELMS {
        for Refused { set, words } in &rows {
            let args: Vec<_> = set.iter().flat_map(|value| ["--set", value]).collect();
            let Err(complaint) = template(helm, &args) else { panic!("{helm} accepts {set:?}") };
            for word in words {
                assert!(complaint.contains(word), "{helm} with {set:?} does not say {word:?}: {complaint}");
            }
        }
    }
}

#[test]
fn a_kubernetes_that_is_too_old_is_refused() {
    for helm in HELMS {
        let complaint = template(helm, &["--kube-version", "1.28.15"]).expect_err("too old");
        assert!(complaint.contains(">=1.29.0-0"), "{complaint}");
        // Clouds put their own words behind the version.
        template(helm, &["--kube-version", "1.29.0-gke.1"]).expect("new enough");
        template(helm, &["--kube-version", "2.1.0"]).expect("newer");
    }
}
