//! HTTP requests of extensions, and built-in tools they wrap.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use pith_testkit::{process, timeout};
use serde_json::{Value, json};

use crate::models::{told, with_extension};
use crate::support::{Scene, endless_command};

/// A web server for a few requests, which are answered by path.
struct Web {
    url: String,
    /// Lets `/stream` send its second half.
    go_on: Sender<()>,
    /// Connections that were closed by the other side.
    closed: Receiver<()>,
}

impl Web {
    fn start() -> Web {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let ((go_on, wait), (closing, closed)) = (channel(), channel());
        let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (wait, closing) = (wait.clone(), closing.clone());
                thread::spawn(move || serve(stream, &wait, &closing));
            }
        });
        Web { url, go_on, closed }
    }
}

fn serve(mut stream: TcpStream, wait: &std::sync::Mutex<Receiver<()>>, closing: &Sender<()>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let header = |name: &str| {
        let line = head.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim_start_matches(':').trim().to_owned()
    };
    let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let (method, rest) = head.split_once(' ')?;
    let path = rest.split(' ').next()?;
    let mut say = |text: &str| stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).ok();
    match path {
        "/moved" => say("HTTP/1.1 302 Found\r\nlocation: /echo\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
        "/stream" => {
            say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n5\r\nfirst\r\n")?;
            wait.lock().ok()?.recv().ok()?;
            say("6\r\nsecond\r\n0\r\n\r\n")
        }
        "/silent" => {
            say("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc")?;
            let _ = reader.read(&mut [0]);
            closing.send(()).ok()
        }
        _ => {
            let seen =
                json!({"method": method, "path": path, "body": String::from_utf8_lossy(&body), "own": header("x-own")});
            let text = seen.to_string();
            say(&format!(
                "HTTP/1.1 201 Created\r\nx-answer: 42\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
                text.len()
            ))
        }
    }
}

const FETCHING: &str = r#"
export default (pi) => {
    const commands = {
        post: async (url) => {
            const response = await fetch(url + "/echo", { method: "POST", headers: { "x-own": "mine" }, body: JSON.stringify({ a: 1 }) });
            return [response.status, response.statusText, response.headers.get("x-answer"), response.url === url + "/echo", await response.json()];
        },
        follow: async (url) => {
            const response = await fetch(url + "/moved", { method: "POST", body: "x" });
            return [response.redirected, response.url.endsWith("/echo"), (await response.json()).method];
        },
        manual: async (url) => { const { status, headers } = await fetch(url + "/moved", { redirect: "manual" }); return [status, headers.get("location")]; },
        refuse: async (url) => fetch(url + "/moved", { redirect: "error" }).catch((error) => [error.message, error.cause.message]),
        parts: async (url, ctx) => {
            const response = await fetch(url + "/stream");
            const seen = [];
            for await (const part of response.body) {
                seen.push(new TextDecoder().decode(part));
                if (seen.length === 1) ctx.ui.setStatus("part", seen[0]);
            }
            return seen;
        },
        stop: async (url) => {
            const controller = new AbortController();
            const response = await fetch(url + "/silent", { signal: controller.signal });
            controller.abort();
            return response.text().then(() => "complete", (error) => error.name);
        },
        nobody: async () => fetch("http://127.0.0.1:1/").catch((error) => [error.message, error.cause.code, error.cause.message.includes("127.0.0.1:1")]),
        scheme: async () => fetch("ftp://example.invalid/").catch((error) => error.cause.message),
    };
    for (const [name, handler] of Object.entries(commands)) {
        pi.registerCommand(name, { handler: async (args, ctx) => ctx.ui.notify(JSON.stringify(await handler(args, ctx))) });
    }
};"#;

#[test]
fn extensions_fetch() {
    let web = Web::start();
    let mut scene = with_extension(FETCHING, []);
    let mut check = |command: &str, expected: Value| {
        assert_eq!(told(&mut scene, &format!("/{command} {}", web.url)), expected, "{command}");
    };
    let seen = json!({"method": "POST", "path": "/echo", "body": "{\"a\":1}", "own": "mine"});
    check("post", json!([201, "Created", "42", true, seen]));
    check("follow", json!([true, true, "GET"]));
    check("manual", json!([302, "/echo"]));
    check("refuse", json!(["fetch failed", "unexpected redirect to /echo"]));
    check("nobody", json!(["fetch failed", "ECONNREFUSED", true]));
    check("scheme", json!("Unsupported scheme ftp: only http and https can be fetched"));
    scene.finish();
}

