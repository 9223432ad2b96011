//! A server that is measured, as a process: where it listens, its CPU time and
//! its memory.

use std::{
    fs,
    io::{self, BufRead, BufReader},
    net::SocketAddr,
    process::{Child, ChildStderr, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// Longer than a start takes on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(60);

/// A server that runs until it is dropped.
pub struct Server {
    /// Where reviews are sent.
    pub address: SocketAddr,
    child: Child,
    lines: mpsc::Receiver<String>,
}

/// Memory of a process, in MB.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Resident now.
    pub resident: f64,
    /// The most that it was since the start.
    pub peak: f64,
}

impl Server {
    /// Starts it and waits for the line that tells its address.
    pub fn start(mut command: Command) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("the server can be started");
        let lines = drained(child.stderr.take().expect("a pipe"));
        let address = told(&lines, "webhook");
        Self { address, child, lines }
    }

    /// The address of another of its ports, which it opens after the webhook's. To be asked for once.
    pub fn address_of(&self, name: &str) -> SocketAddr {
        told(&self.lines, name)
    }

    /// CPU time of all its threads so far, as the kernel counts it.
    pub fn cpu(&self) -> Duration {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("procfs");
        let of_task = |task: fs::DirEntry| -> Option<u64> {
            // A thread may end while this looks at it.
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse().ok()
        };
        Duration::from_nanos(tasks.filter_map(Result::ok).filter_map(of_task).sum())
    }

    /// CPU time since then.
    pub fn cpu_since(&self, before: Duration) -> Duration {
        self.cpu().saturating_sub(before)
    }

    /// Its memory now.
    pub fn memory(&self) -> Memory {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("procfs");
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a field of the status");
            let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
            kibibytes * 1024.0 / 1e6
        };
        Memory { resident: field("VmRSS:"), peak: field("VmHWM:") }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address in the line that says what is listened for.
fn told(lines: &mpsc::Receiver<String>, name: &str) -> SocketAddr {
    let what = format!("listening for {name} address=");
    loop {
        let line = lines.recv_timeout(START_LIMIT).expect("the server says where it listens");
        if let Some((_, address)) = line.split_once(&what) {
            return address.trim().parse().expect("an address");
        }
    }
}

/// Reads the server's log for as long as it runs, as a container runtime
/// does, so that it never waits for a reader. Gives the lines of the start.
fn drained(log: ChildStderr) -> mpsc::Receiver<String> {
    /// The lines that tell addresses are among these.
    const FIRST_LINES: usize = 32;
    let (lines, received) = mpsc::channel();
    thread::spawn(move || {
        let mut log = BufReader::with_capacity(1 << 20, log);
        for _ in 0..FIRST_LINES {
            let mut line = String::new();
            let read = log.read_line(&mut line).is_ok_and(|length| length > 0);
            if !read || lines.send(line).is_err() {
                break;
            }
        }
        let _ = io::copy(&mut log, &mut io::sink());
    });
    received
}
