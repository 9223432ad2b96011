//! The program: a Kubernetes admission webhook that injects OpenTelemetry auto-instrumentation
//! into annotated pods.
//!
//! The decisions are made in separate crates: `otel_webhook_api` (the Instrumentation resource),
//! `otel_webhook_inject` (the decision and its patch), `otel_webhook_review` (AdmissionReviews as
//! bytes) and `otel_webhook_managed_certs` (certificates that replicas share). This crate runs
//! them. Its modules, from the bottom up:
//!
//! - [`manifest`]: streams of YAML and JSON documents, read and written
//! - [`telemetry`]: log lines and metrics
//! - [`api_client`]: clients of the API server, with deadlines and bounded pages
//! - [`reduced`]: objects as lists and watches read them
//! - [`store`]: a snapshot of Instrumentations, namespaces and owners, fed by a watch or a directory
//! - [`admission`]: the response to an AdmissionReview, for each webhook
//! - [`tls`]: the serving certificate, from files, self-managed or self-signed
//! - [`server`]: the webhook port and the admin port: limits, health, metrics, shutdown
//! - [`subject`], [`registration`]: names of objects, and the webhook configurations
//! - [`page`]: the status page, as HTML
//! - [`controller`]: the states of running pods, told to the cluster
//! - [`cli`]: the command line, with one file for each subcommand
//!
//! A module uses only modules above it in this list; `tests/integration/modules.rs` has the exact
//! table.

pub mod admission;
pub mod api_client;
pub mod cli;
pub mod controller;
pub mod manifest;
pub mod page;
pub mod reduced;
pub mod registration;
pub mod scope;
pub mod served;
pub mod server;
pub mod store;
pub mod subject;
pub mod telemetry;
pub mod tls;
pub mod unread;
