//! An MCP server at an address that wants a sign-in, and the authorization server that it is itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use serde_json::{Value, json};

const TOKEN: &str = "token-of-the-guarded-server";

/// How far a renewal has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewalStep {
    /// The server has got the refresh token.
    Arrived,
    /// The token was replaced, and half of the answer was sent.
    HalfSent,
    /// The answer was sent.
    Sent,
}

/// Called at each step of a renewal, which waits for it. If it returns `false` the server ends the connection instead
/// of going on.
type OnRenewal = Box<dyn Fn(RenewalStep) -> bool + Send + Sync>;

/// The server; it ends with the process.
pub struct GuardedServer {
    address: String,
    shared: Arc<Shared>,
}

struct Shared {
    /// The number of the tokens that are accepted: `access-N`, and `refresh-N`, once. The number of a sign-in with a
    /// page is 0.
    number: AtomicU32,
    on_renewal: OnRenewal,
}

impl GuardedServer {
    pub fn start() -> Self {
        GuardedServer::renewing(0, |_| true)
    }

    /// Starts a server where somebody has signed in and got the tokens of this number.
    pub fn renewing(number: u32, on_renewal: impl Fn(RenewalStep) -> bool + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let own = address.clone();
        let shared = Arc::new(Shared { number: AtomicU32::new(number), on_renewal: Box::new(on_renewal) });
        let serving = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (own, shared) = (own.clone(), serving.clone());
                // A client that has gone needs no answer.
                thread::spawn(move || drop(serve(&own, &shared, &stream)));
            }
        });
        GuardedServer { address, shared }
    }

    /// The number of the tokens that are accepted.
    pub fn number(&self) -> u32 {
        self.shared.number.load(Ordering::SeqCst)
    }

    /// Accepts the tokens of this number, as after another sign-in.
    pub fn accept(&self, number: u32) {
        self.shared.number.store(number, Ordering::SeqCst);
    }

    /// Where tokens are renewed.
    pub fn token_url(&self) -> String {
        format!("{}/token", self.address)
    }

    /// Where the server is.
    pub fn url(&self) -> String {
        format!("{}/mcp", self.address)
    }

    /// Signs in on a page, as somebody with a browser does. Returns what the page at the end says.
    pub fn sign_in(&self, page: &str) -> String {
        let query = page.strip_prefix(&format!("{}/authorize?", self.address)).expect("a page of this server");
        let value = |name: &str| {
            let pair = query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
            pair.unwrap_or_else(|| panic!("no {name} in {page}")).to_owned()
        };
        let redirect = decoded(&value("redirect_uri"));
        let place = redirect.strip_prefix("http://").expect("plain http");
        let (host, path) = place.split_once('/').expect("a path");
        let mut stream = TcpStream::connect(host).expect("somebody waits for the browser");
        let request = format!("GET /{path}?code=code-1&state={} HTTP/1.1\r\nhost: {host}\r\n\r\n", value("state"));
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        answer
    }
}

fn decoded(text: &str) -> String {
    text.replace("%3A", ":").replace("%2F", "/")
}

/// Answers one request and ends the connection.
fn serve(address: &str, shared: &Shared, stream: &TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length, mut is_signed) = (String::new(), 0, false);
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap_or(0),
            "authorization" => {
                let number = shared.number.load(Ordering::SeqCst);
                is_signed = value == format!("Bearer {TOKEN}") || value == format!("Bearer access-{number}");
            }
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let form = String::from_utf8_lossy(&body);
    if let Some(given) =
        form.split('&').find_map(|pair| pair.strip_prefix("refresh_token=")).filter(|_| path == "/token")
    {
        return renew(shared, given, stream);
    }
    let (status, extra, body) = match (method, path) {
        ("POST", "/mcp") if !is_signed => {
            ("401 Unauthorized", format!("www-authenticate: Bearer resource_metadata=\"{address}/prm\"\r\n"), json!({}))
        }
        ("POST", "/mcp") => {
            let (status, body) = answer(&serde_json::from_slice(&body).unwrap_or_default());
            (status, String::new(), body)
        }
        _ => {
            let (status, body) = metadata(address, method, path);
            (status, String::new(), body)
        }
    };
    let body = body.to_string();
    let head = format!("content-type: application/json\r\ncontent-length: {}\r\nconnection: close", body.len());
    let mut stream = stream;
    write!(stream, "HTTP/1.1 {status}\r\n{extra}{head}\r\n\r\n{body}")
}

/// Replaces a refresh token, step by step.
fn renew(shared: &Shared, given: &str, mut stream: &TcpStream) -> std::io::Result<()> {
    let gone = || Err(std::io::ErrorKind::ConnectionAborted.into());
    if !(shared.on_renewal)(RenewalStep::Arrived) {
        return gone();
    }
    let number = shared.number.load(Ordering::SeqCst);
    let (status, body) = if given == format!("refresh-{number}") {
        let number = number + 1;
        shared.number.store(number, Ordering::SeqCst);
        let tokens = json!({"access_token": format!("access-{number}"), "refresh_token": format!("refresh-{number}"),
            "token_type": "Bearer", "expires_in": 3600});
        ("200 OK", tokens)
    } else {
        ("400 Bad Request", json!({"error": "invalid_grant", "error_description": format!("{given} is used up")}))
    };
    let body = body.to_string();
    let (first, second) = body.split_at(body.len() / 2);
    let head = format!("content-type: application/json\r\ncontent-length: {}\r\nconnection: close", body.len());
    write!(stream, "HTTP/1.1 {status}\r\n{head}\r\n\r\n{first}")?;
    if !(shared.on_renewal)(RenewalStep::HalfSent) {
        return gone();
    }
    write!(stream, "{second}")?;
    (shared.on_renewal)(RenewalStep::Sent);
    Ok(())
}

fn metadata(address: &str, method: &str, path: &str) -> (&'static str, Value) {
    let at = |path: &str| format!("{address}{path}");
    match (method, path) {
        ("GET", "/prm") => ("200 OK", json!({"resource": address, "authorization_servers": [address]})),
        ("GET", "/.well-known/oauth-authorization-server") => {
            let metadata = json!({"issuer": address, "authorization_endpoint": at("/authorize"),
                "token_endpoint": at("/token"), "registration_endpoint": at("/register"),
                "code_challenge_methods_supported": ["S256"]});
            ("200 OK", metadata)
        }
        ("POST", "/register") => ("201 Created", json!({"client_id": "client-1"})),
        ("POST", "/token") => ("200 OK", json!({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600})),
        _ => ("404 Not Found", json!({})),
    }
}

fn answer(request: &Value) -> (&'static str, Value) {
    let result = match request["method"].as_str().unwrap_or_default() {
        "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "guarded", "version": "1"}}),
        "tools/list" => json!({"tools": [{"name": "look", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "seen"}]}),
        note if note.starts_with("notifications/") => return ("202 Accepted", json!({})),
        _ => return ("400 Bad Request", json!({})),
    };
    ("200 OK", json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
}
