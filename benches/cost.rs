//! What a review costs in allocations and in instructions: counted, not
//! timed, so that the figures are the same on a busy machine.
//!
//! Instructions are counted by valgrind, where it is there.

use std::{collections::BTreeMap, env, hint::black_box, path::Path, process::Command, sync::Arc};

use futures::FutureExt;
use otel_webhook::{
    admission::Admission,
    store::{Writer, cluster},
    telemetry::Metrics,
};
use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_inject::Settings;
use otel_webhook_testkit::load::{
    figures::Figures,
    material,
    stages::{self, Answer, Case, Whole},
};
use serde_json::Value;

/// Reviews before the counting: for what is made once.
const FIRST: u32 = 20;
/// Reviews that are counted.
const COUNTED: u32 = 100;

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
            let count = instructions(&name);
            figures.add(format!("{name}, instructions"), "", "", &[count]);
            instructions_of.insert(name, count);
        }
    }
    for (what, goal, many, few) in RATIOS {
        if let (Some(many), Some(few)) = (instructions_of.get(many), instructions_of.get(few)) {
            figures.add(format!("{what}, instructions"), "times", goal, &[many / few]);
        }
    }
    figures.finish("cost", Path::new(env!("CARGO_TARGET_TMPDIR")));
}

/// Cases of which one has to cost about as many times more than another as it is larger.
const RATIOS: [(&str, &str, &str, &str); 5] = [
    (
        "10,000 Instrumentations against 1, by name",
        "≤ 1.1",
        "Instrumentations, by name: 10000",
        "Instrumentations, by name: 1",
    ),
    (
        "10,000 Instrumentations against 1, by selector",
        "≤ 1.1",
        "Instrumentations, by selector: 10000",
        "Instrumentations, by selector: 1",
    ),
    (
        "10,000 Instrumentations against 1, one a namespace",
        "≤ 1.1",
        "Instrumentations, one a namespace: 10000",
        "Instrumentations, one a namespace: 1",
    ),
    (
        "100 containers against 50, one injected",
        "≤ 2.1",
        "pod: 100 containers, 1 injected",
        "pod: 50 containers, 1 injected",
    ),
    (
        "100 containers against 50, all injected",
        "≤ 2.1",
        "pod: 100 containers, 100 injected",
        "pod: 50 containers, 50 injected",
    ),
];

/// The webhook's own handling of reviews, without a server around it.
fn program(objects: &[Value], settings: Settings) -> Answer {
    let mut writer = Writer::new(DefaultImages::default());
    for object in objects {
        writer.put(object);
    }
    writer.publish();
    let admission = Admission::new(writer.store(), settings, None, Arc::new(Metrics::new()));
    Box::new(move |body| {
        let answer = admission.mutate_pod(body, cluster::deadline()).now_or_never();
        answer.expect("nothing to wait for without a cluster").expect("a review")
    })
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
fn instructions(case: &str) -> f64 {
    let few = collected(case, FIRST);
    let many = collected(case, FIRST + COUNTED);
    (many - few) / f64::from(COUNTED)
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
    let case = wholes.iter().find(|whole| title(whole) == name).expect("a case of that name").case(program);
    for _ in 0..times {
        drop(black_box(case.answer()));
    }
}

fn title(whole: &Whole) -> String {
    format!("{}: {}", whole.group, whole.name)
}
