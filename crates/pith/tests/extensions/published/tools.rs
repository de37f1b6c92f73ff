//! Examples that register tools.

use std::cell::RefCell;

use pith_testkit::Turn;
use serde_json::json;

use super::{Exercise, any, bash, calling, exercise, program};
use crate::support::texts;

pub const ALL: &[Exercise] = &[
    exercise("hello", "its tool greets", |lab| {
        let mut stage = lab.start("hello", calling("hello", json!({"name": "Ann"})));
        let start = stage.run("greet Ann");
        let end = stage.tool_end(start);
        assert_eq!(texts(&end["result"]["content"]), "Hello, Ann!", "{end}");
        assert_eq!(end["result"]["details"]["greeted"], "Ann", "{end}");
        assert!(stage.sent(0).contains("A simple greeting tool"), "the model knows the tool");
        assert!(stage.sent(1).contains("Hello, Ann!"), "the model sees the result");
        stage.finish("hello");
    }),
    exercise("todo", "its tool keeps a list over two runs", |lab| {
        let turns = [
            calling("todo", json!({"action": "add", "text": "wash"})),
            calling("todo", json!({"action": "toggle", "id": 1})),
        ];
        let mut stage = lab.start("todo", turns.into_iter().flatten());
        let start = stage.run("add");
        assert!(texts(&stage.tool_end(start)["result"]["content"]).contains("wash"));
        let start = stage.run("toggle");
        let end = stage.tool_end(start);
        assert_eq!(end["result"]["details"]["todos"][0]["done"], true, "{end}");
        stage.finish("todo");
    }),
    exercise("dynamic-tools", "tools appear at start and by command", |lab| {
        let turns = calling("echo_later", json!({"message": "hi"}));
        let mut stage = lab.start("dynamic-tools", turns);
        stage.notified(0, "Registered dynamic tool: echo_session");
        let start = stage.now();
        stage.prompt("/add-echo-tool echo_later");
        stage.notified(start, "Registered dynamic tool: echo_later");
        let start = stage.run("echo");
        assert_eq!(texts(&stage.tool_end(start)["result"]["content"]), "[echo_later] hi");
        assert!(stage.sent(0).contains("echo_session"));
        stage.finish("dynamic-tools");
    }),
    exercise("structured-output", "its tool ends the run", |lab| {
        let call = Turn::call("structured_output", json!({"headline": "H", "summary": "S", "actionItems": ["a"]}));
        let mut stage = lab.start("structured-output", [call, any()]);
        let start = stage.run("summarize");
        assert_eq!(stage.tool_end(start)["result"]["details"]["headline"], "H");
        assert_eq!(stage.server.requests().len(), 1, "no second request");
        stage.finish("structured-output");
    }),
    exercise("tool-override", "read is audited, secrets are refused", |lab| {
        let turns = [calling("read", json!({"path": "notes.txt"})), calling("read", json!({"path": ".env"}))];
        let mut stage = lab.start_in(
            "tool-override",
            turns.into_iter().flatten(),
            |home, _| home.write_file("notes.txt", "read me"),
            |builder| builder,
        );
        let start = stage.run("read");
        assert!(texts(&stage.tool_end(start)["result"]["content"]).contains("read me"));
        let start = stage.run("read the secret");
        assert!(texts(&stage.tool_end(start)["result"]["content"]).contains("Access denied"));
        let log = std::fs::read_to_string(stage.home.agent().join("read-access.log")).expect("the log");
        assert!(log.contains("ALLOWED") && log.contains("BLOCKED"), "{log}");
        stage.finish("tool-override");
    }),
    exercise("truncated-tool", "its search cuts long output", |lab| {
        let path = RefCell::new(String::new());
        let mut stage = lab.start_in(
            "truncated-tool",
            calling("rg", json!({"pattern": "needle"})),
            |home, _| {
                // Replaces ripgrep, which a test machine need not have.
                let script = "#!/bin/sh\nfor i in $(seq 1 5000); do echo \"x.txt:$i:needle\"; done\n";
                *path.borrow_mut() = program(home, "rg", script);
            },
            |builder| builder.env("PATH", &path.borrow()),
        );
        let start = stage.run("search");
        let end = stage.tool_end(start);
        let text = texts(&end["result"]["content"]);
        assert!(text.contains("x.txt:2:needle") && text.contains("[Output truncated: showing"), "{end}");
        assert_eq!(end["result"]["details"]["matchCount"], 5000, "{end}");
        stage.finish("truncated-tool");
    }),
    exercise("with-deps", "its tool uses an npm package", |lab| {
        let mut stage = lab.start("with-deps", calling("parse_duration", json!({"duration": "2 days"})));
        let start = stage.run("parse");
        let end = stage.tool_end(start);
        assert!(texts(&end["result"]["content"]).contains("172800000"), "{end}");
        stage.finish("with-deps");
    }),
    exercise("bash-spawn-hook", "commands run in the environment it adds", |lab| {
        let mut stage = lab.start_in(
            "bash-spawn-hook",
            bash("echo \"hook=$PI_SPAWN_HOOK $FROM_PROFILE\""),
            |home, _| {
                std::fs::write(home.home().join(".profile"), "export FROM_PROFILE=yes\n").expect("a writable home")
            },
            |builder| builder,
        );
        let start = stage.run("go");
        let end = stage.tool_end(start);
        assert!(texts(&end["result"]["content"]).contains("hook=1 yes"), "{end}");
        stage.finish("bash-spawn-hook");
    }),
    exercise("minimal-mode", "wrapped tools work as the built-in ones", |lab| {
        let turns = [
            calling("write", json!({"path": "a.txt", "content": "alpha\n"})),
            calling("edit", json!({"path": "a.txt", "edits": [{"oldText": "alpha", "newText": "beta"}]})),
            calling("read", json!({"path": "a.txt"})),
            bash("cat a.txt"),
        ];
        let mut stage = lab.start("minimal-mode", turns.into_iter().flatten());
        for _ in 0..2 {
            let start = stage.run("change");
            assert_eq!(stage.tool_end(start)["isError"], false);
        }
        for _ in 0..2 {
            let start = stage.run("look");
            let end = stage.tool_end(start);
            assert!(texts(&end["result"]["content"]).contains("beta"), "{end}");
        }
        stage.finish("minimal-mode");
    }),
    exercise("built-in-tool-renderer", "wrapped bash and read work", |lab| {
        let turns = [bash("echo out > a.txt; cat a.txt"), calling("read", json!({"path": "a.txt"}))];
        let mut stage = lab.start("built-in-tool-renderer", turns.into_iter().flatten());
        for _ in 0..2 {
            let start = stage.run("go");
            let end = stage.tool_end(start);
            assert!(texts(&end["result"]["content"]).contains("out"), "{end}");
        }
        stage.finish("built-in-tool-renderer");
    }),
    exercise("tic-tac-toe", "its tools share a board", |lab| {
        let moves = Turn::blocks([
            pith_testkit::Block::call("tic_tac_toe", json!({"action": "move_down"})),
            pith_testkit::Block::call("tic_tac_toe_see_board", json!({})),
        ]);
        let mut stage = lab.start("tic-tac-toe", [moves, any()]);
        let start = stage.run("play");
        let seen = stage.watch(start, "the board", |frame| {
            frame["type"] == "tool_execution_end" && frame["toolName"] == "tic_tac_toe_see_board"
        });
        assert!(texts(&seen["result"]["content"]).contains("row=1, col=0"), "{seen}");
        stage.finish("tic-tac-toe");
    }),
    exercise("subagent", "it starts pith as its subagent and returns the answer", |lab| {
        let turns = [
            Turn::call("subagent", json!({"agent": "scout", "task": "look around"})),
            Turn::text("found a file"),
            Turn::text("done"),
        ];
        let agent = "---\nname: scout\ndescription: Looks around\ntools: read, bash\nmodel: mock-anthropic/claude-mock\n---\nYou look around.\n";
        let mut stage = lab.start_in(
            "subagent",
            turns,
            |home, _| home.write_agent_file("agents/scout.md", agent),
            |builder| builder,
        );
        let start = stage.run("delegate");
        let end = stage.tool_end(start);
        assert!(texts(&end["result"]["content"]).contains("found a file"), "{end}");
        assert!(stage.sent(1).contains("You look around."), "the subagent has its own instructions");
        assert!(stage.sent(1).contains("Task: look around"));
        stage.finish("subagent");
    }),
    exercise("ssh", "tools and user commands run on the other machine", |lab| {
        let remote = RefCell::new(String::new());
        let path = RefCell::new(String::new());
        let mut stage = lab.start_in(
            "ssh",
            bash("echo over; pwd"),
            |home, _| {
                // Replaces ssh: runs the command here and leaves a mark.
                *path.borrow_mut() =
                    program(home, "ssh", "#!/bin/sh\nshift\necho used >> \"$HOME/ssh.log\"\nexec sh -c \"$*\"\n");
                *remote.borrow_mut() = home.home().display().to_string();
            },
            |builder| {
                let flag = format!("there:{}", remote.borrow());
                builder.env("PATH", &path.borrow()).args(["--ssh", flag.as_str()])
            },
        );
        stage.watch(0, "the status", |frame| frame["method"] == "setStatus" && frame["statusKey"] == "ssh");
        let start = stage.run("go");
        let end = stage.tool_end(start);
        assert!(texts(&end["result"]["content"]).contains("over"), "{end}");
        let home = stage.home.home();
        assert!(home.join("ssh.log").is_file(), "the tool went over ssh");
        std::fs::remove_file(home.join("ssh.log")).expect("there it is");
        if lab.is_new() {
            let response = stage.ask(json!({"type": "bash", "command": "echo by hand"}));
            assert!(response["data"]["output"].as_str().is_some_and(|text| text.contains("by hand")), "{response}");
            assert!(home.join("ssh.log").is_file(), "the user's command went over ssh");
        }
        stage.finish("ssh");
    }),
    exercise("shutdown-command", "its tool ends pith after the answer", |lab| {
        let mut stage = lab.start("shutdown-command", calling("finish_and_exit", json!({})));
        stage.prompt("finish");
        assert_eq!(stage.host.exit_code(), 0, "{}", stage.host.describe());
        assert!(stage.host.frames().iter().any(|frame| frame["type"] == "agent_settled"));
    }),
    exercise("reload-runtime", "reloads by command and by tool", |lab| {
        let mut stage = lab.start("reload-runtime", calling("reload_runtime", json!({})));
        stage.prompt("/reload-runtime");
        let start = stage.run("reload");
        let end = stage.tool_end(start);
        assert!(texts(&end["result"]["content"]).contains("Queued /reload-runtime"), "{end}");
        let commands = stage.ask(json!({"type": "get_commands"}));
        assert!(commands.to_string().contains("reload-runtime"), "{commands}");
        stage.finish("reload-runtime");
    }),
];
