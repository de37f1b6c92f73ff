//! Sign-in to a server that is its own authorization server: registration, code with PKCE, renewal, sign-out.

use std::future::pending;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use pith_agent::ToolContext;
use pith_mcp::{DeviceCode, Means, State};
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::bench::{Bench, text};
use crate::http_server::{Request, full, head, read_request};

/// What is different about an authorization server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Good,
    /// Calls itself something else.
    OtherIssuer,
    /// Its metadata speaks for another server.
    OtherResource,
    NoRegistration,
    /// Its tokens end within a minute.
    ShortLived,
    /// Takes device codes; the user is there at the third question.
    Devices,
    /// Made before there was metadata of authorization servers.
    NoMetadata,
    /// Answers to renewals when the test lets it.
    SlowRenewal,
    /// Its tool needs more than it says before.
    NeedsMore,
}

/// A server and its authorization server in this process.
struct Guarded {
    kind: Kind,
    address: String,
    /// Where its authorization server is.
    authority: String,
    /// The number of the token that is accepted.
    accepted: AtomicUsize,
    /// The number of the last token that was given out.
    given: AtomicUsize,
    /// What the page was opened with.
    page: Mutex<Vec<(String, String)>>,
    log: Mutex<Vec<String>>,
    /// Told when a renewal has come.
    renewal: Notify,
    /// Told when it may be answered.
    release: Notify,
}

impl Guarded {
    async fn start(kind: Kind) -> Arc<Guarded> {
        Guarded::start_below(kind, None).await
    }

