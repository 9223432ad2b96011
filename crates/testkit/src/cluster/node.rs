//! A real node: containerd, kubelet, kube-proxy and `CoreDNS`, in the namespaces of [`namespaces::apart`].

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::control_plane::{ControlPlane, Ran};
use super::namespaces;
use crate::until::until;

/// The name of the node.
pub const NAME: &str = "node-1";

/// Of the node, in its own network.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 168, 77, 1);

/// Of pods.
const POD_NETWORK: &str = "10.244.7.0/24";

/// The image of each pod's sandbox.
const PAUSE: &str = "localhost/otel-webhook-node/pause:1";

/// Settings of the kernel that kubelet wants. It sees them in files, and the machine's own stay as they are.
const SETTINGS: [(&str, &str); 3] =
    [("vm/overcommit_memory", "1"), ("kernel/panic", "10"), ("kernel/panic_on_oops", "1")];

/// A control plane and one node. It is ready, and has these images.
pub struct Node {
    /// With the programs of the node among its own.
    pub plane: ControlPlane,
}

impl Node {
    /// Starts all programs and imports archives of images.
    ///
    /// Panics with the failed step and the end of each program's log.
    pub fn start(archives: &[PathBuf]) -> Self {
        set_up_namespaces();
        let mut node = Self { plane: ControlPlane::start_on(ADDRESS) };
        node.plane.start_scheduler();
        node.start_containerd();
        for archive in archives {
            node.import(archive);
        }
        node.start_kubelet();
        node.start_network();
        let ready = ["wait", "node", NAME, "--for=condition=Ready", "--timeout=1s"];
        node.plane.wait("the wait for the node", &ready);
        node
    }

    /// Imports the images of an archive.
    pub fn import(&self, archive: &Path) {
        let ran = self.ctr(&["images", "import", &archive.display().to_string()]);
        assert!(ran.ok, "{}: {}", archive.display(), ran.stderr);
    }

    /// Runs containerd's own client, in the namespace that kubelet uses.
    pub fn ctr(&self, args: &[&str]) -> Ran {
        let output = Command::new(self.plane.tools().join("ctr"))
            .arg("--address")
            .arg(self.socket())
            .args(["--namespace", "k8s.io"])
            .args(args)
            .output()
            .expect("ctr can be started");
        Ran::from(&output)
    }

    /// Ends the first process of a container with SIGKILL. Returns whether it ran.
    pub fn kill(&self, container: &str) -> bool {
        self.ctr(&["tasks", "kill", "--signal", "SIGKILL", container]).ok
    }

    /// The ids of all containers that run, sandboxes of pods among them.
    pub fn running(&self) -> Vec<String> {
        let ran = self.ctr(&["tasks", "list", "--quiet"]);
        assert!(ran.ok, "{}", ran.stderr);
        ran.stdout.lines().map(str::to_owned).collect()
    }

    /// The id of the sandbox of a pod that runs.
    pub fn sandbox(&self, namespace: &str, pod: &str) -> Option<String> {
        self.find(namespace, pod, &[("io.cri-containerd.kind", "sandbox")])
    }

    /// The id of a container of a pod that runs.
    pub fn container(&self, namespace: &str, pod: &str, container: &str) -> Option<String> {
        let kind = ("io.cri-containerd.kind", "container");
        self.find(namespace, pod, &[kind, ("io.kubernetes.container.name", container)])
    }

