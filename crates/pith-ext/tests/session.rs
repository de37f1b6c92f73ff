//! What extensions do to the session and see of it.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use pith_ext::{EventName, Loading};
use serde_json::json;
use support::Harness;
use tokio_util::sync::CancellationToken;

/// Runs a body as a command and returns what it notified.
async fn run(body: &str) -> Harness {
    let harness = Harness::start();
    let text = format!(
        "import * as core from '@earendil-works/pi-coding-agent'; import * as ai from '@mariozechner/pi-ai';
         export default (pi) => pi.registerCommand('go', {{ description: 'goes', handler: async (args, ctx) => {{
            const show = (value) => ctx.ui.notify(typeof value === 'string' ? value : JSON.stringify(value) ?? 'undefined');
            {body}
         }} }});"
    );
    harness.run(&[("act.ts", &text)]).await;
    harness.command("go", "some args").await;
    assert_eq!(harness.errors(), [], "{body}");
    harness
}

async fn check(body: &str, expected: &[&str]) {
    assert_eq!(run(body).await.notifications(), expected, "{body}");
}

#[tokio::test]
async fn decorators_work() {
    check(
        "const loud = (target, key, it) => ({ ...it, value: (...args) => it.value(...args).toUpperCase() });
         const named = (name) => (type) => { type.label = name; };
         @named('A class') class A { @loud greet(who) { return 'hello ' + who; } }
         ctx.ui.notify(A.label + ': ' + new A().greet('you'));",
        &["A class: HELLO YOU"],
    )
    .await;
}

#[tokio::test]
async fn actions_reach_the_session_in_order() {
    let harness = run(
        "pi.sendMessage({ customType: 'note', content: 'hi', display: true }, { triggerTurn: true, deliverAs: 'followUp' });
         pi.sendUserMessage('do it', { deliverAs: 'steer' });
         pi.sendUserMessage([{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }]);
         pi.appendEntry('state', { n: 1 });
         pi.sendMessage({ content: 'of no type' });
         pi.setSessionName('named');
         pi.setLabel('e1', 'mark'); pi.setLabel('e1', undefined);
         pi.setActiveTools(['read']);
         pi.setThinkingLevel('high');
         ctx.abort(); ctx.shutdown();",
    )
    .await;
    assert_eq!(
        harness.log(),
        [
            r#"append_entry state {"n":1}"#,
            r#"send_message  Text("of no type")"#,
            "set_session_name named",
            r#"set_label e1 Some("mark")"#,
            "set_label e1 None",
            "set_active_tools read",
            "set_thinking_level high",
            "abort",
            "shutdown",
            // A request that starts a run is sent when the command pauses.
            r#"send_message note Text("hi")"#,
            "send_user_message steer do it",
            "send_user_message now a\nb",
        ]
    );
}

