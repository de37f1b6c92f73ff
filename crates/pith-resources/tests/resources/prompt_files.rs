//! SYSTEM.md, APPEND_SYSTEM.md and the flags that beat them.

use crate::world::World;

/// The custom prompt and the appended texts.
fn prompts(world: &World) -> (Option<String>, Vec<String>) {
    let resources = world.load();
    (resources.custom_prompt().map(str::to_owned), resources.append_prompts().to_vec())
}

#[test]
fn the_project_beats_the_user_if_it_is_trusted() {
    let mut world = World::new();
    world.write("@/SYSTEM.md", "user system\n").write("@/APPEND_SYSTEM.md", "user append\n");
    assert_eq!(prompts(&world), (Some("user system".into()), vec!["user append".into()]));
    world.write("./.pi/SYSTEM.md", "project system").write("./.pi/APPEND_SYSTEM.md", "project append");
    assert_eq!(prompts(&world), (Some("project system".into()), vec!["project append".into()]));
    world.options.trusted = false;
    assert_eq!(prompts(&world), (Some("user system".into()), vec!["user append".into()]));
}

#[test]
fn flags_beat_files_and_may_name_files() {
    let mut world = World::new();
    world.write("@/SYSTEM.md", "user").write("@/APPEND_SYSTEM.md", "user").write("./p.md", "\u{feff}from file\n");
    let mut check = |system: &str, append: &[&str], expected: &str, appended: &[&str]| {
        world.options.system_prompt = Some(system.to_owned().into());
        world.options.append_system_prompt = append.iter().map(|text| (*text).to_owned().into()).collect();
        let appended = appended.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(prompts(&world), (Some(expected.into()), appended));
    };
    check("be brief", &["one", "two"], "be brief", &["one", "two"]);
    check("p.md", &["./p.md", "one"], "from file", &["from file", "one"]);
    check("missing.md", &["missing.md"], "missing.md", &["missing.md"]);
    check(".", &["", "  "], ".", &[]); // a directory is not a file, and blank texts add nothing
    let long = "x".repeat(100_000);
    check(&long, &["a\0b"], &long, &["a\0b"]);
}

#[test]
fn an_empty_flag_asks_for_the_built_in_prompt() {
    let mut world = World::new();
    world.write("@/SYSTEM.md", "user");
    world.options.system_prompt = Some(String::new().into());
    assert_eq!(world.load().custom_prompt(), None);
}

#[test]
fn blank_files_say_nothing() {
    let world = World::new();
    world.write("@/SYSTEM.md", "\n \n").write("@/APPEND_SYSTEM.md", "");
    assert_eq!(prompts(&world), (None, vec![]));
}

#[test]
fn a_huge_prompt_file_is_cut() {
    let world = World::new();
    std::fs::create_dir_all(world.path("@")).unwrap();
    std::fs::File::create(world.path("@/SYSTEM.md")).unwrap().set_len(1 << 30).unwrap();
    let resources = world.load();
    let mark = "\n[cut: only the first 524288 bytes of this file are shown]";
    assert_eq!(resources.custom_prompt().unwrap().len(), 524_288 + mark.len());
    let expected = "warning prompt_file_cut @/SYSTEM.md: prompt file is too long: only the first 524288 bytes are used";
    assert_eq!(world.problems(&resources), [expected]);
}

#[cfg(target_os = "linux")]
#[test]
fn unreadable_prompt_files() {
    use crate::world::{as_nobody, set_mode};
    let mut world = World::new();
    world.write("./.pi/SYSTEM.md", "project").write("@/SYSTEM.md", "user").write("./p.md", "secret");
    for place in ["", "./.pi/SYSTEM.md", "./p.md"] {
        set_mode(&world.path(place), if place.is_empty() { 0o755 } else { 0 });
    }
    let load = |world: &World| as_nobody(|| (prompts(world).0, world.problems(&world.load())));
    // A file that lies around is passed over.
    let (custom, problems) = load(&world);
    assert_eq!(custom.as_deref(), Some("user"));
    let denied = "cannot read prompt file: Permission denied (os error 13)";
    assert_eq!(problems, [format!("warning prompt_file_unreadable ./.pi/SYSTEM.md: {denied}")]);
    // One that was asked for is an error, and its path is no prompt.
    world.options.system_prompt = Some("p.md".to_owned().into());
    let (custom, problems) = load(&world);
    assert_eq!(custom, None);
    assert_eq!(problems, [format!("error prompt_file_unreadable ./p.md: {denied}")]);
}

#[cfg(unix)]
#[test]
fn a_device_is_neither_a_text_nor_a_file() {
    let mut world = World::new();
    world.options.system_prompt = Some("/dev/zero".to_owned().into());
    let resources = world.load();
    assert_eq!(resources.custom_prompt(), None);
    let messages: Vec<_> = resources.diagnostics().iter().map(|diagnostic| &*diagnostic.message).collect();
    assert_eq!(messages, ["cannot read prompt file: not a regular file"]);
}
