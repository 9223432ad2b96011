//! The load: closed loops, open loops and handshakes.
//!
//! Our own tool, not h2load: latency counts from the moment at which a request
//! was to be sent, whether a connection was free then or not, and the server's
//! CPU time and memory are read in the same run.

use std::{
    io, mem,
    net::SocketAddr,
    time::{Duration, Instant},
};

use mio::{Events, Poll};

use super::{
    link::{self, Link},
    trust,
};

/// What a load did.
pub struct Done {
    /// How many answers came.
    pub answers: u32,
    /// How long it took.
    pub elapsed: Duration,
    /// From when each request was to be sent until its answer was whole, in order of length.
    pub latencies: Vec<Duration>,
}

/// Connections to one server, kept from one load to the next.
pub struct Sender {
    links: Vec<Link>,
    poll: Poll,
    events: Events,
    /// Connections with an answer since it was looked at last.
    answered: Vec<usize>,
    /// Sent in turn.
    requests: Vec<Vec<u8>>,
    sent: usize,
}

impl Sender {
    /// Opens connections for these reviews.
    pub fn new(address: SocketAddr, connections: usize, bodies: &[Vec<u8>]) -> io::Result<Self> {
        let config = trust::client_config(false);
        let poll = Poll::new()?;
        let mut links = Vec::with_capacity(connections);
        for number in 0..connections {
            let mut link = Link::connect(address, &config)?;
            link.register(poll.registry(), number)?;
            links.push(link);
        }
        let requests = bodies.iter().map(|body| link::request(body)).collect();
        Ok(Self { links, poll, events: Events::with_capacity(256), answered: Vec::new(), requests, sent: 0 })
    }

    /// Sends the next review and waits for the body of its answer.
    pub fn ask(&mut self) -> io::Result<Vec<u8>> {
        self.send(0, Instant::now())?;
        while !self.links[0].proceed()? {
            self.poll.poll(&mut self.events, None)?;
        }
        let body = self.links[0].body().to_vec();
        self.links[0].take();
        Ok(body)
    }

    /// Closed loop: each connection sends as soon as it has its answer.
    pub fn closed(&mut self, length: Duration) -> io::Result<Done> {
        let started = Instant::now();
        self.closed_while(|_| started.elapsed() < length, |_| {})
    }

    /// Closed loop of so many reviews.
    pub fn closed_of(&mut self, count: usize) -> io::Result<Done> {
        self.closed_of_seen(count, |_| {})
    }

    /// The same, with a look at the body of each answer.
    pub fn closed_of_seen(&mut self, count: usize, see: impl FnMut(&[u8])) -> io::Result<Done> {
        self.closed_while(|sent| sent < count, see)
    }

    fn closed_while(
        &mut self,
        go_on: impl Fn(usize) -> bool,
        mut see: impl FnMut(&[u8]),
    ) -> io::Result<Done> {
        let (started, before) = (Instant::now(), self.sent);
        let mut latencies = Vec::new();
        for number in 0..self.links.len() {
            self.send(number, Instant::now())?;
        }
        let mut asked = self.links.len();
        while asked > 0 {
            for number in self.answered(None)? {
                see(self.links[number].body());
                latencies.extend(self.links[number].take().map(|due| due.elapsed()));
                if go_on(self.sent - before) {
                    self.send(number, Instant::now())?;
                } else {
                    asked -= 1;
                }
            }
        }
        Ok(Done::of(latencies, started.elapsed()))
    }

    /// Open loop: requests are due at a fixed rate, whatever the server does.
    pub fn at_rate(&mut self, per_second: u32, length: Duration) -> io::Result<Done> {
        let started = Instant::now();
        let interval = Duration::from_secs(1) / per_second;
        let count = u32::try_from(length.as_nanos() / interval.as_nanos()).expect("minutes at most");
        let mut latencies = Vec::with_capacity(count as usize);
        let mut idle: Vec<usize> = (0..self.links.len()).collect();
        let mut sent = 0;
        while latencies.len() < count as usize {
            let due = started + interval * sent;
            if sent < count
                && due <= Instant::now()
                && let Some(number) = idle.pop()
            {
                self.send(number, due)?;
                sent += 1;
                continue;
            }
            // It never sleeps: a timer would be late, and it has its own core.
            for number in self.answered(Some(Duration::ZERO))? {
                latencies.extend(self.links[number].take().map(|due| due.elapsed()));
                idle.push(number);
            }
        }
        Ok(Done::of(latencies, started.elapsed()))
    }

    /// Sends the next review on a connection that is free.
    fn send(&mut self, number: usize, due: Instant) -> io::Result<()> {
        let request = &self.requests[self.sent % self.requests.len()];
        self.sent += 1;
        self.links[number].send(request, due)
    }

    /// The connections whose answer has come, after waiting for one at most so long.
    fn answered(&mut self, patience: Option<Duration>) -> io::Result<Vec<usize>> {
        self.poll.poll(&mut self.events, patience)?;
        for event in &self.events {
            let number = event.token().0;
            let link = &mut self.links[number];
            if link.due.is_some() && link.proceed()? {
                self.answered.push(number);
            }
        }
        Ok(mem::take(&mut self.answered))
    }
}

impl Done {
    /// What came of loops of this length.
    pub fn of(mut latencies: Vec<Duration>, elapsed: Duration) -> Self {
        latencies.sort_unstable();
        Self { answers: u32::try_from(latencies.len()).expect("minutes at most"), elapsed, latencies }
    }

    /// Answers a second.
    pub fn rate(&self) -> f64 {
        f64::from(self.answers) / self.elapsed.as_secs_f64()
    }

    /// The latency that so many of a thousand answers did not exceed, in microseconds.
    pub fn latency(&self, per_mille: usize) -> f64 {
        let at = (self.latencies.len() * per_mille).div_ceil(1000).saturating_sub(1);
        self.latencies.get(at).map_or(0.0, |latency| latency.as_secs_f64() * 1e6)
    }
}
