//! Whether NetworkPolicies allow a connection. What is not known of a peer counts as allowed.

use core::net::IpAddr;

use ipnet::IpNet;
use otel_webhook_api::LabelSelector;
use otel_webhook_inject::selector::Selector;
use serde_json::Value;

use super::{items, text};

/// An end of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Peer<'p> {
    /// The pod; `None` for one that is not known, or outside of the cluster.
    pub pod: Option<&'p Value>,
    /// The labels of its namespace; `None` if they are not known.
    pub namespace_labels: Option<&'p Value>,
    /// The addresses by which it may be known.
    pub addresses: &'p [String],
}

/// The direction of a connection, as seen from the pod that a policy selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the pod.
    Egress,
    /// To the pod.
    Ingress,
}

impl Direction {
    /// The type of policies, the field with their rules, and that with the peers of a rule.
    fn names(self) -> [&'static str; 3] {
        match self {
            Self::Egress => ["Egress", "egress", "to"],
            Self::Ingress => ["Ingress", "ingress", "from"],
        }
    }
}

/// Returns the names of the policies that select a pod where none of them allows the connection.
pub fn denying<'p>(
    policies: &'p [Value],
    direction: Direction,
    pod: &Value,
    peer: Peer<'_>,
    port: u16,
) -> Vec<&'p str> {
    // They do not apply to the network of the node.
    if pod["spec"]["hostNetwork"] == true {
        return Vec::new();
    }
    let selecting: Vec<&Value> = policies.iter().filter(|policy| selects(policy, direction, pod)).collect();
    let [_, rules, peers] = direction.names();
    let server = if direction == Direction::Ingress { Some(pod) } else { peer.pod };
    let allows = |rule: &Value| {
        let by_port =
            is_empty(&rule["ports"]) || items(&rule["ports"]).any(|one| has_port(one, port, server));
        by_port && (is_empty(&rule[peers]) || items(&rule[peers]).any(|one| may_be(one, pod, peer)))
    };
    if selecting.iter().any(|policy| items(&policy["spec"][rules]).any(allows)) {
        return Vec::new();
    }
    selecting.iter().map(|policy| text(&policy["metadata"]["name"])).collect()
}

fn selects(policy: &Value, direction: Direction, pod: &Value) -> bool {
    let [kind, rules, _] = direction.names();
    let spec = &policy["spec"];
    let is_of_kind = match spec["policyTypes"].as_array() {
        Some(kinds) => kinds.iter().any(|one| one == kind),
        None => direction == Direction::Ingress || spec[rules].is_array(),
    };
    is_of_kind && matches(&spec["podSelector"], &pod["metadata"]["labels"])
}

fn has_port(rule: &Value, port: u16, server: Option<&Value>) -> bool {
    let is_tcp = rule["protocol"].as_str().is_none_or(|protocol| protocol == "TCP");
    let has = |wanted: &Value| match (wanted.as_u64(), wanted.as_str()) {
        (Some(first), _) => (first..=rule["endPort"].as_u64().unwrap_or(first)).contains(&u64::from(port)),
        (None, Some(name)) => server.is_none_or(|pod| {
            let ports = items(&pod["spec"]["containers"]).flat_map(|one| items(&one["ports"]));
            ports.into_iter().any(|one| one["name"] == name && one["containerPort"] == port)
        }),
        (None, None) => true,
    };
    is_tcp && has(&rule["port"])
}

fn may_be(rule: &Value, pod: &Value, peer: Peer<'_>) -> bool {
    if rule["ipBlock"].is_object() {
        let is_within =
            |address: &String| address.parse().is_ok_and(|address| is_in(&rule["ipBlock"], address));
        return peer.addresses.is_empty() || peer.addresses.iter().any(is_within);
    }
    let Some(other) = peer.pod else { return false };
    let of_namespace = match &rule["namespaceSelector"] {
        Value::Null => other["metadata"]["namespace"] == pod["metadata"]["namespace"],
        selector => peer.namespace_labels.is_none_or(|labels| matches(selector, labels)),
    };
    of_namespace && matches(&rule["podSelector"], &other["metadata"]["labels"])
}

