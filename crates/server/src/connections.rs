//! The connections of a port: how many there may be, and which one is closed for another.
//!
//! A connection is idle while it has no request: from its start, during the handshake, and between requests. When the
//! limit is reached, the one that has been idle for longest is closed for a new one. Those that have served a request
//! within the last 90 s are closed last: API servers keep idle connections for so long, and a review that is sent at
//! the moment of closing would be lost.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{self, Instant},
};

use otel_webhook_telemetry::{Closed, Metrics};

/// How long an API server keeps an idle connection.
const KEPT: Duration = Duration::from_secs(90);

/// How long the headers of the first request may take, after the handshake.
const FIRST_REQUEST: Duration = Duration::from_secs(10);

/// How long a request may take, from its headers to the last byte of the response. The longest timeout of an API
/// server is 30 s; a client that does not read the response in twice that time does not want it.
const LONGEST_REQUEST: Duration = Duration::from_secs(60);

/// How often a connection looks at the two.
const LOOK: Duration = Duration::from_secs(10);

/// The connections of a port.
#[derive(Debug)]
pub struct Connections {
    port: &'static str,
    most: usize,
    most_of_peer: usize,
    metrics: Arc<Metrics>,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    known: HashMap<u64, Known>,
    of_peers: HashMap<IpAddr, usize>,
}

/// One connection. All of them are looked at to find the one to close, which takes microseconds for some thousands,
/// and happens only at the limit.
#[derive(Debug)]
struct Known {
    peer: IpAddr,
    /// Responses that are not written yet.
    requests: usize,
    /// Since when it has a request, or has none.
    since: Instant,
    is_new: bool,
    served: Option<Instant>,
    close: Arc<Notify>,
}

impl Connections {
    /// Returns the table of a port with these limits: in all, and for each peer.
    pub fn new(port: &'static str, most: usize, most_of_peer: usize, metrics: Arc<Metrics>) -> Arc<Self> {
        metrics.connections.expect(port);
        Arc::new(Self { port, most, most_of_peer, metrics, table: Mutex::default() })
    }

    /// Adds a connection. At a limit, an idle one is closed for it. None if there is none: then the new one has to be
    /// closed.
    pub fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<Connection> {
        // IPv4 clients have IPv6 addresses on a socket for both.
        let peer = peer.to_canonical();
        let mut table = self.table();
        let of_peer = table.of_peers.get(&peer).copied().unwrap_or_default();
        let full_for = (of_peer >= self.most_of_peer).then_some(peer);
        if full_for.is_some() || table.known.len() >= self.most {
            if !table.close_one(full_for) {
                self.metrics.connections.count_closed(self.port, Closed::Rejected);
                return None;
            }
            self.metrics.connections.count_closed(self.port, Closed::Idle);
        }
        let id = table.next;
        table.next += 1;
        let close = Arc::new(Notify::new());
        let (since, closing) = (Instant::now(), Arc::clone(&close));
        table.known.insert(id, Known { peer, requests: 0, since, is_new: true, served: None, close });
        *table.of_peers.entry(peer).or_default() += 1;
        self.metrics.connections.set_open(self.port, table.known.len());
        drop(table);
        Some(Connection { all: Arc::clone(self), id, closing })
    }

