//! `/skill:name` and `/template` in a user's text.

use std::borrow::Cow;
use std::fs;

use crate::world::World;

fn world() -> World {
    let world = World::new();
    world.write("@/skills/tidy/SKILL.md", "---\nname: tidy\ndescription: d\n---\n\n# Tidy\nPut things.\n\n");
    world.write("@/prompts/fix.md", "---\ndescription: d\n---\nFix $1 of [$@].\n");
    world.write("@/prompts/raw.md", "\nraw $1\n").write("@/prompts/skill:odd.md", "odd");
    world
}

#[test]
fn skills_become_blocks() {
    let world = world();
    let resources = world.load();
    let block = format!(
        "<skill name=\"tidy\" location=\"{}\">\nReferences are relative to {}.\n\n# Tidy\nPut things.\n</skill>",
        world.text("@/skills/tidy/SKILL.md"),
        world.text("@/skills/tidy"),
    );
    let check = |text: &str, tail: &str| {
        let expansion = resources.expand(text);
        assert_eq!((&*expansion.text, expansion.failure), (&*format!("{block}{tail}"), None), "{text}");
    };
    check("/skill:tidy", "");
    check("/skill:tidy   ", "");
    check("/skill:tidy the desk", "\n\nthe desk");
    check("/skill:tidy  the\ndesk \n", "\n\nthe\ndesk");
}

#[test]
fn templates_are_filled() {
    let world = world();
    let resources = world.load();
    let check = |text: &str, expected: &str| assert_eq!(resources.expand(text).text, expected, "{text:?}");
    check("/fix 'a b' c", "Fix a b of [a b c].");
    check("/fix\na\tb", "Fix a of [a b].");
    check("/fix", "Fix  of [].");
    check("/raw x", "\nraw x\n");
    check("/skill:odd", "odd");
}

#[test]
fn the_rest_passes_unchanged() {
    let world = world();
    let resources = world.load();
    for text in
        ["", "/", "/ fix", "hello /fix", " /fix", "/nosuch x", "/skill:", "/skill:nosuch x", "/skill:tidy\nx", "/FIX"]
    {
        let expansion = resources.expand(text);
        assert!(matches!(expansion.text, Cow::Borrowed(same) if same == text), "{text:?}");
        assert_eq!(expansion.failure, None);
    }
}

#[test]
fn templates_alone() {
    let world = world();
    let resources = world.load();
    assert_eq!(resources.expand_template("/skill:tidy x").text, "/skill:tidy x");
    assert_eq!(resources.expand_template("/fix x").text, "Fix x of [x].");
}

#[test]
fn the_file_is_read_when_it_is_used() {
    let world = world();
    let resources = world.load();
    world.write("@/skills/tidy/SKILL.md", "---\nname: tidy\n---\nnew body");
    assert!(resources.expand("/skill:tidy").text.contains("\n\nnew body\n</skill>"));
}

#[test]
fn a_file_that_cannot_be_read_leaves_the_text() {
    let world = world();
    let resources = world.load();
    fs::remove_file(world.path("@/skills/tidy/SKILL.md")).unwrap();
    fs::remove_file(world.path("@/prompts/fix.md")).unwrap();
    let check = |text: &str, path: &str, event: &str| {
        let expansion = resources.expand(text);
        assert_eq!(expansion.text, text);
        let failure = expansion.failure.unwrap();
        assert_eq!((failure.path, failure.event), (world.path(path), event));
        assert_eq!(
            failure.message,
            format!("cannot read {}: No such file or directory (os error 2)", world.text(path))
        );
    };
    check("/skill:tidy x", "@/skills/tidy/SKILL.md", "skill_expansion");
    check("/fix x", "@/prompts/fix.md", "prompt_expansion");
}

#[test]
fn a_huge_body_is_cut_and_reported() {
    let world = world();
    let resources = world.load();
    fs::File::options().write(true).open(world.path("@/prompts/fix.md")).unwrap().set_len(1 << 30).unwrap();
    let expansion = resources.expand("/fix x");
    assert!(expansion.text.starts_with("Fix x") && expansion.text.len() < 1 << 20);
    assert_eq!(expansion.failure.unwrap().message, "file is too long: only the first 1048576 bytes were used");
}
