//! pi's packages as extensions import them: the names, and what works without a session.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::collections::BTreeMap;

use support::Harness;
use support::evaluate::evaluate;

const IMPORTS: &str = "import * as fs from 'node:fs'; import * as path from 'node:path';
    import * as sdk from '@earendil-works/pi-coding-agent'; import * as core from '@mariozechner/pi-agent-core'; import * as ai from '@earendil-works/pi-ai';
    const { SessionManager, SettingsManager } = sdk;";

const HELPERS: &str = "const failure = async (fn) => { try { await fn(); return 'no failure'; } catch (error) { return error.message; } };
    const user = (text) => ({ role: 'user', content: text, timestamp: 1 });
    const answer = (text) => ({ role: 'assistant', content: [{ type: 'text', text }], provider: 'p', model: 'm', stopReason: 'stop', usage: { totalTokens: 7 }, timestamp: 2 });";

/// Evaluates expressions about pi's packages.
async fn check(setup: &str, cases: &[(&str, &str)]) {
    evaluate(IMPORTS, &format!("{HELPERS}\n{setup}"), cases).await;
}

/// The names of docs/sdk.md, by package, with what they are there.
fn documented() -> BTreeMap<String, BTreeMap<String, String>> {
    let page = include_str!("../../../docs/sdk.md");
    let (_, tables) = page.split_once("<!-- tables").unwrap();
    let mut found: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut package = String::new();
    for line in tables.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            name.clone_into(&mut package);
        }
        let Some((kind, names)) = line.strip_prefix("| ").and_then(|row| row.split_once(" | `")) else { continue };
        let kind = kind.rsplit_once(" (").map_or(kind, |(kind, _)| kind);
        for name in names.trim_end_matches(" |").split(' ') {
            found.entry(package.clone()).or_default().insert(name.trim_matches('`').to_owned(), kind.to_owned());
        }
    }
    found
}

#[tokio::test]
async fn every_documented_name_is_there_and_is_what_the_page_says() {
    let documented = documented();
    assert!(documented.len() == 5 && documented.values().map(BTreeMap::len).sum::<usize>() > 500);
    let harness = Harness::start();
    harness
        .run(&[(
            "kinds.ts",
            include_str!("../../../tests/extensions/exports.ts").replace("process.env.KINDS", "'kinds.json'").as_str(),
        )])
        .await;
    let text = std::fs::read_to_string(harness.surroundings.cwd.join("kinds.json")).unwrap();
    let offered: BTreeMap<String, BTreeMap<String, String>> = serde_json::from_str(&text).unwrap();
    for (package, names) in &documented {
        for (name, kind) in names {
            assert_eq!(
                offered[package].get(name),
                Some(kind),
                "{package}: {name}; tests/extensions/exports writes the page"
            );
        }
    }
}