    /// Starts a server whose authorization server is another one.
    async fn start_below(kind: Kind, authority: Option<&Guarded>) -> Arc<Guarded> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let server = Arc::new(Guarded {
            kind,
            authority: authority.map_or_else(|| address.clone(), |authority| authority.address.clone()),
            address,
            accepted: AtomicUsize::new(1),
            given: AtomicUsize::new(0),
            page: Mutex::default(),
            log: Mutex::default(),
            renewal: Notify::new(),
            release: Notify::new(),
        });
        let serving = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serving.clone().serve(stream));
            }
        });
        server
    }

    fn bench(&self, oauth: Value) -> Bench {
        Bench::new(json!({"s": {"url": format!("{}/mcp", self.address), "oauth": oauth}}))
    }

    async fn serve(self: Arc<Self>, stream: TcpStream) {
        let (reader, mut writer) = stream.into_split();
        let mut reader = BufReader::new(reader);
        while let Some(request) = read_request(&mut reader).await {
            self.log.lock().expect("no panic").push(format!("{} {} {}", request.method, request.path, request.text));
            if self.answer(&request, &mut writer).await.is_err() {
                return;
            }
        }
    }

    async fn answer(&self, request: &Request, writer: &mut (impl AsyncWriteExt + Unpin)) -> std::io::Result<()> {
        let address = &self.address;
        let (status, body) = match (request.method.as_str(), request.path.as_str()) {
            ("POST", "/mcp") => return self.serve_mcp(request, writer).await,
            ("GET", "/prm") => {
                let resource = if self.kind == Kind::OtherResource { "https://example.com/" } else { address };
                ("200 OK", json!({"resource": resource, "authorization_servers": [self.authority]}))
            }
            ("GET", "/named-by-the-user") => ("200 OK", self.metadata()),
            ("GET", "/.well-known/oauth-authorization-server")
                if self.kind != Kind::NoMetadata && self.authority == self.address =>
            {
                ("200 OK", self.metadata())
            }
            ("POST", "/register") => ("201 Created", json!({"client_id": "client-1"})),
            ("POST", "/token") => {
                if self.kind == Kind::SlowRenewal && request.text.contains("grant_type=refresh_token") {
                    self.renewal.notify_one();
                    self.release.notified().await;
                }
                self.token(request)
            }
            ("POST", "/device") => ("200 OK", self.device_code()),
            _ => ("404 Not Found", json!({})),
        };
        full(writer, status, "application/json", &body.to_string()).await
    }

    fn metadata(&self) -> Value {
        let at = |path: &str| format!("{}{path}", self.address);
        let issuer = if self.kind == Kind::OtherIssuer { "https://example.com".to_owned() } else { at("") };
        let mut metadata = json!({"issuer": issuer, "authorization_endpoint": at("/authorize"),
            "token_endpoint": at("/token"), "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true});
        if self.kind == Kind::Devices {
            metadata["device_authorization_endpoint"] = json!(at("/device"));
        }
        if self.kind != Kind::NoRegistration {
            metadata["registration_endpoint"] = json!(at("/register"));
        }
        metadata
    }

    fn device_code(&self) -> Value {
        json!({"device_code": "device-1", "user_code": "WDJB-MJHT", "verification_uri": format!("{}/device", self.address),
            "expires_in": 600, "interval": 0})
    }

    fn token(&self, request: &Request) -> (&'static str, Value) {
        let form = url::form_urlencoded::parse(request.text.as_bytes()).into_owned();
        let form: Vec<(String, String)> = form.collect();
        let value = |name: &str| form.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str());
        let page = self.page.lock().expect("no panic").clone();
        let opened = |name: &str| page.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str());
        let given = self.given.load(Ordering::SeqCst);
        let is_good = match value("grant_type") {
            "authorization_code" => {
                let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, value("code_verifier").as_bytes()));
                value("code") == "code-1"
                    && challenge == opened("code_challenge")
                    && value("redirect_uri") == opened("redirect_uri")
                    && value("client_id") == opened("client_id")
                    && value("resource") == opened("resource")
            }
            "client_credentials" => {
                let proof = format!("Basic {}", STANDARD.encode("machine:secret-of-the-machine"));
                request.header("authorization") == Some(&proof) && value("resource") == self.address
            }
            "refresh_token" => value("refresh_token") == format!("refresh-{given}"),
            "urn:ietf:params:oauth:grant-type:device_code" => {
                let asked = self.log.lock().expect("no panic").iter().filter(|line| line.contains("device-1")).count();
                if asked < 3 {
                    return ("400 Bad Request", json!({"error": "authorization_pending"}));
                }
                value("device_code") == "device-1" && value("client_id") == "client-1"
            }
            _ => false,
        };
        if !is_good {
            return ("400 Bad Request", json!({"error": "invalid_grant", "error_description": "no such grant"}));
        }
        let (number, seconds) = (given + 1, if self.kind == Kind::ShortLived { 30 } else { 3600 });
        self.given.store(number, Ordering::SeqCst);
        let token = json!({"access_token": format!("token-{number}"), "refresh_token": format!("refresh-{number}"),
            "token_type": "Bearer", "expires_in": seconds});
        ("200 OK", token)
    }

    async fn serve_mcp(&self, request: &Request, writer: &mut (impl AsyncWriteExt + Unpin)) -> std::io::Result<()> {
        let expected = format!("Bearer token-{}", self.accepted.load(Ordering::SeqCst));
        if request.header("authorization") != Some(&expected) {
            let challenge =
                format!("www-authenticate: Bearer resource_metadata=\"{}/prm\", scope=\"tools\"", self.address);
            return head(writer, "401 Unauthorized", &["content-length: 0", &challenge]).await;
        }
        let result = match request.body["method"].as_str().unwrap_or_default() {
            "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}),
            "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {}}]}),
            "tools/call" if self.kind == Kind::NeedsMore && !self.asked_scope().contains("write") => {
                let challenge = "www-authenticate: Bearer error=\"insufficient_scope\", scope=\"write\"";
                return head(writer, "403 Forbidden", &["content-length: 0", challenge]).await;
            }
            "tools/call" => json!({"content": [{"type": "text", "text": "hello"}]}),
            called if called.starts_with("notifications/") => {
                return head(writer, "202 Accepted", &["content-length: 0"]).await;
            }
            _ => return full(writer, "400 Bad Request", "text/plain", "what?").await,
        };
        let answer = json!({"jsonrpc": "2.0", "id": request.body["id"], "result": result});
        full(writer, "200 OK", "application/json", &answer.to_string()).await
    }

    /// What the page was opened to ask for.
    fn asked_scope(&self) -> String {
        let page = self.page.lock().expect("no panic");
        page.iter().find(|(key, _)| key == "scope").map_or_else(String::new, |(_, scope)| scope.clone())
    }

    /// The entry of the server in the file of sign-ins.
    fn stored(&self, bench: &Bench) -> Value {
        let all: Value = serde_json::from_slice(&std::fs::read(file_of(bench)).expect("kept")).expect("JSON");
        all[format!("mcp__s|{}/mcp", self.address)].clone()
    }

    /// Stores an entry for the server, and nothing else.
    fn store(&self, bench: &Bench, entry: &Value) {
        let key = format!("mcp__s|{}/mcp", self.address);
        std::fs::write(file_of(bench), json!({ key: entry }).to_string()).expect("written");
    }

    /// Makes a stored sign-in one that does not say where it was made, as those of older versions.
    fn forget_discovery(&self, bench: &Bench) {
        let mut entry = self.stored(bench);
        entry.as_object_mut().expect("an object").remove("discovery").expect("it was there");
        self.store(bench, &entry);
    }

    fn log(&self) -> String {
        self.log.lock().expect("no panic").join("\n")
    }

    /// Signs in, with a browser that comes back to the address of the callback with these values.
    async fn login(self: &Arc<Self>, bench: &Bench, back: &[(&str, &str)]) -> Result<(), String> {
        let server = self.clone();
        let back: Vec<(String, String)> = back.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let mut browse = move |page: &str| {
            let page = Url::parse(page).expect("an address");
            assert_eq!(page.path(), "/authorize");
            let opened: Vec<(String, String)> = page.query_pairs().into_owned().collect();
            *server.page.lock().expect("no panic") = opened.clone();
            let value = |name: &str| opened.iter().find(|(key, _)| key == name).expect("given").1.clone();
            let mut target = Url::parse(&value("redirect_uri")).expect("an address");
            target.query_pairs_mut().append_pair("state", &value("state")).extend_pairs(&back);
            tokio::spawn(browse_to(target));
        };
        let mut never = pin!(pending());
        bench.servers.login("s", Means::Browser { show: &mut browse, pasted: &mut never }).await
    }
}