    fn find(&self, namespace: &str, pod: &str, labels: &[(&str, &str)]) -> Option<String> {
        let of_pod = [("io.kubernetes.pod.namespace", namespace), ("io.kubernetes.pod.name", pod)];
        let labels = of_pod.iter().chain(labels).map(|(key, value)| format!(r#"labels."{key}"=={value}"#));
        let filter = labels.collect::<Vec<_>>().join(",");
        let ran = self.ctr(&["containers", "list", "--quiet", &filter]);
        assert!(ran.ok, "{}", ran.stderr);
        // Those that ended stay until kubelet removes them.
        let running = self.running();
        ran.stdout.lines().find(|id| running.iter().any(|one| one == id)).map(str::to_owned)
    }

    /// The folder of an `emptyDir` volume.
    pub fn empty_dir(&self, pod_uid: &str, volume: &str) -> PathBuf {
        let pod = self.plane.dir().join("kubelet/pods").join(pod_uid);
        pod.join("volumes/kubernetes.io~empty-dir").join(volume)
    }

    /// Short, since the path of a socket has at most 107 bytes.
    fn socket(&self) -> PathBuf {
        self.plane.dir().join("c.sock")
    }

    fn start_containerd(&mut self) {
        let dir = self.plane.dir().display();
        let tools = self.plane.tools().display();
        let socket = self.socket().display().to_string();
        let config = format!(
            r#"
version = 3
root = "{dir}/containerd"
state = "/run/containerd"
# It makes a folder outside of these.
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
address = "{socket}"
[ttrpc]
address = "{socket}.ttrpc"
[plugins."io.containerd.cri.v1.runtime"]
disable_apparmor = true
restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
runtime_path = "{tools}/containerd-shim-runc-v2"
options.SystemdCgroup = false
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{tools}"]
conf_dir = "{dir}/cni"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE}"
"#
        );
        self.write("containerd.toml", &config);
        let bridge = json!({
            "type": "bridge", "bridge": "pods0", "isGateway": true, "hairpinMode": true,
            "ipam": {
                "type": "host-local", "ranges": [[{"subnet": POD_NETWORK}]], "routes": [{"dst": "0.0.0.0/0"}],
                "dataDir": self.plane.dir().join("cni-addresses"),
            },
        });
        let ports = json!({"type": "portmap", "capabilities": {"portMappings": true}, "backend": "nftables"});
        let network = json!({"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, ports]});
        self.write("cni/10-pods.conflist", &network.to_string());
        self.plane.run("containerd", "--config=containerd.toml");
        until("containerd answers", || self.ctr(&["version"]).ok.then_some(()));
    }

    fn start_kubelet(&mut self) {
        let config = json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "failCgroupV1": false, "cgroupDriver": "cgroupfs", "cgroupRoot": namespaces::cgroup(),
            "enforceNodeAllocatable": [],
            "failSwapOn": false,
            "healthzPort": 0,
            "clusterDNS": [ADDRESS], "clusterDomain": "cluster.local", "resolvConf": "",
            "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
            "authorization": {"mode": "AlwaysAllow"},
            "containerRuntimeEndpoint": format!("unix://{}", self.socket().display()),
            // The disk and the memory are the machine's, and others use them.
            "evictionHard": {
                "memory.available": "1Mi", "nodefs.available": "1%", "imagefs.available": "1%",
                "nodefs.inodesFree": "1%", "imagefs.inodesFree": "1%",
            },
            "imageGCHighThresholdPercent": 100,
        });
        self.write("kubelet.json", &config.to_string());
        let dir = self.plane.dir().display();
        let options = format!(
            "--kubeconfig=kubeconfig
            --config=kubelet.json
            --root-dir={dir}/kubelet
            --cert-dir={dir}/kubelet-certs
            --hostname-override={NAME}
            --node-ip={ADDRESS}"
        );
        self.plane.run("kubelet", &options);
    }

    /// Services, and their names.
    fn start_network(&mut self) {
        let options = format!(
            "--kubeconfig=kubeconfig
            --proxy-mode=nftables
            --hostname-override={NAME}
            --cluster-cidr={POD_NETWORK}
            --masquerade-all
            --conntrack-max-per-core=0"
        );
        self.plane.run("kube-proxy", &options);
        let config = format!(
            ".:53 {{
                bind {ADDRESS}
                errors
                kubernetes cluster.local {{
                    kubeconfig {}
                }}
            }}
            ",
            self.plane.kubeconfig().display()
        );
        self.write("Corefile", &config);
        self.plane.run("coredns", "-conf=Corefile");
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.plane.dir().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("the scratch folder is writable");
        fs::write(path, text).expect("the scratch folder is writable");
    }
}

/// Makes the namespaces of this process fit for a node.
fn set_up_namespaces() {
    let settings = tempfile::tempdir().expect("a folder").keep();
    let mounts = SETTINGS.map(|(setting, value)| {
        let file = settings.join(setting.replace('/', "-"));
        fs::write(&file, value).expect("the folder is writable");
        format!("mount --bind {} /proc/sys/{setting}", file.display())
    });
    let script = format!(
        "set -e
        # containerd sees what kubelet mounts.
        mount --make-rshared /
        # Sockets, networks and logs of pods.
        mount -t tmpfs tmpfs /run
        mount -t tmpfs tmpfs /var/log
        {}
        ip link set lo up
        # Not every kernel has dummy devices: a bridge without ports has the node's address.
        ip link add node0 type bridge
        ip address add {ADDRESS}/24 dev node0
        ip link set node0 up
        ip route add default dev node0
        echo 1 >/proc/sys/net/ipv4/ip_forward",
        mounts.join("\n")
    );
    let output = Command::new("sh").args(["-c", &script]).output().expect("a shell");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
