//! Choices that follow from a number.

use std::{env, num::NonZero, thread};

/// How many pods are tried: `OTEL_WEBHOOK_GENERATED_PODS`, or the usual number.
pub fn how_many(usual: u64) -> u64 {
    let asked = env::var("OTEL_WEBHOOK_GENERATED_PODS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(usual)
}

/// Does the work for each number below `count`, on all cores. Gives the results in order.
///
/// # Panics
/// Where the work does.
pub fn for_each<T: Send>(count: u64, work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get) as u64;
    let share = count.div_ceil(threads).max(1);
    let work = &work;
    thread::scope(|scope| {
        let starts = (0..threads).map(|thread| thread * share);
        let run =
            |start: u64| scope.spawn(move || (start..count.min(start + share)).map(work).collect::<Vec<T>>());
        let running: Vec<_> = starts.map(run).collect();
        running.into_iter().flat_map(|one| one.join().expect("the work does not panic")).collect()
    })
}

/// A source of choices (the `SplitMix64` generator), so that a number names a pod for good.
pub struct Choices(u64);

impl Choices {
    /// The choices that belong to a number.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("below a usize")
    }

    /// True in `percent` of a hundred cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of several.
    pub fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    /// Some of several, each in `percent` of a hundred cases, in their order.
    pub fn some<'a>(&mut self, of: &[&'a str], percent: usize) -> Vec<&'a str> {
        of.iter().copied().filter(|_| self.chance(percent)).collect()
    }
}
