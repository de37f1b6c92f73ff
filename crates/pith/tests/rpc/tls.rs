//! A model behind TLS: the handshake with a certificate the system trusts, and the refusal of one it does not.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;

use pith_testkit::{Api, ModelServer, Script, TempHome, Turn};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::support::Scene;

/// The model server behind a certificate for `localhost`, and the authority that signed it.
struct TlsModel {
    server: ModelServer,
    address: SocketAddr,
    authority: String,
}

fn start(turns: impl IntoIterator<Item = Turn>) -> TlsModel {
    let server = ModelServer::start(Script::of(turns));
    let mut authority = CertificateParams::new(Vec::new()).expect("parameters");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("key")).expect("authority");
    let key = KeyPair::generate().expect("key");
    let names = CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
    let certificate = names.signed_by(&key, &authority).expect("certificate");
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("certificate and key");
    let behind: SocketAddr = server.url().trim_start_matches("http://").parse().expect("an address");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("listener");
    let address = listener.local_addr().expect("address");
    // Ends with the test's process.
    std::thread::spawn(move || runtime.block_on(serve(listener, TlsAcceptor::from(Arc::new(config)), behind)));
    TlsModel { server, address, authority: authority.pem() }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, behind: SocketAddr) {
    while let Ok((client, _)) = listener.accept().await {
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let mut client = acceptor.accept(client).await?;
            let mut server = TcpStream::connect(behind).await?;
            tokio::io::copy_bidirectional(&mut client, &mut server).await
        });
    }
}

/// A pith whose model is behind TLS; with `trusts` the authority is among the system's.
fn scene(trusts: bool, turns: impl IntoIterator<Item = Turn>) -> Scene {
    let TlsModel { server, address, authority } = start(turns);
    let home = TempHome::new();
    home.write_models(&format!("https://localhost:{}", address.port()), |_| {});
    home.write_settings(&json!({"retry": {"enabled": false}}));
    let roots = home.home().join("roots.pem");
    fs::write(&roots, if trusts { authority } else { String::new() }).expect("roots");
    let roots = roots.display().to_string();
    Scene::start(server, home, Api::Anthropic, |builder| builder.env("SSL_CERT_FILE", &roots))
}

#[test]
fn a_model_behind_a_trusted_certificate_answers() {
    let mut scene = scene(true, [Turn::text("over TLS")]);
    scene.host.ask(json!({"type": "prompt", "message": "hi"}));
    scene.host.wait_type("agent_settled");
    let answer = scene.host.data(json!({"type": "get_last_assistant_text"}));
    assert_eq!(answer["text"], "over TLS");
    assert_eq!(scene.server.requests().len(), 1);
}

#[test]
fn a_certificate_nobody_vouches_for_is_refused_before_anything_is_sent() {
    let mut scene = scene(false, [Turn::text("never")]);
    scene.host.ask(json!({"type": "prompt", "message": "hi"}));
    let end = scene.host.wait_type("agent_end");
    let error = end["messages"][1]["errorMessage"].as_str().unwrap_or_default().to_owned();
    assert!(error.to_lowercase().contains("certificate"), "{end}");
    assert!(scene.server.requests().is_empty(), "the request stayed here");
}
