//! Whether a project may be trusted.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use pith_config::settings::DefaultTrust;
use pith_resources::{GatedResources, TrustFile, TrustInputs, Verdict, decide};

use crate::world::World;

#[test]
fn the_decision() {
    use DefaultTrust::{Always, Ask, Never};
    use Verdict::{Trusted, Untrusted};
    let (yes, no, none) = (Some(true), Some(false), None);
    // gated, flag, extension, saved, default
    let table = [
        ((false, none, none, none, Ask), Trusted),
        ((false, none, none, none, Never), Trusted), // nothing there to be afraid of
        ((false, none, none, no, Always), Untrusted),
        ((false, none, none, yes, Never), Trusted),
        ((false, yes, none, no, Ask), Trusted),
        ((false, no, none, none, Always), Untrusted),
        ((true, yes, no, no, Never), Trusted),
        ((true, no, yes, yes, Always), Untrusted),
        ((true, none, yes, no, Never), Trusted),
        ((true, none, no, yes, Always), Untrusted),
        ((true, none, none, yes, Never), Trusted),
        ((true, none, none, no, Always), Untrusted),
        ((true, none, none, none, Always), Trusted),
        ((true, none, none, none, Never), Untrusted),
        ((true, none, none, none, Ask), Verdict::Ask),
    ];
    for ((is_gated, flag, extension, saved, default), expected) in table {
        let inputs = TrustInputs { is_gated, flag, extension, saved, default };
        assert_eq!(decide(&inputs), expected, "{inputs:?}");
    }
}

/// What a world's project brings.
fn gated(world: &World) -> Vec<String> {
    let found = GatedResources::find(&world.options.cwd, ".pi", world.options.home.as_deref());
    let ours = found.paths.iter().filter(|path| path.starts_with(world.path("")));
    ours.map(|path| world.short(path)).collect()
}

#[test]
fn what_needs_trust() {
    let gate = [
        "settings.json",
        "SYSTEM.md",
        "APPEND_SYSTEM.md",
        "extensions/x",
        "skills/x",
        "prompts/x",
        "commands/x",
        "themes/x",
    ];
    for entry in gate {
        let world = World::new();
        assert!(gated(&world).is_empty());
        world.write(&format!("./.pi/{entry}"), "");
        assert_eq!(gated(&world), [format!("./.pi/{}", entry.split('/').next().unwrap())]);
    }
    let world = World::new();
    world.write("~/work/.agents/skills/x/SKILL.md", ""); // above the repository, too
    assert_eq!(gated(&world), ["~/work/.agents/skills"]);
}

#[test]
fn what_needs_no_trust() {
    let world = World::new();
    world.write("./AGENTS.md", "").write("./.pi/notes.md", "").write("./.agents/notes.md", "");
    world
        .write("~/.agents/skills/x/SKILL.md", "")
        .write("@/settings.json", "{}")
        .write("~/work/.pi/settings.json", "{}");
    assert!(gated(&world).is_empty());
}

#[cfg(unix)]
#[test]
fn the_users_own_skills_are_known_behind_a_link() {
    let mut world = World::new();
    world.skill("~/.agents/skills/x/SKILL.md", "x").link("linked-home", "~");
    world.options.home = Some(world.path("linked-home"));
    assert!(gated(&world).is_empty());
}

#[test]
fn the_question_names_what_would_be_loaded() {
    let world = World::new();
    world.write("./.pi/settings.json", "{}").write("./.agents/skills/x/SKILL.md", "");
    let found = GatedResources::find(&world.options.cwd, ".pi", world.options.home.as_deref());
    let question = found.question(&world.options.cwd);
    assert_eq!(question.title, "Trust this project?");
    for part in [".", "./.pi/settings.json", "./.agents/skills"] {
        assert!(question.message.contains(&world.text(part)), "{}", question.message);
    }
}

