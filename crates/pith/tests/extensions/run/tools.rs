//! Tools of extensions among the others.

use pith_testkit::{Block, Script, Turn, eventually};
use serde_json::{Value, json};

use super::{notes, scene, scene_with};
use crate::support::{assert_like, of_type, texts};

const GREET: &str = r#"pi.registerTool({
    name: "greet", label: "Greet", description: "Greets", parameters: object({ name: { type: "string" } }, ["name"]),
    promptSnippet: "Say hello to somebody", promptGuidelines: ["Greet people by their name"],
    prepareArguments: (raw) => typeof raw.who === "string" ? { name: raw.who } : raw,
    execute: async (id, { name }, signal, onUpdate, ctx) => {
        onUpdate(said("Hel"));
        if (name === "Eve") throw new Error("not Eve");
        return { ...said(`Hello ${name}`), terminate: name === "Bob", details: { ended: signal.aborted } };
    },
});"#;

fn tool_names(body: &Value) -> Vec<String> {
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().expect("tools have names").to_owned()).collect()
}

fn system(body: &Value) -> String {
    texts(&body["system"])
}

#[test]
fn a_tool_of_an_extension_works_like_any_other() {
    let greet = |arguments: Value| Turn::call("greet", arguments);
    let turns = [
        greet(json!({"name": "Ann"})),
        greet(json!({"who": "Cid"})),
        greet(json!({"name": "Eve"})),
        greet(json!({})),
        greet(json!({"name": "Bob"})),
        Turn::text("never"),
    ];
    let mut scene = scene(GREET, turns);
    let frames = scene.run("go");
    let ends = of_type(&frames, "tool_execution_end");
    let text = |at: usize| texts(&ends[at]["result"]["content"]);
    assert_eq!(text(0), "Hello Ann");
    assert_like(ends[0], &json!({"isError": false, "result": {"details": {"ended": false}}}));
    assert_eq!(text(1), "Hello Cid");
    assert_eq!(text(2), "not Eve");
    assert_like(ends[2], &json!({"isError": true, "result": {"details": {}}}));
    assert!(text(3).contains("name") && ends[3]["isError"] == true, "{}", text(3));
    assert_eq!(text(4), "Hello Bob");
    // The last one ends the run.
    assert_eq!(scene.server.requests().len(), 5);
    let update = of_type(&frames, "tool_execution_update");
    assert!(update.iter().any(|frame| texts(&frame["partialResult"]["content"]) == "Hel"), "{update:?}");
    let request = scene.server.requests()[0].body.clone();
    assert_eq!(tool_names(&request), ["read", "bash", "edit", "write", "greet"]);
    let prompt = system(&request);
    assert!(
        prompt.contains("- greet: Say hello to somebody") && prompt.contains("- Greet people by their name"),
        "{prompt}"
    );
    scene.finish();
}

#[test]
fn a_tool_fails_by_what_it_returns() {
    let body = r#"
        const results = {
            failed: { ...said("no such place"), isError: true, details: { code: 7 } },
            mended: { ...said("gone, but never mind"), isError: true },
            good: { ...said("here"), isError: false },
            odd: { ...said("here"), isError: "true" },
        };
        pi.registerTool({ name: "seek", label: "Seek", description: "Seeks", parameters: object({ what: { type: "string" } }),
            execute: async (id, { what }, signal, onUpdate) => { onUpdate({ ...said("seeking"), isError: true }); return results[what]; } });
        pi.on("tool_result", (event) => event.input.what === "mended" && event.isError ? { isError: false } : undefined);"#;
    let kinds = ["failed", "mended", "good", "odd"];
    let calls = kinds.map(|what| Turn::call("seek", json!({"what": what})));
    let mut scene = scene(body, calls.into_iter().chain([Turn::text("done")]));
    let frames = scene.run("go");
    let ends: Vec<Value> = of_type(&frames, "tool_execution_end").iter().map(|end| end["isError"].clone()).collect();
    assert_eq!(json!(ends), json!([true, false, false, false]));
    let results = scene.tool_results();
    let stored: Vec<&Value> = results.iter().map(|result| &result["isError"]).collect();
    assert_eq!(json!(stored), json!([true, false, false, false]));
    assert_eq!(
        (texts(&results[0]["content"]), &results[0]["details"]),
        ("no such place".to_owned(), &json!({"code": 7}))
    );
    let sent = |request: usize| {
        let body = scene.server.wait_request(request).body;
        body["messages"].as_array().and_then(|messages| messages.last()?["content"][0].get("is_error").cloned())
    };
    assert_eq!((sent(1), sent(2).filter(|flag| flag == true)), (Some(json!(true)), None));
    scene.finish();
}

