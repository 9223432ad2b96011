//! Two programs on the same input: what one decides, the other has to decide as well.
//!
//! `make compare OLD=path/to/another/otel-webhook` runs it before a release, or after a change
//! that must not show. Compared are exit codes, the documents of `inject`, the verdicts of
//! `validate`, and the answers to captured reviews over HTTPS. Texts for people, and the hash of a
//! configuration, may differ.

mod commands;
mod reviews;
mod status;

use std::{
    env,
    process::ExitCode,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use commands::Case;

/// The program of this work tree, unless `OTEL_WEBHOOK_NEW` names another.
const PROGRAM: &str = env!("CARGO_BIN_EXE_otel-webhook");

/// Programs that run at the same time.
const WORKERS: usize = 2;

/// Differences that are printed whole.
const SHOWN: usize = 10;

/// The two programs.
struct Programs {
    old: String,
    new: String,
}

fn main() -> ExitCode {
    let Ok(old) = env::var("OTEL_WEBHOOK_OLD") else {
        eprintln!("OTEL_WEBHOOK_OLD has to name the program to compare with; make compare OLD=path sets it");
        return ExitCode::FAILURE;
    };
    let new = env::var("OTEL_WEBHOOK_NEW").unwrap_or_else(|_| PROGRAM.to_owned());
    let programs = Programs { old, new };
    let cases = commands::cases();
    let mut differences = compare(&programs, &cases);
    println!("{} pods by the command line: {} differ", cases.len(), differences.len());
    let reviews = reviews::compare(&programs);
    println!("{} reviews over HTTPS: {} differ", reviews.compared, reviews.differences.len());
    differences.extend(reviews.differences);
    differences.iter().take(SHOWN).for_each(|difference| println!("{difference}"));
    ExitCode::from(u8::from(!differences.is_empty() || reviews.compared == 0))
}

fn compare(programs: &Programs, cases: &[Case]) -> Vec<String> {
    let (next, differences) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = case.difference(programs);
                    differences.lock().expect("no worker panicked").extend(found);
                }
            });
        }
    });
    differences.into_inner().expect("no worker panicked")
}
