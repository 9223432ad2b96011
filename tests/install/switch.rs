//! Stands for the Service of a Deployment: one address, behind which another pod is put.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering::SeqCst};
use std::thread;

/// Forwards new connections to the present pod, until it is dropped. Those that are open stay with their pod, as with a
/// Service.
pub struct Switch {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    to: AtomicU16,
    ended: AtomicBool,
}

impl Switch {
    /// Forwards to a port of loopback.
    pub fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound port");
        let shared = Arc::new(Shared { to: AtomicU16::new(to), ended: AtomicBool::new(false) });
        let own = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if own.ended.load(SeqCst) {
                    return;
                }
                // A pod that is away closes the connection: the case counts what that costs.
                let _ = forward(client, own.to.load(SeqCst));
            }
        });
        Self { address, shared }
    }

    /// What the chart registers in place of the Service.
    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.address.port())
    }

    /// Sends new connections to another port.
    pub fn to(&self, port: u16) {
        self.shared.to.store(port, SeqCst);
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.shared.ended.store(true, SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

fn forward(client: TcpStream, port: u16) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", port))?;
    for (mut from, mut to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
        thread::spawn(move || {
            // One that is reset has ended as well.
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        });
    }
    Ok(())
}
