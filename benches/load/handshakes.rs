//! Connecting again and again, from several threads.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use otel_webhook_testkit::load::{link, sender::Done, trust};
use rustls::ClientConfig;

/// Connections that are made at the same time.
const AT_ONCE: usize = 8;

/// Makes connections for a time; each is closed once its handshake is done.
pub fn run(address: SocketAddr, resume: bool, length: Duration) -> io::Result<Done> {
    let (started, over) = (Instant::now(), AtomicBool::new(false));
    let connect = |config: &Arc<ClientConfig>| -> io::Result<Vec<Duration>> {
        let mut latencies = Vec::new();
        while !over.load(Ordering::Relaxed) {
            let begun = Instant::now();
            let (mut socket, mut tls) = link::handshake(address, config)?;
            latencies.push(begun.elapsed());
            if resume {
                // The server's tickets follow the handshake.
                tls.read_tls(&mut socket)?;
                tls.process_new_packets().map_err(io::Error::other)?;
            }
        }
        Ok(latencies)
    };
    let latencies = thread::scope(|scope| {
        let working: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                let config = trust::client_config(resume);
                let connect = &connect;
                scope.spawn(move || connect(&config))
            })
            .collect();
        thread::sleep(length);
        over.store(true, Ordering::Relaxed);
        let each = working.into_iter().map(|one| one.join().expect("no panic"));
        each.collect::<io::Result<Vec<_>>>()
    })?;
    Ok(Done::of(latencies.concat(), started.elapsed()))
}
