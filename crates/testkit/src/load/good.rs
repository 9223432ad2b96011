//! Good reviews at a fixed rate next to a fault, and probes: what is lost, late or not injected is counted.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustls::{ClientConfig, ClientConnection, StreamOwned};
use serde_json::Value;

use super::{link, material, trust};
use crate::admin;

/// The longest that an API server waits for a webhook of the chart.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The time after which the probes of the chart fail.
const PROBE: Duration = Duration::from_secs(1);

/// Connections with good reviews.
const CONNECTIONS: u32 = 8;

/// What became of the good reviews and the probes.
#[derive(Debug, Default)]
pub struct Tally {
    /// Answered reviews.
    pub answered: usize,
    /// Answered ones without an agent.
    pub not_injected: usize,
    /// Why reviews had no answer.
    pub lost: Vec<String>,
    /// How long each answer took since it was due, in order of length.
    pub latencies: Vec<Duration>,
    /// Probes of `/livez`, and how many were not answered by 200.
    pub probes: usize,
    /// Probes that were not answered by 200.
    pub dead: usize,
}

/// Where reviews are sent: the servers behind a Service.
pub type Servers = Arc<Mutex<Vec<SocketAddr>>>;

/// Traffic in the background.
pub struct Traffic {
    stop: Arc<AtomicBool>,
    senders: Vec<JoinHandle<Tally>>,
    prober: Option<JoinHandle<Tally>>,
}

/// How reviews are sent.
#[derive(Clone, Copy)]
pub struct Pace {
    /// Reviews a second.
    pub rate: u32,
    /// Whether connections are kept, as by an API server.
    pub is_kept: bool,
}

impl Traffic {
    /// Begins with the usual reviews, and with probes of an admin port if there is one to probe.
    pub fn begin(servers: &Servers, admin: Option<SocketAddr>, pace: Pace) -> Self {
        Self::begin_with(&material::usual(), servers, admin, pace)
    }

    /// The same with another review.
    pub fn begin_with(review: &Value, servers: &Servers, admin: Option<SocketAddr>, pace: Pace) -> Self {
        let request = link::request(&serde_json::to_vec(review).expect("JSON"));
        let stop = Arc::new(AtomicBool::new(false));
        let senders = (0..CONNECTIONS).map(|number| {
            let (servers, stop) = (Arc::clone(servers), Arc::clone(&stop));
            let sender = Sender::new(servers, pace, request.clone());
            thread::spawn(move || sender.run(number, &stop))
        });
        let senders = senders.collect();
        let until = Arc::clone(&stop);
        let prober = admin.map(|admin| thread::spawn(move || probe(admin, &until)));
        Self { stop, senders, prober }
    }

    /// Ends it.
    pub fn end(self) -> Tally {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Tally::default();
        for thread in self.senders.into_iter().chain(self.prober) {
            let one = thread.join().expect("no panic");
            all.answered += one.answered;
            all.not_injected += one.not_injected;
            all.lost.extend(one.lost);
            all.latencies.extend(one.latencies);
            all.probes += one.probes;
            all.dead += one.dead;
        }
        all.latencies.sort_unstable();
        all
    }
}

impl Tally {
    /// The latency that so many of a thousand answers did not exceed, in milliseconds.
    pub fn latency(&self, per_mille: usize) -> f64 {
        let at = (self.latencies.len() * per_mille).div_ceil(1000).saturating_sub(1);
        self.latencies.get(at).map_or(0.0, |latency| latency.as_secs_f64() * 1e3)
    }
}

/// One connection to an admin port after the other.
fn probe(admin_address: SocketAddr, stop: &AtomicBool) -> Tally {
    let mut tally = Tally::default();
    while !stop.load(Ordering::Relaxed) {
        tally.probes += 1;
        tally.dead += usize::from(
            admin::get_within(PROBE, admin_address, "/livez").is_none_or(|(is_live, _)| !is_live),
        );
        thread::sleep(Duration::from_millis(100));
    }
    tally
}

type Stream = StreamOwned<ClientConnection, TcpStream>;

struct Sender {
    servers: Servers,
    pace: Pace,
    config: Arc<ClientConfig>,
    request: Vec<u8>,
    stream: Option<Stream>,
    turn: usize,
}

impl Sender {
    fn new(servers: Servers, pace: Pace, request: Vec<u8>) -> Self {
        Self { servers, pace, config: trust::client_config(false), request, stream: None, turn: 0 }
    }

    fn run(mut self, number: u32, stop: &AtomicBool) -> Tally {
        let mut tally = Tally::default();
        let interval = Duration::from_secs(1) * CONNECTIONS / self.pace.rate;
        let mut due = Instant::now() + interval * number / CONNECTIONS;
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            match self.review() {
                Ok(is_injected) => {
                    tally.answered += 1;
                    tally.not_injected += usize::from(!is_injected);
                    tally.latencies.push(due.elapsed());
                }
                Err(error) => tally.lost.push(error.to_string()),
            }
            due += interval;
        }
        tally
    }

    /// Sends one review. Gives whether the pod is injected.
    fn review(&mut self) -> io::Result<bool> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.connect()?,
        };
        stream.write_all(&self.request)?;
        let answer = answer(&mut stream)?;
        if !answer.starts_with("HTTP/1.1 200") {
            return Err(io::Error::other(answer));
        }
        if self.pace.is_kept && !answer.to_ascii_lowercase().contains("\r\nconnection: close") {
            self.stream = Some(stream);
        }
        // The patch is encoded, and a pod that is not injected may have one, too; the audit annotation says which.
        Ok(answer.contains("\"patchType\":\"JSONPatch\"") && answer.contains("=Injected\""))
    }

    fn connect(&mut self) -> io::Result<Stream> {
        self.turn += 1;
        let address = {
            let servers = self.servers.lock().expect("no panic");
            servers[self.turn % servers.len()]
        };
        let (socket, tls) = link::handshake(address, &self.config)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        Ok(StreamOwned::new(tls, socket))
    }
}

/// A whole answer with head and body.
pub fn answer(stream: &mut impl Read) -> io::Result<String> {
    let (mut received, mut buffer) = (Vec::new(), [0; 16 * 1024]);
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Err(io::Error::other("closed before the answer was whole"));
        }
        received.extend(&buffer[..count]);
        let text = String::from_utf8_lossy(&received);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        if body.len() >= length.unwrap_or(usize::MAX) {
            return Ok(text.into_owned());
        }
    }
}
