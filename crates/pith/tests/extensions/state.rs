//! What extensions see of the session, and small things they change in it.

use pith_testkit::{ModelServer, Script, TempHome, Turn};
use serde_json::{Value, json};

use crate::support::{Scene, assert_like, of_type, position};

/// pith with one extension, whose factory has this body.
pub fn with_extension(body: &str, turns: impl IntoIterator<Item = Turn>) -> Scene {
    let server = ModelServer::start(Script::of(turns));
    let home = TempHome::for_server(&server);
    home.write_agent_file("extensions/own.ts", extension(body));
    Scene::in_home(server, home, |builder| builder)
}

pub fn extension(body: &str) -> String {
    format!(
        "export default function (pi) {{ const tell = (ctx, value) => ctx.ui.notify(JSON.stringify(value));\n{body}\n}}"
    )
}

/// What the extension's `tell` told last, after the frames seen before.
#[track_caller]
pub fn told(scene: &mut Scene) -> Value {
    let frame = scene.wait(|frame| frame["type"] == "extension_ui_request" && frame["method"] == "notify");
    serde_json::from_str(frame["message"].as_str().expect("notes are texts")).expect("the extension tells JSON")
}

/// Runs a slash command and returns what it told.
#[track_caller]
pub fn run_command(scene: &mut Scene, text: &str) -> Value {
    scene.catch_up();
    let data = scene.data(json!({"type": "prompt", "message": text}));
    assert_eq!(data, json!({"disposition": "handled"}));
    scene.catch_up();
    let frames = scene.frames();
    let note = frames.iter().rfind(|frame| frame["method"] == "notify").expect("the command told something");
    serde_json::from_str(note["message"].as_str().expect("notes are texts")).expect("the extension tells JSON")
}

#[test]
fn a_session_can_be_read_entry_by_entry() {
    let body = r#"
        pi.registerCommand("look", { handler: async (_, ctx) => {
            const sm = ctx.sessionManager;
            const entries = sm.getEntries();
            tell(ctx, {
                types: entries.map((entry) => entry.type),
                branch: sm.getBranch().map((entry) => entry.id),
                ids: entries.map((entry) => entry.id),
                texts: sm.getBranch().filter((entry) => entry.type === "message").map((entry) => entry.message.role),
                leaf: sm.getLeafId(),
                leafEntry: sm.getLeafEntry()?.id,
                header: sm.getHeader(),
                file: sm.getSessionFile(),
                dir: sm.getSessionDir(),
                id: sm.getSessionId(),
                cwd: sm.getCwd(),
                name: sm.getSessionName(),
            });
        } });
    "#;
    let mut scene = with_extension(body, [Turn::text("one"), Turn::text("two")]);
    let empty = run_command(&mut scene, "/look");
    assert_eq!(empty["types"], json!(["model_change", "thinking_level_change"]));
    scene.run("hello");
    scene.command(json!({"type": "set_session_name", "name": "named"}));
    scene.run("again");
    let seen = run_command(&mut scene, "/look");
    let state = scene.state();
    let kept = scene.data(json!({"type": "get_entries"}));
    let ids: Vec<&Value> = kept["entries"].as_array().unwrap().iter().map(|entry| &entry["id"]).collect();
    assert_eq!(seen["ids"], json!(ids), "what came bit by bit is the whole");
    assert_eq!(seen["branch"], seen["ids"]);
    assert_eq!(seen["texts"], json!(["user", "assistant", "user", "assistant"]));
    assert_eq!((&seen["leaf"], &seen["leafEntry"]), (&kept["leafId"], &kept["leafId"]));
    assert_eq!((&seen["file"], &seen["id"]), (&state["sessionFile"], &state["sessionId"]));
    assert_like(&seen["header"], &json!({"type": "session", "version": 3, "id": state["sessionId"]}));
    assert_eq!((&seen["name"], &seen["header"]["cwd"]), (&json!("named"), &seen["cwd"]));
    assert!(state["sessionFile"].as_str().unwrap().starts_with(seen["dir"].as_str().unwrap()), "{seen}");
    scene.finish();
}

