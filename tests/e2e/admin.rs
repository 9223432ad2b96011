//! The admin port of a program under test.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// What it answers at a path: whether that is a good answer, and its body.
pub fn get(port: u16, path: &str) -> Option<(bool, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.starts_with("HTTP/1.1 200 "), body.to_owned()))
}
