//! A server that is measured, as a process: where it listens, its CPU time and
//! its memory.

use std::{
    fs,
    io::{self, BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, ChildStderr, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use super::process::{self, Memory};
use crate::until::LIMIT;

/// A server that runs until it is dropped.
pub struct Server {
    /// Where reviews are sent.
    pub address: SocketAddr,
    child: Child,
    lines: mpsc::Receiver<String>,
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

    /// Starts the program, of which `command` may be a prefix, with these objects in a folder and a certificate that it
    /// signs itself; everything else is as it is by default.
    pub fn of_objects(mut command: Command, folder: &Path, objects: &[Value]) -> Self {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        fs::create_dir_all(folder).expect("a folder");
        fs::write(folder.join("objects.json"), list.to_string()).expect("a writable folder");
        command.arg("serve").arg("--source").arg(folder).arg("--tls-self-signed");
        command.args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
        Self::start(command)
    }

    /// The address of another of its ports, which it opens after the webhook's. To be asked for once.
    pub fn address_of(&self, name: &str) -> SocketAddr {
        told(&self.lines, name)
    }

    /// CPU time of all its threads so far, as the kernel counts it.
    pub fn cpu(&self) -> Duration {
        process::cpu(self.id())
    }

    /// CPU time since then.
    pub fn cpu_since(&self, before: Duration) -> Duration {
        self.cpu().saturating_sub(before)
    }

    /// Its memory now.
    pub fn memory(&self) -> Memory {
        process::memory(self.id())
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
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
        let line = lines.recv_timeout(LIMIT).expect("the server says where it listens");
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
