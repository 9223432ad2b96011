//! Runs end-to-end cases side by side, and goes on after a failure.
//!
//! Each case runs in a thread of its name, so that its panics name it. What a case prints
//! comes with its name, and the report of a failure in one piece.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

/// A case by its name. It panics with what is wrong.
pub type Case<C> = (&'static str, fn(&C));

/// Cases that change what the others of the group see: they run one after the other.
pub type Group<C> = &'static [Case<C>];

/// How to get what cases share, and what it says after a failure.
pub struct Shared<C> {
    /// Starts it.
    pub start: fn() -> C,
    /// Says what helps to understand a failure.
    pub after_failure: fn(&C) -> String,
}

/// Runs groups side by side on one cluster, and then those cases that look back at all of them.
///
/// Only the cases whose names contain one of the program's arguments; without arguments, all.
pub fn run<C: Sync>(groups: &[Group<C>], last: Group<C>, shared: &Shared<C>) -> ExitCode {
    let groups: VecDeque<_> =
        groups.iter().map(|group| chosen(group)).filter(|group| !group.is_empty()).collect();
    let last = chosen(last);
    let count = groups.iter().map(Vec::len).sum::<usize>() + last.len();
    let mut passed = 0;
    if count > 0
        && let Some(cluster) = start(shared)
    {
        passed = work_off(groups, groups_at_once(), |group: Vec<Case<C>>| passing(&group, &cluster, shared));
        passed += passing(&last, &cluster, shared);
    }
    finish(count, passed)
}

/// Runs cases side by side on so many clusters: each changes what a cluster has once.
///
/// Only the cases whose names contain one of the program's arguments; without arguments, all.
pub fn run_apart<C: Sync>(clusters: usize, cases: Group<C>, shared: &Shared<C>) -> ExitCode {
    let cases = chosen(cases);
    let count = cases.len();
    let queue = Mutex::new(VecDeque::from(cases));
    let work = || {
        let Some(first) = next(&queue) else { return 0 };
        let Some(cluster) = start(shared) else { return 0 };
        let more = std::iter::from_fn(|| next(&queue));
        std::iter::once(first).chain(more).filter(|case| passes(*case, &cluster, shared)).count()
    };
    let passed = thread::scope(|scope| {
        let running: Vec<_> = (0..clusters).map(|_| scope.spawn(work)).collect();
        running.into_iter().map(|one| one.join().expect("cases are caught")).sum()
    });
    finish(count, passed)
}

/// Prints a line with the name of the case.
pub fn note(text: &str) {
    println!("   {}: {text}", thread::current().name().unwrap_or_default());
}

fn chosen<C>(cases: Group<C>) -> Vec<Case<C>> {
    let parts: Vec<_> = std::env::args().skip(1).collect();
    let is_chosen = |name: &str| parts.is_empty() || parts.iter().any(|part| name.contains(part));
    cases.iter().filter(|(name, _)| is_chosen(name)).copied().collect()
}

/// A case waits for processes part of the time. With more, the API server itself answers too late.
fn groups_at_once() -> usize {
    1 + thread::available_parallelism().map_or(1, usize::from)
}

fn start<C>(shared: &Shared<C>) -> Option<C> {
    let started = catch_unwind(shared.start);
    started.map_err(|panic| println!("FAILED to start a cluster: {}", message(&*panic))).ok()
}

/// Takes from a queue by so many threads. Gives the sum of the results.
fn work_off<T: Send>(queue: VecDeque<T>, threads: usize, work: impl Fn(T) -> usize + Sync) -> usize {
    let queue = Mutex::new(queue);
    let take = || std::iter::from_fn(|| next(&queue)).map(&work).sum::<usize>();
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(take)).collect();
        running.into_iter().map(|one| one.join().expect("cases are caught")).sum()
    })
}

fn next<T>(queue: &Mutex<VecDeque<T>>) -> Option<T> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

fn passing<C: Sync>(cases: &[Case<C>], cluster: &C, shared: &Shared<C>) -> usize {
    cases.iter().filter(|case| passes(**case, cluster, shared)).count()
}

fn passes<C: Sync>((name, case): Case<C>, cluster: &C, shared: &Shared<C>) -> bool {
    let began = Instant::now();
    let result = thread::scope(|scope| {
        let run = || catch_unwind(AssertUnwindSafe(|| case(cluster)));
        let running = thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, run);
        running.expect("a thread").join().unwrap_or_else(Err)
    });
    let seconds = began.elapsed().as_secs();
    match &result {
        Ok(()) => println!("ok {name} ({seconds} s)"),
        Err(panic) => {
            let (message, more) = (message(&**panic), (shared.after_failure)(cluster));
            println!("FAILED {name} ({seconds} s): {message}\n{more}");
        }
    }
    result.is_ok()
}

fn finish(count: usize, passed: usize) -> ExitCode {
    println!("{passed} passed, {} failed", count - passed);
    ExitCode::from(u8::from(passed < count || passed == 0))
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}
