//! Spans and metrics as a collector gets them, and that nothing about a collector holds up a run.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use pith_testkit::{Host, HostBuilder, ModelServer, Output, Script, TempHome, Turn};
use serde_json::{Value, json};

use crate::mcp;
use crate::support::{Scene, texts};

/// However busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// What a collector answers.
#[derive(Clone, Copy)]
enum Answer {
    Status(u16),
    /// Nothing, ever.
    Silence,
}

/// What a collector was sent.
struct Request {
    path: String,
    headers: String,
    body: Value,
}

/// A collector that takes OTLP over HTTP as JSON.
struct Collector {
    port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
    /// Told of each request.
    news: Arc<Condvar>,
}

impl Collector {
    fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let news: Arc<Condvar> = Arc::default();
        let (log, told) = (requests.clone(), news.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, told) = (log.clone(), told.clone());
                thread::spawn(move || serve(stream, answer, &log, &told));
            }
        });
        Collector { port, requests, news }
    }

    /// What tells pith of the collector.
    fn variables(&self) -> [(&'static str, String); 3] {
        let address = format!("http://127.0.0.1:{}", self.port);
        let fixed = |name, value: &str| (name, value.to_owned());
        let protocol = fixed("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
        [fixed("PITH_OTEL", "1"), ("OTEL_EXPORTER_OTLP_ENDPOINT", address), protocol]
    }

    fn configure(&self, builder: HostBuilder) -> HostBuilder {
        let builder = self.variables().iter().fold(builder, |builder, (name, value)| builder.env(name, value));
        builder
            // What is sent at once need not be sent within the second that the end of pith waits for it.
            .env("OTEL_BSP_SCHEDULE_DELAY", "1")
            .env("OTEL_METRIC_EXPORT_INTERVAL", "50")
    }

    /// Waits until so many pieces of work have arrived, and what was measured of them.
    fn wait(&self, n_agents: usize) {
        let start = Instant::now();
        let has_arrived = || {
            let is_measured = self.metrics().iter().any(|name| name == "gen_ai.invoke_agent.duration");
            is_measured && named(&self.spans(), "invoke_agent").len() >= n_agents
        };
        while !has_arrived() {
            assert!(start.elapsed() < PATIENCE, "{:?}", names(&self.spans()));
            // Given up as soon as something arrives.
            let seen = self.requests.lock().expect("no panic");
            drop(self.news.wait_timeout(seen, Duration::from_secs(1)).expect("no panic"));
        }
    }

    fn bodies(&self, path: &str) -> Vec<Value> {
        let requests = self.requests.lock().expect("no panic");
        requests.iter().filter(|request| request.path == path).map(|request| request.body.clone()).collect()
    }

    /// All spans, in the order of their beginning.
    fn spans(&self) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        for body in self.bodies("/v1/traces") {
            for resource in list(&body["resourceSpans"]) {
                for scope in list(&resource["scopeSpans"]) {
                    assert_eq!(scope["schemaUrl"], "https://opentelemetry.io/schemas/1.42.0");
                    spans.extend(list(&scope["spans"]).into_iter().map(Span));
                }
            }
        }
        spans.sort_by_key(|span| span.0["startTimeUnixNano"].as_str().and_then(|time| time.parse::<u64>().ok()));
        spans
    }

    fn metrics(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for body in self.bodies("/v1/metrics") {
            for resource in list(&body["resourceMetrics"]) {
                for scope in list(&resource["scopeMetrics"]) {
                    names.extend(list(&scope["metrics"]).iter().map(|metric| text(&metric["name"])));
                }
            }
        }
        names.sort();
        names.dedup();
        names
    }
}

