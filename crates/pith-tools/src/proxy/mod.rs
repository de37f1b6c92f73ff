//! The way out of a network namespace: a proxy that listens inside and dials outside, to the hosts a policy lists.
//!
//! The socket it listens on was made inside the namespace, so nobody else on the machine can connect to it. Names are
//! resolved here, and what is dialled is the address that was looked at. Nothing is decrypted: of a connection with TLS
//! only the name in its first message is read.

mod dial;
mod forward;
mod tunnel;

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONNECTION, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use pith_sandbox::domains::{Domains, Refusal};
use pith_sandbox::namespaces::PROXY_PORT;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinSet};

use crate::hosts::SessionHosts;
use dial::{NotReached, Refused, Target};
use tunnel::Tunnel;

/// How many connections there are at a time; further ones wait.
const MAX_CONNECTIONS: usize = 64;
/// How long resolving, connecting, and the first words of a connection may each take.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// What is looked at of what comes with the first request.
const MAX_EARLY: usize = 16 * 1024;
/// Refusals that are remembered; a program that tries for ever must not fill the memory.
const MAX_REFUSALS: usize = 1000;
const PROXY_ERROR: HeaderName = HeaderName::from_static("x-proxy-error");

type Body = Either<Full<Bytes>, Incoming>;

/// A running proxy. Dropping it ends all of its connections.
#[derive(Debug)]
pub(crate) struct Proxy {
    task: AbortHandle,
    gate: Arc<Gate>,
}

/// What decides about connections, and remembers what it has refused.
#[derive(Debug)]
struct Gate {
    domains: Domains,
    /// Decides about hosts that are in none of them.
    hosts: SessionHosts,
    refused: Mutex<Vec<RefusedHost>>,
}

/// A host that a command was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedHost {
    pub host: String,
    /// The word for programs that says why.
    pub code: &'static str,
}

