//! How long a review takes without a server around it: step by step for pods
//! of three sizes, and as a whole for whatever may make a difference.

#[path = "shared/program.rs"]
mod program;

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use otel_webhook_testkit::load::{
    material,
    stages::{self, Case},
};
use program::program;

fn steps(criterion: &mut Criterion) {
    let pods = [
        ("small", stages::small()),
        ("captured", material::usual()),
        ("100 containers", material::of_containers(100, 1)),
    ];
    for (name, review) in pods {
        let case = Case::usual(program, &review);
        let request = Case::parse(&case.body);
        let outcome = Ok(case.build(case.decide(&request)));
        let mut group = criterion.benchmark_group(format!("step, {name}"));
        group.bench_function("parse", |bencher| bencher.iter(|| Case::parse(black_box(&case.body))));
        group.bench_function("decide", |bencher| bencher.iter(|| case.decide(black_box(&request))));
        group.bench_function("edit", |bencher| {
            bencher.iter_batched(
                || case.decide(&request),
                |decision| case.build(decision),
                BatchSize::SmallInput,
            );
        });
        group.bench_function("serialise", |bencher| {
            bencher.iter(|| Case::serialise(&request, black_box(&outcome)));
        });
        group.bench_function("all", |bencher| bencher.iter(|| case.answer()));
    }
}

fn wholes(criterion: &mut Criterion) {
    for whole in stages::wholes() {
        let case = whole.case(program);
        let mut group = criterion.benchmark_group(whole.group);
        group.bench_function(&whole.name, |bencher| bencher.iter(|| case.answer()));
    }
}

criterion_group!(benches, steps, wholes);
criterion_main!(benches);
