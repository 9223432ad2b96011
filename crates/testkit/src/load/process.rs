//! CPU time and memory of a process, as the kernel counts them.

use std::{fs, time::Duration};

/// Memory of a process, in MB.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Resident now.
    pub resident: f64,
    /// The most that it was since the start.
    pub peak: f64,
}

/// CPU time of all threads of a process so far.
pub fn cpu(process: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("procfs");
    let of_task = |task: fs::DirEntry| -> Option<u64> {
        // A thread may end while this looks at it.
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse().ok()
    };
    Duration::from_nanos(tasks.filter_map(Result::ok).filter_map(of_task).sum())
}

/// The memory of a process now.
pub fn memory(process: u32) -> Memory {
    let text = fs::read_to_string(format!("/proc/{process}/status")).expect("procfs");
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a field of the status");
        let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kibibytes * 1024.0 / 1e6
    };
    Memory { resident: field("VmRSS:"), peak: field("VmHWM:") }
}
