//! cert-manager's controllers and its injector of CAs, as a process.

use crate::cluster::Cluster;
use otel_webhook_testkit::{cluster::program::Program, until::until};

/// cert-manager is there, until this is dropped.
pub struct CertManager {
    _program: Program,
}

impl CertManager {
    /// Applies its custom resources and starts it.
    pub fn start(cluster: &Cluster) -> Self {
        // kubectl does not follow a link to a folder.
        let crds = cluster.plane.tools().join("cert-manager-crds").canonicalize().expect("a folder of CRDs");
        let crds = crds.to_str().expect("a path in UTF-8");
        let ran = cluster.plane.kubectl(&["apply", "--server-side", "--filename", crds]);
        assert!(ran.ok, "kubectl apply failed: {}", ran.stderr);
        until("cert-manager's resources are served", || {
            cluster.plane.kubectl(&["get", "issuers,certificates", "--all-namespaces"]).ok.then_some(())
        });
        let program = cluster.plane.spawn("cert-manager", "--kubeconfig=kubeconfig");
        Self { _program: program }
    }
}
