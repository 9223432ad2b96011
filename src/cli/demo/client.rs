//! The demo's side of the API server: one kept-alive HTTP/1.1 connection over TLS.

use std::{net::SocketAddr, sync::Arc};

use http_body_util::{BodyExt, Full};
use hyper::{Request, body::Bytes, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::cli::Failure;

/// An open connection.
pub struct Connection(http1::SendRequest<Full<Bytes>>);

/// Connects, trusting one authority alone.
///
/// # Errors
/// When the server is not there, or not trusted.
pub async fn connect(address: SocketAddr, ca_pem: &str) -> Result<Connection, Failure> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(ca_pem.as_bytes()).map_err(Failure::failed)?;
    roots.add(authority).map_err(Failure::failed)?;
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(Failure::failed)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let stream = TcpStream::connect(address).await.map_err(Failure::failed)?;
    let name = ServerName::try_from("localhost").map_err(Failure::failed)?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(Failure::failed)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(Failure::failed)?;
    tokio::spawn(connection);
    Ok(Connection(sender))
}

impl Connection {
    /// Posts JSON, and gives the answer's text.
    ///
    /// # Errors
    /// When there is no answer, or it is not a success.
    pub async fn post(&mut self, path: &str, body: &'static str) -> Result<String, Failure> {
        let request = Request::post(path)
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::from(body))
            .map_err(Failure::failed)?;
        self.0.ready().await.map_err(Failure::failed)?;
        let (head, body) = self.0.send_request(request).await.map_err(Failure::failed)?.into_parts();
        let body = body.collect().await.map_err(Failure::failed)?.to_bytes();
        let text = String::from_utf8_lossy(&body).into_owned();
        if head.status.is_success() {
            Ok(text)
        } else {
            Err(Failure::failed(format!("{}: {text}", head.status)))
        }
    }
}
