//! Reports to show.

use otel_webhook_fleet::{
    report::{ClusterReport, FailureRow, InstrumentationRow, LanguageRow, WorkloadRow, WorstWorkload},
    state::State,
    workload::Workload,
};
pub use otel_webhook_testkit::reports::cluster;
use otel_webhook_testkit::reports::{self, counts, covered, failing, failure};

const IMAGES: &str = "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-";

/// A language of a workload: the state, how many pods have it, the code and the sentence of the reason.
pub type LanguageState<'t> = (&'static str, State, usize, &'static str, &'t str);

fn language(&(language, state, number, code, message): &LanguageState<'_>, current: usize) -> LanguageRow {
    let has_agent = matches!(state, State::Injected | State::Stale | State::Foreign | State::Unconfirmed);
    let image = |version: &str| format!("{IMAGES}{language}:{version}");
    let mut images = Vec::new();
    if has_agent {
        images.push((image("2.30.0"), number));
    }
    if current > 0 && state != State::Injected {
        images.push((image("2.31.0"), current));
    }
    let reason = (!code.is_empty()).then_some((code, message));
    let states = [(state, number), (State::Injected, current)];
    let states = if current > 0 { &states[..] } else { &states[..1] };
    LanguageRow { images, ..reports::language(language, states, reason) }
}

/// A workload with so many pods of each language that are up to date, next to the others.
pub fn workload(
    kind: &str,
    namespace: &str,
    name: &str,
    told: &[LanguageState<'_>],
    current: usize,
) -> WorkloadRow {
    let languages = told.iter().map(|told| language(told, current)).collect();
    reports::workload(kind, namespace, name, languages)
}

const CHANGED: &str =
    "the configuration of the Instrumentation, or an image of the installation, has changed since";
const NOT_REACHED: &str =
    "the webhook was not called or did not answer in time when the pod was created; restart the workload";
const FOREIGN: &str =
    "another injector, such as the operator, or this webhook without --stamp, has injected it";
const NOT_FOUND: &str = r#"Instrumentation "shop/defualt" not found; its namespace has: default"#;
const UNKNOWN_HASH: &str = "the hash in its annotation otel-webhook/status is missing or of another version of the webhook; \
     whether it is up to date is not known";
const NOT_SELECTED: &str =
    "the selectors of the webhook configuration exclude the pod; change them or the pod's labels";

fn not_pulled() -> FailureRow {
    FailureRow {
        message: "the image of the agent cannot be pulled".to_owned(),
        remedy: "correct the image in the Instrumentation (Instrumentation shop/default)".to_owned(),
        kubelet: format!("Back-off pulling image \"{IMAGES}python:2.30.0\": not found"),
        ..failure("python", "opentelemetry-auto-instrumentation-python", "ImagePullBackOff", true)
    }
}

/// Two clusters with workloads in every state, and one that fails.
pub fn two_clusters() -> [ClusterReport; 2] {
    let stale =
        |language| -> LanguageState<'_> { (language, State::Stale, 2, "ConfigurationChanged", CHANGED) };
    let missed =
        |language| -> LanguageState<'_> { (language, State::Missed, 3, "WebhookNotReached", NOT_REACHED) };
    let mut production = cluster(
        "production",
        vec![
            workload("Deployment", "shop", "cart", &[missed("java")], 0),
            workload("Deployment", "shop", "order", &[stale("java"), stale("nodejs")], 2),
            workload(
                "StatefulSet",
                "shop",
                "ledger",
                &[("java", State::Foreign, 1, "OtherInjector", FOREIGN)],
                0,
            ),
            workload(
                "Deployment",
                "shop",
                "web",
                &[("nodejs", State::Skipped, 1, "InstrumentationNotFound", NOT_FOUND)],
                0,
            ),
            failing(
                workload("Deployment", "billing", "invoice", &[("python", State::Injected, 4, "", "")], 0),
                not_pulled(),
            ),
            workload(
                "DaemonSet",
                "billing",
                "audit",
                &[("dotnet", State::Unconfirmed, 5, "UnknownHash", UNKNOWN_HASH)],
                0,
            ),
        ],
    );
    production.report.instrumentations = vec![InstrumentationRow {
        namespace: "shop".to_owned(),
        name: "default".to_owned(),
        pods: counts(&[(State::Missed, 3), (State::Stale, 2), (State::Injected, 2), (State::Foreign, 1)]),
        workloads: vec![WorstWorkload {
            workload: Workload::new("Deployment", "shop", "cart"),
            stale: 0,
            missed: 3,
            failing: 0,
            silent: None,
            reason: "WebhookNotReached".to_owned(),
        }],
        more: 1,
    }];
    let mut staging = cluster(
        "staging",
        vec![
            workload(
                "Deployment",
                "shop",
                "cart",
                &[("java", State::Missed, 1, "NotSelected", NOT_SELECTED)],
                0,
            ),
            workload("Job", "billing", "report", &[stale("python")], 0),
        ],
    );
    staging.incomplete = vec!["limitranges are not readable by you".to_owned()];
    production.report.coverage = vec![
        covered("billing", Some("finance"), [9, 9, 4]),
        covered("kube-system", None, [12, 0, 0]),
        covered("shop", Some("sales"), [10, 9, 5]),
    ];
    let mut both = [production, staging];
    for cluster in &mut both {
        let commands = cluster.report.workloads.iter_mut().filter_map(|row| row.command.as_mut());
        commands.for_each(|command| *command = format!("{command} --context {}", cluster.cluster));
    }
    both
}

/// So many workloads: each tenth is missed, each fifth else is stale.
pub fn large(number: usize) -> ClusterReport {
    let one = |index: usize| {
        let (state, code) = match index % 10 {
            0 => (State::Missed, "WebhookNotReached"),
            5 => (State::Stale, "ConfigurationChanged"),
            _ => (State::Injected, ""),
        };
        let namespace = format!("team-{}", index % 50);
        let name = format!("service-{index}");
        workload("Deployment", &namespace, &name, &[("java", state, 2, code, "a reason")], 0)
    };
    cluster("large", (0..number).map(one).collect())
}
