//! The installation: the Services of the webhooks, the flags that the results are based on, what pauses injection, and
//! whether images could be mounted.

use std::sync::Arc;

use k8s_openapi::api::{
    core::v1::{self, Service},
    discovery::v1::EndpointSlice,
};
use kube::core::ApiResource;
use serde_json::Value;

use super::{
    result::{CheckResult, Code},
    survey::{Mounting, Survey},
};
use crate::cluster::{
    facts::{self, Facts, ServiceFacts},
    object::text,
    reader::{Asked, ClusterReader, Part},
    running::Running,
};
use otel_webhook_api::Delivery;
use otel_webhook_inject::{
    cluster::{self, Cluster, Need, Node, Obstacle, Version},
    pause::Pause,
    pod::{Pod, Spec},
    reason::ObjectName,
};
use otel_webhook_server::subject::Subject;

/// Returns the results for a Service.
pub fn services(facts: &ServiceFacts) -> Vec<CheckResult> {
    let about = |result: CheckResult| result.about(Subject::new("Service", &facts.namespace, &facts.name));
    let service = match &facts.service {
        Ok(Some(service)) => service,
        Ok(None) => {
            let advice = "create it, or change the Service in the webhook configuration";
            return vec![about(CheckResult::new(Code::ServiceMissing, "not found").advise(advice))];
        }
        Err(failed) => return vec![failed.result()],
    };
    facts.ports.iter().map(|port| about(of_port(service, &facts.slices, *port))).collect()
}

fn of_port(service: &Service, slices: &Asked<Vec<EndpointSlice>>, port: i32) -> CheckResult {
    let spec = service.spec.as_ref();
    if let Some(name) = spec.and_then(|spec| spec.external_name.as_ref()).filter(|name| !name.is_empty()) {
        return CheckResult::new(
            Code::EndpointsReady,
            format!("has the external name {name}; its endpoints cannot be checked"),
        );
    }
    let ports = spec.and_then(|spec| spec.ports.as_deref()).unwrap_or_default();
    let Some(own) = ports.iter().find(|own| own.port == port) else {
        let there = ports.iter().map(|own| own.port.to_string()).collect::<Vec<_>>().join(", ");
        let advice = "change the port in the webhook configuration";
        return CheckResult::new(Code::PortMissing, format!("has no port {port}; its ports: {there}"))
            .advise(advice);
    };
    let slices = match slices {
        Ok(slices) => slices,
        Err(failed) => return failed.result(),
    };
    match facts::ready(slices, own.name.as_deref().unwrap_or_default()) {
        0 => {
            let advice = "check the webhook's pods and their logs: kubectl get pods, kubectl logs";
            let message = format!("has no ready endpoints for port {port}: pods are not injected");
            CheckResult::new(Code::EndpointsMissing, message).advise(advice)
        }
        count => {
            CheckResult::new(Code::EndpointsReady, format!("has {count} ready endpoints for port {port}"))
        }
    }
}

/// Returns a warning if images are mounted and not every node can mount them, or the recommendation to mount them if
/// the webhook copies agents and every node can. `None` also if that is not known, such as where the user may not list
/// nodes.
pub async fn delivery(reader: &ClusterReader, facts: &Facts, survey: &Survey) -> Option<CheckResult> {
    let injection = &facts.running.as_ref()?.flags.as_ref().ok()?.injection;
    let settings = injection.settings();
    let of_agents = Agents {
        are_copied: settings.delivery == Delivery::InitContainer,
        // A webhook that watches nodes warns of each workload itself.
        mounting: if injection.watches_nodes() { Vec::new() } else { survey.mounting() },
    };
    if !of_agents.are_copied && of_agents.mounting.is_empty() {
        return None;
    }
    let server = reader.version.as_deref().map(Into::into);
    let mut nodes = Cluster { server, is_listed: true, ..Cluster::default() };
    let take = |node: Value| {
        let name = text(&node["metadata"]["name"]).into();
        nodes.nodes.extend(Node::of(&node).map(|node| (name, Arc::new(node))));
    };
    reader.each(&ApiResource::erase::<v1::Node>(&()), None, Part::Whole, take).await.ok()?;
    of_agents.on(&nodes, settings.image_volumes_from)
}

/// How agents are delivered.
struct Agents<'s> {
    /// Whether init containers copy them by default.
    are_copied: bool,
    /// The pods that mount them, whether or not the nodes can.
    mounting: Vec<&'s Mounting>,
}

impl Agents<'_> {
    fn on(&self, nodes: &Cluster, least: Version) -> Option<CheckResult> {
        let obstacle =
            |pod: &Spec<'_>, by_subpath| cluster::obstacle(Some(nodes), pod, Need { by_subpath, least });
        let of = |mounting: &&Mounting| obstacle(&Pod::parse(&mounting.pod).ok()?.spec, mounting.by_subpath);
        let known: Vec<_> = self.mounting.iter().filter_map(of).filter(Obstacle::is_known).collect();
        if let Some(first) = known.first() {
            return Some(not_supported(known.len(), first));
        }
        // For a pod that may run on any node, whatever a language needs.
        let is_possible = self.are_copied && obstacle(&Spec::default(), true).is_none();
        is_possible.then(|| recommendation(nodes.nodes.len()))
    }
}

