//! Reviews that are as expensive as a user who may create pods can make them.

use std::net::SocketAddr;
use std::{io, io::Write, time::Duration};

use rustls::StreamOwned;
use serde_json::{Value, json};

use super::{good::answer, link, material, trust};

const PREFIX: &str = "instrumentation.opentelemetry.io/";
const LANGUAGES: [&str; 6] = ["java", "nodejs", "python", "dotnet", "sdk", "apache-httpd"];

/// A kind of expensive review, of a size from 1 (small) to 100 (whole).
pub type Hostile = (&'static str, fn(usize) -> Value);

/// All of them.
pub const ALL: [Hostile; 7] = [
    ("50,000 unknown names, 6 languages", |size| unknown_names(500 * size, 1)),
    ("50,000 unknown names, 6 languages, 300 containers", |size| unknown_names(500 * size, 3 * size)),
    ("6,500 attribute annotations, 100 containers", |size| attributes(65 * size, size)),
    ("30,000 resources of a container", |size| resources(300 * size)),
    ("45,000 containers, all named", |size| named(450 * size)),
    ("10,000 owners", |size| owners(100 * size)),
    ("2,400 containers", |size| named(24 * size)),
];

fn review(containers: usize, annotations: impl IntoIterator<Item = (String, Value)>) -> Value {
    let mut review = material::usual();
    let object = &mut review["request"]["object"];
    let container = |index: usize| json!({"name": format!("c{index}"), "image": "i"});
    object["spec"]["containers"] = (0..containers).map(container).collect();
    object["metadata"]["annotations"] = Value::Object(annotations.into_iter().collect());
    review
}

fn annotation(key: &str, value: impl Into<Value>) -> (String, Value) {
    (format!("{PREFIX}{key}"), value.into())
}

fn unknown_names(names: usize, containers: usize) -> Value {
    let list: Vec<String> = (0..names).map(|name| format!("{name:x}")).collect();
    let asks = LANGUAGES.map(|language| annotation(&format!("inject-{language}"), "true"));
    let lists = LANGUAGES.map(|language| annotation(&format!("{language}-container-names"), list.join(",")));
    let shared = [annotation("container-names", list.join(","))];
    review(containers, asks.into_iter().chain(lists).chain(shared))
}

fn attributes(annotations: usize, containers: usize) -> Value {
    let names: Vec<String> = (0..containers).map(|index| format!("c{index}")).collect();
    let ask = [annotation("inject-java", "true"), annotation("container-names", names.join(","))];
    let attribute = |index| (format!("resource.opentelemetry.io/a{index}"), json!(format!("value-{index}")));
    review(containers, ask.into_iter().chain((0..annotations).map(attribute)))
}

fn resources(resources: usize) -> Value {
    let mut review = review(1, [annotation("inject-java", "true")]);
    let amounts: Value = (0..resources).map(|index| (format!("example.com/r{index}"), json!("1"))).collect();
    review["request"]["object"]["spec"]["containers"][0]["resources"] =
        json!({"limits": amounts, "requests": amounts});
    review
}

fn named(containers: usize) -> Value {
    let names: Vec<String> = (0..containers).map(|index| format!("c{index}")).collect();
    review(containers, [annotation("inject-java", "true"), annotation("container-names", names.join(","))])
}

fn owners(owners: usize) -> Value {
    let mut review = review(1, [annotation("inject-java", "true")]);
    let owner = |index| json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("r{index}"), "uid": format!("u{index}")});
    review["request"]["object"]["metadata"]["ownerReferences"] = (0..owners).map(owner).collect();
    review
}

/// Sends a review on its own connection. Gives the answer.
pub fn send(webhook: SocketAddr, review: &Value) -> io::Result<String> {
    let (socket, tls) = link::handshake(webhook, &trust::client_config(false))?;
    socket.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut stream = StreamOwned::new(tls, socket);
    stream.write_all(&link::request(&serde_json::to_vec(review).expect("JSON")))?;
    stream.flush()?;
    answer(&mut stream)
}
