//! A connection that is handed on byte by byte, after its first message was looked at.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use pith_sandbox::domains::{self, Refusal};
use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};
use url::Host;

use super::dial::Target;
use super::{CONNECT_LIMIT, Gate};

/// A tunnel to this port must begin with TLS.
const TLS_PORT: u16 = 443;
/// The longest first message of TLS that makes sense.
const MAX_HELLO: usize = 64 * 1024;
/// How long a tunnel may be silent.
const IDLE_LIMIT: Duration = Duration::from_secs(5 * 60);
/// A fatal alert of TLS: the name is not known here.
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// A tunnel that was asked for, and allowed.
pub(super) struct Tunnel {
    pub target: Target,
    /// What the client's connection becomes once it has read the answer.
    pub inside: OnUpgrade,
    pub outside: TcpStream,
}

impl Tunnel {
    /// Hands bytes on until both sides are done, or nothing comes any more.
    pub async fn run(self, gate: &Gate) {
        let Tunnel { target, inside, mut outside } = self;
        let Ok(inside) = inside.await else { return };
        let mut inside = TokioIo::new(inside);
        if target.port == TLS_PORT {
            let hello = timeout(CONNECT_LIMIT, read_hello(&mut inside)).await;
            // A client that says nothing has tried nothing.
            let Ok(Ok(hello)) = hello else { return };
            if !hello.is_for(&target.host) {
                gate.refuse(&target, Refusal::ServerName.code());
                // The tunnel is open already, so that TLS itself has to say it.
                let _ = inside.write_all(&UNRECOGNIZED_NAME).await;
                let _ = inside.shutdown().await;
                return;
            }
            if outside.write_all(&hello.bytes).await.is_err() {
                return;
            }
        }
        hand_on(inside, outside).await;
    }
}

/// Whether a tunnel to this target may begin with these bytes, as far as they tell: what is missing is looked at later.
pub(super) async fn may_begin_with(early: &[u8], target: &Target) -> bool {
    if target.port != TLS_PORT || early.is_empty() {
        return true;
    }
    read_hello(&mut &*early).await.map_or(true, |hello| hello.is_for(&target.host))
}

/// The first bytes of a connection.
struct Hello {
    bytes: Vec<u8>,
    /// The server that TLS asks for; `None` if this is no TLS.
    server: Option<ServerName>,
}

/// What a first message of TLS says about its server.
#[derive(Debug, PartialEq, Eq)]
enum ServerName {
    Named(String),
    /// As it is with addresses.
    Unnamed,
}

impl Hello {
    /// Whether the connection is one to this host.
    fn is_for(&self, host: &Host) -> bool {
        match (&self.server, host) {
            (Some(ServerName::Named(name)), host) => domains::host(name).as_ref() == Some(host),
            (Some(ServerName::Unnamed), Host::Ipv4(_) | Host::Ipv6(_)) => true,
            (Some(ServerName::Unnamed), Host::Domain(_)) | (None, _) => false,
        }
    }
}

/// Reads until the first message of TLS is whole, or cannot be one.
async fn read_hello(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Hello> {
    let mut acceptor = Acceptor::default();
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    while bytes.len() < MAX_HELLO {
        let n = stream.read(&mut piece).await?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&piece[..n]);
        let mut rest = &piece[..n];
        while !rest.is_empty() {
            acceptor.read_tls(&mut rest)?;
        }
        match acceptor.accept() {
            Ok(Some(accepted)) => {
                let name = accepted.client_hello().server_name().map(str::to_owned);
                let server = Some(name.map_or(ServerName::Unnamed, ServerName::Named));
                return Ok(Hello { bytes, server });
            }
            Ok(None) => {}
            Err(_) => return Ok(Hello { bytes, server: None }),
        }
    }
    Ok(Hello { bytes, server: None })
}

/// When bytes were last handed on.
struct Activity(Mutex<Instant>);

impl Activity {
    fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Waits until there was none for too long.
    async fn ceased(&self) {
        loop {
            let end = *self.0.lock().unwrap_or_else(PoisonError::into_inner) + IDLE_LIMIT;
            if end <= Instant::now() {
                return;
            }
            sleep_until(end).await;
        }
    }
}

async fn hand_on(inside: impl AsyncRead + AsyncWrite, outside: impl AsyncRead + AsyncWrite) {
    let activity = Activity(Mutex::new(Instant::now()));
    let (from_inside, to_inside) = split(inside);
    let (from_outside, to_outside) = split(outside);
    let both =
        async { tokio::try_join!(copy(from_inside, to_outside, &activity), copy(from_outside, to_inside, &activity)) };
    tokio::select! {
        biased;
        _ = both => {}
        () = activity.ceased() => {}
    }
}

/// Hands one direction on. Its end is an end for the other side too, which may go on talking.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    activity: &Activity,
) -> io::Result<()> {
    let mut bytes = vec![0; 16 * 1024];
    loop {
        let n = from.read(&mut bytes).await?;
        activity.note();
        if n == 0 {
            return to.shutdown().await;
        }
        to.write_all(&bytes[..n]).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// The first message of a client that wants this server.
    fn hello(server: &str) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
        let name = server.to_owned().try_into().unwrap();
        let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    async fn is_for(bytes: &[u8], host: &str) -> bool {
        // In pieces, as a network may deliver it. A reader that has seen enough leaves the rest.
        let (mut to, mut from) = tokio::io::duplex(7);
        let bytes = bytes.to_vec();
        let writer = tokio::spawn(async move { drop(to.write_all(&bytes).await) });
        let hello = read_hello(&mut from).await;
        writer.abort();
        hello.unwrap().is_for(&domains::host(host).unwrap())
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_tunnel_is_for_the_server_that_its_first_message_names() {
        assert!(is_for(&hello("example.org"), "example.org").await);
        assert!(is_for(&hello("example.org"), "EXAMPLE.org.").await);
        assert!(!is_for(&hello("other.org"), "example.org").await);
        assert!(!is_for(&hello("127.0.0.1"), "example.org").await);
        assert!(is_for(&hello("127.0.0.1"), "127.0.0.1").await);
        assert!(!is_for(b"SSH-2.0-OpenSSH_9.9\r\n", "example.org").await);
        assert!(!is_for(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", "example.org").await);
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn a_tunnel_ends_when_nothing_comes_through_it() {
        let (mut client, inside) = tokio::io::duplex(64);
        let (mut server, outside) = tokio::io::duplex(64);
        let tunnel = tokio::spawn(hand_on(inside, outside));
        let begin = Instant::now();
        for _ in 0..3 {
            tokio::time::sleep(IDLE_LIMIT - Duration::from_secs(1)).await;
            client.write_all(b"ping").await.unwrap();
            let mut heard = [0; 4];
            server.read_exact(&mut heard).await.unwrap();
            assert_eq!(&heard, b"ping", "one word keeps it open");
        }
        let last = Instant::now();
        assert!(last - begin > 2 * IDLE_LIMIT);
        assert_eq!(client.read(&mut [0; 4]).await.unwrap(), 0, "the tunnel has ended");
        assert_eq!(last.elapsed().as_secs(), IDLE_LIMIT.as_secs());
        tunnel.await.unwrap();
    }
}