fn is_in(block: &Value, address: IpAddr) -> bool {
    let contains =
        |network: &Value| text(network).parse().is_ok_and(|network: IpNet| network.contains(&address));
    contains(&block["cidr"]) && !items(&block["except"]).any(contains)
}

/// Whether a selector matches labels. API servers validate selectors, so that all can be read.
fn matches(selector: &Value, labels: &Value) -> bool {
    let selector = serde_json::from_value::<LabelSelector>(selector.clone()).ok();
    let selector = selector.and_then(|selector| Selector::new(&selector).ok().flatten());
    selector.is_none_or(|selector| selector.matches_by(|key| labels[key].as_str()))
}

fn is_empty(list: &Value) -> bool {
    list.as_array().is_none_or(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Whether egress of a pod to port 4318 of a Collector is allowed by policies with these specifications.
    fn allows(specifications: &[Value]) -> bool {
        let policies: Vec<_> =
            specifications.iter().map(|spec| json!({"metadata": {"name": "p"}, "spec": spec})).collect();
        let pod = json!({"metadata": {"namespace": "shop", "labels": {"app": "order"}}, "spec": {}});
        let port = json!({"name": "otlp", "containerPort": 4318});
        let collector = json!({"metadata": {"namespace": "telemetry", "labels": {"app": "collector"}},
            "spec": {"containers": [{"ports": [port]}]}});
        let labels = json!({"kubernetes.io/metadata.name": "telemetry"});
        let addresses = ["10.1.2.3".to_owned()];
        let peer = Peer { pod: Some(&collector), namespace_labels: Some(&labels), addresses: &addresses };
        denying(&policies, Direction::Egress, &pod, peer, 4318).is_empty()
    }

    fn egress(rules: &Value) -> Value {
        json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": rules})
    }

    #[test]
    fn a_connection_is_denied_where_policies_select_the_pod_and_none_allows_it() {
        let to = |peer: Value| egress(&json!([{"to": [peer]}]));
        let at = |port: Value| egress(&json!([{"ports": [port]}]));
        let telemetry = json!({"matchLabels": {"kubernetes.io/metadata.name": "telemetry"}});
        let collector = json!({"matchLabels": {"app": "collector"}});
        for (what, policy, expected) in [
            ("only ingress", json!({"podSelector": {}, "policyTypes": ["Ingress"]}), true),
            ("ingress by default", json!({"podSelector": {}}), true),
            ("egress by its rules", json!({"podSelector": {}, "egress": []}), false),
            (
                "other pods",
                json!({"podSelector": {"matchLabels": {"app": "cart"}}, "policyTypes": ["Egress"]}),
                true,
            ),
            ("nothing", egress(&json!([])), false),
            ("everything", egress(&json!([{}])), true),
            ("the port", at(json!({"port": 4318})), true),
            ("another port", at(json!({"port": 4317})), false),
            ("a range", at(json!({"port": 4000, "endPort": 5000})), true),
            ("its name", at(json!({"port": "otlp"})), true),
            ("another name", at(json!({"port": "metrics"})), false),
            ("UDP", at(json!({"protocol": "UDP", "port": 4318})), false),
            ("the namespace", to(json!({"namespaceSelector": telemetry})), true),
            ("pods of its own namespace", to(json!({"podSelector": collector})), false),
            ("the pods", to(json!({"namespaceSelector": {}, "podSelector": collector})), true),
            (
                "other pods",
                to(json!({"namespaceSelector": telemetry, "podSelector": {"matchLabels": {"app": "a"}}})),
                false,
            ),
            ("the network", to(json!({"ipBlock": {"cidr": "10.0.0.0/8"}})), true),
            (
                "all but the network",
                to(json!({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}})),
                false,
            ),
        ] {
            assert_eq!(allows(&[policy]), expected, "{what}");
        }
        assert!(allows(&[egress(&json!([])), egress(&json!([{}]))]), "one that allows it is enough");
    }
}