#[test]
fn the_nearest_saved_decision_counts() {
    let world = World::new();
    let file = TrustFile::in_agent_dir(&world.options.agent_dir);
    let cwd = &world.options.cwd;
    let check = |content: &str, expected: Option<bool>| {
        let content = content.replace('~', &world.text("~"));
        world.write("@/trust.json", &content);
        assert_eq!(file.decision(cwd).unwrap(), expected, "{content}");
    };
    assert_eq!(file.decision(cwd).unwrap(), None);
    check("{}", None);
    check(r#"{"~/work/app": true, "~/work": false}"#, Some(true));
    check(r#"{"~/work": false, "/": true}"#, Some(false));
    check(r#"{"~/work/app": null, "~/work": false}"#, Some(false));
    check(r#"{"~/work/app": null}"#, None);
    check(r#"{"~/work/app/sub": true, "~/work/ap": true}"#, None);
    check("\u{feff}{\"/\": true}", Some(true));
    assert!(!world.path("@/trust.json.lock").exists());
}

#[cfg(unix)]
#[test]
fn links_are_resolved() {
    let world = World::new();
    world.link("~/shortcut", "~/work/app");
    let file = TrustFile::in_agent_dir(&world.options.agent_dir);
    file.save(&world.path("~/shortcut"), true).unwrap();
    assert_eq!(file.decision(&world.options.cwd).unwrap(), Some(true));
    let text = fs::read_to_string(world.path("@/trust.json")).unwrap();
    assert_eq!(text, format!("{{\n  \"{}\": true\n}}\n", world.options.cwd.display()));
}

#[test]
fn a_file_of_the_wrong_shape_is_an_error_that_names_it() {
    let world = World::new();
    let file = TrustFile::in_agent_dir(&world.options.agent_dir);
    for content in ["", "nonsense", "[]", "{\"/a\": \"yes\"}", "{\"/a\": 1}"] {
        world.write("@/trust.json", content);
        let error = file.decision(&world.options.cwd).unwrap_err().to_string();
        assert!(error.starts_with(&format!("trust file {}: ", world.text("@/trust.json"))), "{error}");
        // It is not overwritten, and no lock stays behind.
        file.save(&world.options.cwd, true).unwrap_err();
        assert_eq!(fs::read_to_string(world.path("@/trust.json")).unwrap(), content);
        assert!(!world.path("@/trust.json.lock").exists());
    }
}

#[test]
fn saving_keeps_the_others_and_sorts() {
    let world = World::new();
    let file = TrustFile::in_agent_dir(&world.options.agent_dir);
    // The agent directory does not exist yet.
    file.save(Path::new("/zz-does-not-exist"), false).unwrap();
    file.save(Path::new("/aa-does-not-exist"), true).unwrap();
    let text = || fs::read_to_string(world.path("@/trust.json")).unwrap();
    assert_eq!(text(), "{\n  \"/aa-does-not-exist\": true,\n  \"/zz-does-not-exist\": false\n}\n");
    world.write("@/trust.json", "{\"/b\": null}");
    file.save(Path::new("/aa-does-not-exist"), false).unwrap();
    assert_eq!(text(), "{\n  \"/aa-does-not-exist\": false,\n  \"/b\": null\n}\n");
    let left: Vec<_> = fs::read_dir(world.path("@")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["trust.json"]);
}

#[cfg(unix)]
#[test]
fn modes_and_links_stay() {
    use crate::world::set_mode;
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    world.write("~/dotfiles/trust.json", "{}").link("@/trust.json", "~/dotfiles/trust.json");
    set_mode(&world.path("~/dotfiles/trust.json"), 0o640);
    TrustFile::in_agent_dir(&world.options.agent_dir).save(Path::new("/"), true).unwrap();
    assert!(fs::symlink_metadata(world.path("@/trust.json")).unwrap().is_symlink());
    let metadata = fs::metadata(world.path("~/dotfiles/trust.json")).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o640);
}

#[test]
fn concurrent_saves_are_all_kept() {
    let world = World::new();
    let file = TrustFile::in_agent_dir(&world.options.agent_dir);
    thread::scope(|scope| {
        for n in 0..4 {
            let file = &file;
            scope.spawn(move || {
                for m in 0..3 {
                    // Others may hold the lock for longer than one is willing to wait.
                    while file.save(Path::new(&format!("/none/{n}/{m}")), true).is_err() {}
                }
            });
        }
    });
    let text = fs::read_to_string(world.path("@/trust.json")).unwrap();
    assert_eq!(text.matches("true").count(), 12, "{text}");
}

/// Runs in a process of its own for the next test; alone it has nothing to do.
#[test]
fn endless_saver() {
    let Some(agent_dir) = std::env::var_os("PITH_TEST_ENDLESS_SAVER") else { return };
    let file = TrustFile::in_agent_dir(Path::new(&agent_dir));
    for n in 0u64.. {
        file.save(Path::new(&format!("/none/{}/{n}", "x".repeat(1000))), true).unwrap();
    }
}

#[test]
fn a_killed_writer_leaves_a_whole_file() {
    let world = World::new();
    let file = TrustFile::in_agent_dir(&world.options.agent_dir);
    file.save(&world.options.cwd, true).unwrap();
    let state = || fs::metadata(world.path("@/trust.json")).unwrap().modified().unwrap();
    for _ in 0..5 {
        let before = state();
        let mut saver = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "trust::endless_saver", "--nocapture"])
            .env("PITH_TEST_ENDLESS_SAVER", &world.options.agent_dir)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while state() == before {
            thread::yield_now();
        }
        saver.kill().unwrap();
        saver.wait().unwrap();
        // Others read what was decided, whatever the dead one left behind.
        assert_eq!(file.decision(&world.options.cwd).unwrap(), Some(true));
        _ = fs::remove_dir(world.path("@/trust.json.lock"));
    }
}

#[test]
fn a_lock_held_by_another_process_refuses_the_save() {
    let world = World::new();
    world.write("@/trust.json", "{}");
    fs::create_dir(world.path("@/trust.json.lock")).unwrap();
    let file = TrustFile::in_agent_dir(&world.options.agent_dir);
    let error = file.save(Path::new("/"), true).unwrap_err().to_string();
    assert!(error.ends_with("trust.json: locked by another process"), "{error}");
    assert_eq!(fs::read_to_string(world.path("@/trust.json")).unwrap(), "{}");
    // Reading goes on: a decision that was there is still there.
    assert_eq!(file.decision(Path::new("/")).unwrap(), None);
}
