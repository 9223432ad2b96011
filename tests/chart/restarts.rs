//! Restarts by consent: off unless they are switched on, with their own flags, roles and names.

use std::collections::BTreeSet;

use clap::CommandFactory as _;
use otel_webhook::Cli;
use serde_json::Value;

use crate::{
    controller::written,
    helm::{RELEASE, args_of, objects_of, objects_with, values},
};

const SWITCHED_ON: &str = "controller.restarts.enabled=true";

fn flags(objects: &[Value]) -> Vec<String> {
    args_of(objects, "controller").into_iter().filter(|arg| arg.starts_with("--restart")).collect()
}

#[test]
fn there_is_nothing_of_them_by_default() {
    let objects = objects_of(&values("default"));
    let names = objects.iter().filter_map(|object| object["metadata"]["name"].as_str());
    let left: Vec<_> = names.filter(|name| name.ends_with("-restarts")).collect();
    assert!(left.is_empty(), "{left:?}");
    let more = objects_with(&[SWITCHED_ON]).len() - objects_with(&[]).len();
    assert_eq!(more, 6, "roles with bindings, policy with binding");
}

/// Of the chart and of the program, so that both documents are right.
#[test]
fn the_defaults_are_those_of_the_program() {
    let command = Cli::command();
    let controller = command.find_subcommand("controller").expect("a subcommand");
    let rendered = flags(&objects_with(&[SWITCHED_ON]));
    let pace = rendered.iter().filter_map(|flag| flag.strip_prefix("--")?.split_once('='));
    let pace: Vec<_> = pace.filter(|(name, _)| *name != "restarts-config-map").collect();
    assert_eq!(pace.len(), 6, "{rendered:?}");
    for (name, value) in pace {
        let flag = controller.get_arguments().find(|arg| arg.get_long() == Some(name)).expect(name);
        assert_eq!(flag.get_default_values(), [value], "{name}");
    }
}

/// The rights of the controller without restarts stay as they are.
#[test]
fn only_their_roles_let_the_controller_change_workloads() {
    let objects = objects_of(&values("everything"));
    let name = format!("{RELEASE}-controller");
    assert_eq!(written(objects, &name), BTreeSet::from(["events", "instrumentations/status", "leases"]));
    let restarts = written(objects, &format!("{name}-restarts"));
    let expected = ["configmaps", "daemonsets", "deployments", "pods/eviction", "statefulsets"];
    assert_eq!(restarts, BTreeSet::from(expected));
}

/// Policies that restrict the operations port and all traffic of the controller let it ask the replicas of the webhook, at
/// the port that its Service of metrics has.
#[test]
fn network_policies_let_the_controller_ask_the_replicas_of_the_webhook() {
    let restricted = [
        SWITCHED_ON,
        "networkPolicy.enabled=true",
        "networkPolicy.egress.enabled=true",
        "networkPolicy.adminFrom[0].podSelector.matchLabels.app=prometheus",
    ];
    let objects = objects_with(&restricted);
    let service = args_of(&objects, "controller");
    let service = service.iter().find_map(|flag| flag.strip_prefix("--webhook-service=")).expect("the flag");
    let is_service = |object: &&Value| object["kind"] == "Service" && object["metadata"]["name"] == service;
    let labels = &objects.iter().find(is_service).expect("the Service")["spec"]["selector"];
    let policy = |component: &str| {
        let is_of = |object: &&Value| {
            let labels = &object["spec"]["podSelector"]["matchLabels"];
            object["kind"] == "NetworkPolicy" && labels["app.kubernetes.io/component"] == component
        };
        objects.iter().find(is_of).unwrap_or_else(|| panic!("no NetworkPolicy of the {component}"))
    };
    let (webhook, controller) = (policy("webhook"), policy("controller"));
    let has = |rules: &Value, peers: &str, labels: &Value| {
        let rules = rules.as_array().into_iter().flatten();
        { rules }.any(|rule| rule[peers][0]["podSelector"]["matchLabels"] == *labels)
    };
    assert!(has(&controller["spec"]["egress"], "to", labels), "{controller}");
    let own = &controller["spec"]["podSelector"]["matchLabels"];
    assert!(has(&webhook["spec"]["ingress"], "from", own), "{webhook}");
    let without = objects_with(&restricted[1..]);
    let without = without.iter().filter(|object| object["kind"] == "NetworkPolicy");
    let without: Vec<_> = without.filter(|policy| policy["spec"].to_string().contains("\"to\"")).collect();
    assert!(without.is_empty(), "only restarts need it: {without:?}");
}
