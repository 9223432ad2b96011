//! How long a review takes without a server around it: step by step for pods
//! of three sizes, and as a whole for whatever may make a difference.

use std::{hint::black_box, sync::Arc};

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use futures::FutureExt;
use otel_webhook::{
    admission::Admission,
    store::{Writer, cluster},
    telemetry::Metrics,
};
use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_inject::Settings;
use otel_webhook_testkit::load::{
    material,
    stages::{self, Answer, Case},
};
use serde_json::Value;

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
