//! An MCP server for tests, which behaves as its first argument says. Also the supervisor of the servers in them.

use std::io::{self, BufRead, Write};
use std::process::{Command, ExitCode};
use std::time::Duration;

use pith_tools::process::{SUPERVISOR_ARGUMENT, supervisor_main};
use serde_json::{Value, json};

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    if arguments.next_if(|first| first == SUPERVISOR_ARGUMENT).is_some() {
        return supervisor_main(arguments);
    }
    let words: Vec<String> = arguments.filter_map(|word| word.into_string().ok()).collect();
    let behaviour = words.first().map_or("plain", String::as_str);
    // Where the test finds what happened.
    let log = words.get(1).cloned();
    match behaviour {
        "dies" => {
            eprint_line("cannot find the database at secret-token");
            return ExitCode::from(3);
        }
        "silent" => {
            for _ in io::stdin().lock().lines() {}
            return ExitCode::SUCCESS;
        }
        "talks" => {
            (0..200).for_each(|_| write("no frame at all"));
            std::thread::sleep(Duration::from_secs(60));
        }
        "banner" => write("Welcome!\r\n\r\n\u{feff}"),
        "stubborn" => stay(log.as_deref()),
        _ => {}
    }
    Server { behaviour: behaviour.to_owned(), log, n_lists: 0, has_news: false, asking: None, listening: None }.serve()
}

