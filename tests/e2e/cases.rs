//! The cases, in groups that run side by side.
//!
//! A case belongs to `OWN_WEBHOOK` if it sends pods to the cluster's own webhook, stops it, changes its flags
//! or its registration, reads its metrics, or changes the CRD. The other groups have webhooks, namespaces or
//! their own clusters; pods for other webhooks have the label of `registration::ELSEWHERE`.

mod aftermath;
mod bounded;
mod brown_out;
mod check;
mod controller_faults;
mod counted;
mod declarative;
mod documents;
mod every_field;
mod explain;
mod extremes;
mod failing;
mod failure;
mod first_case;
mod fleet;
mod generated;
mod heard;
mod hostile;
mod instrumentations;
mod managed;
mod migration;
mod mistakes;
mod nodes;
mod opt_in;
mod outages;
mod owners;
mod paused;
mod reasons;
mod restart_policy;
mod restarts;
mod reviews;
mod status;
mod tenants;
mod trace;
mod versions;

use crate::cluster::Cluster;
use otel_webhook_testkit::runner::Group;

/// All groups; those that take longest begin first.
pub const GROUPS: &[Group<Cluster>] =
    &[ROTATIONS, OWN_WEBHOOK, OWN_CLUSTERS, RESTARTS, CONTROLLER, EXTREMES, CHANGES, MANAGED, GENERATED];

/// Cases about the cluster's own webhook.
const OWN_WEBHOOK: Group<Cluster> = &[
    ("deleting_the_manifests_by_the_selector_keeps_the_crd", documents::deleted_but_for_the_crd),
    ("the_first_case_injects_a_deployments_pod", first_case::deployment),
    ("tenants_have_the_rights_of_the_built_in_roles", tenants::roles),
    ("a_preview_and_a_check_tell_what_a_selector_opts_in", opt_in::told),
    ("services_that_follow_the_guides_are_injected", documents::services),
    ("objects_of_the_guides_are_accepted", documents::objects),
    ("every_field_comes_back_as_it_was_sent", every_field::with_and_without),
    ("a_pod_that_cannot_be_helped_is_created_all_the_same", reasons::not_helped),
    ("a_stopped_webhook_holds_no_pod_back", failure::stopped),
    ("a_webhook_that_hangs_holds_a_deployment_back_for_seconds", failure::hanging),
    ("a_sidecar_added_later_leaves_the_pod_injected_once", reviews::after_a_sidecar),
    ("a_pod_is_reviewed_once_with_and_without_a_token", reviews::once),
    ("a_pod_is_reviewed_twice_only_if_limit_ranger_sets_more", reviews::with_limits),
    ("a_pod_with_mounts_in_the_tokens_place_is_reviewed_twice", reviews::twice),
    ("a_replaced_certificate_costs_no_pod_its_agent", failure::replaced_certificate),
    ("a_cron_jobs_pod_is_named_after_it", owners::cron_job),
    ("a_stateful_sets_pod_is_named_after_it", owners::stateful_set),
    ("a_rollouts_pod_is_named_after_it", owners::rollout),
    ("owners_have_their_uids", owners::uids),
    ("a_configuration_file_is_stored_with_its_pod", declarative::delivered),
    ("an_operators_instrumentation_is_kept_as_it_is", instrumentations::kept),
    ("the_crd_alone_refuses_what_it_can", instrumentations::crd_alone),
    ("each_mistake_is_refused_with_words_that_help", instrumentations::mistakes),
    ("an_instrumentation_applied_twice_stays_as_it_is", instrumentations::applied_twice),
    ("a_bad_instrumentation_of_old_may_be_changed_and_go", instrumentations::old),
    ("an_instrumentation_is_not_taken_unjudged", instrumentations::unjudged),
    ("the_deletion_of_an_instrumentation_in_use_is_warned_of", instrumentations::deleted),
    ("each_mistake_is_found_in_the_terminal_and_later", mistakes::found_everywhere),
    ("check_says_what_runs_and_what_new_pods_would_get", check::what_runs),
    ("status_has_missed_and_stale_pods_with_commands", status::missed_and_stale),
    ("explain_knows_each_kind_and_its_pods", explain::kinds),
    ("a_developer_is_told_nothing_wrong", explain::developer),
    ("trace_finds_each_cause_of_missing_data", trace::each_cause),
    ("trace_stops_before_the_pod_where_it_is_not_injected", trace::before_the_pod),
    ("a_generated_pod_that_its_namespace_accepts_is_accepted_injected_too", bounded::accepted),
];

/// Managed certificates, on replicas with one Secret.
const MANAGED: Group<Cluster> = &[
    ("managed_replicas_that_start_together_make_one_authority", managed::together),
    ("managed_certificates_wait_for_a_configuration", managed::later),
    ("managed_bundles_that_are_changed_are_put_back", managed::vandalised_bundle),
    ("managed_bundles_are_not_fought_for_for_ever", managed::quarrel),
    ("managed_secrets_that_are_damaged_cost_no_pod_its_agent", managed::vandalised_secret),
    ("managed_certificates_leave_the_secret_of_somebody_else_alone", managed::foreign_secret),
];

