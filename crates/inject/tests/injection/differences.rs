//! Where the product differs from the operator on purpose: one test a number,
//! with the smallest pod that shows it.

mod agents;
mod attributes;
mod checking;
mod choice;
mod copies;
mod default_images;
mod delivery;
mod environment;
mod helpers;
mod jobs;
mod merged_attributes;
mod names;
mod opt_in;
mod resources;
mod size;
mod storage;
mod token;
mod users;
mod workload;

/// The numbers of the differences.
///
/// A new one goes in here, with a test whose name begins with its number and a row in both tables.
const NUMBERS: &[u8] = &[
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
    29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
];

#[test]
fn every_difference_has_a_test() {
    let sources = [
        include_str!("differences/agents.rs"),
        include_str!("differences/attributes.rs"),
        include_str!("differences/checking.rs"),
        include_str!("differences/choice.rs"),
        include_str!("differences/copies.rs"),
        include_str!("differences/default_images.rs"),
        include_str!("differences/delivery.rs"),
        include_str!("differences/environment.rs"),
        include_str!("differences/helpers.rs"),
        include_str!("differences/jobs.rs"),
        include_str!("differences/merged_attributes.rs"),
        include_str!("differences/names.rs"),
        include_str!("differences/opt_in.rs"),
        include_str!("differences/resources.rs"),
        include_str!("differences/size.rs"),
        include_str!("differences/token.rs"),
        include_str!("differences/users.rs"),
        include_str!("differences/workload.rs"),
    ]
    .concat();
    let missing: Vec<_> = NUMBERS.iter().filter(|n| !sources.contains(&format!("\nfn d{n}_"))).collect();
    assert!(missing.is_empty(), "differences without a test: {missing:?}");
}

#[test]
fn every_difference_is_told_to_users_and_to_those_who_move_over() {
    for (name, text) in [
        ("docs/injection.md", include_str!("../../../../docs/injection.md")),
        ("docs/migration.md", include_str!("../../../../docs/migration.md")),
    ] {
        let rows = text.lines().filter_map(|line| line.strip_prefix("| D")?.split_once(" |"));
        let numbers: Vec<u8> = rows.map(|(number, _)| number.parse().expect("a number")).collect();
        assert_eq!(numbers, NUMBERS, "the table of {name}");
    }
}
