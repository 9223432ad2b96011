//! A TCP proxy, whose connections can be slow, frozen or cut, or go to another server.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// Forwards connections until it is dropped.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    mode: Mode,
    /// Where new connections go.
    to: u16,
    /// Both ends of every connection so far.
    sockets: Vec<TcpStream>,
    /// The number of the next connection.
    next: usize,
    /// Connections before this number stay open, and nothing is forwarded.
    frozen: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Each part of what the API server sends comes so much later.
    Open(Duration),
    /// New connections are frozen.
    Frozen,
    /// New connections are closed at once.
    Cut,
    Ended,
}

impl Proxy {
    /// Starts one in front of the API server of a kubeconfig. Returns a kubeconfig with the proxy.
    pub fn before(kubeconfig: &Path) -> (Self, PathBuf) {
        let mut config: Value = serde_json::from_slice(&fs::read(kubeconfig).expect("a file")).expect("JSON");
        let server = config["clusters"][0]["cluster"]["server"].as_str().expect("a URL");
        let port = server.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        let proxy = Self::start(port);
        config["clusters"][0]["cluster"]["server"] = format!("https://127.0.0.1:{}", proxy.port()).into();
        let path = kubeconfig.with_extension("proxied");
        fs::write(&path, config.to_string()).expect("the scratch folder is writable");
        (proxy, path)
    }

    /// Forwards to a port of loopback.
    pub fn start(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound port");
        let shared =
            Shared { mode: Mode::Open(Duration::ZERO), to: port, sockets: Vec::new(), next: 0, frozen: 0 };
        let shared = Arc::new(Mutex::new(shared));
        let own = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if locked(&own).mode == Mode::Ended {
                    return;
                }
                // The server may be unavailable: the client sees a closed connection.
                let _ = forward(&own, client);
            }
        });
        Self { address, shared }
    }

    /// The port for clients.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Sends new connections to another port. Open ones stay, as with a Service.
    pub fn to(&self, port: u16) {
        locked(&self.shared).to = port;
    }

    /// Closes all connections, and new ones at once.
    pub fn cut(&self) {
        self.end_all(Mode::Cut);
    }

    /// Forwards nothing, and leaves all connections open. They stay like this when new ones are forwarded again.
    pub fn freeze(&self) {
        let mut shared = locked(&self.shared);
        (shared.mode, shared.frozen) = (Mode::Frozen, shared.next);
    }

    /// Forwards new connections.
    pub fn open(&self) {
        self.slow(Duration::ZERO);
    }

    /// Delays each part of what the API server sends.
    pub fn slow(&self, delay: Duration) {
        locked(&self.shared).mode = Mode::Open(delay);
    }

    fn end_all(&self, mode: Mode) {
        let mut shared = locked(&self.shared);
        (shared.mode, shared.frozen) = (mode, 0);
        for socket in shared.sockets.drain(..) {
            // It may be closed already.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.end_all(Mode::Ended);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

fn forward(shared: &Arc<Mutex<Shared>>, client: TcpStream) -> io::Result<()> {
    let port = locked(shared).to;
    let server = TcpStream::connect(("127.0.0.1", port))?;
    let copies = [client.try_clone()?, server.try_clone()?];
    let [to_client, to_server] = copies;
    let sockets = [client.try_clone()?, server.try_clone()?];
    let number = {
        let mut shared = locked(shared);
        let number = shared.next;
        shared.next += 1;
        match shared.mode {
            Mode::Open(_) => {}
            Mode::Frozen => shared.frozen = shared.next,
            Mode::Cut | Mode::Ended => return Ok(()),
        }
        shared.sockets.extend(sockets);
        number
    };
    let [own, other] = [Arc::clone(shared), Arc::clone(shared)];
    thread::spawn(move || copy(server, to_client, || hold(&own, number, true)));
    thread::spawn(move || copy(client, to_server, || hold(&other, number, false)));
    Ok(())
}

/// Waits until a part of a connection may be forwarded.
fn hold(shared: &Mutex<Shared>, number: usize, is_delayed: bool) {
    while number < locked(shared).frozen {
        thread::sleep(Duration::from_millis(20));
    }
    let mode = locked(shared).mode;
    if let (Mode::Open(delay), true) = (mode, is_delayed) {
        thread::sleep(delay);
    }
}

/// Copies until either end is closed, and closes both.
fn copy(mut from: TcpStream, mut to: TcpStream, hold: impl Fn()) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        hold();
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    for socket in [from, to] {
        let _ = socket.shutdown(Shutdown::Both);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
