//! The cases, in groups that run side by side.

mod again;
mod agents;
mod first_use;

use otel_webhook_testkit::runner::Group;

use crate::cluster::Cluster;

/// All groups; those that take longest begin first.
pub const GROUPS: &[Group<Cluster>] = &[
    &[("nodejs_is_copied_three_times_and_after_a_kill_to_the_same_files", again::nodejs)],
    &[("python_is_copied_three_times_and_after_a_kill_to_the_same_files", again::python)],
    &[("java_is_copied_three_times_and_after_a_kill_to_the_same_files", again::java)],
    &[("nodejs_runs_with_its_agent_by_both_deliveries", agents::nodejs)],
    &[("java_runs_with_its_agent_by_both_deliveries", agents::java)],
    &[("python_runs_with_its_agent_by_both_deliveries", agents::python)],
    &[("the_guides_commands_inject_the_first_service", first_use::first_service)],
];

/// Cases that disturb the whole node.
pub const LAST: Group<Cluster> = &[
    ("every_injected_pod_is_ready_again_after_its_sandbox_was_made_again", again::sandboxes),
    ("everything_comes_back_when_all_containers_of_the_node_end", again::all_containers),
];
