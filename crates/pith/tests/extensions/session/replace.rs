//! Replacing the session by another one.

use std::time::{Duration, Instant};

use pith_testkit::{Script, Turn};
use serde_json::{Value, json};

use super::{file, notes, reporting, scene};
use crate::support::{Scene, assert_like, of_type};

const SESSION_EVENTS: [&str; 4] = ["session_before_switch", "session_before_fork", "session_shutdown", "session_start"];

/// The notes since the last call.
fn news(scene: &Scene, seen: &mut usize) -> Vec<Value> {
    let all = notes(&scene.host.frames());
    let new = all[*seen..].to_vec();
    *seen = all.len();
    new
}

#[test]
fn each_way_to_another_session_is_announced_once_and_in_order() {
    let mut scene = scene([Turn::text("one"), Turn::text("two")], &[("reporting.js", &reporting(&SESSION_EVENTS))]);
    let mut seen = 0;
    scene.wait_type("extension_ui_request");
    assert_eq!(news(&scene, &mut seen), [json!({"type": "session_start", "reason": "startup"})]);
    scene.run("first");
    let first = file(&mut scene);

    assert_eq!(scene.data(json!({"type": "new_session"})), json!({"cancelled": false}));
    let second = file(&mut scene);
    assert_ne!(first, second);
    assert_eq!(
        news(&scene, &mut seen),
        [
            json!({"type": "session_before_switch", "reason": "new"}),
            json!({"type": "session_shutdown", "reason": "new", "targetSessionFile": second}),
            json!({"type": "session_start", "reason": "new", "previousSessionFile": first}),
        ]
    );

    let data = scene.data(json!({"type": "switch_session", "sessionPath": first}));
    assert_eq!(data, json!({"cancelled": false}));
    assert_eq!(file(&mut scene), first);
    assert_eq!(
        news(&scene, &mut seen),
        [
            json!({"type": "session_before_switch", "reason": "resume", "targetSessionFile": first}),
            json!({"type": "session_shutdown", "reason": "resume", "targetSessionFile": first}),
            json!({"type": "session_start", "reason": "resume", "previousSessionFile": second}),
        ]
    );

    scene.run("second");
    let prompts = scene.data(json!({"type": "get_fork_messages"}));
    let entry = prompts["messages"][1]["entryId"].clone();
    let data = scene.data(json!({"type": "fork", "entryId": entry}));
    assert_eq!(data, json!({"text": "second", "cancelled": false}));
    let fork = file(&mut scene);
    assert_eq!(
        news(&scene, &mut seen),
        [
            json!({"type": "session_before_fork", "entryId": entry, "position": "before"}),
            json!({"type": "session_shutdown", "reason": "fork", "targetSessionFile": fork}),
            json!({"type": "session_start", "reason": "fork", "previousSessionFile": first}),
        ]
    );

    let leaf = scene.data(json!({"type": "get_tree"}))["leafId"].clone();
    assert_eq!(scene.data(json!({"type": "clone"})), json!({"cancelled": false}));
    let clone = file(&mut scene);
    assert_eq!(
        news(&scene, &mut seen),
        [
            json!({"type": "session_before_fork", "entryId": leaf, "position": "at"}),
            json!({"type": "session_shutdown", "reason": "fork", "targetSessionFile": clone}),
            json!({"type": "session_start", "reason": "fork", "previousSessionFile": fork}),
        ]
    );
    scene.finish();
}

