//! Pods that are made to cost much: what comes of them, and that twice the input costs about twice as much.
//!
//! The cost is the bytes that are allocated, and the CPU time of this thread in the ratio of two runs.

use std::time::Duration;

use otel_webhook_inject::{
    Input, Outcome, build, decide, growth::MAX_POD_SIZE, pod::Pod, workload::MOST_LOOKUPS,
};
use otel_webhook_testkit::{
    known::Known,
    objects::{asking, instrumentation, limit_range, pod},
    surroundings::{Surroundings, with},
};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};

/// The languages that share one list of containers.
const SIX: [&str; 6] = ["java", "nodejs", "python", "dotnet", "apache-httpd", "sdk"];

fn containers(count: usize) -> Value {
    (0..count).map(|index| json!({"name": format!("c{index}"), "image": "a:1"})).collect()
}

fn listed(prefix: &str, count: usize) -> String {
    (0..count).map(|index| format!("{prefix}{index}")).collect::<Vec<_>>().join(",")
}

/// A pod that opts in to languages in the containers of a list.
fn listing(languages: &[&str], names: &str, containers: Value) -> Value {
    let asks: Vec<_> = languages.iter().map(|language| format!("inject-{language}")).collect();
    let mut annotations: Vec<_> = asks.iter().map(|ask| (ask.as_str(), "true")).collect();
    annotations.push(("container-names", names));
    pod(&annotations, json!({"containers": containers}))
}

/// Variables of a size together; an Instrumentation may have 1,024.
fn variables(size: usize) -> Value {
    let each = (size / 1000).max(100);
    (0..size / each)
        .map(|index| json!({"name": format!("V{index}"), "value": "v".repeat(each - 24)}))
        .collect()
}

/// A hostile pod of a size, and what is around it.
struct Case {
    name: &'static str,
    make: fn(usize) -> (Surroundings, Value),
    /// The size of the two runs that are compared is this and twice this.
    size: usize,
}

const CASES: &[Case] = &[
    Case {
        name: "unknown names in six languages",
        make: |size| (with(json!({})), listing(&SIX, &listed("n", size), containers(1))),
        size: 12_500,
    },
    Case {
        name: "unknown names in six languages, and 300 containers",
        make: |size| (with(json!({})), listing(&SIX, &listed("n", size), containers(300))),
        size: 12_500,
    },
    Case {
        name: "attribute annotations with 100 containers",
        make: |size| {
            let mut pod = listing(&["java", "sdk"], &listed("c", 100), containers(100));
            for index in 0..size {
                pod["metadata"]["annotations"][format!("resource.opentelemetry.io/a{index}")] =
                    json!("value");
            }
            (with(json!({})), pod)
        },
        size: 3250,
    },
    Case {
        name: "resources of a container",
        make: |size| {
            let amounts: Map<String, Value> =
                (0..size).map(|index| (format!("example.com/r{index}"), json!("1"))).collect();
            let pod = asking(&["java", "go"], json!({"resources": {"limits": amounts}}));
            let bounds =
                limit_range(&json!({"type": "Container", "max": {"cpu": "8"}, "default": {"cpu": "1"}}));
            (Surroundings::new([instrumentation("inst", json!({})), bounds]), pod)
        },
        size: 7500,
    },
    Case {
        name: "named containers",
        make: |size| (with(json!({})), listing(&SIX, &listed("c", size), containers(size))),
        size: 11_250,
    },
    Case {
        name: "owners",
        make: |size| {
            let mut pod = asking(&["java", "sdk"], json!({}));
            let owner = |index| json!({"apiVersion": "batch/v1", "kind": "Job", "name": format!("j{index}-1"), "uid": "u"});
            pod["metadata"]["ownerReferences"] = (0..size).map(owner).collect();
            (with(json!({})), pod)
        },
        size: 5000,
    },
    Case {
        name: "containers with an Instrumentation of 53 KB",
        make: |size| {
            let around = with(json!({"env": variables(53_000)}));
            (around, listing(&["java", "sdk"], &listed("c", size), containers(size)))
        },
        size: 40,
    },
    Case {
        name: "many containers",
        make: |size| (with(json!({})), listing(&["java", "sdk"], &listed("c", size), containers(size))),
        size: 2400,
    },
    Case {
        name: "an Instrumentation of up to 1.3 MB",
        make: |size| (with(json!({"env": variables(size)})), asking(&["java", "sdk"], json!({}))),
        size: 650_000,
    },
];

impl Case {
    fn run(&self, size: usize) -> Outcome {
        let (around, pod) = (self.make)(size);
        review(&around, &Known::of(&around.objects, &around.images), &pod.to_string())
    }
}

