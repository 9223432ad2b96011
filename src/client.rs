//! A client that calls a webhook like an API server: one persistent HTTP/1.1 connection over TLS.
//!
//! Accepts every certificate. The caller verifies it before sending anything, so that it can report why the
//! certificate is not trusted.

use std::{fmt, io, net::SocketAddr, sync::Arc};

use http_body_util::{BodyExt, Full};
use hyper::{Request, body::Bytes, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    sign::SingleCertAndKey,
};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use otel_webhook_managed_certs::{certificate::ServingCertificate, library};

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// A DNS name, or an IP address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// Why there is no connection.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The TCP connection failed.
    #[error("cannot connect to {target}: {source}")]
    Unreachable {
        /// The server.
        target: Target,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The TLS handshake failed.
    #[error("the TLS handshake with {target} failed: {source}")]
    Handshake {
        /// The server.
        target: Target,
        /// The error of TLS.
        source: io::Error,
    },
    /// The server does not support HTTP/1.1.
    #[error("{target} does not support HTTP/1.1: {source}")]
    Protocol {
        /// The server.
        target: Target,
        /// The error of HTTP.
        source: hyper::Error,
    },
}

/// An open connection.
pub struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    target: Target,
    /// The address of the server.
    pub address: SocketAddr,
    /// The certificate chain of the server, the leaf first.
    pub chain: Vec<CertificateDer<'static>>,
}

/// A response.
#[derive(Debug)]
pub struct HttpResponse {
    /// The status.
    pub status: hyper::StatusCode,
    /// The body.
    pub text: String,
}

impl Connection {
    /// Connects without sending anything. The certificate is not verified.
    ///
    /// # Errors
    /// If the connection or the TLS handshake fails.
    pub async fn open(target: &Target) -> Result<Self, ConnectError> {
        Self::open_as(target, None).await
    }

    /// Connects as [`Connection::open`] does, and shows this certificate if the server asks for one.
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub async fn open_as(target: &Target, client: Option<ServingCertificate>) -> Result<Self, ConnectError> {
        let unreachable = |source| ConnectError::Unreachable { target: target.clone(), source };
        let handshake = |source| ConnectError::Handshake { target: target.clone(), source };
        let stream = TcpStream::connect((&*target.host, target.port)).await.map_err(unreachable)?;
        let address = stream.peer_addr().map_err(unreachable)?;
        let name = ServerName::try_from(target.host.clone())
            .map_err(|error| handshake(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
        let stream =
            TlsConnector::from(Arc::new(config(client))).connect(name, stream).await.map_err(handshake)?;
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let chain = chain.iter().map(|certificate| certificate.clone().into_owned()).collect();
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|source| ConnectError::Protocol { target: target.clone(), source })?;
        tokio::spawn(connection);
        Ok(Self { sender, target: target.clone(), address, chain })
    }

    /// Posts JSON, and returns the response of any status.
    ///
    /// # Errors
    /// If there is no response.
    pub async fn post(&mut self, path: &str, body: impl Into<Bytes>) -> hyper::Result<HttpResponse> {
        let request = Request::post(path)
            .header(header::HOST, self.target.to_string())
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::from(body.into()))
            .expect("a path and two headers make a request");
        self.sender.ready().await?;
        let (head, body) = self.sender.send_request(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(HttpResponse { status: head.status, text: String::from_utf8_lossy(&body).into_owned() })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

fn config(client: Option<ServingCertificate>) -> ClientConfig {
    let provider = Arc::new(library::default_provider());
    let verifier = Arc::new(TakesAll(Arc::clone(&provider)));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the library speaks TLS 1.2 and 1.3")
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    if let Some(client) = client {
        config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(client.into_key()));
    }
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}

/// Accepts every certificate, if the server has its key.
#[derive(Debug)]
struct TakesAll(Arc<CryptoProvider>);

impl ServerCertVerifier for TakesAll {
    fn verify_server_cert(
        &self,
        _leaf: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, leaf, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, leaf, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