/// Visits other pages of the callback first, which must not disturb it, and then the right one.
async fn browse_to(target: Url) {
    let port = target.port().expect("a port");
    // Browsers open connections in advance, which say nothing.
    let _in_advance = TcpStream::connect(("127.0.0.1", port)).await.expect("somebody listens");
    let mut wrong = target.clone();
    wrong.set_query(Some("code=stolen&state=other"));
    let visits = [("/favicon.ico".to_owned(), "404"), (path_of(&wrong), "404"), (path_of(&target), "200")];
    for (path, status) in visits {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("somebody listens");
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {answer}");
    }
}

fn file_of(bench: &Bench) -> PathBuf {
    bench.directory.path().join("agent/mcp-auth.json")
}

#[cfg(unix)]
fn mode_of(file: &Path) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(file).expect("there").permissions()) & 0o777
}

fn path_of(url: &Url) -> String {
    format!("{}?{}", url.path(), url.query().unwrap_or_default())
}

#[tokio::test]
async fn somebody_signs_in_the_token_is_renewed_and_forgotten() {
    let server = Guarded::start(Kind::Good).await;
    let bench = server.bench(Value::Null);
    bench.connect().await;
    assert_eq!((bench.state(), &*bench.error()), (State::NeedsAuth, "wants a sign-in (401): pith mcp login s"));
    assert_eq!(bench.servers.diagnostics()[0].code, "mcp_auth");
    server.login(&bench, &[("code", "code-1"), ("iss", &server.address)]).await.expect("signed in");
    let opened = server.page.lock().expect("no panic").clone();
    assert!(opened.contains(&("scope".to_owned(), "tools".to_owned())), "{opened:?}");
    assert!(opened.contains(&("resource".to_owned(), server.address.clone())), "{opened:?}");
    let stored = || server.stored(&bench);
    assert_eq!(stored()["tokens"]["access_token"], "token-1");
    assert_eq!(stored()["clientInformation"]["client_id"], "client-1");
    #[cfg(unix)]
    assert_eq!(mode_of(&file_of(&bench)), 0o600);
    bench.connect().await;
    assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()));
    // Whatever others did to the file, it is private again when tokens are written.
    #[cfg(unix)]
    std::fs::set_permissions(file_of(&bench), std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("changed");
    // The token is refused from now on: it is renewed, and the call is made.
    server.accepted.store(2, Ordering::SeqCst);
    assert_eq!(text(&bench.call("echo", json!({})).await), "hello");
    assert_eq!(stored()["tokens"]["refresh_token"], "refresh-2");
    #[cfg(unix)]
    assert_eq!(mode_of(&file_of(&bench)), 0o600);
    assert_eq!(bench.servers.logout("s").await, Ok(true));
    assert_eq!(bench.servers.logout("s").await, Ok(false));
    assert_eq!(text(&bench.call("echo", json!({})).await), "s: wants a sign-in (401)");
    let log = server.log.lock().expect("no panic").join("\n");
    assert!(!log.contains("stolen"), "{log}");
    bench.servers.close().await;
}

