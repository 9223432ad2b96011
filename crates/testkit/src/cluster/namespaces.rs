//! Namespaces of Linux for a test run with a real node, and its control groups.
//!
//! What runs in them is not reached from outside. When their first process ends, the kernel ends all others,
//! containers among them, and with the last one go mounts and interfaces.

use std::env;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitCode};

use tempfile::TempDir;

use crate::until::poll;

/// Where the hierarchies of control groups are.
const CGROUPS: &str = "/sys/fs/cgroup";

/// What the names of control groups begin with; the process of the run follows.
const PREFIX: &str = "otel-webhook-";

/// Names the control group of the run, for the process in the namespaces.
const CGROUP: &str = "OTEL_WEBHOOK_NODE_CGROUP";

/// Runs this program again with the same arguments, as the first process of its own namespaces (network, mounts,
/// processes), with a control group and a folder for temporary files that are removed in the end. There, and only
/// there, `inside` is called. `outside` is called first, with that folder.
///
/// Needs root, and `unshare` and `setpriv` of util-linux.
pub fn apart(outside: impl FnOnce(&Path), inside: impl FnOnce() -> ExitCode) -> ExitCode {
    if env::var_os(CGROUP).is_some() {
        return inside();
    }
    let mut folder = TempDir::with_prefix("otel-webhook-").expect("a folder");
    folder.disable_cleanup(env::var_os("OTEL_WEBHOOK_KEEP_LOGS").is_some());
    outside(folder.path());
    let group = Cgroup::create();
    // However this process ends, the others end with it.
    let status = Command::new("setpriv")
        .args([
            "--pdeathsig",
            "KILL",
            "unshare",
            "--net",
            "--mount",
            "--pid",
            "--mount-proc",
            "--fork",
            "--kill-child",
            "--",
        ])
        .arg(env::current_exe().expect("the path of this program"))
        .args(env::args_os().skip(1))
        .env(CGROUP, &group.0)
        .env("TMPDIR", folder.path())
        .status()
        .expect("unshare can be started");
    let code = status.code().or(status.signal()).and_then(|code| u8::try_from(code).ok());
    ExitCode::from(code.unwrap_or(1))
}

/// The control group of the run, of which those of pods are parts.
pub(super) fn cgroup() -> String {
    env::var(CGROUP).expect("called within `apart`")
}

/// A control group in each hierarchy, removed with its parts when this is dropped.
struct Cgroup(String);

impl Cgroup {
    fn create() -> Self {
        let group = Self(format!("/{PREFIX}{}", process::id()));
        remove_those_of_killed_runs();
        // Only those of the first version have this file.
        for folder in group.folders().filter(|folder| folder.with_file_name("tasks").exists()) {
            fs::create_dir_all(&folder).expect("root, and control groups of the first version");
        }
        // Empty in a new group, which can have no process then.
        for file in ["cpuset.mems", "cpuset.cpus"] {
            let cpuset = Path::new(CGROUPS).join("cpuset");
            let all = fs::read(cpuset.join(file)).expect("the processors of the machine");
            fs::write(cpuset.join(&group.0[1..]).join(file), all).expect("a control group");
        }
        group
    }

    /// Its folders: one in each hierarchy.
    fn folders(&self) -> impl Iterator<Item = PathBuf> {
        let hierarchies = fs::read_dir(CGROUPS).into_iter().flatten().flatten();
        hierarchies.map(|hierarchy| hierarchy.path().join(&self.0[1..]))
    }
}

fn remove_those_of_killed_runs() {
    let names = fs::read_dir(Path::new(CGROUPS).join("cpuset")).into_iter().flatten().flatten();
    for name in names.filter_map(|entry| entry.file_name().into_string().ok()) {
        let process = name.strip_prefix(PREFIX).and_then(|process| process.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists()) {
            drop(Cgroup(format!("/{name}")));
        }
    }
}

impl Drop for Cgroup {
    /// Never panics: it also runs while a start that failed is unwinding.
    fn drop(&mut self) {
        // Container runtimes make one in the second version's hierarchy as well.
        for folder in self.folders().filter(|folder| folder.exists()) {
            if poll(|| remove_tree(&folder).ok()).is_none() {
                eprintln!("{} is left", folder.display());
            }
        }
    }
}

/// Removes groups from the innermost outwards: the files in their folders cannot be removed.
fn remove_tree(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    fs::remove_dir(folder)
}
