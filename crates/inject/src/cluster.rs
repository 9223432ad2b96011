//! The nodes of the cluster, as far as image volumes depend on them.
//!
//! `auto` mounts an image only where every node that the pod may run on is known to be able to: by the versions of the
//! API server, its kubelet and its container runtime. Pod security levels need no check: any API server that is new
//! enough accepts image volumes at the level `restricted`.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::Deserialize;
use serde_json::Value;

use super::{
    pod::Spec,
    shown::shown,
    text::{List, Map, Object, Text, object_or_default},
};

/// What is known of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// The version of the API server.
    pub server: Option<Box<str>>,
    /// The nodes by name.
    pub nodes: BTreeMap<Box<str>, Arc<Node>>,
    /// Whether all nodes are known.
    pub is_listed: bool,
}

/// Why `auto` does not mount an image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Obstacle {
    /// The nodes are not known.
    NodesUnknown,
    /// The API server is too old, or its version is not known.
    Server {
        /// Its version.
        version: String,
        /// The least version.
        least: Version,
    },
    /// The pod may run on no node that there is now.
    NoNode,
    /// A node might not mount it.
    Node {
        /// Its name.
        name: String,
        /// Why.
        unfit: Unfit,
    },
}

impl Obstacle {
    /// Whether a node or the API server is there that it is about, and not only nothing known.
    pub fn is_known(&self) -> bool {
        match self {
            Self::NodesUnknown | Self::NoNode => false,
            Self::Server { version, .. } => Version::parse(version).is_some(),
            Self::Node { .. } => true,
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodesUnknown => {
                f.write_str("the nodes are not known; see --watch-nodes of serve, and --nodes of explain")
            }
            Self::Server { version, least } => {
                write!(
                    f,
                    "the API server has version {}; image volumes need {least} or newer",
                    shown(version)
                )
            }
            Self::NoNode => {
                f.write_str("no present node matches the nodeSelector and the required node affinity")
            }
            Self::Node { name, unfit } => write!(f, "on node \"{}\" {unfit}", shown(name)),
        }
    }
}

/// Returns why not every node that a pod may run on is known to mount images; `None` if each is.
pub fn obstacle(cluster: Option<&Cluster>, pod: &Spec<'_>, need: Need) -> Option<Obstacle> {
    let Some(cluster) = cluster.filter(|cluster| cluster.is_listed) else {
        return Some(Obstacle::NodesUnknown);
    };
    let server = cluster.server.as_deref().unwrap_or("unknown");
    if Version::parse(server).is_none_or(|version| version < need.least) {
        return Some(Obstacle::Server { version: server.to_owned(), least: need.least });
    }
    let placement = Placement::of(pod);
    let mut is_any = false;
    for (name, node) in &cluster.nodes {
        // In a large cluster most nodes are fit, and only the others have to be matched.
        let unfit = node.unfit(need);
        if is_any && unfit.is_none() || !placement.allows(name, node) {
            continue;
        }
        if let Some(unfit) = unfit {
            return Some(Obstacle::Node { name: name.to_string(), unfit });
        }
        is_any = true;
    }
    (!is_any).then_some(Obstacle::NoNode)
}

/// What a language needs of a node.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// Whether a folder of the image is mounted, by `subPath`.
    pub by_subpath: bool,
    /// The least version of API server and kubelet.
    pub least: Version,
}

/// A node, reduced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Its labels, sorted by key.
    labels: Box<[(Box<str>, Box<str>)]>,
    kubelet: Box<str>,
    runtime: Box<str>,
}

/// Why a node might not mount an image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Unfit {
    /// Its kubelet is too old, or its version is not known.
    Kubelet {
        /// The version.
        version: String,
        /// The least version.
        least: Version,
    },
    /// Its container runtime is too old, or not one that is known to mount images.
    Runtime {
        /// Runtime and version.
        version: String,
        /// What is known to.
        valid: String,
    },
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kubelet { version, least } => {
                write!(f, "the kubelet has version {}; image volumes need {least} or newer", shown(version))
            }
            Self::Runtime { version, valid } => {
                write!(f, "the container runtime is {}; image volumes need {valid}", shown(version))
            }
        }
    }
}

/// A container runtime that mounts images.
struct Runtime {
    /// What its version begins with in a node's status.
    scheme: &'static str,
    name: &'static str,
    /// The least version.
    whole: Version,
    /// The least version for `subPath`.
    by_subpath: Version,
}

