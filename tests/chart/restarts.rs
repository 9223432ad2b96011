//! Restarts by consent: off unless they are switched on, with flags, roles and names of their own.

use std::collections::BTreeSet;

use clap::CommandFactory as _;
use otel_webhook::cli::Cli;
use otel_webhook_testkit::objects::items;
use serde_json::{Value, json};

use crate::{
    controller::{named, written},
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

#[test]
fn the_role_is_for_the_config_map_of_the_release() {
    let default = objects_with(&[SWITCHED_ON]);
    for (objects, fullname) in [
        (&*default, format!("{RELEASE}-otel-webhook")),
        (objects_of(&values("everything")), RELEASE.to_owned()),
    ] {
        let config_map = format!("{fullname}-restarts");
        assert_eq!(flags(objects)[1], format!("--restarts-config-map={config_map}"));
        let role = named(objects, "Role", &format!("{fullname}-controller-restarts"));
        let rules = items(&role["rules"]).map(|rule| (rule["verbs"].clone(), rule["resourceNames"].clone()));
        let expected = [(json!(["create"]), Value::Null), (json!(["get", "update"]), json!([config_map]))];
        assert_eq!(rules.collect::<Vec<_>>(), expected, "{fullname}");
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