fn write(line: &str) {
    let mut stdout = io::stdout().lock();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

fn eprint_line(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Starts a child that ignores SIGTERM, as this process does from now on.
fn stay(log: Option<&str>) {
    let child = Command::new("sh").args(["-c", "trap '' TERM; while :; do sleep 1; done"]).spawn();
    if let (Ok(child), Some(log)) = (child, log) {
        let _ = std::fs::write(log, child.id().to_string());
    }
}

fn form() -> Value {
    let properties = json!({"name": {"type": "string", "title": "Name"}, "sure": {"type": "boolean"}});
    json!({"message": "Who are you?", "requestedSchema": {"type": "object", "properties": properties, "required": ["name"]}})
}

fn sampling() -> Value {
    json!({"messages": [{"role": "user", "content": {"type": "text", "text": "What is 2 + 2?"}}],
        "systemPrompt": "Be brief.", "maxTokens": 50})
}

fn prompt(params: &Value) -> Value {
    let arguments = &params["arguments"];
    let text = format!("How is the weather in {}? {}", arguments["city"], arguments["note"]);
    json!({"messages": [
        {"role": "user", "content": {"type": "text", "text": text}},
        {"role": "assistant", "content": {"type": "text", "text": "one\ntwo"}},
        {"role": "user", "content": {"type": "resource", "resource": {"uri": "test://a", "text": "inside"}}},
        {"role": "user", "content": {"type": "image", "data": "AA==", "mimeType": "image/png"}},
    ]})
}

fn resources(cursor: Option<&str>) -> Value {
    match cursor {
        None => json!({"nextCursor": "2", "resources": [
            {"uri": "test://a", "name": "a", "mimeType": "text/plain", "_meta": {"x": 1}},
            {"uri": "ui://app", "name": "app"}]}),
        Some(_) => json!({"resources": [{"uri": "test://b", "name": "b"}]}),
    }
}

fn read(uri: &str) -> Result<Value, (i32, String)> {
    match uri {
        "test://a" => Ok(json!({"contents": [{"uri": uri, "text": "the text of a"}]})),
        "test://b" => Ok(json!({"contents": [{"uri": uri, "blob": "AQID", "mimeType": "application/zip"}]})),
        _ => Err((-32002, "no such resource".to_owned())),
    }
}

/// A small schema that is endless to check: each of its references refers on four times.
fn multiplying() -> Value {
    let level = |level: usize| {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        (format!("d{level}"), json!({"anyOf": [next, next, next, next]}))
    };
    let mut levels: serde_json::Map<String, Value> = (0..40).map(level).collect();
    levels.insert("d40".to_owned(), json!({"type": "string"}));
    json!({"$defs": levels, "type": "object", "$ref": "#/$defs/d0"})
}

struct Server {
    behaviour: String,
    log: Option<String>,
    n_lists: usize,
    /// Whether there is a second prompt.
    has_news: bool,
    /// The call that waits for an answer of the user.
    asking: Option<Value>,
    /// The request of a client of the newer era to be told of changes.
    listening: Option<Value>,
}

impl Server {
    fn serve(mut self) -> ExitCode {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
            let method = message["method"].as_str().unwrap_or_default().to_owned();
            self.note(&line);
            let id = message["id"].clone();
            if method.is_empty() && id == "q1" {
                let text = message.get("result").unwrap_or(&message["error"]).to_string();
                let call = self.asking.take().unwrap_or_default();
                self.send(&call, "result", json!({"content": [{"type": "text", "text": text}]}));
            }
            if !id.is_null() && !method.is_empty() {
                match self.answer(&method, &message) {
                    Some(Ok(result)) => self.send(&id, "result", result),
                    Some(Err((code, text))) => self.send(&id, "error", json!({"code": code, "message": text})),
                    None => {}
                }
            }
        }
        self.note("ended");
        if self.behaviour == "stubborn" {
            std::thread::sleep(Duration::from_secs(600));
        }
        ExitCode::SUCCESS
    }

    /// Tells the test what happened.
    fn note(&self, line: &str) {
        if let Some(log) = &self.log
            && self.behaviour != "stubborn"
        {
            let appended = std::fs::OpenOptions::new().append(true).create(true).open(log);
            let _ = appended.and_then(|mut file| writeln!(file, "{line}"));
        }
    }

    fn is_modern(&self) -> bool {
        self.behaviour.starts_with("modern")
    }

    /// Tells the client something, with the request that asked for it.
    fn tell(&self, method: &str, mut params: Value) {
        if let Some(id) = &self.listening {
            params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
        }
        write(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    fn send(&self, id: &Value, member: &str, value: Value) {
        if self.behaviour == "odd" {
            write(&json!({"jsonrpc": "2.0", "id": 4_000_000, "result": {}}).to_string());
            let twice = json!({"jsonrpc": "2.0", "id": id.to_string(), member: value}).to_string();
            write(&twice);
            write(&twice);
        } else {
            write(&json!({"jsonrpc": "2.0", "id": id, member: value}).to_string());
        }
    }

    fn answer(&mut self, method: &str, message: &Value) -> Option<Result<Value, (i32, String)>> {
        let version = if self.behaviour == "future" { "2999-01-01" } else { LEGACY };
        Some(match method {
            "initialize" if self.is_modern() => Err((-32601, "no initialize here".to_owned())),
            "initialize" if self.behaviour == "unlicensed" => Err((-32000, "license expired".to_owned())),
            "initialize" if self.behaviour == "numbered" => Ok(json!({"protocolVersion": 7, "capabilities": null})),
            "initialize" if self.behaviour == "versionless" => Ok(json!({})),
            "initialize" => Ok(json!({
                "protocolVersion": version, "capabilities":
                    {"tools": {"listChanged": true}, "prompts": {"listChanged": true}, "resources": {}, "logging": {}},
                "serverInfo": {"name": "test", "version": "1"}, "instructions": "Be kind.",
            })),
            "server/discover" if self.is_modern() => Ok(json!({
                "supportedVersions": [MODERN], "capabilities": {"tools": {"listChanged": true}}, "resultType": "complete",
                "serverInfo": {"name": "test", "version": "1"}, "ttlMs": 0, "cacheScope": "private",
            })),
            "tools/list" if self.behaviour == "falls" || (self.behaviour == "stumbles" && self.is_first_run()) => {
                std::process::exit(7)
            }
            "tools/list" if self.behaviour == "listless" => return None,
            "tools/list" => Ok(self.tools(message)),
            "prompts/list" if self.behaviour == "odd" => Err((-32601, "not today".to_owned())),
            "prompts/list" if self.has_news => Ok(json!({"prompts": [{"name": "weather"}, {"name": "news"}]})),
            "prompts/list" => Ok(json!({"prompts": [
                {"name": "weather", "description": "Asks for the weather", "arguments": [
                    {"name": "city", "required": true}, {"name": "note"}]},
                {"name": "weather"}, {"title": "nameless"},
            ]})),
            "prompts/get" => Ok(prompt(&message["params"])),
            "resources/list" => Ok(resources(message["params"]["cursor"].as_str())),
            "resources/templates/list" => {
                Ok(json!({"resourceTemplates": [{"uriTemplate": "test://{id}", "name": "t"}]}))
            }
            "resources/read" => return Some(read(message["params"]["uri"].as_str().unwrap_or_default())),
            "tools/call" => return self.call(message),
            "logging/setLevel" => {
                let params = json!({"level": "warning", "logger": "db", "data": {"slow": "secret-token"}});
                write(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}).to_string());
                Ok(json!({}))
            }
            "subscriptions/listen" if self.is_modern() => {
                self.listening = Some(message["id"].clone());
                let filter = &message["params"]["notifications"];
                self.tell("notifications/subscriptions/acknowledged", json!({ "notifications": filter }));
                return None;
            }
            "ping" if self.behaviour == "mute" => return None,
            "ping" => Ok(json!({})),
            other => Err((-32601, format!("no method {other}"))),
        })
    }

    fn tools(&mut self, message: &Value) -> Value {
        self.n_lists += 1;
        let tool = |name: &str| {
            json!({"name": name, "description": format!("Does {name}"), "inputSchema": {"type": "object",
                "properties": {"text": {"type": "string"}}}, "annotations": {"readOnlyHint": true}})
        };
        if self.behaviour == "many" {
            let from: usize = message["params"]["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
            let page: Vec<Value> = (from..from + 100).map(|number| tool(&format!("tool-{number}"))).collect();
            let mut page = json!({"tools": page});
            if from < 400 {
                page["nextCursor"] = json!((from + 100).to_string());
            }
            return page;
        }
        if self.behaviour == "circular" {
            return json!({"tools": [tool(&format!("page-{}", self.n_lists))], "nextCursor": "again"});
        }
        if self.behaviour == "endless" {
            return json!({"tools": [tool(&format!("page-{}", self.n_lists))], "nextCursor": self.n_lists.to_string()});
        }
        if self.behaviour == "multiplies" {
            return json!({"tools": [{"name": "typed", "inputSchema": multiplying(), "outputSchema": multiplying()}]});
        }
        let names =
            ["echo", "environment", "slow", "die", "flood", "fail", "odd", "grow", "ask", "sample", "request", "leave"];
        let mut tools: Vec<Value> = names.iter().map(|name| tool(name)).collect();
        if self.n_lists > 1 && self.behaviour.ends_with("grows") {
            tools.push(tool("more"));
        }
        if self.behaviour == "forgets" && self.is_first_run() {
            tools.push(tool("once"));
        }
        tools.push(json!({"name": "typed", "inputSchema": {"type": "object", "oneOf": [{"required": ["a"]},
            {"required": ["b"]}], "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/$defs/b"}},
            "$defs": {"b": {"type": "integer", "maximum": 3}}}, "annotations": {"destructiveHint": false},
            "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}));
        tools.push(json!({"name": "broken", "inputSchema": {"$ref": "https://example.com/x"}}));
        json!({"tools": tools})
    }

    /// Whether no process has served the test before this one.
    fn is_first_run(&self) -> bool {
        let log = self.log.as_ref().and_then(|log| std::fs::read_to_string(log).ok()).unwrap_or_default();
        log.matches("\"initialize\"").count() == 1
    }

    /// Asks the client something; the call is answered with what it says.
    fn ask(&mut self, call: &Value, method: &str, params: &Value) -> Option<Result<Value, (i32, String)>> {
        self.asking = Some(call["id"].clone());
        write(&json!({"jsonrpc": "2.0", "id": "q1", "method": method, "params": params}).to_string());
        None
    }

    fn call(&mut self, message: &Value) -> Option<Result<Value, (i32, String)>> {
        let params = &message["params"];
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        Some(Ok(match params["name"].as_str().unwrap_or_default() {
            "echo" => text(&params["arguments"].to_string()),
            "environment" => {
                let mut names: Vec<String> = std::env::vars().map(|(name, value)| format!("{name}={value}")).collect();
                names.sort();
                text(&names.join("\n"))
            }
            "slow" => {
                let token = &params["_meta"]["progressToken"];
                write(
                    &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params":
                        {"progressToken": token, "progress": 1, "total": 4, "message": "working"}})
                    .to_string(),
                );
                return None;
            }
            "die" => {
                eprint_line("something went wrong");
                std::process::exit(7);
            }
            "flood" => text(&"x".repeat(17 << 20)),
            "fail" => return Some(Err((-32602, "bad arguments".to_owned()))),
            "ask" if self.behaviour == "modern-curious" => {
                json!({"resultType": "input_required", "requestState": "s", "inputRequests": {
                    "where": {"method": "roots/list"}}})
            }
            "ask" | "sample" if params.get("inputResponses").is_some() => {
                text(&format!("{} {}", params["inputResponses"], params["requestState"]))
            }
            "ask" if self.is_modern() => {
                json!({"resultType": "input_required", "requestState": "state-1", "inputRequests": {
                    "who": {"method": "elicitation/create", "params": form()}, "where": {"method": "roots/list"}}})
            }
            "sample" if self.is_modern() => {
                json!({"resultType": "input_required", "requestState": "state-1", "inputRequests": {
                    "model": {"method": "sampling/createMessage", "params": sampling()}}})
            }
            "ask" => return self.ask(message, "elicitation/create", &form()),
            "sample" => return self.ask(message, "sampling/createMessage", &sampling()),
            "request" => {
                return self.ask(message, params["arguments"]["text"].as_str().unwrap_or_default(), &json!({}));
            }
            "leave" => {
                self.send(&message["id"], "result", text("bye"));
                std::process::exit(0);
            }
            "typed" => json!({"content": [], "structuredContent": {"n": params["arguments"]["a"]}}),
            "odd" => json!({"content": [{"type": "hologram"}], "structuredContent": {"n": 1}}),
            "grow" if params["arguments"]["text"] == "prompts" => {
                self.has_news = true;
                write(&json!({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"}).to_string());
                text("grown")
            }
            "grow" => {
                (0..5).for_each(|_| self.tell("notifications/tools/list_changed", json!({})));
                text("grown")
            }
            other => return Some(Err((-32602, format!("no tool {other}")))),
        }))
    }
}
