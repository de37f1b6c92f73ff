//! Where skills are found, and which one wins.

use std::fs;

use pith_config::settings::ResourceLists;
use pith_resources::ContributedPath;

use crate::world::World;

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn places_in_order_of_precedence() {
    let mut world = World::new();
    world.options.cwd = world.path("~/work/app/sub");
    world.skill("~/listed/p1/SKILL.md", "p1").skill("~/listed/u1/SKILL.md", "u1");
    world.options.project_lists.skills = texts(&["~/listed/p1"]);
    world.options.user_lists.skills = texts(&["~/listed/u1"]);
    world.skill("./.pi/skills/p2/SKILL.md", "p2");
    world.skill("./.agents/skills/p3/SKILL.md", "p3").skill("~/work/app/.agents/skills/p4/SKILL.md", "p4");
    world.skill("@/skills/u2/SKILL.md", "u2").skill("~/.agents/skills/u3/SKILL.md", "u3");
    world.skill("~/extension/e/SKILL.md", "e").skill("~/explicit/x/SKILL.md", "x");
    let extension =
        ContributedPath { path: world.text("~/extension"), source: "extension:demo".into(), base_dir: None };
    world.options.contributed_skills = vec![extension];
    world.options.skill_paths = texts(&["~/explicit"]);
    // Above the root of the repository nothing is looked for.
    world.skill("~/work/.agents/skills/no/SKILL.md", "no");
    let names =
        |world: &World| -> Vec<String> { world.load().skills().iter().map(|skill| skill.name.clone()).collect() };
    assert_eq!(names(&world), ["p1", "p2", "p3", "p4", "u1", "u2", "u3", "e", "x"]);
    world.options.trusted = false;
    assert_eq!(names(&world), ["u1", "u2", "u3", "e", "x"]);
    world.options.no_skills = true;
    assert_eq!(names(&world), ["e", "x"]);
}

#[test]
fn outside_of_a_repository_the_search_goes_to_the_root() {
    let mut world = World::new();
    world.options.cwd = world.path("~/elsewhere/deep");
    world.skill("~/elsewhere/.agents/skills/a/SKILL.md", "a").skill("~/.agents/skills/mine/SKILL.md", "mine");
    let resources = world.load();
    let ours: Vec<String> = world
        .skills(&resources)
        .into_iter()
        .filter(|line| line.contains("elsewhere") || line.contains("mine"))
        .collect();
    assert_eq!(ours, ["a ~/elsewhere/.agents/skills/a/SKILL.md", "mine ~/.agents/skills/mine/SKILL.md"]);
    // The user's own directory on the way up stays the user's.
    let mine = resources.skills().iter().find(|skill| skill.name == "mine").unwrap();
    assert_eq!(mine.source_info.scope, pith_resources::Scope::User);
}

#[test]
fn a_directory_with_a_skill_file_is_one_skill() {
    let world = World::new();
    world.skill("@/skills/outer/SKILL.md", "outer").skill("@/skills/outer/inner/SKILL.md", "inner");
    world.skill("@/skills/group/one/SKILL.md", "one").skill("@/skills/group/deep/two/SKILL.md", "two");
    let expected =
        ["two @/skills/group/deep/two/SKILL.md", "one @/skills/group/one/SKILL.md", "outer @/skills/outer/SKILL.md"];
    assert_eq!(world.skills(&world.load()), expected);
}

#[test]
fn loose_files_count_in_the_root_or_only_below_it() {
    let world = World::new();
    world.skill("@/skills/loose.md", "user-root").skill("@/skills/sub/loose.md", "user-below");
    world.skill("~/.agents/skills/loose.md", "agents-root").skill("~/.agents/skills/sub/loose.md", "agents-below");
    // Not everything that ends in .md is a skill, and nobody wants to hear about it.
    world.write("@/skills/README.md", "# Skills").write("@/skills/broken.md", "---\na: b: c\n---\n");
    world.skill("@/skills/.hidden.md", "hidden").write("@/skills/notes.txt", "---\ndescription: x\n---\n");
    let resources = world.load();
    let expected = ["user-root @/skills/loose.md", "agents-below ~/.agents/skills/sub/loose.md"];
    assert_eq!(world.skills(&resources), expected);
    assert!(world.problems(&resources).is_empty());
}

