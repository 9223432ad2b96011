use super::*;
use otel_webhook_fleet::report::{PausedRow, RestartRow};
use otel_webhook_inject::pause::Pause;
use otel_webhook_testkit::reports::{self, counts, failing, failure, language};

fn workload(kind: &str, name: &str, languages: Vec<LanguageRow>) -> WorkloadRow {
    reports::workload(kind, "shop", name, languages)
}

fn cluster(workloads: Vec<WorkloadRow>) -> ClusterReport {
    reports::cluster("staging", workloads)
}

const CHANGED: (&str, &str) = ("ConfigurationChanged", "it has changed since");
const SKIPPED: (&str, &str) = ("InstrumentationNotFound", "not\nfound");

#[test]
fn the_tables_are_followed_by_reasons_and_commands() {
    let mut java = language("java", &[(State::Stale, 2), (State::Injected, 1)], Some(CHANGED));
    java.images = ["registry.example.com/java:2.29.0", "mirror.example.com/java:2.29.0", "java:2.30.0"]
        .map(|image| (image.to_owned(), 1))
        .into();
    let go = language("go", &[(State::Skipped, 3)], Some(SKIPPED));
    let mut report = cluster(vec![
        workload("Deployment", "order", vec![java, go]),
        workload("Job", "report", vec![language("java", &[(State::Missed, 1)], Some(("Unknown", "why")))]),
        workload("StatefulSet", "db", vec![language("java", &[(State::Injected, 3)], None)]),
    ]);
    report.incomplete = vec!["not readable by you (list limitranges)".to_owned()];
    let mut pods = counts(&[(State::Injected, 4), (State::Stale, 2), (State::Missed, 1)]);
    (pods.heard, pods.silent) = (Some(5), Some(1));
    let row = InstrumentationRow {
        namespace: "shop".to_owned(),
        name: "default".to_owned(),
        pods,
        ..Default::default()
    };
    report.report.instrumentations = vec![row];
    let expected = "\
warning: not readable by you (list limitranges)

NAMESPACE  NAME     MATCHED  INJECTED  STALE  MISSED  SKIPPED  FOREIGN  UNCONFIRMED  FAILING
shop       default  7        4         2      1       0        0        0            0

NAMESPACE  NAME     HEARD  SILENT
shop       default  5      1

NAMESPACE  WORKLOAD          LANGUAGE  STATE     PODS                    FAILING  AGENT                   REASON                   SINCE
shop       deployment/order  java      stale     3: 2 stale, 1 injected  0        2.29.0 (2), 2.30.0 (1)  ConfigurationChanged     20d ago
shop       deployment/order  go        skipped   3                       0        -                       InstrumentationNotFound  20d ago
shop       job/report        java      missed    1                       0        -                       Unknown                  20d ago
shop       statefulset/db    java      injected  3                       0        -                       -                        20d ago

Reasons:
  ConfigurationChanged: it has changed since (Deployment shop/order)
  InstrumentationNotFound: not\\nfound (Deployment shop/order)
  Unknown: why (Job shop/report)

To bring stale and missed pods up to date:
  kubectl rollout restart deployment/order -n shop
  # Job shop/report: pods of a run are not replaced; the next run gets new pods
";
    assert_eq!(text(&[report], false), expected);
}

#[test]
fn what_fails_is_reported_with_the_kubelets_message_and_the_remedy() {
    let order = workload("Deployment", "order", vec![language("java", &[(State::Injected, 3)], None)]);
    let container = "opentelemetry-auto-instrumentation-java";
    let order = failing(order, failure("java", container, "ImagePullBackOff", true));
    let order = failing(order, failure("java", "app", "CauseUnknown", false));
    let text = text(&[cluster(vec![order])], false);
    let row = "shop       deployment/order  java      injected  3     2        -      -       20d ago\n";
    assert!(text.contains(row), "{text}");
    let expected = "\
Failing because of what injection added:
  Deployment shop/order, java: ImagePullBackOff of container opentelemetry-auto-instrumentation-java in 2 of its pods: <said>\\nby a kubelet
    what it means
    what to do
Failing, though not known to be because of the agent:
  Deployment shop/order, java: CauseUnknown of container app in 2 of its pods: <said>\\nby a kubelet
    what it means
    what to do
";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn several_clusters_have_headings() {
    let missed = language("java", &[(State::Missed, 1)], Some(("NotSelected", "excluded")));
    let both = [cluster(Vec::new()), cluster(vec![workload("Deployment", "order", vec![missed])])];
    let text = text(&both, true);
    let headings = text.lines().filter(|line| *line == "Cluster staging").count();
    assert_eq!(headings, 2, "{text}");
    assert!(text.contains("\nNo workload has stale or missed pods.\n"), "{text}");
    let comment = "  # Deployment shop/order: first let the webhook receive its pods: otel-webhook check names the selector\n";
    assert!(text.ends_with(comment), "{text}");
    let nothing = super::text(&both[..1], false);
    assert_eq!(nothing, "No running pod opts in or has an agent.\n");
}

