//! The API server's side of a webhook: one kept-alive HTTP/1.1 connection over TLS.
//!
//! Whatever certificate is shown is taken, and handed over to be judged before
//! anything is sent: whoever connects wants to say what is wrong with it.

use std::{fmt, io, net::SocketAddr, sync::Arc};

use http_body_util::{BodyExt, Full};
use hyper::{Request, body::Bytes, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// A name, or an IP address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// Why there is no connection.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// Nobody listens there, or nobody answers.
    #[error("cannot connect to {target}: {source}")]
    Unreachable {
        /// Where.
        target: Target,
        /// What the system says.
        source: io::Error,
    },
    /// The server speaks no TLS that can be understood.
    #[error("the TLS handshake with {target} failed: {source}")]
    Handshake {
        /// Where.
        target: Target,
        /// What TLS says.
        source: io::Error,
    },
    /// The server speaks no HTTP.
    #[error("{target} speaks no HTTP/1.1: {source}")]
    Protocol {
        /// Where.
        target: Target,
        /// What HTTP says.
        source: hyper::Error,
    },
}

/// An open connection.
pub struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    target: Target,
    /// The address that was connected to.
    pub address: SocketAddr,
    /// What the server showed, the leaf first.
    pub chain: Vec<CertificateDer<'static>>,
}

/// What came back.
#[derive(Debug)]
pub struct HttpResponse {
    /// The status.
    pub status: hyper::StatusCode,
    /// The body.
    pub text: String,
}

impl Connection {
    /// Connects, without sending anything. The certificate has not been judged.
    ///
    /// # Errors
    /// When nobody listens, or no TLS is spoken.
    pub async fn open(target: &Target) -> Result<Self, ConnectError> {
        let unreachable = |source| ConnectError::Unreachable { target: target.clone(), source };
        let handshake = |source| ConnectError::Handshake { target: target.clone(), source };
        let stream = TcpStream::connect((&*target.host, target.port)).await.map_err(unreachable)?;
        let address = stream.peer_addr().map_err(unreachable)?;
        let name = ServerName::try_from(target.host.clone())
            .map_err(|error| handshake(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
        let stream = TlsConnector::from(Arc::new(config())).connect(name, stream).await.map_err(handshake)?;
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let chain = chain.iter().map(|certificate| certificate.clone().into_owned()).collect();
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|source| ConnectError::Protocol { target: target.clone(), source })?;
        tokio::spawn(connection);
        Ok(Self { sender, target: target.clone(), address, chain })
    }

    /// Posts JSON, and gives the answer whatever its status.
    ///
    /// # Errors
    /// When there is no answer.
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

fn config() -> ClientConfig {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(TakesAll(Arc::clone(&provider)));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS 1.2 and 1.3")
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}

/// Takes any certificate whose key the server has.
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
