//! Events: order, composition, and what handlers can change.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::time::Duration;

use pith_ext::{Boundary, EventName, InputVerdict, ToolCallVerdict, UserBash};
use pith_protocol::Block;
use serde_json::{Map, Value, json};
use support::{Harness, TIMEOUT};
use tokio_util::sync::CancellationToken;

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[tokio::test]
async fn handlers_run_one_by_one_in_load_order_and_a_throwing_one_is_skipped() {
    let harness = Harness::start();
    harness
        .run(&[
            ("a.ts", "export default (pi) => {
                pi.on('agent_start', async (_, ctx) => { await new Promise((done) => setTimeout(done, 20)); ctx.ui.notify('a1'); });
                const off = pi.on('agent_start', (_, ctx) => ctx.ui.notify('never'));
                off();
                pi.on('agent_start', () => { throw new Error('broken'); });
                pi.on('agent_start', (_, ctx) => ctx.ui.notify('a2'));
                pi.on('made_up_event', () => {});
            };"),
            ("b.ts", "export default (pi) => pi.on('agent_start', (event, ctx) => ctx.ui.notify('b ' + event.type));"),
        ])
        .await;
    harness.handle.notify(EventName::AgentStart, json!({})).await;
    let error = harness.error("agent_start").await;
    assert_eq!(error.error, "broken");
    assert!(error.path.ends_with("a.ts"));
    assert!(error.stack.unwrap().contains("a.ts:5:"), "the line of the source");
    assert_eq!(harness.notifications(), ["a1", "a2", "b agent_start"]);
}

#[tokio::test]
async fn events_without_listeners_call_no_handler() {
    let harness = Harness::start();
    harness.run(&[("a.ts", "export default (pi) => pi.on('turn_start', () => {});")]).await;
    assert!(harness.handle.listens(EventName::TurnStart));
    assert!(!harness.handle.listens(EventName::MessageUpdate));
    harness.handle.observe_update(EventName::MessageUpdate, "m", || panic!("the payload is not needed"));
    assert_eq!(harness.handle.message_end(&json!({ "role": "user" })).await, None);
}

#[tokio::test]
async fn events_of_a_run_keep_their_order_without_being_awaited() {
    let harness = Harness::start();
    harness
        .run(&[("a.ts", "export default (pi) => {
            pi.on('turn_start', async (event, ctx) => { await new Promise((done) => setTimeout(done, 30)); ctx.ui.notify('turn ' + event.turnIndex); });
            pi.on('message_start', (event, ctx) => ctx.ui.notify(event.message.role));
            pi.on('message_end', (event, ctx) => ctx.ui.notify('end'));
        };")])
        .await;
    harness.handle.announce(EventName::TurnStart, json!({ "turnIndex": 0 }));
    harness.handle.announce(EventName::MessageStart, json!({ "message": { "role": "user" } }));
    harness.handle.message_end(&json!({ "role": "user" })).await;
    assert_eq!(harness.notifications(), ["turn 0", "user", "end"]);
}

#[tokio::test]
async fn only_the_newest_of_many_observations_is_delivered() {
    let harness = Harness::start();
    harness
        .run(&[(
            "a.ts",
            "export default (pi) => {
            pi.on('turn_start', () => { const end = Date.now() + 150; while (Date.now() < end) {} });
            pi.on('message_update', (event, ctx) => ctx.ui.notify('update ' + event.message.n));
            pi.on('agent_end', (event, ctx) => ctx.ui.notify('over'));
        };",
        )])
        .await;
    harness.handle.announce(EventName::TurnStart, json!({}));
    for n in 0..500 {
        harness.handle.observe_update(EventName::MessageUpdate, "m1", || json!({ "message": { "n": n } }));
    }
    harness.handle.notify(EventName::AgentEnd, json!({ "messages": [] })).await;
    let seen = harness.notifications();
    assert_eq!(seen.last().unwrap(), "over");
    assert!(seen.contains(&"update 499".to_owned()), "the newest arrives: {seen:?}");
    assert!(seen.len() < 20, "most are folded into one: {}", seen.len());
}

#[tokio::test]
async fn input_handlers_continue_transform_or_handle_an_input() {
    let harness = Harness::start();
    harness
        .run(&[
            ("a.ts", "export default (pi) => pi.on('input', (event) => {
                if (event.text === 'mine') return { action: 'handled' };
                if (event.text.startsWith('?')) return { action: 'transform', text: event.text.slice(1) };
                return { action: 'continue' };
            });"),
            ("b.ts", "export default (pi) => pi.on('input', (event) => ({ action: 'transform', text: event.text + ' (' + event.source + ')' }));"),
        ])
        .await;
    let image = [Block::text("stands for a picture")];
    let input = |text: &'static str| harness.handle.input(text, &image, "rpc", None);
    assert_eq!(input("mine").await, InputVerdict::Handled);
    let InputVerdict::Transform { text, images } = input("?what").await else { panic!("transformed") };
    assert_eq!((text.as_str(), images), ("what (rpc)", Some(image.to_vec())));
}

