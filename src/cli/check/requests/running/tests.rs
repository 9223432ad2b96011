use super::*;
use crate::cli::check::survey::tests::{Seen, seen};
use otel_webhook_fleet::injected::By;
use otel_webhook_inject::reason::Sign;

fn agent(instrumentation: &str) -> Agent {
    Agent {
        language: "java",
        by: By::Webhook,
        instrumentation: Some(instrumentation.into()),
        hash: Some("v1:0000000b".into()),
        image: Some("registry/java:2.9.0".into()),
    }
}

/// What is said of three pods that have the agent of `shop/order`.
fn said(seen: Seen) -> Option<String> {
    let mut survey = seen.pods(3).survey();
    let mut workload = survey.workloads.remove(0);
    workload.pods.agents.insert(agent("shop/order"), 3);
    outdated(&workload).map(|result| result.message)
}

#[test]
fn an_agent_of_another_instrumentation_is_outdated() {
    let next = |name: &str| {
        said(seen("Deployment", "shop", "order").asks("java", Reason::Injected).agent(agent(name), &[]))
    };
    assert_eq!(next("shop/order"), None);
    let expected = "3 of 3 pods were injected with java by shop/order; new pods use shop/other";
    assert_eq!(next("shop/other").as_deref(), Some(expected));
}

#[test]
fn an_agent_that_new_pods_do_not_get_is_outdated() {
    let order = || seen("Deployment", "shop", "order");
    assert_eq!(said(order()).as_deref(), Some("3 of 3 pods run with java; new pods get none"));
    // The template is not known: it is that of a pod that has the agent.
    let sign = Sign::Container("opentelemetry-auto-instrumentation-java".to_owned());
    assert_eq!(said(order().asks("java", Reason::AlreadyInjected { sign })), None);
}