fn not_supported(mounting: usize, obstacle: &Obstacle) -> CheckResult {
    let message = format!(
        "agents of {mounting} workloads are mounted as image volumes, and their pods may not start: {obstacle}"
    );
    CheckResult::new(Code::ImageVolumesNotSupported, message).advise(
        "set the delivery auto or initContainer, or keep the pods off such nodes; see docs/guides/image-volumes.md",
    )
}

fn recommendation(nodes: usize) -> CheckResult {
    let message = format!(
        "agents are copied by init containers, and all {nodes} nodes can mount their images, with which pods start \
         sooner: a small pod with the agent for Node.js was Ready after 0.6 instead of 2.9 seconds, and one with \
         Java's after 0.8 instead of 2.0 (docs/operations/sizes.md#start-of-a-pod)"
    );
    CheckResult::new(Code::ImageVolumesPossible, message).advise(
        "set injection.delivery=auto in the chart's values; see docs/guides/image-volumes.md for what changes",
    )
}

/// Returns a result for each object that pauses injection.
pub fn pauses(pauses: &[Pause]) -> Vec<CheckResult> {
    pauses.iter().map(paused).collect()
}

fn paused(pause: &Pause) -> CheckResult {
    let message = format!(
        "injection is paused: {} start without agents, and no workload of them is restarted",
        pause.pods()
    );
    let advice = format!(
        "to resume: {}; the agents of running pods stay, and otel-webhook status prints the commands that remove them",
        pause.resume_command()
    );
    CheckResult::new(Code::InjectionPaused, message).advise(advice).about(subject(pause))
}

fn subject(pause: &Pause) -> Subject {
    match pause {
        Pause::Release(name) | Pause::Namespace(name) => Subject::new("Namespace", "", name),
        Pause::Lease(ObjectName { namespace, name }) => Subject::new("Lease", namespace, name),
        Pause::Instrumentation(ObjectName { namespace, name }) => {
            Subject::new("Instrumentation", namespace, name)
        }
    }
}

impl Running {
    /// Returns the result for the flags that are used.
    pub fn result(&self) -> CheckResult {
        let result = match &self.flags {
            Ok(flags) => {
                let languages = flags.injection.languages.names();
                let message = format!("the results are based on its flags; languages: {languages}");
                CheckResult::new(Code::SettingsFound, message)
            }
            Err(problem) => assumed(&format!("its flags cannot be read: {problem}")),
        };
        result.about(self.pod.clone())
    }
}

