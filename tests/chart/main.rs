//! What helm makes of the chart, without a cluster. `make chart` runs it.
//!
//! `values/` is a matrix: each file is rendered by helm 3 and helm 4, for the
//! oldest and the newest Kubernetes. The objects are checked against the
//! OpenAPI of those versions, and by their meaning.

mod alerts;
mod certs;
mod controller;
mod helm;
mod kustomize;
mod matrix;
mod meaning;
mod monitoring;
mod pods;
mod policy;
mod refused;
mod registration;
mod rendered;
mod restarts;
mod schemas;
mod subchart;
mod values;
