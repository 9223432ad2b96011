//! Each way in which injection can harm a pod, as kubelet reports it.

use otel_webhook_testkit::runner::note;
use otel_webhook_testkit::until::poll;
use serde_json::json;

use crate::cluster::{Cluster, LIMIT};
use crate::harm::{self, Harm};
use crate::workload::{DELIVERY, Running, asking};

const NAMESPACE: &str = "harms";

/// Each row's pod is created, and gets to the reason of the row.
pub fn reported_by_kubelet(cluster: &Cluster) {
    cluster.namespace(NAMESPACE, &json!({}));
    let harms = harm::all();
    for harm in &harms {
        cluster.instrumentation(NAMESPACE, harm.name, &harm.spec);
    }
    let pods: Vec<_> = harms.iter().map(|harm| create(cluster, harm)).collect();
    let missing = || -> Vec<_> {
        let all = harms.iter().zip(&pods).map(|(harm, pod)| (harm, harm.reasons(&pod.get())));
        let missing = all.filter(|(harm, found)| !found.iter().any(|one| one == harm.reason));
        missing.map(|(harm, found)| format!("{}: {found:?} without {}", harm.name, harm.reason)).collect()
    };
    let all = poll(LIMIT, || missing().is_empty().then_some(()));
    assert!(all.is_some(), "{}\n{}", missing().join("\n"), cluster.states(NAMESPACE));
    note(&format!("{} pods were harmed", harms.len()));
    let ran = cluster.kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"]);
    assert!(ran.ok, "{}", ran.stderr);
}

fn create<'c>(cluster: &'c Cluster, harm: &Harm) -> Running<'c> {
    let opts_in = format!("inject-{}", harm.language.name);
    let mut pod = asking(harm.name, &[(&opts_in, harm.name)], harm.language.container(&[]));
    pod["metadata"]["annotations"][DELIVERY] = harm.delivery.into();
    Running::created(cluster, NAMESPACE, &pod)
}