impl Proxy {
    /// Serves connections to a socket of another namespace. Needs a tokio runtime.
    pub fn start(listener: std::net::TcpListener, domains: Domains, hosts: SessionHosts) -> io::Result<Proxy> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let gate = Arc::new(Gate { domains, hosts, refused: Mutex::default() });
        // Owned by the proxy: the task ends with it.
        let task = tokio::spawn(serve(listener, Arc::clone(&gate))).abort_handle();
        Ok(Proxy { task, gate })
    }

    /// Returns how many refusals there were so far.
    pub fn n_refused(&self) -> usize {
        self.gate.refused().len()
    }

    /// Returns the hosts that were refused after that many refusals, in order.
    pub fn refused_since(&self, n_before: usize) -> Vec<RefusedHost> {
        self.gate.refused().get(n_before..).unwrap_or_default().to_vec()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Gate {
    fn refuse(&self, target: &Target, code: &'static str) {
        let mut refused = self.refused();
        if refused.len() < MAX_REFUSALS {
            refused.push(RefusedHost { host: target.name(), code });
        }
    }

    fn refused(&self) -> MutexGuard<'_, Vec<RefusedHost>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The variables by which programs find the proxy.
pub(crate) fn variables() -> Vec<(String, String)> {
    let address = format!("http://127.0.0.1:{PROXY_PORT}");
    let own = [("HTTP_PROXY", address.as_str()), ("HTTPS_PROXY", &address), ("ALL_PROXY", &address), ("NO_PROXY", "")];
    let twice = own.into_iter().flat_map(|(name, value)| [(name.to_owned(), value), (name.to_lowercase(), value)]);
    // Node looks at them only if it is told to.
    let all = twice.chain([("NODE_USE_ENV_PROXY".to_owned(), "1")]);
    all.map(|(name, value)| (name, value.to_owned())).collect()
}

async fn serve(listener: TcpListener, gate: Arc<Gate>) {
    const AFTER_ERROR: Duration = Duration::from_millis(100);
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => drop(connections.spawn(serve_connection(stream, Arc::clone(&gate), permit))),
            // There may be descriptors again in a moment.
            Err(_) => tokio::time::sleep(AFTER_ERROR).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Answers the requests of a connection, and becomes a tunnel if one of them asks for it.
async fn serve_connection(stream: TcpStream, gate: Arc<Gate>, _permit: OwnedSemaphorePermit) {
    let opened = Arc::new(Mutex::new(None));
    let early = Arc::new(early_bytes(&stream).await);
    let exchanges = Arc::new(Mutex::new(JoinSet::new()));
    let service = service_fn(|request| {
        let (gate, opened, exchanges) = (Arc::clone(&gate), Arc::clone(&opened), Arc::clone(&exchanges));
        let early = Arc::clone(&early);
        async move {
            let mut response = answer(request, &early, &gate, &opened, &exchanges).await;
            if !early.is_empty() && !response.status().is_success() {
                // What was meant for a tunnel is no request.
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(CONNECT_LIMIT);
    // A connection that breaks off has nobody to tell.
    let _ = http.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
    let tunnel: Option<Tunnel> = opened.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(tunnel) = tunnel {
        tunnel.run(&gate).await;
    }
}

/// Returns what a client has sent together with a request for a tunnel, before anything is read of it. Only as long as
/// that request is not answered it can be refused in words.
async fn early_bytes(stream: &TcpStream) -> Vec<u8> {
    const HEAD_END: &[u8] = b"\r\n\r\n";
    let mut bytes = vec![0; MAX_EARLY];
    let peeked = tokio::time::timeout(CONNECT_LIMIT, stream.peek(&mut bytes)).await;
    let seen = &bytes[..peeked.ok().and_then(Result::ok).unwrap_or(0)];
    let end = seen.windows(HEAD_END.len()).position(|window| window == HEAD_END);
    match end {
        Some(end) if seen.starts_with(b"CONNECT ") => seen[end + HEAD_END.len()..].to_vec(),
        Some(_) | None => Vec::new(),
    }
}

async fn answer(
    mut request: Request<Incoming>,
    early: &[u8],
    gate: &Gate,
    opened: &Mutex<Option<Tunnel>>,
    exchanges: &Mutex<JoinSet<()>>,
) -> Response<Body> {
    let Some(target) = Target::of(&request) else {
        return said(StatusCode::BAD_REQUEST, "pith: expected CONNECT host:port, or an http address".to_owned());
    };
    let is_tunnel = request.method() == Method::CONNECT;
    let mut connected = dial::connect(&target, gate).await;
    if connected.is_ok() && is_tunnel && !tunnel::may_begin_with(early, &target).await {
        connected = Err(NotReached::Refused(target.refused(Refusal::ServerName)));
    }
    let stream = match connected {
        Ok(stream) => stream,
        Err(NotReached::Refused(refusal)) => {
            gate.refuse(&target, refusal.code);
            return refused(refusal);
        }
        Err(NotReached::Unreachable(why)) => {
            return said(StatusCode::BAD_GATEWAY, format!("pith: {}: {why}", target.name()));
        }
    };
    if is_tunnel {
        let inside = hyper::upgrade::on(&mut request);
        *opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(Tunnel { target, inside, outside: stream });
        return said(StatusCode::OK, String::new());
    }
    match forward::exchange(request, stream, exchanges).await {
        Ok(response) => response.map(Either::Right),
        Err(error) => said(StatusCode::BAD_GATEWAY, format!("pith: {}: {error}", target.name())),
    }
}

fn refused(Refused { code, text }: Refused) -> Response<Body> {
    let mut response = said(StatusCode::FORBIDDEN, text);
    response.headers_mut().insert(PROXY_ERROR, HeaderValue::from_static(code));
    response
}

fn said(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::from(text)));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Asks the proxy for a tunnel.
    async fn ask(proxy: std::net::SocketAddr, target: std::net::SocketAddr) -> TcpStream {
        let mut client = TcpStream::connect(proxy).await.unwrap();
        client.write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes()).await.unwrap();
        client
    }

    /// Reads the first line of the proxy's answer.
    async fn answer_of(client: &mut TcpStream) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(client.read_u8().await.unwrap());
        }
        String::from_utf8(head).unwrap().lines().next().unwrap().to_owned()
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_connection_too_many_waits_for_the_end_of_another() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = server.local_addr().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let domains = Domains::read(&[target.to_string()], &[]).unwrap();
        let _proxy = Proxy::start(listener, domains, SessionHosts::default()).unwrap();
        let mut tunnels = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            let mut tunnel = ask(address, target).await;
            assert_eq!(answer_of(&mut tunnel).await, "HTTP/1.1 200 OK");
            tunnels.push((tunnel, server.accept().await.unwrap().0));
        }
        let mut waiting = ask(address, target).await;
        // What the proxy does for others meanwhile shows that it had the time to answer this one.
        for (tunnel, outside) in &mut tunnels {
            tunnel.write_all(b"ping").await.unwrap();
            outside.read_exact(&mut [0; 4]).await.unwrap();
        }
        let unanswered = waiting.try_read(&mut [0; 1]).unwrap_err();
        assert_eq!(unanswered.kind(), io::ErrorKind::WouldBlock);
        drop(tunnels.pop());
        assert_eq!(answer_of(&mut waiting).await, "HTTP/1.1 200 OK");
    }
}
