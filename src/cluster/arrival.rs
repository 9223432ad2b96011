//! Where a running pod sends its data, and why it may not arrive, as far as the user may read it.

use std::collections::BTreeSet;

use k8s_openapi::api::{
    core::v1::{Namespace, Pod, Secret},
    networking::v1::NetworkPolicy,
};
use kube::core::ApiResource;
use serde_json::Value;

use super::{
    facts::{ServiceFacts, ready, ready_endpoints},
    known::Known,
    object::files,
    reader::{ClusterReader, FailedRequest, Part},
};
use otel_webhook_fleet::silent::{
    self, Backend, Facts, Likely, Neighbours, Route, Service, Target, endpoints, target,
};
use otel_webhook_inject::reason::ObjectName;
use otel_webhook_server::{subject::Subject, tls::trust::ShownChain};

/// What was found of the way of a pod's data.
#[derive(Debug)]
pub struct Arrival {
    /// The likely causes of missing data, the most likely first.
    pub causes: Vec<Likely>,
    /// Where the pod sends; `None` if a file decides, or what its agent reads is not known.
    pub routes: Option<Vec<Route>>,
    /// The requests that failed.
    pub failed: Vec<FailedRequest>,
}

/// What the controller has written of the data of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// The controller has no source that says so, or there is none.
    NotAsked,
    /// It is not known of all pods.
    NotKnown {
        /// Of how many pods of the Instrumentation data arrives.
        heard: u64,
    },
    /// Data of all pods of the Instrumentation arrives, except of other workloads.
    Heard,
    /// No data of this many pods arrives.
    Silent(u64),
}

impl Data {
    /// Reads the status of an Instrumentation.
    pub fn of(status: &Value, workload: &Subject) -> Self {
        let pods = &status["pods"];
        let count = |field: &str| pods[field].as_u64().unwrap_or_default();
        let (Some(heard), Some(silent)) = (pods["heard"].as_u64(), pods["silent"].as_u64()) else {
            return Self::NotAsked;
        };
        let rows = || status["workloads"].as_array().into_iter().flatten();
        let own = rows().find(|row| {
            [("kind", &workload.kind), ("namespace", &workload.namespace), ("name", &workload.name)]
                .iter()
                .all(|(field, value)| row[field] == ***value)
        });
        let silence = |row: &Value| row["silent"].as_u64().unwrap_or_default();
        match own.map(silence) {
            Some(own @ 1..) => Self::Silent(own),
            // It may be one of those that are not listed.
            None if rows().map(silence).sum::<u64>() < silent => Self::NotKnown { heard },
            _ if heard > 0 && heard + silent >= count("injected") + count("stale") => Self::Heard,
            _ => Self::NotKnown { heard },
        }
    }
}

/// Returns of how many pods of a namespace data arrives, other than those of a silent workload.
pub fn neighbours(known: &Known, workload: &Subject, pods: usize, silent: u64) -> Option<Neighbours> {
    let of_namespace =
        known.instrumentations.iter().filter(|((namespace, _), _)| *namespace == workload.namespace);
    let counts = of_namespace.filter_map(|(_, object)| {
        let pods = &object["status"]["pods"];
        let count = |field: &str| usize::try_from(pods[field].as_u64()?).ok();
        count("heard").zip(count("silent"))
    });
    let (heard, all) = counts.reduce(|one, other| (one.0 + other.0, one.1 + other.1))?;
    let silent = usize::try_from(silent).unwrap_or(pods);
    Some(Neighbours { heard: heard.saturating_sub(pods.saturating_sub(silent)), silent: all })
}

