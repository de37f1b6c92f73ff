//! Faults that another try cannot mend: said once, at once.

use pith_agent::ModelClient;
use pith_protocol::{AssistantMessage, ErrorKind, Model};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::server::{end, failure, providers, timeouts};
use crate::client::ClientOptions;
use crate::failure::is_retryable;
use crate::testing::call;

/// A client that would try three times.
fn stubborn() -> ClientOptions {
    timeouts(|timeouts| timeouts.retries = 2)
}

async fn ask(options: ClientOptions, base_url: &str) -> AssistantMessage {
    let model = Model {
        id: "m".into(),
        provider: "p".into(),
        api: "anthropic-messages".into(),
        base_url: base_url.into(),
        ..Model::default()
    };
    end(providers(options).stream(call(model, vec![]), CancellationToken::new())).await
}

/// A port that answers whatever comes with the same bytes and reports each connection's first line.
async fn parrot(answer: &'static str) -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let (report, seen) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 4096];
            let n = stream.read(&mut buffer).await.unwrap_or(0);
            let text = String::from_utf8_lossy(&buffer[..n]).into_owned();
            report.send(text.lines().next().unwrap_or_default().to_owned()).ok();
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (address, seen)
}

/// The lines that have come until now.
fn drain(seen: &mut mpsc::UnboundedReceiver<String>) -> Vec<String> {
    std::iter::from_fn(|| seen.try_recv().ok()).collect()
}

#[tokio::test]
async fn invalid_addresses_are_refused() {
    for (base_url, reason) in [
        ("gateway.test/v1", "it must begin with http:// or https://"),
        ("localhost:8080/v1", "it must begin with http:// or https://"),
        ("ftp://gateway.test/v1", "it must begin with http:// or https://"),
        ("http://", "empty host"),
        ("https://[::bad/v1", "invalid IPv6 address"),
        ("http://gateway.test:99999/v1", "invalid port number"),
    ] {
        let message = ask(stubborn(), base_url).await;
        let expected = format!("Invalid baseUrl \"{base_url}\" of provider p: {reason}");
        assert_eq!(failure(&message), (ErrorKind::InvalidRequest, expected.as_str()));
    }
}

#[tokio::test]
async fn a_server_that_does_not_speak_tls() {
    let (address, mut seen) = parrot("HTTP/1.1 400 Bad Request\r\n\r\n").await;
    let message = ask(stubborn(), &format!("https://{address}")).await;
    let (kind, text) = failure(&message);
    assert_eq!((kind, is_retryable(&message)), (ErrorKind::Network, false));
    let expected = "it does not speak TLS. An address of plain HTTP begins with http://";
    assert_eq!(text, format!("Connection error: could not reach {address}: {expected}"));
    assert_eq!(drain(&mut seen).len(), 1);
}

#[tokio::test]
async fn a_proxy_that_wants_another_password() {
    let refusal =
        "HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\ncontent-length: 0\r\n\r\n";
    for (base_url, asked) in
        [("https://model.test", "CONNECT model.test:443"), ("http://model.test", "POST http://model.test/v1/messages")]
    {
        let (address, mut seen) = parrot(refusal).await;
        let options = ClientOptions { proxy: Some(format!("http://user:wrong@{address}")), ..stubborn() };
        let message = ask(options, base_url).await;
        let (kind, text) = failure(&message);
        assert_eq!((kind, is_retryable(&message)), (ErrorKind::Auth, false), "{text}");
        assert!(text.contains(&format!("the proxy http://{address} (the setting httpProxy) refused its")), "{text}");
        assert!(!text.contains("wrong"), "{text}");
        let seen = drain(&mut seen);
        assert!(seen.len() == 1 && seen[0].starts_with(asked), "{seen:?}");
    }
}