#[test]
fn bodies_arrive_as_they_come() {
    let web = Web::start();
    let mut scene = with_extension(FETCHING, []);
    scene.host.send(json!({"type": "prompt", "message": format!("/parts {}", web.url)}));
    let status = scene.host.wait(|frame| frame["method"] == "setStatus");
    assert_eq!(status["statusText"], "first", "before the second part was sent");
    web.go_on.send(()).expect("the server waits");
    let frame = scene.host.wait(|frame| frame["method"] == "notify");
    assert_eq!(frame["message"], r#"["first","second"]"#);
    scene.finish();
}

#[test]
fn an_aborted_fetch_closes_its_connection() {
    let web = Web::start();
    let mut scene = with_extension(FETCHING, []);
    assert_eq!(told(&mut scene, &format!("/stop {}", web.url)), json!("AbortError"));
    web.closed.recv_timeout(timeout()).expect("the connection is closed");
    scene.finish();
}

const WRAPPING: &str = r#"
import { createBashTool, createReadTool, createWriteTool } from "@earendil-works/pi-coding-agent";
export default (pi) => {
    const text = (result) => result.content.map((block) => block.text).join("");
    const run = async (tool, params, signal, onUpdate) => tool.execute("call", params, signal, onUpdate).then(text, (error) => "failed: " + error.message);
    const commands = {
        plain: async (args, ctx) => {
            const updates = [];
            const said = await run(createBashTool(ctx.cwd), { command: "echo one; echo two >&2" }, undefined, (partial) => updates.push(text(partial)));
            return [said, updates.at(-1)];
        },
        fails: async (args, ctx) => run(createBashTool(ctx.cwd), { command: "echo before; exit 3" }),
        hooked: async (args, ctx) => {
            const spawnHook = ({ command, cwd, env }) => ({ command: `echo hooked; ${command}`, cwd: cwd + "/below", env: { ...env, EXTRA: "extra" } });
            return run(createBashTool(ctx.cwd, { spawnHook, commandPrefix: "PREFIX=p" }), { command: "echo $PREFIX $EXTRA $PITH; basename $PWD" });
        },
        shell: async (args, ctx) => run(createBashTool(ctx.cwd, { shellPath: "/bin/sh" }), { command: "echo $0" }),
        noshell: async (args, ctx) => run(createBashTool(ctx.cwd, { shellPath: "/not/there" }), { command: "true" }),
        elsewhere: async (args, ctx) => run(createReadTool(ctx.cwd + "/below"), { path: "file.txt" }),
        written: async (args, ctx) => run(createWriteTool(ctx.cwd + "/below"), { path: "new.txt", content: "made" }),
        missing: async (args, ctx) => run(createReadTool(ctx.cwd), { path: "none.txt" }),
        remote: async (args, ctx) => {
            const operations = { exec: async (command, cwd, { onData }) => { onData(Buffer.from(`over there: ${command}`)); return { exitCode: 0 }; } };
            const reading = { access: async () => {}, readFile: async (path) => Buffer.from("far away " + path.split("/").at(-1)) };
            return [await run(createBashTool(ctx.cwd, { operations }), { command: "ls" }), await run(createReadTool(ctx.cwd, { operations: reading }), { path: "x" })];
        },
        endless: async (args, ctx) => {
            const controller = new AbortController();
            setTimeout(() => ctx.ui.setStatus("running", "yes"), 0);
            const tool = createBashTool(ctx.cwd);
            const [command, abort] = args.split("|");
            const stop = () => abort && controller.abort();
            return run(tool, { command }, controller.signal, (partial) => text(partial).includes("up") && stop());
        },
    };
    for (const [name, handler] of Object.entries(commands)) {
        pi.registerCommand(name, { handler: async (args, ctx) => ctx.ui.notify(JSON.stringify(await handler(args, ctx))) });
    }
};"#;

fn wrapping() -> Scene {
    let scene = with_extension(WRAPPING, []);
    scene.home.write_file("below/file.txt", "content below");
    scene
}

#[test]
fn extensions_wrap_built_in_tools() {
    let mut scene = wrapping();
    let mut check = |command: &str, expected: Value| assert_eq!(told(&mut scene, command), expected, "{command}");
    check("/plain", json!(["one\ntwo\n", "one\ntwo\n"]));
    check("/fails", json!("failed: before\n\n\nCommand exited with code 3"));
    check("/hooked", json!("hooked\np extra 1\nbelow\n"));
    check("/shell", json!("/bin/sh\n"));
    check("/noshell", json!("failed: Custom shell path not found: /not/there"));
    check("/elsewhere", json!("content below"));
    check("/remote", json!(["over there: ls", "far away x"]));
    check("/written", json!("Successfully wrote to new.txt"));
    let missing = told(&mut scene, "/missing");
    assert!(missing.as_str().expect("a text").starts_with("failed: "), "{missing}");
    assert_eq!(scene.home.read_file("below/new.txt").as_deref(), Some("made"));
    scene.finish();
}

#[test]
fn a_wrapped_command_ends_with_its_signal_and_with_pith() {
    let mut scene = wrapping();
    let stopped = told(&mut scene, &format!("/endless echo up; {}|stop", endless_command()));
    assert!(stopped.as_str().expect("a text").ends_with("Command aborted"), "{stopped}");
    let endless = endless_command();
    scene.host.send(json!({"type": "prompt", "message": format!("/endless {endless}")}));
    process::wait_for(&endless, timeout());
    let (_, code) = scene.host.finish();
    assert_eq!(code, 0);
    process::no_process_with(&endless, timeout());
}
