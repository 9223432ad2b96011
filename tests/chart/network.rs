//! The `NetworkPolicy`: off by default, and no narrower than its values say.

use serde_json::{Value, json};

use crate::helm::{objects_of, objects_with, of_component, of_kind, the, values};

fn policy(objects: &[Value]) -> &Value {
    &of_component(objects, "NetworkPolicy", "webhook")[0]["spec"]
}

#[test]
fn there_is_no_network_policy_by_default() {
    assert!(of_kind(objects_of(&values("default")), "NetworkPolicy").is_empty());
}

/// The address of the API server is another one in every cluster, and an egress rule that omits it stops the webhook.
#[test]
fn an_enabled_network_policy_restricts_ports_alone() {
    let objects = objects_with(&["networkPolicy.enabled=true"]);
    let policy = policy(&objects);
    assert_eq!(policy["policyTypes"], json!(["Ingress"]));
    assert_eq!(policy["egress"], Value::Null);
    let by_port = |port: &str| json!({"ports": [{"protocol": "TCP", "port": port}]});
    assert_eq!(policy["ingress"], json!([by_port("webhook"), by_port("admin")]));
}

#[test]
fn peers_and_egress_are_restricted_if_they_are_given() {
    let objects = objects_of(&values("host-network"));
    let policy = policy(objects);
    assert_eq!(policy["policyTypes"], json!(["Ingress", "Egress"]));
    let cidr = json!({"ipBlock": {"cidr": "192.0.2.0/24"}});
    let review = &the(objects, "Pod")["metadata"]["labels"];
    let [given, test] = &policy["ingress"][0]["from"].as_array().expect("peers")[..] else { panic!("two") };
    assert_eq!(given, &cidr);
    for (label, value) in test["podSelector"]["matchLabels"].as_object().expect("labels") {
        assert_eq!(&review[label], value, "the pod of helm test is not selected by {label}");
    }
    let monitoring =
        json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}});
    assert_eq!(policy["ingress"][1]["from"], json!([monitoring]));
    assert_eq!(policy["egress"][1], json!({"ports": [{"protocol": "TCP", "port": 6443}], "to": [cidr]}));
    assert_eq!(policy["egress"][2], json!({"ports": [{"protocol": "TCP", "port": 8443}]}));
}

/// It receives no reviews, and needs the same outgoing connections.
#[test]
fn the_controller_is_reached_for_health_and_metrics_alone() {
    let objects = objects_of(&values("host-network"));
    let [controller] = of_component(objects, "NetworkPolicy", "controller")[..] else { panic!("one policy") };
    let (controller, webhook) = (&controller["spec"], policy(objects));
    assert_eq!(controller["ingress"], json!([webhook["ingress"][1]]));
    assert_eq!(
        (&controller["egress"], &controller["policyTypes"]),
        (&webhook["egress"], &webhook["policyTypes"])
    );
}
