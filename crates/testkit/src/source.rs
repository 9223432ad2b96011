//! A store of metrics, which the controller asks for the instances of pods.

use std::{
    io::{self, BufRead, BufReader, BufWriter, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    thread,
};

use serde_json::json;

/// What it does with a connection. What is returned is ignored, since the controller may end it.
pub type Source = Box<dyn Fn(&mut TcpStream) -> io::Result<()> + Send>;

/// The begin of a response.
pub const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";

/// Starts one. Returns its address.
pub fn start(responds: Source) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for mut stream in listener.incoming().filter_map(Result::ok) {
            // A response that comes before its request is an error.
            let head = BufReader::new(&stream).lines().map_while(Result::ok);
            let _ = head.take_while(|line| !line.is_empty()).count();
            let _ = responds(&mut stream);
            let _ = stream.shutdown(Shutdown::Write);
            // What has not been read when it is closed would be an error for the controller.
            let _ = io::copy(&mut stream, &mut io::sink());
        }
    });
    address
}

/// Responds to a query with series, one for each of these instances.
///
/// # Errors
/// If the controller does not read them.
pub fn series(stream: &mut TcpStream, instances: impl Iterator<Item = String>) -> io::Result<()> {
    let mut stream = BufWriter::new(stream);
    stream.write_all(HEAD)?;
    write!(stream, r#"{{"status":"success","data":{{"resultType":"vector","result":["#)?;
    for (number, instance) in instances.enumerate() {
        let comma = if number == 0 { "" } else { "," };
        let series = json!({"metric": {"instance": instance}, "value": [1, "1"]});
        write!(stream, "{comma}{series}")?;
    }
    stream.write_all(b"]}}")?;
    stream.flush()
}
