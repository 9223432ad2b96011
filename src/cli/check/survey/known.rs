//! Lists namespaces, LimitRanges, ResourceQuotas, ServiceAccounts and Instrumentations once.

use std::collections::{BTreeSet, HashMap};

use k8s_openapi::api::core::v1::{LimitRange, Namespace, ResourceQuota, ServiceAccount};
use kube::core::ApiResource;
use serde_json::Value;

use super::{
    look::Look,
    object::{labels, text, typed},
    rows::{COLLECTOR, Survey},
};
use crate::{
    cli::{
        check::{
            cluster::{ClusterReader, NotTold, Part},
            result::Subject,
        },
        flags::InjectionFlags,
    },
    store::{Writer, owners::OwnerBook},
};
use otel_webhook_api::Instrumentation;
use otel_webhook_inject::{catalogue::Stored, limits::LimitKind};

/// Lists the objects that the webhook watches.
pub async fn list(
    cluster: &ClusterReader,
    scope: Option<&str>,
    injection: &InjectionFlags,
    survey: &mut Survey,
) -> Look {
    let (mut writer, mut instrumentations) = (injection.writer(), HashMap::new());
    let (mut collectors, namespaces) = (BTreeSet::new(), ApiResource::erase::<Namespace>(&()));
    let mut take = |namespace: Value| {
        let name = text(&namespace["metadata"]["name"]);
        if namespace["metadata"]["annotations"][COLLECTOR].as_str().is_some_and(|value| value != "false") {
            collectors.insert(name.clone());
        }
        survey.namespaces.insert(name, labels(&namespace));
        writer.put(&typed(namespace, "v1", "Namespace"));
    };
    let told = match scope {
        Some(name) => {
            let found = cluster.get_value(&namespaces, None, name).await;
            found.map(|found| found.into_iter().for_each(&mut take))
        }
        None => cluster.each(&namespaces, None, Part::Metadata, take).await,
    };
    survey.not_told.extend(told.err());
    let kind = ApiResource::erase::<Instrumentation>(&());
    let mut take = |object: Value| {
        let object = typed(object, &kind.api_version, &kind.kind);
        writer.put(&object);
        let metadata = &object["metadata"];
        instrumentations.insert((text(&metadata["namespace"]), text(&metadata["name"])), object);
    };
    // A pod may name Instrumentations of other namespaces.
    let mut told = cluster.each(&kind, None, Part::Whole, &mut take).await;
    if let (Err(_), Some(_)) = (&told, scope) {
        told = cluster.each(&kind, scope, Part::Whole, take).await.and(told);
    }
    survey.not_told.extend(told.err());
    list_limits(cluster, scope, &mut writer, survey).await;
    writer.publish();
    let (settings, snapshot) = (injection.settings(), writer.store().snapshot());
    let look = Look { settings, snapshot, instrumentations, book: OwnerBook::default() };
    note(survey, &look, scope);
    survey.collectors = collectors;
    look
}

/// Lists LimitRanges, ResourceQuotas and ServiceAccounts. Without them, the results may differ from the webhook's.
async fn list_limits(cluster: &ClusterReader, scope: Option<&str>, writer: &mut Writer, survey: &mut Survey) {
    for (kind, resource, part) in [
        (LimitKind::Range, ApiResource::erase::<LimitRange>(&()), Part::Whole),
        (LimitKind::Quota, ApiResource::erase::<ResourceQuota>(&()), Part::Whole),
        (LimitKind::ServiceAccount, ApiResource::erase::<ServiceAccount>(&()), Part::Metadata),
    ] {
        let take = |object: Value| {
            writer.put_limit(kind, &object);
        };
        let told = cluster.each(&resource, scope, part, take).await;
        survey.not_told.extend(told.err().map(|NotTold { question, problem }| {
            let problem = format!("{problem}; the results ignore these objects");
            NotTold { question, problem }
        }));
    }
}

/// Records the languages that namespaces opt in to, and unusable Instrumentations.
fn note(survey: &mut Survey, look: &Look, scope: Option<&str>) {
    let mut known: Vec<_> = look.snapshot.catalogue.namespaces.iter().collect();
    known.retain(|(name, _)| scope.is_none_or(|scope| scope == &***name));
    known.sort_by_key(|(name, _)| *name);
    for (name, namespace) in known {
        let findings = look.at_namespace(name);
        if !findings.is_empty() {
            survey.asking.push((name.to_string(), findings));
        }
        for stored in &namespace.instrumentations {
            if let Stored::Invalid { name, problem, .. } = stored {
                let subject = Subject::new("Instrumentation", &name.namespace, &name.name);
                survey.unusable.push((subject, problem.to_string()));
            }
        }
    }
}
