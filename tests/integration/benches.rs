//! The reviews that benches measure.

#[path = "../../benches/shared/program.rs"]
mod program;

use otel_webhook_testkit::load::stages::wholes;

#[test]
fn each_review_that_is_measured_injects_as_many_containers_as_it_says() {
    // Those with 10,000 Instrumentations take long without optimisation.
    for whole in wholes().into_iter().filter(|whole| whole.name != "10000") {
        drop(whole.case(program::program));
    }
}
