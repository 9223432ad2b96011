//! Runs a target of the testkit by its name.

/// Runs a target.
///
/// # Panics
/// If there is none of this name, or what it checks does not hold.
pub fn run(name: &str, data: &[u8]) {
    let target = otel_webhook_testkit::fuzzed::TARGETS.iter().find(|(known, _)| *known == name);
    target.expect("a target of the testkit").1(data);
}
