//! The controller while something fails, or a permission is missing: it goes on, or says what is missing, and never
//! writes a wrong status.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use otel_webhook_testkit::{
    admin,
    cluster::{ports::free_ports, program::Program, proxy::Proxy},
    objects::items,
    runner::note,
    until::{poll, until},
};
use serde_json::{Value, json};

use crate::{
    audit,
    cluster::{Cluster, java},
    controller::{self, ACCOUNT, Controller},
    program::PROGRAM,
    registration::HOME,
};

const SHOP: &str = "faults-shop";

/// How long a failure lasts that has no end by itself.
const LENGTH: Duration = Duration::from_secs(3);

/// A namespace with an injected pod, and a Deployment with `missed` others.
fn shop(cluster: &Cluster, missed: usize) {
    cluster.instrumented_namespace(SHOP);
    assert!(cluster.create(SHOP, &java("injected")).is_injected());
    cluster.missed(SHOP, "missed", missed);
}

/// The API server, etcd or the connection fails, and comes back: what changed meanwhile is told, and nothing else is
/// written.
pub fn failures(_: &Cluster) {
    let mut cluster = Cluster::start();
    shop(&cluster, 1);
    let (proxy, kubeconfig) = {
        let controller = Controller::new(&cluster);
        Proxy::before(controller.kubeconfig())
    };
    let mut missed = 1;
    let mut fail = |cluster: &mut Cluster, what: &str, fault: &mut dyn FnMut(&mut Cluster, &Proxy)| {
        let before = writes(cluster);
        fault(cluster, &proxy);
        let stopped = cluster.webhook.stop();
        until(what, || {
            let name = format!("missed-{missed}");
            let args = ["create", "--namespace", SHOP, "--filename", "-"];
            cluster.plane.kubectl_in(&args, &java(&name).to_string()).ok.then_some(())
        });
        drop(stopped);
        missed += 1;
        expect(cluster, what, &json!({"matched": missed + 1, "injected": 1, "missed": missed}));
        assert_eq!(writes(cluster), before + 1, "{what}: one change is one write");
        assert!(conflicts(cluster) <= missed, "{what}: one conflict for each failure at most");
    };
    let mut process = start(&cluster, &kubeconfig, "otel-webhook-controller");
    expect(&cluster, "before", &json!({"matched": 2, "injected": 1, "missed": 1}));
    fail(&mut cluster, "the watches are cut", &mut |_, proxy| {
        proxy.cut();
        thread::sleep(LENGTH);
        proxy.open();
    });
    fail(&mut cluster, "the API server is started again", &mut |cluster, _| {
        cluster.plane.stop("kube-apiserver");
        cluster.plane.start_again("kube-apiserver");
    });
    fail(&mut cluster, "etcd stands still", &mut |cluster, _| {
        cluster.plane.signal("STOP", "etcd");
        thread::sleep(LENGTH);
        cluster.plane.signal("CONT", "etcd");
    });
    fail(&mut cluster, "answers are a second late", &mut |_, proxy| {
        proxy.slow(Duration::from_secs(1));
        thread::sleep(LENGTH);
        proxy.open();
    });
    assert!(!process.has_ended(), "{}", process.report());
    process.stop();
}

