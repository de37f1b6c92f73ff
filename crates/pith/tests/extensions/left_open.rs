//! What extensions open and do not close, and input that grows: the host is served meanwhile, and nothing outlives pith.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use pith_testkit::Script;
use serde_json::json;

use crate::stage::{NEIGHBOUR, Stage, strict};

const SERVER: (&str, &str) = (
    "server.ts",
    "import http from 'node:http';
    let answers = 0;
    export default (pi) => pi.registerCommand('serve', { handler: async (_, ctx) => {
        const server = http.createServer((request, response) => response.end('answer ' + ++answers));
        server.listen(0, () => ctx.ui.notify('port ' + server.address().port));
    } });",
);

fn get(port: u16) -> String {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).expect("somebody listens");
    socket.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("answered");
    answer.rsplit("\r\n\r\n").next().unwrap_or_default().to_owned()
}

#[test]
fn a_server_that_is_left_open_outlives_its_session_and_not_pith() {
    let mut stage = Stage::new(&[SERVER, NEIGHBOUR], []);
    let start = stage.now();
    stage.prompt("/serve");
    let note = stage.watch(start, "the port", |frame| {
        frame["method"] == "notify" && frame["message"].as_str().is_some_and(|text| text.starts_with("port "))
    });
    let port = note["message"].as_str().and_then(|text| text[5..].parse().ok()).expect("a port");
    assert!(get(port).contains("answer 1"));
    // As variables of modules do, and as with pi.
    assert_eq!(stage.ask(json!({"type": "new_session"}))["success"], true);
    assert!(get(port).contains("answer 2"));
    stage.assert_alive();
    stage.finish("a server that is left open");
    while TcpStream::connect(("127.0.0.1", port)).is_ok() {
        std::thread::yield_now();
    }
}

#[test]
fn a_host_is_served_while_extensions_unpack_what_never_ends() {
    // A megabyte in a kilobyte, again and again: in one call, and through a stream that nobody reads.
    let bomb = "import zlib from 'node:zlib';
        const bomb = zlib.gzipSync(Buffer.alloc(1 << 20));
        export default (pi) => {
            pi.registerCommand('calls', { handler: async () => { for (;;) zlib.gunzipSync(Buffer.concat(Array(10).fill(bomb)), { maxOutputLength: 1 << 20 }); } });
            pi.registerCommand('loop', { handler: async () => { for (;;) zlib.gunzipSync(bomb); } });
            pi.registerCommand('stream', { handler: async (_, ctx) => {
                const stream = zlib.createGunzip();
                for (let at = 0; at < 20; at++) stream.write(bomb);
                stream.once('readable', () => ctx.ui.notify('kept ' + (stream.readableLength <= 1 << 20)));
            } });
        };";
    let mut stage = Stage::new(&[("bomb.ts", bomb), NEIGHBOUR], []);
    let start = stage.now();
    stage.host.send(json!({"type": "prompt", "message": "/calls"}));
    let error = stage.error(start, "command");
    assert!(error["error"].as_str().is_some_and(|text| text.contains("larger than")), "{error}");
    let start = stage.now();
    stage.host.send(json!({"type": "prompt", "message": "/loop"}));
    stage.error(start, "command");
    let start = stage.now();
    stage.prompt("/stream");
    stage.notified(start, "kept true");
    stage.assert_alive();
    let peak = stage.host.peak_memory() >> 20;
    assert!(peak < 150, "{peak} MiB");
    stage.finish(&format!("bombs: {peak} MiB"));
}

#[test]
fn a_host_is_served_while_extensions_watch_a_huge_tree() {
    let watch = "import fs from 'node:fs';
        export default (pi) => pi.registerCommand('watch', { handler: async (args, ctx) => {
            const codes = [];
            for (let at = 0; at < 20; at++) {
                try { fs.watch(args, { recursive: true }); codes.push('watched'); } catch (error) { codes.push(error.code); }
                await new Promise((resolve) => setImmediate(resolve));
            }
            ctx.ui.notify([...new Set(codes)].join());
        } });";
    // The tree takes time to walk, on a busy machine more than the strict limits allow.
    let mut settings = strict();
    settings["extensionLimits"]["executionMs"] = json!(600_000);
    settings["extensionLimits"]["handlerMs"] = json!(600_000);
    let mut stage = Stage::with(&[("watch.ts", watch), NEIGHBOUR], &settings, Script::new(), |builder| builder);
    let tree = stage.home.work().join("tree");
    for outer in 0..91 {
        for inner in 0..91 {
            fs::create_dir_all(tree.join(format!("{outer}/{inner}"))).expect("created");
        }
    }
    let start = stage.now();
    stage.host.send(json!({"type": "prompt", "message": format!("/watch {}", tree.display())}));
    stage.notified(start, "ENOSPC");
    stage.assert_alive();
    stage.finish("a huge tree");
}