impl Runtime {
    fn least(&self, need: Need) -> Version {
        if need.by_subpath { self.by_subpath } else { self.whole }
    }
}

/// Others, such as cri-dockerd, are not known to mount images. containerd 2.1 ignores `subPath`, and mounts the whole
/// image.
const RUNTIMES: [Runtime; 2] = [
    Runtime {
        scheme: "containerd://",
        name: "containerd",
        whole: Version::new(2, 1),
        by_subpath: Version::new(2, 2),
    },
    Runtime {
        scheme: "cri-o://",
        name: "CRI-O",
        whole: Version::new(1, 33),
        by_subpath: Version::new(1, 33),
    },
];

impl Node {
    /// Reads a node; `None` for one that runs Windows, on which no injected pod runs.
    pub fn of(object: &Value) -> Option<Self> {
        let info = &object["status"]["nodeInfo"];
        let text = |field: &str| info[field].as_str().unwrap_or_default().into();
        let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
        let mut labels: Vec<(Box<str>, Box<str>)> =
            labels.filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into()))).collect();
        labels.sort_unstable();
        let node = Self {
            labels: labels.into(),
            kubelet: text("kubeletVersion"),
            runtime: text("containerRuntimeVersion"),
        };
        (node.label("kubernetes.io/os") != Some("windows")).then_some(node)
    }

    /// The version of its kubelet.
    pub fn kubelet(&self) -> &str {
        &self.kubelet
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(own, _)| (**own).cmp(key)).ok()?;
        Some(&self.labels[at].1)
    }

    /// Why it might not mount an image.
    pub(super) fn unfit(&self, need: Need) -> Option<Unfit> {
        if !is_at_least(&self.kubelet, need.least) {
            return Some(Unfit::Kubelet { version: known(&self.kubelet), least: need.least });
        }
        let is_fit = RUNTIMES.iter().any(|runtime| {
            let version = self.runtime.strip_prefix(runtime.scheme);
            version.is_some_and(|version| is_at_least(version, runtime.least(need)))
        });
        let valid = || {
            let each = RUNTIMES.map(|runtime| format!("{} {} or newer", runtime.name, runtime.least(need)));
            each.join(", or ")
        };
        (!is_fit).then(|| Unfit::Runtime { version: known(&self.runtime), valid: valid() })
    }
}

fn is_at_least(version: &str, least: Version) -> bool {
    Version::parse(version).is_some_and(|version| version >= least)
}

fn known(version: &str) -> String {
    if version.is_empty() { "unknown".to_owned() } else { version.to_owned() }
}

/// What a pod requires of its node.
#[derive(Debug)]
pub struct Placement<'s> {
    node_name: &'s str,
    selector: &'s Map<'s>,
    /// `None` if there is no required node affinity.
    terms: Option<Vec<Term<'s>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Affinity<'a> {
    #[serde(borrow, deserialize_with = "object_or_default")]
    node_affinity: NodeAffinity<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NodeAffinity<'a> {
    #[serde(borrow, rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    required: Option<Object<Required<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Required<'a> {
    #[serde(borrow)]
    node_selector_terms: List<Term<'a>>,
}

/// One of several alternatives.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Term<'a> {
    /// Requirements on labels.
    #[serde(borrow)]
    pub match_expressions: List<Expression<'a>>,
    match_fields: List<Expression<'a>>,
}

/// All expressions of a term have to match.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Expression<'a> {
    /// The key of a label, or a field.
    #[serde(borrow)]
    pub key: Text<'a>,
    /// How the values are compared.
    pub operator: Text<'a>,
    values: Option<Vec<Text<'a>>>,
}

impl<'s> Placement<'s> {
    /// Reads it from a pod. An affinity that cannot be read is ignored: the API server rejects the pod.
    pub fn of(spec: &'s Spec<'_>) -> Self {
        let required = spec.affinity.and_then(|affinity| {
            let Object(affinity) = serde_json::from_str::<Object<Affinity<'s>>>(affinity.get()).ok()?;
            affinity.node_affinity.required
        });
        Self {
            node_name: &spec.node_name,
            selector: &spec.node_selector,
            terms: required.map(|Object(required)| required.node_selector_terms.0),
        }
    }

