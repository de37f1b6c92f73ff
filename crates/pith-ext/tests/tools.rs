//! Tools of extensions, and built-in tools wrapped by them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use pith_agent::link::Call;
use pith_agent::{Tool, ToolCallHook, ToolContext, ToolOutput, Verdict};
use pith_ext::Limits;
use pith_protocol::Block;
use serde_json::{Map, Value, json};
use support::Harness;
use tokio_util::sync::CancellationToken;

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

async fn call(harness: &Harness, name: &str, arguments: Value) -> ToolOutput {
    harness.handle.run_tool(name, "call-1", object(arguments), &CancellationToken::new(), |_| {}).await
}

fn text(output: &ToolOutput) -> String {
    let texts = output.content.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.text.clone()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

const GREET: &str = r#"
    import { Type } from "typebox";
    import { StringEnum } from "@earendil-works/pi-ai";
    export default (pi) => pi.registerTool({
        name: "greet",
        label: "Greet",
        description: "Says hello",
        promptSnippet: "greets people",
        promptGuidelines: ["Greet once."],
        executionMode: "sequential",
        parameters: Type.Object({
            name: Type.String({ description: "whom" }),
            tone: Type.Optional(StringEnum(["warm", "cool"], { description: "how", default: "warm" })),
            times: Type.Optional(Type.Integer({ minimum: 1 })),
            tags: Type.Optional(Type.Array(Type.Union([Type.Literal("a"), Type.Literal("b")]))),
        }),
        prepareArguments: (args) => ({ name: args.who ?? args.name, ...args }),
        async execute(id, params, signal, onUpdate, ctx) {
            onUpdate({ content: [{ type: "text", text: "thinking" }], details: { step: 1 } });
            await null;
            return { content: [{ type: "text", text: `Hello ${params.name} (${id}, ${ctx.mode})` }], details: { ok: true }, terminate: true };
        },
    });"#;

#[tokio::test]
async fn a_tool_is_described_to_the_model_as_plain_json_schema() {
    let harness = Harness::start();
    harness.run(&[("greet.ts", GREET)]).await;
    let tool: Arc<dyn Tool> = harness.handle.tools().remove(0);
    assert_eq!(
        *tool.spec().parameters,
        json!({
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": { "type": "string", "description": "whom" },
                "tone": { "type": "string", "enum": ["warm", "cool"], "description": "how", "default": "warm" },
                "times": { "type": "integer", "minimum": 1 },
                "tags": { "type": "array", "items": { "anyOf": [{ "const": "a", "type": "string" }, { "const": "b", "type": "string" }] } },
            },
        })
    );
    assert_eq!((tool.label(), tool.snippet(), tool.is_sequential()), ("Greet", Some("greets people"), true));
    assert_eq!(harness.handle.registry().tools[0].prompt_guidelines, ["Greet once."]);
    let prepared = harness.handle.prepare_arguments("greet", object(json!({ "who": "you" }))).await.unwrap();
    assert_eq!(Value::Object(prepared), json!({ "name": "you", "who": "you" }));
}

#[tokio::test]
async fn a_tool_runs_reports_progress_and_may_end_the_run() {
    let harness = Harness::start();
    harness.run(&[("greet.ts", GREET)]).await;
    let tool: Arc<dyn Tool> = harness.handle.tools().remove(0);
    let updates: Arc<Mutex<Vec<ToolOutput>>> = Arc::default();
    let update = {
        let updates = updates.clone();
        Arc::new(move |output| updates.lock().unwrap().push(output))
    };
    let context = ToolContext { call_id: "t7".into(), cancel: CancellationToken::new(), update, trace: None };
    let output = tool.run(object(json!({ "name": "Ann" })), context).await;
    assert_eq!(text(&output), "Hello Ann (t7, rpc)");
    assert_eq!(output.details, Some(json!({ "ok": true })));
    assert!(output.terminate && !output.is_error);
    let updates = updates.lock().unwrap();
    assert_eq!(updates.len(), 1);
    assert_eq!(updates[0].details, Some(json!({ "step": 1 })));
}

