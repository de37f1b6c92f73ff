//! What extensions cost: start-up, an event, memory. Run with `cargo bench -p pith-ext`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a table for people")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use pith_ext::{EventName, Limits};
use serde_json::json;
use support::Harness;

/// Small extensions as people write them: a gate, a tool, a command, a status line, a prompt addition.
const SMALL: &[(&str, &str)] = &[
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
            name: "hello", label: "Hello", description: "Greets", parameters: Type.Object({ name: Type.String({ description: "whom" }) }),
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

fn memory(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(field));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

async fn start_up() -> (Harness, Duration) {
    let began = Instant::now();
    let harness = Harness::with_limits(Limits::default());
    harness.run(SMALL).await;
    harness.handle.session_start("startup", None).await;
    (harness, began.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let before = ["Pss:", "Pss_Anon:", "Pss_File:"].map(memory);
    let (harness, first) = start_up().await;
    let after = ["Pss:", "Pss_Anon:", "Pss_File:"].map(memory);
    let [all, heap, file] = [0, 1, 2].map(|index| after[index].saturating_sub(before[index]));
    println!("five small extensions, first start   {first:?}");
    println!("memory added                         {all} kB PSS ({heap} kB of its own, {file} kB of the program)");
    let mut starts = Vec::new();
    for _ in 0..20 {
        starts.push(start_up().await.1);
    }
    println!("the same, median of 20               {:?}", median(starts));
    let mut events = Vec::new();
    for turn in 0..3000 {
        let began = Instant::now();
        harness.handle.notify(EventName::TurnStart, json!({ "turnIndex": turn, "timestamp": 0 })).await;
        events.push(began.elapsed());
    }
    println!("event with two handlers, median      {:?}", median(events));
    let mut silent = Vec::new();
    for _ in 0..3000 {
        let began = Instant::now();
        harness.handle.observe_update(EventName::MessageUpdate, "m", || json!({}));
        silent.push(began.elapsed());
    }
    println!("event nobody listens for, median     {:?}", median(silent));
}
