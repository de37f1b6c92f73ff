//! Noticing that files have changed, and saying what is different.

use std::fs;

use pith_resources::{Change, Resources};

use crate::world::World;

/// Changes as `change resource name`.
fn changes(world: &World, earlier: &Resources) -> Vec<String> {
    let changes = world.load().changes_since(earlier);
    let name = |name: &str| if name.starts_with('/') { world.short(name.as_ref()) } else { name.to_owned() };
    changes
        .iter()
        .map(|item| format!("{:?} {} {}", item.change, item.resource, name(&item.name)).trim().to_owned())
        .collect()
}

#[test]
fn every_kind_of_change_is_noticed() {
    let world = World::new();
    world
        .skill("@/skills/a/SKILL.md", "a")
        .write("@/prompts/p.md", "p")
        .write("./AGENTS.md", "x")
        .write("@/SYSTEM.md", "s");
    let check = |change: &dyn Fn(), expected: &[&str]| {
        let earlier = world.load();
        assert!(!earlier.is_stale());
        assert!(changes(&world, &earlier).is_empty());
        change();
        assert!(earlier.is_stale(), "{expected:?}");
        assert_eq!(changes(&world, &earlier), expected);
    };
    check(&|| _ = world.skill("@/skills/b/SKILL.md", "b"), &["Added skill b"]);
    check(&|| _ = world.skill("./.agents/skills/c/SKILL.md", "c"), &["Added skill c"]);
    check(&|| _ = world.write("@/skills/a/SKILL.md", "---\nname: a\ndescription: new\n---\n"), &["Changed skill a"]);
    check(&|| fs::remove_dir_all(world.path("@/skills/a")).unwrap(), &["Removed skill a"]);
    check(&|| _ = world.write("@/prompts/p.md", "q"), &["Changed prompt p"]); // same size
    check(&|| _ = world.write("./.pi/prompts/new.md", "n"), &["Added prompt new"]);
    check(&|| _ = world.write("./AGENTS.md", "y"), &["Changed context_file ./AGENTS.md"]);
    check(&|| _ = world.write("~/work/CLAUDE.md", "y"), &["Added context_file ~/work/CLAUDE.md"]);
    check(&|| _ = world.write("@/SYSTEM.md", "t"), &["Changed system_prompt"]);
    check(&|| _ = world.write("@/APPEND_SYSTEM.md", "a"), &["Added append_system_prompt"]);
    check(&|| _ = world.write("@/skills/b/.gitignore", "SKILL.md"), &["Removed skill b"]);
}

#[test]
fn a_touch_changes_nothing_in_the_prompt() {
    let world = World::new();
    world.write("./AGENTS.md", "x").skill("@/skills/a/SKILL.md", "a");
    let prompt = |resources: &Resources| resources.prompt_parts(&[], &world.options.cwd).assemble();
    let earlier = world.load();
    world.write("./AGENTS.md", "x");
    assert_eq!(prompt(&world.load()), prompt(&earlier));
}

#[test]
fn another_file_of_the_same_name_is_a_change() {
    let world = World::new();
    world.skill("@/skills/a/SKILL.md", "a");
    let earlier = world.load();
    world.skill("./.pi/skills/a/SKILL.md", "a");
    let changes = world.load().changes_since(&earlier);
    assert_eq!(changes.len(), 1);
    assert_eq!(
        (changes[0].change, changes[0].path.clone()),
        (Change::Changed, Some(world.path("./.pi/skills/a/SKILL.md")))
    );
    let value = serde_json::to_value(&changes[0]).unwrap();
    let expected = serde_json::json!({
        "change": "changed", "resource": "skill", "name": "a", "path": world.text("./.pi/skills/a/SKILL.md"),
    });
    assert_eq!(value, expected);
}