#[test]
fn a_remembered_no_counts_where_nothing_needs_trust() {
    let check = |saved: Option<bool>, flags: &[&str], expected: bool| {
        let server = ModelServer::start(Script::of([]));
        let home = TempHome::for_server(&server);
        home.write_file("AGENTS.md", "Be brief.");
        let body = r#"pi.registerCommand("trust", { handler: async (_, ctx) => tell(ctx, { trusted: ctx.isProjectTrusted() }) });"#;
        home.write_agent_file("extensions/own.ts", extension(body));
        if let Some(saved) = saved {
            let work = home.work().canonicalize().expect("there");
            home.write_agent_file("trust.json", json!({work.to_str().expect("UTF-8"): saved}).to_string());
        }
        let mut scene = Scene::in_home(server, home, |builder| builder.args(flags));
        assert_eq!(run_command(&mut scene, "/trust"), json!({"trusted": expected}), "{saved:?} {flags:?}");
        scene.finish();
    };
    check(None, &[], true);
    check(Some(true), &[], true);
    check(Some(false), &[], false);
    check(Some(false), &["--approve"], true);
}

#[test]
fn state_models_tools_and_commands_are_answered_at_once() {
    let body = r#"
        pi.registerTool({ name: "extra", label: "Extra", description: "More", promptGuidelines: ["Use it"],
            parameters: { type: "object", properties: {} }, execute: async () => ({ content: [] }) });
        pi.registerCommand("look", { description: "Looks", handler: async (_, ctx) => {
            const mr = ctx.modelRegistry;
            tell(ctx, {
                model: ctx.model, level: ctx.thinkingLevel, also: pi.getThinkingLevel(), idle: ctx.isIdle(),
                pending: ctx.hasPendingMessages(), usage: ctx.getContextUsage(), trusted: ctx.isProjectTrusted(),
                scoped: ctx.scopedModels, tools: pi.getAllTools(), active: pi.getActiveTools(),
                commands: pi.getCommands(), prompt: ctx.getSystemPrompt(), options: ctx.getSystemPromptOptions(),
                found: mr.find(ctx.model.provider, ctx.model.id)?.id, missing: mr.find("nobody", "nothing") ?? null,
                available: mr.getAvailable().map((model) => model.id), all: mr.getAll().length,
                auth: mr.hasConfiguredAuth(ctx.model), oauth: mr.isUsingOAuth(ctx.model),
                none: mr.hasConfiguredAuth({ provider: "groq", id: "x" }),
                status: mr.getProviderAuthStatus(ctx.model.provider), error: mr.getError() ?? null,
                display: mr.getProviderDisplayName("anthropic"),
            });
        } });
    "#;
    let mut scene = with_extension(body, [Turn::text("fine")]);
    scene.run("hello");
    let seen = run_command(&mut scene, "/look");
    let state = scene.state();
    assert_eq!(
        (&seen["model"], &seen["level"], &seen["also"]),
        (&state["model"], &state["thinkingLevel"], &seen["level"])
    );
    assert_like(
        &seen,
        &json!({"idle": true, "pending": false, "missing": null, "scoped": [], "auth": true, "oauth": false,
        "none": false, "error": null, "display": "Anthropic"}),
    );
    assert_eq!(seen["found"], state["model"]["id"]);
    assert!(seen["usage"]["tokens"].as_u64().unwrap() > 0, "{}", seen["usage"]);
    assert_eq!(seen["usage"]["contextWindow"], state["model"]["contextWindow"]);
    assert!(seen["available"].as_array().unwrap().contains(&state["model"]["id"]));
    assert!(seen["all"].as_u64().unwrap() > seen["available"].as_array().unwrap().len() as u64);
    assert_eq!(seen["status"], json!({"configured": true, "source": "models_json_key", "label": null}));
    assert!(seen["prompt"].as_str().unwrap().contains("<cwd>"));
    assert_like(&seen["options"], &json!({"sections": {}, "promptGuidelines": []}));
    assert!(!seen["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "todo_write"), "{}", seen["tools"]);
    let tool =
        |name: &str| seen["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).cloned().unwrap();
    assert_like(
        &tool("read")["sourceInfo"],
        &json!({"source": "builtin", "path": "<builtin:read>", "scope": "temporary", "origin": "top-level"}),
    );
    assert_like(&tool("extra"), &json!({"promptGuidelines": ["Use it"], "description": "More"}));
    assert_like(&tool("extra")["sourceInfo"], &json!({"source": "auto", "scope": "user", "origin": "top-level"}));
    assert!(seen["active"].as_array().unwrap().contains(&json!("read")));
    assert_like(&seen["commands"][0], &json!({"name": "look", "description": "Looks", "source": "extension"}));
    scene.finish();
}

#[test]
fn commands_registered_when_the_session_starts_are_listed_from_the_first() {
    let source = extension(
        r#"pi.on("session_start", async () => {
            await new Promise((resolve) => setTimeout(resolve, 300));
            pi.registerCommand("late", { handler: async () => {} });
        });"#,
    );
    let server = ModelServer::start(Script::of([]));
    let home = TempHome::for_server(&server);
    home.write_agent_file("extensions/a.ts", &source);
    let mut scene = Scene::in_home(server, home, |builder| builder);
    let commands = scene.data(json!({"type": "get_commands"}))["commands"].clone();
    assert_eq!(commands[0]["name"], "late", "{commands}");
    scene.finish();
}

#[test]
fn commands_of_extensions_come_first_under_the_names_they_are_called_by() {
    let server = ModelServer::start(Script::of([]));
    let home = TempHome::for_server(&server);
    let source = extension(r#"pi.registerCommand("twin", { description: "One of two", handler: async () => {} });"#);
    home.write_agent_file("extensions/a.ts", &source);
    home.write_agent_file("extensions/b.ts", &source);
    home.write_agent_file("prompts/fix.md", "Fix it\n");
    let mut scene = Scene::in_home(server, home, |builder| builder);
    let commands = scene.data(json!({"type": "get_commands"}))["commands"].clone();
    let names: Vec<&str> =
        commands.as_array().unwrap().iter().map(|command| command["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["twin:1", "twin:2", "fix"]);
    let path = scene.home.agent().join("extensions/a.ts").display().to_string();
    assert_like(
        &commands[0],
        &json!({"description": "One of two", "source": "extension", "path": path,
            "sourceInfo": {"path": path, "source": "auto", "scope": "user", "origin": "top-level"}}),
    );
    assert!(commands[0].get("location").is_none());
    scene.finish();
}

#[test]
fn extensions_that_cannot_be_loaded_are_in_the_diagnostics() {
    let server = ModelServer::start(Script::of([]));
    let home = TempHome::for_server(&server);
    home.write_agent_file("extensions/broken.ts", "export default 5;");
    let mut scene = Scene::in_home(server, home, |builder| builder);
    let found = scene.data(json!({"type": "get_diagnostics"}))["diagnostics"].clone();
    let path = scene.home.agent().join("extensions/broken.ts").display().to_string();
    let found = found.as_array().unwrap().iter().find(|found| found["code"] == "extension_load").cloned();
    let found = found.expect("the broken extension is listed");
    assert_like(&found, &json!({"type": "error", "path": path}));
    assert!(found["message"].as_str().unwrap().starts_with("Failed to load extension"), "{found}");
    let frames = scene.finish();
    assert_like(of_type(&frames, "extension_error")[0], &json!({"extensionPath": path, "event": "load"}));
}

#[test]
fn skills_and_prompts_of_extensions_stay_across_a_reload() {
    let body = r#"
        pi.on("resources_discover", () => ({
            skillPaths: [import.meta.dirname + "/brought/skills"],
            promptPaths: [import.meta.dirname + "/brought/say.md"],
        }));
    "#;
    let server = ModelServer::start(Script::of([Turn::text("said")]));
    let home = TempHome::for_server(&server);
    home.write_agent_file("extensions/own/index.ts", extension(body));
    home.write_agent_file("extensions/own/brought/say.md", "Say $1 loudly\n");
    let skill = "---\nname: brewing\ndescription: How to brew\n---\nBoil water.\n";
    home.write_agent_file("extensions/own/brought/skills/brewing/SKILL.md", skill);
    let mut scene = Scene::in_home(server, home, |builder| builder);
    let check = |scene: &mut Scene| {
        let commands = scene.data(json!({"type": "get_commands"}))["commands"].clone();
        let named = |name: &str| commands.as_array().unwrap().iter().find(|command| command["name"] == name).cloned();
        let template = named("say").expect("the template is a command");
        assert_like(&template["sourceInfo"], &json!({"source": "extension:index", "scope": "temporary"}));
        let skill = named("skill:brewing").expect("the skill is a command");
        for command in [template, skill] {
            let base = command["sourceInfo"]["baseDir"].as_str().unwrap_or_default();
            assert!(base.ends_with("extensions/own"), "{command}");
        }
    };
    check(&mut scene);
    scene.home.write_agent_file("prompts/new.md", "New\n");
    scene.command(json!({"type": "reload"}));
    check(&mut scene);
    scene.run("/say hello");
    let request = scene.server.wait_request(0);
    assert!(crate::support::sent_texts(&request.body).contains("Say hello loudly"));
    assert!(request.body["system"].to_string().contains("How to brew"), "the prompt knows the skill");
    scene.finish();
}

#[test]
fn entries_names_and_labels_are_kept_and_told() {
    let body = r#"
        pi.on("session_info_changed", (event, ctx) => tell(ctx, { renamed: event.name ?? null }));
        pi.registerCommand("keep", { handler: async (_, ctx) => {
            pi.appendEntry("my-type", { x: 1 });
            const id = ctx.sessionManager.getLeafId();
            pi.setLabel(id, "here");
            let refusal;
            try { pi.setLabel("nowhere", "there"); } catch (error) { refusal = error.message; }
            tell(ctx, { id, label: ctx.sessionManager.getLabel(id), refusal });
        } });
        pi.registerCommand("name", { handler: async (args) => pi.setSessionName(args) });
    "#;
    let mut scene = with_extension(body, []);
    let kept = run_command(&mut scene, "/keep");
    assert_eq!((&kept["label"], &kept["refusal"]), (&json!("here"), &json!("Entry nowhere not found")));
    let frames = scene.frames();
    let appended = of_type(&frames, "entry_appended");
    assert_like(
        &appended[0]["entry"],
        &json!({"type": "custom", "customType": "my-type", "data": {"x": 1}, "id": kept["id"]}),
    );
    scene.data(json!({"type": "prompt", "message": "/name by an extension"}));
    assert_eq!(told(&mut scene), json!({"renamed": "by an extension"}));
    scene.command(json!({"type": "set_session_name", "name": "by the host"}));
    assert_eq!(told(&mut scene), json!({"renamed": "by the host"}));
    scene.data(json!({"type": "prompt", "message": "/name"}));
    assert_eq!(told(&mut scene), json!({"renamed": null}));
    assert_eq!(scene.state()["sessionName"], json!(null));
    let frames = scene.finish();
    let names: Vec<_> = of_type(&frames, "session_info_changed").iter().map(|frame| frame["name"].clone()).collect();
    assert_eq!(names, [json!("by an extension"), json!("by the host"), json!(null)]);
}

#[test]
fn set_model_is_answered_after_extensions_were_told() {
    let body = r#"pi.on("model_select", async (event, ctx) => {
        await new Promise((resolve) => setTimeout(resolve, 50));
        tell(ctx, { model: event.model.id, now: ctx.model.id });
    });"#;
    let scene = with_extension(body, []);
    for id in ["1", "2", "3"] {
        scene.send(json!({"id": id, "type": "cycle_model"}));
    }
    let last = scene.response("3");
    let told: Vec<Value> = of_type(&scene.frames(), "extension_ui_request")
        .iter()
        .filter_map(|frame| serde_json::from_str(frame["message"].as_str()?).ok())
        .collect();
    assert_eq!(told.len(), 3, "each before its answer");
    assert!(told.iter().all(|told| told["model"] == told["now"]), "{told:?}");
    assert_eq!(told[2]["model"], last["data"]["model"]["id"]);
    scene.finish();
}

#[test]
fn changes_of_model_and_level_are_announced_whoever_makes_them() {
    let body = r#"
        pi.on("model_select", (event, ctx) => tell(ctx,
            { model: event.model.id, previous: event.previousModel?.id ?? null, source: event.source }));
        pi.on("thinking_level_select", (event, ctx) => tell(ctx, { level: event.level, previous: event.previousLevel }));
    "#;
    let mut scene = with_extension(body, []);
    let before = scene.state();
    let models = scene.data(json!({"type": "get_available_models"}))["models"].clone();
    let other = models.as_array().unwrap().iter().find(|model| model["id"] != before["model"]["id"]).cloned();
    let other = other.expect("the home has several models");
    scene.command(json!({"type": "set_model", "provider": other["provider"], "modelId": other["id"]}));
    let selected = json!({"model": other["id"], "previous": before["model"]["id"], "source": "set"});
    loop {
        let told = told(&mut scene);
        if told.get("model").is_some() {
            assert_eq!(told, selected);
            break;
        }
    }
    scene.command(json!({"type": "set_model", "provider": other["provider"], "modelId": other["id"]}));
    scene.command(json!({"type": "cycle_model"}));
    let cycled = loop {
        let told = told(&mut scene);
        if told.get("model").is_some() {
            break told;
        }
    };
    assert_like(&cycled, &json!({"previous": other["id"], "source": "cycle"}));
    scene.finish();
}

#[test]
fn a_change_of_level_tells_the_one_before() {
    let body = r#"
        pi.on("thinking_level_select", (event, ctx) => tell(ctx, { level: event.level, previous: event.previousLevel }));
    "#;
    let mut scene = with_extension(body, []);
    scene.command(json!({"type": "set_thinking_level", "level": "off"}));
    scene.command(json!({"type": "set_thinking_level", "level": "high"}));
    let change = loop {
        let told = told(&mut scene);
        if told["level"] == "high" {
            break told;
        }
    };
    assert_eq!(change, json!({"level": "high", "previous": "off"}));
    scene.finish();
}

#[test]
fn an_extension_is_told_of_its_own_selections_too() {
    let body = r#"
        pi.on("model_select", (event, ctx) => tell(ctx, { model: event.model.id, source: event.source }));
        pi.registerCommand("choose", { handler: async (_, ctx) => {
            const other = ctx.modelRegistry.getAvailable().find((model) => model.id !== ctx.model.id);
            await pi.setModel(other);
            pi.setThinkingLevel("off");
            if (ctx.model.id !== other.id || pi.getThinkingLevel() !== "off") throw new Error("not chosen");
        } });
    "#;
    let mut scene = with_extension(body, []);
    scene.command(json!({"type": "prompt", "message": "/choose"}));
    let told = told(&mut scene);
    let state = scene.state();
    assert_eq!(told, json!({"model": state["model"]["id"], "source": "set"}));
    assert_eq!(state["thinkingLevel"], "off");
    let frames = scene.finish();
    assert!(of_type(&frames, "extension_error").is_empty());
}

#[test]
fn errors_name_the_extension_and_leave_the_stack_in_the_log() {
    let body = r#"
        const deep = () => { throw new Error("out of order"); };
        pi.on("input", () => deep());
        pi.registerCommand("fail", { handler: async () => deep() });
    "#;
    let mut scene = with_extension(body, [Turn::text("fine")]);
    let path = scene.home.agent().join("extensions/own.ts").display().to_string();
    scene.command(json!({"type": "prompt", "message": "/fail"}));
    let error = scene.wait_type("extension_error");
    assert_eq!(
        error,
        json!({"type": "extension_error", "extensionPath": "command:fail", "event": "command", "error": "out of order"})
    );
    scene.run("hello");
    let frames = scene.frames();
    let error = json!({"type": "extension_error", "extensionPath": path, "event": "input", "error": "out of order"});
    assert_eq!(frames[position(&frames, &json!({"type": "extension_error", "event": "input"}))], error);
    // Lines of the source, not of the compiled code.
    scene.wait_stderr(|text| text.matches("deep").count() >= 2 && text.contains("own.ts:3:"));
    scene.finish();
}

#[test]
fn shutdown_waits_for_the_command_and_raises_session_shutdown() {
    let body = r#"
        pi.on("session_shutdown", (event, ctx) => tell(ctx, { bye: event.reason }));
        pi.registerCommand("leave", { handler: async (_, ctx) => {
            ctx.shutdown();
            await new Promise((resolve) => setTimeout(resolve, 20));
            tell(ctx, "still here");
        } });
    "#;
    let scene = with_extension(body, []);
    scene.send(json!({"id": "leave", "type": "prompt", "message": "/leave"}));
    assert_eq!(scene.exit_code(), 0);
    let frames = scene.frames();
    let said: Vec<_> =
        frames.iter().filter(|frame| frame["method"] == "notify").map(|frame| &frame["message"]).collect();
    assert_eq!(said, [&json!("\"still here\""), &json!("{\"bye\":\"quit\"}")]);
    assert_like(&scene.response("leave"), &json!({"success": true}));
}
