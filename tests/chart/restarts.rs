//! Restarts by consent: off unless they are switched on, with flags, roles and names of their own.

use std::collections::BTreeSet;

use clap::CommandFactory as _;
use otel_webhook::cli::Cli;
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