#[tokio::test]
async fn a_tool_call_can_be_blocked_changed_or_let_through() {
    let harness = Harness::start();
    harness
        .run(&[
            ("gate.ts", "export default (pi) => pi.on('tool_call', async (event, ctx) => {
                if (event.toolName !== 'bash') return;
                if (event.input.command.includes('rm')) return { block: true, reason: 'too dangerous', terminate: true };
                if (event.input.command.includes('ask') && !(await ctx.ui.confirm('Really?', event.input.command))) return { block: true };
                event.input.command = 'set -e; ' + event.input.command;
            });"),
            ("second.ts", "export default (pi) => pi.on('tool_call', (event) => { event.input.seen = event.input.command; });"),
        ])
        .await;
    let call = |command: &'static str| harness.handle.tool_call("t1", "bash", object(json!({ "command": command })));
    let blocked = |reason: &str, terminate| ToolCallVerdict::Block { reason: reason.to_owned(), terminate };
    assert_eq!(call("rm -rf /").await, blocked("too dangerous", true));
    let expected = object(json!({ "command": "set -e; ls", "seen": "set -e; ls" }));
    assert_eq!(call("ls").await, ToolCallVerdict::Allow(expected));
    harness.answer(pith_protocol::host::UiAnswer::Confirmed(false));
    assert_eq!(call("ask").await, blocked("Tool execution was blocked", false));
    harness.answer(pith_protocol::host::UiAnswer::Malformed("confirmed \"yes\" is not a boolean".to_owned()));
    assert_eq!(call("ask").await, blocked("Tool execution was blocked", false));
    let other = harness.handle.tool_call("t2", "read", object(json!({ "path": "x" }))).await;
    assert!(matches!(other, ToolCallVerdict::Allow(_)));
}

#[tokio::test]
async fn a_throwing_tool_call_handler_blocks_the_call_and_is_reported() {
    let harness = Harness::start();
    harness
        .run(&[(
            "gate.ts",
            "export default (pi) => pi.on('tool_call', (event) => {
            if (event.toolName === 'a') throw new Error('gate is broken');
            throw 'a plain value';
        });",
        )])
        .await;
    let verdict = |name: &'static str| harness.handle.tool_call("t", name, Map::new());
    let reason = |verdict| match verdict {
        ToolCallVerdict::Block { reason, .. } => reason,
        ToolCallVerdict::Allow(_) => panic!("must be blocked"),
    };
    assert_eq!(reason(verdict("a").await), "gate is broken");
    assert_eq!(reason(verdict("b").await), "Extension failed, blocking execution: a plain value");
    assert_eq!(harness.error("tool_call").await.error, "gate is broken");
}

#[tokio::test]
async fn tool_results_are_patched_field_by_field() {
    let harness = Harness::start();
    harness
        .run(&[
            ("a.ts", "export default (pi) => pi.on('tool_result', (event) => ({ content: [...event.content, { type: 'text', text: 'more' }] }));"),
            ("b.ts", "export default (pi) => { pi.on('tool_result', () => { throw new Error('skip me'); }); pi.on('tool_result', (event) => ({ isError: event.content.length > 1 })); };"),
        ])
        .await;
    let payload = json!({ "toolCallId": "t", "toolName": "bash", "input": {}, "content": [{ "type": "text", "text": "one" }], "isError": false });
    let patch = harness.handle.tool_result(payload).await.unwrap();
    assert_eq!(patch.content.unwrap(), [Block::text("one"), Block::text("more")]);
    assert_eq!(patch.is_error, Some(true));
    assert_eq!(harness.error("tool_result").await.error, "skip me");
}

