//! The page on this machine to which the browser comes back after a sign-in.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::Url;

/// Longer requests are no callbacks.
const MAX_LINE: u64 = 16 * 1024;
/// How long a connection may say nothing. Browsers open some in advance and may never use them.
const SILENCE: Duration = Duration::from_secs(30);
/// How many connections are served at the same time; more wait.
const MAX_OPEN: usize = 32;
const DONE: &str = "pith: the sign-in is done. You can close this page.";
const WRONG: &str = "pith: this is not the sign-in that was begun.";

/// What the authorization server sent the browser back with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned {
    pub code: Result<String, String>,
    pub state: Option<String>,
    pub issuer: Option<String>,
}

impl Returned {
    /// Reads the address that the browser was sent to; `None` if it has nothing to do with a sign-in.
    pub fn read(url: &Url) -> Option<Self> {
        let value = |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
        let code = match (value("code"), value("error")) {
            (_, Some(error)) => Err(value("error_description").unwrap_or(error)),
            (Some(code), None) => Ok(code),
            (None, None) => return None,
        };
        Some(Returned { code, state: value("state"), issuer: value("iss") })
    }
}

/// Waits for the browser; requests for anything else are told so.
pub async fn wait(listener: &TcpListener, redirect: &Url, state: &str) -> Result<Returned, String> {
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(served) = open.join_next() => {
                if let Ok(Some(returned)) = served {
                    return Ok(returned);
                }
            }
            accepted = listener.accept(), if open.len() < MAX_OPEN => {
                let (stream, _) = accepted.map_err(|error| format!("the callback: {error}"))?;
                open.spawn(serve(stream, redirect.clone(), state.to_owned()));
            }
        }
    }
}

async fn serve(stream: TcpStream, redirect: Url, state: String) -> Option<Returned> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    let mut beginning = tokio::io::AsyncReadExt::take(&mut stream, MAX_LINE);
    timeout(SILENCE, beginning.read_line(&mut line)).await.ok()?.ok()?;
    let target = line.split(' ').nth(1).and_then(|target| redirect.join(target).ok());
    let returned = target.filter(|target| target.path() == redirect.path()).as_ref().and_then(Returned::read);
    let returned = returned.filter(|returned| returned.state.as_deref() == Some(&state));
    let (status, text) = if returned.is_some() { ("200 OK", DONE) } else { ("404 Not Found", WRONG) };
    let length = text.len();
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nconnection: close");
    // A browser that has gone has still brought the code.
    let _ = stream.write_all(format!("{head}\r\n\r\n{text}").as_bytes()).await;
    let _ = stream.shutdown().await;
    returned
}
