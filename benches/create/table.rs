//! The table of a mode.

use otel_webhook_testkit::load::figures::Figure;

use crate::{
    measure::{Measured, Mode, of},
    ways::Webhook,
};

/// What a mode is called.
pub fn name(mode: Mode) -> String {
    let clients = if mode.clients == 1 { "1 client".to_owned() } else { format!("{} clients", mode.clients) };
    format!("{clients}, {}", if mode.dry_run { "dry run" } else { "created" })
}

/// Prints what was measured, a row for each way. Latencies are what a way adds to the one without a webhook.
pub fn print(mode: Mode, measured: &[Measured]) {
    println!("\n{}:\n", name(mode));
    println!(
        "| way | p50 | added p50 (quartiles of the turns) | added p90 | added p99 | pods/s \
         | CPU of a pod: API server | etcd | webhook | reviews of a pod |"
    );
    println!("|---|---:|---|---:|---:|---:|---:|---:|---:|---:|");
    for one in measured {
        let base = of(measured, one.way.base);
        let [added, p90, p99] = if one.way.key == one.way.base {
            [const { String::new() }; 3]
        } else {
            let (low, high) = quartiles(&one.added_by_turn(base));
            let [p90, p99] = [900, 990].map(|per_mille| format!("{:.2} ms", one.added(base, per_mille)));
            [format!("{:.2} ms ({low:.2} to {high:.2})", one.added(base, 500)), p90, p99]
        };
        let webhook = if one.way.webhook == Webhook::None { String::new() } else { microseconds(one.cpu(2)) };
        println!(
            "| {} | {:.2} ms | {added} | {p90} | {p99} | {:.0} | {} | {} | {webhook} | {:.2} |",
            one.way.name,
            one.latency(500),
            one.rate(),
            microseconds(one.cpu(0)),
            microseconds(one.cpu(1)),
            one.reviews,
        );
    }
}

fn microseconds(time: f64) -> String {
    format!("{time:.0} µs")
}

/// The values that a quarter and three quarters of the turns do not exceed.
fn quartiles(turns: &[f64]) -> (f64, f64) {
    let mut sorted = turns.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (lower, upper) = sorted.split_at(sorted.len() / 2);
    (Figure::of(lower).median, Figure::of(upper).median)
}
