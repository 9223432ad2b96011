//! The listener, the TLS and the runtime of the product around another handler.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::Router;
use otel_webhook_server::{
    Listening, Shutdown, Transport,
    tls::{self, CurrentCertificate, SelfSigned},
};
use otel_webhook_telemetry::{LogFormat, Metrics, init_logging};

/// Answers until the process is ended.
pub fn serve(router: Router, pair: &SelfSigned) {
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(4));
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(threads).enable_all().build().expect("a runtime");
    let _logging = init_logging(LogFormat::Text, "info").expect("the first time");
    runtime.block_on(async {
        let metrics = Arc::new(Metrics::new());
        let serving = pair.serving().expect("a pair that can be served");
        let current = CurrentCertificate::new(serving, Arc::clone(&metrics));
        let config = tls::server_config(Arc::new(current)).expect("a configuration");
        let transport = Transport::Tls { config: Arc::new(config), metrics };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listening = Listening::bind("webhook", address).expect("a port");
        listening.serve(router, transport, Shutdown::new().phases(), Duration::ZERO).await;
    });
}
