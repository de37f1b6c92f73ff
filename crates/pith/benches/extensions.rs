//! What extensions cost a host: nothing where there are none, little where
//! there are five.
//!
//! `cargo bench -p pith --bench extensions` prints the figures; nothing here asserts.

mod measure;

use std::time::{Duration, Instant};

use pith_testkit::{Block, Host, ModelServer, Script, TempHome, Turn};
use serde_json::json;

use measure::{builder, median, ms, processor_time, pss, show, start_up};

/// Small extensions as people write them: a gate, a tool, a command, a status line, a prompt addition.
const FIVE: &[(&str, &str)] = &[
    (
        "gate.ts",
        r#"
        import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
        export default function (pi: ExtensionAPI) {
            const dangerous = [/\brm\s+(-rf?|--recursive)/i, /\bsudo\b/i];
            pi.on("tool_call", async (event, ctx) => {
                if (event.toolName !== "bash") return undefined;
                if (!dangerous.some((pattern) => pattern.test(String(event.input.command)))) return undefined;
                const choice = await ctx.ui.select("Dangerous", ["Yes", "No"]);
                return choice === "Yes" ? undefined : { block: true, reason: "Blocked by user" };
            });
        }"#,
    ),
    (
        "tool.ts",
        r#"
        import { Type } from "typebox";
        export default (pi) => pi.registerTool({
            name: "greet", label: "Greet", description: "Greets", parameters: Type.Object({ name: Type.String({ description: "whom" }) }),
            execute: async (id, params) => ({ content: [{ type: "text", text: `Hello ${params.name}` }], details: {} }),
        });"#,
    ),
    (
        "command.ts",
        r#"
        import { join } from "node:path";
        export default (pi) => pi.registerCommand("where", { description: "shows the place", handler: async (args, ctx) => ctx.ui.notify(join(ctx.cwd, args)) });"#,
    ),
    (
        "status.ts",
        r#"
        export default (pi) => {
            let turns = 0;
            pi.on("session_start", (_, ctx) => ctx.ui.setStatus("turns", "ready"));
            pi.on("turn_start", (_, ctx) => ctx.ui.setStatus("turns", `turn ${++turns}`));
        };"#,
    ),
    (
        "prompt.ts",
        r#"
        export default (pi) => {
            pi.on("turn_start", () => {});
            pi.on("before_agent_start", (event) => ({ systemPrompt: event.systemPrompt + "\nBe brief." }));
        };"#,
    ),
];

/// Two extensions with an `input` handler each; the second deals with the prompt.
const LISTENING: &[(&str, &str)] = &[
    ("first.ts", "export default (pi) => pi.on('input', (event) => ({ action: 'continue' }));"),
    ("second.ts", "export default (pi) => pi.on('input', (event) => ({ action: 'handled' }));"),
];

/// One that wants to see every piece of an answer.
const WATCHING: &[(&str, &str)] =
    &[("watch.ts", "export default (pi) => { let n = 0; pi.on('message_update', () => { n++; }); };")];

fn main() {
    let without = start_up(41, |_| {});
    let with = start_up(41, |home| furnish(home, FIVE));
    show("spawn to get_state without extensions, median of 41", &ms(without));
    show("the same with five small extensions", &ms(with));
    show("difference", &ms(with.saturating_sub(without)));

    let (without, with) = (idle_memory(&[]), idle_memory(FIVE));
    show("idle PSS without extensions", &megabytes(without));
    show("the same with five small extensions", &megabytes(with));
    show("difference", &megabytes(with.saturating_sub(without)));

    show("a prompt that two input handlers deal with, median of 1000", &microseconds(handled_prompt(LISTENING, "go")));
    show("a command of an extension, median of 1000", &microseconds(handled_prompt(FIVE, "/where here")));
    show("get_state for comparison, median of 1000", &microseconds(plain_answer()));

    for mode in ["delta", "full"] {
        for (what, extensions) in
            [("no extension", &[][..]), ("five that do not listen", FIVE), ("one that listens", WATCHING)]
        {
            show(&format!("20000 deltas of 4 characters, {mode}, {what}"), &stream(mode, extensions));
        }
    }
}

fn furnish(home: &TempHome, extensions: &[(&str, &str)]) {
    for (name, text) in extensions {
        home.write_agent_file(&format!("extensions/{name}"), text);
    }
}

fn start(server: &ModelServer, extensions: &[(&str, &str)], arguments: &[&str]) -> Host {
    let home = TempHome::for_server(server);
    furnish(&home, extensions);
    let mut host = builder(&home).args(arguments).spawn();
    host.data(json!({"type": "get_state"}));
    host
}

fn idle_memory(extensions: &[(&str, &str)]) -> u64 {
    let server = ModelServer::start(Script::new());
    let host = start(&server, extensions, &[]);
    pss(host.pid())
}

/// From the prompt to its answer; no model is asked.
fn handled_prompt(extensions: &[(&str, &str)], message: &str) -> Duration {
    let server = ModelServer::start(Script::new());
    let mut host = start(&server, extensions, &["--no-session"]);
    let mut once = || {
        let start = Instant::now();
        let data = host.data(json!({"type": "prompt", "message": message}));
        assert_eq!(data["disposition"], "handled");
        start.elapsed()
    };
    median((0..1000).map(|_| once()).collect())
}

fn plain_answer() -> Duration {
    let server = ModelServer::start(Script::new());
    let mut host = start(&server, &[], &["--no-session"]);
    let mut once = || {
        let start = Instant::now();
        host.data(json!({"type": "get_state"}));
        start.elapsed()
    };
    median((0..1000).map(|_| once()).collect())
}

fn stream(mode: &str, extensions: &[(&str, &str)]) -> String {
    let block = Block::text("abcd".repeat(20_000));
    let server = ModelServer::start(Script::of([Turn::blocks([block]).chunk(4)]));
    let mut host = start(&server, extensions, &["--stream-updates", mode, "--no-session"]);
    let before = processor_time(host.pid());
    let start = Instant::now();
    host.send(json!({"type": "prompt", "message": "go"}));
    host.wait_type("agent_settled");
    let (wall, used) = (start.elapsed(), processor_time(host.pid()) - before);
    format!("{:.2} s CPU, {:.2} s", used.as_secs_f64(), wall.as_secs_f64())
}

fn megabytes(kilobytes: u64) -> String {
    format!("{:.1} MB", kilobytes as f64 / 1e3)
}

fn microseconds(time: Duration) -> String {
    format!("{} µs", time.as_micros())
}