#[tokio::test]
async fn before_agent_start_collects_messages_and_lets_the_prompt_be_rewritten() {
    let harness = Harness::start();
    harness
        .run(&[
            (
                "a.ts",
                "export default (pi) => pi.on('before_agent_start', (event, ctx) => {
                event.systemPromptOptions.promptGuidelines.push('be brief');
                return { message: { customType: 'note', content: 'from a: ' + event.prompt, display: true } };
            });",
            ),
            (
                "b.ts",
                "export default (pi) => pi.on('before_agent_start', (event, ctx) => {
                return { systemPrompt: event.systemPrompt + ' | ' + ctx.getSystemPrompt() };
            });",
            ),
        ])
        .await;
    let payload = json!({ "prompt": "hi", "systemPrompt": "base", "systemPromptOptions": { "promptGuidelines": [] } });
    let start = harness.handle.before_agent_start(payload).await;
    assert_eq!(start.messages, [json!({ "customType": "note", "content": "from a: hi", "display": true })]);
    let built = r#"built with {"promptGuidelines":["be brief"]}"#;
    assert_eq!(start.system_prompt.unwrap(), format!("{built} | {built}"));
    assert_eq!(start.system_prompt_options, Some(json!({ "promptGuidelines": ["be brief"] })));
}

#[tokio::test]
async fn context_messages_may_be_replaced_or_edited_in_place() {
    let harness = Harness::start();
    harness
        .run(&[(
            "a.ts",
            "export default (pi) => {
            pi.on('context', (event) => { if (event.messages.length > 1) event.messages.pop(); });
            pi.on('context', (event) => event.messages[0].role === 'user' ? undefined : { messages: [] });
        };",
        )])
        .await;
    let user = json!({ "role": "user", "content": "x" });
    let context = |messages: Value| async move { messages };
    let one = context(json!([user])).await;
    assert_eq!(harness.handle.context(EventName::Context, &one).await, None, "unchanged");
    let two = json!([user, user]);
    assert_eq!(harness.handle.context(EventName::Context, &two).await, Some(vec![user.clone()]));
    let other = json!([{ "role": "assistant" }]);
    assert_eq!(harness.handle.context(EventName::Context, &other).await, Some(vec![]));
}

#[tokio::test]
async fn requests_and_headers_pass_through_every_handler() {
    let harness = Harness::start();
    harness
        .run(&[("a.ts", "export default (pi) => {
            pi.on('before_provider_request', (event) => ({ ...event.payload, a: 1 }));
            pi.on('before_provider_request', (event) => { event.payload.b = event.payload.a + 1; });
            pi.on('before_provider_headers', (event) => { event.headers['x-mine'] = 'yes'; event.headers.gone = null; });
        };")])
        .await;
    assert_eq!(
        harness.handle.before_provider_request(json!({ "model": "m" })).await,
        json!({ "model": "m", "a": 1, "b": 2 })
    );
    let headers = harness.handle.before_provider_headers(object(json!({ "gone": "x" }))).await;
    assert_eq!(Value::Object(headers), json!({ "gone": null, "x-mine": "yes" }));
}

#[tokio::test]
async fn a_message_keeps_its_role_when_replaced() {
    let harness = Harness::start();
    harness
        .run(&[(
            "a.ts",
            "export default (pi) => {
            pi.on('message_end', (event) => ({ message: { ...event.message, role: 'user' } }));
            pi.on('message_end', (event) => ({ message: { ...event.message, content: null } }));
        };",
        )])
        .await;
    let replaced = harness.handle.message_end(&json!({ "role": "assistant", "content": [] })).await;
    assert_eq!(replaced, Some(json!({ "role": "assistant", "content": [] })));
    assert_eq!(
        harness.error("message_end").await.error,
        "message_end handlers must return a message with the same role"
    );
}

#[tokio::test]
async fn handlers_can_edit_what_they_are_shown() {
    let harness = Harness::start();
    harness
        .run(&[(
            "a.ts",
            "export default (pi) => {
            pi.on('message_end', (event) => { event.message.content[0].text += '!'; });
            pi.on('tool_result', (event) => { event.content.push({ type: 'text', text: event.toolName }); });
        };",
        )])
        .await;
    let said = |text: &str| json!({ "role": "assistant", "content": [{ "type": "text", "text": text }] });
    assert_eq!(harness.handle.message_end(&said("hi")).await, Some(said("hi!")));
    let payload = json!({ "toolCallId": "t", "toolName": "bash", "input": {}, "content": [], "isError": false });
    let patch = harness.handle.tool_result(payload).await.expect("changed");
    assert_eq!(json!(patch.content), json!([{ "type": "text", "text": "bash" }]));
}

