//! TLS of clients.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Secures a connection to `name`; `ca` has the certificates to trust instead of the system's, as PEM.
pub(super) async fn secure(
    stream: TcpStream,
    name: &str,
    ca: Option<&str>,
    protocol: &[u8],
) -> Result<TlsStream<TcpStream>, String> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(pem) => {
            roots.add_parsable_certificates(CertificateDer::pem_slice_iter(pem.as_bytes()).flatten());
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = config.map_err(|error| error.to_string())?.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let name = ServerName::try_from(name.to_owned()).map_err(|_| format!("Invalid host: {name}"))?;
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
    connecting.await.map_err(|error| error.to_string())
}
