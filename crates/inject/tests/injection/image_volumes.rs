//! Mounted agents against the same pods with init containers: the variables are the same but for paths.

use std::{collections::BTreeMap, sync::Arc};

use otel_webhook_api::{Delivery, defaults::DefaultImages};
use otel_webhook_inject::{
    InitResources, Settings,
    catalogue::Catalogue,
    cluster::{Cluster, Node},
    language::{LANGUAGES, LanguageSet},
};
use otel_webhook_testkit::{
    generated::{
        choices::{for_each, how_many},
        pods::{NAMESPACE, generate},
    },
    known::Known,
    models::{invariants, sanity},
    objects::{asking, items},
    surroundings::{Injected, Surroundings, with},
};
use serde_json::{Value, json};

const NODE_NAME: &str = "OTEL_RESOURCE_ATTRIBUTES_NODE_NAME";

fn mounting(spec: Value) -> Surroundings {
    let mut around = with(spec);
    around.settings.delivery = Delivery::ImageVolume;
    around
}

/// Whether the agent of the language can be mounted.
fn is_mountable(language: &str) -> bool {
    let mut rows = LANGUAGES.iter().filter(|row| row.name == language);
    rows.any(|row| row.can_be_mounted())
}

/// The variables of a container, with the folders of extensions as of the copy, and without the node's name.
fn variables(container: &Value) -> Vec<Value> {
    let own = items(&container["env"]).filter(|variable| variable["name"] != NODE_NAME);
    let name = container["name"].as_str().expect("a name");
    let copied = format!("/otel-auto-instrumentation-java-{name}/extensions");
    let like_copied = |variable: &Value| {
        let mut variable = variable.clone();
        if let Some((head, folders)) =
            variable["value"].as_str().and_then(|value| value.split_once("extensions=/open"))
        {
            let rest = folders.split_once(' ').map(|(_, rest)| format!(" {rest}")).unwrap_or_default();
            variable["value"] = json!(format!("{head}extensions={copied}{rest}"));
        }
        variable
    };
    own.map(like_copied).collect()
}

/// Checks that a pod gets the same variables in the same order with both deliveries.
fn compare(copied: &Value, mounted: &Value) -> Result<(), String> {
    for list in ["initContainers", "containers"] {
        for container in items(&mounted["spec"][list]) {
            let same = |other: &&Value| other["name"] == container["name"];
            let other = items(&copied["spec"][list]).find(same).ok_or("another container")?;
            if variables(container) != variables(other) {
                return Err(format!(
                    "{:?}\nbut with init containers\n{:?}",
                    variables(container),
                    variables(other)
                ));
            }
        }
    }
    Ok(())
}

#[test]
fn the_variables_are_those_of_the_copy_but_for_paths() {
    let extensions = json!([{"image": "e:0", "dir": "/e"}]);
    let spec = json!({"java": {"extensions": extensions}, "exporter": {"endpoint": "http://c:4317"}});
    for language in LANGUAGES {
        let own = json!({"env": [{"name": "JAVA_TOOL_OPTIONS", "value": "-Xmx1g"}, {"name": "PYTHONPATH", "value": "/app"}]});
        let pod = asking(&[language.name], own);
        let (copied, mounted) = (with(spec.clone()).inject(&pod), mounting(spec.clone()).inject(&pod));
        compare(&copied.pod, &mounted.pod).unwrap_or_else(|problem| panic!("{}: {problem}", language.name));
    }
}

#[test]
fn auto_mounts_the_image_if_the_nodes_can() {
    let injected = beside(Delivery::Auto, "containerd://2.1.0", json!({}));
    assert!(injected.pod["spec"]["volumes"][0]["image"].is_object(), "{}", injected.pod);
}

