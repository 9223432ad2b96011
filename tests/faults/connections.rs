//! Connections that send slowly, in pieces, or nothing.

use std::{
    io::{self, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use otel_webhook_testkit::load::{link, trust};
use rustls::StreamOwned;
use socket2::{Domain, Socket, Type};

const HEAD: &str =
    "POST /mutate-v1-pod?timeout=10s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";

/// Opens connections with a body that is never finished; gives them, to be kept open.
pub fn unfinished(webhook: SocketAddr, count: usize, sent: usize) -> Vec<Box<dyn Write + Send>> {
    let config = trust::client_config(false);
    let part = vec![b' '; sent];
    let open = |_| -> io::Result<Box<dyn Write + Send>> {
        let (socket, tls) = link::handshake(webhook, &config)?;
        socket.set_write_timeout(Some(Duration::from_secs(2)))?;
        let mut stream = StreamOwned::new(tls, socket);
        write!(stream, "{HEAD}Content-Length: {}\r\n\r\n", 4 * sent)?;
        // The server may stop reading: then there is nothing more to send.
        let _ = stream.write_all(&part);
        Ok(Box::new(stream))
    };
    (0..count).filter_map(|number| open(number).ok()).collect()
}

/// Sends bodies by single bytes, each in its own record, until it is told to stop.
pub fn by_single_bytes(webhook: SocketAddr, count: usize, stop: &AtomicBool) -> usize {
    let mut streams = unfinished(webhook, count, 1024);
    let mut bytes = 0;
    while !stop.load(Ordering::Relaxed) {
        streams.retain_mut(|stream| stream.write_all(b" ").and_then(|()| stream.flush()).is_ok());
        bytes += streams.len();
        thread::sleep(Duration::from_millis(20));
    }
    bytes
}

/// Sends a body of chunks of one byte. Gives how many were taken.
pub fn one_byte_chunks(webhook: SocketAddr, count: usize) -> io::Result<usize> {
    let (socket, tls) = link::handshake(webhook, &trust::client_config(false))?;
    socket.set_write_timeout(Some(Duration::from_secs(10)))?;
    let mut stream = StreamOwned::new(tls, socket);
    write!(stream, "{HEAD}Transfer-Encoding: chunked\r\n\r\n")?;
    let many = b"1\r\n \r\n".repeat(1000);
    for thousand in 0..count / 1000 {
        if stream.write_all(&many).and_then(|()| stream.flush()).is_err() {
            return Ok(thousand * 1000);
        }
    }
    Ok(count)
}

/// Opens connections that send nothing, from one address or from 200 of them.
pub fn idle(server: SocketAddr, count: usize, sources: u8) -> Vec<TcpStream> {
    let next = AtomicUsize::new(0);
    let open = || -> io::Result<TcpStream> {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let last = u8::try_from(number % usize::from(sources)).expect("a number below 200") + 1;
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 1, last), 0)).into())?;
        socket.connect_timeout(&server.into(), Duration::from_secs(2))?;
        Ok(socket.into())
    };
    (0..count).map_while(|_| open().ok()).collect()
}
