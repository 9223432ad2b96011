//! A port. It is bound first and served later, so that the process is never ready before the port is open.

use std::io;
use std::net::{self, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use socket2::{Domain, Protocol, Socket, Type};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinError, JoinSet};
use tokio::time;
use tracing::{debug, error, info, warn};

use super::connection::{self, Transport};
use super::connections::{Connection, Connections};
use super::shutdown::Phases;
use otel_webhook_telemetry::Metrics;

/// The number of connections, so that memory is bounded. One peer may have half of them.
const MAX_CONNECTIONS: usize = 1024;

const BACKLOG: i32 = 4096;

/// The pause after an error that the next accept would repeat, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why a port cannot be opened.
#[derive(Debug, Error)]
#[error("cannot listen on {address} for {name}: {source}")]
pub struct ListenError {
    /// The name of the port.
    pub name: &'static str,
    /// The address.
    pub address: SocketAddr,
    /// The error of the operating system.
    pub source: io::Error,
}

/// An open port. Connections wait until it is served.
#[derive(Debug)]
pub struct Listening {
    /// The address; with the port that the system chose, if it was 0.
    pub address: SocketAddr,
    name: &'static str,
    listener: net::TcpListener,
    max_connections: usize,
    metrics: Arc<Metrics>,
}

impl Listening {
    /// Opens a port; `name` is its name in logs and errors. `[::]` includes IPv4, and falls back to `0.0.0.0` on a host
    /// without IPv6.
    ///
    /// # Errors
    /// If the address is in use, not permitted, or not one of this host.
    pub fn bind(name: &'static str, address: SocketAddr) -> Result<Self, ListenError> {
        let failed = |source| ListenError { name, address, source };
        let listener = open_or_fall_back(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        info!(%address, "listening for {name}");
        Ok(Self { address, name, listener, max_connections: MAX_CONNECTIONS, metrics: Arc::default() })
    }

    /// Sets where connections are counted.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Arc<Metrics>) -> Self {
        self.metrics = metrics;
        self
    }

    /// Sets how many connections are served at a time, instead of 1024; half of them for one peer.
    #[must_use]
    pub fn with_max_connections(mut self, max_connections: usize) -> Self {
        self.max_connections = max_connections;
        self
    }

    /// Serves until the shutdown stops it; then waits for the requests in flight, at most for `grace`. Dropping the future
    /// closes all connections.
    pub async fn serve(self, router: Router, transport: Transport, mut phases: Phases, grace: Duration) {
        // Here, not in `bind`: the port may be served on another runtime.
        let listener = match TcpListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(error) => return error!(%error, "cannot serve {}", self.name),
        };
        let most = self.max_connections;
        let table = Connections::new(self.name, most, most.div_ceil(2), self.metrics);
        let mut connections = JoinSet::new();
        let watched = phases.clone();
        loop {
            tokio::select! {
                () = phases.stopping() => break,
                Some(ended) = connections.join_next() => report(ended),
                (stream, peer, connection) = accept(&listener, self.name, &table) => {
                    let (transport, router, phases) = (transport.clone(), router.clone(), watched.clone());
                    connections.spawn(connection::serve(stream, peer, transport, router, phases, connection));
                }
            }
        }
        // Closed before waiting, so that new clients connect to another replica at once.
        drop(listener);
        finish(self.name, connections, grace).await;
    }
}

/// Returns the next connection that the limits permit. Never fails: a server must not stop accepting because of a
/// temporary error.
async fn accept(
    listener: &TcpListener,
    name: &str,
    connections: &Arc<Connections>,
) -> (TcpStream, SocketAddr, Connection) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let Some(connection) = connections.admit(peer.ip()) else {
                    debug!(%peer, "closed a connection: all others have requests");
                    continue;
                };
                return (stream, peer, connection);
            }
            Err(error) if concerns_one_connection(&error) => {
                debug!(%error, "a connection ended in the backlog");
            }
            Err(error) => {
                warn!(%error, "cannot accept connections for {name}; retrying");
                // The process may have no more file descriptors.
                connections.close_idle();
                time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        error!(%error, "a connection's task panicked");
    }
}

async fn finish(name: &str, mut connections: JoinSet<()>, grace: Duration) {
    let all = async {
        while let Some(ended) = connections.join_next().await {
            report(ended);
        }
    };
    if time::timeout(grace, all).await.is_err() {
        let left = connections.len();
        warn!(left, ?grace, "closing connections for {name} with requests in flight after the grace period");
    }
}

fn open_or_fall_back(address: SocketAddr) -> io::Result<net::TcpListener> {
    match open(address) {
        Err(error) if may_lack_ipv6(address, &error) => {
            info!(%error, "this host has no IPv6; listening on IPv4 only");
            open(SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port())))
        }
        opened => opened,
    }
}

fn may_lack_ipv6(address: SocketAddr, error: &io::Error) -> bool {
    use io::ErrorKind::{AddrInUse, PermissionDenied};
    // The error of missing IPv6 depends on how it is disabled; these two have other causes.
    address.is_ipv6()
        && address.ip().is_unspecified()
        && !matches!(error.kind(), AddrInUse | PermissionDenied)
}

fn open(address: SocketAddr) -> io::Result<net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // Otherwise a restart within a minute would fail because of connections in TIME_WAIT.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    #[tokio::test]
    async fn the_unspecified_address_includes_ipv4() {
        let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
        let listening = Listening::bind("tests", any).expect("a port");
        assert_ne!(listening.address.port(), 0);
        let client = TcpStream::connect((Ipv4Addr::LOCALHOST, listening.address.port()));
        // The kernel accepts it into the backlog.
        client.await.expect("a connection by IPv4");
    }

    #[tokio::test]
    async fn the_error_of_a_port_in_use_has_the_address() {
        let first = Listening::bind("the first", SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a port");
        let error = Listening::bind("the second", first.address).expect_err("taken");
        assert_eq!(error.source.kind(), io::ErrorKind::AddrInUse);
        let begin = format!("cannot listen on {} for the second: ", first.address);
        assert!(error.to_string().starts_with(&begin), "{error}");
    }

    #[test]
    fn only_missing_ipv6_falls_back() {
        let any: SocketAddr = "[::]:443".parse().expect("an address");
        let unsupported = io::Error::from_raw_os_error(97);
        assert!(may_lack_ipv6(any, &unsupported));
        assert!(!may_lack_ipv6(any, &io::Error::from(io::ErrorKind::AddrInUse)));
        assert!(!may_lack_ipv6(any, &io::Error::from(io::ErrorKind::PermissionDenied)));
        assert!(!may_lack_ipv6("[::1]:443".parse().expect("an address"), &unsupported));
        assert!(!may_lack_ipv6("0.0.0.0:443".parse().expect("an address"), &unsupported));
    }
}
