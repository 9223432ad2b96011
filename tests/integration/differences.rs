//! Where the product differs from the operator on purpose: one test a number,
//! with the smallest pod that shows it.

mod choice;
mod environment;
mod names;
mod resources;
mod workload;

/// The numbers that concern what is injected. D22 is about checking resources.
const NUMBERS: [u8; 27] =
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28];

#[test]
fn every_difference_has_a_test() {
    let sources = [
        include_str!("differences/choice.rs"),
        include_str!("differences/environment.rs"),
        include_str!("differences/names.rs"),
        include_str!("differences/resources.rs"),
        include_str!("differences/workload.rs"),
    ]
    .concat();
    let missing: Vec<_> = NUMBERS.iter().filter(|n| !sources.contains(&format!("\nfn d{n}_"))).collect();
    assert!(missing.is_empty(), "differences without a test: {missing:?}");
}
