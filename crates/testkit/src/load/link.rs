//! One connection to a server: TLS 1.3 and HTTP/1.1, as the API server speaks
//! to a webhook, with one request at a time.

use std::{
    io::{self, Read, Write},
    net::SocketAddr,
    sync::Arc,
    time::Instant,
};

use mio::{Interest, Registry, Token, net::TcpStream};
use rustls::{ClientConfig, ClientConnection, pki_types::ServerName};

/// A connection that is kept.
pub struct Link {
    socket: TcpStream,
    tls: ClientConnection,
    received: Vec<u8>,
    /// Since when an answer is due; none while nothing is asked.
    pub due: Option<Instant>,
}

impl Link {
    /// Connects, and waits for the end of the handshake.
    pub fn connect(address: SocketAddr, config: &Arc<ClientConfig>) -> io::Result<Self> {
        let (socket, tls) = handshake(address, config)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket: TcpStream::from_std(socket), tls, received: Vec::new(), due: None })
    }

    /// Has readiness told under a number.
    pub fn register(&mut self, registry: &Registry, number: usize) -> io::Result<()> {
        registry.register(&mut self.socket, Token(number), Interest::READABLE | Interest::WRITABLE)
    }

    /// Sends a request whose answer is due since some moment.
    pub fn send(&mut self, request: &[u8], due: Instant) -> io::Result<()> {
        self.due = Some(due);
        self.tls.writer().write_all(request)?;
        self.flush()
    }

    /// Goes on where the socket was full or empty. True when the answer is whole.
    pub fn proceed(&mut self) -> io::Result<bool> {
        self.flush()?;
        loop {
            match self.tls.read_tls(&mut self.socket) {
                Ok(0) => return Err(io::Error::other("the server closed the connection")),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
            self.tls.process_new_packets().map_err(io::Error::other)?;
            match self.tls.reader().read_to_end(&mut self.received) {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
        Ok(self.due.is_some() && is_whole(&self.received)?)
    }

    /// Takes the answer, so that the next request can be sent. Gives since when it was due.
    pub fn take(&mut self) -> Option<Instant> {
        self.received.clear();
        self.due.take()
    }

    /// The body of an answer that is whole.
    pub fn body(&self) -> &[u8] {
        let head = find_end_of_head(&self.received).unwrap_or_default();
        &self.received[head..]
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A connection on which the handshake is done.
pub fn handshake(
    address: SocketAddr,
    config: &Arc<ClientConfig>,
) -> io::Result<(std::net::TcpStream, ClientConnection)> {
    let mut socket = std::net::TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    let name = ServerName::try_from("localhost").expect("a name");
    let mut tls = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
    tls.set_buffer_limit(None);
    while tls.is_handshaking() {
        tls.complete_io(&mut socket)?;
    }
    Ok((socket, tls))
}

fn find_end_of_head(received: &[u8]) -> Option<usize> {
    received.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

/// Whether an answer is there with all of its body; anything but 200 is an error.
fn is_whole(received: &[u8]) -> io::Result<bool> {
    let Some(end) = find_end_of_head(received) else { return Ok(false) };
    let head = str::from_utf8(&received[..end]).map_err(io::Error::other)?;
    if !head.starts_with("HTTP/1.1 200 ") {
        return Err(io::Error::other(String::from_utf8_lossy(received).into_owned()));
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let length = length.ok_or_else(|| io::Error::other("an answer without a length"))?;
    Ok(received.len() >= end + length)
}

/// The request of a review, as the API server words it.
pub fn request(body: &[u8]) -> Vec<u8> {
    let mut request = format!(
        "POST /mutate-v1-pod?timeout=5s HTTP/1.1\r\nHost: otel-webhook.otel-webhook.svc:443\r\n\
         User-Agent: kube-apiserver-admission\r\nContent-Length: {}\r\nAccept: application/json, */*\r\n\
         Content-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend(body);
    request
}
