//! Files that are generated and committed: they have to be what the program makes today.

use std::{fs, path::Path};

#[test]
fn the_committed_crd_is_what_the_program_prints() {
    for path in ["charts/otel-webhook/files/crd.yaml", "manifests/crd/crd.yaml"] {
        let committed = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path));
        assert!(
            committed.expect("the CRD is committed") == otel_webhook::crd_yaml(),
            "{path} is out of date; run `make generate`"
        );
    }
}