/// The same on sets of replicas with their own Secrets.
const ROTATIONS: Group<Cluster> = &[("managed_rotations_cost_no_pod_its_agent", managed::rotations)];

/// Each with its own control plane.
const OWN_CLUSTERS: Group<Cluster> = &[
    ("check_finds_each_way_to_be_broken", check::each_way_to_be_broken),
    ("large_objects_do_not_fill_the_memory", extremes::start_up),
    ("large_objects_do_not_fill_the_memory_of_the_controller", extremes::controller),
    ("a_node_that_joins_or_leaves_changes_the_next_delivery", nodes::join_and_leave),
    ("explain_equals_the_dry_run_for_generated_workloads", explain::generated),
];

/// The same, with the controller.
const CONTROLLER: Group<Cluster> = &[
    ("the_controller_tells_what_was_missed_and_what_is_stale", fleet::missed_and_stale),
    ("the_controller_knows_each_state_of_a_pod", fleet::each_state),
    ("the_controller_tells_what_a_selector_opts_in", fleet::opted_in),
    ("all_numbers_are_true_through_a_storm_of_changes", counted::through_a_storm),
    ("pods_are_heard_or_silent_by_a_real_prometheus", heard::by_prometheus),
    ("pods_are_heard_or_silent_by_a_real_collector", heard::by_collector),
    ("sources_that_fail_delay_no_status", heard::by_sources_that_fail),
    ("failing_pods_are_counted_until_they_recover", failing::counted),
    ("a_corrected_instrumentation_mends_a_failing_workload", failing::mended),
    ("the_controller_goes_on_after_failures", controller_faults::failures),
    ("the_controller_is_right_while_one_request_in_three_fails", brown_out::requests),
    ("the_controller_is_right_while_every_watch_fails", brown_out::watches),
    ("the_controller_that_is_not_answered_stops_leading", controller_faults::frozen),
    ("the_controller_says_which_permission_is_missing", controller_faults::missing_permissions),
    ("the_controllers_account_changes_two_annotations_of_workloads", restart_policy::two_annotations_alone),
    ("the_controller_of_one_namespace_reads_no_other", fleet::one_namespace),
    ("the_operators_crd_drops_the_status_and_nothing_else", fleet::operators_crd),
];

/// The same, with what changes while pods are created.
const CHANGES: Group<Cluster> = &[
    ("paused_injection_skips_the_next_pod_at_each_place", paused::each_place),
    ("paused_by_the_lease_where_namespaces_cannot_be_read", paused::by_the_lease),
    ("a_lossy_conversion_of_another_webhook_costs_nothing_and_is_replaced", versions::lossy_conversion),
    ("no_pod_misses_its_agent_while_versions_change", versions::changed),
    ("moving_over_by_the_selectors_loses_no_pod_its_agent", migration::parted),
    ("moving_over_by_the_name_loses_no_pod_its_agent", migration::ahead),
];

/// The same, with a node on which pods become ready.
const RESTARTS: Group<Cluster> = &[
    ("each_workload_that_consents_is_restarted_once", restarts::by_consent),
    ("leaders_that_are_killed_restart_each_workload_once", restarts::killed),
    ("restarts_wait_until_all_replicas_of_the_webhook_agree", restarts::webhook_disagrees),
    ("a_refused_restart_is_reported_and_the_others_go_on", restarts::refused),
    ("restarts_stop_when_new_pods_cannot_start", restarts::stopped),
    ("a_restart_that_is_taken_back_is_not_made_again", restarts::taken_back),
    (
        "a_restart_that_is_taken_back_on_the_operators_crd_is_not_made_again",
        restarts::taken_back_on_the_operators_crd,
    ),
    ("what_may_not_be_restarted_has_a_reason", restarts::never_forced),
    ("honest_workloads_are_restarted_among_attacks", hostile::at_once),
    ("paused_restarts_wait_and_go_on_after_the_pause", paused::restarts),
];

/// The same: what is too much for the webhook or its cluster.
const EXTREMES: Group<Cluster> = &[
    ("no_review_is_lost_while_the_control_plane_fails", outages::reviews),
    ("a_pod_that_is_accepted_is_accepted_however_large_it_would_get", extremes::accepted),
    ("few_of_many_owners_are_asked_for", extremes::asked_for),
];

/// In a namespace that is not sent to any webhook.
const GENERATED: Group<Cluster> = &[
    ("a_generated_pod_that_is_taken_is_taken_injected_too", generated::taken),
    ("a_generated_pod_is_taken_where_restricted_is_enforced", generated::taken_where_restricted),
    ("a_generated_pod_is_the_same_after_one_review_and_after_two", generated::same_pod),
    ("a_mistake_in_an_instrumentation_refuses_no_generated_pod", generated::taken_with_mistakes),
];

/// Cases that look back at all before them.
pub const LAST: Group<Cluster> = &[
    ("the_roles_suffice", aftermath::roles),
    ("the_roles_of_managed_certificates_suffice", aftermath::managed_roles),
    ("the_api_server_has_nothing_to_complain_about", aftermath::complaints),
];
