//! `http2.connect` against a server of this test.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::Arc;

use h2::Reason;
use h2::server::SendResponse;
use hyper::body::Bytes;
use hyper::{Request, Response};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use support::evaluate::check;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// Serves connections, each with as many streams as it opens.
async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(answer(request, respond));
    }
}

async fn answer(request: Request<h2::RecvStream>, mut respond: SendResponse<Bytes>) {
    let path = request.uri().path().to_owned();
    let head = Response::builder().header("set-cookie", "a=1").header("set-cookie", "b=2");
    let head = head.header("x-method", request.method().as_str());
    let head =
        head.header("x-seen", request.headers().get("x-sent").cloned().unwrap_or_else(|| "none".parse().unwrap()));
    match path.as_str() {
        "/reset" => respond.send_reset(Reason::REFUSED_STREAM),
        // Never answered.
        "/silent" => std::future::pending().await,
        "/trailers" => {
            let mut body = respond.send_response(head.body(()).unwrap(), false).unwrap();
            body.send_data("said".into(), false).unwrap();
            let trailers = [("grpc-status".parse().unwrap(), "0".parse().unwrap())];
            body.send_trailers(trailers.into_iter().collect()).unwrap();
        }
        "/empty" => drop(respond.send_response(head.status(204).body(()).unwrap(), true).unwrap()),
        // Sends back what comes, as it comes.
        _ => {
            let mut body = respond.send_response(head.body(()).unwrap(), false).unwrap();
            let mut incoming = request.into_body();
            while let Some(Ok(piece)) = incoming.data().await {
                incoming.flow_control().release_capacity(piece.len()).unwrap();
                body.send_data(piece, false).unwrap();
            }
            body.send_data(Bytes::new(), true).unwrap();
        }
    }
}

/// Starts a server without TLS and returns its port.
async fn plain() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(converse(stream));
        }
    });
    port
}

/// Starts a server with TLS and returns its port and its certificate.
async fn secure() -> (u16, String) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let mut config = config.with_single_cert(vec![cert.der().clone()], key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    converse(stream).await;
                }
            });
        }
    });
    (port, cert.pem())
}

const HELPERS: &str = r"
    const http2 = createRequire(import.meta.url)('node:http2');
    // What a request yields: its status, its body and how it ended.
    const outcome = (request) => new Promise((resolve) => {
        const seen = { body: '' };
        request.on('response', (headers) => { seen.status = headers[':status']; seen.headers = headers; });
        request.on('trailers', (headers) => { seen.trailers = headers['grpc-status']; });
        request.on('data', (piece) => { seen.body += piece; });
        request.on('error', (error) => { seen.error = error.code; });
        request.on('close', () => resolve(seen));
    });
    const closed = (session) => new Promise((resolve) => session.close(resolve));
";

#[tokio::test]
async fn requests_have_answers() {
    let setup = format!("{HELPERS} const session = http2.connect('http://127.0.0.1:{}');", plain().await);
    let cases = [
        ("await once(session, 'connect').then(() => [session.connecting, session.encrypted])", "[false,false]"),
        (
            "await (async () => { const { status, headers, body, trailers } = await outcome(session.request({ ':path': '/trailers', 'X-Sent': 'ü' })); return [status, headers['x-method'], headers['x-seen'], headers['set-cookie'], body, trailers]; })()",
            r#"[200,"GET","Ã¼",["a=1","b=2"],"said","0"]"#,
        ),
        (
            "(({ status, body, error }) => [status, body, error])(await outcome(session.request({ ':path': '/empty' })))",
            r#"[204,"",null]"#,
        ),
        (
            "await (async () => { const request = session.request({ ':method': 'POST', ':path': '/echo' }); request.setEncoding('utf8'); request.write('one '); const first = await once(request, 'data'); request.end('two'); const { body, error } = await outcome(request); return [first, body, error]; })()",
            r#"[["one "],"two",null]"#,
        ),
        // More than any window.
        (
            "await (async () => { const request = session.request({ ':method': 'POST' }); request.end(Buffer.alloc(1 << 20, 97)); return (await outcome(request)).body.length; })()",
            "1048576",
        ),
        (
            "await Promise.all(['a', 'b', 'c'].map((text) => { const request = session.request({ ':method': 'POST' }); request.end(text); return outcome(request).then(({ body }) => body); }))",
            r#"["a","b","c"]"#,
        ),
        (
            "await (async () => { const { status, error } = await outcome(session.request({ ':path': '/reset' })); return [status, error]; })()",
            r#"[null,"ERR_HTTP2_STREAM_ERROR"]"#,
        ),
        (
            "await (async () => { const request = session.request({ ':path': '/silent' }); const end = outcome(request); request.close(http2.constants.NGHTTP2_CANCEL); await end; return [request.rstCode, request.destroyed]; })()",
            "[8,true]",
        ),
        (
            "await new Promise((resolve) => session.ping((error, took, payload) => resolve([error, took >= 0, payload.length])))",
            "[null,true,8]",
        ),
        ("await failure(() => session.request({ ':nonsense': '1' }))", r#""ERR_HTTP2_INVALID_PSEUDOHEADER""#),
        ("await failure(() => session.request({ 'a b': '1' }))", r#""ERR_INVALID_CHAR""#),
        ("await closed(session).then(() => [session.closed, session.destroyed])", "[true,true]"),
        ("await failure(() => session.request({}))", r#""ERR_HTTP2_INVALID_SESSION""#),
    ];
    check(&setup, &cases).await;
}

#[tokio::test]
async fn certificates_are_checked() {
    let (port, certificate) = secure().await;
    let ca = serde_json::to_string(&certificate).unwrap();
    let setup = format!("{HELPERS} const url = 'https://localhost:{port}'; const ca = {ca};");
    let cases = [
        (
            "await (async () => { const session = http2.connect(url, { ca }); const request = session.request({ ':method': 'POST' }); request.end('safe'); const { status, body } = await outcome(request); await closed(session); return [status, body, session.alpnProtocol]; })()",
            r#"[200,"safe","h2"]"#,
        ),
        (
            "await (async () => { const session = http2.connect(url); const end = outcome(session.request({})); const [error] = await once(session, 'error'); return [error.code, (await end).error]; })()",
            r#"["ERR_HTTP2_ERROR","ERR_HTTP2_STREAM_CANCEL"]"#,
        ),
        (
            "await failure(() => http2.connect(url, { rejectUnauthorized: false }))",
            r#""ERR_FEATURE_UNAVAILABLE_ON_PLATFORM""#,
        ),
    ];
    check(&setup, &cases).await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let setup = format!("{HELPERS} const session = http2.connect('http://127.0.0.1:{port}');");
    let cases = [
        (
            "await (async () => { const end = outcome(session.request({})); const [error] = await once(session, 'error'); return [error.code, (await end).error, session.destroyed]; })()",
            r#"["ECONNREFUSED","ERR_HTTP2_STREAM_CANCEL",true]"#,
        ),
        ("await failure(() => http2.connect('ftp://localhost'))", r#""ERR_HTTP2_UNSUPPORTED_PROTOCOL""#),
        ("await failure(() => http2.createServer())", r#""ERR_FEATURE_UNAVAILABLE_ON_PLATFORM""#),
    ];
    check(&setup, &cases).await;
}
