//! A model behind TLS: a certificate the system trusts is accepted, one it does not trust is refused.

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

use crate::support::{Scene, of_type};

/// The model server behind a certificate for a name, and the authority that signed it.
struct TlsModel {
    server: ModelServer,
    address: SocketAddr,
    authority: String,
}

fn start(name: &str, turns: impl IntoIterator<Item = Turn>) -> TlsModel {
    let server = ModelServer::start(Script::of(turns));
    let mut authority = CertificateParams::new(Vec::new()).expect("parameters");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("key")).expect("authority");
    let key = KeyPair::generate().expect("key");
    let names = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
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
    // Ends with the test process.
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

/// A pith whose model is behind a certificate for `name`; with `trusts` the authority is among the system's.
fn scene(name: &str, trusts: bool, turns: impl IntoIterator<Item = Turn>) -> Scene {
    let TlsModel { server, address, authority } = start(name, turns);
    let home = TempHome::new();
    home.write_models(&format!("https://localhost:{}", address.port()), |_| {});
    let roots = home.home().join("roots.pem");
    fs::write(&roots, if trusts { authority } else { String::new() }).expect("roots");
    let roots = roots.display().to_string();
    Scene::start(server, home, Api::Anthropic, |builder| builder.env("SSL_CERT_FILE", &roots))
}

/// The error that ends a prompt at once, although failures are retried by default.
fn lasting_error(scene: &mut Scene) -> String {
    scene.host.ask(json!({"type": "prompt", "message": "hi"}));
    scene.host.wait_type("agent_settled");
    let frames = scene.host.frames();
    assert_eq!(of_type(&frames, "auto_retry_start").len(), 0, "not worth another try");
    let end = of_type(&frames, "agent_end").pop().expect("the run has ended");
    end["messages"][1]["errorMessage"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_model_behind_a_trusted_certificate_answers() {
    let mut scene = scene("localhost", true, [Turn::text("over TLS")]);
    scene.host.ask(json!({"type": "prompt", "message": "hi"}));
    scene.host.wait_type("agent_settled");
    let answer = scene.host.data(json!({"type": "get_last_assistant_text"}));
    assert_eq!(answer["text"], "over TLS");
    assert_eq!(scene.server.requests().len(), 1);
}

#[test]
fn an_untrusted_certificate_is_refused_before_anything_is_sent() {
    let mut scene = scene("localhost", false, [Turn::text("never")]);
    let error = lasting_error(&mut scene);
    assert!(error.contains("invalid certificate: it is signed by an authority that is not known here"), "{error}");
    assert!(error.contains("NODE_EXTRA_CA_CERTS") && error.contains("models.json"), "{error}");
    assert!(scene.server.requests().is_empty(), "the request stayed here");
}

#[test]
fn a_certificate_for_another_name_is_refused_with_both_names() {
    let mut scene = scene("elsewhere.test", true, [Turn::text("never")]);
    let error = lasting_error(&mut scene);
    assert!(error.contains("invalid certificate: it is for elsewhere.test, not for localhost"), "{error}");
}

#[test]
fn a_certificate_file_that_is_missing_is_named_before_and_after() {
    let TlsModel { server, address, .. } = start("localhost", [Turn::text("never")]);
    let home = TempHome::new();
    home.write_models(&format!("https://localhost:{}", address.port()), |_| {});
    let mut scene =
        Scene::start(server, home, Api::Anthropic, |builder| builder.env("NODE_EXTRA_CA_CERTS", "/no/such/file.pem"));
    let found = scene.host.data(json!({"type": "get_diagnostics"}));
    let found =
        found["diagnostics"].as_array().expect("a list").iter().find(|one| one["code"] == "network_certificates");
    assert_eq!(found.expect("told before anything is sent")["path"], "/no/such/file.pem");
    let error = lasting_error(&mut scene);
    assert!(error.contains("NODE_EXTRA_CA_CERTS names /no/such/file.pem, which cannot be read"), "{error}");
}

#[test]
fn an_unknown_path_on_the_server_is_named() {
    let server = ModelServer::start(Script::of([Turn::status(404)]));
    let (home, url) = (TempHome::for_server(&server), server.url());
    let mut scene = Scene::start(server, home, Api::Anthropic, |builder| builder);
    let error = lasting_error(&mut scene);
    assert!(error.contains(&format!("(asked at {url}/v1/messages; the address is \"baseUrl\" of")), "{error}");
}

#[test]
fn an_invalid_address_is_refused_with_its_place() {
    let home = TempHome::new();
    home.write_models("gateway.test", |_| {});
    let file = home.agent().join("models.json");
    let mut scene = Scene::start(ModelServer::start(Script::new()), home, Api::Completions, |builder| builder);
    assert_eq!(
        lasting_error(&mut scene),
        format!(
            "Invalid baseUrl \"gateway.test/v1\" of provider mock-openai: it must begin with http:// or https:// \
             (the address is \"baseUrl\" of provider mock-openai in {})",
            file.display()
        )
    );
}
