//! A process of a test run, with its log.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::until::poll;

const LOG_TAIL_LINES: usize = 20;

/// Runs until it is dropped, or ends by itself.
pub struct Program {
    child: Child,
    log: PathBuf,
}

impl Program {
    /// Starts `binary` in `folder`, with one option on each line, and writes
    /// both of its outputs to `log`.
    pub fn start(binary: &Path, options: &str, folder: &Path, log: PathBuf) -> Self {
        let mut command = Command::new(binary);
        command.args(options.lines().map(str::trim_start)).current_dir(folder);
        Self::run(command, log)
    }

    /// Starts a command and appends both of its outputs to `log`.
    pub fn run(mut command: Command, log: PathBuf) -> Self {
        let stdout =
            File::options().create(true).append(true).open(&log).expect("a log in the scratch folder");
        let stderr = stdout.try_clone().expect("a second handle of the log");
        let child = command
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", command.get_program().display()));
        Self { child, log }
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it does not run any more.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Whether it runs, and the end of its log.
    pub fn report(&mut self) -> String {
        let ended = self.child.try_wait().ok().flatten();
        let state = ended.map_or("still running".to_owned(), |status| status.to_string());
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let skipped = log.lines().count().saturating_sub(LOG_TAIL_LINES);
        let tail: Vec<&str> = log.lines().skip(skipped).collect();
        format!("== {}, {state}:\n{}\n", self.log.display(), tail.join("\n"))
    }

    /// Sends it a signal, such as `STOP`.
    pub fn signal(&self, name: &str) {
        // The standard library sends nothing but SIGKILL; every shell has `kill`.
        let sent = Command::new("sh").args(["-c", &format!("kill -{name} {}", self.id())]).status();
        assert!(sent.is_ok_and(|status| status.success()), "SIG{name} cannot be sent");
    }

    /// Ends it by SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Ends it with SIGTERM, and with SIGKILL where that is not enough. Returns its status if it ended by itself.
    ///
    /// Never panics: it also runs while a test that failed is unwinding.
    pub fn stop(&mut self) -> Option<ExitStatus> {
        if !self.has_ended() {
            let terminate = format!("kill -TERM {}", self.child.id());
            let _ = Command::new("sh").args(["-c", &terminate]).status();
            if poll(|| self.has_ended().then_some(())).is_none() {
                let _ = self.child.kill();
            }
        }
        self.child.wait().ok()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.stop();
    }
}
