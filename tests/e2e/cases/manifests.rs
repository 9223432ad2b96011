//! The manifests as they are committed, and not as the tests bend them.

use crate::cluster::Cluster;

/// A real API server takes what `kubectl apply -k` would send, without a warning.
pub fn accepted(cluster: &Cluster) {
    for overlay in ["default", "overlays/cert-manager"] {
        let path = format!("{}/manifests/{overlay}", env!("CARGO_MANIFEST_DIR"));
        let built = cluster.plane.kubectl(&["kustomize", &path]);
        assert!(built.ok, "{overlay}: {}", built.stderr);
        // The kinds of cert-manager are not in this cluster.
        let known = built.stdout.split("\n---\n").filter(|object| !object.contains("cert-manager.io/v1\n"));
        let known = known.collect::<Vec<_>>().join("\n---\n");
        let args =
            ["apply", "--dry-run=server", "--server-side", "--force-conflicts", "-o", "name", "-f", "-"];
        let ran = cluster.plane.kubectl_in(&args, &known);
        assert!(ran.ok, "{overlay}: {}", ran.stderr);
        assert!(!ran.stderr.contains("Warning"), "{overlay}: {}", ran.stderr);
    }
}
