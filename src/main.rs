//! The program; all of it is in the library.
fn main() {
    print!("{}", otel_webhook::api::crd::yaml());
}
