//! Examples that work on a repository or files.

use serde_json::json;

use super::{Exercise, any, bash, exercise, git, repository};

pub const ALL: &[Exercise] = &[
    exercise("dirty-repo-guard", "asks before leaving uncommitted work", |lab| {
        let furnish = |home: &pith_testkit::TempHome, _: &_| {
            repository(home);
            home.write_file("file.txt", "changed\n");
        };
        let mut stage = lab.start_in("dirty-repo-guard", [], furnish, |builder| builder);
        stage.host.send(json!({"id": "new", "type": "new_session"}));
        stage.dialog(0, "You have 1 uncommitted file(s)", json!({"value": "No, let me commit first"}));
        stage.notified(0, "Commit your changes first");
        let answer = stage.watch(0, "the answer", |frame| frame["id"] == "new");
        assert_eq!(answer["data"]["cancelled"], true, "{answer}");
        git(&stage.home, &["commit", "-qam", "done"]);
        let answer = stage.ask(json!({"type": "new_session"}));
        assert_eq!(answer["data"]["cancelled"], false, "{answer}");
        stage.finish("dirty-repo-guard");
    }),
    exercise("auto-commit-on-exit", "commits what is left at the end", |lab| {
        let furnish = |home: &pith_testkit::TempHome, _: &_| {
            repository(home);
            home.write_file("file.txt", "changed\n");
        };
        let mut stage =
            lab.start_in("auto-commit-on-exit", [pith_testkit::Turn::text("The work is done")], furnish, |builder| {
                builder
            });
        stage.run("hello");
        let home = stage.home.clone();
        stage.finish("auto-commit-on-exit");
        assert_eq!(git(&home, &["log", "-1", "--format=%s"]).trim(), "[pi] The work is done");
    }),
    exercise("git-checkpoint", "follows a run and offers nothing once it is over", |lab| {
        let furnish = |home: &pith_testkit::TempHome, _: &_| {
            repository(home);
            home.write_file("file.txt", "changed\n");
        };
        let mut stage = lab.start_in(
            "git-checkpoint",
            bash("echo more >> file.txt").into_iter().chain([any()]),
            furnish,
            |builder| builder,
        );
        stage.run("change it");
        stage.run("and again");
        let messages = stage.ask(json!({"type": "get_fork_messages"}));
        let entry = messages["data"]["messages"][1]["entryId"].clone();
        let answer = stage.ask(json!({"type": "fork", "entryId": entry}));
        assert_eq!(answer["success"], true, "{answer}");
        let frames = stage.finish("git-checkpoint");
        assert!(!frames.iter().any(|frame| frame["type"] == "extension_error"), "{frames:?}");
    }),
    exercise("file-trigger", "a file outside starts a run", |lab| {
        let file = std::path::Path::new("/tmp/agent-trigger.txt");
        std::fs::write(file, "").expect("the example's file");
        let mut stage = lab.start("file-trigger", [any()]);
        stage.notified(0, "Watching /tmp/agent-trigger.txt");
        std::fs::write(file, "deploy").expect("the example's file");
        stage.watch(0, "the end", |frame| frame["type"] == "agent_settled");
        assert!(stage.sent(0).contains("External trigger: deploy"));
        stage.finish("file-trigger");
        std::fs::remove_file(file).expect("the example's file");
    }),
    exercise("project-trust", "is asked about a project", |lab| {
        let furnish = |home: &pith_testkit::TempHome, _: &_| home.write_file(".pi/settings.json", "{}");
        let stage = lab.start_in("project-trust", [], furnish, |builder| builder);
        stage.host.wait_stderr(|text| text.contains("project_trust fired for"));
        stage.finish("project-trust");
    }),
    exercise("notify", "its terminal sequence stays away from the protocol", |lab| {
        let mut stage = lab.start("notify", [any()]);
        stage.run("hello");
        stage.host.wait_stderr(|text| text.contains("\u{1b}]777;notify;Pi;Ready for input"));
        stage.finish("notify");
    }),
];
