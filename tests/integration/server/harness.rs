//! A server under test, and a client that sees what curl would not show.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::CONTENT_TYPE;
use hyper::{HeaderMap, Request, StatusCode};
use hyper_util::rt::TokioIo;
use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_inject::Settings;
use otel_webhook_server::admission::Admission;
use otel_webhook_server::tls::{self, CurrentCertificate, DEFAULT_NAMES, SelfSigned};
use otel_webhook_server::{BodyLimits, Listening, Shutdown, Transport, webhook_router_within};
use otel_webhook_store::Writer;
use otel_webhook_telemetry::Metrics;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, HandshakeKind, RootCertStore, SupportedProtocolVersion};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Longer than anything here takes: what is awaited with it never comes when it runs out.
const DEADLINE: Duration = Duration::from_secs(30);

/// Awaits what has to happen.
pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future).await.expect("in time")
}

/// Asks again and again until the answer is yes.
pub async fn until<F: AsyncFnMut() -> bool>(mut condition: F) {
    soon(async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Sends these bytes without TLS; gives what comes until the connection ends, however it ends.
pub async fn send_plain(address: SocketAddr, bytes: &'static [u8]) -> String {
    let exchange = move || {
        let mut stream = std::net::TcpStream::connect(address).expect("a connection");
        stream.write_all(bytes).expect("bytes on their way");
        let mut received = Vec::new();
        drop(stream.read_to_end(&mut received));
        String::from_utf8_lossy(&received).into_owned()
    };
    soon(tokio::task::spawn_blocking(exchange)).await.expect("no panic")
}

pub struct Server {
    pub address: SocketAddr,
    pub shutdown: Shutdown,
    pub metrics: Arc<Metrics>,
    pub certificate: Arc<CurrentCertificate>,
    pub ca_pem: String,
    pub served: JoinHandle<()>,
}

impl Server {
    /// The webhook's own routes over TLS.
    pub fn webhook() -> Self {
        Self::webhook_within(BodyLimits::default())
    }

    /// The same with other bounds of bodies.
    pub fn webhook_within(limits: BodyLimits) -> Self {
        let metrics = Arc::new(Metrics::new());
        let router = webhook_router_within(Arc::new(admission(&metrics)), Arc::clone(&metrics), limits);
        Self::start(router, metrics, |listening| listening, DEADLINE)
    }

    /// Other routes over TLS.
    pub fn of(router: Router) -> Self {
        Self::start(router, Arc::default(), |listening| listening, DEADLINE)
    }

    pub fn start(
        router: Router,
        metrics: Arc<Metrics>,
        adjust: impl FnOnce(Listening) -> Listening,
        grace: Duration,
    ) -> Self {
        let pair = SelfSigned::generate(&DEFAULT_NAMES).expect("a pair");
        let serving = pair.serving().expect("a pair that can be served");
        let certificate = Arc::new(CurrentCertificate::new(serving, Arc::clone(&metrics)));
        let config = tls::server_config(Arc::clone(&certificate) as _).expect("a configuration");
        let transport = Transport::Tls { config: Arc::new(config), metrics: Arc::clone(&metrics) };
        let shutdown = Shutdown::new();
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listening = adjust(Listening::bind("tests", any).expect("a port"));
        let address = listening.address;
        let served = tokio::spawn(listening.serve(router, transport, shutdown.phases(), grace));
        Self { address, shutdown, metrics, certificate, ca_pem: pair.ca_pem, served }
    }

    /// A client that trusts the certificate of the start.
    pub async fn client(&self) -> Client {
        self.client_with(trusting(&self.ca_pem)).await.expect("a connection")
    }

    /// A connection for a request with a body of any kind.
    pub async fn sender(&self) -> SendRequest<Body> {
        let stream = soon(connect(self.address, Arc::new(trusting(&self.ca_pem)))).await;
        let stream = TokioIo::new(stream.expect("a connection"));
        let (sender, connection) = http1::handshake(stream).await.expect("HTTP");
        tokio::spawn(connection);
        sender
    }

    /// The value of a counter with its labels, as in `name_total{a="b"}`.
    pub fn count(&self, name: &str) -> u64 {
        count(&self.metrics.encode(), name)
    }

    pub async fn client_with(&self, config: ClientConfig) -> std::io::Result<Client> {
        soon(Client::connect(self.address, Arc::new(config))).await
    }
}

/// The value of a metric with its labels in such a text.
pub fn count(metrics: &str, name: &str) -> u64 {
    let found = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("{name} is not in\n{metrics}")).parse().expect("a number")
}

async fn connect(address: SocketAddr, config: Arc<ClientConfig>) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").expect("a name");
    TlsConnector::from(config).connect(name, stream).await
}

/// The API server's way to connect: TLS 1.2 or 1.3, HTTP/1.1 offered.
pub fn trusting(ca_pem: &str) -> ClientConfig {
    trusting_by(ca_pem, rustls::DEFAULT_VERSIONS)
}

/// The same with these versions of TLS alone.
pub fn trusting_by(ca_pem: &str, versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_slice(ca_pem.as_bytes()).expect("a certificate");
    roots.add(ca).expect("a CA");
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(versions)
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}

/// One connection.
pub struct Client {
    sender: SendRequest<Full<Bytes>>,
    /// The leaf that the server showed.
    pub leaf: CertificateDer<'static>,
    pub alpn: Option<Vec<u8>>,
    pub handshake: HandshakeKind,
    /// Ends with the connection.
    pub connection: JoinHandle<hyper::Result<()>>,
}

pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Client {
    pub async fn connect(address: SocketAddr, config: Arc<ClientConfig>) -> std::io::Result<Self> {
        let stream = connect(address, config).await?;
        let (_, session) = stream.get_ref();
        let leaf = session.peer_certificates().expect("certificates")[0].clone().into_owned();
        let alpn = session.alpn_protocol().map(<[u8]>::to_vec);
        let handshake = session.handshake_kind().expect("a finished handshake");
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
        Ok(Self { sender, leaf, alpn, handshake, connection: tokio::spawn(connection) })
    }

    pub async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Answer> {
        soon(async {
            self.sender.ready().await?;
            let response = self.sender.send_request(request).await?;
            let (head, body) = response.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok(Answer {
                status: head.status,
                headers: head.headers,
                text: String::from_utf8(body.to_vec()).expect("text"),
            })
        })
        .await
    }

    pub async fn get(&mut self, path: &str) -> hyper::Result<Answer> {
        self.send(Request::get(path).body(Full::default()).expect("a request")).await
    }

    /// Posts `body` as the API server would.
    pub async fn review(&mut self, body: impl Into<Bytes>) -> hyper::Result<Answer> {
        let request = Request::post("/mutate-v1-pod?timeout=5s")
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body.into()))
            .expect("a request");
        self.send(request).await
    }
}

/// A route that says when a request has come, and answers when it is told to.
#[derive(Clone, Default)]
pub struct Hold {
    pub entered: Arc<Notify>,
    pub released: Arc<Notify>,
}

impl Hold {
    pub fn router(&self) -> Router {
        let hold = self.clone();
        let handler = move || {
            let hold = hold.clone();
            async move {
                hold.entered.notify_one();
                hold.released.notified().await;
                "answered"
            }
        };
        Router::new().route("/hold", get(handler)).route("/", get(async || "fine"))
    }
}

/// Answers reviews by a store that knows nothing.
fn admission(metrics: &Arc<Metrics>) -> Admission {
    let store = Writer::new(DefaultImages::default()).store();
    Admission::new(store, Settings::default(), None, Arc::clone(metrics))
}
