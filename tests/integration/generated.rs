//! Files that are generated and committed: they have to be what the program makes today.

use std::{fs, path::Path};

#[test]
fn the_committed_crd_is_what_the_program_prints() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/crd.yaml");
    let committed = fs::read_to_string(&path).expect("the CRD is committed");
    assert!(
        committed == otel_webhook::api::crd::yaml(),
        "manifests/crd.yaml is out of date; run `make generate`"
    );
}
