//! The permissions of the webhook and of the controller, as `otel-webhook rbac` prints them.

use serde_json::Value;

use super::{beginning, code, command_line, table};
use crate::cli;

/// The lists of rules, and what they are for.
const LISTS: [(&str, &str, &str); 11] = [
    ("cluster", "Webhook", "ClusterRole, in every certificate mode."),
    (
        "nodes",
        "Webhook with nodes",
        "ClusterRole, with `--watch-nodes` or `--delivery=auto` (`injection.watchNodes`, `injection.delivery`).",
    ),
    (
        "namespace",
        "Webhook, in its namespace",
        "Role in the namespace of the webhook, with `--lease` (`controller.enabled`). `LEASE` stands for the controller's Lease, \
         of which only the annotation `otel-webhook/paused` is used.",
    ),
    (
        "managed-cluster",
        "Managed certificate",
        "ClusterRole, with `--tls-managed` (`certificates.mode=managed`). `CONFIGURATION` stands for the two webhook configurations.",
    ),
    (
        "managed-namespace",
        "Managed certificate, in its namespace",
        "Role in the namespace of the webhook, with `--tls-managed`. `SECRET` stands for its Secret.",
    ),
    (
        "managed-conversion",
        "Managed certificate with conversion",
        "ClusterRole, with `--conversion-service` (both versions in `crds.served`).",
    ),
    (
        "controller",
        "Controller",
        "ClusterRole of the controller's own ServiceAccount (`controller.enabled`).",
    ),
    (
        "controller-namespace",
        "Controller, in its namespace",
        "Role in the namespace of the controller. `LEASE` stands for its Lease.",
    ),
    (
        "controller-mistakes",
        "Controller that reports mistakes",
        "ClusterRole, with `--mistakes` (`controller.mistakes.enabled`).",
    ),
    (
        "controller-restarts",
        "Controller with restarts",
        "ClusterRole, with `--restarts` (`controller.restarts.enabled`).",
    ),
    (
        "controller-restarts-namespace",
        "Controller with restarts, in its namespace",
        "Role in the namespace of the controller, with `--restarts`. `CONFIGMAP` stands for its ConfigMap.",
    ),
];

pub fn page() -> String {
    let purpose = "Every permission of the webhook and of the controller, as `otel-webhook rbac` prints them and the \
                   chart creates them. The [threat model](../concepts/threat-model.md) says what each makes possible.";
    let mut text = beginning("Permissions (RBAC)", purpose);
    for (list, heading, about) in LISTS {
        text += &format!("\n## {heading}\n\n{about}\n\n");
        text += &table(["API group", "resources", "names", "verbs"], rules(list).iter().map(row));
    }
    text
}

fn rules(list: &str) -> Vec<Value> {
    let run = cli::succeed(&["rbac", "--rules", list], "");
    serde_saphyr::from_str(&run.out).expect("YAML")
}

fn row(rule: &Value) -> [String; 4] {
    let cell = |field: &str| {
        let values = rule[field].as_array().into_iter().flatten().filter_map(Value::as_str);
        let values: Vec<_> =
            values.map(|value| if value.is_empty() { "core".to_owned() } else { code(value) }).collect();
        values.join(", ")
    };
    ["apiGroups", "resources", "resourceNames", "verbs"].map(cell)
}

#[test]
fn every_list_of_rules_is_in_the_reference() {
    let command = command_line::command();
    let rbac = command.find_subcommand("rbac").expect("the subcommand");
    let rules = rbac.get_arguments().find(|argument| argument.get_long() == Some("rules")).expect("the flag");
    let known: Vec<_> = rules.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    assert_eq!(LISTS.map(|list| list.0.to_owned()).to_vec(), known);
}
