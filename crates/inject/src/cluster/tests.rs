//! Tables of node sets.

use serde_json::{Value, json};

use super::*;
use crate::pod::Pod;

/// What the nodes of a cluster have in common, and how they differ.
struct Row {
    what: &'static str,
    server: &'static str,
    /// Name, kubelet, runtime, and labels as `key=value`.
    nodes: &'static [(&'static str, &'static str, &'static str, &'static [&'static str])],
    pod: Value,
    /// Empty if the image is mounted.
    expected: &'static str,
}

const NEW: &str = "v1.36.0";
const CONTAINERD: &str = "containerd://2.2.0";
const RUNTIMES: &str = "containerd 2.2 or newer, or CRI-O 1.33 or newer";
const RUNTIMES_FOR_ROOT: &str = "containerd 2.1 or newer, or CRI-O 1.33 or newer";

fn cluster(row: &Row) -> Cluster {
    let node = |(name, kubelet, runtime, labels): &(&str, &str, &str, &[&str])| {
        let labels: serde_json::Map<_, _> = labels
            .iter()
            .filter_map(|label| label.split_once('='))
            .map(|(key, value)| (key.to_owned(), json!(value)))
            .collect();
        let info = json!({"kubeletVersion": kubelet, "containerRuntimeVersion": runtime});
        let object = json!({"metadata": {"name": name, "labels": labels}, "status": {"nodeInfo": info}});
        Some(((*name).into(), Arc::new(Node::of(&object)?)))
    };
    let server = (!row.server.is_empty()).then(|| row.server.into());
    Cluster { server, nodes: row.nodes.iter().filter_map(node).collect(), is_listed: true }
}

fn said(cluster: Option<&Cluster>, spec: &Value, by_subpath: bool, least: Version) -> String {
    let text = json!({"spec": spec}).to_string();
    let pod = Pod::parse(&text).expect("a pod");
    let found = obstacle(cluster, &pod.spec, Need { by_subpath, least });
    found.map(|obstacle| obstacle.to_string()).unwrap_or_default()
}

fn check(rows: &[Row], least: Version) {
    for row in rows {
        let cluster = cluster(row);
        assert_eq!(said(Some(&cluster), &row.pod, true, least), row.expected, "{}", row.what);
    }
}

fn affinity(terms: &Value) -> Value {
    let required = json!({"nodeSelectorTerms": terms});
    json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}})
}

