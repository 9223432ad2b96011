//! The cases, in groups that run side by side.

mod again;
mod agents;
mod first_use;
mod hardened;
mod harms;
mod heard;
mod jobs;
mod probes;
mod restarts;
mod webhook;

use otel_webhook_testkit::runner::Group;

use crate::cluster::Cluster;

/// All groups; those that take longest begin first.
pub const GROUPS: &[Group<Cluster>] = &[
    &[("what_harms_a_pod_is_reported_by_kubelet", harms::reported_by_kubelet)],
    &[("no_span_of_a_minute_of_probes_arrives", probes::dropped)],
    &[("nodejs_is_copied_three_times_and_after_a_kill_to_the_same_files", again::nodejs)],
    &[("python_is_copied_three_times_and_after_a_kill_to_the_same_files", again::python)],
    &[("java_is_copied_three_times_and_after_a_kill_to_the_same_files", again::java)],
    &[("restricted_pods_run_with_their_agents", hardened::restricted_pods)],
    &[("an_extension_of_the_java_agent_marks_spans", hardened::extension)],
    &[("nodejs_runs_with_its_agent_by_both_deliveries", agents::nodejs)],
    &[("java_runs_with_its_agent_by_both_deliveries", agents::java)],
    &[("python_runs_with_its_agent_by_both_deliveries", agents::python)],
    &[("the_guides_commands_inject_the_first_service", first_use::first_service)],
];

/// Cases that disturb the whole node.
pub const LAST: Group<Cluster> = &[
    ("every_injected_pod_is_ready_again_after_its_sandbox_was_made_again", again::sandboxes),
    ("a_rolling_upgrade_costs_no_pod_its_agent", webhook::rolling_upgrade),
    ("no_pod_is_refused_while_the_webhook_is_killed", webhook::killed),
    ("a_drained_node_keeps_a_webhook", webhook::drained),
    ("the_webhook_goes_on_after_a_restart_of_the_api_server", webhook::api_server),
    ("restarts_stop_at_a_jvm_that_dies_of_its_agent", restarts::stopped_by_a_jvm_that_dies),
    ("a_changed_default_image_begins_with_a_canary_and_stops_where_it_crashes", restarts::default_image),
    ("a_job_with_go_completes", jobs::go),
    ("everything_comes_back_when_all_containers_of_the_node_end", again::all_containers),
    ("real_agents_are_heard_by_a_real_prometheus_and_a_wrong_endpoint_is_silent", heard::by_prometheus),
];
