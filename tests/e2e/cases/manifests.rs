//! The manifests as they are committed, and not as the tests bend them.

use crate::cluster::Cluster;

/// The command of manifests/README.md, with all that is in a cluster when the tests run.
pub fn deleted_but_for_the_crd(cluster: &Cluster) {
    const README: &str = include_str!("../../../manifests/README.md");
    let command = README.lines().find_map(|line| line.strip_prefix("$ kubectl delete "));
    let path = format!("{}/manifests/default", env!("CARGO_MANIFEST_DIR"));
    let command = command.expect("a command").replace("manifests/default", &path);
    let would_go = |more: &[&str]| {
        let args = [&["delete", "--dry-run=server", "--ignore-not-found", "-o", "name"], more].concat();
        let ran = cluster.plane.kubectl(&args);
        assert!(ran.ok, "{}", ran.stderr);
        let is_there = |kind: &str| ran.stdout.lines().any(|line| line.starts_with(kind));
        (is_there("clusterrole."), is_there("customresourcedefinition."), is_there("namespace/"))
    };
    assert_eq!(would_go(&command.split(' ').collect::<Vec<_>>()), (true, false, false));
    assert_eq!(would_go(&["-k", &path]), (true, true, true), "without the selector");
}

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