#[tokio::test]
async fn somebody_signs_in_with_a_code_for_another_machine() {
    let server = Guarded::start(Kind::Devices).await;
    let bench = server.bench(Value::Null);
    let mut shown = Vec::new();
    let mut show = |begun: &DeviceCode| shown.push(begun.clone());
    bench.servers.login("s", Means::Device { show: &mut show }).await.expect("signed in");
    let page = format!("{}/device", server.address);
    assert_eq!(shown, [DeviceCode { page, code: "WDJB-MJHT".to_owned() }]);
    bench.connect().await;
    assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()));
    let log = server.log.lock().expect("no panic").join("\n");
    assert!(log.contains("device_code\",\"refresh_token\"]"), "{log}");
    bench.servers.close().await;
    let other = Guarded::start(Kind::Good).await;
    let mut show = |_: &DeviceCode| {};
    let refused = other.bench(Value::Null).servers.login("s", Means::Device { show: &mut show }).await;
    let why = "the authorization server takes no device codes: sign in without --device";
    assert_eq!(refused, Err(why.to_owned()));
}

#[tokio::test]
async fn a_token_is_renewed_before_it_ends() {
    let server = Guarded::start(Kind::ShortLived).await;
    let bench = server.bench(Value::Null);
    server.login(&bench, &[("code", "code-1"), ("iss", &server.address)]).await.expect("signed in");
    // The first token has less than a minute: the first request already carries the second one, and so on.
    server.accepted.store(2, Ordering::SeqCst);
    let file = bench.directory.path().join("agent/mcp-auth.json");
    bench.connect().await;
    let stored = std::fs::read_to_string(&file).expect("kept");
    assert!(!stored.contains("token-1\""), "{stored}");
    let log = server.log.lock().expect("no panic").join("\n");
    assert!(log.contains("grant_type=refresh_token&refresh_token=refresh-1"), "{log}");
    bench.servers.close().await;
}

#[tokio::test]
async fn a_sign_in_that_goes_wrong_says_why() {
    let check = async |kind: Kind, back: &[(&str, &str)], why: &str| {
        let server = Guarded::start(kind).await;
        let bench = server.bench(Value::Null);
        let failed = server.login(&bench, back).await.expect_err("refused");
        assert_eq!(failed.replace(&server.address, "ADDRESS"), why);
        assert!(!bench.directory.path().join("agent/mcp-auth.json").exists());
    };
    let refused = [("error", "access_denied"), ("error_description", "not you"), ("iss", "x")];
    check(Kind::Good, &refused, "the browser came back from x, not from ADDRESS").await;
    check(Kind::Good, &[("code", "code-1")], "the browser did not say that it came back from ADDRESS").await;
    let issuer = "the authorization server calls itself https://example.com, not ADDRESS";
    check(Kind::OtherIssuer, &[], issuer).await;
    check(Kind::OtherResource, &[], "its metadata is that of another server: https://example.com/").await;
    check(Kind::NoRegistration, &[], "the authorization server registers no clients: set oauth.clientId").await;
    let server = Guarded::start(Kind::Good).await;
    let bench = server.bench(Value::Null);
    let denied = server.login(&bench, &[("error", "access_denied"), ("iss", &server.address)]).await;
    assert_eq!(denied, Err("the authorization server refused: access_denied".to_owned()));
    let wrong = server.login(&bench, &[("code", "code-2"), ("iss", &server.address)]).await;
    assert_eq!(wrong, Err("the token endpoint: no such grant (400)".to_owned()));
    let program = Bench::with("plain");
    let refused = program.servers.login("s", Means::Token("x".to_owned())).await.expect_err("refused");
    assert_eq!(refused, "s is a program; only servers with a url take a sign-in");
}

