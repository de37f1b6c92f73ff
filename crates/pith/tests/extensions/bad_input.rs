//! Broken extensions: each fails its own call and nothing else. All the while pith answers its host, and a second
//! extension works.

use pith_testkit::{Script, Signal, Turn, process};
use serde_json::{Value, json};

use crate::stage::{NEIGHBOUR, Stage, strict};

/// An extension whose `input` handler runs `body`.
fn handler(body: &str) -> String {
    format!("export default (pi) => pi.on('input', async (event, ctx) => {{ {body} }});")
}

/// An extension whose command `/go` runs `body`.
fn command(body: &str) -> String {
    format!("export default (pi) => pi.registerCommand('go', {{ handler: async (args, ctx) => {{ {body} }} }});")
}

fn text<'v>(frame: &'v Value, field: &str) -> &'v str {
    frame[field].as_str().unwrap_or_else(|| panic!("{field} in {frame}"))
}

/// Checks that a file that cannot be loaded is reported and the rest works.
#[track_caller]
fn check_load(source: impl AsRef<[u8]>, expected: &str) {
    let source = source.as_ref();
    let mut stage = Stage::with(&[NEIGHBOUR], &strict(), Script::new(), |builder| builder);
    stage.host.kill();
    stage.home.write_agent_file("extensions/bad.ts", source);
    let home = stage.home.clone();
    stage.host = crate::support::builder().rpc(pith_testkit::Api::Anthropic).home(&home).spawn();
    let error = stage.error(0, "load");
    assert!(text(&error, "extensionPath").ends_with("bad.ts"), "{error}");
    assert!(text(&error, "error").contains(expected), "{expected:?} in {error}");
    let found = stage.ask(json!({"type": "get_diagnostics"}));
    assert!(found["data"].to_string().contains("bad.ts"), "{found}");
    stage.assert_alive();
    stage.run("hello");
    stage.finish(&format!("load: {expected}"));
}

/// Checks that an error of a handler is reported under `event`, the prompt goes on, and the neighbour sees it, too.
#[track_caller]
fn check_handler(body: &str, event: &str, expected: &str) {
    let mut stage = Stage::new(&[("bad.ts", &handler(body)), NEIGHBOUR], []);
    let start = stage.run("hello");
    let error = stage.error(start, event);
    assert!(text(&error, "extensionPath").ends_with("bad.ts"), "{body}: {error}");
    assert!(text(&error, "error").contains(expected), "{body}: {error}");
    stage.notified(start, "neighbour");
    stage.assert_alive();
    stage.finish(body);
}

/// Checks that a failing command is reported and the prompt that named it succeeds.
#[track_caller]
fn check_command(body: &str, expected: &str) {
    let mut stage = Stage::new(&[("bad.ts", &command(body)), NEIGHBOUR], []);
    let start = stage.now();
    stage.prompt("/go");
    let error = stage.error(start, "command");
    assert_eq!(text(&error, "extensionPath"), "command:go");
    assert!(text(&error, "error").contains(expected), "{body}: {error}");
    stage.assert_alive();
    stage.finish(&format!("/go: {body}"));
}

#[test]
fn files_that_are_no_program_are_reported() {
    check_load("export default (pi => {", "SyntaxError");
    check_load("", "does not export a valid factory function");
    check_load("export default 5;", "does not export a valid factory function");
    check_load("export const pi = 1;", "does not export a valid factory function");
    check_load([0xff, 0xfe, 0x00, 0x80, 0xc3], "bad.ts");
    check_load("\u{0}\u{1}\u{2}", "bad.ts");
}

#[test]
fn missing_imports_are_reported() {
    check_load("import x from './not-there.ts'; export default () => x;", "not-there");
    check_load("import x from 'no-such-package'; export default () => x;", "no-such-package");
    check_load("import './bad.ts/deeper'; export default () => {};", "deeper");
}

#[test]
fn failing_factories_are_reported() {
    check_load("export default () => { throw new Error('not today'); };", "not today");
    check_load("export default async () => { await null; throw new Error('a bit later'); };", "a bit later");
    check_load("throw new Error('at once'); export default () => {};", "at once");
    check_load("export default (pi) => pi.sendMessage({ customType: 'x', content: 'y' });", "not initialized");
    check_load("export default (pi) => pi.registerTool({ name: 'x' });", "parameters");
}

