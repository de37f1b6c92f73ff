//! An MCP server at an address that wants a sign-in, and the authorization server that it is itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use serde_json::{Value, json};

const TOKEN: &str = "token-of-the-guarded-server";

/// The server; it ends with the process.
pub struct GuardedServer {
    address: String,
}

impl GuardedServer {
    pub fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let own = address.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let own = own.clone();
                // A client that has gone needs no answer.
                thread::spawn(move || drop(serve(&own, &stream)));
            }
        });
        GuardedServer { address }
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
fn serve(address: &str, stream: &TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length, mut is_signed) = (String::new(), 0, false);
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap_or(0),
            "authorization" => is_signed = value == format!("Bearer {TOKEN}"),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
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