/// A leader whose connections stay open and are not answered: another replica leads, and a replica that is alone leads
/// again on new connections. None of them ends.
pub fn frozen(_: &Cluster) {
    let cluster = Cluster::start();
    shop(&cluster, 1);
    let controller = Controller::new(&cluster);
    let (proxy, proxied) = Proxy::before(controller.kubeconfig());
    let mut first = Replica::start(&cluster, &proxied, "first");
    until("the first one leads", || first.leads(1));
    expect(&cluster, "before", &json!({"matched": 2, "injected": 1, "missed": 1}));
    let mut second = Replica::start(&cluster, controller.kubeconfig(), "second");
    until("the second one waits", || second.leads(0));
    let miss = |name: &str| {
        let _stopped = cluster.webhook.stop();
        cluster.create(SHOP, &java(name));
    };

    proxy.freeze();
    let frozen = Instant::now();
    until("the second one leads", || second.leads(1));
    note(&format!("another replica leads {:.1?} after the connections froze", frozen.elapsed()));
    until("the first one has stopped leading", || first.leads(0));
    assert!(first.is_alive(), "{}", first.process.report());
    miss("while-frozen");
    expect(&cluster, "the second one goes on", &json!({"matched": 3, "injected": 1, "missed": 2}));

    proxy.open();
    assert!(second.is_alive(), "{}", second.process.report());
    second.process.stop();
    until("the first one leads again", || first.leads(1));
    miss("after-it");
    expect(&cluster, "the first one goes on", &json!({"matched": 4, "injected": 1, "missed": 3}));

    // It is alone, and what it opens is answered.
    proxy.freeze();
    proxy.open();
    let frozen = Instant::now();
    miss("alone");
    until("it knows the last pod", || {
        let name = "otel_webhook_pods{state=\"missed\",language=\"java\"}";
        (admin::metric(first.admin, name) == Some(4)).then_some(())
    });
    note(&format!("a replica that is alone goes on after {:.1?}", frozen.elapsed()));
    expect(&cluster, "it writes on new connections", &json!({"matched": 5, "injected": 1, "missed": 4}));
    assert!(first.is_alive(), "{}", first.process.report());
}

/// One of several replicas.
struct Replica {
    process: Program,
    admin: SocketAddr,
}

impl Replica {
    fn start(cluster: &Cluster, kubeconfig: &Path, name: &str) -> Self {
        let [port] = free_ports();
        let admin = SocketAddr::from(([127, 0, 0, 1], port));
        let mut command = Command::new(PROGRAM);
        command.args(["controller", "--admin-listen", &admin.to_string(), "--page-listen", "off"]);
        command.args(["--lease-namespace", HOME]).env("KUBECONFIG", kubeconfig);
        Self { process: Program::run(command, cluster.plane.dir().join(format!("{name}.log"))), admin }
    }

    fn leads(&self, expected: u64) -> Option<()> {
        let name = "otel_webhook_controller_leader{lease=\"otel-webhook-controller\"}";
        (admin::metric(self.admin, name) == Some(expected)).then_some(())
    }

    fn is_alive(&mut self) -> bool {
        !self.process.has_ended() && admin::body(self.admin, "/livez").is_some()
    }
}

/// Without one of its permissions each, controllers say which it is and end when they are to, and none of them writes a
/// wrong status.
pub fn missing_permissions(_: &Cluster) {
    let cluster = Cluster::start();
    shop(&cluster, 2);
    let changes = record(&cluster);
    let roles = controller::roles_without_mistakes();
    let mut lacking = Vec::new();
    for (index, manifest) in roles.iter().enumerate() {
        for (rule, one) in items(&manifest["rules"]).enumerate() {
            for verb in items(&one["verbs"]).filter_map(Value::as_str) {
                let name = format!("lacks-{}", lacking.len());
                grant(&cluster, &roles, &name, &Lacking { manifest: index, rule, verb });
                let kubeconfig = cluster.plane.kubeconfig_of(HOME, &name);
                let resource = one["resources"][0].as_str().expect("a resource").to_owned();
                lacking.push((name, kubeconfig, format!("cannot {verb} resource \"{resource}\"")));
            }
        }
    }
    let says = |name: &str, expected: &str| {
        let log = || fs::read_to_string(cluster.plane.dir().join(format!("{name}.log"))).expect("a log");
        let said = poll(|| log().contains(expected).then_some(()));
        assert!(said.is_some(), "{name} does not say that it {expected}:\n{}", log());
    };
    // Next to others, it would find the status written already.
    let is_first = |lacking: &&(String, PathBuf, String)| lacking.2.contains("instrumentations/status");
    let (name, kubeconfig, expected) = lacking.iter().find(is_first).expect("the status is written");
    let mut started = vec![(name, start(&cluster, kubeconfig, name))];
    says(name, expected);
    let others = lacking.iter().filter(|lacking| !is_first(lacking));
    started.extend(others.map(|(name, kubeconfig, _)| (name, start(&cluster, kubeconfig, name))));
    for (name, _, expected) in &lacking {
        says(name, expected);
    }
    for (name, mut controller) in started {
        let status = controller.stop();
        assert!(status.is_some_and(|status| status.success()), "{name} does not end by SIGTERM: {status:?}");
    }
    let text = fs::read_to_string(changes.1).expect("a recording");
    let mut statuses = 0;
    for object in serde_json::Deserializer::from_str(&text).into_iter::<Value>().map_while(Result::ok) {
        let pods = &object["status"]["pods"];
        if pods.is_null() {
            continue;
        }
        statuses += 1;
        let count = |state: &str| pods[state].as_u64().expect("a count");
        let found = ["matched", "injected", "missed", "stale", "skipped", "foreign"].map(count);
        // Pods that it may not read are unconfirmed.
        let is_right = found == [3, 1, 2, 0, 0, 0] || count("unconfirmed") > 0;
        assert!(is_right, "{pods}");
    }
    assert!(statuses > 0, "some permissions are not needed for the status: {text}");
}