#[test]
fn factories_that_never_return_are_ended() {
    check_load("export default () => { for (;;) {} };", "was interrupted");
    check_load("for (;;) {} export default () => {};", "was interrupted");
    check_load("export default () => new Promise(() => {});", "1.5 s");
    check_load("await new Promise(() => {}); export default () => {};", "1.5 s");
    check_load("export default () => { const all = []; for (;;) all.push(new Uint8Array(1 << 20)); };", "memory");
    check_load(format!("export default () => {}1{};", "[".repeat(100_000), "]".repeat(100_000)), "bad.ts");
}

/// Limits that no test reaches.
fn generous() -> Value {
    json!({"extensionLimits": {"executionMs": 600_000, "factoryMs": 600_000, "shutdownMs": 500}})
}

/// Checks that a host is served although the extension never finishes loading; only what extensions may decide waits.
#[track_caller]
fn check_served(source: &str) {
    let mut stage = Stage::with(&[("bad.ts", source), NEIGHBOUR], &generous(), Script::new(), |builder| builder);
    stage.host.send(json!({"id": "prompt", "type": "prompt", "message": "hello"}));
    stage.host.send(json!({"id": "list", "type": "get_commands"}));
    assert_eq!(stage.poll_state()["isStreaming"], false);
    stage.ask(json!({"type": "get_messages"}));
    stage.ask(json!({"type": "abort"}));
    let prompt = stage.host.response("prompt");
    assert_eq!(prompt["error"], "Aborted before the prompt was started", "{prompt}");
    let frames = stage.finish(source);
    let list = frames.iter().find(|frame| frame["id"] == "list").expect("an answer in the end");
    assert_eq!(list["error"], "pith is shutting down", "{list}");
}

#[test]
fn a_host_is_served_while_factories_run() {
    check_served("export default () => { for (;;) {} };");
    check_served("for (;;) {} export default () => {};");
    check_served("export default async () => { for (;;) await null; };");
    check_served("export default () => new Promise(() => {});");
}

#[test]
fn a_named_extension_that_cannot_be_loaded_ends_the_start() {
    let mut stage = Stage::with(&[], &strict(), Script::new(), |builder| builder.args(["-e", "not-there.ts"]));
    assert_eq!(stage.host.exit_code(), 1);
    stage.host.wait_stderr(|text| text.contains("not-there.ts"));
    assert_eq!(stage.host.finish().0, [] as [Value; 0], "nothing on standard output");
}

#[test]
fn throwing_handlers_are_reported() {
    check_handler("throw new Error('no')", "input", "no");
    check_handler("await null; throw 'later'", "input", "later");
    check_handler("throw undefined", "input", "undefined");
    check_handler("throw { get message() { throw 1 }, toString() { throw 2 } }", "input", "unknown error");
    check_handler("null.x", "input", "null");
}

#[test]
fn unhandled_rejections_and_timer_errors_are_reported() {
    check_handler("Promise.reject(new Error('nobody cares'))", "unhandled_rejection", "nobody cares");
    check_handler(
        "(async () => { await null; throw new Error('in passing'); })()",
        "unhandled_rejection",
        "in passing",
    );
    check_handler("setTimeout(() => { throw new Error('tick'); }, 1)", "timer", "tick");
    check_handler("setTimeout(() => { for (;;) {} }, 1)", "interrupted", "was interrupted");
    check_handler("queueMicrotask(() => { throw new Error('micro'); })", "uncaught", "micro");
}

#[test]
fn endless_loops_are_interrupted() {
    check_handler("for (;;) {}", "input", "was interrupted");
    check_handler("for (;;) { try { for (;;) {} } catch {} finally { for (;;) {} } }", "input", "was interrupted");
    check_handler("for (;;) await null;", "input", "was interrupted");
    check_handler("await new Promise((done) => setTimeout(done, 5)); for (;;) {}", "input", "was interrupted");
}

#[test]
fn endless_queries_are_interrupted() {
    let body = "while (true) ctx.sessionManager.getEntries();";
    let mut stage = Stage::new(&[("bad.ts", &handler(body)), NEIGHBOUR], []);
    let start = stage.run("hello");
    let error = stage.error(start, "input");
    // Waiting for an answer does not count as the extension's time, so either limit may be reached first.
    let told = text(&error, "error");
    assert!(told.contains("was interrupted") || told.contains("did not answer in time"), "{error}");
    stage.assert_alive();
    stage.finish(body);
}

#[test]
fn backtracking_and_recursion_are_interrupted() {
    check_handler("/^(a+)+$/.test('a'.repeat(40) + 'b')", "input", "was interrupted");
    check_handler("const f = () => f() + 1; f();", "input", "stack");
    check_handler("JSON.parse('['.repeat(1000000))", "input", "stack");
    check_handler("let a = []; for (let i = 0; i < 20000; i++) a = [a]; String(a)", "input", "stack");
}

