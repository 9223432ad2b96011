//! Checks that the Secrets and `ConfigMap`s exist that injection makes pods refer to. The webhook reads neither.
//!
//! The files of an exporter are optional volumes: without them a pod starts, and its agents send nothing. Without the
//! source of a variable, a container does not start.

use std::collections::BTreeMap;

use super::{
    result::{CheckResult, Code},
    survey::Survey,
};
use crate::cluster::{object::Referenced, reader::ClusterReader};
use otel_webhook_fleet::advice::NotAdvised;
use otel_webhook_server::subject::Subject;

/// Returns a result for each object that does not exist, and for each that the user may not read. Restarts of workloads
/// with new pods that would not start are no longer advised.
pub async fn results(cluster: &ClusterReader, survey: &mut Survey) -> Vec<CheckResult> {
    let (mut results, mut required) = (Vec::new(), Vec::new());
    for ((namespace, object), users) in used(survey) {
        match cluster.exists(&object.resource(), Some(namespace), &object.name).await {
            Ok(true) => {}
            Ok(false) => {
                results.push(missing(namespace, object, &users));
                required.extend(object.is_required.then(|| (namespace.to_owned(), object.clone())));
            }
            Err(failed) => results.push(failed.result()),
        }
    }
    for (namespace, object) in required {
        withhold(survey, &namespace, &object);
    }
    results
}

fn withhold(survey: &mut Survey, namespace: &str, object: &Referenced) {
    let subject = Subject::new(object.kind, namespace, &object.name).to_string();
    let all = survey.workloads.iter_mut().filter(|one| one.subject.namespace == namespace);
    for workload in all.filter(|one| one.referenced.contains(object)) {
        workload.not_advised.get_or_insert_with(|| NotAdvised {
            code: Code::EnvSourceMissing.name(),
            message: format!("first create {subject}: new pods do not start without it"),
        });
    }
}

/// Returns the objects by namespace, with the workloads that refer to them.
fn used(survey: &Survey) -> BTreeMap<(&str, &Referenced), Vec<&Subject>> {
    let mut used: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for workload in &survey.workloads {
        for object in &workload.referenced {
            used.entry((&*workload.subject.namespace, object)).or_default().push(&workload.subject);
        }
    }
    used
}

fn missing(namespace: &str, object: &Referenced, users: &[&Subject]) -> CheckResult {
    let first = users.first().map(ToString::to_string).unwrap_or_default();
    let others = match users.len().saturating_sub(1) {
        0 => String::new(),
        more => format!(" and of {more} more"),
    };
    let whose = format!("{first}{others}");
    let (code, message) = if object.is_required {
        let message = format!(
            "not found, and a variable of an Instrumentation refers to it: new pods of {whose} do not start"
        );
        (Code::EnvSourceMissing, message)
    } else {
        let message = format!(
            "not found, and spec.exporter.tls refers to it: the agents of {whose} do not get their certificates"
        );
        (Code::ExporterFilesMissing, message)
    };
    let result = CheckResult::new(code, message).about(Subject::new(object.kind, namespace, &object.name));
    result.advise(if object.is_required {
        "create it, or set optional: true in the variable's source"
    } else {
        "create it, and restart the pods"
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{check::survey::tests::seen, cluster::object::referenced};

    #[test]
    fn an_object_is_looked_for_once_in_each_namespace() {
        let file = Referenced { kind: "Secret", name: "client".to_owned(), is_required: false };
        let mut survey = seen("Deployment", "shop", "order")
            .and(seen("Deployment", "shop", "stock"))
            .and(seen("Deployment", "store", "order"))
            .survey();
        for workload in &mut survey.workloads {
            workload.referenced.push(file.clone());
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
    fn what_is_missing_has_its_effect_in_the_message() {
        let user = Subject::new("Deployment", "shop", "order");
        let source = Referenced { kind: "ConfigMap", name: "agent".to_owned(), is_required: true };
        let mut survey =
            seen("Deployment", "shop", "order").and(seen("Deployment", "shop", "stock")).survey();
        survey.workloads[0].referenced.push(source.clone());
        withhold(&mut survey, "shop", &source);
        let advised = survey.workloads.iter().map(|one| one.not_advised.as_ref().map(|not| &*not.message));
        let first = "first create ConfigMap shop/agent: new pods do not start without it";
        assert_eq!(advised.collect::<Vec<_>>(), [Some(first), None]);
        let line = missing("shop", &source, &[&user]).line();
        let said = "ConfigMap shop/agent: not found, and a variable of an Instrumentation refers to it: new pods of Deployment \
                    shop/order do not start; create it, or set optional: true in the variable's source";
        assert!(line.ends_with(said), "{line}");
    }

    #[test]
    fn references_are_those_that_injection_adds() {
        let source = |kind: &str, name: &str, optional: bool| json!({"name": name, "valueFrom": {(kind): {"name": name, "key": "a", "optional": optional}}});
        let own = source("secretKeyRef", "own", false);
        let before = json!({"spec": {"containers": [{"name": "app", "env": [own.clone()]}]}});
        let added = [
            source("secretKeyRef", "token", false),
            source("configMapKeyRef", "agent", false),
            source("configMapKeyRef", "optional", true),
        ];
        let after = json!({"spec": {
            "containers": [{"name": "app", "env": ([&[own][..], &added].concat())}],
            "volumes": [
                {"name": "own", "secret": {"secretName": "own"}},
                {"name": "otel-auto-secret-client", "secret": {"secretName": "client", "optional": true}},
                {"name": "otel-auto-configmap-ca", "configMap": {"name": "ca", "optional": true}},
            ],
        }});
        let found = referenced(&before, &after).into_iter();
        let found: Vec<_> = found.map(|one| (one.kind, one.name, one.is_required)).collect();
        let expected = [
            ("Secret", "client", false),
            ("ConfigMap", "ca", false),
            ("Secret", "token", true),
            ("ConfigMap", "agent", true),
        ];
        assert_eq!(found, expected.map(|(kind, name, is_required)| (kind, name.to_owned(), is_required)));
        assert!(referenced(&json!({"spec": {}}), &json!({"spec": {}})).is_empty());
    }
}
