//! The connection pools, each built when first needed.
//!
//! A plain-http URL never waits for certificates to be read, and a loopback one
//! never meets a proxy.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pith_config::Environment;
use pith_protocol::ErrorKind;
use reqwest::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Proxy, Url};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::failure::Fault;
use crate::network;

use super::connections::ConnectionCount;

/// Pools for the three ways out.
#[derive(Debug, Default)]
pub struct Clients {
    loopback: OnceLock<Result<Client, String>>,
    plain: OnceLock<Result<Client, String>>,
    tls: OnceLock<Result<Client, String>>,
    /// Used where the environment names no proxy.
    proxy: Option<String>,
    /// How many connections were made, by all pools.
    n_connections: ConnectionCount,
}

impl Clients {
    /// Pools that use `proxy` unless the environment names one.
    pub fn with_proxy(proxy: Option<String>) -> Self {
        Clients { proxy, ..Clients::default() }
    }

    /// Returns the client for an address.
    pub fn get(&self, url: &str, connect: Duration) -> Result<&Client, Fault> {
        let client = if url.starts_with("https:") {
            self.tls.get_or_init(|| self.proxied("https", connect, trusted_roots()))
        } else if is_loopback(url) {
            self.loopback.get_or_init(|| build(self.base(connect, RootCertStore::empty())?.no_proxy()))
        } else {
            self.plain.get_or_init(|| self.proxied("http", connect, RootCertStore::empty()))
        };
        client.as_ref().map_err(|error| Fault::new(ErrorKind::InvalidRequest, error.clone()))
    }

    /// Returns how many connections were made until now.
    pub fn n_connections(&self) -> usize {
        self.n_connections.get()
    }

    /// Returns the proxy that requests to an address go through.
    pub fn proxy_for(&self, url: &Url) -> Option<network::Proxy> {
        if url.scheme() == "http" && is_loopback(url.as_str()) {
            return None;
        }
        network::proxy_for(url, &Environment::of_process(), self.proxy.as_deref())
    }

    fn proxied(&self, scheme: &str, connect: Duration, roots: RootCertStore) -> Result<Client, String> {
        let mut builder = self.base(connect, roots)?;
        let proxies = network::proxies_of(scheme, &Environment::of_process(), self.proxy.as_deref());
        // One that cannot be used is no reason to go without.
        if let Some(problem) = proxies.iter().find_map(network::Proxy::problem) {
            return Err(problem);
        }
        if let Some(proxy) = proxies.iter().find(|proxy| proxy.is_setting()) {
            let proxy = Proxy::all(&proxy.value).map_err(|error| format!("proxy: {error}"))?;
            builder = builder.proxy(proxy.no_proxy(reqwest::NoProxy::from_env()));
        }
        build(builder)
    }

    fn base(&self, connect: Duration, roots: RootCertStore) -> Result<ClientBuilder, String> {
        // Our own verifier settings: the library's refuses to exist on machines without a certificate store.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS: {error}"))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Client::builder()
            .tls_backend_preconfigured(tls)
            .connect_timeout(connect)
            .tcp_nodelay(true)
            .tcp_keepalive(Duration::from_secs(60))
            .connector_layer(self.n_connections.clone())
            // Gateways add a header for each they have got from the server behind them.
            .http1_max_headers(1024)
            .http2_max_header_list_size(256 << 10)
            // Compressed bodies are decompressed but not asked for: servers hold pieces of a stream back to
            // compress them better.
            .default_headers(HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("identity"))]))
            // Followed by hand: a key must not go along everywhere.
            .redirect(Policy::none()))
    }
}

fn build(builder: ClientBuilder) -> Result<Client, String> {
    builder.build().map_err(|error| format!("HTTP client: {error}"))
}

/// Returns the system's roots, those the environment names, or the built-in ones where there are none.
fn trusted_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    // Reads SSL_CERT_FILE and SSL_CERT_DIR too. A certificate that cannot be read is not worth failing for.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = std::env::var_os("NODE_EXTRA_CA_CERTS") {
        let certificates = CertificateDer::pem_file_iter(path).into_iter().flatten().flatten();
        roots.add_parsable_certificates(certificates);
    }
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

fn is_loopback(url: &str) -> bool {
    let authority = url.split("://").nth(1).unwrap_or(url).split(['/', '?']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_addresses() {
        for url in ["http://localhost:1/x", "http://127.0.0.1", "http://127.9.9.9:80/", "http://[::1]:11434/v1"] {
            assert!(is_loopback(url), "{url}");
        }
        for url in ["http://localhost.example.com", "http://10.0.0.1:80", "http://example.com/127.0.0.1"] {
            assert!(!is_loopback(url), "{url}");
        }
    }

    #[test]
    fn plain_addresses_need_no_certificates() {
        let clients = Clients::default();
        clients.get("http://127.0.0.1:9/v1", Duration::from_secs(1)).expect("a client");
        assert!(clients.tls.get().is_none());
        clients.get("https://example.com", Duration::from_secs(1)).expect("a client");
        assert!(clients.tls.get().is_some());
    }
}
