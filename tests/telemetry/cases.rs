//! The cases, in groups that run side by side.

mod attributes;
mod exporters;
mod failures;
mod files;
mod options;
mod pods;
mod traces;

use otel_webhook_testkit::runner::Group;

use crate::cluster::Cluster;

/// All groups; those that take longest begin first.
pub const GROUPS: &[Group<Cluster>] = &[
    &[
        ("resources_are_what_the_variables_say", attributes::usual),
        ("resources_have_what_was_set", attributes::set),
    ],
    &[
        ("one_trace_runs_through_all_languages", traces::tracecontext),
        ("one_trace_runs_through_all_languages_by_b3", traces::b3),
    ],
    &[
        ("as_many_traces_are_sampled_as_the_ratio_says", traces::ratio),
        ("always_off_sends_no_spans", traces::always_off),
    ],
    &[
        ("a_file_configures_agents_for_java", files::java),
        ("no_spans_of_probes_are_sent", files::probes),
        ("agents_that_cannot_use_a_file_are_skipped_or_have_variables", files::unsupported),
        ("a_migrated_file_sends_the_same_spans", files::migrated),
    ],
    &[
        ("mutual_tls_has_its_files_from_a_secret", exporters::mutual_tls),
        ("tls_has_its_ca_from_a_config_map", exporters::tls),
        ("agents_have_the_port_and_protocol_of_their_versions", exporters::defaults),
        ("grpc_is_used_where_it_is_set", exporters::grpc),
    ],
    &[
        ("a_missing_secret_is_told_by_check", failures::missing_secret),
        ("an_expired_certificate_is_told_by_the_log", failures::expired),
        ("a_certificate_of_another_ca_is_told_by_the_log", failures::other_authority),
        ("a_certificate_for_another_name_is_told_by_the_log", failures::other_name),
    ],
    &[
        ("variables_have_their_precedence", options::precedence),
        ("java_options_of_a_config_map_are_kept", options::java_from_config_map),
        ("two_javaagents_run_beside_each_other", options::two_javaagents),
        ("an_extension_marks_spans", options::extension),
        ("node_options_are_kept", options::node_options),
        ("a_python_path_is_kept", options::python_path),
        ("an_init_container_is_a_target", pods::init_container),
        ("two_languages_share_a_pod_and_one_restarts", pods::two_languages),
    ],
];
