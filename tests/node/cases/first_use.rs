//! The first use, as the documentation has it.

use otel_webhook_testkit::until::until;
use serde_json::json;

use crate::cluster::Cluster;
use crate::workload::Running;

const GUIDE: &str = include_str!("../../../docs/guides/first-service.md");
const README: &str = include_str!("../../../README.md");

/// The namespace and the Deployment of the guide.
const SHOP: &str = "shop";
const ORDER: &str = "order";

/// Commands that were run before or need the Internet: a clone, a cluster, the image, the installation, and Jaeger, for
/// which no image stands in.
const ELSEWHERE: [&str; 6] = [
    "git clone ",
    "kind create ",
    "docker build ",
    "kind load ",
    "helm install ",
    "kubectl --namespace observability ",
];

/// The guide's commands inject a Java service that runs without an agent, and a span of it arrives at the Collector.
/// The cluster was installed by the README's command, which is the guide's.
pub fn first_service(cluster: &Cluster) {
    let commands: Vec<_> = GUIDE.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    let install =
        commands.iter().find(|command| command.starts_with("helm install")).expect("an installation");
    assert!(README.contains(&format!("$ {install}\n")), "the README installs in another way");
    let here = commands.iter().filter(|command| !ELSEWHERE.iter().any(|start| command.starts_with(start)));
    let here: Vec<_> = here.copied().collect();
    let [backend, service, wait, instrumentation, opt_in, wait_again, list, undo] = here[..] else {
        panic!("the guide has other commands: {here:?}");
    };
    cluster.shell(backend);
    cluster.rolled_out("observability", "collector");
    cluster.shell(service);
    cluster.shell(wait);
    let [before] = &Running::of_deployment(cluster, SHOP, ORDER)[..] else { panic!("one pod") };
    assert_eq!(before.get()["metadata"]["labels"]["otel-webhook/injected"], json!(null));

    cluster.shell(instrumentation);
    cluster.shell(opt_in);
    cluster.shell(wait_again);
    let listed = cluster.shell(list);
    let injected = listed.lines().find(|line| line.contains("Running") && line.ends_with("true"));
    assert!(injected.is_some(), "{listed}");
    until("spans of the service arrive at the Collector", || {
        let log = cluster.shell("kubectl --namespace observability logs deployment/collector");
        log.lines().any(|line| line.contains("Traces") && line.contains("\"spans\"")).then_some(())
    });
    let explained = cluster.shell("otel-webhook explain deployment/order -n shop --exit-code");
    assert!(explained.contains("Injected"), "{explained}");

    cluster.shell(undo);
    let [after] = &Running::of_deployment(cluster, SHOP, ORDER)[..] else { panic!("one pod") };
    assert_eq!(after.get()["metadata"]["labels"]["otel-webhook/injected"], json!(null));
    cluster.shell("kubectl delete namespace observability --wait=false");
}