#[tokio::test]
async fn a_token_of_the_user_is_kept_and_a_secret_is_needed_for_machines() {
    let server = Guarded::start(Kind::Good).await;
    let bench = server.bench(json!({"clientId": "c"}));
    let without = bench.servers.login("s", Means::ClientCredentials).await.expect_err("refused");
    assert_eq!(without, "oauth: clientId and clientSecret are needed for --client-credentials");
    bench.servers.login("s", Means::Token("token-1".to_owned())).await.expect("kept");
    bench.connect().await;
    assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()));
    bench.servers.close().await;
}

#[tokio::test]
async fn a_refresh_token_goes_only_to_those_who_gave_it() {
    let authority = Guarded::start(Kind::Good).await;
    let server = Guarded::start_below(Kind::Good, Some(&authority)).await;
    let bench = server.bench(Value::Null);
    authority.login(&bench, &[("code", "code-1"), ("iss", &authority.address)]).await.expect("signed in");
    bench.connect().await;
    assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()));
    server.accepted.store(2, Ordering::SeqCst);
    assert_eq!(text(&bench.call("echo", json!({})).await), "hello");
    // A sign-in of an older version: the server says with its refusal who is asked.
    server.forget_discovery(&bench);
    server.accepted.store(3, Ordering::SeqCst);
    assert_eq!(text(&bench.call("echo", json!({})).await), "hello");
    assert_eq!(server.stored(&bench)["discovery"]["authorizationServerUrl"], authority.address);
    assert!(!server.log().contains("refresh"), "{}", server.log());
    bench.servers.close().await;
}

#[tokio::test]
async fn endpoints_that_nobody_named_get_a_refresh_token_only_if_the_sign_in_was_made_there() {
    let server = Guarded::start(Kind::NoMetadata).await;
    let bench = server.bench(Value::Null);
    server.login(&bench, &[("code", "code-1")]).await.expect("signed in");
    bench.connect().await;
    server.accepted.store(2, Ordering::SeqCst);
    assert_eq!(text(&bench.call("echo", json!({})).await), "hello");
    server.forget_discovery(&bench);
    server.accepted.store(3, Ordering::SeqCst);
    assert_eq!(text(&bench.call("echo", json!({})).await), "s: wants a sign-in (401)");
    assert!(!server.log().contains("refresh-2"), "{}", server.log());
    bench.servers.close().await;
}

#[tokio::test]
async fn a_new_sign_in_keeps_no_refresh_token_of_the_last_one() {
    let server = Guarded::start(Kind::Good).await;
    let bench = server.bench(Value::Null);
    server.login(&bench, &[("code", "code-1"), ("iss", &server.address)]).await.expect("signed in");
    bench.servers.login("s", Means::Token("my-own-token".to_owned())).await.expect("kept");
    assert_eq!(server.stored(&bench)["tokens"], json!({"access_token": "my-own-token", "token_type": "Bearer"}));
}

#[tokio::test]
async fn pith_registers_once_unless_its_port_is_taken() {
    let server = Guarded::start(Kind::Good).await;
    let bench = server.bench(Value::Null);
    let back = [("code", "code-1"), ("iss", server.address.as_str())];
    let n_registrations = || server.log().matches("POST /register").count();
    server.login(&bench, &back).await.expect("signed in");
    let registered = server.stored(&bench)["clientInformation"]["redirect_uris"][0].clone();
    server.login(&bench, &back).await.expect("signed in");
    assert_eq!(n_registrations(), 1);
    let port = Url::parse(registered.as_str().expect("a text")).expect("an address").port().expect("a port");
    let taken = TcpListener::bind(("127.0.0.1", port)).await.expect("free again");
    server.login(&bench, &back).await.expect("signed in");
    drop(taken);
    assert_eq!(n_registrations(), 2);
    assert_ne!(server.stored(&bench)["clientInformation"]["redirect_uris"][0], registered);
    // Another authorization server does not know the client.
    let mut entry = server.stored(&bench);
    entry["discovery"]["authorizationServerUrl"] = json!("https://example.com");
    server.store(&bench, &entry);
    server.login(&bench, &back).await.expect("signed in");
    assert_eq!(n_registrations(), 3);
}

