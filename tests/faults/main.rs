//! Attackers and failures next to good reviews, which are counted.
//!
//! `make faults` runs every case against the released program and prints the table of
//! BENCHMARKS.md. `OTEL_WEBHOOK_FAULTS=short`, as in `.ci/run`, makes less of each. What is
//! asserted are outcomes and counts: no good review is lost or left without its agent, no probe
//! fails, but for two while the probed port itself is flooded, and the memory limit of the chart holds. Times are printed only.

mod api_server;
mod cases;
mod connections;
mod process;

use std::{env, process::ExitCode};

use cases::{CASES, Scale};

fn main() -> ExitCode {
    // For thousands of connections.
    otel_webhook_server::raise_file_limit();
    let is_short = env::var("OTEL_WEBHOOK_FAULTS").is_ok_and(|scale| scale == "short");
    let scale = if is_short { Scale::SHORT } else { Scale::LONG };
    let wanted = env::args().nth(1).unwrap_or_default();
    if process::is_limited() {
        println!("servers run in a memory cgroup of {} MiB\n", process::LIMIT >> 20);
    } else {
        println!("no memory cgroup can be made here: memory is measured and compared with the limit\n");
    }
    println!(
        "| fault | good reviews | lost | not injected | p99 | probes | dead | CPU | before | peak | after |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    let mut problems = Vec::new();
    for (name, case) in CASES.iter().filter(|(name, _)| name.contains(&wanted)) {
        let row = case(&scale);
        println!("{}", row.line(name));
        problems.extend(row.problems().into_iter().map(|problem| format!("{name}: {problem}")));
    }
    for problem in &problems {
        println!("\n{problem}");
    }
    ExitCode::from(u8::from(!problems.is_empty()))
}
