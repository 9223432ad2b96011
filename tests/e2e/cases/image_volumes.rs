//! Agents whose images are mounted, before a real API server that enforces `restricted`, and nodes that come and go.

use otel_webhook_testkit::{
    cluster::control_plane::ControlPlane,
    cluster::created::{Created, name},
    objects::items,
    until::until,
};
use serde_json::{Value, json};

use crate::audit;
use crate::cluster::{Cluster, LIMIT, asking};
use crate::registration;

const NAMESPACE: &str = "mounted";

/// A namespace that enforces the strictest level.
pub fn restricted(name: &str) -> Value {
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

/// Makes a pod acceptable at that level.
pub fn harden(pod: &mut Value) {
    pod["spec"]["securityContext"] =
        json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
    for list in ["initContainers", "containers"] {
        for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
            container["securityContext"] =
                json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
        }
    }
}

/// A language, the folder of its image that is mounted, and its path.
const MOUNTED: [(&str, Option<&str>, &str); 4] = [
    ("java", None, "/otel-auto-instrumentation-java-app"),
    ("nodejs", Some("autoinstrumentation"), "/otel-auto-instrumentation-nodejs"),
    ("python", Some("autoinstrumentation"), "/otel-auto-instrumentation-python"),
    ("dotnet", Some("autoinstrumentation"), "/otel-auto-instrumentation-dotnet"),
];

pub fn each_language(cluster: &Cluster) {
    cluster.instrumented_namespace(NAMESPACE);
    cluster.apply(&restricted(NAMESPACE));
    let extensions = json!([{"image": "registry.example.com/extension:1", "dir": "/extensions"}]);
    let spec =
        json!({"delivery": "imageVolume", "imagePullPolicy": "Always", "java": {"extensions": extensions}});
    cluster.instrumentation(NAMESPACE, "default", &spec);
    let lax = asking("lax", &[]);
    let args = ["create", "--namespace", NAMESPACE, "--dry-run=server", "--filename", "-"];
    let ran = cluster.plane.kubectl_in(&args, &lax.to_string());
    assert!(!ran.ok && ran.stderr.contains("PodSecurity"), "nothing is enforced: {}", ran.stderr);

    let _all = cluster.webhook.restart_with(&["--languages", "all"]);
    for (language, folder, path) in MOUNTED {
        let pod = cluster.create(NAMESPACE, &hardened(language));
        assert_eq!((pod.warnings.as_str(), pod.init_containers()), ("", Vec::new()), "{language}");
        let volume = format!("opentelemetry-auto-instrumentation-{language}");
        let source = items(&pod.pod["spec"]["volumes"]).find(|one| one["name"] == *volume).expect("a volume");
        assert_eq!(source["image"]["pullPolicy"], "Always", "{source}");
        let reference = source["image"]["reference"].as_str().expect("an image");
        assert!(reference.contains(&format!("autoinstrumentation-{language}:")), "{reference}");
        let mounts = items(&pod.container("app")["volumeMounts"]);
        let mount = mounts.into_iter().find(|mount| mount["name"] == *volume).expect("a mount");
        assert_eq!(
            (mount["mountPath"].as_str(), mount["subPath"].as_str()),
            (Some(path), folder),
            "{language}"
        );
        assert_eq!(audit::decision(cluster, NAMESPACE, language), format!("{language}/app=Injected"));
        assert!(status(&pod).contains("\"delivery\":\"imageVolume\""), "{}", status(&pod));
    }
    let java = cluster.get(NAMESPACE, &["pod", "java"]);
    let volumes: Vec<_> = items(&java["spec"]["volumes"]).map(name).collect();
    assert!(volumes.contains(&"opentelemetry-auto-instrumentation-extension-0"), "{volumes:?}");
    for (language, init) in [("apache-httpd", 2), ("nginx", 2), ("sdk", 0), ("go", 0)] {
        let pod = cluster.create(NAMESPACE, &hardened(language));
        assert_eq!(pod.init_containers().len(), init, "{language}");
        let volumes = items(&pod.pod["spec"]["volumes"]);
        assert!(volumes.into_iter().all(|volume| volume.get("image").is_none()), "{language}");
        let is_kept = status(&pod).contains("they also write the configuration");
        assert_eq!(is_kept, init > 0, "{}", status(&pod));
    }
}

fn hardened(language: &str) -> Value {
    let annotations = [(&*format!("inject-{language}"), "true"), ("otel-go-auto-target-exe", "/app")];
    let mut pod = asking(language, &annotations);
    harden(&mut pod);
    pod
}

fn status(pod: &Created) -> String {
    pod.pod["metadata"]["annotations"]["otel-webhook/status"].as_str().unwrap_or_default().to_owned()
}

/// In a cluster of its own, with the roles that the program prints.
pub fn nodes(_: &Cluster) {
    let cluster = Cluster::without_controllers();
    let roles = std::process::Command::new(env!("CARGO_BIN_EXE_otel-webhook"))
        .args(["rbac", "--watch-nodes"])
        .output()
        .expect("the program can be started");
    registration::apply(&cluster.plane, &String::from_utf8(roles.stdout).expect("UTF-8"));
    cluster.instrumented_namespace("pools");
    let _auto = cluster.webhook.restart_with(&["--delivery", "auto"]);
    let mut pod = asking("p", &[("inject-nodejs", "true")]);
    let told = |pod: &Value, what: &str| {
        until(what, LIMIT, || {
            let created = cluster.dry_run("pools", pod);
            status(&created).contains(what).then_some(created)
        })
    };
    let mounted = "\"delivery\":\"imageVolume\"";
    told(&pod, "no present node matches");

    node(&cluster.plane, "new", "v1.36.1", "containerd://2.2.1");
    let created = told(&pod, mounted);
    assert!(created.init_containers().is_empty(), "{}", created.pod);
    node(&cluster.plane, "old", "v1.36.1", "containerd://2.1.4");
    let created = told(&pod, "the container runtime is containerd://2.1.4");
    assert_eq!(created.init_containers(), ["opentelemetry-auto-instrumentation-nodejs"]);
    told(&asking("j", &[("inject-java", "true")]), mounted);

    pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "new"});
    told(&pod, mounted);
    pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "old"});
    told(&pod, "the container runtime is containerd://2.1.4");
    assert!(cluster.plane.kubectl(&["delete", "node", "old"]).ok);
    told(&pod, "no present node matches");
    pod["spec"]["nodeSelector"] = Value::Null;
    told(&pod, mounted);

    let asked = audit::asked(&cluster, audit::ACCOUNT);
    for verb in ["list nodes", "watch nodes"] {
        assert!(asked.contains(verb), "{asked:?}");
    }
}

/// Registers a node, as its kubelet does.
fn node(plane: &ControlPlane, name: &str, kubelet: &str, runtime: &str) {
    let info = json!({
        "kubeletVersion": kubelet, "containerRuntimeVersion": runtime, "architecture": "amd64", "bootID": "",
        "kernelVersion": "", "kubeProxyVersion": "", "machineID": "", "operatingSystem": "linux", "osImage": "",
        "systemUUID": "",
    });
    let labels = json!({"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"});
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "status": {"nodeInfo": info},
    });
    let ran = plane.kubectl_in(&["create", "--filename", "-"], &node.to_string());
    assert!(ran.ok, "{}", ran.stderr);
}