#[tokio::test]
async fn refresh_tokens_are_hidden_like_others() {
    let server = Guarded::start(Kind::Good).await;
    let bench = server.bench(Value::Null);
    server.login(&bench, &[("code", "code-1"), ("iss", &server.address)]).await.expect("signed in");
    assert_eq!(bench.secrets.redact("refresh-1"), "[redacted]");
    let mut entry = server.stored(&bench);
    entry["tokens"] = json!({"access_token": "token-0", "refresh_token": "of-another-time"});
    server.store(&bench, &entry);
    bench.connect().await;
    assert_eq!(bench.state(), State::NeedsAuth);
    assert!(server.log().contains("of-another-time"), "{}", server.log());
    assert_eq!(bench.secrets.redact("of-another-time"), "[redacted]");
    bench.servers.close().await;
}

#[tokio::test]
async fn an_aborted_call_does_not_abort_the_renewal_it_waits_for() {
    let server = Guarded::start(Kind::SlowRenewal).await;
    let bench = server.bench(Value::Null);
    server.login(&bench, &[("code", "code-1"), ("iss", &server.address)]).await.expect("signed in");
    bench.connect().await;
    server.accepted.store(2, Ordering::SeqCst);
    let cancel = CancellationToken::new();
    let context = ToolContext { call_id: "1".into(), cancel: cancel.clone(), update: Arc::new(|_| {}), trace: None };
    let abort = async {
        server.renewal.notified().await;
        cancel.cancel();
    };
    let (output, ()) = tokio::join!(bench.tool("mcp__s__echo").run(Map::new(), context), abort);
    assert_eq!(text(&output), "Operation aborted");
    // The authorization server gives the next tokens out once; the next call gets them.
    server.release.notify_one();
    assert_eq!(text(&bench.call("echo", json!({})).await), "hello");
    assert_eq!(server.log().matches("grant_type=refresh_token").count(), 1);
    bench.servers.close().await;
}

#[tokio::test]
async fn several_sessions_renew_a_token_once() {
    let server = Guarded::start(Kind::Good).await;
    let bench = server.bench(Value::Null);
    server.login(&bench, &[("code", "code-1"), ("iss", &server.address)]).await.expect("signed in");
    let entry = json!({"s": {"url": format!("{}/mcp", server.address)}});
    let other = || Bench::sharing(bench.directory.clone(), entry.clone(), None, None, None);
    let others = [other(), other()];
    tokio::join!(bench.connect(), others[0].connect(), others[1].connect());
    // All three find out at once that the token has ended.
    server.accepted.store(2, Ordering::SeqCst);
    let call = async |bench: &Bench| bench.call("echo", json!({})).await;
    let outputs: [_; 3] = tokio::join!(call(&bench), call(&others[0]), call(&others[1])).into();
    assert!(outputs.iter().all(|output| text(output) == "hello"), "{outputs:?}");
    assert_eq!(server.log().matches("grant_type=refresh_token").count(), 1);
    for bench in others.iter().chain([&bench]) {
        bench.servers.close().await;
    }
}

#[tokio::test]
async fn a_machine_signs_in_with_the_secret_of_its_client() {
    let server = Guarded::start(Kind::Good).await;
    let bench = server.bench(json!({"clientId": "machine", "clientSecret": "secret-of-the-machine"}));
    bench.servers.login("s", Means::ClientCredentials).await.expect("signed in");
    bench.connect().await;
    assert_eq!((bench.state(), bench.error()), (State::Ready, String::new()));
    bench.servers.close().await;
}

