//! `ctx.ui`: dialogs with the user of the host, and displays.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use pith_ext::{EventName, Loading};
use pith_protocol::host::{UiAnswer, UiMethod};
use serde_json::json;
use support::Harness;

/// An extension with one command whose body is given; its result is notified as JSON.
fn command(body: &str) -> String {
    format!(
        "export default (pi) => pi.registerCommand('go', {{ handler: async (args, ctx) => {{
            const result = await (async () => {{ {body} }})();
            ctx.ui.notify('result ' + JSON.stringify(result ?? null));
        }} }});"
    )
}

/// Runs a body with prepared answers and checks its result.
async fn check(body: &str, answers: &[UiAnswer], expected: &str) -> Harness {
    let harness = Harness::start();
    harness.run(&[("ask.ts", &command(body))]).await;
    for answer in answers {
        harness.answer(answer.clone());
    }
    harness.command("go", "").await;
    assert_eq!(harness.notifications().last().unwrap(), &format!("result {expected}"), "{body}");
    harness
}

#[tokio::test]
async fn answers_reach_the_extension() {
    let value = |text: &str| UiAnswer::Value(text.to_owned());
    check("return ctx.ui.select('Pick', ['A', 'B'])", &[value("B")], r#""B""#).await;
    check("return ctx.ui.select('Pick', ['A'])", &[value("free text")], r#""free text""#).await;
    check("return ctx.ui.confirm('Sure?', 'really')", &[UiAnswer::Confirmed(true)], "true").await;
    check("return ctx.ui.input('Name?', 'hint')", &[value("Ann")], r#""Ann""#).await;
    check("return ctx.ui.editor('Edit', 'text')", &[value("a\nb")], r#""a\nb""#).await;
}

#[tokio::test]
async fn cancelled_and_wrong_answers_become_the_default() {
    let wrong = UiAnswer::Malformed("value 5 is not a string".to_owned());
    check("return ctx.ui.select('Pick', ['A'])", &[UiAnswer::Cancelled], "null").await;
    check("return ctx.ui.confirm('Sure?', '')", &[UiAnswer::Cancelled], "false").await;
    check("return ctx.ui.confirm('Sure?', '')", std::slice::from_ref(&wrong), "false").await;
    check("return ctx.ui.confirm('Sure?', '')", &[UiAnswer::Value("true".to_owned())], "false").await;
    check("return ctx.ui.input('Name?')", &[UiAnswer::Confirmed(true)], "null").await;
}

#[tokio::test]
async fn a_dialog_ends_by_timeout_or_signal_and_is_withdrawn() {
    let harness = check("return ctx.ui.confirm('Quick?', '', { timeout: 30 })", &[], "false").await;
    assert_eq!(harness.seen.lock().unwrap().withdrawn.len(), 1);
    assert!(matches!(harness.seen.lock().unwrap().dialogs[0], UiMethod::Confirm { timeout: Some(30), .. }));
    let body = "const c = new AbortController(); setTimeout(() => c.abort(), 20); return ctx.ui.input('x', undefined, { signal: c.signal })";
    let harness = check(body, &[], "null").await;
    assert_eq!(harness.seen.lock().unwrap().withdrawn.len(), 1);
    let body = "return ctx.ui.select('x', ['a'], { signal: AbortSignal.abort(), timeout: 0 })";
    let harness = check(body, &[], "null").await;
    assert!(harness.seen.lock().unwrap().dialogs.is_empty(), "an aborted signal asks nobody");
    let harness = check("return ctx.ui.input('x', 'y', { timeout: 0 })", &[UiAnswer::Cancelled], "null").await;
    assert!(matches!(harness.seen.lock().unwrap().dialogs[0], UiMethod::Input { timeout: None, .. }));
}

#[tokio::test]
async fn the_first_answer_counts() {
    let harness = Harness::start();
    harness.run(&[("ask.ts", &command("return [await ctx.ui.input('one'), await ctx.ui.input('two')]"))]).await;
    let handle = harness.handle.clone();
    let running = tokio::spawn(async move { handle.run_command("go", "").await });
    let (first, answer) = harness.wait_for("the first dialog", |seen| seen.open.pop()).await;
    assert!(matches!(first.method, UiMethod::Input { ref title, .. } if title == "one"));
    answer.send(UiAnswer::Value("1".to_owned()));
    // The type allows only one answer per dialog; a second dialog has its own id.
    let (second, answer) = harness.wait_for("the second dialog", |seen| seen.open.pop()).await;
    assert_ne!(first.id, second.id);
    answer.send(UiAnswer::Value("2".to_owned()));
    assert!(running.await.unwrap());
    assert_eq!(harness.notifications(), [r#"result ["1","2"]"#]);
}

#[tokio::test]
async fn dialogs_of_a_run_end_when_it_is_aborted_those_of_commands_do_not() {
    let harness = Harness::start();
    harness
        .run(&[("ask.ts", "export default (pi) => {
            pi.on('turn_start', async (_, ctx) => ctx.ui.notify('run: ' + (await ctx.ui.confirm('in run', '')) + ' ' + ctx.signal.aborted));
            pi.registerCommand('go', { handler: async (_, ctx) => ctx.ui.notify('command: ' + (await ctx.ui.input('in command'))) });
        };")])
        .await;
    harness.handle.begin_run();
    harness.handle.announce(EventName::TurnStart, json!({}));
    let handle = harness.handle.clone();
    let running = tokio::spawn(async move { handle.run_command("go", "").await });
    harness.wait_for("both dialogs", |seen| (seen.open.len() == 2).then_some(())).await;
    harness.handle.abort_run();
    harness.notified("run: false true").await;
    let open = std::mem::take(&mut harness.seen.lock().unwrap().open);
    for (request, answer) in open {
        if matches!(request.method, UiMethod::Input { .. }) {
            answer.send(UiAnswer::Value("still here".to_owned()));
        }
    }
    running.await.unwrap();
    harness.notified("command: still here").await;
}

#[tokio::test]
async fn open_dialogs_end_with_their_session() {
    let harness = Harness::start();
    let text = command("return ctx.ui.input('forgotten')");
    let source = harness.source(&harness.file("ask.ts", &text));
    harness.handle.load(std::slice::from_ref(&source), Loading::Add, &harness.surroundings).await;
    harness.bind().await;
    let handle = harness.handle.clone();
    let running = tokio::spawn(async move { handle.run_command("go", "").await });
    harness.wait_for("the dialog", |seen| (!seen.open.is_empty()).then_some(())).await;
    harness.handle.invalidate().await;
    assert!(running.await.unwrap(), "the command ends");
    let error = harness.error("command").await;
    assert!(error.error.starts_with("This extension ctx is stale"), "{}", error.error);
    assert_eq!(harness.seen.lock().unwrap().withdrawn.len(), 1);
}

#[tokio::test]
async fn displays_leave_as_documented_frames() {
    let harness = check(
        "ctx.ui.notify('plain'); ctx.ui.notify('warn', 'warning'); ctx.ui.setStatus('k', 'text'); ctx.ui.setStatus('k', undefined);
         ctx.ui.setWidget('w', ['l1'], { placement: 'belowEditor' }); ctx.ui.setWidget('w', undefined); ctx.ui.setWidget('f', () => ({}));
         ctx.ui.setTitle('T'); ctx.ui.setEditorText('ed'); ctx.ui.pasteToEditor('pasted'); return 1",
        &[],
        "1",
    )
    .await;
    let seen = harness.seen.lock().unwrap();
    let text = |value: &str| value.to_owned();
    assert_eq!(
        seen.displays[..9],
        [
            UiMethod::Notify { message: text("plain"), notify_type: None },
            UiMethod::Notify { message: text("warn"), notify_type: Some(text("warning")) },
            UiMethod::SetStatus { status_key: text("k"), status_text: Some(text("text")) },
            UiMethod::SetStatus { status_key: text("k"), status_text: None },
            UiMethod::SetWidget {
                widget_key: text("w"),
                widget_lines: Some(vec![text("l1")]),
                widget_placement: Some(text("belowEditor"))
            },
            UiMethod::SetWidget { widget_key: text("w"), widget_lines: None, widget_placement: None },
            UiMethod::SetTitle { title: text("T") },
            UiMethod::SetEditorText { text: text("ed") },
            UiMethod::SetEditorText { text: text("pasted") },
        ]
    );
}

#[tokio::test]
async fn calls_that_need_a_terminal_do_nothing() {
    check(
        "ctx.ui.setFooter(() => {}); ctx.ui.setHeader(); ctx.ui.setWorkingMessage('x'); ctx.ui.setWorkingVisible(false);
         ctx.ui.setWorkingIndicator(); ctx.ui.setHiddenThinkingLabel(); ctx.ui.addAutocompleteProvider(() => {});
         ctx.ui.setEditorComponent(undefined); ctx.ui.setToolsExpanded(true); ctx.ui.onTerminalInput(() => {})();
         return [await ctx.ui.custom(() => { throw new Error('never called'); }) ?? 'none', ctx.ui.getEditorText(), ctx.ui.getToolsExpanded(),
            ctx.ui.getAllThemes(), ctx.ui.getTheme('x') ?? 'none', ctx.ui.setTheme('x'), ctx.ui.theme.fg('accent', 'a') + ctx.ui.theme.bold('b'),
            ctx.hasUI, ctx.mode]",
        &[],
        r#"["none","",false,[],"none",{"success":false,"error":"Theme switching not supported in RPC mode"},"ab",true,"rpc"]"#,
    )
    .await;
}

#[tokio::test]
async fn without_a_user_dialogs_return_their_defaults() {
    let harness = Harness::start();
    let mut surroundings = harness.surroundings.clone();
    surroundings.has_ui = false;
    surroundings.mode = pith_ext::Mode::Print;
    harness
        .load(&[("ask.ts", "export default (pi) => pi.registerCommand('go', { handler: async (_, ctx) => {
            ctx.ui.notify('unseen');
            const answers = [await ctx.ui.select('x', ['a']), await ctx.ui.confirm('x', ''), await ctx.ui.input('x'), ctx.ui.setTheme('x').error];
            pi.appendEntry('answers', answers);
        } });")])
        .await;
    harness.handle.bind(&surroundings, &Default::default()).await;
    harness.command("go", "").await;
    harness.logged(r#"append_entry answers [null,false,null,"UI not available"]"#).await;
    let seen = harness.seen.lock().unwrap();
    assert!(seen.dialogs.is_empty() && seen.displays.is_empty());
}

#[tokio::test]
async fn prompts_are_announced_around_the_outermost_dialog() {
    let harness = Harness::start();
    harness
        .run(&[("ask.ts", "export default (pi) => {
            pi.on('ui_prompt_start', (event) => pi.appendEntry('start', event.kind + ' ' + event.title));
            pi.on('ui_prompt_end', (event) => pi.appendEntry('end', event.kind));
            pi.registerCommand('go', { handler: async (_, ctx) => void (await Promise.all([ctx.ui.confirm('one', ''), ctx.ui.input('two')])) });
        };")])
        .await;
    harness.answer(UiAnswer::Confirmed(true));
    harness.answer(UiAnswer::Value("x".to_owned()));
    harness.command("go", "").await;
    harness.logged("append_entry end").await;
    let entries: Vec<String> = harness.log().into_iter().filter(|line| line.starts_with("append_entry")).collect();
    assert_eq!(entries, [r#"append_entry start "confirm one""#, r#"append_entry end "input""#]);
}
