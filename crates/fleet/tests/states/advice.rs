//! Which workloads are to be restarted, and for which no restart is advised.

use crate::support::{Cluster, ENDPOINT, pod, report, report_with};
use otel_webhook_fleet::{
    advice::Outside,
    next::NoDoubts,
    pod::RunningPod,
    report::{Report, WorkloadRow},
    workload::Workload,
};
use otel_webhook_inject::language::LanguageSet;
use serde_json::{Value, json};

/// A pod of a StatefulSet, with the status of an init container for Java that waits.
fn of(mut pod: Value, workload: &str, name: &str, waits: Option<&str>) -> Value {
    pod["metadata"]["name"] = json!(name);
    pod["metadata"]["uid"] = json!(name);
    // Each with its own template.
    pod["metadata"]["labels"]["controller-revision-hash"] = json!(name);
    pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": workload,
        "uid": workload, "controller": true}]);
    if let Some(reason) = waits {
        pod["status"] = json!({"initContainerStatuses": [{"name": "opentelemetry-auto-instrumentation-java",
            "restartCount": 3, "state": {"waiting": {"reason": reason, "message": "said"}}}]});
    }
    pod
}

fn counted(cluster: &Cluster, pods: &[Value]) -> Report {
    report(cluster, pods.iter().filter_map(RunningPod::read))
}

fn code(row: &WorkloadRow) -> Option<&'static str> {
    assert!(row.command.is_none() || row.not_advised.is_none(), "{row:?}");
    row.not_advised.as_ref().map(|not_advised| not_advised.code)
}

/// What may have changed since pods were injected.
fn changes() -> Vec<(&'static str, Cluster)> {
    let changed = || Cluster::new("http://other:4317");
    let mut deleted = changed();
    deleted.objects.clear();
    let mut without_java = changed();
    without_java.settings.languages = LanguageSet::NONE.with(&otel_webhook_inject::language::NODEJS);
    let mut invalid = changed();
    invalid.objects[0]["spec"]["exporter"] = json!({"endpoint": 4317});
    let mut paused = changed();
    paused.objects[0]["metadata"]["annotations"] = json!({"otel-webhook/paused": "true"});
    vec![
        ("nothing", Cluster::new(ENDPOINT)),
        ("the endpoint", changed()),
        ("the Instrumentation was deleted", deleted),
        ("Java was disabled", without_java),
        ("the Instrumentation is invalid", invalid),
        ("injection is paused", paused),
    ]
}

/// A pod with containers for Java and Node.js that opts in to these languages.
fn template(opts_in: &[&str]) -> Value {
    let mut all = pod(&["java", "nodejs"]);
    for language in ["java", "nodejs"].iter().filter(|language| !opts_in.contains(language)) {
        all["metadata"]["annotations"][format!("instrumentation.opentelemetry.io/inject-{language}")] =
            json!("false");
    }
    all
}

/// Carries out each advised command: the new pods have at least the agents that running ones have.
#[test]
fn no_advised_command_removes_an_agent() {
    let before = Cluster::new(ENDPOINT);
    let (mut advised, mut others) = (0, 0);
    for (change, now) in changes() {
        for had in [&[][..], &["java"], &["nodejs"], &["java", "nodejs"]] {
            for opts_in in [&["java"][..], &["java", "nodejs"]] {
                for is_selected in [true, false] {
                    let mut running = before.injected(template(had));
                    for (key, value) in
                        template(opts_in)["metadata"]["annotations"].as_object().expect("some")
                    {
                        running["metadata"]["annotations"][key] = value.clone();
                    }
                    let running = RunningPod::read(&of(running, "db", "db-0", None)).expect("a running pod");
                    let agents: Vec<_> =
                        running.agents.iter().flatten().map(|agent| agent.language).collect();
                    let report = report_with(&now, std::iter::once(running.clone()), is_selected, &NoDoubts);
                    let Some(row) = report.workloads.first() else { continue };
                    if row.command.is_none() {
                        others += 1;
                        continue;
                    }
                    advised += 1;
                    let new = if is_selected { now.injected(template(opts_in)) } else { template(opts_in) };
                    let new = RunningPod::read(&of(new, "db", "db-1", None)).expect("a running pod");
                    for language in agents {
                        let is_kept = new.agents.iter().flatten().any(|agent| agent.language == language);
                        assert!(is_kept, "{change}: {had:?}, {opts_in:?}: {language} is removed: {row:?}");
                    }
                }
            }
        }
    }
    assert!(advised > 5 && others > 5, "{advised} advised, {others} not");
}

