//! A server at an address, in this process, that behaves as its kind says.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

use crate::bench::Bench;

/// A server, as its kind says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Sessions and streams of 2025-11-25.
    Legacy,
    /// Every answer as JSON, no sessions, no stream of notices.
    Plain,
    Modern,
    /// Of the newer era, with news for those who listen.
    Tells,
    /// The transport of 2024-11-05.
    Sse,
    /// 401 without a certain token.
    Guarded,
    /// 401 to calls, or to requests for a list.
    GuardsCalls,
    /// Wants more of those who call `echo`; `slow` answers when the log has "release".
    GuardsEcho,
    GuardsLists,
    Html,
    Accepts,
    NoType,
    CutStream,
    /// Ends the stream of a call and goes on with it for those who come back.
    Resumes,
    /// Sends requests on, twice.
    Moves,
    MovesAway,
    Circles,
    Huge,
    /// 503 to every request that it has not seen before.
    Busy,
    /// Of a later era, which pith does not know.
    Future,
    /// Leaves requests of the newer era without an answer.
    Hangs,
    /// Refuses every handshake of the older era, and does not know the newer one.
    Unlicensed,
}

pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    /// As it came.
    pub text: String,
    /// `null` if it is no JSON.
    pub body: Value,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

/// A server in this process.
pub struct HttpServer {
    kind: Kind,
    address: String,
    /// Every request, as "METHOD path rpc-method".
    pub log: watch::Sender<Vec<String>>,
    pub headers: Mutex<Vec<(String, String)>>,
    /// The session that is valid now.
    pub session: AtomicUsize,
    /// The answer that waits for whoever comes back.
    pub unsent: Mutex<Option<Value>>,
    /// Streams of notices, and of the session of 2024-11-05.
    pub streams: Mutex<Vec<mpsc::UnboundedSender<String>>>,
}