#[tokio::test]
async fn events_begin_with_their_type() {
    let harness = Harness::start();
    let text = "export default (pi) => {
        for (const name of ['input', 'tool_call', 'turn_end', 'session_start', 'user_bash', 'before_agent_start'])
            pi.on(name, (event, ctx) => ctx.ui.notify(Object.keys(event).join()));
    };";
    harness.run(&[("a.ts", text)]).await;
    let handle = &harness.handle;
    handle.session_start("startup", None).await;
    handle.input("hi", &[], "rpc", None).await;
    handle.before_agent_start(json!({ "prompt": "hi", "systemPrompt": "s", "systemPromptOptions": {} })).await;
    handle.tool_call("c1", "read", serde_json::Map::new()).await;
    handle.boundary(EventName::TurnEnd, json!({ "turnIndex": 0 })).await;
    handle.user_bash("ls", false, "/").await;
    assert_eq!(
        harness.notifications(),
        [
            "type,reason,previousSessionFile",
            "type,text,images,source,streamingBehavior",
            "type,prompt,systemPrompt,systemPromptOptions",
            "type,toolName,toolCallId,input",
            "type,turnIndex,entries,continue,context",
            "type,command,excludeFromContext,cwd",
        ]
    );
}

#[tokio::test]
async fn a_turn_can_end_with_drafts_and_a_continuation() {
    let harness = Harness::start();
    harness
        .run(&[(
            "a.ts",
            "export default (pi) => {
            pi.on('turn_end', () => ({ entries: [{ type: 'custom', customType: 'x' }] }));
            pi.on('turn_end', (event) => ({ continue: event.context.canContinue && event.context.drafts === 1 }));
            pi.on('agent_before_settle', () => ({ entries: 'nonsense' }));
        };",
        )])
        .await;
    let boundary = harness.handle.boundary(EventName::TurnEnd, json!({ "turnIndex": 0 })).await;
    assert_eq!(
        boundary,
        Some(Boundary {
            entries: vec![json!({ "type": "custom", "customType": "x" })],
            proposer: Some(harness.source(&harness.surroundings.cwd.join("a.ts")).path),
            continues: true
        })
    );
    assert_eq!(harness.handle.boundary(EventName::AgentBeforeSettle, json!({})).await, None);
    assert!(harness.error("agent_before_settle").await.error.starts_with("Invalid boundary entries: "));
}

