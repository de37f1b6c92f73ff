//! The end of the process: `session_shutdown` is delivered once, and cannot delay the end.

use std::time::{Duration, Instant};

use pith_testkit::{Signal, Turn};
use serde_json::json;

use super::scene;
use crate::support::{Scene, assert_like};

/// Records each shutdown in a file, since frames may not be read any more.
const LAST_WORDS: &str = r#"
    import { appendFileSync } from "node:fs";
    export default (pi) => {
        pi.on("session_shutdown", async (event) => {
            await new Promise((resolve) => setTimeout(resolve, 50));
            appendFileSync("farewell", event.reason + "\n");
        });
        pi.registerCommand("leave", { handler: (args, ctx) => ctx.shutdown() });
        pi.registerCommand("exit", { handler: () => process.exit(3) });
        pi.registerCommand("ask", { handler: async (args, ctx) => {
            appendFileSync("answer", String(await ctx.ui.confirm("Sure?", "")));
        } });
    };"#;

const NEVER: &str = r#"export default (pi) => {
    pi.on("session_shutdown", () => new Promise(() => {}));
    pi.registerCommand("wait", { handler: (args, ctx) => { ctx.ui.notify("waiting"); return new Promise(() => {}); } });
};"#;

const BUSY: &str = r#"export default (pi) => { pi.on("session_shutdown", () => { for (;;) {} }); };"#;

#[test]
fn every_way_to_end_is_announced_once() {
    let check = |how: &str, code: i32, end: &dyn Fn(&mut Scene)| {
        let mut scene = scene([Turn::text("abcdef").chunk(2).hold_after(1)], &[("last.js", LAST_WORDS)]);
        end(&mut scene);
        assert_eq!(scene.exit_code(), code, "{how}");
        assert_eq!(scene.home.read_file("farewell").as_deref(), Some("quit\n"), "{how}");
    };
    check("end of stdin", 0, &|scene| scene.close_stdin());
    check("SIGTERM", 143, &|scene| scene.signal(Signal::TERM));
    check("SIGHUP", 129, &|scene| scene.signal(Signal::HUP));
    check("ctx.shutdown", 0, &|scene| scene.slash("/leave"));
    check("process.exit", 3, &|scene| scene.slash("/exit"));
    check("SIGTERM during a run", 143, &|scene| {
        scene.prompt("go");
        scene.wait_update("text_delta");
        scene.signal(Signal::TERM);
    });
    check("end of stdin behind a new session", 0, &|scene| {
        scene.send(json!({"id": "n", "type": "new_session"}));
        assert_like(&scene.response("n"), &json!({"success": true}));
        std::fs::remove_file(scene.home.work().join("farewell")).expect("the first session has said good-bye");
        scene.close_stdin();
    });
}

#[test]
fn dialogs_end_with_the_process() {
    let mut scene = scene([], &[("last.js", LAST_WORDS)]);
    scene.send(json!({"id": "a", "type": "prompt", "message": "/ask"}));
    scene.wait_dialog("confirm");
    scene.close_stdin();
    assert_eq!(scene.exit_code(), 0);
    assert_like(&scene.response("a"), &json!({"success": true}));
    assert_eq!(scene.home.read_file("answer").as_deref(), Some("false"));
    assert_eq!(scene.home.read_file("farewell").as_deref(), Some("quit\n"));
}

#[test]
fn nothing_an_extension_does_keeps_the_process_alive() {
    for (what, source) in [("a promise", NEVER), ("a loop", BUSY)] {
        let mut scene = scene([], &[("never.js", source)]);
        if what == "a promise" {
            scene.send(json!({"id": "w", "type": "prompt", "message": "/wait"}));
            scene.wait_note("waiting");
        }
        let start = Instant::now();
        scene.close_stdin();
        assert_eq!(scene.exit_code(), 0, "{what}");
        let spent = start.elapsed();
        assert!(spent < Duration::from_secs(60), "{what}: {spent:?}");
    }
}

#[test]
fn commands_that_wait_for_extensions_are_answered_at_the_end() {
    let hang = r#"export default (pi) => {
        pi.on("session_before_switch", (event, ctx) => { ctx.ui.notify("asked"); return new Promise(() => {}); });
    };"#;
    let mut scene = scene([], &[("hang.js", hang)]);
    scene.send(json!({"id": "n", "type": "new_session"}));
    scene.send(json!({"id": "p", "type": "prompt", "message": "behind"}));
    scene.wait_note("asked");
    scene.close_stdin();
    assert_eq!(scene.exit_code(), 0);
    for id in ["n", "p"] {
        assert_like(&scene.response(id), &json!({"success": false, "error": "pith is shutting down"}));
    }
}