#[test]
fn the_command_line_selects_the_tools_of_extensions_too() {
    let check = |arguments: &[&str], expected: &[&str]| {
        let mut scene = scene_with(GREET, Script::of([Turn::text("done")]), |builder| builder.args(arguments));
        scene.run("go");
        assert_eq!(tool_names(&scene.server.requests()[0].body), expected, "{arguments:?}");
        scene.finish();
    };
    check(&["--tools", "read"], &["read"]);
    check(&["--tools", "greet,read"], &["greet", "read"]);
    check(&["--exclude-tools", "greet,bash"], &["read", "edit", "write"]);
    check(&["--no-builtin-tools"], &["greet"]);
    check(&["--tools", "+ls,-greet,-bash"], &["read", "edit", "write", "ls"]);
    check(&["--no-tools"], &[]);
}

#[test]
fn a_tool_with_the_name_of_a_built_in_replaces_it() {
    let body = r#"for (const name of ["read", "grep"]) pi.registerTool({
        name, label: name, description: `my ${name}`, parameters: object({}), execute: async () => said(`mine: ${name}`) });"#;
    let mut scene = scene(body, [Turn::call("read", json!({"path": "x"})), Turn::text("done")]);
    let frames = scene.run("go");
    assert_eq!(texts(&of_type(&frames, "tool_execution_end")[0]["result"]["content"]), "mine: read");
    let request = scene.server.requests()[0].body.clone();
    // It replaces the built-in one; one that was not active before becomes active.
    assert_eq!(tool_names(&request), ["read", "bash", "edit", "write", "grep"]);
    assert_eq!(request["tools"][0]["description"], "my read");
    scene.finish();
}

#[test]
fn tools_can_be_added_removed_and_selected_during_the_session() {
    let body = r#"
        const tool = (name) => ({ name, label: name, description: name, parameters: object({}), execute: async () => said(name) });
        pi.registerTool(tool("one"));
        pi.registerCommand("choose", { handler: async (names) => pi.setActiveTools(names.split(",")) });
        pi.registerCommand("add", { handler: async (name) => pi.registerTool(tool(name)) });"#;
    let mut scene = scene(body, (0..4).map(|_| Turn::text("done")));
    let mut check = |commands: &[&str], expected: &[&str]| {
        for command in commands {
            scene.command(json!({"type": "prompt", "message": command}));
        }
        let n_requests = scene.server.requests().len();
        scene.run("go");
        assert_eq!(tool_names(&scene.server.requests()[n_requests].body), expected, "{commands:?}");
    };
    check(&[], &["read", "bash", "edit", "write", "one"]);
    check(&["/add two"], &["read", "bash", "edit", "write", "one", "two"]);
    // Unknown names are dropped; tools registered later are active at once.
    check(&["/choose two,mystery,ls"], &["two", "ls"]);
    check(&["/add three"], &["two", "ls", "three"]);
    scene.finish();
}

#[test]
fn a_selection_of_tools_takes_effect_with_the_next_request() {
    let body = r#"pi.on("turn_end", () => pi.setActiveTools(["write"]));"#;
    let mut scene = scene(body, [Turn::call("bash", json!({"command": "true"})), Turn::text("done")]);
    scene.run("go");
    let requests = scene.server.requests();
    assert_eq!(tool_names(&requests[0].body).len(), 4);
    assert_eq!(tool_names(&requests[1].body), ["write"]);
    let names = |at: usize| system(&requests[at].body).matches("- bash:").count();
    assert_eq!((names(0), names(1)), (1, 0));
    scene.finish();
}

