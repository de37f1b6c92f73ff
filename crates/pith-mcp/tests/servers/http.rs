//! Servers at an address: both eras, sessions, streams, and whatever they do wrong.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pith_agent::ToolContext;
use pith_mcp::State;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, text};

/// A server, as its kind says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
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
    Html,
    Accepts,
    NoType,
    CutStream,
    /// Ends the stream of a call and goes on with it for those who come back.
    Resumes,
    Moves,
    MovesAway,
    Huge,
    /// 503 to every request that it has not seen before.
    Busy,
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
struct HttpServer {
    kind: Kind,
    address: String,
    /// Every request, as "METHOD path rpc-method".
    log: watch::Sender<Vec<String>>,
    headers: Mutex<Vec<(String, String)>>,
    /// The session that is valid now.
    session: AtomicUsize,
    /// The answer that waits for whoever comes back.
    unsent: Mutex<Option<Value>>,
    /// Streams of notices, and of the session of 2024-11-05.
    streams: Mutex<Vec<mpsc::UnboundedSender<String>>>,
}

impl HttpServer {
    async fn start(kind: Kind) -> Arc<HttpServer> {
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

    fn bench(&self, more: Value) -> Bench {
        let mut entry = json!({"url": format!("{}/mcp?key=secret-in-address", self.address)});
        for (key, value) in more.as_object().expect("an object") {
            entry[key] = value.clone();
        }
        Bench::new(json!({ "s": entry }))
    }

    fn log(&self) -> Vec<String> {
        self.log.borrow().clone()
    }

    /// Waits until a request of this kind has come.
    async fn wait_for(&self, what: &str) {
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
            (Kind::Html, _) => {
                full(writer, "200 OK", "text/html", "<html>Sign in   here: secret-in-address</html>").await
            }
            (Kind::Moves, _) if request.path.starts_with("/mcp") => {
                head(writer, "307 Temporary Redirect", &["location: /there", "content-length: 0"]).await
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
    fn notice(&self, message: &Value) {
        let streams = self.streams.lock().expect("no panic");
        streams.last().expect("a stream").send(message.to_string()).expect("open");
    }

    fn result(&self, called: &str, request: &Request) -> Value {
        let id = &request.body["id"];
        let tool = |name: &str| json!({"name": name, "inputSchema": {"properties": {"text": {"type": "string", "x-mcp-header": "Text"}}}});
        let result = match called {
            "initialize" if matches!(self.kind, Kind::Modern | Kind::Tells) => Value::Null,
            "initialize" => {
                json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "resources": {}}})
            }
            "server/discover" if self.kind == Kind::Tells => json!({
                "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": true}},
                "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}),
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

#[tokio::test]
async fn every_kind_of_server_is_reached_with_equal_results() {
    for (kind, version) in [
        (Kind::Legacy, "2025-11-25"),
        (Kind::Plain, "2025-11-25"),
        (Kind::Modern, "2026-07-28"),
        (Kind::Sse, "2025-11-25"),
        (Kind::Moves, "2025-11-25"),
    ] {
        let server = HttpServer::start(kind).await;
        let bench = server.bench(json!({}));
        bench.connect().await;
        assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()), "{kind:?}");
        assert_eq!(bench.servers.shown()[0].protocol_version.as_deref(), Some(version), "{kind:?}");
        let output = bench.call("echo", json!({"text": "hi"})).await;
        assert_eq!((text(&output), output.is_error), (r#"{"text":"hi"}"#, false), "{kind:?}");
        bench.servers.close().await;
    }
}

#[tokio::test]
async fn the_old_transport_is_used_at_once_where_the_entry_says_so() {
    let server = HttpServer::start(Kind::Sse).await;
    let bench = server.bench(json!({"type": "sse"}));
    bench.connect().await;
    assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()));
    assert_eq!(server.log()[..2], ["GET /mcp ", "POST /messages initialize"]);
    // The end of the stream is the end of the session, and the next call opens another one.
    server.streams.lock().expect("no panic").clear();
    while bench.state() == State::Ready {
        tokio::task::yield_now().await;
    }
    assert_eq!(text(&bench.call("echo", json!({})).await), "{}");
    bench.servers.close().await;
}

#[tokio::test]
async fn requests_carry_the_headers_of_their_era() {
    let server = HttpServer::start(Kind::Modern).await;
    let bench = server.bench(json!({"headers": {"X-Own": "${MY_SECRET}-1"}}));
    bench.connect().await;
    bench.call("echo", json!({"text": "hi"})).await;
    let header = |name: &str| {
        let headers = server.headers.lock().expect("no panic");
        headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone()).unwrap_or_default()
    };
    assert_eq!(header("mcp-protocol-version"), "2026-07-28");
    assert_eq!([header("mcp-method"), header("mcp-name"), header("mcp-param-text")], ["tools/call", "echo", "hi"]);
    assert_eq!([header("x-own"), header("mcp-session-id")], ["x-1", ""]);
    bench.servers.close().await;

