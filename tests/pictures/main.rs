//! The pictures of the docs that need a cluster. `make docs-pictures` makes them.

#[path = "../e2e"]
#[allow(dead_code, reason = "shared with the end-to-end tests")]
mod e2e {
    pub mod admin;
    pub mod cluster;
    pub mod controller;
    pub mod registration;
    pub mod webhook;
}
mod dashboard;
mod recordings;

use e2e::{admin, cluster, controller, registration, webhook};

use std::path::Path;

use cluster::Cluster;

fn main() {
    let cluster = Cluster::with_node(&[]);
    recordings::make(&cluster);
    dashboard::make(&cluster);
}

/// Writes a picture.
fn write(name: &str, svg: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images");
    std::fs::write(folder.join(name), svg).expect("the picture can be written");
    println!("docs/images/{name}");
}