#[test]
fn hidden_directories_and_packages_are_not_entered() {
    let world = World::new();
    world.skill("@/skills/.git/a/SKILL.md", "a").skill("@/skills/node_modules/b/SKILL.md", "b");
    assert!(world.skills(&world.load()).is_empty());
}

#[test]
fn ignore_files_hold_at_their_level_and_below() {
    let world = World::new();
    for name in ["keep", "gone", "a/gone", "a/also", "a/back", "b/also", "build-x"] {
        world.skill(&format!("@/skills/{name}/SKILL.md"), &name.replace('/', "-"));
    }
    world.write("@/skills/.gitignore", "# a comment\ngone/\nback\n[\n").write("@/skills/a/.ignore", "/also\n!back\n");
    world.write("@/skills/.fdignore", "\u{feff}build-*\n");
    let expected =
        ["a-back @/skills/a/back/SKILL.md", "b-also @/skills/b/also/SKILL.md", "keep @/skills/keep/SKILL.md"];
    assert_eq!(world.skills(&world.load()), expected);
    // A directory whose skill file is ignored is an ordinary directory.
    world.write("@/skills/keep/.gitignore", "SKILL.md\n").skill("@/skills/keep/in/SKILL.md", "in");
    assert!(!world.skills(&world.load()).iter().any(|line| line.starts_with("keep ")));
}

