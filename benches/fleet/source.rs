//! A store of metrics that answers each query with the instances of pods.

use std::{
    io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    thread,
};

/// Starts one that has these instances, and with each answer as many that it never has again.
pub fn start(instances: Vec<String>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            // The controller may end a connection.
            let _ = stream.and_then(|stream| answer(&stream, &instances, number));
        }
    });
    address
}

fn answer(mut stream: &TcpStream, instances: &[String], number: usize) -> io::Result<()> {
    // A response that comes before its request is an error.
    let head = BufReader::new(stream).lines().map_while(Result::ok);
    let _ = head.take_while(|line| !line.is_empty()).count();
    let mut response = BufWriter::new(stream);
    response.write_all(
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"status\":\"success\",\"data\":{\"result\":[",
    )?;
    for (index, instance) in instances.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let series = |instance: &str| format!(r#"{{"metric":{{"instance":"{instance}"}},"value":[1,"1"]}}"#);
        let churning = series(&format!("{instance}-{number}"));
        write!(response, "{comma}{},{churning}", series(instance))?;
    }
    response.write_all(b"]}}")?;
    response.flush()?;
    stream.shutdown(Shutdown::Write)?;
    stream.read_to_end(&mut Vec::new()).map(drop)
}