#[test]
fn a_handler_can_refuse_and_nothing_changes() {
    let refuse = r#"export default (pi) => {
        pi.on("session_before_switch", () => ({ cancel: true }));
        pi.on("session_before_fork", () => ({ cancel: true }));
        pi.on("session_shutdown", (event, ctx) => ctx.ui.notify("shutdown"));
    };"#;
    let mut scene = scene([Turn::text("one")], &[("refuse.js", refuse)]);
    scene.run("first");
    let before = scene.state();
    let entry = scene.data(json!({"type": "get_fork_messages"}))["messages"][0]["entryId"].clone();
    let cancelled = json!({"cancelled": true});
    for command in [
        json!({"type": "new_session"}),
        json!({"type": "switch_session", "sessionPath": before["sessionFile"]}),
        json!({"type": "fork", "entryId": entry}),
        json!({"type": "clone"}),
    ] {
        assert_eq!(scene.data(command.clone()), cancelled, "{command}");
    }
    assert_eq!(scene.state(), before);
    assert_eq!(notes(&scene.host.frames()), [] as [Value; 0]);
    // A target that does not exist is refused before handlers are asked.
    assert!(scene.refusal(json!({"type": "switch_session", "sessionPath": "gone.jsonl"})).contains("not found"));
    assert!(scene.refusal(json!({"type": "fork", "entryId": "gone"})).contains("Invalid entry ID"));
}

#[test]
fn a_dialog_can_decide_about_a_replacement() {
    let ask = r#"export default (pi) => {
        pi.on("session_before_switch", async (event, ctx) => ({ cancel: !(await ctx.ui.confirm("Leave?", "Really")) }));
    };"#;
    let mut scene = scene([Turn::text("abcdef").chunk(2).hold_after(1)], &[("ask.ts", ask)]);
    scene.prompt("go");
    scene.wait_update("text_delta");
    let before = file(&mut scene);
    for answer in [json!({"confirmed": false}), json!({"cancelled": true})] {
        scene.send(json!({"id": "n", "type": "new_session"}));
        let id = scene.wait_dialog("confirm");
        // The run goes on until the replacement is agreed to, and everything else is served meanwhile.
        assert_eq!(scene.state()["isStreaming"], true);
        scene.reply(&id, answer);
        let response = scene.wait(|frame| frame["id"] == "n");
        assert_like(&response, &json!({"success": true, "data": {"cancelled": true}}));
        assert_eq!(file(&mut scene), before);
    }
    scene.send(json!({"id": "yes", "type": "new_session"}));
    let id = scene.wait_dialog("confirm");
    scene.reply(&id, json!({"confirmed": true}));
    scene.wait_type("agent_settled");
    assert_like(&scene.response("yes"), &json!({"data": {"cancelled": false}}));
    assert_ne!(file(&mut scene), before);
    assert_eq!(scene.state()["isStreaming"], false);
    // The stopped run is stored in the session that was left.
    let left = scene.home.sessions().into_iter().find(|session| session.path.to_str() == before.as_str());
    assert_like(left.expect("it was saved").messages()[1], &json!({"stopReason": "aborted"}));
}

#[test]
fn a_handler_that_never_returns_delays_only_its_command() {
    let hang = r#"export default (pi) => {
        pi.on("session_before_switch", (event, ctx) => { ctx.ui.notify("asked"); return new Promise(() => {}); });
    };"#;
    let mut scene = scene([Turn::text("later")], &[("hang.js", hang)]);
    let before = file(&mut scene);
    scene.send(json!({"id": "n", "type": "new_session"}));
    scene.send(json!({"id": "name", "type": "set_session_name", "name": "after"}));
    scene.send(json!({"id": "p", "type": "prompt", "message": "behind"}));
    scene.wait_note("asked");
    assert_eq!(file(&mut scene), before);
    let is_answered = |scene: &Scene, id: &str| scene.host.frames().iter().any(|frame| frame["id"] == id);
    assert!(!is_answered(&scene, "n") && !is_answered(&scene, "name") && !is_answered(&scene, "p"));
    assert_like(&scene.ask(json!({"type": "abort"})), &json!({"success": true}));
    assert_like(&scene.response("n"), &json!({"data": {"cancelled": true}}));
    // What waited goes on, except for the prompt, which is aborted as well.
    assert_like(&scene.response("name"), &json!({"success": true}));
    assert_like(&scene.response("p"), &json!({"success": false}));
    assert_eq!(file(&mut scene), before);
    assert_eq!(scene.state()["sessionName"], "after");
}

