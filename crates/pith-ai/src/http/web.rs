//! Requests that are not calls to models, over the same connections.

use std::error::Error;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode, Url};
use tokio::time::{Instant, timeout};

use super::{Clients, Timeouts, fault, header_list, traced, unreachable};
use crate::discovery::Fetch;

/// Hops a request may be sent on.
const MAX_REDIRECTS: usize = 20;
/// Headers that describe a body and go with it.
const OF_BODY: [&str; 5] =
    ["content-type", "content-length", "content-encoding", "content-language", "content-location"];
/// Headers no other server may see.
const PRIVATE: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "host"];

/// The way to any server. Nothing is connected or read before the first request.
#[derive(Clone, Debug, Default)]
pub struct Web {
    clients: Arc<Clients>,
    timeouts: Timeouts,
}

/// One request.
#[derive(Clone, Debug, Default)]
pub struct WebRequest {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Bytes>,
    pub redirect: Redirect,
}

/// What to do when a server sends the request elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redirect {
    #[default]
    Follow,
    /// The redirect itself is the response.
    Manual,
    Refuse,
}

/// A response whose body is to be read. Dropping it closes the connection.
#[derive(Debug)]
pub struct WebResponse {
    pub status: u16,
    pub status_text: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// After redirects.
    pub url: String,
    response: reqwest::Response,
    timeouts: Timeouts,
}

impl Web {
    /// Makes a client over existing connection pools.
    pub fn new(clients: Arc<Clients>, timeouts: Timeouts) -> Self {
        Web { clients, timeouts }
    }

    /// Returns a client without limits of silence, for callers that have their own.
    pub fn patient(&self) -> Self {
        Web { timeouts: Timeouts { first_byte: None, idle: None, ..self.timeouts }, clients: self.clients.clone() }
    }

    /// Sends a request and waits for the head of its response.
    pub async fn send(&self, request: WebRequest) -> Result<WebResponse, String> {
        let mut url = Url::parse(&request.url).map_err(|error| format!("Invalid URL {}: {error}", request.url))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("Unsupported scheme {}: only http and https can be fetched", url.scheme()));
        }
        let method = request.method.as_bytes();
        let mut method = Method::from_bytes(method).map_err(|_| format!("Invalid method {}", request.method))?;
        let mut headers = header_map(&request.headers)?;
        let mut body = request.body;
        for _ in 0..=MAX_REDIRECTS {
            let response = self.send_once(&method, &url, &headers, body.clone()).await?;
            let Some(target) = target(&response, &url, request.redirect)? else {
                return Ok(self.response(response));
            };
            if becomes_get(&method, response.status()) {
                method = Method::GET;
                body = None;
                OF_BODY.iter().for_each(|name| drop(headers.remove(*name)));
            }
            if target.origin() != url.origin() {
                PRIVATE.iter().for_each(|name| drop(headers.remove(*name)));
            }
            url = target;
        }
        Err(format!("{} was redirected more than {MAX_REDIRECTS} times", request.url))
    }

    /// Returns a function that sends small JSON requests, for model discovery.
    pub fn fetch(&self) -> Fetch {
        let web = self.clone();
        Arc::new(move |question| {
            let web = web.clone();
            Box::pin(async move { super::fetch_json(&web.clients, question, web.timeouts.connect).await })
        })
    }

    async fn send_once(
        &self,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        body: Option<Bytes>,
    ) -> Result<reqwest::Response, String> {
        let client = self.clients.get(url.as_str(), self.timeouts.connect).map_err(|fault| fault.text)?;
        let mut request = client.request(method.clone(), url.clone()).headers(headers.clone());
        if let Some(body) = body {
            request = request.body(body);
        }
        traced::request(method, url, headers);
        let start = Instant::now();
        let sending = request.send();
        let sent = match self.timeouts.first_byte {
            Some(limit) => timeout(limit, sending).await.map_err(|_| fault::silent(limit).text)?,
            None => sending.await,
        };
        let response =
            sent.map_err(|error| format!("{}{}", unreachable(&self.clients, url, &error).text, code(&error)))?;
        traced::response(&response, start.elapsed());
        Ok(response)
    }

    fn response(&self, response: reqwest::Response) -> WebResponse {
        WebResponse {
            status: response.status().as_u16(),
            status_text: response.status().canonical_reason().unwrap_or_default().to_owned(),
            headers: header_list(response.headers()),
            url: response.url().to_string(),
            response,
            timeouts: self.timeouts,
        }
    }
}

impl WebResponse {
    /// Returns the next bytes, nothing at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, String> {
        let reading = self.response.chunk();
        let read = match self.timeouts.idle {
            Some(limit) => timeout(limit, reading).await.map_err(|_| fault::silent(limit).text)?,
            None => reading.await,
        };
        read.map_err(|error| format!("{}{}", fault::lost(&error).text, code(&error)))
    }
}

fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        // Compressed bodies are not asked for; those that come are decompressed.
        if name.eq_ignore_ascii_case("accept-encoding") {
            continue;
        }
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("Invalid header name {name}"))?;
        // The value may be a secret and is not shown.
        let value = HeaderValue::from_str(value).map_err(|_| format!("Invalid value of header {name}"))?;
        map.append(key, value);
    }
    Ok(map)
}

/// Returns the target of a redirect that the caller wants followed.
fn target(response: &reqwest::Response, url: &Url, redirect: Redirect) -> Result<Option<Url>, String> {
    let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = response.headers().get("location").filter(|_| is_redirect);
    let Some(location) = location.and_then(|location| location.to_str().ok()) else { return Ok(None) };
    match redirect {
        Redirect::Manual => Ok(None),
        Redirect::Refuse => Err(format!("unexpected redirect to {location}")),
        Redirect::Follow => {
            let target = url.join(location).map_err(|error| format!("Invalid redirect to {location}: {error}"))?;
            match target.scheme() {
                "http" | "https" => Ok(Some(target)),
                other => Err(format!("Refused to follow a redirect to the scheme {other}")),
            }
        }
    }
}

fn becomes_get(method: &Method, status: StatusCode) -> bool {
    match status.as_u16() {
        301 | 302 => *method == Method::POST,
        303 => *method != Method::GET && *method != Method::HEAD,
        _ => false,
    }
}

/// Returns the error code of the system, for programs that look for it.
fn code(error: &reqwest::Error) -> &'static str {
    let mut cause: &dyn Error = error;
    let kind = loop {
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            break error.kind();
        }
        match cause.source() {
            Some(source) => cause = source,
            None if cause.to_string().contains("lookup address") => return " (ENOTFOUND)",
            None => return "",
        }
    };
    match kind {
        io::ErrorKind::ConnectionRefused => " (ECONNREFUSED)",
        io::ErrorKind::ConnectionReset => " (ECONNRESET)",
        io::ErrorKind::TimedOut => " (ETIMEDOUT)",
        io::ErrorKind::HostUnreachable => " (EHOSTUNREACH)",
        io::ErrorKind::NetworkUnreachable => " (ENETUNREACH)",
        _ if cause.to_string().contains("lookup address") => " (ENOTFOUND)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::thread::{self, JoinHandle};

    use super::*;

    /// Answers one request with `head` and gives its head back, in lower case.
    fn server(head: String) -> (String, JoinHandle<String>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut seen = String::new();
            let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
            while !seen.ends_with("\r\n\r\n") {
                assert_ne!(reader.read_line(&mut seen).expect("a line"), 0, "{seen}");
            }
            write!(stream, "HTTP/1.1 {head}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").expect("an answer");
            seen.to_lowercase()
        });
        (url, asked)
    }

    fn request(method: &str, url: &str) -> WebRequest {
        let headers = [("Authorization", "Bearer x"), ("X-Own", "1"), ("Accept-Encoding", "gzip")];
        WebRequest {
            method: method.to_owned(),
            url: url.to_owned(),
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            ..WebRequest::default()
        }
    }

    #[tokio::test]
    async fn secrets_do_not_follow_a_request_to_another_server() {
        let (other, at_other) = server("200 OK".to_owned());
        let (first, at_first) = server(format!("307 Temporary Redirect\r\nlocation: {other}/there"));
        let response = Web::default().send(request("PUT", &first)).await.expect("a response");
        assert_eq!((response.status, response.url), (200, format!("{other}/there")));
        let (at_first, at_other) = (at_first.join().expect("asked"), at_other.join().expect("asked"));
        assert!(at_first.contains("authorization: bearer x") && !at_first.contains("gzip"), "{at_first}");
        assert!(at_other.starts_with("put /there") && at_other.contains("x-own: 1"), "{at_other}");
        assert!(!at_other.contains("authorization"), "{at_other}");
    }

    #[tokio::test]
    async fn requests_that_cannot_be_sent_are_named() {
        let check = async |change: fn(&mut WebRequest), expected: &str| {
            let mut request = request("GET", "http://127.0.0.1:1/");
            change(&mut request);
            let failure = Web::default().send(request).await.expect_err("refused");
            assert!(failure.contains(expected), "{failure}");
        };
        check(|_| {}, "(ECONNREFUSED)").await;
        check(|request| request.url = "nowhere".to_owned(), "Invalid URL nowhere").await;
        check(|request| request.url = "file:///etc/passwd".to_owned(), "Unsupported scheme file").await;
        check(|request| request.method = "G T".to_owned(), "Invalid method G T").await;
        check(|request| request.headers.push(("a b".to_owned(), String::new())), "Invalid header name a b").await;
        check(|request| request.headers.push(("a".to_owned(), "x\ny".to_owned())), "Invalid value of header a").await;
    }
}