#[tokio::test]
async fn an_extension_reads_its_own_writes() {
    check(
        "pi.appendEntry('a', 1); pi.appendEntry('b', 2); pi.setThinkingLevel('low'); pi.setActiveTools(['read']); pi.setSessionName('n');
         const sm = ctx.sessionManager;
         show(sm.getEntries().map((entry) => entry.customType)); show(sm.getBranch().map((entry) => entry.id)); show(sm.getLeafId());
         show(sm.getEntry('e1').data); show(sm.getTree()[0].children.length);
         show([pi.getThinkingLevel(), pi.getActiveTools(), pi.getSessionName()]);",
        &[r#"["a","b"]"#, r#"["e1","e2"]"#, "e2", "1", "1", r#"["low",["read"],"n"]"#],
    )
    .await;
}

#[tokio::test]
async fn the_context_shows_the_session() {
    check(
        "show([args, ctx.isIdle(), ctx.hasPendingMessages(), ctx.isProjectTrusted(), ctx.model.id, ctx.thinkingLevel, ctx.getContextUsage().percent, ctx.signal === undefined]);
         show([ctx.getSystemPrompt(), ctx.getSystemPromptOptions().cwd, ctx.sessionManager.getSessionId(), ctx.sessionManager.getSessionFile() === undefined, ctx.sessionManager.getHeader().id]);
         show(pi.getAllTools().map((tool) => tool.name + ':' + tool.sourceInfo.source)); show(pi.getCommands().map((command) => command.name + ' ' + command.description));",
        &[
            r#"["some args",true,false,true,"one","medium",10,true]"#,
            r#"["You are pith.","/","session-1",true,"session-1"]"#,
            r#"["bash:builtin","read:builtin"]"#,
            r#"["go goes"]"#,
        ],
    )
    .await;
}

#[tokio::test]
async fn commands_control_sessions() {
    let harness = run(
        "await ctx.waitForIdle();
         show(await ctx.newSession({ parentSession: '/p', setup: async (sm) => { sm.appendMessage({ role: 'user', content: 'x' }); sm.appendCustomEntry('c', 1); },
            withSession: async (fresh) => { await fresh.sendUserMessage('first'); show('with ' + fresh.mode); } }));
         show(await ctx.fork('e1', { position: 'at', withSession: async () => show('never') }));
         show(await ctx.switchSession('/s.jsonl')); show(await ctx.navigateTree('e1', { summarize: true }));
         await ctx.reload();
         ctx.compact({ customInstructions: 'short', onComplete: (result) => show(result.summary) });",
    )
    .await;
    harness.notified("short").await;
    assert_eq!(
        harness.log(),
        [
            "new_session 2",
            "send_user_message now first",
            "fork e1 At",
            "switch_session /s.jsonl",
            "navigate_tree e1",
            "reload",
            r#"compact Some("short")"#,
        ]
    );
    let shown = harness.notifications();
    assert_eq!(shown[..3], ["with rpc", r#"{"cancelled":false}"#, r#"{"cancelled":true}"#]);
}

#[tokio::test]
async fn models_can_be_looked_up_and_called() {
    check(
        "const registry = ctx.modelRegistry;
         const model = registry.find('test', 'one');
         show([model.id, registry.find('test', 'none') === undefined, registry.getAll().length, registry.hasConfiguredAuth(model), registry.getAvailable()[0].id]);
         show([(await registry.getApiKeyAndHeaders(model)).apiKey, await registry.getApiKey(model), await registry.getApiKeyForProvider('p')]);
         const answer = await registry.complete(model, { messages: [{ role: 'user', content: 'hi' }] });
         show(answer.content[0].text + ' ' + answer.stopReason);
         const events = [];
         for await (const event of ai.stream(ai.getModel('test', 'one'), { messages: [] }, { apiKey: 'k' })) events.push(event.type + (event.partial ? ':' + event.partial.content.length : ''));
         show(events.join());
         show((await ai.completeSimple(model, { messages: [] }, { headers: { Authorization: 'Bearer k' } })).content[0].text);
         const refused = await ai.complete(model, { messages: [] });
         show([refused.stopReason, refused.errorMessage]);
         show([registry.getProvider('test').id, registry.getProvider('nobody') === undefined, (await registry.getProviderAuth('test')).auth.apiKey, registry.getRegisteredProviderIds(), registry.getRegisteredProviderConfig('test') === undefined]);
         registry.registerProvider('own', { baseUrl: 'http://localhost:1', apiKey: 'k', api: 'openai-completions', models: [] });
         show([registry.getRegisteredProviderIds(), registry.getRegisteredProviderConfig('own').apiKey, registry.getRegisteredNativeProvider('own') === undefined]);
         show([await pi.setModel(model), await pi.setModel({ ...model, id: 'locked' })]);",
        &[
            r#"["one",true,1,true,"one"]"#,
            r#"["key-test","key-test","key-p"]"#,
            "hello from the model stop",
            "start:0,text_start:1,text_delta:1,text_end:1,done",
            "hello from the model",
            r#"["error","No API key for provider: test"]"#,
            r#"["test",true,"key-test",[],true]"#,
            r#"[["own"],"k",true]"#,
            "[true,false]",
        ],
    )
    .await;
}

#[tokio::test]
async fn failed_messages_are_reported() {
    let harness = Harness::start();
    harness
        .run(&[("act.ts", "export default (pi) => pi.on('agent_settled', () => { pi.sendMessage({ customType: 'refused' }); pi.sendUserMessage(7); });")])
        .await;
    harness.handle.notify(EventName::AgentSettled, json!({})).await;
    let error = harness.error("send_message").await;
    assert_eq!((error.path.as_str(), error.error.as_str()), ("<runtime>", "no room for it"));
    assert_eq!(harness.error("send_user_message").await.path, "<runtime>");
}

#[tokio::test]
async fn a_command_that_throws_counts_as_run_and_is_reported() {
    let harness = Harness::start();
    harness
        .run(&[(
            "act.ts",
            "export default (pi) => pi.registerCommand('bad', { handler: async () => { throw new Error('oops'); } });",
        )])
        .await;
    assert!(harness.handle.run_command("bad", "").await);
    let error = harness.error("command").await;
    assert_eq!((error.path.as_str(), error.error.as_str()), ("command:bad", "oops"));
    assert!(!harness.handle.run_command("unknown", "").await);
}

#[tokio::test]
async fn commands_complete_their_arguments() {
    let harness = Harness::start();
    harness
        .run(&[("act.ts", "export default (pi) => {
            pi.registerCommand('pick', { handler: async () => {}, getArgumentCompletions: async (prefix) => ['red', 'green'].filter((word) => word.startsWith(prefix)).map((value) => ({ value, label: value })) });
            pi.registerCommand('plain', { handler: async () => {} });
        };")])
        .await;
    assert_eq!(harness.handle.complete_arguments("pick", "g").await, json!([{ "value": "green", "label": "green" }]));
    assert_eq!(harness.handle.complete_arguments("plain", "g").await, json!(null));
}

#[tokio::test]
async fn programs_are_run_without_a_shell_and_never_reject() {
    check(
        "show(await pi.exec('sh', ['-c', 'echo $0 out; echo err >&2; exit 3', 'me']));
         show(await pi.exec('/does/not/exist', []));
         show((await pi.exec('/etc/passwd', ['x'])).stderr);
         show(await pi.exec('sleep', ['30'], { timeout: 50 }));
         const c = new AbortController(); setTimeout(() => c.abort(), 30);
         show((await pi.exec('sleep', ['30'], { signal: c.signal })).killed);
         show((await pi.exec('pwd', [], { cwd: '/' })).stdout.trim());
         show((await pi.exec('sh', ['-c', 'sleep 5 & echo quick'])).stdout.trim());",
        &[
            r#"{"stdout":"me out\n","stderr":"err\n","code":3,"killed":false}"#,
            r#"{"stdout":"","stderr":"spawn /does/not/exist ENOENT","code":1,"killed":false}"#,
            "spawn /etc/passwd EACCES",
            r#"{"stdout":"","stderr":"","code":0,"killed":true}"#,
            "true",
            "/",
            "quick",
        ],
    )
    .await;
}

#[tokio::test]
async fn renderers_and_shortcuts_are_recorded_and_never_called() {
    let harness = Harness::start();
    let report = harness
        .load(&[("render.ts", "export default (pi) => {
            const never = () => { throw new Error('called'); };
            pi.registerMessageRenderer('note', never); pi.registerEntryRenderer('entry', never); pi.registerMarkdownTransformer(never);
            pi.registerShortcut('ctrl+x', { description: 'cut', handler: never });
        };")])
        .await;
    let expected = [
        json!({ "kind": "message", "customType": "note" }),
        json!({ "kind": "entry", "customType": "entry" }),
        json!({ "kind": "markdown" }),
    ];
    assert_eq!(report.extensions[0].renderers, expected);
    assert_eq!(harness.handle.registry().shortcuts[0].key, "ctrl+x");
}

#[tokio::test]
async fn loading_again_keeps_global_state_and_drops_old_providers() {
    let harness = Harness::start();
    let text = "export default (pi) => pi.registerProvider('mine', { baseUrl: 'http://x', apiKey: '$KEY', api: 'openai-completions', models: [{ id: 'm' }] });";
    let source = harness.source(&harness.file("p.ts", text));
    harness.handle.load(std::slice::from_ref(&source), Loading::Add, &harness.surroundings).await;
    assert!(harness.log().is_empty(), "providers wait for the session");
    harness.bind().await;
    harness.handle.load(&[source], Loading::Again, &harness.surroundings).await;
    harness.bind().await;
    assert_eq!(
        harness.log(),
        ["register_provider mine streams=false", "unregister_provider mine", "register_provider mine streams=false"]
    );
    assert_eq!(harness.seen.lock().unwrap().providers["mine"]["apiKey"], "$KEY");
}

#[tokio::test]
async fn helpers_of_the_packages_work() {
    check(
        "show([core.getAgentDir().endsWith('agent'), core.CONFIG_DIR_NAME, core.VERSION, core.formatSize(2048), ai.uuidv7().length]);
         show(core.parseFrontmatter('---\\nname: x\\nlist: [a, b]\\nitems:\\n  - one\\n  - two\\nflag: true\\ntext: \"q: r\"\\n---\\nbody')); 
         show(core.truncateHead('a\\nb\\nc', { maxLines: 2 }).content); show(core.truncateTail('a\\nb\\nc', { maxLines: 2 }).content);
         show(core.serializeConversation(core.convertToLlm([{ role: 'user', content: 'q' }, { role: 'assistant', content: [{ type: 'toolCall', name: 'read', arguments: { path: 'x' } }] }, { role: 'bashExecution', command: 'ls', output: 'a', exitCode: 0 }])));
         const fs = require('fs'); fs.mkdirSync('.pi'); fs.writeFileSync('.pi/settings.json', JSON.stringify({ theme: 'dark', a: { b: 1 } }));
         const settings = core.SettingsManager.create(); show([settings.getTheme(), settings.getProjectSettings().a.b, settings.getMissing() ?? null]);
         const lines = [{ type: 'session', id: 'x', cwd: '/c' }, { type: 'message', id: '1', parentId: null, message: { role: 'user', content: 'q' } }];
         fs.writeFileSync('s.jsonl', lines.map((line) => JSON.stringify(line)).concat('broken').join(String.fromCharCode(10)));
         const opened = core.SessionManager.open('s.jsonl'); show([opened.getSessionId(), opened.getCwd(), opened.getBranch().length]);
         show(await core.withFileMutationQueue('/x', async () => 'queued')); show(ai.StringEnum(['a']));",
        &[
            r#"[true,".pi","1.4.0","2.0KB",36]"#,
            r#"{"frontmatter":{"name":"x","list":["a","b"],"items":["one","two"],"flag":true,"text":"q: r"},"body":"body"}"#,
            "a\nb",
            "b\nc",
            "[User]: q\n\n[Assistant tool calls]: read(path=\"x\")\n\n[User]: Ran `ls`\n```\na\n```",
            r#"["dark",1,null]"#,
            r#"["x","/c",1]"#,
            "queued",
            r#"{"type":"string","enum":["a"]}"#,
        ],
    )
    .await;
}

#[tokio::test]
async fn events_tools_and_commands_show_the_same_objects() {
    let harness = Harness::start();
    let text = "const seen = []; const note = (ctx) => seen.push([ctx.sessionManager, ctx.modelRegistry, ctx.ui]); \
        export default (pi) => { globalThis.all ??= []; globalThis.all.push(seen); \
          pi.on('agent_start', (event, ctx) => note(ctx)); \
          pi.registerTool({ name: 'NAME', description: '', parameters: { type: 'object' }, execute: async (id, params, signal, update, ctx) => { note(ctx); return { content: [] }; } }); \
          pi.registerCommand('NAME', { handler: async (args, ctx) => { note(ctx); \
            const same = seen.every((parts) => parts.every((part, index) => part === seen[0][index])); \
            const shared = globalThis.all.every(([first]) => !first || first.slice(0, 2).every((part, index) => part === seen[0][index])); \
            ctx.ui.notify([seen.length, same, shared, new WeakMap([[ctx.sessionManager, 1]]).has(seen[0][0])].join(' ')); } }); };";
    harness.run(&[("a.ts", &text.replace("NAME", "a")), ("b.ts", &text.replace("NAME", "b"))]).await;
    harness.handle.notify(EventName::AgentStart, json!({})).await;
    harness.command("a", "").await;
    harness.handle.run_tool("a", "t", serde_json::Map::new(), &CancellationToken::new(), |_| {}).await;
    harness.command("a", "").await;
    harness.command("b", "").await;
    assert_eq!(harness.notifications(), ["2 true true true", "4 true true true", "2 true true true"]);
}

#[tokio::test]
async fn each_part_of_the_context_is_one_object() {
    let harness = Harness::start();
    let text = "let seen: unknown[];
        const parts = (ctx) => [ctx.sessionManager, ctx.modelRegistry, ctx.ui];
        export default (pi) => {
            pi.on('agent_settled', (event, ctx) => { seen = parts(ctx); });
            pi.registerCommand('go', { handler: (args, ctx) => ctx.ui.notify(JSON.stringify(parts(ctx).map((part, at) => part === seen[at]))) });
        };";
    harness.run(&[("same.ts", text)]).await;
    harness.handle.notify(EventName::AgentSettled, json!({})).await;
    harness.command("go", "").await;
    assert_eq!(harness.notifications(), ["[true,true,true]"]);
}