#[tokio::test]
async fn failures_and_results_of_the_wrong_shape_are_told_to_the_model() {
    let harness = Harness::start();
    harness
        .run(&[("bad.ts", r#"export default (pi) => {
            const tool = (name, execute) => pi.registerTool({ name, description: "", parameters: { type: "object" }, execute });
            tool("throws", () => { throw new Error("no way"); });
            tool("rejects", async () => { await null; throw "text"; });
            tool("nothing", () => undefined);
            tool("text", () => "just text");
            tool("empty", () => ({}));
            tool("string", () => ({ content: "a string", details: null, isError: "true" }));
            tool("number", () => ({ content: 7 }));
            tool("block", () => ({ content: [{ type: "text", text: "a" }, { type: "video" }] }));
            tool("error", () => ({ content: "as it is", isError: true, details: {} }));
            tool("cycle", () => { const details = {}; details.self = details; return { content: [], details }; });
        };"#)])
        .await;
    for (name, is_error, expected) in [
        ("throws", true, "no way"),
        ("rejects", true, "text"),
        ("nothing", true, "Tool \"nothing\" did not return a result object"),
        ("text", true, "Tool \"text\" did not return a result object"),
        ("empty", false, ""),
        ("string", false, "a string"),
        ("error", true, "as it is"),
        ("number", true, "Tool \"number\" returned content that is not an array"),
        ("block", true, "Tool \"block\" returned content[1] that is neither text nor an image"),
        ("cycle", true, "The result cannot be sent as JSON: "),
        ("unknown", true, "Tool unknown not found"),
    ] {
        let output = call(&harness, name, json!({})).await;
        assert_eq!(output.is_error, is_error, "{name}");
        assert!(text(&output).starts_with(expected), "{name}: {}", text(&output));
        if is_error {
            assert_eq!(output.details, Some(json!({})), "{name}");
        }
    }
}

#[tokio::test]
async fn an_aborted_tool_gets_its_signal_and_is_given_up_if_it_ignores_it() {
    let harness = Harness::with_limits(Limits { abort_grace: Duration::from_millis(100), ..Limits::default() });
    harness
        .run(&[("slow.ts", r#"export default (pi) => {
            const tool = (name, execute) => pi.registerTool({ name, description: "", parameters: { type: "object" }, execute });
            tool("polite", (id, params, signal, update, ctx) => new Promise((resolve) => {
                signal.addEventListener("abort", () => resolve({ content: [{ type: "text", text: "stopped: " + signal.reason.name }] }));
                ctx.ui.notify("waiting");
            }));
            tool("deaf", (id, params, signal, update, ctx) => { ctx.ui.notify("waiting"); return new Promise(() => {}); });
        };"#)])
        .await;
    for (name, expected) in [("polite", "stopped: AbortError"), ("deaf", "Operation aborted")] {
        harness.seen.lock().unwrap().displays.clear();
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        let abort = async {
            harness.notified("waiting").await;
            stop.cancel();
        };
        let run = harness.handle.run_tool(name, "t", Map::new(), &cancel, |_| {});
        let (output, ()) = tokio::join!(run, abort);
        assert_eq!(text(&output), expected);
    }
}

#[tokio::test]
async fn a_tool_registered_later_is_announced() {
    let harness = Harness::start();
    harness
        .run(&[("later.ts", r#"export default (pi) => pi.registerCommand("add", { handler: async () =>
            pi.registerTool({ name: "late", description: "", parameters: { type: "object" }, execute: () => ({ content: [] }) }) });"#)])
        .await;
    assert!(harness.handle.registry().tool("late").is_none());
    harness.command("add", "").await;
    harness.logged("registry_changed").await;
    assert!(harness.handle.registry().tool("late").is_some());
}

#[tokio::test]
async fn built_in_tools_can_be_wrapped() {
    let harness = Harness::start();
    harness
        .run(&[("wrap.ts", r#"
            import { createBashTool, createReadTool } from "@earendil-works/pi-coding-agent";
            export default (pi) => {
                const bash = createBashTool(process.cwd(), { spawnHook: ({ command, cwd, env }) => ({ command: "source x\n" + command, cwd: cwd + "/sub", env: { ...env, MINE: "1" } }) });
                pi.registerTool({ ...bash, execute: (id, params, signal, onUpdate) => bash.execute(id, params, signal, onUpdate) });
                const read = createReadTool("/elsewhere");
                pi.registerTool({ ...read, name: "read2", async execute(...args) { const result = await read.execute(...args); result.content[0].text += "!"; return result; } });
            };"#)])
        .await;
    assert_eq!(harness.handle.registry().tool("bash").unwrap().description, "the bash tool");
    let output = call(&harness, "bash", json!({ "command": "ls" })).await;
    assert_eq!(text(&output), "native bash done");
    let line = harness.logged("run_tool bash").await;
    assert!(line.contains(r#"{"command":"source x\nls"}"#) && line.ends_with("/sub"), "{line}");
    assert_eq!(text(&call(&harness, "read2", json!({ "path": "x" })).await), "native read done!");
}

#[tokio::test]
async fn built_in_tools_work_through_operations_of_an_extension() {
    let harness = Harness::start();
    harness
        .run(&[("remote.ts", r#"
            import { createBashTool, createReadTool, createWriteTool, createEditTool, createLocalBashOperations } from "@earendil-works/pi-coding-agent";
            export default (pi) => {
                const files = new Map([["/r/a.txt", "one\ntwo\nthree"]]);
                const operations = {
                    exec: async (command, cwd, { onData }) => { onData(Buffer.from(`${cwd}$ ${command}\n`)); return { exitCode: command === "fail" ? 2 : 0 }; },
                    readFile: async (path) => Buffer.from(files.get(path)),
                    writeFile: async (path, text) => void files.set(path, text),
                    access: async (path) => { if (!files.has(path)) throw new Error("ENOENT: no such file"); },
                    mkdir: async () => {},
                };
                for (const make of [createBashTool, createReadTool, createWriteTool, createEditTool]) pi.registerTool(make("/r", { operations }));
                pi.registerTool({ ...createBashTool("/tmp", { operations: createLocalBashOperations() }), name: "local" });
            };"#)])
        .await;
    let run = |name: &'static str, arguments: Value| {
        let harness = &harness;
        async move {
            let output = call(harness, name, arguments).await;
            (text(&output), output.is_error)
        }
    };
    assert_eq!(run("bash", json!({ "command": "ls" })).await, ("/r$ ls\n".to_owned(), false));
    assert_eq!(
        run("bash", json!({ "command": "fail" })).await,
        ("/r$ fail\n\n\nCommand exited with code 2".to_owned(), true)
    );
    assert_eq!(
        run("read", json!({ "path": "a.txt", "offset": 2, "limit": 1 })).await.0,
        "two\n\n[1 more lines in file. Use offset=3 to continue.]"
    );
    assert_eq!(
        run("edit", json!({ "path": "a.txt", "edits": [{ "oldText": "two", "newText": "2" }] })).await.0,
        "Successfully replaced 1 block(s) in a.txt."
    );
    assert_eq!(run("read", json!({ "path": "a.txt" })).await.0, "one\n2\nthree");
    assert_eq!(run("write", json!({ "path": "b.txt", "content": "new" })).await.0, "Successfully wrote to b.txt");
    assert!(run("read", json!({ "path": "gone" })).await.1);
    assert_eq!(
        run("local", json!({ "command": "echo out; echo err; exit 3" })).await,
        ("out\nerr\n\n\nCommand exited with code 3".to_owned(), true)
    );
    let late = run("local", json!({ "command": "echo begun; sleep 30", "timeout": 1 })).await;
    assert_eq!(late, ("begun\n\n\nCommand timed out after 1 seconds".to_owned(), true));
}

#[tokio::test]
async fn typebox_builds_the_schemas_extensions_use() {
    let harness = Harness::start();
    let cases = [
        (
            "Type.Object({ a: Type.Optional(Type.Boolean()) })",
            r#"{"type":"object","properties":{"a":{"type":"boolean"}}}"#,
        ),
        (
            "Type.Record(Type.String(), Type.Number())",
            r#"{"type":"object","patternProperties":{"^.*$":{"type":"number"}}}"#,
        ),
        (
            "Type.Tuple([Type.String(), Type.Null()])",
            r#"{"type":"array","items":[{"type":"string"},{"type":"null"}],"additionalItems":false,"minItems":2,"maxItems":2}"#,
        ),
        (
            "Type.Partial(Type.Object({ a: Type.String() }))",
            r#"{"type":"object","properties":{"a":{"type":"string"}}}"#,
        ),
        (
            "Type.Pick(Type.Object({ a: Type.String(), b: Type.Any() }), ['a'])",
            r#"{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}"#,
        ),
        (
            "Type.Omit(Type.Object({ a: Type.String(), b: Type.Any() }), ['a'])",
            r#"{"type":"object","required":["b"],"properties":{"b":{}}}"#,
        ),
        (
            "Type.Intersect([Type.Object({}), Type.Object({})])",
            r#"{"allOf":[{"type":"object","properties":{}},{"type":"object","properties":{}}]}"#,
        ),
        ("Type.Enum({ A: 'x', B: 'y' })", r#"{"type":"string","enum":["x","y"]}"#),
        ("Type.Unsafe({ type: 'string', format: 'x' })", r#"{"type":"string","format":"x"}"#),
        ("Type.Literal(5)", r#"{"const":5,"type":"number"}"#),
        ("Type.Optional(Type.String({ default: 'd' }))", r#"{"type":"string","default":"d"}"#),
    ];
    let list: Vec<&str> = cases.iter().map(|(source, _)| *source).collect();
    let text = format!(
        "import Type, {{ Type as Named, String as Str }} from '@sinclair/typebox'; import {{ Value }} from 'typebox/value';
         export default (pi) => pi.registerCommand('show', {{ handler: async (_, ctx) => {{
            for (const schema of [{}]) ctx.ui.notify(JSON.stringify(schema));
            ctx.ui.notify([Named === Type, Str().type, Value.Check(Type.Object({{ n: Type.Integer() }}), {{ n: 1.5 }}), Value.Check(Type.String(), 'x')].join());
            try {{ Type.Mystery(); }} catch (error) {{ ctx.ui.notify(error.message.slice(0, 43)); }}
         }} }});",
        list.join(",\n")
    );
    harness.run(&[("types.ts", &text)]).await;
    harness.command("show", "").await;
    let mut expected: Vec<&str> = cases.iter().map(|(_, schema)| *schema).collect();
    expected.extend(["true,string,false,true", "Type.Mystery is not part of pith's TypeBox;"]);
    assert_eq!(harness.notifications(), expected);
}

#[tokio::test]
async fn handlers_block_and_change_tool_calls() {
    let harness = Harness::start();
    harness
        .run(&[
            ("greet.ts", GREET),
            ("guard.ts", r#"export default (pi) => {
                pi.on("tool_call", (event) => {
                    if (event.input.name === "Eve") return { block: true, reason: "not Eve", terminate: true };
                    event.input.name += "!";
                });
                pi.on("tool_result", (event) => ({ content: [{ type: "text", text: event.content[0].text + " " + event.input.name }], isError: true }));
            };"#),
        ])
        .await;
    let tool: Arc<dyn Tool> = harness.handle.tools().remove(0);
    let run = async |name: &str| {
        let (hook, arguments) = (&harness.handle, object(json!({ "name": name })));
        let call = Call { id: "g".into(), name: tool.spec().name.to_string(), arguments: arguments.clone() };
        let arguments = match hook.admit(&call, &*tool, arguments).await {
            Verdict::Run { arguments, .. } => arguments,
            Verdict::Refuse { output, .. } => return output,
            Verdict::Later(_) => panic!("handlers decide at once"),
        };
        let context = ToolContext {
            call_id: "g".into(),
            cancel: CancellationToken::new(),
            update: Arc::new(|_| {}),
            trace: None,
        };
        let output = tool.clone().run(arguments.clone(), context).await;
        assert!(hook.amends());
        hook.amend(&call, arguments, &output).await.expect("a handler changed it")
    };
    let blocked = run("Eve").await;
    assert_eq!((text(&blocked).as_str(), blocked.is_error, blocked.terminate), ("not Eve", true, true));
    let changed = run("Ann").await;
    assert_eq!((text(&changed).as_str(), changed.is_error), ("Hello Ann! (g, rpc) Ann!", true));
    assert_eq!(changed.details, Some(json!({ "ok": true })), "what no handler touched stays");
}