#[tokio::test]
async fn the_last_result_is_used_and_the_first_cancel_stops() {
    let harness = Harness::start();
    harness
        .run(&[("a.ts", "export default (pi) => {
            pi.on('session_before_switch', (event) => event.reason === 'new' ? { cancel: true } : { note: 1 });
            pi.on('session_before_switch', (event, ctx) => { ctx.ui.notify('second'); return { note: 2 }; });
            pi.on('session_before_compact', (event) => ({ compaction: { summary: [...event.preparation.fileOps.read].join(), aborted: event.signal.aborted } }));
        };")])
        .await;
    let cancel = CancellationToken::new();
    let before = |event, payload| harness.handle.session_before(event, payload, &cancel);
    assert_eq!(
        before(EventName::SessionBeforeSwitch, json!({ "reason": "new" })).await,
        Some(json!({ "cancel": true }))
    );
    assert_eq!(before(EventName::SessionBeforeSwitch, json!({ "reason": "resume" })).await, Some(json!({ "note": 2 })));
    assert_eq!(harness.notifications(), ["second"]);
    let preparation = json!({ "preparation": { "fileOps": { "read": ["a", "b"], "written": [], "edited": [] } } });
    let compacted = before(EventName::SessionBeforeCompact, preparation).await.unwrap();
    assert_eq!(compacted["compaction"], json!({ "summary": "a,b", "aborted": false }));
}

#[tokio::test]
async fn discovered_resources_are_collected_with_their_extension() {
    let harness = Harness::start();
    harness
        .run(&[
            ("a.ts", "export default (pi) => pi.on('resources_discover', (event) => ({ skillPaths: [event.cwd + '/skills', 7] }));"),
            ("b.ts", "export default (pi) => pi.on('resources_discover', () => ({ promptPaths: ['/p'], skillPaths: ['/s'] }));"),
        ])
        .await;
    let found = harness.handle.resources_discover("/here", "startup").await;
    let paths: Vec<&str> = found.skill_paths.iter().map(|path| path.path.as_str()).collect();
    assert_eq!(paths, ["/here/skills", "/s"]);
    assert!(found.prompt_paths[0].extension_path.ends_with("b.ts"));
}

#[tokio::test]
async fn older_session_events_reach_only_extensions_that_know_no_newer_ones() {
    let harness = Harness::start();
    harness
        .run(&[
            ("old.ts", "export default (pi) => pi.on('session_switch', (event, ctx) => ctx.ui.notify('old ' + event.type + ' ' + event.reason));"),
            ("both.ts", "export default (pi) => {
                pi.on('session_start', (event, ctx) => ctx.ui.notify('new ' + event.reason));
                pi.on('session_switch', (event, ctx) => ctx.ui.notify('twice'));
            };"),
        ])
        .await;
    harness.handle.session_start("startup", None).await;
    harness.handle.session_start("resume", Some("/old.jsonl")).await;
    assert_eq!(harness.notifications(), ["new startup", "new resume", "old session_switch resume"]);
}

#[tokio::test]
async fn shell_commands_of_the_host_can_be_handled_by_extensions() {
    let harness = Harness::start();
    harness
        .run(&[("a.ts", "export default (pi) => pi.on('user_bash', (event) => {
            if (event.command === 'local') return undefined;
            if (event.command === 'done') return { result: { output: 'made up', exitCode: 0, cancelled: false, truncated: false } };
            if (event.command === 'wrong') return { neither: true };
            return { operations: { exec: async (command, cwd, { onData }) => { onData(Buffer.from('remote ' + command)); return { exitCode: 3 }; } } };
        });")])
        .await;
    let bash = |command: &'static str| harness.handle.user_bash(command, false, "/");
    assert_eq!(bash("local").await, UserBash::Local);
    assert!(matches!(bash("done").await, UserBash::Result(result) if result["output"] == "made up"));
    assert!(matches!(bash("wrong").await, UserBash::Failed(why) if why.contains("either operations or result")));
    let UserBash::Operations(operations) = bash("uname").await else { panic!("operations") };
    let output = std::cell::RefCell::new(String::new());
    let cancel = CancellationToken::new();
    let run =
        harness.handle.run_operations(operations, "uname", "/", &cancel, |data| output.borrow_mut().push_str(data));
    assert_eq!(run.await, Ok(Some(3)));
    assert_eq!(output.into_inner(), "remote uname");
}

#[tokio::test]
async fn project_trust_is_decided_by_the_first_handler_that_decides() {
    let harness = Harness::start();
    harness
        .load(&[
            ("a.ts", "export default (pi) => { pi.on('project_trust', () => { throw new Error('dunno'); }); pi.on('project_trust', () => ({ trusted: 'undecided' })); };"),
            ("b.ts", "export default (pi) => pi.on('project_trust', async (event, ctx) => {
                const asked = await ctx.ui.confirm('Trust?', event.cwd);
                return { trusted: asked || ctx.hasUI ? 'yes' : 'no', remember: true };
            });"),
        ])
        .await;
    let decision = harness.handle.project_trust("/project").await.unwrap();
    assert!(!decision.trusted && decision.remember);
    harness.wait_for("the warning", |seen| seen.output.contains("dunno").then_some(())).await;
    assert_eq!(harness.errors(), []);
}

#[tokio::test]
async fn session_shutdown_has_a_time_limit() {
    let harness =
        Harness::with_limits(pith_ext::Limits { shutdown: Duration::from_millis(100), ..pith_ext::Limits::default() });
    harness
        .run(&[("a.ts", "export default (pi) => pi.on('session_shutdown', (event, ctx) => { ctx.ui.notify(event.reason); return new Promise(() => {}); });")])
        .await;
    let began = std::time::Instant::now();
    harness.handle.session_shutdown("quit", None).await;
    assert!(began.elapsed() < TIMEOUT);
    harness.notified("quit").await;
}
