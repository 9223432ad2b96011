//! The picture of the Grafana dashboard in the docs: real metrics, real queries, no Grafana. `make docs-pictures` runs it.
//!
//! ```text
//! pods ──> API server <──> webhook, controller ──metrics──> series ──> Prometheus' engine ──> panels as SVG
//!                                                    queries of dashboard.json ──┘
//! ```

#[path = "../e2e"]
#[allow(dead_code, reason = "shared with the end-to-end tests")]
mod e2e {
    pub mod admin;
    pub mod cluster;
    pub mod controller;
    pub mod registration;
    pub mod webhook;
}
mod drawn;
mod life;
mod panels;
mod series;

use e2e::{admin, cluster, controller, registration, webhook};

use std::path::Path;

use cluster::Cluster;
use controller::Controller;
use series::Series;

/// The file that is written.
const PICTURE: &str = "docs/images/dashboard.svg";

fn main() {
    let cluster = Cluster::with_node(&[]);
    let controller = Controller::with_restarts(&cluster);
    controller.start();
    let mut series = Series::default();
    life::live(&cluster, || series.scrape(&cluster, &controller));
    controller.stop();
    let panels = panels::evaluated(&series);
    let picture = drawn::picture(&panels, series.seconds());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PICTURE);
    std::fs::write(&path, picture).expect("the picture can be written");
    println!("{PICTURE}: {} panels of {} seconds", panels.len(), series.seconds());
}