#[test]
fn a_mounted_image_is_warned_of_where_a_node_cannot_mount_it() {
    let elsewhere = json!({"nodeSelector": {"pool": "new"}});
    let old = "the image of the agent is mounted, and the pod may not start: on node \"n\" the container runtime is \
               containerd://1.7.2; image volumes need containerd 2.1 or newer, or CRI-O 1.33 or newer";
    for (delivery, runtime, spec, expected) in [
        (Delivery::ImageVolume, "containerd://1.7.2", json!({}), Some(old)),
        (Delivery::ImageVolume, "containerd://1.7.2", elsewhere, None),
        (Delivery::ImageVolume, "containerd://2.1.0", json!({}), None),
        (Delivery::Auto, "containerd://1.7.2", json!({}), None),
    ] {
        let injected = beside(delivery, runtime, spec);
        let warnings: Vec<_> =
            injected.outcome.findings[0].notes.iter().filter(|note| note.is_warning()).collect();
        let sentences: Vec<_> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(sentences, Vec::from_iter(expected), "{delivery:?} {runtime}");
    }
}

/// A pod of Java in a cluster with one node.
fn beside(delivery: Delivery, runtime: &str, spec: Value) -> Injected {
    let mut around = with(json!({}));
    around.settings.delivery = delivery;
    let info = json!({"kubeletVersion": "v1.36.0", "containerRuntimeVersion": runtime});
    let node = Node::of(&json!({"metadata": {}, "status": {"nodeInfo": info}})).expect("for Linux");
    let nodes = BTreeMap::from([("n".into(), Arc::new(node))]);
    let cluster = Cluster { server: Some("v1.36.0".into()), nodes, is_listed: true };
    let known = Known::of(&around.objects, &around.images);
    let catalogue = Catalogue { cluster: Some(Arc::new(cluster)), ..known.catalogue };
    let mut pod = asking(&["java"], json!({}));
    let fields = spec.as_object().cloned().into_iter().flatten();
    pod["spec"].as_object_mut().expect("a spec").extend(fields);
    around.inject_knowing(&pod, &catalogue, &known.owners)
}

/// How many pods are tried unless `OTEL_WEBHOOK_GENERATED_PODS` says more.
const PODS: u64 = 2_000;

fn try_pod(seed: u64) -> Result<usize, String> {
    let generated = generate(seed);
    let known = Known::of([&generated.instrumentation], &DefaultImages::default());
    let around = |delivery| {
        let mut around = Surroundings::new([]);
        NAMESPACE.clone_into(&mut around.namespace);
        let init_resources = InitResources::Neutral;
        around.settings =
            Settings { languages: LanguageSet::all(), init_resources, delivery, ..Settings::default() };
        around
    };
    let inject =
        |delivery, pod: &Value| around(delivery).inject_knowing(pod, &known.catalogue, &known.owners);
    let mounted = inject(Delivery::ImageVolume, &generated.pod);
    let faults = sanity::faults(&generated.pod, &mounted.pod);
    if !faults.is_empty() {
        return Err(faults.join("; "));
    }
    invariants::unrelated(&generated.pod, &mounted.pod, &generated.instrumentation)?;
    for delivery in [Delivery::ImageVolume, Delivery::InitContainer] {
        let again = inject(delivery, &mounted.pod);
        if !again.is_unchanged() {
            return Err(format!("a second review with {delivery} changes it: {}", again.outcome.patch));
        }
    }
    // Where only init containers cannot be added, more is injected: these pods are not compared.
    let copied = inject(Delivery::InitContainer, &generated.pod);
    if copied.codes() == mounted.codes() {
        compare(&copied.pod, &mounted.pod)?;
    }
    let added = items(&mounted.pod["spec"]["volumes"]).filter(|volume| volume.get("image").is_some()).count();
    let findings =
        mounted.outcome.findings.iter().filter(|one| one.reason.is_injected() && is_mountable(one.language));
    let noted = findings.flat_map(|one| &one.notes).any(|note| note.code() == "ImageVolume");
    if noted == (added > 0) { Ok(added) } else { Err("notes and volumes disagree".to_owned()) }
}

#[test]
fn the_same_holds_for_generated_pods() {
    let mut volumes = 0;
    for result in for_each(how_many(PODS), |seed| try_pod(seed).map_err(|problem| (seed, problem))) {
        volumes += result.unwrap_or_else(|(seed, problem)| {
            panic!("pod {seed}: {problem}\n{}\n{}", generate(seed).pod, generate(seed).instrumentation)
        });
    }
    assert!(volumes > 500, "only {volumes} images were mounted");
}
