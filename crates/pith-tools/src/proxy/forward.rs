//! A plain HTTP request, handed on as the server expects it.

use std::sync::{Mutex, PoisonError};

use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Headers that are about one connection, not about the message.
const OF_CONNECTION: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHORIZATION,
    header::PROXY_AUTHENTICATE,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Sends a request over a new connection and returns the response. `exchanges` drives the connection until the client's
/// own one ends.
pub(super) async fn exchange(
    mut request: Request<Incoming>,
    stream: TcpStream,
    exchanges: &Mutex<JoinSet<()>>,
) -> hyper::Result<Response<Incoming>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    exchanges.lock().unwrap_or_else(PoisonError::into_inner).spawn(async move { drop(connection.await) });
    // The server must hear the name that was decided about, whatever the header says.
    let host = request.uri().authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse().unwrap_or(Uri::from_static("/"));
    drop_headers(request.headers_mut());
    let host = host.unwrap_or_else(|| HeaderValue::from_static(""));
    request.headers_mut().insert(header::HOST, host);
    let mut response = sender.send_request(request).await?;
    drop_headers(response.headers_mut());
    Ok(response)
}

/// Removes what is about one connection, also what a message itself says is.
fn drop_headers(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in OF_CONNECTION.iter().chain(&named) {
        headers.remove(name);
    }
}