#[tokio::test]
async fn the_user_may_name_the_metadata_and_the_port_of_the_callback() {
    let server = Guarded::start(Kind::NoMetadata).await;
    let free = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let port = free.local_addr().expect("an address").port();
    let metadata = format!("{}/named-by-the-user", server.address);
    let bench = server.bench(json!({"authServerMetadataUrl": metadata, "callbackPort": port}));
    let back = [("code", "code-1"), ("iss", server.address.as_str())];
    let taken = server.login(&bench, &back).await.expect_err("the port is taken");
    assert!(taken.starts_with(&format!("port {port} of the callback: ")), "{taken}");
    drop(free);
    server.login(&bench, &back).await.expect("signed in");
    let opened = server.page.lock().expect("no panic").clone();
    let redirect = format!("http://127.0.0.1:{port}/callback");
    assert!(opened.contains(&("redirect_uri".to_owned(), redirect)), "{opened:?}");
    // Without metadata nobody would have said that the browser tells where it comes from.
    let silent = server.login(&bench, &[("code", "code-1")]).await.expect_err("refused");
    assert!(silent.starts_with("the browser did not say"), "{silent}");
}

#[tokio::test]
async fn credentials_of_the_entry_come_before_a_sign_in() {
    let server = Guarded::start(Kind::Good).await;
    let bench = server.bench(Value::Null);
    server.login(&bench, &[("code", "code-1"), ("iss", &server.address)]).await.expect("signed in");
    let sent_with = async |more: Value| {
        let mut entry = json!({"url": format!("{}/mcp", server.address)});
        entry.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let bench = Bench::sharing(bench.directory.clone(), json!({ "s": entry }), None, None, None);
        bench.connect().await;
        let state = bench.state();
        bench.servers.close().await;
        state
    };
    assert_eq!(sent_with(json!({})).await, State::Ready, "the sign-in");
    let (right, wrong) = ("Bearer token-1", "Bearer of-somebody");
    assert_eq!(sent_with(json!({"bearerToken": "of-somebody"})).await, State::NeedsAuth);
    let both = |header: &str, token: &str| json!({"headers": {"authorization": header}, "bearerToken": token});
    assert_eq!(sent_with(both(right, "of-somebody")).await, State::Ready);
    assert_eq!(sent_with(both(wrong, "token-1")).await, State::NeedsAuth);
}

#[tokio::test]
async fn a_new_sign_in_asks_for_what_the_last_one_lacked() {
    let server = Guarded::start(Kind::NeedsMore).await;
    let bench = server.bench(Value::Null);
    let back = [("code", "code-1"), ("iss", server.address.as_str())];
    server.login(&bench, &back).await.expect("signed in");
    assert_eq!((server.asked_scope().as_str(), &server.stored(&bench)["tokens"]["scope"]), ("tools", &json!("tools")));
    bench.connect().await;
    assert!(text(&bench.call("echo", json!({})).await).starts_with("s: wants a sign-in (403)"));
    assert_eq!(server.stored(&bench)["missingScope"], "write");
    // It is kept with the sign-in: another process asks for it, too.
    let entry = json!({"s": {"url": format!("{}/mcp", server.address)}});
    let other = Bench::sharing(bench.directory.clone(), entry, None, None, None);
    server.login(&other, &back).await.expect("signed in");
    assert_eq!(server.asked_scope(), "tools write");
    let stored = server.stored(&bench);
    assert_eq!((&stored["tokens"]["scope"], stored.get("missingScope")), (&json!("tools write"), None));
    server.accepted.store(2, Ordering::SeqCst);
    assert_eq!(text(&other.call("echo", json!({})).await), "hello");
    // The client was registered for less, and is registered again.
    let log = server.log();
    let registrations: Vec<&str> = log.lines().filter(|line| line.starts_with("POST /register")).collect();
    assert!(registrations.iter().all(|line| line.contains(r#""application_type":"native""#)), "{registrations:?}");
    assert!(registrations.len() == 2 && registrations[1].contains(r#""scope":"tools write""#), "{registrations:?}");
    for bench in [&bench, &other] {
        bench.servers.close().await;
    }
}