#[test]
fn sequential_tools_run_one_after_the_other() {
    let body = r#"pi.registerTool({
        name: "slow", label: "Slow", description: "Slow", parameters: object({ name: { type: "string" } }), executionMode: "sequential",
        execute: async (id, { name }, signal, onUpdate, ctx) => {
            note(ctx, `begin ${name}`);
            await new Promise((resolve) => setTimeout(resolve, 20));
            note(ctx, `end ${name}`);
            return said(name);
        },
    });"#;
    let calls = ["a", "b"].map(|name| Block::call("slow", json!({"name": name})));
    let mut scene = scene(body, [Turn::blocks(calls), Turn::text("done")]);
    assert_eq!(notes(&scene.run("go")), ["begin a", "end a", "begin b", "end b"]);
    scene.finish();
}

#[test]
fn an_aborted_tool_gets_its_signal_and_is_given_up_if_it_ignores_it() {
    let body = r#"pi.registerTool({
        name: "wait", label: "Wait", description: "Waits", parameters: object({ polite: { type: "boolean" } }),
        execute: (id, { polite }, signal, onUpdate, ctx) => new Promise((resolve, reject) => {
            if (polite) signal.addEventListener("abort", () => reject(new Error("as you wish")));
            note(ctx, "waiting");
        }),
    });"#;
    let check = |polite: bool, expected: &str| {
        let mut scene = scene(body, [Turn::call("wait", json!({"polite": polite}))]);
        scene.prompt("go");
        scene.wait(|frame| frame["message"] == "waiting");
        scene.command(json!({"type": "abort"}));
        let frames = scene.finish();
        assert_eq!(texts(&of_type(&frames, "tool_execution_end")[0]["result"]["content"]), expected);
    };
    check(true, "as you wish");
    check(false, "Operation aborted");
}

/// Reports a megabyte as fast as it can, 100 times, and writes to a file that it is done.
const FLOOD: &str = r#"pi.registerTool({
    name: "flood", label: "Flood", description: "Reports a lot", parameters: object({ file: { type: "string" } }),
    execute: async (id, { file }, signal, onUpdate) => {
        const text = "x".repeat(1 << 20);
        for (let n = 0; n < 100; n++) {
            onUpdate(said(`${n} ${text}`));
            await new Promise((resolve) => setTimeout(resolve, 1));
        }
        (await import("node:fs")).writeFileSync(file, "");
        return said("flooded");
    },
});"#;

#[test]
fn tools_that_report_without_end_do_not_fill_the_memory_of_a_host_that_does_not_read() {
    let files = ["one", "two"];
    let calls = files.map(|file| Block::call("flood", json!({ "file": file })));
    let script = Script::of([Turn::blocks(calls), Turn::text("done")]);
    let mut scene = scene_with(FLOOD, script, |builder| builder.arg("--no-session"));
    scene.state();
    let before = scene.memory();
    scene.send(json!({"id": "p", "type": "prompt", "message": "go"}));
    scene.wait_type("tool_execution_update");
    scene.stop_reading();
    let work = scene.home.work();
    eventually("both tools are done", || files.iter().all(|file| work.join(file).exists()));
    let growth = scene.peak_memory().saturating_sub(before) >> 20;
    assert!(growth < 64, "grew by {growth} MiB while 200 MiB were reported");
    scene.resume_reading();
    scene.wait_type("agent_settled");
    let frames = scene.frames();
    for end in of_type(&frames, "tool_execution_end") {
        let about: Vec<&str> = frames
            .iter()
            .filter(|frame| frame["toolCallId"] == end["toolCallId"] && frame["role"].is_null())
            .filter_map(|frame| frame["type"].as_str())
            .collect();
        assert_eq!((about.first(), about.last()), (Some(&"tool_execution_start"), Some(&"tool_execution_end")));
        let last = frames
            .iter()
            .rfind(|frame| frame["type"] == "tool_execution_update" && frame["toolCallId"] == end["toolCallId"]);
        let last = last.map(|frame| texts(&frame["partialResult"]["content"])).unwrap_or_default();
        assert!(last.starts_with("99 "), "{:?}", last.get(..8));
    }
    scene.finish();
}
