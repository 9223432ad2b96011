//! Mistakes in the namespaces, workloads and pods of a cluster, as far as the user may read them.

use std::collections::HashSet;

use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, StatefulSet},
    batch::v1::CronJob,
};
use kube::core::ApiResource;
use serde_json::Value;

use crate::cluster::{
    known::Known,
    object::text,
    reader::{ClusterReader, Part},
};
use otel_webhook_fleet::{
    mistakes::{self, Finding, MOST, MistakeRow, PodMistakes, bound},
    report::Report,
    workload::Workload,
};
use otel_webhook_inject::{nearly::Near, template};
use otel_webhook_store::reduced::rollouts;

/// Adds the mistakes to a report.
pub async fn write(
    cluster: &ClusterReader,
    scope: Option<&str>,
    known: &Known,
    pods: &PodMistakes,
    report: &mut Report,
) {
    let mut rows = Vec::new();
    for (subject, mistake) in &known.mistakes {
        let object = Workload::new("Namespace", &subject.name, &subject.name);
        rows.push(MistakeRow { object, finding: Finding::from(mistake.clone()) });
    }
    let mut read = HashSet::new();
    for resource in kinds() {
        let take = |mut object: Value| {
            let workload = Workload::new(
                &resource.kind,
                &text(&object["metadata"]["namespace"]),
                &text(&object["metadata"]["name"]),
            );
            let mut findings = mistakes::of(&object, &resource.api_version, &resource.kind);
            if let Some(read) = template::Workload::of(&mut object, &resource.api_version, &resource.kind)
                && let Ok(decided) = known.decide(&read, &workload.namespace)
            {
                let near = known.one_label_away(&read, &workload.namespace, &decided).into_iter();
                findings.extend(near.filter_map(Near::meant).map(Finding::from));
            }
            let findings = findings.into_iter();
            rows.extend(findings.map(|finding| MistakeRow { object: workload.clone(), finding }));
            if pods.of(&workload).is_some() {
                read.insert(workload);
            }
        };
        // Pods show most of what is not readable.
        let _ = cluster.each(&resource, scope, Part::Whole, take).await;
    }
    for workload in pods.workloads() {
        let Some(of) = pods.of(workload) else { continue };
        let own = of.found.own.iter().filter(|_| !read.contains(workload));
        let findings = own.chain(&of.found.warnings).cloned();
        rows.extend(findings.map(|finding| MistakeRow { object: workload.clone(), finding }));
    }
    report.more_mistakes = bound(&mut rows, MOST);
    report.mistakes = rows;
}

fn kinds() -> [ApiResource; 5] {
    [
        ApiResource::erase::<Deployment>(&()),
        ApiResource::erase::<StatefulSet>(&()),
        ApiResource::erase::<DaemonSet>(&()),
        ApiResource::erase::<CronJob>(&()),
        rollouts(),
    ]
}