fn serve(stream: TcpStream, answer: Answer, log: &Mutex<Vec<Request>>, news: &Condvar) {
    let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let (mut n_bytes, mut headers) = (0, String::new());
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                n_bytes = value.trim().parse().expect("a number");
            }
            if line == "\r\n" {
                break;
            }
            headers.push_str(&line);
        }
        let mut body = vec![0; n_bytes];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let body = serde_json::from_slice(&body).expect("JSON");
        log.lock().expect("no panic").push(Request { path, headers, body });
        news.notify_all();
        match answer {
            Answer::Status(status) => {
                let head = format!(
                    "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nRetry-After: 0\r\nContent-Length: 2\r\n\r\n{{}}"
                );
                if (&stream).write_all(head.as_bytes()).is_err() {
                    return;
                }
            }
            Answer::Silence => {}
        }
    }
}

struct Span(Value);

impl Span {
    fn name(&self) -> String {
        text(&self.0["name"])
    }

    fn id(&self) -> String {
        text(&self.0["spanId"])
    }

    fn parent(&self) -> String {
        text(&self.0["parentSpanId"])
    }

    fn attribute(&self, name: &str) -> Value {
        let found = list(&self.0["attributes"]).into_iter().find(|attribute| attribute["key"] == name);
        let value = found.map_or(Value::Null, |attribute| attribute["value"].clone());
        let inner = value.as_object().and_then(|value| value.values().next().cloned());
        inner.unwrap_or_default()
    }
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn names(spans: &[Span]) -> Vec<String> {
    spans.iter().map(Span::name).collect()
}

fn named<'s>(spans: &'s [Span], start: &str) -> Vec<&'s Span> {
    spans.iter().filter(|span| span.name().starts_with(start)).collect()
}

fn prompt(scene: &mut Scene, traceparent: &str) {
    scene.command(json!({"type": "prompt", "message": "go", "traceparent": traceparent}));
    scene.host.wait_type("agent_settled");
}

fn with_command(command: &str) -> Script {
    Script::of([Turn::call("bash", json!({"command": command})), Turn::text("done")])
}

#[test]
fn work_is_one_trace_below_the_place_that_the_host_names() {
    let collector = Collector::start(Answer::Status(200));
    let mut scene = Scene::with(with_command("echo place=$TRACEPARENT"), |builder| {
        collector.configure(builder).env("TRACEPARENT", PARENT)
    });
    prompt(&mut scene, "00-11111111111111111111111111111111-2222222222222222-01");
    let session = text(&scene.state()["sessionId"]);
    let shown = texts(&scene.tool_results()[0]["content"]);
    collector.wait(1);
    scene.finish();
    let spans = collector.spans();
    assert!(spans.iter().all(|span| span.0["traceId"] == "11111111111111111111111111111111"), "{:?}", names(&spans));
    let agent = named(&spans, "invoke_agent pith")[0];
    assert_eq!(agent.parent(), "2222222222222222");
    assert_eq!(agent.attribute("gen_ai.conversation.id"), session);
    assert_eq!(agent.attribute("gen_ai.operation.name"), "invoke_agent");
    let (chats, tools) = (named(&spans, "chat "), named(&spans, "execute_tool bash"));
    assert_eq!((chats.len(), tools.len()), (2, 1), "{:?}", names(&spans));
    assert!(chats.iter().chain(&tools).all(|span| span.parent() == agent.id()));
    // A client, which is 3, and parts of pith itself, which are 1.
    assert_eq!((&chats[0].0["kind"], &tools[0].0["kind"], &agent.0["kind"]), (&json!(3), &json!(1), &json!(1)));
    assert_eq!(chats[0].attribute("gen_ai.response.finish_reasons")["values"][0]["stringValue"], "tool_call");
    assert_eq!(chats[0].attribute("gen_ai.provider.name"), "mock-anthropic");
    assert_eq!(chats[0].attribute("server.address"), "127.0.0.1");
    let tokens = |span: &Span, name: &str| text(&span.attribute(name)).parse::<u64>().expect(name);
    let sum: u64 = chats.iter().map(|chat| tokens(chat, "gen_ai.usage.output_tokens")).sum();
    assert_eq!(tokens(agent, "gen_ai.usage.output_tokens"), sum);
    assert_eq!(tools[0].attribute("pith.sandbox.profile"), "off");
    assert_eq!(tools[0].attribute("gen_ai.tool.call.arguments"), Value::Null, "no content unless asked for");
    assert_eq!(shown.trim(), format!("place=00-11111111111111111111111111111111-{}-01", tools[0].id()));
    let wanted = [
        "gen_ai.client.operation.duration",
        "gen_ai.client.operation.time_to_first_chunk",
        "gen_ai.client.token.usage",
        "gen_ai.execute_tool.duration",
        "gen_ai.invoke_agent.duration",
    ];
    assert_eq!(collector.metrics(), wanted);
}