/// Reads what is known of where a pod sends the data of a language.
pub async fn read(
    cluster: &ClusterReader,
    pod: &Value,
    language: &'static str,
    neighbours: Option<Neighbours>,
) -> Arrival {
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
    let mut reading = Reading { cluster, failed: Vec::new() };
    let known = endpoints(pod, language);
    let mut routes = Vec::new();
    for (container, endpoint) in known.clone().unwrap_or_default() {
        let mut route = Route { container, endpoint, service: None, backend: None };
        reading.follow(namespace, &mut route).await;
        routes.push(route);
    }
    let namespace_labels = reading.labels_of(namespace).await;
    let policies = reading.policies(namespace).await;
    let mut missing = Vec::new();
    for file in files(pod) {
        match cluster.exists(&file.resource(), Some(namespace), &file.name).await {
            Ok(true) => {}
            Ok(false) => missing.push(Subject::new(file.kind, namespace, &file.name).to_string()),
            Err(failed) => reading.failed.push(failed),
        }
    }
    let facts = Facts {
        pod,
        language,
        routes: &routes,
        namespace_labels: namespace_labels.as_ref(),
        policies: &policies,
        missing: &missing,
        neighbours,
    };
    let causes = silent::causes(&facts);
    Arrival { causes, routes: known.map(|_| routes), failed: reading.failed }
}

struct Reading<'c> {
    cluster: &'c ClusterReader,
    failed: Vec<FailedRequest>,
}

