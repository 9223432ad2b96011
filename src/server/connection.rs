//! One connection, from its handshake to its end.

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

/// How long a connection may be without the head of a request, be it silent or slow.
///
/// hyper has one timer for both. It has to be longer than the API server keeps an idle connection
/// (90 s): should this side end it first, a review that is just then sent on it fails, since Go
/// does not send a POST twice, and with `failurePolicy: Ignore` the pod silently stays as it is.
const HEAD_TIMEOUT: Duration = Duration::from_secs(120);

/// What is under HTTP.
#[derive(Clone)]
pub enum Transport {
    /// Nothing: for probes and scrapes.
    Plain,
    /// TLS.
    Tls {
        /// As [`crate::tls::server_config`] makes it.
        config: Arc<ServerConfig>,
        /// Counts handshakes that fail.
        metrics: Arc<Metrics>,
    },
}

/// Serves one connection until it ends, or `phases` say that it has to.
pub async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    transport: Transport,
    router: Router,
    phases: Phases,
) {
    // Answers are single small writes: waiting for more to send would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%peer, %error, "TCP_NODELAY cannot be set");
    }
    match transport {
        Transport::Plain => serve_http(TokioIo::new(stream), peer, router, phases).await,
        Transport::Tls { config, metrics } => match handshake(stream, config).await {
            Ok(stream) => serve_http(TokioIo::new(stream), peer, router, phases).await,
            Err(error) => {
                metrics.count_tls_handshake_failure();
                // Not louder: a TCP probe or a port scan looks just like this.
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

/// The router; while draining, it also asks clients to connect anew.
///
/// The API server's connections outlive the removal of the endpoint that they were made for, so that
/// without being asked it would use them until the very end.
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
