//! Runs cases that share one cluster, one after the other, and goes on after a failure.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// Panics with what is wrong.
pub type Case<C> = fn(&C);

/// Runs the cases whose name contains the program's first argument; without one, all.
///
/// `start` makes what they share; `after_failure` says what helps to understand one.
pub fn run<C>(cases: &[(&str, Case<C>)], start: fn() -> C, after_failure: fn(&C) -> String) -> ExitCode {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let chosen: Vec<_> = cases.iter().filter(|(name, _)| name.contains(&filter)).collect();
    let passed = if chosen.is_empty() { 0 } else { run_all(&chosen, start, after_failure) };
    let failed = chosen.len() - passed;
    println!("{passed} passed, {failed} failed");
    ExitCode::from(u8::from(failed > 0 || passed == 0))
}

/// Gives how many passed: none where there is no cluster to run them in.
fn run_all<C>(chosen: &[&(&str, Case<C>)], start: fn() -> C, after_failure: fn(&C) -> String) -> usize {
    match catch_unwind(start) {
        Ok(cluster) => {
            chosen.iter().filter(|(name, case)| passes(&cluster, name, *case, after_failure)).count()
        }
        Err(panic) => {
            println!("FAILED to start a cluster: {}", message(&*panic));
            0
        }
    }
}

fn passes<C>(cluster: &C, name: &str, case: Case<C>, after_failure: fn(&C) -> String) -> bool {
    match catch_unwind(AssertUnwindSafe(|| case(cluster))) {
        Ok(()) => {
            println!("ok {name}");
            true
        }
        Err(panic) => {
            println!("FAILED {name}: {}\n{}", message(&*panic), after_failure(cluster));
            false
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}