#[test]
fn endless_allocations_end_in_an_error() {
    check_handler("new Uint8Array(1 << 30)", "input", "memory");
    check_handler("const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1));", "input", "memory");
    check_handler("let text = 'x'; for (;;) text += text;", "input", "");
}

#[test]
fn memory_stays_within_its_limit() {
    let body = "const all = []; try { for (;;) all.push(new Uint8Array(1 << 20).fill(1)); } catch (e) { throw new Error('full') }";
    let mut stage = Stage::new(&[("bad.ts", &handler(body)), NEIGHBOUR], []);
    let start = stage.run("hello");
    stage.error(start, "input");
    let peak = stage.host.peak_memory() >> 20;
    assert!(peak < 250, "96 MiB is the limit of the engine; the process had {peak} MiB");
    stage.assert_alive();
    stage.finish("memory");
}

#[test]
fn a_handler_that_never_resolves_is_abandoned() {
    check_handler("await new Promise(() => {})", "input", "did not finish within 0.6 s");
}

#[test]
fn failing_commands_are_reported() {
    check_command("throw new Error('no')", "no");
    check_command("await null; null.x", "null");
    check_command("for (;;) {}", "was interrupted");
    check_command("/^(a+)+$/.test('a'.repeat(40) + 'b')", "was interrupted");
    check_command("new Uint8Array(1 << 30)", "memory");
    check_command("const f = () => f() + 1; f();", "stack");
}

#[test]
fn a_command_that_never_ends_blocks_no_host_command() {
    let body = command("ctx.ui.notify('begun'); await new Promise(() => {});");
    let mut stage = Stage::new(&[("bad.ts", &body), NEIGHBOUR], []);
    stage.host.send(json!({"type": "prompt", "message": "/go"}));
    stage.notified(0, "begun");
    stage.assert_alive();
    stage.run("hello");
    stage.finish("a command that never ends");
}

#[test]
fn a_session_start_that_hangs_delays_nothing_but_prompts() {
    let text = "export default (pi) => pi.on('session_start', async () => { await new Promise(() => {}); });";
    let mut stage = Stage::new(&[("bad.ts", text), NEIGHBOUR], []);
    stage.poll_state();
    stage.run("hello");
    stage.error(0, "session_start");
    stage.finish("session_start that hangs");
}

#[test]
fn session_shutdown_handlers_have_a_time_limit() {
    for body in ["await new Promise(() => {});", "for (;;) {}", "throw new Error('no');"] {
        let text = format!("export default (pi) => pi.on('session_shutdown', async () => {{ {body} }});");
        let mut stage = Stage::new(&[("bad.ts", &text)], []);
        stage.poll_state();
        stage.finish(&format!("session_shutdown: {body}"));
    }
}

#[test]
fn three_interruptions_in_a_row_disable_an_extension() {
    let bad = "export default (pi) => {
        pi.on('input', () => { for (;;) {} });
        pi.on('tool_call', () => undefined);
    };";
    let calls = [Turn::call("bash", json!({"command": "echo ran > ran.txt"})), Turn::text("done")];
    let turns = [Turn::text("1"), Turn::text("2"), Turn::text("3")].into_iter().chain(calls);
    let mut stage = Stage::new(&[("bad.ts", bad), NEIGHBOUR], turns);
    for _ in 0..3 {
        stage.run("hello");
    }
    let error = stage.error(0, "disabled");
    assert!(text(&error, "extensionPath").ends_with("bad.ts"), "{error}");
    let start = stage.run("call the tool");
    let frames = stage.host.frames();
    let errors = frames[start..].iter().filter(|frame| frame["type"] == "extension_error").count();
    assert_eq!(errors, 0, "its handlers are off");
    let end = stage.watch(start, "the end of the tool", |frame| frame["type"] == "tool_execution_end");
    assert_eq!(end["isError"], true, "its gate stays closed: {end}");
    assert_eq!(stage.home.read_file("ran.txt"), None);
    stage.notified(start, "neighbour");
    stage.assert_alive();
    stage.finish("three interruptions");
}