/// A review of a pod's JSON, from the parser to the warnings.
fn review(around: &Surroundings, known: &Known, pod: &str) -> Outcome {
    let pod = Pod::parse(pod).expect("a pod");
    let Surroundings { namespace, settings, .. } = around;
    let input = Input { pod: &pod, namespace, catalogue: &known.catalogue, settings };
    let outcome = build(decide(input), &known.owners);
    drop(outcome.warnings());
    outcome
}

fn codes(case: &str, size: usize) -> Vec<String> {
    let case = CASES.iter().find(|one| one.name == case).expect("a case of that name");
    let (around, pod) = (case.make)(size);
    around.inject(&pod).codes()
}

/// The bytes that a review allocates, and the CPU time of this thread that it takes, at best of a few.
fn cost(case: &Case, size: usize) -> (u64, Duration) {
    let (around, pod) = (case.make)(size);
    let known = Known::of(&around.objects, &around.images);
    let text = pod.to_string();
    let mut best = Duration::MAX;
    let mut bytes = 0;
    for _ in 0..3 {
        let before = cpu_time();
        bytes = allocation_counter::measure(|| drop(review(&around, &known, &text))).bytes_total;
        best = best.min(cpu_time().saturating_sub(before));
    }
    (bytes, best)
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("it is not negative")
}

/// Quadratic work would cost four times as much.
#[test]
fn twice_the_input_costs_about_twice_as_much() {
    for case in CASES {
        // Other tests at the same time make the CPU slower: one of a few measurements is enough.
        let ratio = |(less, more): (Duration, Duration)| more.as_secs_f64() / less.as_secs_f64();
        let mut ratios = Vec::new();
        while ratios.iter().all(|ratio| *ratio > 3.0) {
            let ((bytes, time), (more_bytes, more_time)) = (cost(case, case.size), cost(case, 2 * case.size));
            let most_bytes = bytes * 9 / 4 + 4096;
            assert!(more_bytes <= most_bytes, "{}: {bytes} and {more_bytes} bytes", case.name);
            ratios.push(ratio((time, more_time)));
            assert!(ratios.len() < 5, "{}: {ratios:?} times the CPU time", case.name);
        }
    }
}

/// The largest inputs allocate little more than what they say.
#[test]
fn no_case_needs_much_memory() {
    for case in CASES {
        let (around, pod) = (case.make)(2 * case.size);
        let known = Known::of(&around.objects, &around.images);
        let text = pod.to_string();
        let counted = allocation_counter::measure(|| drop(review(&around, &known, &text)));
        let most = 64 * 1024 * 1024;
        assert!(counted.bytes_max <= most, "{}: {} bytes", case.name, counted.bytes_max);
    }
}

#[test]
fn small_versions_have_the_usual_outcome() {
    let of_each = |outcome: &str| SIX.map(|language| format!("{language}/{outcome}")).to_vec();
    let unknown: Vec<_> = SIX
        .iter()
        .flat_map(|language| (0..2).map(move |at| format!("{language}/n{at}: ContainerNotFound")))
        .collect();
    assert_eq!(codes("unknown names in six languages", 2), unknown);
    assert_eq!(codes("unknown names in six languages, and 300 containers", 2), unknown);
    assert_eq!(codes("named containers", 1)[..5], of_each("c0: Injected")[..5]);
    assert_eq!(codes("resources of a container", 2), ["java/app: Injected", "go/app: Injected"]);
    assert_eq!(codes("owners", 2), ["java/app: Injected", "sdk/app: NothingToAdd"]);
    for case in ["containers with an Instrumentation of 53 KB", "many containers"] {
        let expected =
            ["java/c0: Injected", "java/c1: Injected", "sdk/c0: NothingToAdd", "sdk/c1: NothingToAdd"];
        assert_eq!(codes(case, 2), expected, "{case}");
    }
    assert_eq!(
        codes("an Instrumentation of up to 1.3 MB", 1000),
        ["java/app: Injected", "sdk/app: NothingToAdd"]
    );
}

#[test]
fn attributes_of_annotations_are_in_every_container() {
    let case = CASES.iter().find(|one| one.name.starts_with("attribute annotations")).expect("it is there");
    let (around, pod) = (case.make)(2);
    let injected = around.inject(&pod);
    for container in ["c0", "c99"] {
        assert_eq!(injected.attribute(container, "a0"), Some("value"));
        assert_eq!(injected.attribute(container, "a1"), Some("value"));
        assert_eq!(injected.attribute(container, "k8s.container.name"), Some(container));
    }
}