#[test]
fn the_first_of_equal_names_wins() {
    let world = World::new();
    world
        .skill("@/skills/x/SKILL.md", "x")
        .skill("./.pi/skills/x/SKILL.md", "x")
        .skill("~/.agents/skills/y/SKILL.md", "x");
    let resources = world.load();
    assert_eq!(world.skills(&resources), ["x ./.pi/skills/x/SKILL.md"]);
    let expected = [
        "collision skill_collision @/skills/x/SKILL.md: name \"x\" collision",
        "collision skill_collision ~/.agents/skills/y/SKILL.md: name \"x\" collision",
    ];
    assert_eq!(world.problems(&resources), expected);
    let value = serde_json::to_value(&resources.diagnostics()[0]).unwrap();
    let expected = serde_json::json!({
        "resourceType": "skill", "name": "x",
        "winnerPath": world.text("./.pi/skills/x/SKILL.md"), "loserPath": world.text("@/skills/x/SKILL.md"),
    });
    assert_eq!(value["collision"], expected);
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_the_same_file_counts_once() {
    let world = World::new();
    world.skill("~/real/one/SKILL.md", "one").link("@/skills/b", "~/real/one").link("@/skills/c", "~/real/one");
    world.link("./.pi/skills", "@/skills").link("@/skills/broken", "nowhere");
    world.skill("~/real/two.md", "two").link("@/skills/a/SKILL.md", "~/real/two.md");
    let resources = world.load();
    assert_eq!(world.skills(&resources), ["two ./.pi/skills/a/SKILL.md", "one ./.pi/skills/b/SKILL.md"]);
    assert!(world.problems(&resources).is_empty());
}

#[cfg(unix)]
#[test]
fn loops_of_links_end() {
    let world = World::new();
    world.skill("@/skills/x/SKILL.md", "x");
    world.link("@/skills/up", "@").link("@/skills/deep/round", "@/skills/deep").link("@/skills/self", "@/skills/self");
    world.link("~/.agents/skills", "~/.agents/skills");
    let resources = world.load();
    assert_eq!(world.skills(&resources), ["x @/skills/x/SKILL.md"]);
    let problems = world.problems(&resources);
    assert_eq!(problems.len(), 1, "{problems:?}");
    let expected = "warning directory_unreadable ~/.agents/skills: cannot read directory: ";
    assert!(problems[0].starts_with(expected), "{problems:?}");
}

#[test]
fn a_tree_that_is_too_deep_is_not_searched_to_its_end() {
    let world = World::new();
    let deep = "d/".repeat(40);
    world.skill(&format!("@/skills/{deep}SKILL.md"), "deep").skill("@/skills/near/SKILL.md", "near");
    let resources = world.load();
    assert_eq!(world.skills(&resources), ["near @/skills/near/SKILL.md"]);
    let problems = world.problems(&resources);
    assert!(problems[0].ends_with("nested deeper than 32 directories; not searched"), "{problems:?}");
    assert_eq!(problems.len(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn unreadable_directories_are_reported_and_the_rest_is_found() {
    use crate::world::{as_nobody, set_mode};
    let world = World::new();
    world
        .skill("@/skills/a/SKILL.md", "a")
        .skill("@/skills/closed/SKILL.md", "b")
        .skill("@/skills/secret/SKILL.md", "c");
    set_mode(&world.path(""), 0o755);
    set_mode(&world.path("@/skills/closed"), 0);
    set_mode(&world.path("@/skills/secret/SKILL.md"), 0);
    let (skills, problems) = as_nobody(|| {
        let resources = world.load();
        (world.skills(&resources), world.problems(&resources))
    });
    set_mode(&world.path("@/skills/closed"), 0o755);
    assert_eq!(skills, ["a @/skills/a/SKILL.md"]);
    let expected = [
        "warning directory_unreadable @/skills/closed: cannot read directory: Permission denied (os error 13)",
        "warning skill_unreadable @/skills/secret/SKILL.md: cannot read file: Permission denied (os error 13)",
    ];
    assert_eq!(problems, expected);
}

#[cfg(target_os = "linux")]
#[test]
fn pipes_are_never_opened() {
    let mut world = World::new();
    world
        .pipe("./AGENTS.md")
        .pipe("@/SYSTEM.md")
        .pipe("@/skills/a/SKILL.md")
        .pipe("@/skills/loose.md")
        .pipe("@/prompts/p.md");
    world.pipe("~/real").link("@/skills/b/SKILL.md", "~/real").link("@/skills/.gitignore", "~/real").pipe("./named.md");
    world.options.skill_paths = texts(&["named.md"]);
    let resources = world.load();
    assert!(resources.skills().is_empty() && resources.templates().is_empty());
    let expected = [
        "warning ignore_file_unreadable @/skills/.gitignore: cannot read ignore file: not a regular file",
        "warning skill_path_not_markdown ./named.md: skill path is not a markdown file",
    ];
    assert_eq!(world.problems(&resources), expected);
}

#[test]
fn a_file_where_a_directory_should_be() {
    let world = World::new();
    world.write("@/skills", "not a directory").skill("~/.agents/skills/x/SKILL.md", "x");
    let resources = world.load();
    assert_eq!(world.skills(&resources), ["x ~/.agents/skills/x/SKILL.md"]);
    assert!(world.problems(&resources)[0].starts_with("warning directory_unreadable @/skills: "));
}

#[test]
fn explicit_paths() {
    let mut world = World::new();
    world.skill("./dir/a/SKILL.md", "a").skill("./dir/loose.md", "loose").skill("./one.md", "one");
    world.skill("./itself/SKILL.md", "itself").write("./file.txt", "x").write("./bare.md", "no head");
    world.options.skill_paths = texts(&["dir", "./one.md", "itself", "missing", "file.txt", "bare.md"]);
    let resources = world.load();
    let expected = ["a ./dir/a/SKILL.md", "loose ./dir/loose.md", "one ./one.md", "itself ./itself/SKILL.md"];
    assert_eq!(world.skills(&resources), expected);
    let expected = [
        "error skill_path_missing ./missing: Skill path does not exist",
        "warning skill_path_not_markdown ./file.txt: skill path is not a markdown file",
        "warning skill_description_missing ./bare.md: description is required",
    ];
    assert_eq!(world.problems(&resources), expected);
}

#[test]
fn file_urls_and_the_home_are_understood() {
    let mut world = World::new();
    world.skill("~/a b/SKILL.md", "a").skill("~/c/SKILL.md", "c");
    let url = format!("file://{}", world.text("~/a b").replace(' ', "%20"));
    world.options.skill_paths = vec![url, "~/c".into()];
    assert_eq!(world.skills(&world.load()), ["a ~/a b/SKILL.md", "c ~/c/SKILL.md"]);
}

#[test]
fn lists_add_and_filter() {
    let check = |list: &[&str], expected: &[&str], problems: &[&str]| {
        let mut world = World::new();
        world.skill("@/skills/auto-a/SKILL.md", "auto-a").skill("@/skills/auto-b/SKILL.md", "auto-b");
        world.skill("~/more/x/SKILL.md", "x").skill("~/more/y/SKILL.md", "y").skill("@/own/z.md", "z");
        world.options.user_lists = ResourceLists { skills: texts(list), ..ResourceLists::default() };
        let resources = world.load();
        let names: Vec<&str> = resources.skills().iter().map(|skill| &*skill.name).collect();
        assert_eq!(names, expected, "{list:?}");
        assert_eq!(world.problems(&resources), problems, "{list:?}");
    };
    check(&[], &["auto-a", "auto-b"], &[]);
    check(&["~/more", "own/z.md"], &["x", "y", "z", "auto-a", "auto-b"], &[]);
    check(
        &["~/more", "*/more/x", "x"],
        &["auto-a", "auto-b"],
        &["warning skill_path_missing @/x: skill path does not exist"],
    );
    check(&["~/more", "x*"], &["x", "auto-a", "auto-b"], &[]);
    check(&["~/more", "!x", "!auto-*"], &["y"], &[]);
    check(&["!auto-*", "+skills/auto-b"], &["auto-b"], &[]);
    check(&["-skills/auto-a/SKILL.md"], &["auto-b"], &[]);
    check(
        &["own/missing"],
        &["auto-a", "auto-b"],
        &["warning skill_path_missing @/own/missing: skill path does not exist"],
    );
}

#[test]
fn lists_speak_for_their_own_scope_only() {
    let mut world = World::new();
    world
        .skill("@/skills/u/SKILL.md", "u")
        .skill("./.pi/skills/p/SKILL.md", "p")
        .skill("./.agents/skills/q/SKILL.md", "q");
    world.skill("~/.agents/skills/v/SKILL.md", "v");
    let names =
        |world: &World| -> Vec<String> { world.load().skills().iter().map(|skill| skill.name.clone()).collect() };
    world.options.project_lists.skills = texts(&["!**"]);
    assert_eq!(names(&world), ["u", "v"]);
    world.options.project_lists.skills = texts(&["-skills/q"]); // relative to the .agents directory
    assert_eq!(names(&world), ["p", "u", "v"]);
    world.options.project_lists.skills.clear();
    world.options.user_lists.skills = texts(&["!**"]);
    assert_eq!(names(&world), ["p", "q"]);
}

#[test]
fn name_patterns_limit_what_is_kept() {
    let mut world = World::new();
    for name in ["git-log", "git-push", "docs", "web"] {
        world.skill(&format!("@/skills/{name}/SKILL.md"), name);
    }
    world.options.skill_names = texts(&["git-*", " web ", "[z"]);
    let resources = world.load();
    let names: Vec<&str> = resources.skills().iter().map(|skill| &*skill.name).collect();
    assert_eq!(names, ["git-log", "git-push", "web"]);
    assert!(world.problems(&resources)[0].starts_with("warning pattern_invalid "), "{:?}", world.problems(&resources));
}

#[test]
fn nothing_at_all_is_no_problem() {
    let mut world = World::new();
    world.options.home = None;
    fs::remove_dir_all(world.path("~")).unwrap();
    let resources = world.load();
    assert!(world.skills(&resources).is_empty() && world.problems(&resources).is_empty());
}

#[cfg(unix)]
#[test]
fn names_that_are_no_text_are_shown_as_well_as_possible() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::new();
    let directory = world.path("@/skills").join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("SKILL.md"), "---\ndescription: d\n---\nbody").unwrap();
    let resources = world.load();
    let command = serde_json::to_value(&resources.commands()[0]).unwrap();
    assert_eq!(command["name"], "skill:caf\u{fffd}");
    assert!(command["path"].as_str().unwrap().ends_with("caf\u{fffd}/SKILL.md"));
    assert!(resources.expand("/skill:caf\u{fffd}").text.ends_with("body\n</skill>"));
}
