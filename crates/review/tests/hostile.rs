//! Reviews that are made to cost much: reading and answering them costs in proportion to their size, and
//! what a response says is bounded.

use otel_webhook_inject::{Input, Outcome};
use otel_webhook_inject::{build, decide};
use otel_webhook_review::{
    AdmissionRequest, AdmissionResponse, LONGEST_SUMMARY, LONGEST_WARNING, MOST_WARNINGS,
};
use otel_webhook_testkit::{
    known::Known,
    objects::pod,
    surroundings::{Surroundings, with},
};
use serde_json::{Value, json};

const SIX: [&str; 6] = ["java", "nodejs", "python", "dotnet", "apache-httpd", "sdk"];

/// The review of a pod that opts in to six languages in the containers of a list.
fn review(names: &str, containers: usize, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let asks = SIX.map(|language| format!("inject-{language}"));
    let mut annotations: Vec<_> = asks.iter().map(|ask| (ask.as_str(), "true")).collect();
    annotations.push(("container-names", names));
    let containers: Value =
        (0..containers).map(|index| json!({"name": format!("c{index}"), "image": "a:1"})).collect();
    let mut pod = pod(&annotations, json!({"containers": containers}));
    change(&mut pod);
    let request = json!({"uid": "u", "operation": "CREATE", "namespace": "shop",
        "resource": {"group": "", "version": "v1", "resource": "pods"}, "object": pod});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
        .to_string()
        .into_bytes()
}

fn listed(prefix: &str, count: usize) -> String {
    (0..count).map(|index| format!("{prefix}{index}")).collect::<Vec<_>>().join(",")
}

fn outcome(around: &Surroundings, known: &Known, request: &AdmissionRequest<'_>) -> Outcome {
    let pod = request.pod.as_ref().expect("a pod");
    let settings = &around.settings;
    let input = Input { pod, namespace: &request.namespace, catalogue: &known.catalogue, settings };
    build(decide(input), &known.owners)
}

/// The response to a review, the length of its summary, and the bytes that are allocated for reading and
/// answering, without the decision.
fn answered(body: &[u8]) -> (Value, usize, u64) {
    let around = with(json!({}));
    let known = Known::of(&around.objects, &around.images);
    let parse = || AdmissionRequest::parse(body).expect("a review");
    let read = allocation_counter::measure(|| drop(parse())).bytes_total;
    let request = parse();
    let outcome = Ok(outcome(&around, &known, &request));
    let mut length = 0;
    let mut text = Vec::new();
    let written = allocation_counter::measure(|| {
        let response = AdmissionResponse::of(&request.uid, &outcome);
        length = response.summary().map_or(0, str::len);
        text = response.write();
    });
    let response: Value = serde_json::from_slice(&text).expect("JSON");
    (response["response"].clone(), length, read + written.bytes_total)
}

fn hostile(size: usize) -> [(&'static str, Vec<u8>); 5] {
    let annotate = |pod: &mut Value| {
        for index in 0..size {
            pod["metadata"]["annotations"][format!("resource.opentelemetry.io/a{index}")] = json!("value");
        }
    };
    let own = |pod: &mut Value| {
        let owner = |index| json!({"kind": "Job", "name": format!("j{index}"), "uid": "u"});
        pod["metadata"]["ownerReferences"] = (0..size).map(owner).collect();
    };
    let limit = |pod: &mut Value| {
        let limits: serde_json::Map<String, Value> =
            (0..size).map(|index| (format!("example.com/r{index}"), json!("1"))).collect();
        pod["spec"]["containers"][0]["resources"] = json!({"limits": limits});
    };
    [
        ("unknown names", review(&listed("n", size), 1, |_| ())),
        ("named containers", review(&listed("c", size), size, |_| ())),
        ("attribute annotations", review("c0", 1, annotate)),
        ("owners", review("c0", 1, own)),
        ("resources", review("c0", 1, limit)),
    ]
}

#[test]
fn reading_and_answering_twice_the_input_allocates_about_twice_as_much() {
    for ((name, body), (_, larger)) in hostile(5000).iter().zip(&hostile(10_000)) {
        let ((_, _, bytes), (_, _, more)) = (answered(body), answered(larger));
        assert!(more <= bytes * 9 / 4 + 65_536, "{name}: {bytes} and {more} bytes");
    }
}

#[test]
fn what_a_response_says_is_bounded() {
    for (name, body) in hostile(20_000) {
        let (response, summary, _) = answered(&body);
        assert_eq!(response["allowed"], true, "{name}");
        let warnings = response["warnings"].as_array().into_iter().flatten();
        let lengths: Vec<usize> = warnings.map(|warning| warning.as_str().expect("text").len()).collect();
        assert!(lengths.iter().all(|length| *length <= LONGEST_WARNING), "{name}: {lengths:?}");
        assert!(lengths.iter().sum::<usize>() <= MOST_WARNINGS, "{name}: {lengths:?}");
        assert!(summary <= LONGEST_SUMMARY, "{name}: {summary}");
        assert_eq!(response["auditAnnotations"]["injection"].as_str().map(str::len), Some(summary), "{name}");
    }
}

#[test]
fn unknown_names_are_counted_in_warnings_and_the_audit_annotation() {
    let (response, ..) = answered(&review(&listed("n", 50_000), 1, |_| ()));
    let java = "otel-webhook: java in n0: container \"n0\" not found; the pod has: c0 (and 49999 more)";
    assert_eq!(response["warnings"][0], java);
    let audit = response["auditAnnotations"]["injection"].as_str().expect("it opted in");
    assert!(audit.starts_with("java/n0=ContainerNotFound java/n1=ContainerNotFound "), "{audit}");
    assert!(audit.contains(" java=ContainerNotFound(49990) nodejs/n0="), "{audit}");
}

#[test]
fn a_name_of_a_megabyte_is_truncated() {
    let long = "n".repeat(1_000_000);
    let (response, summary, _) = answered(&review(&long, 1, |_| ()));
    assert!(summary < 2000, "{summary}");
    let warning = response["warnings"][0].as_str().expect("a warning");
    assert!(warning.len() <= LONGEST_WARNING && warning.ends_with('…'), "{warning}");
}