impl HttpServer {
    pub async fn start(kind: Kind) -> Arc<HttpServer> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let server = Arc::new(HttpServer {
            kind,
            address: format!("http://{}", listener.local_addr().expect("an address")),
            log: watch::Sender::default(),
            headers: Mutex::default(),
            session: AtomicUsize::new(1),
            unsent: Mutex::default(),
            streams: Mutex::default(),
        });
        let serving = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serving.clone().serve(stream));
            }
        });
        server
    }

    pub fn bench(&self, more: Value) -> Bench {
        let mut entry = json!({"url": format!("{}/mcp?key=secret-in-address", self.address)});
        for (key, value) in more.as_object().expect("an object") {
            entry[key] = value.clone();
        }
        Bench::new(json!({ "s": entry }))
    }

    pub fn log(&self) -> Vec<String> {
        self.log.borrow().clone()
    }

    /// Waits until a request of this kind has come.
    pub async fn wait_for(&self, what: &str) {
        let mut log = self.log.subscribe();
        log.wait_for(|log| log.iter().any(|line| line.contains(what))).await.expect("the server lives");
    }

    async fn serve(self: Arc<Self>, stream: TcpStream) {
        let (reader, mut writer) = stream.into_split();
        let mut reader = BufReader::new(reader);
        while let Some(request) = read_request(&mut reader).await {
            let called = request.body["method"].as_str().unwrap_or_default();
            let place = request.header("last-event-id").map(|id| format!("after {id}")).unwrap_or_default();
            let path = request.path.split('?').next().unwrap_or_default();
            let line = format!("{} {path} {called}{place}", request.method);
            *self.headers.lock().expect("no panic") = request.headers.clone();
            self.log.send_modify(|log| log.push(line));
            if self.answer(&request, &mut writer).await.is_err() {
                return;
            }
        }
    }

    async fn answer(&self, request: &Request, writer: &mut (impl AsyncWriteExt + Unpin)) -> std::io::Result<()> {
        let called = request.body["method"].as_str().unwrap_or_default();
        let id = &request.body["id"];
        let session = format!("s-{}", self.session.load(Ordering::SeqCst));
        let is_expired = request.header("mcp-session-id").is_some_and(|id| id != session);
        match (self.kind, request.method.as_str()) {
            (Kind::Guarded, _) if request.header("authorization") != Some("Bearer let-me-in-please") => {
                full(writer, "401 Unauthorized", "text/plain", "who are you? let-me-in-wrong").await
            }
            (Kind::GuardsCalls, _) if called == "tools/call" => {
                full(writer, "401 Unauthorized", "text/plain", "not any more").await
            }
            (Kind::GuardsEcho, _) if request.body["params"]["name"] == "echo" => {
                let challenge = "www-authenticate: Bearer error=\"insufficient_scope\"";
                head(writer, "403 Forbidden", &[challenge, "content-length: 0"]).await
            }
            (Kind::GuardsEcho, _) if request.body["params"]["name"] == "slow" => {
                let is_released = |log: &Vec<String>| log.iter().any(|line| line == "release");
                self.log.subscribe().wait_for(is_released).await.expect("the test lives");
                full(writer, "200 OK", "application/json", &self.result(called, request).to_string()).await
            }
            (Kind::GuardsLists, _) if called == "tools/list" => {
                let challenge = "www-authenticate: Bearer error=\"insufficient_scope\"";
                head(writer, "403 Forbidden", &[challenge, "content-length: 0"]).await
            }
            (Kind::Html, _) => {
                full(writer, "200 OK", "text/html", "<html>Sign in   here: secret-in-address</html>").await
            }
            (Kind::Moves, _) if request.path.starts_with("/mcp") => {
                head(writer, "301 Moved Permanently", &["location: /here", "content-length: 0"]).await
            }
            (Kind::Moves, _) if request.path == "/here" => {
                head(writer, "307 Temporary Redirect", &["location: /there", "content-length: 0"]).await
            }
            (Kind::Circles, _) => {
                head(writer, "308 Permanent Redirect", &["location: /mcp", "content-length: 0"]).await
            }
            (Kind::MovesAway, _) => {
                head(writer, "307 Temporary Redirect", &["location: http://127.0.0.1:1/", "content-length: 0"]).await
            }
            (Kind::Resumes, "GET") if request.header("last-event-id").is_some_and(|id| id.starts_with("call-")) => {
                head(writer, "200 OK", &["content-type: text/event-stream", "connection: close"]).await?;
                if request.header("last-event-id") == Some("call-1") {
                    // Not there yet: another event, and the reader is sent away again.
                    writer.write_all(b"id: call-2\nretry: 1\ndata:\n\n").await?;
                } else {
                    let answer = self.unsent.lock().expect("no panic").take().expect("a call");
                    writer.write_all(format!("id: call-3\ndata: {answer}\n\n").as_bytes()).await?;
                }
                Err(std::io::ErrorKind::Other.into())
            }
            (Kind::Sse | Kind::Legacy | Kind::Resumes, "GET") => {
                head(writer, "200 OK", &["content-type: text/event-stream", "connection: close"]).await?;
                let (sender, mut events) = mpsc::unbounded_channel();
                if self.kind == Kind::Sse {
                    writer.write_all(b": hello\n\nevent: endpoint\ndata: /messages?id=1\n\n").await?;
                }
                self.streams.lock().expect("no panic").push(sender);
                while let Some(event) = events.recv().await {
                    writer.write_all(format!("event: message\nid: notice-1\ndata: {event}\n\n").as_bytes()).await?;
                }
                Err(std::io::ErrorKind::Other.into())
            }
            (Kind::Sse, "POST") if request.path.starts_with("/messages") => {
                if !id.is_null() && !called.is_empty() {
                    self.notice(&self.result(called, request));
                }
                full(writer, "202 Accepted", "text/plain", "Accepted").await
            }
            (Kind::Sse, _) => full(writer, "404 Not Found", "text/html", "Cannot POST /mcp").await,
            (_, "DELETE") => full(writer, "200 OK", "text/plain", "").await,
            (_, "GET") => full(writer, "405 Method Not Allowed", "text/plain", "").await,
            (_, _) if id.is_null() || called.is_empty() => head(writer, "202 Accepted", &["content-length: 0"]).await,
            (Kind::Legacy, _) if is_expired => full(writer, "404 Not Found", "text/plain", "no such session").await,
            (Kind::Busy, _) if called != "server/discover" && called != "initialize" && self.is_new(called) => {
                full(writer, "503 Service Unavailable", "text/plain", "come back later").await
            }
            (Kind::Hangs, _) if called == "server/discover" => std::future::pending().await,
            (Kind::Accepts, _) if called == "tools/call" => head(writer, "202 Accepted", &["content-length: 0"]).await,
            (Kind::NoType, _) if called == "tools/call" => full(writer, "200 OK", "", "some words").await,
            (Kind::Huge, _) if called == "tools/call" => {
                head(writer, "200 OK", &["content-type: text/event-stream", "connection: close"]).await?;
                writer.write_all(b"data: ").await?;
                for _ in 0..100 {
                    writer.write_all(&vec![b'x'; 1 << 20]).await?;
                }
                Err(std::io::ErrorKind::Other.into())
            }
            (Kind::CutStream, _) if called == "tools/call" => {
                head(writer, "200 OK", &["content-type: text/event-stream", "connection: close"]).await?;
                writer.write_all(b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/none\"}\n\n").await?;
                Err(std::io::ErrorKind::Other.into())
            }
            (Kind::Resumes, _) if called == "tools/call" => {
                *self.unsent.lock().expect("no panic") = Some(self.result(called, request));
                head(writer, "200 OK", &["content-type: text/event-stream", "connection: close"]).await?;
                writer.write_all(b"id: call-1\nretry: 1\ndata:\n\nid: call-9\ndata: {\"cut").await?;
                Err(std::io::ErrorKind::Other.into())
            }
            (Kind::Tells, _) if called == "subscriptions/listen" => {
                head(writer, "200 OK", &["content-type: text/event-stream", "connection: close"]).await?;
                let (sender, mut events) = mpsc::unbounded_channel();
                let params = json!({"notifications": request.body["params"]["notifications"], "_meta": of(id)});
                let told =
                    json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params});
                writer.write_all(format!("data: {told}\n\n").as_bytes()).await?;
                *self.unsent.lock().expect("no panic") = Some(id.clone());
                self.streams.lock().expect("no panic").push(sender);
                while let Some(event) = events.recv().await {
                    writer.write_all(format!("data: {event}\n\n").as_bytes()).await?;
                }
                Err(std::io::ErrorKind::Other.into())
            }
            (Kind::Legacy, _) if called != "server/discover" => {
                let id = format!("mcp-session-id: {session}");
                head(writer, "200 OK", &["content-type: text/event-stream", "connection: close", &id]).await?;
                if request.body["params"]["name"] == "slow" {
                    let token = &request.body["params"]["_meta"]["progressToken"];
                    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params":
                        {"progressToken": token, "progress": 1, "message": "working"}});
                    writer.write_all(format!("data: {progress}\n\n").as_bytes()).await?;
                    std::future::pending::<()>().await;
                }
                // Split over two lines of data.
                let answer = self.result(called, request).to_string().replacen(',', ",\ndata: ", 1);
                writer.write_all(format!("data: {answer}\n\n").as_bytes()).await?;
                Err(std::io::ErrorKind::Other.into())
            }
            (Kind::Legacy, _) => {
                let refusal = json!({"jsonrpc": "2.0", "id": "server-error", "error":
                    {"code": -32000, "message": "Bad Request: No valid session ID provided"}});
                full(writer, "400 Bad Request", "application/json", &refusal.to_string()).await
            }
            _ => {
                full(writer, "200 OK", "application/json; charset=utf-8", &self.result(called, request).to_string())
                    .await
            }
        }
    }

    /// Whether no request before this one called the method.
    fn is_new(&self, called: &str) -> bool {
        self.log.borrow().iter().filter(|line| line.ends_with(&format!(" {called}"))).count() == 1
    }

    /// Sends a message over the newest stream.
    pub fn notice(&self, message: &Value) {
        let streams = self.streams.lock().expect("no panic");
        streams.last().expect("a stream").send(message.to_string()).expect("open");
    }

    fn result(&self, called: &str, request: &Request) -> Value {
        let id = &request.body["id"];
        let tool = |name: &str| json!({"name": name, "inputSchema": {"properties": {"text": {"type": "string", "x-mcp-header": "Text"}}}});
        let result = match called {
            "initialize" if matches!(self.kind, Kind::Modern | Kind::Tells | Kind::Future) => Value::Null,
            "initialize" if self.kind == Kind::Unlicensed => {
                let error = json!({"code": -32000, "message": "license expired"});
                return json!({"jsonrpc": "2.0", "id": id, "error": error});
            }
            "initialize" => {
                json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "resources": {}}})
            }
            "server/discover" if self.kind == Kind::Tells => json!({
                "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": true}},
                "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}),
            "server/discover" if self.kind == Kind::Future => {
                json!({"supportedVersions": ["2027-01-01"], "capabilities": {}})
            }
            "server/discover" if self.kind == Kind::Modern => json!({
                "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete",
                "ttlMs": 0, "cacheScope": "private", "serverInfo": {"name": "test", "version": "1"}}),
            "resources/read" => json!({"contents": [{"uri": "test://a", "text": "the text of a"}]}),
            "tools/list" => json!({"tools": [tool("echo"), tool("slow")]}),
            "tools/call" => {
                json!({"content": [{"type": "text", "text": request.body["params"]["arguments"].to_string()}]})
            }
            _ => Value::Null,
        };
        if result.is_null() {
            return json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}});
        }
        json!({"jsonrpc": "2.0", "id": id, "result": result})
    }
}