#[test]
fn commands_after_a_replacement_belong_to_the_new_session() {
    let slow = r#"export default (pi) => {
        pi.on("session_shutdown", () => new Promise((resolve) => setTimeout(resolve, 100)));
    };"#;
    let mut scene = scene([Turn::text("one"), Turn::text("two")], &[("slow.js", slow)]);
    scene.run("first");
    scene.send_all([
        json!({"id": "n", "type": "new_session"}),
        json!({"id": "name", "type": "set_session_name", "name": "the new one"}),
        json!({"id": "b", "type": "bash", "command": "echo here"}),
        json!({"id": "p", "type": "prompt", "message": "second"}),
    ]);
    scene.wait_type("agent_settled");
    assert_like(&scene.response("p"), &json!({"data": {"disposition": "started"}}));
    assert_like(&scene.response("b"), &json!({"data": {"output": "here\n"}}));
    assert_eq!(scene.state()["sessionName"], "the new one");
    let mut roles: Vec<String> =
        scene.messages().iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect();
    roles.sort();
    assert_eq!(roles, ["assistant", "bashExecution", "user"]);
    let responses: Vec<String> = of_type(&scene.host.frames(), "response")
        .iter()
        .filter_map(|frame| frame["id"].as_str().filter(|id| ["n", "name", "b", "p"].contains(id)).map(str::to_owned))
        .collect();
    assert_eq!(responses[..2], ["n", "name"]);
}

#[test]
fn open_dialogs_end_with_their_session() {
    let ask = r#"export default (pi) => {
        pi.registerCommand("ask", { handler: async (args, ctx) => {
            const sure = await ctx.ui.confirm("Sure?", "");
            console.error("answered " + sure);
        } });
    };"#;
    let mut scene = scene([], &[("ask.js", ask)]);
    scene.send(json!({"id": "a", "type": "prompt", "message": "/ask"}));
    let id = scene.wait_dialog("confirm");
    assert_eq!(scene.data(json!({"type": "new_session"})), json!({"cancelled": false}));
    assert_like(&scene.response("a"), &json!({"data": {"disposition": "handled"}}));
    scene.wait_stderr(|text| text.contains("answered false"));
    // Too late: the dialog is closed.
    scene.reply(&id, json!({"confirmed": true}));
    scene.finish();
}

#[test]
fn a_session_of_another_directory_has_the_extensions_of_that_directory() {
    let source = |name: &str| {
        format!(
            "export default (pi) => {{ pi.registerCommand({name:?}, {{ handler: (args, ctx) => ctx.ui.notify({name:?} + ' ' + ctx.cwd) }}); }};"
        )
    };
    let server = pith_testkit::ModelServer::start(Script::of([Turn::text("one"), Turn::text("two")]));
    let home = pith_testkit::TempHome::for_server(&server);
    home.write_file("other/.pi/extensions/there.js", source("there"));
    home.write_file("here/.pi/extensions/here.js", source("here"));
    let (here, there) = (home.work().join("here"), home.work().join("other"));
    let mut scene = Scene::in_home(server, home, |builder| builder.directory(&there).arg("--approve"));
    scene.run("first");
    let session = file(&mut scene);
    scene.close_stdin();
    scene.exit_code();
    let agent = scene.home.agent().display().to_string();
    scene.host = crate::support::builder()
        .rpc(pith_testkit::Api::Anthropic)
        .home(&scene.home)
        .directory(&here)
        .env("PITH_AGENT_DIR", &agent)
        .arg("--approve")
        .spawn();
    scene.slash("/here");
    scene.wait_note(&format!("here {}", here.display()));
    assert_eq!(scene.data(json!({"type": "switch_session", "sessionPath": session})), json!({"cancelled": false}));
    scene.slash("/there");
    scene.wait_note(&format!("there {}", there.display()));
    // The command of the other directory is ordinary text here.
    assert_eq!(scene.data(json!({"type": "prompt", "message": "/here"})), json!({"disposition": "started"}));
    scene.wait_type("agent_settled");
}