#[test]
fn only_the_first_of_many_unknown_names_have_a_finding_each() {
    let outcome = CASES[0].run(50_000);
    assert_eq!(outcome.findings.len(), 6 * 11);
    assert_eq!(
        outcome.findings[10].to_string(),
        "java: 49990 more named containers not found; the pod has: c0"
    );
    let warnings = outcome.warnings();
    assert_eq!(warnings.len(), 6);
    assert_eq!(warnings[0], "java in n0: container \"n0\" not found; the pod has: c0 (and 49999 more)");
    let many = CASES[1].run(50_000).findings[0].to_string();
    assert!(many.ends_with("c18, c19, and 280 more"), "{many}");
}

#[test]
fn few_of_many_owners_are_looked_up() {
    let (around, pod) = (CASES[5].make)(10_000);
    let (text, known) = (pod.to_string(), Known::of(&around.objects, &around.images));
    let pod = Pod::parse(&text).expect("a pod");
    let input = Input {
        pod: &pod,
        namespace: &around.namespace,
        catalogue: &known.catalogue,
        settings: &around.settings,
    };
    assert_eq!(decide(input).queries().len(), MOST_LOOKUPS);
}

#[test]
fn a_pod_that_is_accepted_without_injection_is_not_too_large_with_it() {
    for (name, size, expected) in [
        ("containers with an Instrumentation of 53 KB", 40, "java: PodTooLarge"),
        ("many containers", 2400, "java: PodTooLarge"),
        ("an Instrumentation of up to 1.3 MB", 1_300_000, "java: PodTooLarge"),
        ("attribute annotations with 100 containers", 6500, "java: PodTooLarge"),
        ("named containers", 30_000, "java: PodTooLarge"),
    ] {
        let case = CASES.iter().find(|one| one.name == name).expect("a case of that name");
        let (around, pod) = (case.make)(size);
        let before = pod.to_string().len();
        let injected = around.inject(&pod);
        assert_eq!(injected.codes()[0], expected, "{name}");
        let after = injected.pod.to_string().len();
        assert!(after <= before.max(MAX_POD_SIZE), "{name}: {after} of {before}");
        assert!(after - before <= (4 * before).max(256 * 1024), "{name}: {after} of {before}");
    }
}

#[test]
fn d33_only_the_language_that_makes_the_pod_too_large_is_skipped() {
    let mut around = with(json!({"java": {"env": variables(10_000)}, "python": {"env": variables(300_000)}}));
    let ask = asking(&["java", "python", "sdk"], json!({}));
    let injected = around.inject(&ask);
    assert_eq!(injected.codes(), ["java/app: Injected", "python: PodTooLarge", "sdk/app: NothingToAdd"]);
    let said = injected.outcome.findings[1].to_string();
    assert_eq!(
        said,
        "python: the pod has 1Ki, and more than 256Ki would be added; the maximum is 4 times the pod, or 256Ki; \
         name fewer containers, or shorten the variables and resource attributes of the Instrumentation and of \
         the pod's annotations"
    );
    assert!(injected.env("app").iter().all(|one| one["name"] != "V299"));
    around.settings.max_pod_size = 8 * 1024;
    let injected = around.inject(&ask);
    assert_eq!(injected.codes(), ["java: PodTooLarge", "python: PodTooLarge", "sdk/app: Injected"]);
    let said = injected.outcome.findings[0].to_string();
    assert!(said.contains("the pod has 1Ki, and would have more than 8Ki (--max-pod-size); name"), "{said}");
}

#[test]
fn d33_a_pod_that_is_too_large_already_is_not_changed() {
    let mut around = with(json!({}));
    around.settings.stamp = true;
    around.settings.max_pod_size = 1000;
    let env = json!([{"name": "LONG", "value": "v".repeat(1000)}]);
    let injected = around.inject(&asking(&["java"], json!({"env": env})));
    assert_eq!(injected.codes(), ["java: PodTooLarge"]);
    assert!(injected.is_unchanged(), "{}", injected.outcome.patch);
}

#[test]
fn d33_the_size_of_the_injected_pod_stays_below_the_maximum() {
    let names: Vec<String> = (0..200).map(|index| format!("app-{index}")).collect();
    let containers: Vec<Value> = names.iter().map(|name| json!({"name": name, "image": "a:1"})).collect();
    let list = names.join(",");
    let ask = pod(&[("inject-java", "true"), ("container-names", &list)], json!({"containers": containers}));
    let mut around = with(json!({}));
    around.settings.stamp = true;
    let whole = around.inject(&ask).pod.to_string().len();
    let mut fits = Vec::new();
    for percent in [80, 90, 105, 120] {
        around.settings.max_pod_size = whole * percent / 100;
        let injected = around.inject(&ask);
        let size = injected.pod.to_string().len();
        assert!(size <= around.settings.max_pod_size, "{size} at {percent} %");
        fits.push(injected.codes().contains(&"java/app-0: Injected".to_owned()));
    }
    assert_eq!(fits, [false, false, true, true]);
}
