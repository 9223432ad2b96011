//! Checks that the Secrets and `ConfigMap`s with the certificates of exporters exist.
//!
//! Injection mounts them as optional volumes, since the webhook reads neither: without them a pod starts, and its
//! agents send nothing.

use std::collections::BTreeMap;

use super::{
    result::{CheckResult, Code},
    survey::Survey,
};
use crate::{
    cli::cluster::{object::File, reader::ClusterReader},
    subject::Subject,
};

/// Returns a result for each object that does not exist, and for each that the user may not read.
pub async fn results(cluster: &ClusterReader, survey: &Survey) -> Vec<CheckResult> {
    let mut results = Vec::new();
    for ((namespace, file), users) in used(survey) {
        match cluster.exists(&file.resource(), Some(namespace), &file.name).await {
            Ok(true) => {}
            Ok(false) => results.push(missing(namespace, file, &users)),
            Err(not_told) => results.push(not_told.result()),
        }
    }
    results
}

/// Returns the objects by namespace, with the workloads that mount them.
fn used(survey: &Survey) -> BTreeMap<(&str, &File), Vec<&Subject>> {
    let mut used: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for workload in &survey.workloads {
        for file in &workload.files {
            used.entry((&*workload.subject.namespace, file)).or_default().push(&workload.subject);
        }
    }
    used
}

fn missing(namespace: &str, file: &File, users: &[&Subject]) -> CheckResult {
    let first = users.first().map(ToString::to_string).unwrap_or_default();
    let others = match users.len().saturating_sub(1) {
        0 => String::new(),
        more => format!(" and of {more} more"),
    };
    let message = format!(
        "not found, and spec.exporter.tls refers to it: the agents of {first}{others} do not get their certificates"
    );
    let result = CheckResult::new(Code::ExporterFilesMissing, message);
    result.about(Subject::new(file.kind, namespace, &file.name)).advise("create it, and restart the pods")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::{check::survey::tests::seen, cluster::object::files};

    #[test]
    fn an_object_is_looked_for_once_in_each_namespace() {
        let file = File { kind: "Secret", name: "client".to_owned() };
        let mut survey = seen("Deployment", "shop", "order")
            .and(seen("Deployment", "shop", "stock"))
            .and(seen("Deployment", "store", "order"))
            .survey();
        for workload in &mut survey.workloads {
            workload.files.push(file.clone());
        }
        let used = used(&survey);
        let keys: Vec<_> = used.keys().map(|(namespace, _)| *namespace).collect();
        assert_eq!(keys, ["shop", "store"]);
        let line = missing("shop", &file, &used[&("shop", &file)]).line();
        let said = "Secret shop/client: not found, and spec.exporter.tls refers to it: the agents of Deployment \
                    shop/order and of 1 more do not get their certificates; create it, and restart the pods";
        assert!(line.ends_with(said), "{line}");
    }

    #[test]
    fn files_are_those_of_the_volumes_that_injection_adds() {
        let pod = json!({"spec": {"volumes": [
            {"name": "own", "secret": {"secretName": "own"}},
            {"name": "otel-auto-secret-client", "secret": {"secretName": "client", "optional": true}},
            {"name": "otel-auto-configmap-ca", "configMap": {"name": "ca", "optional": true}},
        ]}});
        let found: Vec<_> = files(&pod).into_iter().map(|file| (file.kind, file.name)).collect();
        assert_eq!(found, [("Secret", "client".to_owned()), ("ConfigMap", "ca".to_owned())]);
        assert!(files(&json!({"spec": {}})).is_empty());
    }
}
