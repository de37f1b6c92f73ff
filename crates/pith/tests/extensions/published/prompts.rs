//! Examples that change what is sent to the model.

use pith_testkit::Turn;
use pith_testkit::server::TurnUsage;
use serde_json::json;

use super::{Exercise, any, exercise, git, repository};

pub const ALL: &[Exercise] = &[
    exercise("input-transform", "rewrites a prompt, answers another itself", |lab| {
        let mut stage = lab.start("input-transform", [any()]);
        let response = stage.prompt("ping");
        assert_eq!(response["data"]["disposition"], "handled", "{response}");
        stage.notified(0, "pong");
        stage.run("?quick why");
        assert!(stage.sent(0).contains("Respond briefly in 1-2 sentences: why"));
        stage.finish("input-transform");
    }),
    exercise("inline-bash", "replaces commands in a prompt by their output", |lab| {
        let mut stage = lab.start("inline-bash", [any()]);
        stage.run("today is !{echo mon}day");
        assert!(stage.sent(0).contains("today is monday"));
        stage.finish("inline-bash");
    }),
    exercise("input-transform-streaming", "adds the state of the repository", |lab| {
        let mut stage = lab.start_in(
            "input-transform-streaming",
            [any()],
            |home, _| {
                repository(home);
                home.write_file("file.txt", "two\n");
            },
            |builder| builder,
        );
        stage.run("explain the changes");
        assert!(stage.sent(0).contains("Current uncommitted changes:"));
        stage.finish("input-transform-streaming");
    }),
    exercise("pirate", "changes the system prompt", |lab| {
        let mut stage = lab.start("pirate", [any(), any()]);
        stage.run("hello");
        stage.prompt("/pirate");
        stage.notified(0, "Arrr! Pirate mode enabled!");
        stage.run("hello again");
        assert!(!stage.sent(0).contains("PIRATE MODE"));
        assert!(stage.sent(1).contains("PIRATE MODE"));
        stage.finish("pirate");
    }),
    exercise("prompt-customizer", "adds guidance for the active tools", |lab| {
        let mut stage = lab.start("prompt-customizer", [any()]);
        stage.run("hello");
        let guidance =
            if lab.is_new() { "Use `read` for file contents" } else { "Use the `read` tool for file contents" };
        assert!(stage.sent(0).contains(guidance), "{}", stage.sent(0));
        stage.finish("prompt-customizer");
    }),
    exercise("claude-rules", "tells the model of rule files", |lab| {
        let furnish = |home: &pith_testkit::TempHome, _: &_| home.write_file(".claude/rules/style.md", "be nice");
        let mut stage = lab.start_in("claude-rules", [any()], furnish, |builder| builder);
        stage.notified(0, "Found 1 rule(s) in .claude/rules/");
        stage.run("hello");
        assert!(stage.sent(0).contains(".claude/rules/style.md"));
        stage.finish("claude-rules");
    }),
    exercise("provider-payload", "writes requests and responses down", |lab| {
        let furnish = |home: &pith_testkit::TempHome, _: &_| home.write_file(".pi/keep", "");
        let mut stage = lab.start_in("provider-payload", [any()], furnish, |builder| builder);
        stage.run("hello payload");
        let log = stage.home.read_file(".pi/provider-payload.log").expect("the log");
        assert!(log.contains("hello payload") && log.contains("[200]"), "{log}");
        stage.finish("provider-payload");
    }),
    exercise("system-prompt-header", "shows the length of the prompt", |lab| {
        let mut stage = lab.start("system-prompt-header", [any()]);
        let start = stage.run("hello");
        let shown = stage.watch(start, "the status", |frame| frame["statusKey"] == "system-prompt");
        assert!(
            shown["statusText"].as_str().is_some_and(|text| text.starts_with("System: ") && text != "System: 0 chars"),
            "{shown}"
        );
        stage.finish("system-prompt-header");
    }),
    exercise("dynamic-resources", "brings a skill and a template", |lab| {
        let mut stage = lab.start("dynamic-resources", [any()]);
        let commands = stage.ask(json!({"type": "get_commands"}));
        let names: Vec<&str> = commands["data"]["commands"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|one| one["name"].as_str())
            .collect();
        assert!(names.contains(&"dynamic") && names.iter().any(|name| name.starts_with("skill:")), "{names:?}");
        stage.run("/dynamic");
        assert!(!stage.sent(0).contains("\"/dynamic\""), "the template is expanded");
        stage.finish("dynamic-resources");
    }),
    exercise("custom-compaction", "summarizes with a model of its own", |lab| {
        let summary = Turn::text("GIST OF IT ALL");
        let mut stage = lab.start_in(
            "custom-compaction",
            [Turn::text("a long answer ".repeat(200)), Turn::text("another one"), summary],
            |home, server| {
                home.write_models(&server.url(), |models| {
                    models["providers"]["google"] =
                        json!({"baseUrl": format!("{}/v1beta", server.url()), "apiKey": "k"});
                });
                home.write_settings(&json!({"compaction": {"keepRecentTokens": 10}}));
            },
            |builder| builder,
        );
        stage.run("tell me a lot");
        stage.run("and more");
        let response = stage.ask(json!({"type": "compact"}));
        assert_eq!(response["data"]["summary"], "GIST OF IT ALL", "{response}");
        assert!(stage.server.requests()[2].path.contains("gemini-2.5-flash"), "its own model was asked");
        stage.finish("custom-compaction");
    }),
    exercise("trigger-compact", "compacts by command and when usage jumps", |lab| {
        let large = Turn::text("large").usage(TurnUsage { input: 120_000, output: 10, cache_read: 0, cache_write: 0 });
        let mut stage = lab.start_in(
            "trigger-compact",
            [Turn::text("a long answer ".repeat(200)), large, Turn::text("SUMMARY"), any()],
            |home, _| home.write_settings(&json!({"compaction": {"keepRecentTokens": 10}})),
            |builder| builder,
        );
        stage.run("small");
        let start = stage.now();
        stage.prompt("large");
        stage.notified(start, "Compaction started");
        stage.notified(start, "Compaction completed");
        stage.finish("trigger-compact");
    }),
    exercise("git-merge-and-resolve", "asks the model to resolve conflicts", |lab| {
        let mut stage = lab.start_in(
            "git-merge-and-resolve",
            [any(), any()],
            |home, _| {
                repository(home);
                git(home, &["checkout", "-qb", "other"]);
                home.write_file("file.txt", "theirs\n");
                git(home, &["commit", "-qam", "theirs"]);
                git(home, &["checkout", "-q", "main"]);
                home.write_file("file.txt", "ours\n");
                git(home, &["commit", "-qam", "ours"]);
                git(home, &["merge", "other"]);
            },
            |builder| builder,
        );
        stage.prompt("hello");
        let sent = stage.sent(1);
        assert!(sent.contains("Merged MERGE_HEAD with conflicts") && sent.contains("file.txt:1-5"), "{sent}");
        git(&stage.home, &["merge", "--abort"]);
        stage.watch(0, "the end", |frame| frame["type"] == "agent_settled");
        stage.finish("git-merge-and-resolve");
    }),
];