#[test]
fn the_reason_says_what_a_restart_would_do() {
    let before = Cluster::new(ENDPOINT);
    let reasons: Vec<_> = changes()
        .into_iter()
        .map(|(change, now)| {
            let pods = [of(before.injected(pod(&["java"])), "db", "db-0", None)];
            let row = counted(&now, &pods).workloads.remove(0);
            (change, code(&row), row.command.is_some())
        })
        .collect();
    assert_eq!(
        reasons,
        [
            ("nothing", None, false),
            ("the endpoint", None, true),
            ("the Instrumentation was deleted", Some("WouldRemoveAgent"), false),
            ("Java was disabled", Some("WouldRemoveAgent"), false),
            ("the Instrumentation is invalid", Some("WouldRemoveAgent"), false),
            ("injection is paused", Some("Paused"), false),
        ]
    );
}

#[test]
fn an_image_that_cannot_be_pulled_is_not_brought_to_other_workloads() {
    let (before, now) = (Cluster::new(ENDPOINT), Cluster::new("http://other:4317"));
    let stale = |name: &str| of(before.injected(pod(&["java"])), name, &format!("{name}-0"), None);
    let new = |reason: &'static str| of(now.injected(pod(&["java"])), "canary", "canary-0", Some(reason));
    let codes = |reason: &'static str| {
        let report = counted(&now, &[new(reason), stale("a"), stale("b")]);
        report.workloads.iter().map(code).collect::<Vec<_>>()
    };
    assert_eq!(codes("ImagePullBackOff"), [Some("AgentFails"), Some("AgentFails"), None]);
    assert_eq!(codes("CrashLoopBackOff"), [None; 3], "that may be because of the workload");
    // Of the same workload, whatever fails.
    let old = of(before.injected(pod(&["java"])), "canary", "canary-1", None);
    let report = counted(&now, &[new("CrashLoopBackOff"), old]);
    assert_eq!(code(&report.workloads[0]), Some("AgentFails"));
    let message = &report.workloads[0].not_advised.as_ref().expect("a reason").message;
    assert!(message.contains("pod canary-0 with the current configuration fails with CrashLoopBackOff"));
}

#[test]
fn what_is_known_apart_from_the_pods_counts() {
    let (before, now) = (Cluster::new(ENDPOINT), Cluster::new("http://other:4317"));
    let pods = [of(before.injected(pod(&["java"])), "db", "db-0", Some("ImagePullBackOff"))];
    let withheld = |outside: Outside| {
        let mut report = counted(&now, &pods);
        let command = report.workloads[0].command.clone().expect("a command");
        assert!(report.workloads[0].failures[0].remedy.contains(&command));
        report.withhold(&outside);
        let row = report.workloads.remove(0);
        let is_withheld = row.not_advised.is_some();
        assert_eq!(row.failures[0].remedy.contains(&command), !is_withheld, "{row:?}");
        row.not_advised.map(|not_advised| (not_advised.code, not_advised.message))
    };
    let db = Workload::new("StatefulSet", "shop", "db");
    let never = "it has the annotation otel-webhook/restart: never; ask its owner".to_owned();
    assert_eq!(withheld(Outside::default()), None);
    assert_eq!(
        withheld(Outside { outage: Some("no endpoints".to_owned()), ..Outside::default() }),
        Some(("WebhookUnavailable", "first let reviews reach the webhook: no endpoints".to_owned()))
    );
    assert_eq!(
        withheld(Outside {
            stopped: [("shop/inst".to_owned(), "pod x fails".to_owned())].into(),
            ..Outside::default()
        }),
        Some((
            "RestartStopped",
            "restarts for Instrumentation shop/inst are stopped: pod x fails".to_owned()
        ))
    );
    assert_eq!(
        withheld(Outside { never: [db].into(), ..Outside::default() }),
        Some(("RestartNever", never.clone()))
    );
    assert_eq!(
        withheld(Outside { never_in: ["shop".to_owned()].into(), ..Outside::default() }),
        Some(("RestartNever", never))
    );
    assert_eq!(withheld(Outside { never_in: ["other".to_owned()].into(), ..Outside::default() }), None);
}
