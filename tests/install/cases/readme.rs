//! The commands of the README's chapter on the installation, as they stand there.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::cert_manager::CertManager;
use crate::cluster::Cluster;
use crate::helm::Release;

const README: &str = include_str!("../../../README.md");

/// The namespace in the README.
const HOME: &str = "otel-webhook";

/// Each block by itself, as whoever chose it would run it.
pub fn commands(cluster: &Cluster) {
    let _cert_manager = CertManager::start(cluster);
    let blocks = blocks();
    assert_eq!(blocks.len(), 5, "three ways to install, upgrade, uninstall: {blocks:?}");
    for program in ["helm3", "helm4"] {
        let desk = Desk::new(cluster, program);
        let [managed, cert_manager, files, upgrade, uninstall] = [0, 1, 2, 3, 4].map(|block| &blocks[block]);
        for install in [cert_manager, files] {
            let release = Release::new(cluster, program, HOME);
            desk.run(install);
            desk.is_rolled_out();
            drop(release);
            desk.delete_namespace();
        }
        desk.run(managed);
        desk.is_rolled_out();
        // The webhook would have made it.
        let secret = ["create", "secret", "generic", "otel-webhook-certificates", "--namespace", HOME];
        assert!(cluster.plane.kubectl(&secret).ok);
        desk.run(upgrade);
        desk.is_rolled_out();
        desk.run(uninstall);
        assert!(cluster.find_in(HOME, "deployment", "otel-webhook").is_none());
        assert!(cluster.find("crd", "instrumentations.opentelemetry.io").is_none());
        desk.delete_namespace();
    }
}

/// The chapter's blocks, each a list of commands.
fn blocks() -> Vec<Vec<&'static str>> {
    let (_, chapter) = README.split_once("\n## Install\n").expect("a chapter on the installation");
    let chapter = chapter.split("\n## ").next().unwrap_or_default();
    let blocks = chapter.split("```console\n").skip(1);
    let commands = |block: &'static str| -> Vec<&'static str> {
        let block = block.split("```").next().unwrap_or_default();
        block.lines().filter_map(|line| line.strip_prefix("$ ")).collect()
    };
    blocks.map(commands).collect()
}

/// A folder in which the commands are run, with the programs that they name.
struct Desk<'c> {
    cluster: &'c Cluster,
    folder: TempDir,
    programs: PathBuf,
}

impl<'c> Desk<'c> {
    fn new(cluster: &'c Cluster, helm: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let programs = folder.path().join("bin");
        fs::create_dir(&programs).expect("a folder");
        let tools = cluster.plane.tools();
        let link = |target: &Path, name: &str| symlink(target, programs.join(name)).expect("a link");
        link(&tools.join(helm), "helm");
        link(&tools.join("kubectl"), "kubectl");
        link(Path::new(env!("CARGO_BIN_EXE_otel-webhook")), "otel-webhook");
        let charts = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts");
        symlink(charts, folder.path().join("charts")).expect("a link");
        Self { cluster, folder, programs }
    }

    fn run(&self, commands: &[&str]) {
        for command in commands {
            let path = std::env::var("PATH").unwrap_or_default();
            let output = Command::new("sh")
                .args(["-c", command])
                .current_dir(self.folder.path())
                .env("PATH", format!("{}:{path}", self.programs.display()))
                .env("KUBECONFIG", self.cluster.plane.kubeconfig())
                .env("HOME", self.folder.path())
                .output()
                .expect("a shell");
            assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }

    fn delete_namespace(&self) {
        self.cluster.plane.run_kubectl(&["delete", "namespace", HOME, "--wait"]);
    }

    fn is_rolled_out(&self) {
        let args = ["rollout", "status", "deployment/otel-webhook", "--namespace", HOME, "--timeout=60s"];
        self.cluster.plane.run_kubectl(&args);
    }
}
