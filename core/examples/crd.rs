//! Prints the CRD as the types say it, for `core/src/api/crd/crd.json`.

fn main() {
    println!("{}", otel_webhook_core::api::crd::of_types());
}