#[test]
fn nothing_an_extension_prints_reaches_standard_output() {
    let body = command(
        "console.log('printed %s', 'text', { a: 1 }); console.info('info'); console.table?.([[1]]);
        process.stdout.write('written\\n'); process.stdout.write(new Uint8Array([0x41, 0x0a]));
        (await import('node:child_process')).spawnSync('echo', ['inherited'], { stdio: 'inherit' });
        (await import('node:child_process')).spawn('echo', ['inherited too'], { stdio: 'inherit' });
        (await import('node:fs')).writeSync(1, 'by descriptor\\n');
        ctx.ui.notify('said');",
    );
    let mut stage = Stage::new(&[("loud.ts", &body), NEIGHBOUR], []);
    stage.prompt("/go");
    stage.notified(0, "said");
    let printed = ["printed text", "written\n", "inherited\n", "inherited too\n", "by descriptor\n"];
    stage.host.wait_stderr(|text| printed.iter().all(|part| text.contains(part)));
    stage.assert_alive();
    stage.finish("printing");
}

#[test]
fn process_exit_shuts_pith_down_in_order() {
    let mut stage = Stage::new(&[("bad.ts", &command("process.exit(3);")), NEIGHBOUR], []);
    stage.poll_state();
    stage.host.send(json!({"type": "prompt", "message": "/go"}));
    assert_eq!(stage.host.exit_code(), 3);
    let frames = stage.host.finish().0;
    assert!(frames.iter().all(|frame| frame["type"].is_string()), "{frames:?}");
}

#[test]
fn changes_to_the_process_stay_with_the_extension() {
    let body = command(
        "try { process.chdir('/'); } catch {} process.env.PATH = ''; process.env.ADDED = 'x'; ctx.ui.notify('changed');",
    );
    let mut stage = Stage::new(&[("bad.ts", &body)], []);
    stage.prompt("/go");
    stage.notified(0, "changed");
    let response =
        stage.ask(json!({"type": "bash", "command": "pwd; echo \"[$ADDED]\"; ls / > /dev/null && echo found"}));
    let output = text(&response["data"], "output");
    let work = stage.home.work().canonicalize().expect("the directory exists").display().to_string();
    assert!(output.contains(&work) && output.contains("[]") && output.contains("found"), "{output}");
    stage.finish("chdir");
}

#[test]
fn broken_built_ins_stay_inside() {
    let body = command(
        "JSON.stringify = () => { throw new Error('no JSON'); }; JSON.parse = null; Promise.prototype.then = null;
        Array.prototype.map = Object.prototype.toString = null; globalThis.Map = globalThis.Error = undefined;
        Object.defineProperty(Object.prototype, 'type', { get() { throw 1; } });
        ctx.ui.notify('broken');",
    );
    let mut stage = Stage::new(&[("bad.ts", &body)], []);
    stage.host.send(json!({"type": "prompt", "message": "/go"}));
    // What the extension does to its own engine affects only the engine; the agent goes on.
    stage.poll_state();
    stage.run("hello");
    stage.finish("broken built-ins");
}

#[test]
fn a_flood_of_requests_does_not_delay_the_host() {
    let body = command("for (;;) ctx.ui.setStatus('k', 'x'.repeat(100));");
    let mut stage = Stage::new(&[("bad.ts", &body), NEIGHBOUR], []);
    let start = stage.now();
    stage.host.send(json!({"type": "prompt", "message": "/go"}));
    stage.error(start, "command");
    stage.assert_alive();
    let peak = stage.host.peak_memory() >> 20;
    assert!(peak < 150, "{peak} MiB");
    stage.finish(&format!("a flood: {peak} MiB"));
}