#[tokio::test]
async fn a_proxy_that_does_not_let_through_is_named() {
    let (address, _seen) = parrot("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n").await;
    let options = ClientOptions { proxy: Some(format!("http://{address}")), ..ClientOptions::default() };
    let message = ask(options, "https://model.test").await;
    let expected = format!(
        "Connection error: could not reach model.test: the proxy http://{address} (the setting httpProxy) refused to \
         connect to it"
    );
    assert_eq!(failure(&message), (ErrorKind::Network, expected.as_str()));
    let options = ClientOptions { proxy: Some("http://127.0.0.1:1".into()), ..ClientOptions::default() };
    let message = ask(options, "https://model.test").await;
    let expected = "Connection error: could not reach the proxy http://127.0.0.1:1 (the setting httpProxy), which is \
                    to lead to model.test: Connection refused";
    assert!(failure(&message).1.starts_with(expected), "{message:?}");
}

#[tokio::test]
async fn a_socks_proxy_is_blamed_for_what_it_does_and_for_nothing_else() {
    let says = |answer: &'static str| async move {
        let (address, _seen) = parrot(answer).await;
        let options = ClientOptions { proxy: Some(format!("socks5h://{address}")), ..ClientOptions::default() };
        let message = ask(options, "https://model.test").await;
        let (kind, text) = failure(&message);
        let text = text.replace(&address, "PROXY");
        let text = text.replace("the proxy socks5h://PROXY (the setting httpProxy)", "the proxy");
        (kind, text.strip_prefix("Connection error: could not reach model.test: ").map(str::to_owned).unwrap_or(text))
    };
    // What the proxy says when it was asked to connect, after it has accepted the way of signing in.
    for (answer, expected) in [
        ("\x05\x00\x05\x01\x00\x01\0\0\0\0\0\0", "the proxy says: general server failure"),
        ("\x05\x00\x05\x02\x00\x01\0\0\0\0\0\0", "the proxy refused to connect to it"),
        ("\x05\x00\x05\x03\x00\x01\0\0\0\0\0\0", "the proxy says: network unreachable"),
        ("\x05\x00\x05\x04\x00\x01\0\0\0\0\0\0", "the proxy says: host unreachable"),
        ("\x05\x00\x05\x05\x00\x01\0\0\0\0\0\0", "the proxy says: connection refused"),
        ("\x05\x00\x05\x06\x00\x01\0\0\0\0\0\0", "the proxy says: ttl expired"),
        ("\x05\x00\x05\x08\x00\x01\0\0\0\0\0\0", "the proxy says: address type not supported"),
        ("HTTP/1.1 400 Bad Request\r\n\r\n", "the proxy does not answer as a SOCKS proxy does"),
        ("", "the proxy does not answer as a SOCKS proxy does"),
    ] {
        assert_eq!(says(answer).await, (ErrorKind::Network, expected.to_owned()), "{answer:?}");
    }
    let options = |proxy: &str| ClientOptions { proxy: Some(proxy.into()), ..ClientOptions::default() };
    let message = ask(options("socks5h://127.0.0.1:1"), "https://model.test").await;
    let expected = "Connection error: could not reach the proxy socks5h://127.0.0.1:1 (the setting httpProxy), which \
                    is to lead to model.test: ";
    assert!(failure(&message).1.starts_with(expected), "{message:?}");
    // With this scheme names are looked up here, so the proxy has nothing to do with one that is not known.
    let message = ask(options("socks5://127.0.0.1:1"), "https://no-such-host.invalid").await;
    let text = failure(&message).1;
    assert!(text.starts_with("Connection error: could not reach no-such-host.invalid: "), "{text}");
    assert!(!text.contains("proxy"), "{text}");
}

#[tokio::test]
async fn a_connection_that_closes_before_the_answer_is_named() {
    let (address, _seen) = parrot("").await;
    let message = ask(ClientOptions::default(), &format!("http://{address}")).await;
    let expected = format!("Connection error: reached {address}, but the connection closed before the answer");
    let (kind, text) = failure(&message);
    assert_eq!((kind, is_retryable(&message)), (ErrorKind::Network, true));
    assert!(text.starts_with(&expected), "{text}");
}

#[tokio::test]
async fn a_proxy_that_is_none() {
    let options = ClientOptions { proxy: Some("gopher://proxy.test".into()), ..stubborn() };
    let message = ask(options, "https://model.test").await;
    let (kind, text) = failure(&message);
    assert_eq!(kind, ErrorKind::InvalidRequest, "{text}");
    assert!(text.contains("gopher://proxy.test"), "{text}");
}
