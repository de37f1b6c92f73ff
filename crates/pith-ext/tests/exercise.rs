//! Examples of the reference agent doing what they are for.
//!
//! Needs npm and a network; runs when `PITH_EXT_PACKAGES` names a directory in
//! which the package is, or may be, installed.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and a table for people")]

mod support;

use std::path::PathBuf;

use pith_agent::ToolOutput;
use pith_ext::{EventName, InputVerdict, Limits, Loading, ToolCallVerdict};
use pith_protocol::Block;
use pith_protocol::host::{UiAnswer, UiMethod};
use pith_testkit::packages::{Packages, example};
use serde_json::{Map, Value, json};
use support::Harness;
use tokio_util::sync::CancellationToken;

/// The examples of the current release, if they are installed.
struct Examples(PathBuf);

impl Examples {
    fn find() -> Option<Examples> {
        let packages = Packages::find();
        if packages.is_none() {
            pith_testkit::skip("PITH_EXT_PACKAGES is not set");
        }
        packages.map(|packages| Examples(packages.examples("0.87.1")))
    }

    async fn load(&self, name: &str) -> Harness {
        let harness = Harness::with_limits(Limits::default());
        let path = example(&self.0, name).expect("the example exists");
        let report = harness.handle.load(&[harness.source(&path)], Loading::Add, &harness.surroundings).await;
        assert_eq!(report.errors, [], "{name}");
        harness.bind().await;
        println!("{name:24} exercised");
        harness
    }
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

async fn tool(harness: &Harness, name: &str, arguments: Value) -> ToolOutput {
    harness.handle.run_tool(name, "call", object(arguments), &CancellationToken::new(), |_| {}).await
}

fn text(output: &ToolOutput) -> String {
    match &output.content[0] {
        Block::Text(text) => text.text.clone(),
        other => panic!("{other:?}"),
    }
}

fn value(text: &str) -> UiAnswer {
    UiAnswer::Value(text.to_owned())
}

async fn bash(harness: &Harness, command: &str) -> ToolCallVerdict {
    harness.handle.tool_call("t", "bash", object(json!({ "command": command }))).await
}

#[tokio::test]
async fn tools_of_the_examples_work() {
    let Some(examples) = Examples::find() else { return };

    let harness = examples.load("hello").await;
    assert!(text(&tool(&harness, "hello", json!({ "name": "Ann" })).await).contains("Ann"));

    let harness = examples.load("todo").await;
    harness.handle.session_start("startup", None).await;
    assert!(text(&tool(&harness, "todo", json!({ "action": "add", "text": "wash" })).await).contains("wash"));
    let output = tool(&harness, "todo", json!({ "action": "toggle", "id": 1 })).await;
    assert_eq!(output.details.unwrap()["todos"][0]["done"], true);

    let harness = examples.load("dynamic-tools").await;
    harness.handle.session_start("startup", None).await;
    harness.command("add-echo-tool", "echo_later").await;
    assert!(harness.handle.registry().tool("echo_later").is_some());

    let harness = examples.load("structured-output").await;
    let name = harness.handle.registry().tools[0].name.clone();
    let output = tool(&harness, &name, json!({ "headline": "h", "summary": "s", "actionItems": ["a"] })).await;
    assert!(output.terminate, "{output:?}");

    let harness = examples.load("tool-override").await;
    let file = harness.file("notes.txt", "read me");
    let output = tool(&harness, "read", json!({ "path": file.display().to_string() })).await;
    assert!(text(&output).contains("read me"));

    let harness = examples.load("truncated-tool").await;
    harness.file("x.txt", "needle\n");
    let output = tool(&harness, "rg", json!({ "pattern": "needle" })).await;
    assert!(!output.content.is_empty());

    let harness = examples.load("with-deps").await;
    let output = tool(&harness, "parse_duration", json!({ "duration": "2 days" })).await;
    assert!(text(&output).contains("172800000"), "{}", text(&output));

    let harness = examples.load("bash-spawn-hook").await;
    tool(&harness, "bash", json!({ "command": "ls" })).await;
    assert!(harness.logged("run_tool bash").await.contains("ls"));

    let harness = examples.load("minimal-mode").await;
    assert_eq!(text(&tool(&harness, "read", json!({ "path": "x" })).await), "native read done");

    let harness = examples.load("tic-tac-toe").await;
    harness.handle.session_start("startup", None).await;
    assert!(harness.handle.registry().tool("tic_tac_toe").is_some());

    let harness = examples.load("subagent").await;
    let output = tool(&harness, "subagent", json!({ "agent": "nobody", "task": "x" })).await;
    assert!(text(&output).contains("nobody"), "{}", text(&output));
}

#[tokio::test]
async fn gates_and_transforms_of_the_examples_work() {
    let Some(examples) = Examples::find() else { return };
    let blocked = |verdict: &ToolCallVerdict| matches!(verdict, ToolCallVerdict::Block { .. });

    let harness = examples.load("permission-gate").await;
    assert!(!blocked(&bash(&harness, "ls").await));
    harness.answer(value("No"));
    assert!(blocked(&bash(&harness, "sudo rm -rf /").await));
    harness.answer(value("Yes"));
    assert!(!blocked(&bash(&harness, "sudo ls").await));

    let harness = examples.load("protected-paths").await;
    let write = harness.handle.tool_call("t", "write", object(json!({ "path": ".env", "content": "" }))).await;
    assert!(blocked(&write));

    let harness = examples.load("rpc-demo").await;
    harness.handle.session_start("startup", None).await;
    harness.answer(value("Block"));
    assert!(blocked(&bash(&harness, "rm -rf x").await));
    harness.answer(value("typed"));
    harness.command("rpc-input", "").await;
    harness.notified("You entered: typed").await;

    let harness = examples.load("confirm-destructive").await;
    harness.answer(UiAnswer::Confirmed(false));
    let cancel = CancellationToken::new();
    let payload = json!({ "reason": "new" });
    let result = harness.handle.session_before(EventName::SessionBeforeSwitch, payload, &cancel).await;
    assert_eq!(result, Some(json!({ "cancel": true })));

    let harness = examples.load("input-transform").await;
    let verdict = harness.handle.input("?quick why", &[], "rpc", None).await;
    assert!(matches!(verdict, InputVerdict::Transform { .. }), "{verdict:?}");

    let harness = examples.load("inline-bash").await;
    let verdict = harness.handle.input("today is !{echo monday}", &[], "rpc", None).await;
    assert!(
        matches!(&verdict, InputVerdict::Transform { text, .. } if text.contains("today is monday")),
        "{verdict:?}"
    );

    let harness = examples.load("pirate").await;
    harness.command("pirate", "").await;
    let payload = json!({ "prompt": "hi", "systemPrompt": "base", "systemPromptOptions": { "promptGuidelines": [], "sections": {} } });
    let start = harness.handle.before_agent_start(payload.clone()).await;
    let is_changed = start.system_prompt.is_some() || start.system_prompt_options.is_some();
    assert!(is_changed, "{start:?}");

    let harness = examples.load("prompt-customizer").await;
    harness.handle.before_agent_start(json!({ "prompt": "x", "systemPrompt": "base", "systemPromptOptions": { "selectedTools": ["bash"], "toolSnippets": {}, "promptGuidelines": [], "sections": {}, "skills": [], "contextFiles": [] } })).await;
    assert_eq!(harness.errors(), []);

    let harness = examples.load("claude-rules").await;
    harness.file(".claude/rules/style.md", "be nice");
    harness.handle.session_start("startup", None).await;
    let start = harness.handle.before_agent_start(payload).await;
    assert!(format!("{start:?}").contains("style.md"), "{start:?}");

    let harness = examples.load("custom-compaction").await;
    let preparation = json!({ "firstKeptEntryId": "e1", "messagesToSummarize": [{ "role": "user", "content": "q" }], "turnPrefixMessages": [], "tokensBefore": 1200, "fileOps": { "read": [], "written": [], "edited": [] } });
    let payload = json!({ "preparation": preparation, "branchEntries": [], "reason": "manual", "willRetry": false });
    let result = harness.handle.session_before(EventName::SessionBeforeCompact, payload, &cancel).await.unwrap();
    assert_eq!(result["compaction"]["summary"], "hello from the model");

    let harness = examples.load("dirty-repo-guard").await;
    let payload = json!({ "reason": "new" });
    assert_eq!(
        harness.handle.session_before(EventName::SessionBeforeSwitch, payload, &cancel).await,
        None,
        "no repository"
    );

    let harness = examples.load("dynamic-resources").await;
    let found = harness.handle.resources_discover("/", "startup").await;
    assert!(!found.skill_paths.is_empty());

    let harness = examples.load("provider-payload").await;
    std::fs::create_dir(harness.surroundings.cwd.join(".pi")).unwrap();
    harness.handle.before_provider_request(json!({ "model": "m" })).await;
    harness.handle.notify(EventName::AfterProviderResponse, json!({ "status": 200, "headers": {} })).await;
    assert_eq!(harness.errors(), []);
}

#[tokio::test]
async fn commands_and_displays_of_the_examples_work() {
    let Some(examples) = Examples::find() else { return };

    let harness = examples.load("timed-confirm").await;
    harness.answer(UiAnswer::Confirmed(true));
    harness.command("timed", "").await;
    harness.notified("Confirmed by user!").await;

    let harness = examples.load("session-name").await;
    harness.command("session-name", "work").await;
    harness.logged("set_session_name work").await;

    let harness = examples.load("bookmark").await;
    harness
        .seen
        .lock()
        .unwrap()
        .entries
        .push(json!({ "type": "message", "id": "a1", "parentId": null, "message": { "role": "assistant" } }));
    harness.command("bookmark", "here").await;
    harness.logged(r#"set_label a1 Some("here")"#).await;

    let harness = examples.load("commands").await;
    harness.answer(value("/commands - List available slash commands"));
    harness.answer(UiAnswer::Confirmed(true));
    harness.command("commands", "").await;
    assert!(harness.notifications()[0].ends_with("commands.ts"));

    let harness = examples.load("trigger-compact").await;
    harness.command("trigger-compact", "be short").await;
    harness.notified("Compaction completed").await;

    let harness = examples.load("send-user-message").await;
    harness.command("ask", "what time is it").await;
    harness.logged("send_user_message").await;

    let harness = examples.load("event-bus").await;
    harness.handle.session_start("startup", None).await;
    harness.command("emit", "hello").await;
    assert!(!harness.notifications().is_empty());

    let harness = examples.load("status-line").await;
    harness.handle.session_start("startup", None).await;
    harness.handle.notify(EventName::TurnStart, json!({ "turnIndex": 0 })).await;
    let is_status = |shown: &UiMethod| matches!(shown, UiMethod::SetStatus { .. });
    assert_eq!(harness.seen.lock().unwrap().displays.iter().filter(|shown| is_status(shown)).count(), 2);

    let harness = examples.load("widget-placement").await;
    harness.handle.session_start("startup", None).await;
    let is_widget = |shown: &UiMethod| matches!(shown, UiMethod::SetWidget { .. });
    assert!(harness.seen.lock().unwrap().displays.iter().any(is_widget));

    let harness = examples.load("model-status").await;
    harness
        .handle
        .notify(EventName::ModelSelect, json!({ "model": { "provider": "p", "id": "m" }, "source": "set" }))
        .await;
    assert!(!harness.seen.lock().unwrap().displays.is_empty());

    let harness = examples.load("message-renderer").await;
    harness.command("status", "all good").await;
    harness.logged("send_message").await;

    let harness = examples.load("entry-renderer").await;
    let name = harness.handle.registry().commands[0].name.clone();
    harness.command(&name, "").await;
    harness.logged("append_entry").await;

    let harness = examples.load("reload-runtime").await;
    harness.command("reload-runtime", "").await;
    harness.logged("reload").await;

    let harness = examples.load("shutdown-command").await;
    harness.command("quit", "").await;
    harness.logged("shutdown").await;

    let harness = examples.load("plan-mode").await;
    harness.handle.session_start("startup", None).await;
    harness.command("plan", "").await;
    harness.logged("set_active_tools").await;

    let harness = examples.load("summarize").await;
    harness.seen.lock().unwrap().entries.push(json!({ "type": "message", "id": "a1", "parentId": null, "message": { "role": "user", "content": [{ "type": "text", "text": "q" }] } }));
    harness.command("summarize", "").await;
    assert_eq!(harness.errors(), []);

    let harness = examples.load("preset").await;
    harness.file(
        ".pi/presets.json",
        r#"{"fast":{"provider":"test","model":"one","thinkingLevel":"low","tools":["read"]}}"#,
    );
    harness.handle.session_start("startup", None).await;
    harness.command("preset", "fast").await;
    harness.logged("set_thinking_level low").await;

    let harness = examples.load("titlebar-spinner").await;
    harness.handle.notify(EventName::AgentStart, json!({})).await;
    harness
        .wait_for("a title", |seen| {
            seen.displays.iter().any(|shown| matches!(shown, UiMethod::SetTitle { .. })).then_some(())
        })
        .await;
    harness.handle.notify(EventName::AgentSettled, json!({})).await;
}