/// Returns the warning that the flags of this command are used.
pub fn assumed(reason: &str) -> CheckResult {
    let message = format!("{reason}; the results are based on the flags of this command");
    CheckResult::new(Code::SettingsAssumed, message)
        .advise("set the flags of the webhook, such as --languages")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;
    use crate::cluster::reader::FailedRequest;

    fn facts(spec: Value, endpoints: Value) -> ServiceFacts {
        let slice = json!({"metadata": {"name": "a"}, "addressType": "IPv4", "endpoints": endpoints,
            "ports": [{"name": "https", "port": 9443}]});
        ServiceFacts {
            namespace: "otel-webhook".to_owned(),
            name: "otel-webhook".to_owned(),
            ports: vec![443],
            service: Ok(Some(from_value(json!({"metadata": {}, "spec": spec})).expect("a Service"))),
            slices: Ok(vec![from_value(slice).expect("a slice")]),
        }
    }

    fn said(facts: &ServiceFacts) -> (Code, String) {
        let results = services(facts);
        (results[0].code, results[0].line())
    }

    fn spec() -> Value {
        json!({"ports": [{"name": "https", "port": 443, "targetPort": 9443}]})
    }

    #[test]
    fn ready_endpoints_of_the_port_are_counted() {
        let endpoints = json!([
            {"addresses": ["10.0.0.1"], "conditions": {"ready": true}},
            {"addresses": ["10.0.0.2"]},
            {"addresses": ["10.0.0.3"], "conditions": {"ready": false}},
        ]);
        let (code, line) = said(&facts(spec(), endpoints.clone()));
        assert_eq!(code, Code::EndpointsReady);
        assert!(
            line.ends_with("Service otel-webhook/otel-webhook: has 2 ready endpoints for port 443"),
            "{line}"
        );
        let other = json!({"ports": [{"name": "metrics", "port": 443}]});
        assert_eq!(said(&facts(other, endpoints)).0, Code::EndpointsMissing);
    }

    #[test]
    fn missing_endpoints_and_ports_are_reported() {
        let none = json!([{"addresses": ["10.0.0.3"], "conditions": {"ready": false}}]);
        let (code, line) = said(&facts(spec(), none));
        assert_eq!(code, Code::EndpointsMissing);
        assert!(line.contains("has no ready endpoints for port 443"), "{line}");
        let (code, line) = said(&facts(json!({"ports": [{"port": 8443}, {"port": 80}]}), json!([])));
        assert_eq!(code, Code::PortMissing);
        assert!(line.contains("has no port 443; its ports: 8443, 80"), "{line}");
        let gone = ServiceFacts { service: Ok(None), ..facts(spec(), json!([])) };
        assert_eq!(said(&gone).0, Code::ServiceMissing);
        let external = json!({"externalName": "webhook.example.com", "ports": []});
        assert_eq!(said(&facts(external, json!([]))).0, Code::EndpointsReady);
    }

    #[test]
    fn missing_permissions_are_warnings() {
        let forbidden =
            || FailedRequest { question: "get services a".to_owned(), problem: "forbidden".to_owned() };
        let facts = ServiceFacts { slices: Err(forbidden()), ..facts(spec(), json!([])) };
        let (code, line) = said(&facts);
        assert_eq!(code, Code::NotAllowed);
        assert!(line.contains("cannot get services a: forbidden"), "{line}");
    }

    #[test]
    fn images_are_recommended_only_where_every_node_can_mount_them() {
        let node = |runtime: &str| {
            let info = json!({"kubeletVersion": "v1.36.3", "containerRuntimeVersion": runtime});
            Arc::new(Node::of(&json!({"status": {"nodeInfo": info}})).expect("a node"))
        };
        let of = |server: Option<&str>, runtimes: &[&str]| {
            let nodes =
                runtimes.iter().enumerate().map(|(index, runtime)| (index.to_string().into(), node(runtime)));
            let server = server.map(Into::into);
            let cluster = Cluster { server, nodes: nodes.collect(), is_listed: true };
            let anywhere = |by_subpath| Mounting { by_subpath, pod: "{}".to_owned() };
            let pod = json!({"spec": {"nodeSelector": {"disk": "ssd"}}}).to_string();
            let nowhere = Mounting { by_subpath: true, pod };
            let agents =
                [(true, vec![]), (false, vec![anywhere(true), anywhere(false)]), (false, vec![nowhere])];
            agents.map(|(are_copied, mounting)| {
                let mounting = mounting.iter().collect();
                Agents { are_copied, mounting }.on(&cluster, Version::new(1, 36))
            })
        };
        let new = "containerd://2.4.2";
        let [found, warned, _] = of(Some("v1.36.3"), &[new, new]);
        assert_eq!(warned, None);
        let found = found.expect("a recommendation");
        assert_eq!(found.code, Code::ImageVolumesPossible);
        assert!(found.line().contains("all 2 nodes can mount their images"), "{}", found.line());
        let known = "agents of 2 workloads are mounted as image volumes, and their pods may not start: ";
        for (server, runtimes, warned) in [
            (
                Some("v1.36.3"),
                &[new, "containerd://1.7.0"][..],
                Some("on node \"1\" the container runtime is"),
            ),
            (Some("v1.35.0"), &[new], Some("the API server has version v1.35.0")),
            (None, &[new], None),
            (Some("v1.36.3"), &[], None),
        ] {
            let [recommended, found, elsewhere] = of(server, runtimes);
            assert_eq!(recommended, None, "{server:?} {runtimes:?}");
            let is_of_node = server == Some("v1.36.3");
            assert!(elsewhere.is_none() || !is_of_node, "no node that it may run on is known: {elsewhere:?}");
            assert_eq!(found.is_some(), warned.is_some(), "{server:?} {runtimes:?}");
            if let Some((found, warned)) = found.zip(warned) {
                assert_eq!(found.code, Code::ImageVolumesNotSupported);
                assert!(found.line().contains(&[known, warned].concat()), "{}", found.line());
            }
        }
    }

    #[test]
    fn each_object_is_named_with_the_command_that_resumes() {
        let name = || ObjectName { namespace: "shop".into(), name: "java".into() };
        let all = [Pause::Release("home".into()), Pause::Lease(name()), Pause::Instrumentation(name())];
        let lines: Vec<_> = pauses(&all).iter().map(CheckResult::line).collect();
        for (line, (subject, pods, target)) in lines.iter().zip([
            ("Namespace home", "all pods", "namespace home"),
            ("Lease shop/java", "all pods", "leases.coordination.k8s.io java -n shop"),
            (
                "Instrumentation shop/java",
                "the pods that would use it",
                "instrumentations.opentelemetry.io java -n shop",
            ),
        ]) {
            let expected = format!(
                "warning  paused        {subject}: injection is paused: {pods} start without agents, and no workload of \
                 them is restarted; to resume: kubectl annotate {target} otel-webhook/paused-; "
            );
            assert!(line.starts_with(&expected), "{line}");
        }
    }
}