/// A verb of a rule, by the place of the rule.
struct Lacking<'l> {
    manifest: usize,
    rule: usize,
    verb: &'l str,
}

/// Gives an account all roles of the controller but for one verb of one rule.
fn grant(cluster: &Cluster, roles: &[Value], name: &str, lacking: &Lacking<'_>) {
    let mut objects = vec![json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": HOME}})];
    for (index, manifest) in roles.iter().enumerate() {
        let mut own = manifest.clone();
        own["metadata"]["name"] = name.into();
        match own["kind"].as_str() {
            Some("Role" | "ClusterRole") => {
                for one in own["rules"].as_array_mut().expect("rules") {
                    if one["resources"] == json!(["leases"]) && one.get("resourceNames").is_some() {
                        one["resourceNames"] = json!([name]);
                    }
                }
                if index == lacking.manifest {
                    let verbs = own["rules"][lacking.rule]["verbs"].as_array_mut().expect("verbs");
                    verbs.retain(|verb| verb != lacking.verb);
                }
            }
            Some("RoleBinding" | "ClusterRoleBinding") => {
                own["roleRef"]["name"] = name.into();
                own["subjects"][0]["name"] = name.into();
            }
            _ => continue,
        }
        objects.push(own);
    }
    // A rule without verbs is not valid.
    for object in &mut objects {
        if let Some(rules) = object.get_mut("rules").and_then(Value::as_array_mut) {
            rules.retain(|rule| rule["verbs"] != json!([]));
        }
    }
    cluster.apply(&json!({"apiVersion": "v1", "kind": "List", "items": objects}));
}

/// Starts a controller with a Lease of this name.
fn start(cluster: &Cluster, kubeconfig: &PathBuf, name: &str) -> Program {
    let [port] = free_ports();
    let mut command = Command::new(PROGRAM);
    command.args(["controller", "--admin-listen", &format!("127.0.0.1:{port}"), "--page-listen", "off"]);
    command.args(["--lease-namespace", HOME, "--lease", name, "--mistakes=false"]);
    command.env("KUBECONFIG", kubeconfig);
    Program::run(command, cluster.plane.dir().join(format!("{name}.log")))
}

/// Records each version of the Instrumentation in a file.
fn record(cluster: &Cluster) -> (Program, PathBuf) {
    let options = format!(
        "--kubeconfig=kubeconfig
        get
        otelinst
        default
        --namespace={SHOP}
        --watch
        --output=json"
    );
    (cluster.plane.spawn("kubectl", &options), cluster.plane.dir().join("kubectl.log"))
}

/// The statuses that were written: not those that the API server refused since their Instrumentation had changed.
fn writes(cluster: &Cluster) -> usize {
    audit::answered_patches(cluster, ACCOUNT, ["instrumentations", SHOP, "default"], 200).len()
}

/// The statuses that the API server refused since their Instrumentation had changed.
fn conflicts(cluster: &Cluster) -> usize {
    audit::answered_patches(cluster, ACCOUNT, ["instrumentations", SHOP, "default"], 409).len()
}

/// Waits for these counts, of the states that are not zero.
fn expect(cluster: &Cluster, what: &str, counts: &Value) {
    until(&format!("{what}: {counts}"), || {
        let mut pods = cluster.get(SHOP, &["otelinst", "default"])["status"]["pods"].clone();
        pods.as_object_mut()?.retain(|_, count| *count != 0);
        (pods == *counts).then_some(())
    });
}
