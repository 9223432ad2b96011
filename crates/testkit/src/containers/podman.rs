//! Podman, with its own settings and images, in the network of a pod.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder that the suite's script made.
pub fn home() -> PathBuf {
    std::env::var_os("OTEL_WEBHOOK_RUN")
        .expect(
            "OTEL_WEBHOOK_RUN names no folder: run `make e2e-run`, `make e2e-telemetry` or `make e2e-node`",
        )
        .into()
}

/// The network of a pod.
#[derive(Clone, Copy)]
pub enum Network {
    /// Its own loopback interface.
    None,
    /// That of a process.
    Of(u32),
}

impl Network {
    /// Runs a program in this network.
    pub fn command(self, program: &str) -> Command {
        let Self::Of(process) = self else { return Command::new(program) };
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{process}/ns/net")).arg(program);
        command
    }

    /// Runs podman. It has to run in the network itself: what it calls the network of the host is
    /// that of its own process.
    pub fn podman(self, args: &[&str]) -> Output {
        let home = home();
        self.command("podman")
            .args(args)
            .env("CONTAINERS_CONF", home.join("containers.conf"))
            .env("CONTAINERS_STORAGE_CONF", home.join("storage.conf"))
            .output()
            .expect("podman can be started")
    }

    /// Its name on podman's command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Of(_) => "host",
        }
    }
}

/// Runs podman with the settings of this suite.
pub fn podman(args: &[&str]) -> Output {
    Network::None.podman(args)
}

/// The folder of the Dockerfile.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Builds the image that the Dockerfile describes, with the program that `make binary` has built.
pub fn build_product(tag: &str) {
    let outside = ["--build-arg", "PROGRAM=outside"];
    let built = podman(&[&["build", "--isolation", "chroot", "--tag", tag][..], &outside, &[ROOT]].concat());
    assert!(built.status.success(), "`make binary` comes first: {}", both(&built));
}

/// Writes an image to an archive.
pub fn save(image: &str, archive: &Path) {
    let saved = podman(&["save", "--output", &archive.display().to_string(), image]);
    assert!(saved.status.success(), "{}", both(&saved));
}

/// What a command printed, on both of its outputs.
pub fn both(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}
