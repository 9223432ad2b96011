//! The admin port of a program under test.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    str::FromStr,
    time::Duration,
};

/// Longer than a program that runs takes.
const LIMIT: Duration = Duration::from_secs(5);

/// Requests a path on a new connection. Returns whether the status is 200, and the body.
pub fn get(address: SocketAddr, path: &str) -> Option<(bool, String)> {
    get_within(LIMIT, address, path)
}

/// Sends JSON on a new connection. Returns the same.
pub fn post(address: SocketAddr, path: &str, json: &str) -> Option<(bool, String)> {
    let length = json.len();
    let head =
        format!("POST {path} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n");
    request(LIMIT, address, &head, json)
}

/// The same as [`get`], where the program has to respond within a time.
pub fn get_within(limit: Duration, address: SocketAddr, path: &str) -> Option<(bool, String)> {
    request(limit, address, &format!("GET {path} HTTP/1.1\r\n"), "")
}

fn request(limit: Duration, address: SocketAddr, head: &str, body: &str) -> Option<(bool, String)> {
    let mut stream = TcpStream::connect_timeout(&address, limit).ok()?;
    stream.set_read_timeout(Some(limit)).ok()?;
    write!(stream, "{head}Host: localhost\r\nConnection: close\r\n\r\n{body}").ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    let (head, body) = response.split_once("\r\n\r\n")?;
    Some((head.starts_with("HTTP/1.1 200 "), body.to_owned()))
}

/// The body of a response with status 200.
pub fn body(address: SocketAddr, path: &str) -> Option<String> {
    get(address, path).and_then(|(is_ok, body)| is_ok.then_some(body))
}

/// The value of a metric, if there is one with exactly these labels.
pub fn metric<T: FromStr>(address: SocketAddr, name_and_labels: &str) -> Option<T> {
    value(&body(address, "/metrics")?, name_and_labels)
}

/// The same in the body of `/metrics`: numbers of one moment come from one body.
pub fn value<T: FromStr>(metrics: &str, name_and_labels: &str) -> Option<T> {
    let value = metrics.lines().find_map(|line| line.strip_prefix(name_and_labels)?.strip_prefix(' '))?;
    value.parse().ok()
}