#[test]
fn an_extension_that_fails_in_the_next_session_is_reported_and_left_out() {
    let flaky = r#"
        import { existsSync, writeFileSync } from "node:fs";
        export default (pi) => {
            if (existsSync("mark")) throw new Error("not twice");
            writeFileSync("mark", "");
            pi.registerCommand("flaky", { handler: () => {} });
        };"#;
    let fine = "export default (pi) => { pi.registerCommand('fine', { handler: () => {} }); };";
    let mut scene = scene([Turn::text("x")], &[("a.js", flaky), ("b.js", fine)]);
    scene.slash("/flaky");
    assert_eq!(scene.data(json!({"type": "new_session"})), json!({"cancelled": false}));
    let frames = scene.host.frames();
    let errors = of_type(&frames, "extension_error");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0]["event"], "load");
    assert!(errors[0]["error"].as_str().unwrap().ends_with("not twice"));
    scene.slash("/fine");
    assert_eq!(scene.data(json!({"type": "prompt", "message": "/flaky"})), json!({"disposition": "started"}));
}

#[test]
fn extensions_never_see_a_mixture_of_two_sessions() {
    // A timer of the factory reads the session as early as it can.
    let looks = r#"export default (pi) => {
        const look = (ctx) => {
            const { sessionManager } = ctx;
            return [sessionManager.getSessionFile(), sessionManager.getEntries().length, pi.getSessionName()].join(" ");
        };
        pi.on("session_shutdown", (event, ctx) => ctx.ui.notify("end " + look(ctx)));
        pi.on("session_start", (event, ctx) => { ctx.ui.notify("start " + look(ctx)); clearInterval(timer); });
        const timer = setInterval(() => { try { console.error("early " + pi.getSessionName()) } catch {} }, 0);
    };"#;
    let mut scene = scene([Turn::text("one")], &[("looks.js", looks)]);
    scene.run("first");
    scene.command(json!({"type": "set_session_name", "name": "old"}));
    let old = file(&mut scene).as_str().unwrap().to_owned();
    scene.command(json!({"type": "new_session"}));
    let new = file(&mut scene).as_str().unwrap().to_owned();
    let told = notes(&scene.host.frames());
    assert_eq!(told[1], format!("end {old} 5 old"));
    assert_eq!(told[2], format!("start {new} 2 "));
    assert!(!scene.stderr().contains("early old"), "{}", scene.stderr());
}

#[test]
fn the_end_of_the_process_cancels_a_replacement() {
    let slow = r#"
        import { appendFileSync } from "node:fs";
        export default (pi) => {
            pi.on("session_shutdown", (event, ctx) => {
                appendFileSync("farewell", event.reason + " ");
                ctx.ui.notify("leaving");
                if (event.reason === "new") return new Promise(() => {});
            });
        };"#;
    let mut scene = scene([], &[("slow.js", slow)]);
    scene.send(json!({"id": "n", "type": "new_session"}));
    scene.wait_note("leaving");
    let start = Instant::now();
    scene.close_stdin();
    assert_eq!(scene.exit_code(), 0);
    assert!(start.elapsed() < Duration::from_secs(60));
    assert_like(&scene.response("n"), &json!({"success": false, "error": "pith is shutting down"}));
    assert_eq!(scene.home.read_file("farewell").as_deref(), Some("new "));
}

#[test]
fn older_event_names_reach_extensions_that_know_only_those() {
    let old = r#"export default (pi) => {
        for (const name of ["session_switch", "session_fork"]) {
            pi.on(name, (event, ctx) => ctx.ui.notify(name + " " + event.reason));
        }
    };"#;
    let mut scene = scene([Turn::text("one")], &[("old.js", old)]);
    scene.run("first");
    scene.command(json!({"type": "clone"}));
    scene.command(json!({"type": "new_session"}));
    assert_eq!(notes(&scene.host.frames()), ["session_fork fork", "session_switch new"]);
}
