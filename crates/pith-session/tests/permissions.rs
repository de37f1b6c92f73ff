//! Which tool calls run, which are asked about, which are refused: what a host sees, in every order.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests wait and share as the session may not")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pith_agent::ToolOutput;
use pith_session::Attendance;
use serde_json::{Value, json};
use support::{Builder, Harness, Script, Turn};

/// Counts the commands that were run.
#[derive(Clone, Default)]
struct Ran(Arc<AtomicUsize>);

impl Ran {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// A session whose `bash` only counts, and whose tool `free` needs nobody.
fn bench(script: impl Into<Script>) -> (Builder, Ran) {
    let ran = Ran::default();
    let counted = ran.clone();
    let builder = Harness::builder(script)
        .tool("bash", move |_, _| {
            counted.0.fetch_add(1, Ordering::SeqCst);
            async { ToolOutput::text("ran") }
        })
        .tool("free", |_, _| async { ToolOutput::text("free") });
    (builder, ran)
}

fn bash(command: &str) -> Turn {
    Turn::call("bash", json!({"command": command}))
}

fn dialog() -> Value {
    json!({"type": "extension_ui_request", "method": "select"})
}

fn chosen(answer: &str) -> Value {
    json!({"value": answer})
}

fn prompt() -> Value {
    json!({"type": "prompt", "message": "go"})
}

/// Texts of the tool results, in the order of the calls.
fn results(host: &Harness) -> Vec<String> {
    let result = json!({"type": "message_end", "message": {"role": "toolResult"}});
    let results = host.frames().into_iter().filter(|frame| support::is_like(frame, &result));
    results.map(|frame| frame["message"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()).collect()
}

/// What the audit says of permissions: decision and who made it.
async fn audit(host: &mut Harness) -> Vec<String> {
    let entries = host.data(json!({"type": "get_audit"})).await;
    let entries = entries["entries"].as_array().expect("a list").clone();
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let line = |entry: &Value| {
        let data = &entry["data"];
        format!("{} {} {} {}", word(&data["decision"]), word(&data["by"]), word(&data["scope"]), word(&data["rule"]))
    };
    entries.iter().map(line).collect()
}

async fn set(host: &mut Harness, mut permissions: Value) -> Value {
    permissions["type"] = "set_permissions".into();
    host.data(permissions).await
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_or_recorded_unless_somebody_wants_it() {
    let (builder, ran) = bench([bash("rm -rf /"), Turn::text("done")]);
    let mut host = builder.open();
    host.run("go").await;
    assert_eq!((ran.count(), host.count(dialog())), (1, 0));
    assert_eq!(host.count(json!({"type": "entry_appended"})), 0);
    assert_eq!(host.state().await.get("isWaitingForPermission"), None);
    assert!(audit(&mut host).await.is_empty());
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn one_question_at_a_time_and_free_calls_start_meanwhile() {
    let calls =
        bash("git push origin main").and_call("bash", json!({"command": "make all"})).and_call("free", json!({}));
    let (builder, ran) = bench([calls, Turn::text("done")]);
    let mut host = builder.open();
    set(&mut host, json!({"ask": ["bash"]})).await;
    host.send(prompt());
    let first = host.wait(dialog()).await;
    let title = "Allow bash?\n\n  git push origin main\n\nRule: ask bash";
    assert_eq!(first["title"], title);
    assert_eq!(first["timeout"], 300_000, "a host that may ignore dialogs is not waited for for ever");
    let options = json!(["Allow once", "Allow for this session: this very call", "Deny", "Deny and stop"]);
    assert_eq!(first["options"], options, "a rule about the whole tool is not the user's to give for good");
    host.settle().await;
    assert_eq!(host.count(json!({"type": "tool_execution_end", "toolName": "free"})), 1);
    assert_eq!((ran.count(), host.count(dialog())), (0, 1));
    assert_eq!(host.state().await["isWaitingForPermission"], true);
    assert_eq!(host.data(json!({"type": "steer", "message": "and then"})).await["disposition"], "queued");
    host.answer(&first, chosen("Allow once"));
    let second = host.wait(dialog()).await;
    assert_eq!(second["title"], "Allow bash?\n\n  make all\n\nRule: ask bash");
    host.answer(&second, chosen("Deny"));
    host.wait_type("agent_settled").await;
    assert_eq!(results(&host), ["ran", "The user did not allow this.", "free"]);
    assert_eq!(audit(&mut host).await, ["allow user once bash", "deny user - bash"]);
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_settles_the_waiting_calls_that_it_covers() {
    let push = || json!({"command": "git push origin main"});
    let calls = Turn::call("bash", push()).and_call("bash", push()).and_call("bash", json!({"command": "ls"}));
    let (builder, ran) = bench([calls, bash("git push -f"), Turn::text("done")]);
    let mut host = builder.saved().open();
    set(&mut host, json!({"mode": "ask"})).await;
    host.send(prompt());
    let first = host.wait(dialog()).await;
    assert_eq!(first["options"][2], "Allow in this project: bash(git push origin main)");
    host.answer(&first, chosen("Allow for this session: bash(git push origin main)"));
    let second = host.wait(dialog()).await;
    assert_eq!(second["title"], "Allow bash?\n\n  ls\n\nMode: ask");
    host.answer(&second, chosen("Allow in this project: bash(ls)"));
    let third = host.wait(dialog()).await;
    assert_eq!(third["title"], "Allow bash?\n\n  git push -f\n\nMode: ask", "another command than the one allowed");
    host.answer(&third, json!({"cancelled": true}));
    host.wait_type("agent_settled").await;
    assert_eq!(ran.count(), 3);
    let now = host.data(json!({"type": "get_permissions"})).await;
    let granted: Vec<&Value> = now["granted"].as_array().expect("rules").iter().map(|rule| &rule["rule"]).collect();
    assert_eq!(granted, ["bash(ls)", "bash(git push origin main)"]);
    set(&mut host, json!({"forget": ["bash(ls)", "bash(git push origin main)"]})).await;
    let left = host.data(json!({"type": "get_permissions"})).await;
    assert_eq!((&left["granted"], &left["mode"]), (&json!([]), &json!("ask")));
    host.finish().await;
}

/// Options of a dialog that allow more than one call.
fn lasting(question: &Value) -> Vec<&str> {
    let options = question["options"].as_array().expect("options").iter().filter_map(Value::as_str);
    options.filter(|option| option.starts_with("Allow for") || option.starts_with("Allow in")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_grant_is_what_the_option_says() {
    let write = |path: &str| Turn::call("write", json!({"path": path, "content": "x"}));
    let script = [
        write("a.txt"),
        write("../outside.txt"),
        write("src/a.rs"),
        write("src/deep/b.rs"),
        write("other/c.rs"),
        bash("rm -f a.txt"),
        bash("rm -rf /elsewhere"),
        bash("git status && rm -f x"),
        bash("rm -f x"),
        bash("git status -s"),
        bash("git status --long"),
        bash("git push"),
        Turn::text("done"),
    ];
    let (builder, _) = bench(script);
    let mut host = builder.tool("write", |_, _| async { ToolOutput::text("wrote") }).open();
    set(&mut host, json!({"mode": "ask"})).await;
    host.send(prompt());
    let parent = host.directory().parent().expect("a parent").display().to_string();
    let outside =
        ["for this session", "in this project"].map(|span| format!("Allow {span}: edit(/{parent}/outside.txt)"));
    for (answer, others) in [
        ("Allow for this session: edit(./a.txt)", vec!["Allow in this project: edit(./a.txt)"]),
        // In spite of the grant for a.txt.
        (&outside[0], vec![&outside[1]]),
        ("Allow for this session: edit(src/**)", vec!["Allow in this project: edit(src/**)"]),
        // src/deep/b.rs is covered.
        ("Allow for this session: edit(other/**)", vec!["Allow in this project: edit(other/**)"]),
        ("Allow for this session: bash(rm -f a.txt)", vec!["Allow in this project: bash(rm -f a.txt)"]),
        ("Allow for this session: bash(rm -rf /elsewhere)", vec!["Allow in this project: bash(rm -rf /elsewhere)"]),
        ("Allow for this session: this very call", vec![]),
        ("Allow for this session: bash(rm -f x)", vec!["Allow in this project: bash(rm -f x)"]),
        (
            "Allow in this project: bash(git status:*)",
            vec!["Allow for this session: bash(git status -s)", "Allow in this project: bash(git status -s)"],
        ),
        // git status --long is covered.
        ("Deny and stop", vec!["Allow for this session: bash(git push)", "Allow in this project: bash(git push)"]),
    ] {
        let question = host.wait(dialog()).await;
        let mut expected = vec![answer];
        expected.extend(others);
        expected.retain(|option| *option != "Deny and stop");
        let mut offered = lasting(&question);
        expected.sort_unstable();
        offered.sort_unstable();
        assert_eq!(offered, expected, "{question}");
        host.answer(&question, chosen(answer));
    }
    host.wait_type("agent_settled").await;
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn what_no_rule_can_say_is_allowed_as_it_is() {
    let (builder, ran) = bench([bash("python3 x.py"), bash("python3 x.py"), bash("python3 y.py"), Turn::text("done")]);
    let mut host = builder.open();
    set(&mut host, json!({"mode": "ask"})).await;
    host.send(prompt());
    let first = host.wait(dialog()).await;
    let this_call = "Allow for this session: this very call";
    assert_eq!(first["options"], json!(["Allow once", this_call, "Deny", "Deny and stop"]));
    host.answer(&first, chosen(this_call));
    let other = host.wait(dialog()).await;
    assert!(other["title"].as_str().expect("a title").contains("y.py"), "{other}");
    host.answer(&other, chosen("Deny"));
    host.wait_type("agent_settled").await;
    assert_eq!(ran.count(), 2);
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_abort_withdraws_the_question_and_runs_nothing() {
    let calls = bash("make").and_call("bash", json!({"command": "make more"}));
    let (builder, ran) = bench([calls, Turn::text("again")]);
    let mut host = builder.open();
    set(&mut host, json!({"mode": "ask"})).await;
    host.send(prompt());
    let question = host.wait(dialog()).await;
    host.data(json!({"type": "abort"})).await;
    assert_eq!(host.count(json!({"method": "cancel", "targetId": question["id"]})), 1);
    assert_eq!(results(&host), ["Operation aborted", "Operation aborted"]);
    assert_eq!(audit(&mut host).await, ["deny abort - -", "deny abort - -"]);
    // An answer that comes too late is none.
    host.answer(&question, chosen("Allow once"));
    host.run("go on").await;
    assert_eq!(ran.count(), 0);
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_gives_way_or_ends_runs_nothing() {
    for ends in [false, true] {
        let (builder, ran) = bench([bash("make"), Turn::text("done")]);
        let mut host = builder.open();
        set(&mut host, json!({"mode": "ask"})).await;
        host.send(prompt());
        let question = host.wait(dialog()).await;
        if ends {
            assert!(host.end().await, "the session ends");
        } else {
            host.data(json!({"type": "new_session"})).await;
            assert_eq!(host.count(json!({"method": "cancel", "targetId": question["id"]})), 1);
            assert_eq!(host.data(json!({"type": "get_permissions"})).await["mode"], "allow", "another session");
            assert_eq!(host.state().await.get("isWaitingForPermission"), None);
        }
        assert_eq!((ran.count(), results(&host)), (0, vec!["Operation aborted".to_owned()]));
        host.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn deny_and_stop_ends_the_run_as_an_abort_does() {
    let calls = bash("make").and_call("bash", json!({"command": "make more"}));
    let (builder, ran) = bench([calls, Turn::text("never")]);
    let mut host = builder.open();
    set(&mut host, json!({"mode": "ask"})).await;
    host.send(prompt());
    let question = host.wait(dialog()).await;
    host.answer(&question, chosen("Deny and stop"));
    assert_eq!(host.wait_type("agent_settled").await["aborted"], true);
    assert_eq!(results(&host), ["The user did not allow this.", "Operation aborted"]);
    assert_eq!((ran.count(), host.model.calls().len(), host.count(dialog())), (0, 1, 1));
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn silence_is_a_no_after_a_while() {
    let (builder, ran) = bench([bash("make"), Turn::text("done")]);
    let mut host = builder.open();
    let settings = json!({"permissions": {"defaultMode": "ask", "timeoutSeconds": 5}});
    std::fs::create_dir_all(host.directory().join("agent")).expect("a directory");
    std::fs::write(host.directory().join("agent/settings.json"), settings.to_string()).expect("a file");
    host.send(prompt());
    let question = host.wait(dialog()).await;
    assert_eq!(question["timeout"], 5000);
    host.pass(Duration::from_secs(6)).await;
    host.wait_type("agent_settled").await;
    assert_eq!(results(&host), ["Nobody could be asked; permissions.unattended is \"deny\"."]);
    assert_eq!(host.count(json!({"method": "cancel", "targetId": question["id"]})), 1);
    assert_eq!((ran.count(), audit(&mut host).await), (0, vec!["deny timeout - -".to_owned()]));
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn where_nobody_is_the_settings_decide() {
    for (unattended, n_ran) in [("deny", 0), ("allow", 1)] {
        let (builder, ran) = bench([bash("make"), Turn::text("done")]);
        let mut host = builder.options(|options| options.attendance = Attendance::Nobody).open();
        let settings = json!({"permissions": {"defaultMode": "ask", "unattended": unattended}});
        std::fs::create_dir_all(host.directory().join("agent")).expect("a directory");
        std::fs::write(host.directory().join("agent/settings.json"), settings.to_string()).expect("a file");
        host.run("go").await;
        assert_eq!((ran.count(), host.count(dialog())), (n_ran, 0));
        let decision = if n_ran == 1 { "allow" } else { "deny" };
        assert_eq!(audit(&mut host).await, [format!("{decision} unattended - -")]);
        host.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn hosts_that_accept_it_are_asked_with_data() {
    let (builder, ran) = bench([bash("git push && rm -rf x > log"), Turn::text("done")]);
    let mut host = builder.open();
    let hello = json!({"type": "hello", "accept": {"permissionRequest": true}});
    assert_eq!(host.data(hello).await["accepted"], json!(["permissionRequest"]));
    set(&mut host, json!({"ask": ["bash(git push:*)"]})).await;
    host.send(prompt());
    let request = host.wait_type("permission_request").await;
    assert_eq!(request["reason"], "Rule: ask bash(git push:*)");
    assert_eq!(request["parts"][0], json!({"words": ["git", "push"], "verdict": "ask", "rule": "bash(git push:*)"}));
    assert_eq!(request["parts"][1], json!({"words": ["rm", "-rf", "x"], "verdict": "allow"}));
    assert_eq!((&request["writes"], &request["sandbox"]), (&json!(["log"]), &json!("off")));
    assert_eq!(request.get("timeout"), None, "this host answers");
    let ids: Vec<&Value> = request["options"].as_array().expect("options").iter().map(|option| &option["id"]).collect();
    assert_eq!(ids, ["once", "session", "deny", "stop"], "no rule says just this call");
    assert_eq!(request["options"][1], json!({"id": "session", "kind": "allow_always"}));
    host.answer(&request, json!({"optionId": "deny", "message": "Use a branch."}));
    host.wait_type("agent_settled").await;
    assert_eq!(results(&host), ["The user did not allow this. Use a branch."]);
    assert_eq!((ran.count(), host.count(dialog())), (0, 0));
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_request_is_told() {
    let (builder, _) = bench([bash("make"), Turn::text("done")]);
    let mut host = builder.open();
    host.data(json!({"type": "hello", "accept": {"permissionRequest": true}})).await;
    set(&mut host, json!({"mode": "ask"})).await;
    host.send(prompt());
    let request = host.wait_type("permission_request").await;
    // A mode that lets the call run leaves nothing to ask.
    set(&mut host, json!({"mode": "allow"})).await;
    host.wait(json!({"type": "permission_cancelled", "id": request["id"]})).await;
    host.wait_type("agent_settled").await;
    assert_eq!(results(&host), ["ran"]);
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn rules_come_before_extensions_and_again_after_them() {
    let extension = "export default (pi) => pi.on('tool_call', (event) => {
        console.log('saw ' + event.input.command);
        if (event.input.command === 'blocked') return { block: true, reason: 'not this one' };
        if (event.input.command === 'echo hi') event.input.command = 'rm -rf x';
    });";
    let script = [bash("rm -rf y"), bash("echo hi"), bash("blocked"), bash("ls"), Turn::text("done")];
    let (builder, ran) = bench(script);
    let mut host = builder.extension("changes.ts", extension).start().await;
    set(&mut host, json!({"deny": ["bash(rm:*)"]})).await;
    host.run("go").await;
    let refused = "Not allowed: bash(rm:*) is denied by set_permissions.";
    assert_eq!(results(&host), [refused, refused, "not this one", "ran"]);
    let seen: Vec<String> = host.log.lines().into_iter().filter(|line| line.contains("saw")).collect();
    assert!(seen.len() == 3 && seen[0].contains("saw echo hi"), "what a rule forbids no extension sees: {seen:?}");
    let audited = audit(&mut host).await;
    assert_eq!(audited, ["deny rule - bash(rm:*)", "deny rule - bash(rm:*)", "deny extension - -"]);
    assert_eq!(ran.count(), 1);
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_remembers_its_answers_and_its_mode() {
    let script = [bash("git push origin main"), Turn::text("done"), bash("git push origin main"), Turn::text("done")];
    let (builder, ran) = bench(script);
    let mut host = builder.saved().open();
    set(&mut host, json!({"mode": "ask"})).await;
    host.send(prompt());
    let question = host.wait(dialog()).await;
    host.answer(&question, chosen("Allow for this session: bash(git push origin main)"));
    host.wait_type("agent_settled").await;
    let file = host.state().await["sessionFile"].clone();
    host.data(json!({"type": "new_session"})).await;
    assert_eq!(host.data(json!({"type": "get_permissions"})).await["granted"], json!([]));
    host.data(json!({"type": "switch_session", "sessionPath": file})).await;
    let back = host.data(json!({"type": "get_permissions"})).await;
    assert_eq!((&back["mode"], &back["granted"][0]["rule"]), (&json!("ask"), &json!("bash(git push origin main)")));
    host.run("again").await;
    assert_eq!((ran.count(), host.count(dialog())), (2, 1));
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_approval_mode_is_a_mode_by_another_name() {
    let (builder, ran) = bench([bash("make"), Turn::text("done")]);
    let mut host = builder.open();
    for (name, mode) in [("read-only", "read-only"), ("write", "write"), ("full", "allow"), ("ask", "ask")] {
        let answer = host.data(json!({"type": "set_approval_mode", "mode": name})).await;
        assert_eq!((&answer["mode"], &answer["deny"]), (&json!(mode), &json!([])), "{name}");
    }
    host.send(prompt());
    host.wait(dialog()).await;
    assert_eq!(ran.count(), 0);
    // A call that waits is judged again.
    host.data(json!({"type": "set_approval_mode", "mode": "full"})).await;
    host.wait_type("agent_settled").await;
    assert_eq!(ran.count(), 1);
    let refused = host.refusal(json!({"type": "set_approval_mode", "mode": "allow"})).await;
    assert!(refused.contains("\"mode\"") && refused.contains("\"full\""), "{refused}");
    let missing = host.refusal(json!({"type": "set_approval_mode"})).await;
    assert!(missing.contains("\"mode\""), "{missing}");
    host.finish().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_no_rule_changes_nothing() {
    let (builder, _) = bench([Turn::text("done")]);
    let mut host = builder.open();
    let refused = host.refusal(json!({"type": "set_permissions", "mode": "ask", "deny": ["bash(rm"]})).await;
    let expected =
        "Invalid field \"deny[0]\" for command \"set_permissions\": the rule \"bash(rm\" has an open parenthesis";
    assert_eq!(refused, expected);
    let refused = host.refusal(json!({"type": "set_permissions", "forget": ["bash"]})).await;
    assert!(refused.contains("forget[0]"), "{refused}");
    let refused = host.refusal(json!({"type": "set_permissions", "mode": "maybe"})).await;
    assert!(refused.contains("\"read-only\""), "{refused}");
    assert_eq!(host.data(json!({"type": "get_permissions"})).await["mode"], "allow");
    host.finish().await;
}
