//! What a review costs next to a full API server, against one with the same Instrumentation alone.

use std::process::Command;

use otel_webhook_testkit::load::{figures::Figures, material, server::Server};

use crate::{
    PROGRAM,
    measure::Failed,
    objects::{Population, first_instrumentation, first_namespace},
    turns::{Side, in_turns},
};

const ROUNDS: usize = 5;
const CONNECTIONS: usize = 16;

/// Both in turns, with a review that needs no look-up.
pub fn of_cpu(figures: &mut Figures, large: &Server, population: &Population) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let small = Server::of_objects(Command::new(PROGRAM), folder.path(), &[first_instrumentation()]);
    let mut review = material::usual();
    review["request"]["namespace"] = first_namespace().into();
    review["request"]["object"]["metadata"]["namespace"] = first_namespace().into();
    let body = [serde_json::to_vec(&review)?];
    let mut small = Side::new(&small, CONNECTIONS, &body)?;
    let mut large = Side::new(large, CONNECTIONS, &body)?;
    let mut ratios = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let (small, large) = in_turns(&mut small, &mut large)?;
        ratios.push(large.cpu_each() / small.cpu_each());
    }
    let name = format!("{} against one Instrumentation: CPU of a review", population.scale);
    figures.add(name, "times", "≤ 1.2", &ratios);
    Ok(())
}