#[test]
fn each_reason_names_the_first_workloads() {
    let of = |number: usize| {
        let row = language("java", &[(State::Stale, 1)], Some(CHANGED));
        workload("Deployment", &format!("a{number}"), vec![row.clone(), row])
    };
    let lines = reasons(&(0..5).map(of).collect::<Vec<_>>());
    let expected = "  ConfigurationChanged: it has changed since (Deployment shop/a0, Deployment shop/a1, \
                    Deployment shop/a2 and 2 more)";
    assert_eq!(lines, ["Reasons:", expected]);
    let other = |number: usize| {
        let message = number.to_string();
        workload("Pod", "p", vec![language("java", &[(State::Skipped, 1)], Some(("Code", &message)))])
    };
    let lines = reasons(&(0..60).map(other).collect::<Vec<_>>());
    assert_eq!(lines.len(), 1 + MOST_REASONS + 1);
    assert_eq!(lines.last().map(String::as_str), Some("  … and 10 more; -o json has all"));
}

#[test]
fn ages_have_one_unit() {
    let at = |text: &str| text.parse::<Timestamp>().expect("a time");
    let now = at("2026-11-13T00:00:00Z");
    for (since, expected) in [
        ("2026-11-13T00:00:01Z", "0s"),
        ("2026-11-12T23:58:01Z", "119s"),
        ("2026-11-12T22:00:01Z", "119m"),
        ("2026-11-11T00:00:01Z", "47h"),
        ("2026-11-11T00:00:00Z", "2d"),
    ] {
        assert_eq!(age(at(since), now), expected);
    }
}

#[test]
fn a_plan_has_a_table_of_its_own() {
    let stale = language("java", &[(State::Stale, 2)], Some(CHANGED));
    let mut planned = workload("Deployment", "order", vec![stale]);
    planned.restart =
        Some(RestartRow { code: "NoConsent".to_owned(), message: "not restarted: no consent".to_owned() });
    let current = workload("Deployment", "web", vec![language("java", &[(State::Injected, 2)], None)]);
    let text = text(&[cluster(vec![planned, current])], false);
    let expected = "\nNAMESPACE  WORKLOAD          RESTART    WHY\n\
                    shop       deployment/order  NoConsent  not restarted: no consent\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_pause_is_said_first_and_the_commands_that_remove_agents_last() {
    let mut stale =
        workload("Deployment", "order", vec![language("java", &[(State::Stale, 2)], Some(CHANGED))]);
    let command = "kubectl rollout restart deployment/order -n shop";
    stale.paused = Some(PausedRow { by: "Namespace shop".to_owned(), command: Some(command.to_owned()) });
    let mut bare = workload("Pod", "bare", vec![language("java", &[(State::Injected, 1)], None)]);
    bare.paused = Some(PausedRow { by: "Namespace shop".to_owned(), command: None });
    let mut report = cluster(vec![stale, bare]);
    report.incomplete = vec!["not all is known".to_owned()];
    report.report.paused = vec![PauseRow::from(&Pause::Namespace("shop".into()))];
    let text = text(&[report], false);
    let first = "Injection is paused:\n  Namespace shop: its pods start without agents; to resume: kubectl annotate \
                 namespace shop otel-webhook/paused-\n\nwarning: not all is known\n";
    assert!(text.starts_with(first), "{text}");
    let last = format!("\nTo remove the agents of running pods while injection is paused:\n  {command}\n");
    assert!(text.ends_with(&last), "{text}");
    assert!(!text.contains("up to date:"), "a restart would remove the agents: {text}");
}
