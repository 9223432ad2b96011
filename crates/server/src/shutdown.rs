//! Graceful shutdown.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time;
use tracing::info;

use super::{health::Health, signals::TerminationSignals};

/// Notifies listeners and background tasks of the shutdown.
///
/// The process first drains: it is not ready, but still responds, because API servers still send reviews until the
/// removal of the endpoint has propagated. Then it stops: it accepts no connections and finishes the requests in
/// flight.
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
    /// Returns the state of a running process.
    pub fn new() -> Self {
        Self { draining: watch::Sender::new(false), stopping: watch::Sender::new(false) }
    }

    /// Returns the phases for a listener.
    pub fn phases(&self) -> Phases {
        Phases { draining: self.draining.subscribe(), stopping: self.stopping.subscribe() }
    }

    /// Returns a value that becomes true when background tasks have to end.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// Drains: the process is not ready, and asks clients to reconnect.
    pub fn drain(&self, health: &Health) {
        health.shut_down();
        self.draining.send_replace(true);
    }

    /// Stops accepting connections.
    pub fn stop(&self) {
        self.draining.send_replace(true);
        self.stopping.send_replace(true);
    }

    /// Drains for `delay` or until another signal, and stops.
    ///
    /// The `serve` futures of the listeners end later; wait for them.
    pub async fn end(&self, signals: &mut TerminationSignals, health: &Health, delay: Duration) {
        info!(?delay, "shutting down: not ready, still responding");
        self.drain(health);
        tokio::select! {
            () = time::sleep(delay) => {}
            name = signals.recv() => info!(signal = name, "received another signal: skipping the delay"),
        }
        info!("shutting down: finishing requests in flight");
        self.stop();
    }
}

/// The phase of the shutdown, for listeners.
#[derive(Clone, Debug)]
pub struct Phases {
    draining: watch::Receiver<bool>,
    stopping: watch::Receiver<bool>,
}

impl Phases {
    /// Returns whether responses have to close the connection.
    pub fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Waits until no connections may be accepted.
    pub async fn stopping(&mut self) {
        // An error means that the `Shutdown` was dropped, with the rest of the program.
        drop(self.stopping.wait_for(|stop| *stop).await);
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
    async fn shutdown_drains_and_another_signal_stops_at_once() {
        let (shutdown, health) = (Shutdown::new(), Health::new());
        let mut phases = shutdown.phases();
        let mut signals = TerminationSignals::catch().expect("handlers");
        let mut draining = shutdown.draining.subscribe();
        let watcher = async {
            draining.wait_for(|draining| *draining).await.expect("draining");
            assert_eq!(health.unmet(), ["shutdown: the process is shutting down"]);
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
    async fn listeners_stop_if_the_shutdown_is_dropped() {
        let shutdown = Shutdown::new();
        let mut phases = shutdown.phases();
        drop(shutdown);
        phases.stopping().await;
    }
}
