//! The signals that end the process.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::{CtrlBreak, CtrlC, ctrl_break, ctrl_c};

/// Handlers of SIGTERM, SIGINT and SIGHUP.
///
/// SIGHUP is among them because its default would end the process at once, with the reviews in flight.
#[cfg(unix)]
#[derive(Debug)]
pub struct TerminationSignals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

#[cfg(unix)]
impl TerminationSignals {
    /// Installs the handlers. Has to be called early: the kernel ignores signals to process 1 of a container that have
    /// no handler.
    ///
    /// # Errors
    /// If a handler cannot be installed.
    pub fn catch() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal, and returns its name.
    pub async fn recv(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.hangup.recv() => "SIGHUP",
        }
    }
}

/// Handlers of Ctrl+C and Ctrl+Break.
#[cfg(windows)]
#[derive(Debug)]
pub struct TerminationSignals {
    interrupt: CtrlC,
    stop: CtrlBreak,
}

#[cfg(windows)]
impl TerminationSignals {
    /// Installs the handlers.
    ///
    /// # Errors
    /// If a handler cannot be installed.
    pub fn catch() -> io::Result<Self> {
        Ok(Self { interrupt: ctrl_c()?, stop: ctrl_break()? })
    }

    /// Waits for the next signal, and returns its name.
    pub async fn recv(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "Ctrl+C",
            _ = self.stop.recv() => "Ctrl+Break",
        }
    }
}