#[test]
fn each_attempt_has_a_span() {
    let collector = Collector::start(Answer::Status(200));
    let server = ModelServer::start(Script::of([Turn::overloaded(), Turn::text("done")]));
    let home = TempHome::for_server(&server);
    home.write_settings(&json!({"retry": {"baseDelayMs": 1}}));
    let mut scene = Scene::in_home(server, home, |builder| collector.configure(builder).env("TRACEPARENT", PARENT));
    scene.run("go");
    collector.wait(1);
    scene.finish();
    let spans = collector.spans();
    assert!(spans.iter().all(|span| span.0["traceId"] == TRACE), "{:?}", names(&spans));
    let chats = named(&spans, "chat ");
    let errors: Vec<Value> = chats.iter().map(|chat| chat.attribute("error.type")).collect();
    assert_eq!(errors, [json!("overloaded"), Value::Null]);
    assert_eq!(named(&spans, "invoke_agent")[0].attribute("error.type"), Value::Null);
}

#[test]
fn content_goes_along_only_if_asked_for_and_without_keys() {
    let collector = Collector::start(Answer::Status(200));
    let mut scene = Scene::with(with_command("echo the-key-is mock-key"), |builder| {
        collector.configure(builder).env("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    });
    scene.run("say it");
    collector.wait(1);
    scene.finish();
    let spans = collector.spans();
    let (chats, tool) = (named(&spans, "chat "), named(&spans, "execute_tool")[0]);
    assert!(text(&chats[0].attribute("gen_ai.input.messages")).contains("say it"));
    assert!(text(&chats[1].attribute("gen_ai.output.messages")).contains("done"));
    assert!(text(&tool.attribute("gen_ai.tool.call.arguments")).contains("the-key-is"));
    // The key of the model.
    assert!(spans.iter().all(|span| !span.0.to_string().contains("mock-key")));
    assert!(text(&tool.attribute("gen_ai.tool.call.result")).contains("the-key-is [redacted]"));
    let sizes = spans.iter().flat_map(|span| list(&span.0["attributes"]));
    for attribute in sizes {
        let value = text(&attribute["value"]["stringValue"]);
        assert!(value.len() <= 8 << 10, "{} has {} bytes", attribute["key"], value.len());
    }
}

#[test]
fn a_malformed_place_is_ignored_and_told_once() {
    let collector = Collector::start(Answer::Status(200));
    let mut scene = Scene::with(Script::of([Turn::text("a"), Turn::text("b")]), |builder| collector.configure(builder));
    prompt(&mut scene, "nonsense");
    prompt(&mut scene, "00-zz");
    let found = list(&scene.host.data(json!({"type": "get_diagnostics"}))["diagnostics"]);
    let told: Vec<&Value> = found.iter().filter(|one| one["code"] == "telemetry_traceparent").collect();
    assert_eq!(told.len(), 1, "{found:?}");
    assert_eq!(
        told[0]["message"],
        "prompt: traceparent is malformed and ignored: \"nonsense\"; expected 00-TRACE-SPAN-FLAGS"
    );
    collector.wait(2);
    scene.finish();
    let spans = collector.spans();
    let parents: Vec<String> = named(&spans, "invoke_agent").iter().map(|span| span.parent()).collect();
    assert_eq!(parents, ["", ""]);
}

#[test]
fn no_collector_holds_up_a_run() {
    let closed = TcpListener::bind(("127.0.0.1", 0)).expect("a free port").local_addr().expect("an address").port();
    let down = Collector { port: closed, requests: Arc::default(), news: Arc::default() };
    let answers = [Answer::Silence, Answer::Status(500), Answer::Status(429), Answer::Status(503)];
    for collector in std::iter::once(down).chain(answers.map(Collector::start)) {
        let mut scene = Scene::with(with_command("echo hello"), |builder| collector.configure(builder));
        scene.run("go");
        assert_eq!(texts(&scene.tool_results()[0]["content"]).trim(), "hello");
        scene.finish();
    }
}

#[test]
fn a_protocol_that_is_not_built_in_switches_telemetry_off() {
    let collector = Collector::start(Answer::Status(200));
    let mut scene = Scene::with(Script::of([Turn::text("done")]), |builder| {
        collector.configure(builder).env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    });
    scene.run("go");
    let found = list(&scene.host.data(json!({"type": "get_diagnostics"}))["diagnostics"]);
    let told: Vec<&Value> = found.iter().filter(|one| one["code"] == "telemetry").collect();
    assert_eq!(
        told[0]["message"],
        "OTEL_EXPORTER_OTLP_PROTOCOL \"grpc\" is not supported; use \"http/json\" or \"http/protobuf\""
    );
    scene.finish();
    assert!(collector.requests.lock().expect("no panic").is_empty());
}

#[test]
fn variables_of_others_switch_nothing_on() {
    let collector = Collector::start(Answer::Status(200));
    let mut scene = Scene::with(with_command("echo place=$TRACEPARENT"), |builder| {
        collector.configure(builder).env("PITH_OTEL", "").env("TRACEPARENT", "as it was")
    });
    prompt(&mut scene, "nonsense");
    assert_eq!(texts(&scene.tool_results()[0]["content"]).trim(), "place=as it was");
    let found = scene.host.data(json!({"type": "get_diagnostics"}));
    assert!(!found.to_string().contains("telemetry"), "{found}");
    let threads = std::fs::read_dir(format!("/proc/{}/task", scene.host.pid())).map(|tasks| {
        tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok()).collect::<String>()
    });
    assert!(!threads.unwrap_or_default().contains("telemetry"));
    scene.finish();
    assert!(collector.requests.lock().expect("no panic").is_empty());
}

#[test]
fn the_setting_of_the_user_switches_it_on() {
    let collector = Collector::start(Answer::Status(200));
    let server = ModelServer::start(Script::of([Turn::text("done")]));
    let home = TempHome::for_server(&server);
    home.write_settings(&json!({"telemetry": {"enabled": true}}));
    let mut scene = Scene::in_home(server, home, |builder| collector.configure(builder).env("PITH_OTEL", ""));
    scene.run("go");
    collector.wait(1);
    scene.finish();
    assert_eq!(named(&collector.spans(), "invoke_agent").len(), 1);
}

#[test]
fn servers_know_their_place_and_what_they_ask_the_model_is_part_of_the_work() {
    let collector = Collector::start(Answer::Status(200));
    let (model, home, server) = mcp::home_answering(
        [Turn::call("mcp__shell__wait", json!({"sample": true})), Turn::text("four"), Turn::text("done")],
        |server| json!({"shell": {"command": "sh", "args": [server], "sampling": "allow"}}),
    );
    let mut scene = Scene::in_home(model, home, |builder| collector.configure(builder).env("TRACEPARENT", PARENT));
    scene.run("go");
    let log = mcp::log(&server, "log");
    collector.wait(1);
    scene.finish();
    let spans = collector.spans();
    let agent = named(&spans, "invoke_agent")[0].id();
    let (chats, tools) = (named(&spans, "chat "), named(&spans, "execute_tool"));
    assert_eq!((chats.len(), tools.len()), (3, 1), "{:?}", names(&spans));
    assert!(chats.iter().chain(&tools).all(|span| span.parent() == agent), "{:?}", names(&spans));
    assert!(chats.iter().all(|chat| chat.attribute("error.type") == Value::Null), "each has had its answer");
    assert_eq!(tools[0].attribute("gen_ai.tool.type"), "extension");
    let frames = log.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let calls: Vec<Value> = frames.filter(|frame: &Value| frame["method"] == "tools/call").collect();
    assert_eq!(calls.len(), 1, "{log}");
    assert_eq!(calls[0]["params"]["_meta"]["traceparent"], format!("00-{TRACE}-{}-01", tools[0].id()));
}

#[test]
fn what_extensions_ask_the_model_is_part_of_the_work_if_there_is_some() {
    let collector = Collector::start(Answer::Status(200));
    let server = ModelServer::start(Script::of([
        Turn::call("consult", json!({})),
        Turn::text("yes"),
        Turn::text("done"),
        Turn::text("outside"),
    ]));
    let home = TempHome::for_server(&server);
    let source = r#"export default (pi) => {
        const consult = async (ctx) => {
            const asked = { messages: [{ role: "user", content: "well?", timestamp: 1 }] };
            const answer = await ctx.modelRegistry.complete({ provider: "mock-anthropic", id: "claude-mock" }, asked);
            return answer.content.map((block) => block.text).join("");
        };
        pi.registerTool({ name: "consult", label: "Consult", description: "Asks", parameters: { type: "object", properties: {} },
            execute: async (id, params, signal, onUpdate, ctx) => ({ content: [{ type: "text", text: await consult(ctx) }] }) });
        pi.registerCommand("consult", { handler: async (args, ctx) => ctx.ui.notify(await consult(ctx)) });
    };"#;
    home.write_agent_file("extensions/consult.ts", source);
    let mut scene = Scene::in_home(server, home, |builder| collector.configure(builder));
    scene.run("go");
    assert_eq!(texts(&scene.tool_results()[0]["content"]), "yes");
    scene.host.send(json!({"type": "prompt", "message": "/consult"}));
    scene.host.wait(|frame| frame["method"] == "notify" && frame["message"] == "outside");
    collector.wait(1);
    scene.finish();
    let spans = collector.spans();
    let agent = named(&spans, "invoke_agent")[0];
    let parents: Vec<String> = named(&spans, "chat ").iter().map(|span| span.parent()).collect();
    assert_eq!(parents, [&agent.id(), &agent.id(), &agent.id(), ""], "{:?}", names(&spans));
    let tokens = |span: &Span| text(&span.attribute("gen_ai.usage.output_tokens")).parse::<u64>().expect("tokens");
    let sum: u64 = named(&spans, "chat ")[..3].iter().map(|chat| tokens(chat)).sum();
    assert_eq!(tokens(agent), sum);
}

/// Runs a mode of pith until its last spans have come, which may take longer than pith waits for them.
fn flushed(mode: &str, run: impl Fn(&Collector, &TempHome)) {
    for _ in 0..20 {
        let collector = Collector::start(Answer::Status(200));
        let home = TempHome::new();
        run(&collector, &home);
        if !named(&collector.spans(), "invoke_agent").is_empty() {
            return;
        }
    }
    panic!("{mode}: what was left at the end was never sent");
}

#[test]
fn what_is_left_at_the_end_is_sent_in_every_mode() {
    // Sent at the end, or never.
    let late = [("OTEL_BSP_SCHEDULE_DELAY", "600000"), ("OTEL_METRIC_EXPORT_INTERVAL", "600000")];
    for mode in ["-p", "--json"] {
        flushed(mode, |collector, home| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_pith"));
            command.args([mode, "--model", "scripted/tour", "hi"]).env_clear().envs(home.environment());
            let output = Output::of(command.envs(collector.variables()).envs(late).current_dir(home.work()));
            assert_eq!(output.code, 0, "{output:?}");
        });
    }
    let configure = |builder: HostBuilder, collector: &Collector, home: &TempHome| {
        let builder =
            collector.variables().iter().fold(builder.home(home), |builder, (name, value)| builder.env(name, value));
        late.iter().fold(builder.args(["--model", "scripted/tour"]), |builder, (name, value)| builder.env(name, value))
    };
    flushed("rpc", |collector, home| {
        let builder = Host::builder(env!("CARGO_BIN_EXE_pith")).args(["--mode", "rpc"]);
        let mut host = configure(builder, collector, home).spawn();
        host.data(json!({"type": "prompt", "message": "hi"}));
        host.wait_type("agent_settled");
        host.finish();
    });
    flushed("acp", |collector, home| {
        let mut host = configure(Host::builder(env!("CARGO_BIN_EXE_pith")).args(["acp"]), collector, home).spawn();
        let mut ask = |id: u64, method: &str, params: Value| {
            host.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
            host.wait(|frame| frame["id"] == id && frame.get("result").is_some())["result"].clone()
        };
        ask(1, "initialize", json!({"protocolVersion": 1}));
        let session = ask(2, "session/new", json!({"cwd": home.work(), "mcpServers": []}))["sessionId"].clone();
        ask(3, "session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]}));
        host.finish();
    });
}

#[test]
fn variables_say_who_reports_and_headers_are_keys() {
    let collector = Collector::start(Answer::Status(200));
    let server = ModelServer::start(with_command("echo header=$OTEL_EXPORTER_OTLP_HEADERS state=$TRACESTATE"));
    let home = TempHome::for_server(&server);
    home.write_settings(&json!({"secrets": {"enabled": true}}));
    let mut scene = Scene::in_home(server, home, |builder| {
        let builder = collector.configure(builder).env("TRACEPARENT", PARENT).env("TRACESTATE", "vendor=place");
        let builder = builder.env("OTEL_SERVICE_NAME", "my-agent").env("OTEL_RESOURCE_ATTRIBUTES", "team=blue");
        builder.env("OTEL_EXPORTER_OTLP_HEADERS", "x-collector-key=collector-key-4711")
    });
    scene.run("go");
    assert_eq!(
        texts(&scene.tool_results()[0]["content"]).trim(),
        "header=x-collector-key=[redacted] state=vendor=place"
    );
    collector.wait(1);
    scene.finish();
    let requests = collector.requests.lock().expect("no panic");
    for request in requests.iter() {
        assert!(request.headers.contains("x-collector-key: collector-key-4711"), "{}", request.headers);
    }
    let traces = requests.iter().find(|request| request.path == "/v1/traces").expect("spans");
    let resource = traces.body["resourceSpans"][0]["resource"]["attributes"].to_string();
    assert!(resource.contains("my-agent") && resource.contains("team") && resource.contains("blue"), "{resource}");
}

#[test]
fn a_sampler_may_leave_all_traces_out() {
    let collector = Collector::start(Answer::Status(200));
    let mut scene = Scene::with(Script::of([Turn::text("done")]), |builder| {
        collector.configure(builder).env("OTEL_TRACES_SAMPLER", "always_off")
    });
    scene.run("go");
    let start = Instant::now();
    // Metrics are not sampled, and come after the spans would have.
    while !collector.metrics().iter().any(|name| name == "gen_ai.invoke_agent.duration") {
        assert!(start.elapsed() < PATIENCE);
        let seen = collector.requests.lock().expect("no panic");
        drop(collector.news.wait_timeout(seen, Duration::from_secs(1)).expect("no panic"));
    }
    scene.finish();
    assert!(collector.bodies("/v1/traces").is_empty());
}
