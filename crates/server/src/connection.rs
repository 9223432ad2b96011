//! One connection.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use http_body_util::BodyExt;
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

use super::connections::{Connection, InRequest};
use super::shutdown::Phases;
use otel_webhook_telemetry::Metrics;

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection may be idle, and how long the headers of a request may take.
///
/// hyper has one timer for both. It has to be longer than the API server keeps an idle connection (90 s): if the
/// server closed it first, a review that is sent at this moment would fail, since Go does not retry a POST, and with
/// `failurePolicy: Ignore` the pod would not be injected. See docs/adr/0008-http-1-and-long-idle-timeouts.md.
const HEAD_TIMEOUT: Duration = Duration::from_secs(120);

/// The size of a connection's buffers. hyper's own limit is 400 KiB, which some thousands of connections must not have.
/// Bodies are copied out of them, and TLS delivers 16 KiB at a time.
const BUFFER: usize = 16 * 1024;

/// How long a connection may take to end in an orderly way when it is closed for another.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

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

/// Serves one connection until it ends, a limit closes it, or the shutdown stops it.
pub async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    transport: Transport,
    router: Router,
    phases: Phases,
    connection: Connection,
) {
    let connection = Arc::new(connection);
    // Responses are single small writes, which Nagle's algorithm would only delay.
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%peer, %error, "cannot set TCP_NODELAY");
    }
    match transport {
        Transport::Plain => serve_http(TokioIo::new(stream), peer, router, phases, connection).await,
        Transport::Tls { config, metrics } => match handshake(stream, config, &connection).await {
            Ok(stream) => serve_http(TokioIo::new(stream), peer, router, phases, connection).await,
            Err(error) => {
                metrics.count_tls_handshake_failure();
                // Only at debug: TCP probes and port scans fail in the same way.
                debug!(%peer, %error, "the TLS handshake failed");
            }
        },
    }
}

async fn handshake(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    connection: &Connection,
) -> std::io::Result<TlsStream<TcpStream>> {
    tokio::select! {
        result = time::timeout(HANDSHAKE_TIMEOUT, TlsAcceptor::from(config).accept(stream)) => result?,
        () = connection.closing() => Err(std::io::Error::other("closed for a newer connection")),
    }
}

async fn serve_http<I>(
    io: I,
    peer: SocketAddr,
    router: Router,
    mut phases: Phases,
    connection: Arc<Connection>,
) where
    I: Read + Write + Unpin + 'static,
{
    let service = service(router, phases.clone(), Arc::clone(&connection));
    let mut serving = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(BUFFER)
            .serve_connection(io, service)
    );
    let result = tokio::select! {
        result = serving.as_mut() => result,
        () = phases.stopping() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
        () = connection.closing() => {
            serving.as_mut().graceful_shutdown();
            time::timeout(CLOSE_TIMEOUT, serving).await.unwrap_or(Ok(()))
        }
        () = connection.overdue() => Ok(()),
    };
    if let Err(error) = result {
        debug!(%peer, %error, "the connection failed");
    }
}

/// Returns the router, which marks the connection as busy. While draining, it also asks clients to reconnect.
///
/// API servers keep connections after the removal of the endpoint, and would otherwise use them until the process
/// ends.
fn service(
    router: Router,
    phases: Phases,
    connection: Arc<Connection>,
) -> impl Service<hyper::Request<Incoming>, Response = Response, Error = Infallible, Future: Send> {
    let router = TowerToHyperService::new(router);
    service_fn(move |request| {
        let in_request = connection.request();
        let answer = router.call(request);
        let phases = phases.clone();
        async move {
            let mut response = answer.await?;
            if response.status().is_success() {
                in_request.succeeded();
            }
            if phases.is_draining() {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            Ok(response.map(|body| until_written(body, in_request)))
        }
    })
}

/// Keeps the connection busy until the response is written. hyper drops a body when it has its last bytes, and the bytes
/// when they are written.
fn until_written(body: Body, in_request: Arc<InRequest>) -> Body {
    Body::new(body.map_frame(move |frame| {
        frame.map_data(|data| Bytes::from_owner(Written { data, _in_request: Arc::clone(&in_request) }))
    }))
}

/// Bytes of a response.
struct Written {
    data: Bytes,
    _in_request: Arc<InRequest>,
}

impl AsRef<[u8]> for Written {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}