    /// Closes the connection that has been idle for longest, when the process has no more file descriptors.
    pub fn close_idle(&self) {
        if self.table().close_one(None) {
            self.metrics.connections.count_closed(self.port, Closed::Idle);
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Closes the connection of this peer, or of any, that has been idle for longest. Returns false if all are busy.
    fn close_one(&mut self, peer: Option<IpAddr>) -> bool {
        let idle = self.known.iter().filter(|(_, known)| known.requests == 0);
        let idle = idle.filter(|(_, known)| peer.is_none_or(|peer| known.peer == peer));
        let longest = idle.min_by_key(|(_, known)| (known.is_kept(), known.since));
        let Some(id) = longest.map(|(id, _)| *id) else { return false };
        // At once, and not when its task ends, so that it is not chosen again.
        if let Some(known) = self.remove(id) {
            known.close.notify_one();
        }
        true
    }

    fn remove(&mut self, id: u64) -> Option<Known> {
        let known = self.known.remove(&id)?;
        if let Some(count) = self.of_peers.get_mut(&known.peer) {
            *count -= 1;
            if *count == 0 {
                self.of_peers.remove(&known.peer);
            }
        }
        Some(known)
    }
}

impl Known {
    fn is_kept(&self) -> bool {
        self.served.is_some_and(|served| served.elapsed() < KEPT)
    }

    /// Returns why the connection has to end, if it has taken too long.
    fn overdue(&self) -> Option<Closed> {
        let elapsed = self.since.elapsed();
        if self.requests > 0 {
            return (elapsed >= LONGEST_REQUEST).then_some(Closed::Unread);
        }
        (self.is_new && elapsed >= FIRST_REQUEST).then_some(Closed::NoRequest)
    }
}

/// A connection in the table, until this is dropped.
#[derive(Debug)]
pub struct Connection {
    all: Arc<Connections>,
    id: u64,
    closing: Arc<Notify>,
}

impl Connection {
    /// Waits until the connection has to be closed for another.
    pub async fn closing(&self) {
        self.closing.notified().await;
    }

    /// Waits until the first request, or the present one, has taken too long. Begins after the handshake.
    pub async fn overdue(&self) {
        self.change(|known| known.since = Instant::now());
        loop {
            time::sleep(LOOK).await;
            let overdue = self.all.table().known.get(&self.id).and_then(Known::overdue);
            if let Some(reason) = overdue {
                return self.all.metrics.connections.count_closed(self.all.port, reason);
            }
        }
    }

    /// Begins a request, which lasts until all clones of the result are dropped.
    pub fn request(self: &Arc<Self>) -> Arc<InRequest> {
        self.change(|known| {
            known.requests += 1;
            known.since = Instant::now();
            known.is_new = false;
        });
        Arc::new(InRequest(Arc::clone(self)))
    }

    fn change(&self, change: impl FnOnce(&mut Known)) {
        // It is not there any more while it is being closed for another.
        if let Some(known) = self.all.table().known.get_mut(&self.id) {
            change(known);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut table = self.all.table();
        table.remove(self.id);
        self.all.metrics.connections.set_open(self.all.port, table.known.len());
    }
}

/// A request of a connection.
#[derive(Debug)]
pub struct InRequest(Arc<Connection>);

impl InRequest {
    /// Notes that the response is a success.
    pub fn succeeded(&self) {
        self.0.change(|known| known.served = Some(Instant::now()));
    }
}

impl Drop for InRequest {
    fn drop(&mut self) {
        self.0.change(|known| {
            known.requests = known.requests.saturating_sub(1);
            known.since = Instant::now();
        });
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    fn admit(all: &Arc<Connections>, peer: IpAddr) -> Arc<Connection> {
        Arc::new(all.admit(peer).expect("room"))
    }

    fn is_closing(connection: &Connection) -> bool {
        connection.closing().now_or_never().is_some()
    }

    /// Moves what has happened into the past.
    fn later(all: &Connections, seconds: u64) {
        let before =
            |at: Instant| at.checked_sub(Duration::from_secs(seconds)).expect("the machine runs for longer");
        for known in all.table().known.values_mut() {
            known.since = before(known.since);
            known.served = known.served.map(before);
        }
    }

    fn overdue(all: &Connections, connection: &Connection) -> Option<Closed> {
        all.table().known.get(&connection.id).expect("it is there").overdue()
    }

    fn closed(all: &Connections, reason: &str) -> String {
        let start = format!("otel_webhook_connections_closed_total{{port=\"test\",reason=\"{reason}\"}} ");
        let text = all.metrics.encode();
        text.lines().find_map(|line| line.strip_prefix(&start)).expect("the metric").to_owned()
    }

    #[tokio::test]
    async fn the_connection_that_is_idle_for_longest_is_closed_for_a_new_one() {
        let all = Connections::new("test", 3, 3, Arc::default());
        let busy = admit(&all, ONE);
        let request = busy.request();
        later(&all, 1);
        let kept = admit(&all, ONE);
        kept.request().succeeded();
        later(&all, 1);
        let new = admit(&all, OTHER);
        let fourth = admit(&all, OTHER);
        assert_eq!([&busy, &kept, &new].map(|one| is_closing(one)), [false, false, true]);
        later(&all, 1);
        let fifth = admit(&all, OTHER);
        assert_eq!([&busy, &kept, &fourth].map(|one| is_closing(one)), [false, false, true]);
        // Beyond 90 s, an API server has closed it itself.
        later(&all, 90);
        let _sixth = admit(&all, OTHER);
        assert_eq!([&busy, &kept, &fifth].map(|one| is_closing(one)), [false, true, false]);
        drop(request);
        assert_eq!(closed(&all, "Idle"), "3");
    }

    #[tokio::test]
    async fn a_connection_without_room_is_rejected_if_all_are_busy() {
        let all = Connections::new("test", 1, 1, Arc::default());
        let busy = admit(&all, ONE);
        let request = busy.request();
        assert!(all.admit(OTHER).is_none());
        assert_eq!(closed(&all, "Rejected"), "1");
        drop(request);
        let _second = admit(&all, OTHER);
        assert!(is_closing(&busy));
    }

    #[tokio::test]
    async fn the_limit_of_a_peer_closes_its_own_connections_only() {
        let all = Connections::new("test", 100, 2, Arc::default());
        let others = admit(&all, OTHER);
        let [first, second] = [admit(&all, ONE), admit(&all, ONE)];
        let mapped = "::ffff:10.0.0.1".parse().expect("an address");
        let _third = admit(&all, mapped);
        assert_eq!([&others, &first, &second].map(|one| is_closing(one)), [false, true, false]);
        drop(second);
        let _fourth = admit(&all, ONE);
        assert_eq!(closed(&all, "Idle"), "1");
    }

    #[tokio::test]
    async fn a_connection_may_take_ten_seconds_for_its_first_request() {
        let all = Connections::new("test", 2, 2, Arc::default());
        let (new, idle) = (admit(&all, ONE), admit(&all, ONE));
        drop(idle.request());
        later(&all, 9);
        assert_eq!(overdue(&all, &new), None);
        later(&all, 1);
        // Between requests, the timeout of HTTP ends a connection.
        assert_eq!([&new, &idle].map(|one| overdue(&all, one)), [Some(Closed::NoRequest), None]);
    }

    #[tokio::test]
    async fn a_response_has_to_be_read_within_a_minute() {
        let all = Connections::new("test", 2, 2, Arc::default());
        let busy = admit(&all, ONE);
        let request = busy.request();
        later(&all, 59);
        assert_eq!(overdue(&all, &busy), None);
        later(&all, 1);
        assert_eq!(overdue(&all, &busy), Some(Closed::Unread));
        drop(request);
        assert_eq!(overdue(&all, &busy), None);
    }
}
