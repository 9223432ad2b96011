//! The end of the process, in an order that loses no review.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time;
use tracing::info;

use super::health::Health;

/// Tells listeners and tasks in the background that the process ends.
///
/// First it drains: not ready any more, but everything is still answered, because for a while
/// the API server goes on to send reviews to an endpoint that is being taken off. Then it stops:
/// nothing is accepted, and what is in flight is finished.
#[derive(Debug)]
pub struct Shutdown {
    draining: watch::Sender<bool>,
    stopping: watch::Sender<bool>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}

impl Shutdown {
    /// Nothing ends yet.
    pub fn new() -> Self {
        Self { draining: watch::Sender::new(false), stopping: watch::Sender::new(false) }
    }

    /// What a listener has to know.
    pub fn phases(&self) -> Phases {
        Phases { draining: self.draining.subscribe(), stopping: self.stopping.subscribe() }
    }

    /// Turns true when tasks in the background have to end.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// Takes the process off: not ready, and clients are asked to come back on another connection.
    pub fn drain(&self, health: &Health) {
        health.shut_down();
        self.draining.send_replace(true);
    }

    /// Ends accepting.
    pub fn stop(&self) {
        self.draining.send_replace(true);
        self.stopping.send_replace(true);
    }

    /// Drains for `delay`, and stops. A signal ends the waiting.
    ///
    /// The listeners' `serve` futures end some time afterwards; they are what to wait for.
    pub async fn end(&self, signals: &mut TerminationSignals, health: &Health, delay: Duration) {
        info!(?delay, "ending: not ready any more, still answering");
        self.drain(health);
        tokio::select! {
            () = time::sleep(delay) => {}
            name = signals.recv() => info!(signal = name, "another signal: not waiting any longer"),
        }
        info!("ending: finishing what is in flight");
        self.stop();
    }
}

/// How far the end has come, as listeners see it.
#[derive(Clone, Debug)]
pub struct Phases {
    draining: watch::Receiver<bool>,
    stopping: watch::Receiver<bool>,
}

impl Phases {
    /// Whether answers have to ask for the connection to be closed.
    pub fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Waits until nothing may be accepted any more.
    pub async fn stopping(&mut self) {
        // An error means that the `Shutdown` is gone, and with it the rest of the program.
        drop(self.stopping.wait_for(|stop| *stop).await);
    }
}

/// SIGTERM and SIGINT, caught from when this is made.
#[derive(Debug)]
pub struct TerminationSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl TerminationSignals {
    /// To be made early: the kernel discards signals that process 1 of a container has no handler for.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub fn catch() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next of them, and gives its name.
    pub async fn recv(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    fn send(signal: &str) {
        let status = Command::new("sh")
            .args(["-c", &format!("kill -{signal} {}", std::process::id())])
            .status()
            .expect("a shell");
        assert!(status.success());
    }

    #[tokio::test]
    async fn the_end_drains_and_a_signal_stops_at_once() {
        let (shutdown, health) = (Shutdown::new(), Health::new());
        let mut phases = shutdown.phases();
        let mut signals = TerminationSignals::catch().expect("handlers");
        let mut draining = shutdown.draining.subscribe();
        let watcher = async {
            draining.wait_for(|draining| *draining).await.expect("draining");
            assert_eq!(health.unmet(), ["shutdown: the process is ending"]);
            assert!(!*shutdown.stopping().borrow());
            send("INT");
            phases.stopping().await;
        };
        send("TERM");
        assert_eq!(signals.recv().await, "SIGTERM");
        tokio::join!(shutdown.end(&mut signals, &health, LONG), watcher);
        assert!(phases.is_draining());
    }

    #[tokio::test]
    async fn without_the_rest_of_the_program_everything_stops() {
        let shutdown = Shutdown::new();
        let mut phases = shutdown.phases();
        drop(shutdown);
        phases.stopping().await;
    }
}