impl Reading<'_> {
    fn answered<T>(&mut self, asked: Result<T, FailedRequest>) -> Option<T> {
        asked.map_err(|failed| self.failed.push(failed)).ok()
    }

    async fn labels_of(&mut self, namespace: &str) -> Option<Value> {
        let kind = ApiResource::erase::<Namespace>(&());
        let found = self.cluster.get_value(&kind, None, namespace).await;
        self.answered(found)?.map(|mut found| found["metadata"]["labels"].take())
    }

    async fn policies(&mut self, namespace: &str) -> Vec<Value> {
        let (kind, mut found) = (ApiResource::erase::<NetworkPolicy>(&()), Vec::new());
        let asked = self.cluster.each(&kind, Some(namespace), Part::Whole, |policy| found.push(policy)).await;
        self.answered(asked);
        found
    }

    /// Adds the Service of the endpoint, and a pod behind it.
    async fn follow(&mut self, own_namespace: &str, route: &mut Route) {
        let (name, is_certain) = match target(&route.endpoint, own_namespace) {
            Target::Service(name) => (name, true),
            Target::ServiceIfNamespace(name) => (name, false),
            Target::OwnPod | Target::Elsewhere | Target::Unknown => return,
        };
        let Some(port) = route.endpoint.port else { return };
        let kind = ApiResource::erase::<Namespace>(&());
        let namespace = self.cluster.get_value(&kind, None, &name.namespace).await;
        let is_there = namespace.as_ref().is_ok_and(Option::is_some);
        if !is_certain && namespace.as_ref().is_ok_and(Option::is_none) {
            return;
        }
        let labels = self.answered(namespace).flatten().map(|mut found| found["metadata"]["labels"].take());
        let ServiceFacts { service, slices, .. } = ServiceFacts::read(
            self.cluster,
            name.namespace.to_string(),
            name.name.to_string(),
            vec![port.into()],
        )
        .await;
        let Some(service) = self.answered(service) else { return };
        let slices = self.answered(slices);
        let spec = match service.and_then(|service| service.spec) {
            // Whether it is a name outside of the cluster is not known.
            None if !is_certain && !is_there => return,
            None => {
                route.service = Some(Service { name, ports: None, ready: None });
                return;
            }
            Some(spec) => spec,
        };
        if spec.external_name.as_ref().is_some_and(|name| !name.is_empty()) {
            return;
        }
        let listed = spec.ports.iter().flatten();
        let own = listed.clone().find(|own| own.port == i32::from(port));
        let own = own.map(|own| own.name.clone().unwrap_or_default());
        // Without an address, the name stands for the pods, which have any port.
        let is_headless = spec.cluster_ip.as_deref() == Some("None");
        let ports = listed.filter(|_| !is_headless).filter_map(|own| own.port.try_into().ok()).collect();
        let count = own.as_deref().zip(slices.as_deref()).map(|(own, slices)| ready(slices, own));
        route.service = Some(Service { name: name.clone(), ports: Some(ports), ready: count });
        if let Some((own, slices)) = own.zip(slices) {
            let found = ready_endpoints(&slices, &own).find_map(|(endpoint, port)| {
                let pod =
                    endpoint.target_ref.as_ref().filter(|target| target.kind.as_deref() == Some("Pod"))?;
                Some((pod.name.clone()?, endpoint.addresses.clone(), port))
            });
            let Some((pod, mut addresses, target_port)) = found else { return };
            addresses.extend(spec.cluster_ips.into_iter().flatten());
            let kind = ApiResource::erase::<Pod>(&());
            let pod = self.cluster.get_value(&kind, Some(&name.namespace), &pod).await;
            let Some(pod) = self.answered(pod).flatten() else { return };
            let certificates = if route.endpoint.is_tls {
                self.certificates(&name.namespace, &pod, &route.endpoint.host).await
            } else {
                Vec::new()
            };
            route.backend = Some(Backend {
                pod,
                port: target_port.and_then(|port| port.try_into().ok()),
                addresses,
                namespace_labels: labels,
                policies: self.policies(&name.namespace).await,
                certificates,
            });
        }
    }

    /// Reads the certificates of the Secrets that a pod mounts.
    async fn certificates(
        &mut self,
        namespace: &str,
        pod: &Value,
        host: &str,
    ) -> Vec<(ObjectName, Vec<String>, bool)> {
        let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
        let names = volumes.flat_map(|volume| {
            let sources = volume["projected"]["sources"].as_array().into_iter().flatten();
            let projected = sources.map(|source| &source["secret"]["name"]);
            [&volume["secret"]["secretName"]].into_iter().chain(projected).filter_map(Value::as_str)
        });
        let mut found = Vec::new();
        for name in names.collect::<BTreeSet<_>>() {
            let secret = self.cluster.get::<Secret>(Some(namespace), name).await;
            let data = self.answered(secret).flatten().and_then(|secret| secret.data).unwrap_or_default();
            let chain = data.get("tls.crt").and_then(|text| ShownChain::from_pem(&text.0).ok());
            let Some(chain) = chain else { continue };
            let name = ObjectName { namespace: namespace.into(), name: name.into() };
            let is_valid = chain.verify_name(host).is_ok();
            found.push((name, chain.leaf.names, is_valid));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_status_of_an_instrumentation_says_what_is_known_of_a_workload() {
        let row = |name: &str, silent: u64| json!({"kind": "Deployment", "namespace": "shop", "name": name, "silent": silent});
        let order = Subject::new("Deployment", "shop", "order");
        for (what, status, expected) in [
            ("no source", json!({"pods": {"injected": 2}}), Data::NotAsked),
            (
                "it is silent",
                json!({"pods": {"injected": 4, "heard": 2, "silent": 2}, "workloads": [row("order", 2)]}),
                Data::Silent(2),
            ),
            (
                "another is silent",
                json!({"pods": {"injected": 4, "heard": 2, "silent": 2}, "workloads": [row("cart", 2)]}),
                Data::Heard,
            ),
            (
                "more are silent than are listed",
                json!({"pods": {"injected": 4, "heard": 2, "silent": 2}, "workloads": [row("cart", 1)]}),
                Data::NotKnown { heard: 2 },
            ),
            (
                "all are heard",
                json!({"pods": {"injected": 1, "stale": 1, "heard": 2, "silent": 0}}),
                Data::Heard,
            ),
            (
                "some are not known",
                json!({"pods": {"injected": 2, "heard": 1, "silent": 0}}),
                Data::NotKnown { heard: 1 },
            ),
            ("nothing is known", json!({"pods": {"heard": 0, "silent": 0}}), Data::NotKnown { heard: 0 }),
        ] {
            assert_eq!(Data::of(&status, &order), expected, "{what}");
        }
    }
}
