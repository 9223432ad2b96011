//! What a review costs in allocations and in instructions: counted, not
//! timed, so that the figures are the same on a busy machine. Only the time of hostile reviews, which is far from its
//! bound, is measured.
//!
//! Instructions are counted by valgrind, where it is there.

#[path = "shared/program.rs"]
mod program;

use std::{collections::BTreeMap, env, hint::black_box, path::Path, process::Command, time::Instant};

use otel_webhook_testkit::load::{
    figures::Figures,
    hostile, material,
    stages::{self, Case, Whole},
};
use program::program;

/// Reviews before the counting, for what is made once, and reviews that are counted.
const USUAL: (u32, u32) = (20, 100);
/// The same for hostile reviews, of which each costs as much as thousands of others.
const HOSTILE: (u32, u32) = (1, 2);
/// The bound of the memory of a hostile review, in MiB.
const MEMORY: &str = "≤ 64";

fn main() {
    let mut args = env::args().skip(1).filter(|arg| arg != "--bench");
    if let (Some(case), Some(times)) = (args.next(), args.next()) {
        return repeat(&case, times.parse().expect("a number"));
    }
    let mut figures = Figures::new();
    let has_valgrind = Command::new("valgrind").arg("--version").output().is_ok();
    if !has_valgrind {
        println!("valgrind is not there: allocations alone are counted");
    }
    steps(&mut figures);
    let mut instructions_of = BTreeMap::new();
    for whole in stages::wholes() {
        let name = title(&whole);
        let case = whole.case(program);
        allocations(&mut figures, &name, || case.answer());
        if has_valgrind {
            let count = instructions(&name, USUAL);
            figures.add(format!("{name}, instructions"), "", "", &[count]);
            instructions_of.insert(name, count);
        }
    }
    for (what, goal, group, names) in RATIOS {
        let [many, few] = names.map(|name| instructions_of.get(&format!("{group}: {name}")));
        if let (Some(many), Some(few)) = (many, few) {
            figures.add(format!("{what}, instructions"), "times", goal, &[many / few]);
        }
    }
    hostile_reviews(&mut figures, has_valgrind);
    figures.finish("cost", Path::new(env!("CARGO_TARGET_TMPDIR")));
}

/// Cases of which one has to cost about as many times more than another as it is larger: what is compared, the goal, the
/// group of both, and their names.
const RATIOS: [(&str, &str, &str, [&str; 2]); 6] = [
    ("10,000 Instrumentations against 1, by name", "≤ 1.1", "Instrumentations, by name", MANY),
    ("10,000 Instrumentations against 1, by selector", "≤ 1.1", "Instrumentations, by selector", MANY),
    (
        "10,000 Instrumentations against 1, one a namespace",
        "≤ 1.1",
        "Instrumentations, one a namespace",
        MANY,
    ),
    ("10,000 Instrumentations that opt in against 1", "≤ 1.1", "Instrumentations, opting in", MANY),
    (
        "100 containers against 50, one injected",
        "≤ 2.1",
        "pod",
        ["100 containers, 1 injected", "50 containers, 1 injected"],
    ),
    (
        "100 containers against 50, all injected",
        "≤ 2.1",
        "pod",
        ["100 containers, 100 injected", "50 containers, 50 injected"],
    ),
];

const MANY: [&str; 2] = ["10000", "1"];

/// What the most expensive reviews cost, and that twice the input costs no more than about twice as much. CPU time
/// would tell more of the caches.
fn hostile_reviews(figures: &mut Figures, has_valgrind: bool) {
    for (name, make) in hostile::ALL {
        let case = Case::usual(program, &make(WHOLE));
        let times: Vec<f64> = (0..TIMED).map(|_| time(&case)).collect();
        figures.add(format!("{name}, time"), "ms", "≤ 50", &times);
        let counted = allocation_counter::measure(|| drop(black_box(case.answer())));
        let mib = f64::from(u32::try_from(counted.bytes_max >> 10).expect("far below 4 TiB")) / 1024.0;
        figures.add(format!("{name}, at most allocated"), "MiB", MEMORY, &[mib]);
        if has_valgrind {
            let [half, whole] =
                [WHOLE / 2, WHOLE].map(|size| instructions(&hostile_title(name, size), HOSTILE));
            figures.add(format!("{name}, twice the input, instructions"), "times", "≤ 2.2", &[whole / half]);
        }
    }
}

/// How often the time of a hostile review is taken.
const TIMED: usize = 9;

/// How long an answer takes, in milliseconds.
fn time(case: &Case) -> f64 {
    let started = Instant::now();
    drop(black_box(case.answer()));
    started.elapsed().as_secs_f64() * 1e3
}

/// The size of a hostile review.
const WHOLE: usize = 100;

fn hostile_title(name: &str, size: usize) -> String {
    format!("hostile {size}: {name}")
}

fn hostile_case(title: &str) -> Option<Case> {
    let of = |size| {
        hostile::ALL
            .into_iter()
            .find(|(name, _)| hostile_title(name, size) == title)
            .map(|(_, make)| make(size))
    };
    let review = of(WHOLE / 2).or_else(|| of(WHOLE))?;
    Some(Case::usual(program, &review))
}

fn steps(figures: &mut Figures) {
    let case = Case::usual(program, &material::usual());
    let request = Case::parse(&case.body);
    let outcome = Ok(case.build(case.decide(&request)));
    allocations(figures, "step: parse", || Case::parse(&case.body));
    allocations(figures, "step: decide", || case.decide(&request));
    allocations(figures, "step: decide and edit", || case.build(case.decide(&request)));
    allocations(figures, "step: serialise", || Case::serialise(&request, &outcome));
}

fn allocations<T>(figures: &mut Figures, name: &str, work: impl Fn() -> T) {
    drop(work());
    let counted = allocation_counter::measure(|| drop(black_box(work())));
    for (what, count) in [
        ("allocations", counted.count_total),
        ("bytes allocated", counted.bytes_total),
        ("bytes at most", counted.bytes_max),
    ] {
        let count = f64::from(u32::try_from(count).expect("far below 4 GiB"));
        figures.add(format!("{name}, {what}"), "", "", &[count]);
    }
}

/// Instructions of one review: those of many less those of a few.
fn instructions(case: &str, (first, counted): (u32, u32)) -> f64 {
    let few = collected(case, first);
    let many = collected(case, first + counted);
    (many - few) / f64::from(counted)
}

fn collected(case: &str, times: u32) -> f64 {
    let program = env::current_exe().expect("the path of this program");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
    let output = valgrind.arg(case).arg(times.to_string()).output().expect("valgrind can be started");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    let line = text.lines().find_map(|line| line.split_once("Collected : "));
    line.and_then(|(_, count)| count.trim().parse().ok()).expect("valgrind says how many there were")
}

fn repeat(name: &str, times: u32) {
    let wholes = stages::wholes();
    let usual = || wholes.iter().find(|whole| title(whole) == name).map(|whole| whole.case(program));
    let case = usual().or_else(|| hostile_case(name)).expect("a case of that name");
    for _ in 0..times {
        drop(black_box(case.answer()));
    }
}

fn title(whole: &Whole) -> String {
    format!("{}: {}", whole.group, whole.name)
}
