//! What is in the page.

use otel_webhook_fleet::{
    report::{InstrumentationRow, Report},
    workload::Workload,
};

use super::*;

/// A cluster with one workload of this name.
fn cluster(name: &str, workload: &str) -> ClusterReport {
    let pods = Counts { matched: 3, injected: 1, stale: 2, ..Counts::default() };
    let language = LanguageRow {
        language: "java".to_owned(),
        pods,
        state: State::Stale,
        reason: Some("ConfigurationChanged".to_owned()),
        message: Some(format!("the configuration of {workload} has changed")),
        instrumentation: Some("shop/inst".to_owned()),
        images: [("registry/java:2.9.0".to_owned(), 3)].into(),
        since: Some("2026-11-01T10:00:00Z".parse().expect("a time")),
    };
    let row = WorkloadRow {
        workload: Workload::new("Deployment", "shop", workload),
        pods: 3,
        state: State::Stale,
        languages: vec![language],
        command: Some(format!("kubectl rollout restart deployment/{workload} -n shop")),
    };
    let instrumentation = InstrumentationRow {
        namespace: "shop".to_owned(),
        name: "inst".to_owned(),
        pods,
        ..Default::default()
    };
    ClusterReport {
        cluster: name.to_owned(),
        taken: "2026-11-23T12:00:00Z".parse().expect("a time"),
        incomplete: Vec::new(),
        report: Report { instrumentations: vec![instrumentation], workloads: vec![row] },
    }
}

#[test]
fn the_page_has_each_workload_with_state_reason_and_command() {
    let page = page(&[cluster("staging", "order")]);
    for part in [
        "Deployment/order",
        "ConfigurationChanged",
        "2 stale",
        "1 injected",
        "registry/java:2.9.0",
        "kubectl rollout restart deployment/order -n shop",
        "2026-11-01 10:00",
        "staging, 2026-11-23 12:00:00 UTC",
    ] {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
    assert!(!page.contains("Cluster</button>"), "one cluster needs no column");
}

#[test]
fn several_clusters_have_a_column_and_their_problems() {
    let mut other = cluster("production", "cart");
    other.incomplete.push("namespaces may not be listed".to_owned());
    let page = page(&[cluster("staging", "order"), other]);
    assert!(page.contains("Cluster</button>"), "{page}");
    assert!(page.contains("production: namespaces may not be listed"), "{page}");
    assert!(page.contains("data-cluster=\"production\""), "{page}");
}

#[test]
fn what_users_write_is_text() {
    let hostile = "</script><img src=x onerror=\"alert(1)\">&'";
    let mut one = cluster(hostile, hostile);
    one.incomplete.push(hostile.to_owned());
    let page = page(&[one]);
    assert!(!page.contains("<img") && !page.contains("onerror=\""), "{page}");
    assert_eq!(page.matches("</script>").count(), 1, "{page}");
}

#[test]
fn nothing_is_fetched_and_only_this_script_runs() {
    let page = page(&[cluster("staging", "order")]);
    for part in ["src=", "href=", "http://", "https://", "style=", "onclick"] {
        assert!(!page.contains(part), "{part} is in\n{page}");
    }
    let policy = policy();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert!(
        headers()
            .iter()
            .any(|(name, value)| *name == "content-security-policy"
                && value.contains("frame-ancestors 'none'"))
    );
}