pub async fn read_request(reader: &mut (impl AsyncBufReadExt + Unpin)) -> Option<Request> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    while reader.read_line(&mut line).await.ok()? > 0 && !line.trim().is_empty() {
        lines.push(line.trim().to_owned());
        line.clear();
    }
    let mut words = lines.first()?.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let split = |line: &String| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    let headers: Vec<(String, String)> = lines.iter().skip(1).filter_map(split).collect();
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).await.ok()?;
    let text = String::from_utf8(body).ok()?;
    Some(Request { method, path, headers, body: serde_json::from_str(&text).unwrap_or_default(), text })
}

pub async fn head(writer: &mut (impl AsyncWriteExt + Unpin), status: &str, headers: &[&str]) -> std::io::Result<()> {
    writer.write_all(format!("HTTP/1.1 {status}\r\n{}\r\n\r\n", headers.join("\r\n")).as_bytes()).await
}

pub async fn full(
    writer: &mut (impl AsyncWriteExt + Unpin),
    status: &str,
    kind: &str,
    body: &str,
) -> std::io::Result<()> {
    let length = format!("content-length: {}", body.len());
    let kind = if kind.is_empty() { "x-none: 1".to_owned() } else { format!("content-type: {kind}") };
    head(writer, status, &[&length, &kind]).await?;
    writer.write_all(body.as_bytes()).await
}

/// Says to which request of a client a notice belongs.
pub fn of(request: &Value) -> Value {
    json!({ "io.modelcontextprotocol/subscriptionId": request })
}
