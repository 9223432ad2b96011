//! The cases, on several clusters side by side. Each installs a release of its
//! own and takes it away again.

mod cert_manager;
mod crd;
mod managed;
mod mode;
mod readme;
mod release;
pub mod upgrade;

use otel_webhook_testkit::runner::Group;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::pod::Ports;

/// Those that take longest begin first.
pub const ALL: Group<Cluster> = &[
    ("helm3_installs_upgrades_rolls_back_and_uninstalls", managed::helm3),
    ("helm4_installs_upgrades_rolls_back_and_uninstalls", managed::helm4),
    ("the_controller_leads_and_tells_what_runs", release::controller),
    ("a_test_of_the_release_asks_the_webhook", managed::tested),
    ("the_webhooks_account_changes_the_bundle_and_nothing_else", managed::bundle_alone),
    ("explain_is_certain_for_a_developer", release::developer),
    ("own_certificates_are_used_as_they_are", release::own_certificates),
    ("cert_manager_issues_and_renews_and_no_pod_is_lost", cert_manager::issues_and_renews),
    ("the_mode_of_certificates_is_changed_by_a_second_release", mode::changed),
    ("a_default_instrumentation_comes_with_the_release", release::default_instrumentation),
    ("a_crd_of_another_release_is_left_alone", crd::of_another_release),
    ("a_crd_of_another_release_is_taken_over_when_told", crd::taken_over),
    ("the_readmes_commands_install_upgrade_and_uninstall", readme::commands),
    ("what_is_rendered_is_taken_by_the_api_server", release::rendered),
];

/// Those that need an earlier version.
pub const UPGRADES: Group<Cluster> =
    &[("an_upgrade_and_a_downgrade_under_load_lose_no_pod", upgrade::there_and_back)];

/// Values for a webhook next to the API server, and some of the case's own.
fn values(ports: Ports, more: Value) -> Value {
    let mut values = json!({"registration": {"url": ports.url()}});
    merge(&mut values, more);
    values
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}