    /// The alternatives of the required node affinity; none if there is no affinity.
    pub fn terms(&self) -> &[Term<'s>] {
        self.terms.as_deref().unwrap_or_default()
    }

    /// Whether the pod may run on a node.
    pub fn allows(&self, name: &str, node: &Node) -> bool {
        let is_named = self.node_name.is_empty() || self.node_name == name;
        let is_selected = || self.selector.iter().all(|(key, value)| node.label(key) == Some(value));
        let is_wanted =
            || self.terms.as_ref().is_none_or(|terms| terms.iter().any(|term| term.allows(name, node)));
        is_named && is_selected() && is_wanted()
    }
}

impl Term<'_> {
    fn allows(&self, name: &str, node: &Node) -> bool {
        let (labels, fields) = (&self.match_expressions, &self.match_fields);
        // An empty term matches no node.
        let is_empty = labels.is_empty() && fields.is_empty();
        let of_field = |key: &str| (key == "metadata.name").then_some(name);
        !is_empty
            && labels.iter().all(|one| one.matches(node.label(&one.key)))
            && fields.iter().all(|one| one.matches(of_field(&one.key)))
    }
}

impl Expression<'_> {
    /// The values.
    pub fn values(&self) -> &[Text<'_>] {
        self.values.as_deref().unwrap_or_default()
    }

    /// With an operator that is not known, the node might match.
    fn matches(&self, value: Option<&str>) -> bool {
        let is_among = value.is_some_and(|value| self.values().iter().any(|one| **one == *value));
        match &*self.operator {
            "In" => is_among,
            "NotIn" => !is_among,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            "Gt" => self.numbers(value).is_some_and(|(own, bound)| own > bound),
            "Lt" => self.numbers(value).is_some_and(|(own, bound)| own < bound),
            _ => true,
        }
    }

    /// A value and the bound, if both are whole numbers.
    fn numbers(&self, value: Option<&str>) -> Option<(i64, i64)> {
        Some((value?.parse().ok()?, self.values().first()?.parse().ok()?))
    }
}

/// The part of a version that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// Whether it is not a pre-release of that minor version.
    is_released: bool,
}

/// What the names of pre-releases begin with. Other suffixes are those of builds, such as `-gke.100`.
const PRE_RELEASES: [&str; 3] = ["alpha", "beta", "rc"];

impl Version {
    /// A released version.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor, is_released: true }
    }

    /// Reads a version such as `v1.36.2`, `2.1.4-k3s1` or `1.36+`. `None` if it has no two numbers.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let (major, rest) = number(text)?;
        let (minor, rest) = number(rest.strip_prefix('.')?)?;
        let (patch, rest) = rest.strip_prefix('.').and_then(number).unwrap_or((0, rest));
        let suffix = rest.strip_prefix('-').unwrap_or_default();
        let is_pre_release = patch == 0 && PRE_RELEASES.iter().any(|name| suffix.starts_with(name));
        Some(Self { major, minor, is_released: !is_pre_release })
    }
}

/// The digits that a text begins with, and the rest.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((digits.parse().ok()?, rest))
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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

    const OLD_NODE: &str =
        "on node \"old\" the kubelet has version v1.35.4; image volumes need 1.36 or newer";
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
            let found = [false, true]
                .map(|by_subpath| said(Some(&cluster), &row.pod, by_subpath, Version::new(1, 36)));
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
                row(
                    "selector and affinity that exclude each other",
                    both("new", "In", &json!(["old"])),
                    NO_NODE,
                ),
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

    #[test]
    fn versions_of_distributions_and_clouds_are_compared_by_two_numbers() {
        let least = Version::new(1, 36);
        for (text, is_enough) in [
            ("v1.36.0", true),
            ("v1.36.2+k3s1", true),
            ("v1.36.1-gke.1234000", true),
            ("v1.36.3-eks-5e0fdde", true),
            ("v1.100.0", true),
            ("v2.0.0", true),
            ("1.36+", true),
            ("v1.36.1-rc.1", true),
            ("v1.36.0-rc.1", false),
            ("v1.36.0-alpha.2.12+abc", false),
            ("v1.37.0-beta.0", true),
            ("v1.35.9", false),
            ("v1.4.0", false),
        ] {
            assert_eq!(Version::parse(text).map(|version| version >= least), Some(is_enough), "{text}");
        }
        for text in ["", "unknown", "v1", "v1.", "v.36", "36", "v99999999999.1"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }
}
