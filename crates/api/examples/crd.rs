//! Prints the CRD as the types say it, for `crates/api/src/crd/crd.json`.

fn main() {
    println!("{}", otel_webhook_api::crd::of_types());
}
