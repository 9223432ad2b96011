//! The status page in a real browser. `make page` runs it.
//!
//! ```text
//! reports (sample.rs) ──> otel_webhook_server::page ──> file or server ──> headless Chromium (browser.rs)
//! ```
//!
//! What the page says of a cluster is tested next to `page.rs` of `crates/server`; here is what takes a browser. It is
//! made by `tests/page/prepare`.

mod accessible;
mod browser;
mod filters;
mod hostile;
mod pictures;
mod sample;
mod shown;