    let server = HttpServer::start(Kind::Legacy).await;
    let bench = server.bench(json!({}));
    bench.connect().await;
    server.wait_for("GET").await;
    bench.servers.close().await;
    assert_eq!(server.log().last().map(String::as_str), Some("DELETE /mcp "), "the session is ended");
    let headers = server.headers.lock().expect("no panic").clone();
    assert!(headers.contains(&("mcp-session-id".to_owned(), "s-1".to_owned())), "{headers:?}");
    assert!(headers.contains(&("mcp-protocol-version".to_owned(), "2025-11-25".to_owned())), "{headers:?}");
}

#[tokio::test]
async fn an_expired_session_fails_one_call() {
    let server = HttpServer::start(Kind::Legacy).await;
    let bench = server.bench(json!({}));
    bench.connect().await;
    server.session.store(2, Ordering::SeqCst);
    let output = bench.call("echo", json!({})).await;
    assert_eq!((text(&output), output.is_error), ("s: session expired", true));
    assert_eq!(text(&bench.call("echo", json!({})).await), "{}");
    bench.servers.close().await;
}

#[tokio::test]
async fn answers_that_are_none_fail_the_call_and_are_quoted() {
    for (kind, why) in [
        (Kind::Accepts, "s: answered 202 with no type"),
        (Kind::NoType, "s: answered 200 with no type: some words"),
        (Kind::CutStream, "s: ended its stream before the answer"),
        (Kind::Huge, "s: sent an event longer than 16 MiB"),
    ] {
        let server = HttpServer::start(kind).await;
        let bench = server.bench(json!({}));
        bench.connect().await;
        assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()), "{kind:?}");
        let output = bench.call("echo", json!({})).await;
        assert_eq!((text(&output), output.is_error), (why, true), "{kind:?}");
        assert_eq!(bench.state(), State::Ready, "{kind:?}");
        bench.servers.close().await;
    }
}

#[tokio::test]
async fn addresses_that_are_no_servers_say_why() {
    let check = async |kind: Kind, more: Value, state: State, why: &str| {
        let server = HttpServer::start(kind).await;
        let bench = server.bench(more);
        bench.connect().await;
        assert_eq!((bench.state(), &*bench.error()), (state, why), "{kind:?}");
        bench.servers.close().await;
    };
    let html = "answered 200 with text/html: <html>Sign in here: [redacted]</html>";
    check(Kind::Html, json!({}), State::Failed, html).await;
    let away = "sends requests on to http://127.0.0.1:1, which pith does not follow";
    check(Kind::MovesAway, json!({}), State::Failed, away).await;
    let sign_in = "wants a sign-in (401): pith mcp login s";
    check(Kind::Guarded, json!({}), State::NeedsAuth, sign_in).await;
    let refused = "wants a sign-in (401): the credentials of its entry were refused";
    check(Kind::Guarded, json!({"bearerToken": "let-me-in-wrong"}), State::NeedsAuth, refused).await;
    check(Kind::Guarded, json!({"bearerToken": "let-me-in-please"}), State::Ready, "").await;
    check(Kind::Guarded, json!({"headers": {"authorization": "Bearer let-me-in-please"}}), State::Ready, "").await;
    check(Kind::Guarded, json!({"bearerTokenEnv": "NOT_SET"}), State::Failed, "needs variable NOT_SET").await;
    let plain = json!({"url": "http://example.com/mcp", "bearerToken": "let-me-in-please"});
    let open = "url: http:// would show the credentials to everybody on the way; use https://";
    check(Kind::Plain, plain, State::Failed, open).await;
    check(Kind::Plain, json!({"url": "http://a-token@example.com/mcp"}), State::Failed, open).await;
    check(
        Kind::Plain,
        json!({"url": "${MY_SECRET}://a"}),
        State::Failed,
        "url: it must begin with http:// or https://",
    )
    .await;
}

#[tokio::test]
async fn nobody_there_is_a_failure_with_its_place() {
    let bench = Bench::new(json!({"s": {"url": "http://127.0.0.1:1/mcp?token=secret-token"}}));
    bench.connect().await;
    assert_eq!(bench.state(), State::Failed);
    let error = bench.error();
    assert!(error.contains("127.0.0.1:1") && error.contains("ECONNREFUSED") && !error.contains("secret"), "{error}");
}

#[tokio::test]
async fn an_abort_ends_the_stream_and_tells_servers_of_the_older_era() {
    let server = HttpServer::start(Kind::Legacy).await;
    let bench = server.bench(json!({}));
    bench.connect().await;
    let cancel = CancellationToken::new();
    let on_progress = cancel.clone();
    let update = Arc::new(move |_| on_progress.cancel());
    let context = ToolContext { call_id: "1".into(), cancel, update, trace: None };
    let output = bench.tool("mcp__s__slow").run(Map::new(), context).await;
    assert_eq!((text(&output), output.is_error), ("Operation aborted", true));
    server.wait_for("notifications/cancelled").await;
    bench.servers.close().await;
}

