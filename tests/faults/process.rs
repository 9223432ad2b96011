//! A server in a memory cgroup, where the machine lets one be made.

use std::{
    fs,
    io::{self, BufRead, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use otel_webhook_testkit::{admin, load::material, until::poll};

/// The memory limit of the chart, in bytes.
pub const LIMIT: u64 = 128 << 20;

/// What a server is started with.
pub struct Start<'s> {
    /// The kubeconfig of a cluster; without one, the source is a directory with the usual Instrumentation.
    pub kubeconfig: Option<&'s str>,
    /// Further arguments; without a certificate among them it signs its own.
    pub arguments: &'s [&'s str],
    /// Whether its log is read.
    pub is_read: bool,
}

impl Default for Start<'_> {
    fn default() -> Self {
        Self { kubeconfig: None, arguments: &[], is_read: true }
    }
}

/// A server that runs until it is dropped.
pub struct Process {
    /// Where reviews are sent.
    pub webhook: SocketAddr,
    /// Where health and metrics are.
    pub admin: SocketAddr,
    child: Child,
    /// Kept open, whether it is read or not.
    unread: Option<BufReader<ChildStderr>>,
    cgroup: Option<PathBuf>,
    _folder: tempfile::TempDir,
}

/// Memory, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// Resident now.
    pub resident: u64,
    /// The most so far.
    pub peak: u64,
}

impl Process {
    /// Starts a server, and waits until it is ready.
    pub fn start(start: &Start<'_>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("objects.json");
        let usual = material::instrumentation().to_string();
        fs::write(&path, start.kubeconfig.unwrap_or(&usual)).expect("a file");
        let cgroup = new_cgroup();
        let mut command = within(cgroup.as_deref());
        match start.kubeconfig {
            Some(_) => command.env("KUBECONFIG", &path).args(["serve", "--source", "kubernetes"]),
            None => command.args(["serve", "--source"]).arg(folder.path()),
        };
        command.args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--languages"]);
        command.arg("java,nodejs,python,dotnet,sdk,apache-httpd").args(start.arguments);
        if !start.arguments.contains(&"--tls-cert") {
            command.arg("--tls-self-signed");
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the server starts");
        let mut log = BufReader::new(child.stderr.take().expect("a pipe"));
        let [webhook, admin] = ["webhook", "admin"].map(|name| address(&mut log, name));
        let unread = if start.is_read {
            thread::spawn(move || io::copy(&mut log, &mut io::sink()));
            None
        } else {
            Some(log)
        };
        let process = Self { webhook, admin, child, unread, cgroup, _folder: folder };
        assert!(poll(|| process.is_up("/readyz").then_some(())).is_some(), "it is not ready");
        process
    }

    /// Whether a path of the admin port is answered by 200, on its own connection.
    pub fn is_up(&self, path: &str) -> bool {
        admin::body(self.admin, path).is_some()
    }

    /// The sum of the values of a metric.
    pub fn metric(&self, name: &str) -> f64 {
        let text = admin::body(self.admin, "/metrics").unwrap_or_default();
        let lines = text.lines().filter(|line| line.starts_with(name));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    }

    /// Its memory now.
    pub fn memory(&self) -> Memory {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let kibibytes: Option<u64> =
                line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
            kibibytes.unwrap_or_default() * 1024
        };
        Memory { resident: field("VmRSS:"), peak: field("VmHWM:") }
    }

    /// CPU time so far.
    pub fn cpu(&self) -> Duration {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).into_iter().flatten();
        let of_task = |task: fs::DirEntry| -> Option<u64> {
            fs::read_to_string(task.path().join("schedstat")).ok()?.split(' ').next()?.parse().ok()
        };
        Duration::from_nanos(tasks.filter_map(Result::ok).filter_map(of_task).sum())
    }

    /// Sends SIGTERM and waits for the end. Gives how long it took, if it ended by itself.
    pub fn terminate(&mut self) -> Option<Duration> {
        let started = Instant::now();
        self.signal();
        poll(|| self.child.try_wait().ok().flatten()).map(|_| started.elapsed())
    }

    /// Sends SIGTERM.
    pub fn signal(&self) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill -TERM");
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        drop(self.unread.take());
        if let Some(cgroup) = &self.cgroup {
            let _ = fs::remove_dir(cgroup);
        }
    }
}

/// The program under test: the released one, which `make faults` names.
fn program() -> String {
    std::env::var("OTEL_WEBHOOK_PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_otel-webhook").to_owned())
}

/// The program within a cgroup; it is put there by a shell before it starts.
fn within(cgroup: Option<&Path>) -> Command {
    let Some(cgroup) = cgroup else { return Command::new(program()) };
    let mut command = Command::new("sh");
    let script = r#"echo $$ > "$0" && exec "$@""#;
    command.args(["-c", script]).arg(cgroup.join("cgroup.procs")).arg(program());
    command
}

/// A memory cgroup with the limit of the chart; `None` where none can be made.
fn new_cgroup() -> Option<PathBuf> {
    static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("otel-webhook-faults-{}-{number}", std::process::id());
    let kinds = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
    kinds.into_iter().find_map(|(root, file)| {
        let cgroup = Path::new(root).join(&name);
        fs::create_dir(&cgroup).ok()?;
        if fs::write(cgroup.join(file), LIMIT.to_string()).is_ok() {
            return Some(cgroup);
        }
        let _ = fs::remove_dir(cgroup);
        None
    })
}

/// Whether servers run within the limit.
pub fn is_limited() -> bool {
    let cgroup = new_cgroup();
    cgroup.as_ref().is_some_and(|cgroup| fs::remove_dir(cgroup).is_ok())
}

/// The address in the line of the log that says what is listened for.
fn address(log: &mut impl BufRead, name: &str) -> SocketAddr {
    let what = format!("listening for {name} address=");
    let lines = log.lines().map(|line| line.expect("the log is text"));
    let found = lines.into_iter().find_map(|line| Some(line.split_once(&what)?.1.trim().to_owned()));
    found.expect("the server says where it listens").parse().expect("an address")
}