#[test]
fn arguments_of_the_wrong_kind_are_errors_of_the_caller() {
    let body = command(
        "const tries = [
            () => pi.registerTool(), () => pi.registerTool({ name: 5, parameters: {} }), () => pi.registerTool({ name: 'x', parameters: [] }),
            () => pi.registerCommand(), () => pi.registerCommand('y', {}), () => pi.registerFlag('z'), () => pi.registerShortcut(),
            () => pi.registerProvider(), () => pi.registerProvider('p', { models: 5 }), () => pi.unregisterProvider(null),
            () => pi.on(), () => pi.on('input', 5), () => pi.on(null, () => {}),
            () => pi.sendMessage(), () => pi.sendMessage({ customType: 5, content: 7 }), () => pi.sendUserMessage(), () => pi.sendUserMessage([{ type: 'x' }]),
            () => pi.appendEntry(), () => { const a = {}; a.a = a; pi.appendEntry('cycle', a); }, () => pi.appendEntry('big', 10n),
            () => pi.setSessionName(), () => pi.setSessionName({}), () => pi.setLabel(), () => pi.setLabel('nowhere', 5),
            () => pi.setActiveTools(), () => pi.setActiveTools('bash'), () => pi.setActiveTools([1, null]),
            () => pi.setModel(), () => pi.setModel({ id: 5 }), () => pi.setThinkingLevel('enormous'), () => pi.setThinkingLevel({}),
            () => pi.exec(), () => pi.exec('/no/such/program', []), () => pi.exec('true', 'not a list'), () => pi.exec('true', [], { cwd: '/no/such/directory' }),
            () => ctx.ui.notify(), () => ctx.ui.notify({ a: 1 }, 'loud'), () => ctx.ui.setStatus(), () => ctx.ui.setWidget('w', 5), () => ctx.ui.setWidget('w', [1, null]),
            () => ctx.ui.setTitle({}), () => ctx.ui.setEditorText(), () => ctx.ui.select('x', 5, { timeout: 1 }), () => ctx.ui.confirm(undefined, 5, { timeout: 1 }),
            () => ctx.sessionManager.getEntry(), () => ctx.sessionManager.getBranch(5), () => ctx.sessionManager.getLabel({}),
            () => ctx.fork(), () => ctx.fork('nowhere'), () => ctx.navigateTree(), () => ctx.navigateTree('nowhere'), () => ctx.switchSession(), () => ctx.switchSession('/no/such/file'),
            () => ctx.compact('x'), () => ctx.modelRegistry.find(), () => ctx.modelRegistry.getApiKeyAndHeaders(),
            () => fetch(), () => fetch('nonsense://x'), () => new URL(''), () => structuredClone(() => {}),
        ];
        let n = 0;
        for (const attempt of tries) { try { await attempt(); } catch { } n++; }
        ctx.ui.notify('tried ' + (n === tries.length));",
    );
    let body = body.replace("export default (pi) =>", "export default (pi: any) =>");
    let mut stage = Stage::new(&[("bad.ts", &body), NEIGHBOUR], []);
    stage.host.send(json!({"type": "prompt", "message": "/go"}));
    stage.notified(0, "tried true");
    stage.poll_state();
    stage.assert_alive();
    let frames = stage.finish("wrong arguments");
    for frame in frames.iter().filter(|frame| frame["type"] == "extension_ui_request") {
        let wrong = match text(frame, "method") {
            "notify" => !frame["message"].is_string(),
            "setStatus" => !frame["statusKey"].is_string(),
            "setWidget" => !(frame["widgetLines"].is_null() || frame["widgetLines"].is_array()),
            "setTitle" => !frame["title"].is_string(),
            "set_editor_text" => !frame["text"].is_string(),
            "select" => !frame["options"].is_array(),
            _ => false,
        };
        assert!(!wrong, "{frame}");
    }
}

#[test]
fn programs_of_an_extension_end_with_pith_however_it_ends() {
    for ending in [Signal::KILL, Signal::TERM] {
        // The second is started by a shell, which is a process of its own.
        let body =
            command("pi.exec('sleep', ['4711']); pi.exec('sh', ['-c', 'sleep 4712; true']); ctx.ui.notify('started');");
        let mut stage = Stage::new(&[("bad.ts", &body)], []);
        stage.host.send(json!({"type": "prompt", "message": "/go"}));
        stage.notified(0, "started");
        let marker = stage.host.marker().to_owned();
        let wait = pith_testkit::timeout();
        let running = |seconds: &str| {
            let deadline = std::time::Instant::now() + wait;
            while !process::with_marker(&marker).iter().any(|process| process.command == format!("sleep {seconds}")) {
                assert!(std::time::Instant::now() < deadline, "sleep {seconds} never started");
                std::thread::yield_now();
            }
        };
        running("4711");
        running("4712");
        stage.host.signal(ending);
        stage.host.exit_code();
        process::no_process_with(&marker, wait);
    }
}

#[test]
fn a_reload_survives_extensions_that_became_broken() {
    let mut stage = Stage::new(&[("a.ts", "export default () => {};"), NEIGHBOUR], []);
    stage.assert_alive();
    stage.home.write_agent_file("extensions/a.ts", "export default () => { throw new Error('changed'); };");
    let start = stage.now();
    let response = stage.ask(json!({"type": "reload"}));
    assert_eq!(response["success"], true, "{response}");
    assert!(text(&stage.error(start, "load"), "error").contains("changed"));
    stage.assert_alive();
    stage.home.write_agent_file(
        "extensions/a.ts",
        "export default (pi) => pi.registerCommand('fixed', { handler: async (_, ctx) => ctx.ui.notify('fixed') });",
    );
    assert_eq!(stage.ask(json!({"type": "reload"}))["success"], true);
    let start = stage.now();
    stage.prompt("/fixed");
    stage.notified(start, "fixed");
    stage.finish("reload");
}
