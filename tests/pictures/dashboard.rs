//! The Grafana dashboard: real metrics, real queries, no Grafana.
//!
//! ```text
//! pods ──> API server <──> webhook, controller ──metrics──> series ──> Prometheus' engine ──> panels as SVG
//!                                                    queries of dashboard.json ──┘
//! ```

mod drawn;
mod life;
mod panels;
mod series;

use crate::cluster::Cluster;
use crate::controller::Controller;
use series::Series;

pub fn make(cluster: &Cluster) {
    let controller = Controller::with_restarts(cluster);
    controller.start();
    let mut series = Series::default();
    life::live(cluster, || series.scrape(cluster, &controller));
    controller.stop();
    let panels = panels::evaluated(&series);
    crate::write("dashboard.svg", &drawn::picture(&panels, series.seconds()));
}
