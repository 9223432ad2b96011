//! The manifests as they are committed, and not as the tests bend them.

use crate::cluster::Cluster;

/// A real API server takes them, without a warning.
pub fn accepted(cluster: &Cluster) {
    for manifest in ["crd.yaml", "webhook.yaml"] {
        let path = format!("{}/manifests/{manifest}", env!("CARGO_MANIFEST_DIR"));
        let ran = cluster.plane.kubectl(&["create", "--dry-run=server", "-o", "name", "-f", &path]);
        let exists = ran.stderr.contains("AlreadyExists");
        assert!(ran.ok || exists, "{manifest}: {}", ran.stderr);
        assert!(!ran.stderr.contains("Warning"), "{manifest}: {}", ran.stderr);
    }
}