fn expression(key: &str, operator: &str, values: &Value) -> Value {
    affinity(&json!([{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]))
}

const OLD_NODE: &str = "on node \"old\" the kubelet has version v1.35.4; image volumes need 1.36 or newer";
const NO_NODE: &str = "no present node matches the nodeSelector and the required node affinity";

/// A cluster of one node.
fn one(what: &'static str, server: &'static str, kubelet: &'static str, runtime: &'static str) -> Row {
    let nodes = Box::leak(Box::new([("n", kubelet, runtime, &[][..])]));
    Row { what, server, nodes, pod: json!({}), expected: "" }
}

#[test]
fn every_node_has_to_have_a_runtime_that_is_known_to_mount_images() {
    // Whether it mounts whole images, and folders of them.
    for (runtime, mounts) in [
        (CONTAINERD, [true, true]),
        ("containerd://2.3.1-k3s2", [true, true]),
        ("containerd://2.1.4", [true, false]),
        ("containerd://2.2.0-beta.1", [true, false]),
        ("containerd://1.7.28", [false, false]),
        ("cri-o://1.33.0", [true, true]),
        ("cri-o://1.32.9", [false, false]),
        ("docker://29.0.1", [false, false]),
        ("", [false, false]),
    ] {
        let row = one(runtime, NEW, NEW, runtime);
        let cluster = cluster(&row);
        let found =
            [false, true].map(|by_subpath| said(Some(&cluster), &row.pod, by_subpath, Version::new(1, 36)));
        let told = if runtime.is_empty() { "unknown" } else { runtime };
        let words = |(is_fit, valid): (bool, &str)| {
            let sentence =
                format!("on node \"n\" the container runtime is {told}; image volumes need {valid}");
            if is_fit { String::new() } else { sentence }
        };
        let expected = [(mounts[0], RUNTIMES_FOR_ROOT), (mounts[1], RUNTIMES)].map(words);
        assert_eq!(found, expected, "{runtime}");
    }
}

#[test]
fn api_server_and_kubelets_have_to_have_the_version() {
    let old = "on node \"n\" the kubelet has version v1.35.9; image volumes need 1.36 or newer";
    let unknown = "on node \"n\" the kubelet has version unknown; image volumes need 1.36 or newer";
    let server = "the API server has version v1.35.1; image volumes need 1.36 or newer";
    let unasked = "the API server has version unknown; image volumes need 1.36 or newer";
    let rows = [
        (one("the version itself", NEW, NEW, CONTAINERD), ""),
        (one("newer ones of distributions", "v1.37.2+k3s1", "v1.36.1-gke.100", CONTAINERD), ""),
        (one("an old kubelet", NEW, "v1.35.9", CONTAINERD), old),
        (one("a kubelet without a version", NEW, "", CONTAINERD), unknown),
        (one("an old API server", "v1.35.1", NEW, CONTAINERD), server),
        (one("an API server that was not asked yet", "", NEW, CONTAINERD), unasked),
    ];
    check(&rows.map(|(row, expected)| Row { expected, ..row }), Version::new(1, 36));

    let old = "on node \"n\" the kubelet has version v1.34.6; image volumes need 1.35 or newer";
    let rows = [
        (one("1.35, with the flag", "v1.35.0", "v1.35.0", CONTAINERD), ""),
        (one("1.34, with the flag", "v1.35.0", "v1.34.6", CONTAINERD), old),
    ];
    check(&rows.map(|(row, expected)| Row { expected, ..row }), Version::new(1, 35));
    let unknown = "the nodes are not known; see --watch-nodes of serve, and --nodes of explain";
    assert_eq!(said(None, &json!({}), false, Version::new(1, 36)), unknown);
}

#[test]
fn only_nodes_that_the_pod_may_run_on_count() {
    const NODES: &[(&str, &str, &str, &[&str])] = &[
        ("new", NEW, CONTAINERD, &["pool=new", "size=4", "kubernetes.io/os=linux"]),
        ("old", "v1.35.4", CONTAINERD, &["pool=old", "size=2", "kubernetes.io/os=linux", "legacy="]),
        ("windows", "v1.30.0", "containerd://1.7.1", &["kubernetes.io/os=windows"]),
    ];
    let row = |what, pod, expected| Row { what, server: NEW, nodes: NODES, pod, expected };
    let both = |selector: &str, operator: &str, values: &Value| {
        let mut spec = expression("pool", operator, values);
        spec["nodeSelector"] = json!({"pool": selector});
        spec
    };
    let term = |operator: &str, value: &str| json!({"matchExpressions": [{"key": "pool", "operator": operator, "values": [value]}]});
    let field = |operator: &str, name: &str| json!([{"matchFields": [{"key": "metadata.name", "operator": operator, "values": [name]}]}]);
    check(
        &[
            row("no requirement", json!({}), OLD_NODE),
            row("the selector of the new ones", json!({"nodeSelector": {"pool": "new"}}), ""),
            row("the selector of the old ones", json!({"nodeSelector": {"pool": "old"}}), OLD_NODE),
            row("a selector of both", json!({"nodeSelector": {"kubernetes.io/os": "linux"}}), OLD_NODE),
            row(
                "a pool that an autoscaler has yet to make",
                json!({"nodeSelector": {"pool": "gpu"}}),
                NO_NODE,
            ),
            row("a pod that is on a node", json!({"nodeName": "new"}), ""),
            row("a pod that is on an old node", json!({"nodeName": "old"}), OLD_NODE),
            row("In", expression("pool", "In", &json!(["new", "newer"])), ""),
            row("In, with both", expression("pool", "In", &json!(["new", "old"])), OLD_NODE),
            row("NotIn", expression("pool", "NotIn", &json!(["old"])), ""),
            row("NotIn, of a label that none has", expression("zone", "NotIn", &json!(["a"])), OLD_NODE),
            row("Exists", expression("legacy", "Exists", &json!(null)), OLD_NODE),
            row("DoesNotExist", expression("legacy", "DoesNotExist", &json!(null)), ""),
            row("Gt", expression("size", "Gt", &json!(["2"])), ""),
            row("Gt, of a lower number", expression("size", "Gt", &json!(["1"])), OLD_NODE),
            row("Lt", expression("size", "Lt", &json!(["3"])), OLD_NODE),
            row("Gt, of no number", expression("pool", "Gt", &json!(["1"])), NO_NODE),
            row("an operator that is not known", expression("pool", "Near", &json!(["new"])), OLD_NODE),
            row("any of two terms", affinity(&json!([term("In", "new"), term("In", "old")])), OLD_NODE),
            row("an empty term matches nothing", affinity(&json!([{}, term("In", "new")])), ""),
            row("no term", affinity(&json!([])), NO_NODE),
            row("the pod of a DaemonSet", affinity(&field("In", "new")), ""),
            row("all nodes but the old one", affinity(&field("NotIn", "old")), ""),
            row(
                "a field that is not known",
                affinity(&json!([{"matchFields": [{"key": "spec.unknown", "operator": "Exists"}]}])),
                NO_NODE,
            ),
            row("selector and affinity", both("new", "In", &json!(["new", "old"])), ""),
            row("selector and affinity that exclude each other", both("new", "In", &json!(["old"])), NO_NODE),
            row(
                "preferred affinity requires nothing",
                json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 100, "preference": term("In", "new")},
                ]}}}),
                OLD_NODE,
            ),
            row("an affinity that cannot be read", json!({"affinity": "none"}), OLD_NODE),
        ],
        Version::new(1, 36),
    );
    let none = Row { what: "no node at all", server: NEW, nodes: &[], pod: json!({}), expected: NO_NODE };
    check(&[none], Version::new(1, 36));
}
