//! Traces through services of several languages, and which of them are sampled.

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::received::Received;
use crate::service::{JAVA, LANGUAGES, Language, NODEJS, PYTHON};
use crate::stage::{Service, Stage, pod};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";
/// Of a trace that the propagators of a case do not look at.
const OTHER: &str = "11111111111111111111111111111111";

/// How many requests the ratio is taken of.
const REQUESTS: usize = 400;
const RATIO: f64 = 0.25;
/// Standard deviations: a correct sampler is outside of so many once in two million runs.
const BOUND: f64 = 5.0;

/// By `traceparent`.
pub fn tracecontext(cluster: &Cluster) {
    let headers = [format!("traceparent: 00-{TRACE}-{SPAN}-01"), format!("b3: {OTHER}-{SPAN}-1")];
    one_trace(cluster, "traces-tracecontext", "tracecontext", [JAVA, NODEJS, PYTHON], &headers);
}

/// By the header `b3`, in another order.
pub fn b3(cluster: &Cluster) {
    let headers = [format!("traceparent: 00-{OTHER}-{SPAN}-01"), format!("b3: {TRACE}-{SPAN}-1")];
    one_trace(cluster, "traces-b3", "b3", [PYTHON, JAVA, NODEJS], &headers);
}

/// Services that ask one another in this order are in the trace of the caller, each under the one before.
fn one_trace(
    cluster: &Cluster,
    namespace: &'static str,
    propagator: &str,
    order: [Language; 3],
    headers: &[String],
) {
    let stage = Stage::new(cluster, namespace);
    stage.instrumentation("default", json!({"propagators": [propagator]}));
    let [first, second, third] = order;
    let next = |language: Language| match language.name {
        name if name == first.name => Some(second.url("orders")),
        name if name == second.name => Some(third.url("orders")),
        _ => None,
    };
    let services = stage.create_each(&order, |language| {
        let next = next(language);
        let env: Vec<_> = next.iter().map(|next| ("NEXT", next.as_str())).collect();
        pod(language, "true", &env)
    });
    // The last first: when the others answer, there is somebody for them to ask.
    for service in services.iter().rev() {
        stage.ask(service, "orders");
    }
    let headers: Vec<_> = headers.iter().map(String::as_str).collect();
    stage.ask_with(&services[0], "orders", &headers);
    let parents = stage.collector.wait("one trace through all services", |received| {
        let mut parents = vec![SPAN.to_owned()];
        for language in order {
            let span = server_span(received, language, parents.last().expect("one at least"))?;
            // What the next service is a child of: the request of this one.
            parents.push(client_span(received, &span).unwrap_or(span));
        }
        Some(parents)
    });
    assert_eq!(parents.len(), 4);
    assert!(!stage.collector.received().spans.iter().any(|span| span.field("traceId") == OTHER));
}

/// The span of a service under this one, in the trace of the caller.
fn server_span(received: &Received, language: Language, parent: &str) -> Option<String> {
    let mut spans = received.served(language.name).into_iter();
    let span = spans.find(|span| span.field("traceId") == TRACE && span.field("parentSpanId") == parent)?;
    Some(span.field("spanId").to_owned())
}

/// The span of the request to the next service that this one made, however deep it is.
fn client_span(received: &Received, above: &str) -> Option<String> {
    let below: Vec<_> = received.spans.iter().filter(|span| span.field("parentSpanId") == above).collect();
    let client = below.iter().find(|span| span.value["kind"] == 3);
    client.map(|span| span.field("spanId").to_owned())
}

/// So many of the requests are sampled as the ratio says, within what chance allows.
pub fn ratio(cluster: &Cluster) {
    let stage = Stage::new(cluster, "traces-ratio");
    let sampler = json!({"type": "parentbased_traceidratio", "argument": RATIO.to_string()});
    let services = started(&stage, sampler);
    #[allow(clippy::cast_precision_loss, reason = "some hundreds")]
    let requests = REQUESTS as f64;
    let deviation = (requests * RATIO * (1.0 - RATIO)).sqrt();
    for service in &services {
        stage.ask_often(service, "counted", REQUESTS);
        // The caller of this one has sampled it. Spans are sent in their order.
        stage.ask_with(service, "last", &[&format!("traceparent: 00-{TRACE}-{SPAN}-01")]);
        let name = service.language.name;
        stage.collector.wait("the last request", |received| server_span(received, service.language, SPAN));
        let received = stage.collector.received();
        let count = received.served(name).iter().filter(|span| span.field("traceId") != TRACE).count();
        #[allow(clippy::cast_precision_loss, reason = "some hundreds")]
        let off = (count as f64 - requests * RATIO).abs() / deviation;
        assert!(off < BOUND, "{name}: {count} of {REQUESTS} are sampled, which are {off:.1} deviations");
    }
}

/// No span of any request, while all the rest arrives.
pub fn always_off(cluster: &Cluster) {
    let stage = Stage::new(cluster, "traces-off");
    let services = started(&stage, json!({"type": "always_off"}));
    for service in &services {
        let name = service.language.name;
        stage.ask_often(service, "counted", 20);
        let logs = |received: &Received| received.logs.iter().filter(|log| log.service() == name).count();
        stage.collector.wait("the log of all requests", |received| (logs(received) >= 20).then_some(()));
        // Spans would be sent more often than metrics.
        let before = stage.collector.received().exports(name);
        stage
            .collector
            .wait("later metrics", |received| (received.exports(name) >= before + 3).then_some(()));
    }
    let received = stage.collector.received();
    let spans = &received.spans;
    assert!(spans.is_empty(), "{} spans, the first of {}", spans.len(), spans[0].service());
}

/// Each language with a sampler, once it answers.
fn started(stage: &Stage<'_>, sampler: Value) -> Vec<Service> {
    stage.instrumentation("default", json!({"sampler": sampler, "propagators": ["tracecontext"]}));
    let services = stage.create_each(&LANGUAGES, |language| pod(language, "true", &[]));
    for service in &services {
        // The caller has not sampled it.
        stage.ask_with(service, "first", &[&format!("traceparent: 00-{OTHER}-{SPAN}-00")]);
    }
    services
}