#[tokio::test]
async fn notices_between_calls_are_heard() {
    let server = HttpServer::start(Kind::Legacy).await;
    let bench = server.bench(json!({}));
    bench.connect().await;
    server.wait_for("GET").await;
    while server.streams.lock().expect("no panic").is_empty() {
        tokio::task::yield_now().await;
    }
    let lists = |server: &HttpServer| server.log().iter().filter(|line| line.contains("tools/list")).count();
    let before = lists(&server);
    server.notice(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    let mut log = server.log.subscribe();
    while lists(&server) == before {
        log.changed().await.expect("the server lives");
    }
    bench.servers.close().await;
}

/// Says to which request of a client a notice belongs.
fn of(request: &Value) -> Value {
    json!({ "io.modelcontextprotocol/subscriptionId": request })
}

#[tokio::test]
async fn servers_of_the_newer_era_are_listened_to_and_again_when_the_stream_was_cut() {
    let server = HttpServer::start(Kind::Tells).await;
    let bench = server.bench(json!({}));
    bench.connect().await;
    assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()));
    while server.streams.lock().expect("no panic").is_empty() {
        tokio::task::yield_now().await;
    }
    let has = |called: &'static str, n: usize| {
        move |log: &Vec<String>| log.iter().filter(|line| line.ends_with(called)).count() == n
    };
    let request = server.unsent.lock().expect("no panic").take().expect("the client listens");
    let change =
        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": of(&request)}});
    server.notice(&change);
    server.log.subscribe().wait_for(has("tools/list", 2)).await.expect("the server lives");
    server.streams.lock().expect("no panic").clear();
    server.log.subscribe().wait_for(has("subscriptions/listen", 2)).await.expect("the server lives");
    // What changed in between nobody has told.
    server.log.subscribe().wait_for(has("tools/list", 3)).await.expect("the server lives");
    bench.servers.close().await;
}

#[tokio::test]
async fn what_a_server_spoke_last_is_tried_first() {
    let server = HttpServer::start(Kind::Legacy).await;
    let bench = server.bench(json!({}));
    let handshakes = |server: &HttpServer| -> Vec<String> {
        let is_handshake = |line: &&String| line.ends_with("initialize") || line.ends_with("server/discover");
        server.log().iter().filter(is_handshake).cloned().collect()
    };
    bench.connect().await;
    assert_eq!(handshakes(&server), ["POST /mcp server/discover", "POST /mcp initialize"]);
    bench.servers.find("s").expect("configured").stop().await;
    bench.connect().await;
    assert_eq!((bench.state(), handshakes(&server).len()), (State::Ready, 3));
    assert_eq!(handshakes(&server)[2], "POST /mcp initialize");
    bench.servers.close().await;
}

#[tokio::test]
async fn lists_and_resources_are_asked_for_again_and_calls_are_not() {
    let server = HttpServer::start(Kind::Busy).await;
    let bench = server.bench(json!({}));
    bench.connect().await;
    assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()));
    let count = |called: &str| server.log().iter().filter(|line| line.ends_with(called)).count();
    assert_eq!(count("tools/list"), 2);
    let read = bench.run("read_mcp_resource", json!({"server": "s", "uri": "test://a"})).await;
    assert_eq!((text(&read), count("resources/read")), ("the text of a", 2));
    let output = bench.call("echo", json!({})).await;
    assert_eq!((text(&output), count("tools/call")), ("s: answered 503: come back later", 1));
    assert_eq!(text(&bench.call("echo", json!({})).await), "{}");
    bench.servers.close().await;
}

#[tokio::test]
async fn a_stream_that_is_cut_goes_on_and_the_call_is_made_once() {
    let server = HttpServer::start(Kind::Resumes).await;
    let bench = server.bench(json!({}));
    bench.connect().await;
    let output = bench.call("echo", json!({"text": "hi"})).await;
    assert_eq!((text(&output), output.is_error), (r#"{"text":"hi"}"#, false));
    let log = server.log();
    let of = |what: &str| log.iter().filter(|line| line.ends_with(what)).count();
    assert_eq!([of("tools/call"), of("after call-1"), of("after call-2"), of("after call-9")], [1, 1, 1, 0], "{log:?}");
    bench.servers.close().await;
}

#[tokio::test]
async fn the_stream_of_notices_goes_on_where_it_was_cut() {
    let server = HttpServer::start(Kind::Legacy).await;
    let bench = server.bench(json!({}));
    bench.connect().await;
    while server.streams.lock().expect("no panic").is_empty() {
        tokio::task::yield_now().await;
    }
    server.notice(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    let lists = |log: &Vec<String>| log.iter().filter(|line| line.ends_with("tools/list")).count() > 1;
    server.log.subscribe().wait_for(lists).await.expect("the server lives");
    server.streams.lock().expect("no panic").clear();
    server.wait_for("GET /mcp after notice-1").await;
    bench.servers.close().await;
}
