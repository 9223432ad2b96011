//! One connection.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::net::TcpStream;
use tokio::time;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::debug;

use super::shutdown::Phases;
use crate::telemetry::Metrics;

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection may be idle, and how long the headers of a request may take.
///
/// hyper has one timer for both. It has to be longer than the API server keeps an idle connection (90 s): if the
/// server closed it first, a review that is sent at this moment would fail, since Go does not retry a POST, and with
/// `failurePolicy: Ignore` the pod would not be injected. See docs/adr/0008-http-1-and-long-idle-timeouts.md.
const HEAD_TIMEOUT: Duration = Duration::from_secs(120);

/// The transport below HTTP.
#[derive(Clone)]
pub enum Transport {
    /// Plain TCP, for probes and scrapes.
    Plain,
    /// TLS.
    Tls {
        /// The result of [`crate::tls::server_config`].
        config: Arc<ServerConfig>,
        /// Counts failed handshakes.
        metrics: Arc<Metrics>,
    },
}

/// Serves one connection until it ends, or until the shutdown stops it.
pub async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    transport: Transport,
    router: Router,
    phases: Phases,
) {
    // Responses are single small writes, which Nagle's algorithm would only delay.
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%peer, %error, "cannot set TCP_NODELAY");
    }
    match transport {
        Transport::Plain => serve_http(TokioIo::new(stream), peer, router, phases).await,
        Transport::Tls { config, metrics } => match handshake(stream, config).await {
            Ok(stream) => serve_http(TokioIo::new(stream), peer, router, phases).await,
            Err(error) => {
                metrics.count_tls_handshake_failure();
                // Only at debug: TCP probes and port scans fail in the same way.
                debug!(%peer, %error, "the TLS handshake failed");
            }
        },
    }
}

async fn handshake(stream: TcpStream, config: Arc<ServerConfig>) -> std::io::Result<TlsStream<TcpStream>> {
    time::timeout(HANDSHAKE_TIMEOUT, TlsAcceptor::from(config).accept(stream)).await?
}

async fn serve_http<I>(io: I, peer: SocketAddr, router: Router, mut phases: Phases)
where
    I: Read + Write + Unpin + 'static,
{
    let service = service(router, phases.clone());
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(io, service)
    );
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = phases.stopping() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        debug!(%peer, %error, "the connection failed");
    }
}

/// Returns the router. While draining, it also asks clients to reconnect.
///
/// API servers keep connections after the removal of the endpoint, and would otherwise use them until the process
/// ends.
fn service(
    router: Router,
    phases: Phases,
) -> impl Service<hyper::Request<Incoming>, Response = Response, Error = Infallible, Future: Send> {
    let router = TowerToHyperService::new(router);
    service_fn(move |request| {
        let answer = router.call(request);
        let phases = phases.clone();
        async move {
            let mut response = answer.await?;
            if phases.is_draining() {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            Ok(response)
        }
    })
}