#[tokio::test]
async fn what_refuses_can_be_imported_and_extended_and_names_itself_when_it_is_used() {
    check(
        "class Own extends sdk.InteractiveMode {}",
        &[
            ("typeof Own", r#""function""#),
            ("failure(() => new Own())", r#""InteractiveMode needs a terminal""#),
            (
                "failure(() => core.reduceLaneSnapshot())",
                r#""reduceLaneSnapshot is not available in pith: session files are those of SessionManager""#,
            ),
            (
                "failure(() => sdk.resizeImage())",
                r#""resizeImage is not available in pith: the agent resizes pictures before it sends them""#,
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn session_files_are_written_read_and_branched() {
    let setup = "const dir = path.join(ctx.cwd, 'sessions'), manager = SessionManager.create(ctx.cwd, dir);
        const file = manager.getSessionFile(), types = (name) => fs.readFileSync(name, 'utf8').trim().split('\\n').map((line) => JSON.parse(line).type);";
    check(
        setup,
        &[
            ("(manager.appendMessage(user('one')), fs.existsSync(file))", "false"),
            ("(manager.first = manager.appendMessage(answer('two')), types(file))", r#"["session","message","message"]"#),
            ("(manager.appendLabelChange(manager.first, 'here'), manager.appendMessage(user('three')), manager.getLabel(manager.first))", r#""here""#),
            ("failure(() => manager.appendLabelChange('nobody', 'x'))", r#""Entry nobody not found""#),
            ("SessionManager.open(file).getBranch().map(({ type }) => type)", r#"["message","message","label","message"]"#),
            ("SessionManager.open(file).buildSessionContext().model", r#"{"provider":"p","modelId":"m"}"#),
            ("types(SessionManager.open(file).createBranchedSession(manager.getLeafId()))", r#"["session","message","message","message","label"]"#),
            ("failure(() => SessionManager.open(file).createBranchedSession('nobody'))", r#""Entry nobody not found""#),
            ("SessionManager.forkFrom(file, '/elsewhere', dir).getHeader().parentSession === file", "true"),
            ("failure(() => SessionManager.forkFrom(path.join(dir, 'none.jsonl'), '/x', dir)).then((text) => text.startsWith('Cannot fork'))", "true"),
            ("(await SessionManager.list(ctx.cwd, dir)).map(({ firstMessage, messageCount }) => [firstMessage, messageCount])", r#"[["one",3],["one",3]]"#),
            ("SessionManager.continueRecent(ctx.cwd, dir).getEntries().length > 2", "true"),
            ("SessionManager.inMemory().getSessionFile()", "undefined"),
            ("(manager.appendContextEdit(manager.first, null), manager.buildSessionProjection().messages.map(({ role }) => role))", r#"["user","user"]"#),
        ],
    )
    .await;
}

#[tokio::test]
async fn settings_are_read_with_their_defaults_and_written_one_key_at_a_time() {
    let setup = "const dir = path.join(ctx.cwd, 'agent'), file = path.join(dir, 'settings.json'); fs.mkdirSync(dir, { recursive: true });
        fs.writeFileSync(file, JSON.stringify({ theme: 'dark', compaction: { reserveTokens: 5 } }));
        const settings = SettingsManager.create(ctx.cwd, dir);";
    check(
        setup,
        &[
            ("[settings.getTheme(), settings.getSteeringMode(), settings.getRetryEnabled(), settings.getDefaultModel()]", r#"["dark","one-at-a-time",true,null]"#),
            ("settings.getCompactionSettings()", r#"{"enabled":true,"reserveTokens":5,"keepRecentTokens":20000}"#),
            ("(fs.writeFileSync(file, JSON.stringify({ theme: 'light', other: 1 })), settings.setCompactionEnabled(false), JSON.parse(fs.readFileSync(file, 'utf8')))", r#"{"theme":"light","other":1,"compaction":{"enabled":false}}"#),
            ("(fs.writeFileSync(file, '{'), settings.setTheme('x'), settings.drainErrors().length)", "1"),
            ("fs.readFileSync(file, 'utf8')", r#""{""#),
            ("SettingsManager.inMemory({ packages: ['npm:a'] }).getPackages()", r#"["npm:a"]"#),
        ],
    )
    .await;
}

#[tokio::test]
async fn an_agent_calls_tools_and_goes_on_until_there_is_nothing_to_do() {
    // Answers as a provider streams them: first a call of a tool, then a text.
    let setup = "const said = []; let turn = 0;
        const streamFn = (model, context) => {
            const stream = ai.createAssistantMessageEventStream(), isFirst = turn++ === 0;
            said.push([context.systemPrompt, context.tools.map(({ name }) => name), context.messages.at(-1).role]);
            const content = isFirst ? [{ type: 'toolCall', id: 'c1', name: 'add', arguments: { a: 1, b: '2' } }] : [{ type: 'text', text: 'done' }];
            const message = { ...answer(''), content, stopReason: isFirst ? 'toolUse' : 'stop' };
            stream.push({ type: 'start', partial: message }); stream.push({ type: 'done', reason: message.stopReason, message }); stream.end();
            return stream;
        };
        const add = { name: 'add', label: 'Add', description: 'adds', parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] },
            execute: async (id, { a, b }) => ({ content: [{ type: 'text', text: String(a + b) }] }) };
        const agent = new core.Agent({ initialState: { systemPrompt: 'be exact', model: { id: 'm', provider: 'p', api: 'x' }, tools: [add] }, streamFn });
        const events = []; agent.subscribe(({ type }) => void events.push(type));";
    check(
        setup,
        &[
            ("(await agent.prompt('what is it'), agent.state.messages.map(({ role }) => role))", r#"["system","user","assistant","toolResult","assistant"]"#),
            ("agent.state.messages[3].content[0].text", r#""3""#),
            ("said", r#"[["be exact",["add"],"user"],["be exact",["add"],"toolResult"]]"#),
            ("events.join(' ')", r#""agent_start turn_start message_start message_end message_start message_end tool_execution_start tool_execution_end message_start message_end turn_end turn_start message_start message_end turn_end agent_end""#),
            ("(agent.beforeToolCall = () => ({ block: true, reason: 'no' }), turn = 0, await agent.prompt('again'), agent.state.messages.findLast(({ role }) => role === 'toolResult').content[0].text)", r#""no""#),
            ("(agent.beforeToolCall = () => { throw new Error('gate fell over'); }, turn = 0, await agent.prompt('again'), (({ isError, content }) => [isError, content[0].text])(agent.state.messages.findLast(({ role }) => role === 'toolResult')))", r#"[true,"gate fell over"]"#),
            ("(agent.beforeToolCall = undefined, add.execute = async () => ({ content: [{ type: 'text', text: 'too large' }], isError: true }), turn = 0, await agent.prompt('again'), (({ isError, content }) => [isError, content[0].text])(agent.state.messages.findLast(({ role }) => role === 'toolResult')))", r#"[true,"too large"]"#),
        ],
    )
    .await;
}

#[tokio::test]
async fn conversations_are_cut_before_a_prompt_or_an_answer_never_before_a_result() {
    let setup = "const long = 'x'.repeat(4000), entry = (id, message) => ({ type: 'message', id, parentId: null, timestamp: '2026-01-01T00:00:00Z', message });
        const result = { role: 'toolResult', toolCallId: 'c', toolName: 'read', content: [{ type: 'text', text: long }], timestamp: 3 };
        const path = [entry('a', user(long)), entry('b', answer('calls')), entry('c', result), entry('d', answer(long)), entry('e', user('next'))];";
    check(
        setup,
        &[
            ("sdk.findCutPoint(path, 0, path.length, 1)", r#"{"firstKeptEntryIndex":4,"turnStartIndex":-1,"isSplitTurn":false}"#),
            ("sdk.findCutPoint(path, 0, path.length, 1500)", r#"{"firstKeptEntryIndex":3,"turnStartIndex":0,"isSplitTurn":true}"#),
            ("(({ firstKeptEntryId, messagesToSummarize, turnPrefixMessages }) => [firstKeptEntryId, messagesToSummarize.length, turnPrefixMessages.length])(core.prepareCompaction(path, { enabled: true, reserveTokens: 10, keepRecentTokens: 1500 }))", r#"["d",0,3]"#),
            ("sdk.shouldCompact(95, 100, { enabled: true, reserveTokens: 10 })", "true"),
            ("sdk.generateUnifiedPatch('f', 'a\\nb\\nc\\n', 'a\\nx\\nc\\n')", r#""--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n""#),
            ("sdk.generateDiffString('a\\nb', 'a\\nc').diff", r#"" 1 a\n-2 b\n+2 c""#),
        ],
    )
    .await;
}

#[tokio::test]
async fn contexts_show_the_same_objects_in_events_and_commands() {
    let harness = Harness::start();
    let text = "let seen; export default (pi) => {
        pi.on('session_start', (event, ctx) => { seen = [ctx.sessionManager, ctx.modelRegistry, ctx.ui]; });
        pi.registerCommand('go', { handler: (args, ctx) =>
            ctx.ui.notify(JSON.stringify([ctx.sessionManager, ctx.modelRegistry, ctx.ui].map((part, at) => part === seen[at]))) });
    };";
    harness.run(&[("parts.ts", text)]).await;
    harness.handle.session_start("startup", None).await;
    harness.command("go", "").await;
    assert_eq!(harness.notifications(), ["[true,true,true]"]);
}

#[tokio::test]
async fn a_package_manager_says_what_packages_settings_and_directories_bring() {
    check(
        r#"const agentDir = fs.mkdtempSync(path.join(ctx.cwd, 'agent-'));
        const cwd = path.join(agentDir, 'work');
        const write = (name, text = '') => {
            fs.mkdirSync(path.dirname(path.join(agentDir, name)), { recursive: true });
            fs.writeFileSync(path.join(agentDir, name), text);
        };
        const module = 'npm/node_modules/';
        for (const name of ['whole/extensions/a.ts', 'whole/extensions/b/index.js', 'whole/extensions/c.d.ts', 'whole/skills/s/SKILL.md', 'whole/prompts/p.md', 'whole/themes/t.json',
            'listed/src/x.ts', 'listed/src/y.ts', 'listed/extensions/no.ts', 'part/extensions/a.ts', 'part/extensions/b.ts', 'none/extensions/a.ts']) write(module + name);
        write(module + 'listed/package.json', '{ "pi": { "extensions": ["./src/*.ts", "!src/y.ts"] } }');
        write('extensions/on.ts');
        write('extensions/off.ts');
        write('more/extra.ts');
        write('work/.git/HEAD');
        write('work/.agents/skills/shared/SKILL.md');
        write('work/one.ts');
        write('settings.json', JSON.stringify({
            packages: ['npm:whole@1.0.0', 'npm:listed', { source: 'npm:part', extensions: ['extensions/a*'] }, { source: 'npm:none', extensions: [] }, 'npm:missing'],
            extensions: ['more/extra.ts', '-extensions/off.ts'],
        }));
        const manager = new sdk.DefaultPackageManager({ cwd, agentDir, settingsManager: SettingsManager.create(cwd, agentDir) });
        const shown = ({ path: file, enabled, metadata }) => [path.relative(agentDir, file), enabled, metadata.source, metadata.scope, metadata.origin].join(' ').replace(module, '');
        const found = await manager.resolve();
        const missing = [];"#,
        &[
            (
                "found.extensions.map(shown)",
                r#"["whole/extensions/a.ts true npm:whole@1.0.0 user package","whole/extensions/b/index.js true npm:whole@1.0.0 user package","listed/src/x.ts true npm:listed user package","part/extensions/a.ts true npm:part user package","part/extensions/b.ts false npm:part user package","none/extensions/a.ts false npm:none user package","more/extra.ts true local user top-level","extensions/off.ts false auto user top-level","extensions/on.ts true auto user top-level"]"#,
            ),
            (
                "found.skills.map(shown)",
                r#"["whole/skills/s/SKILL.md true npm:whole@1.0.0 user package","work/.agents/skills/shared/SKILL.md true auto project top-level"]"#,
            ),
            ("[...found.prompts, ...found.themes].map(shown)", r#"["whole/prompts/p.md true npm:whole@1.0.0 user package","whole/themes/t.json true npm:whole@1.0.0 user package"]"#),
            ("found.extensions[0].metadata.baseDir.endsWith('whole')", "true"),
            ("await manager.resolve(async (source) => (missing.push(source), 'skip')).then(() => missing)", r#"["npm:missing"]"#),
            ("await failure(() => manager.resolve(async () => 'error'))", r#""Missing source: npm:missing""#),
            (
                "(await manager.resolveExtensionSources(['./one.ts', './gone.ts', 'npm:listed'], { temporary: true })).extensions.map(shown)",
                r#"["work/one.ts true ./one.ts temporary package","listed/src/x.ts true npm:listed temporary package"]"#,
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_runtime_for_sessions_without_extensions_is_bound_to_nothing() {
    check(
        "const runtime = sdk.createExtensionRuntime(); runtime.registerProvider('own', {}); runtime.registerProvider('other', {}); runtime.unregisterProvider('own');",
        &[
            ("runtime.pendingProviderRegistrations.map(({ name }) => name)", r#"["other"]"#),
            ("(await failure(() => runtime.sendMessage({}))).slice(0, 33)", r#""Extension runtime not initialized""#),
            ("(await failure(() => runtime.setModel({}))).slice(0, 33)", r#""Extension runtime not initialized""#),
        ],
    )
    .await;
}

#[tokio::test]
async fn errors_of_models_are_sorted_as_pith_sorts_them() {
    let setup = "const failed = (text) => ({ role: 'assistant', stopReason: 'error', errorMessage: text });
        const again = (text) => ai.isRetryableAssistantError(failed(text));
        const isLong = (text, provider) => ai.isContextOverflow({ ...failed(text), provider });
        const cut = (output) => ({ role: 'assistant', stopReason: 'length', usage: { input: 99, cacheRead: 0, output } });";
    let cases = [
        (
            "['model is at capacity', 'status 502', '(429)', 'stream was interrupted'].map(again)",
            "[true,true,true,true]",
        ),
        (
            "['req_a429bc failed', '15000 bytes', '429 insufficient_quota', '{\"code\":\"1308\"}'].map(again)",
            "[false,false,false,false]",
        ),
        (
            "['Prompt exceeds max length', 'Context Window exceeded', '413 '].map((text) => isLong(text))",
            "[true,true,true]",
        ),
        (
            "[isLong('rate limit: too many tokens'), isLong('400 (no body)'), isLong('400 (no body)', 'cerebras')]",
            "[false,false,true]",
        ),
        ("[ai.isContextOverflow(cut(0), 100), ai.isContextOverflow(cut(1), 100)]", "[true,false]"),
        (
            "[ai.isRecoverableLength(cut(5), 10), ai.isRecoverableLength(cut(10), 10), ai.isRecoverableLength(cut(5))]",
            "[true,false,false]",
        ),
        (
            "ai.calculateCost({ cost: { input: -1e6, output: 2 } }, { input: 1e6, output: 1e6, cacheRead: 0, cacheWrite: 0 }).total",
            "2",
        ),
    ];
    check(setup, &cases).await;
}
