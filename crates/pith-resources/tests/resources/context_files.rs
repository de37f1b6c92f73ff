//! AGENTS.md and its relatives.

use std::fs::{self, File};

use crate::world::World;

/// Loads and gives `path: first line` of every file of the world.
fn files(world: &World) -> Vec<String> {
    let resources = world.load();
    let files = resources.context_files().iter().filter(|file| file.path.starts_with(world.path("")));
    files.map(|file| format!("{}: {}", world.short(&file.path), file.content.lines().next().unwrap_or(""))).collect()
}

#[test]
fn the_users_file_comes_first_and_then_the_outermost() {
    let world = World::new();
    world.write("./AGENTS.md", "project").write("~/work/AGENTS.md", "outer").write("@/AGENTS.md", "user");
    world.write("./sub/AGENTS.md", "below");
    assert_eq!(files(&world), ["@/AGENTS.md: user", "~/work/AGENTS.md: outer", "./AGENTS.md: project"]);
}

#[test]
fn one_file_of_a_directory_is_taken() {
    let names = ["AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];
    for (position, name) in names.iter().enumerate() {
        let world = World::new();
        for name in &names[position..] {
            world.write(&format!("./{name}"), name);
        }
        world.write("./agents.txt", "no").write("./README.md", "no");
        assert_eq!(files(&world), [format!("./{name}: {name}")]);
    }
}

#[test]
fn what_is_not_a_regular_file_is_passed_over() {
    let world = World::new();
    fs::create_dir_all(world.path("./AGENTS.md")).unwrap();
    world.write("./CLAUDE.md", "claude");
    assert_eq!(files(&world), ["./CLAUDE.md: claude"]);
    assert!(world.problems(&world.load()).is_empty());
}

#[test]
fn the_flag_switches_them_off() {
    let mut world = World::new();
    world.write("./AGENTS.md", "project").write("@/AGENTS.md", "user").write("@/SYSTEM.md", "system");
    world.options.no_context_files = true;
    assert!(files(&world).is_empty());
    assert_eq!(world.load().custom_prompt(), Some("system"));
}

#[test]
fn trust_is_not_needed() {
    let mut world = World::new();
    world.write("./AGENTS.md", "project");
    world.options.trusted = false;
    assert_eq!(files(&world), ["./AGENTS.md: project"]);
}

#[test]
fn the_same_file_is_loaded_once() {
    let mut world = World::new();
    world.write("./AGENTS.md", "here");
    world.options.agent_dir = world.path(".");
    assert_eq!(files(&world).len(), 1);
}

#[cfg(unix)]
#[test]
fn a_link_to_a_file_above_is_the_same_file() {
    let world = World::new();
    world.write("~/work/AGENTS.md", "outer").link("./AGENTS.md", "~/work/AGENTS.md");
    assert_eq!(files(&world), ["~/work/AGENTS.md: outer"]);
}

#[cfg(unix)]
#[test]
fn loops_and_broken_links_do_not_hide_the_next_name() {
    let world = World::new();
    world.link("./AGENTS.override.md", "nowhere").link("./AGENTS.md", "./AGENTS.md").write("./CLAUDE.md", "claude");
    let resources = world.load();
    assert_eq!(files(&world), ["./CLAUDE.md: claude"]);
    let problems = world.problems(&resources);
    assert_eq!(problems.len(), 1, "{problems:?}");
    let expected = "warning context_unreadable ./AGENTS.md: cannot read context file: ";
    assert!(problems[0].starts_with(expected), "{problems:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn unreadable_files_and_directories_are_reported_and_passed_over() {
    use crate::world::{as_nobody, set_mode};
    let world = World::new();
    world.write("./AGENTS.md", "secret").write("./CLAUDE.md", "claude").write("@/AGENTS.md", "user");
    for place in ["", "~", "~/work"] {
        set_mode(&world.path(place), 0o755);
    }
    set_mode(&world.path("./AGENTS.md"), 0);
    set_mode(&world.path("~/.pi"), 0);
    let (found, problems) = as_nobody(|| (files(&world), world.problems(&world.load())));
    set_mode(&world.path("~/.pi"), 0o755);
    assert_eq!(found, ["./CLAUDE.md: claude"]);
    let expected = "warning context_unreadable ./AGENTS.md: cannot read context file: Permission denied (os error 13)";
    assert!(problems.iter().any(|problem| problem == expected), "{problems:?}");
    let expected = "warning context_unreadable @: cannot look for context files: Permission denied (os error 13)";
    assert_eq!(problems.iter().filter(|problem| *problem == expected).count(), 1, "{problems:?}");
}

#[test]
fn a_mark_is_dropped_and_odd_bytes_are_replaced() {
    let world = World::new();
    world.write("@/AGENTS.md", b"\xef\xbb\xbfmarked").write("./AGENTS.md", b"caf\xe9");
    assert_eq!(files(&world), ["@/AGENTS.md: marked", "./AGENTS.md: caf\u{fffd}"]);
    let expected = "warning context_not_utf8 ./AGENTS.md: not UTF-8 text; the bytes in question were replaced";
    assert_eq!(world.problems(&world.load()), [expected]);
}

#[test]
fn a_huge_file_is_cut_without_being_read() {
    let world = World::new();
    File::create(world.path("./AGENTS.md")).unwrap().set_len(1 << 30).unwrap();
    let resources = world.load();
    let content = &resources.context_files().last().unwrap().content;
    let mark = "\n[cut: only the first 131072 of 1073741824 bytes of this file are shown]";
    assert!(content.ends_with(mark));
    assert_eq!(content.len(), 131_072 + mark.len());
    let expected =
        "warning context_cut ./AGENTS.md: context file is too long: only the first 131072 of 1073741824 bytes are used";
    assert_eq!(world.problems(&resources), [expected]);
}

#[test]
fn a_file_of_exactly_the_limit_is_whole() {
    let world = World::new();
    world.write("./AGENTS.md", "x".repeat(128 * 1024));
    let resources = world.load();
    assert_eq!(resources.context_files().last().unwrap().content.len(), 128 * 1024);
    assert!(world.problems(&resources).is_empty());
}

#[test]
fn all_files_together_are_bounded_and_the_nearest_stay_whole() {
    let mut world = World::new();
    world.options.cwd = world.path("~/1/2/3/4/5/6/7");
    for depth in 1..=7 {
        let directory: String = (1..=depth).map(|n| format!("/{n}")).collect();
        world.write(&format!("~{directory}/AGENTS.md"), "x".repeat(100 * 1024));
    }
    let resources = world.load();
    let ours = resources.context_files().iter().filter(|file| file.path.starts_with(world.path("")));
    let sizes: Vec<usize> = ours.map(|file| file.content.matches('x').count() / 1024).collect();
    assert_eq!(sizes, [0, 12, 100, 100, 100, 100, 100]);
    let n_cut = resources.diagnostics().iter().filter(|diagnostic| diagnostic.code == "context_cut").count();
    assert_eq!(n_cut, 2);
}

/// A main checkout in `~/main` and a linked worktree in `~/main/trees/w`, which is the working directory.
fn worktree(pointer: &str) -> World {
    let mut world = World::new();
    world.options.cwd = world.path("~/main/trees/w");
    world.write("~/main/.git/worktrees/w/HEAD", "ref").write("~/main/.git/modules/w/HEAD", "ref");
    let pointer = pointer.replace('~', &world.text("~"));
    world.write("./.git", format!("gitdir: {pointer}\n"));
    world.write("~/main/AGENTS.md", "main").write("~/main/trees/AGENTS.md", "between");
    world
}

#[test]
fn a_worktree_inside_its_main_checkout_hides_the_main_file() {
    let check = |pointer: &str, own: &str, expected: &[&str]| {
        let world = worktree(pointer);
        world.write(own, "own");
        assert_eq!(files(&world), expected, "{pointer} with {own}");
    };
    let all = ["~/main/AGENTS.md: main", "~/main/trees/AGENTS.md: between", "./AGENTS.md: own"];
    check("~/main/.git/worktrees/w", "./AGENTS.md", &all[1..]);
    check("../../.git/worktrees/w", "./AGENTS.md", &all[1..]);
    // Another name is another file.
    check("~/main/.git/worktrees/w", "./CLAUDE.md", &[all[0], all[1], "./CLAUDE.md: own"]);
    // A submodule is not a worktree, and neither is a pointer to nothing.
    check("~/main/.git/modules/w", "./AGENTS.md", &all);
    check("~/main/.git/worktrees/gone", "./AGENTS.md", &all);
}

#[test]
fn a_worktree_without_its_own_file_uses_the_main_one() {
    let world = worktree("~/main/.git/worktrees/w");
    assert_eq!(files(&world), ["~/main/AGENTS.md: main", "~/main/trees/AGENTS.md: between"]);
}

#[test]
fn a_worktree_elsewhere_hides_nothing() {
    let mut world = World::new();
    world.options.cwd = world.path("~/other/w");
    world.write("~/main/.git/worktrees/w/HEAD", "ref");
    world.write("./.git", format!("gitdir: {}\n", world.text("~/main/.git/worktrees/w")));
    world.write("~/main/AGENTS.md", "main").write("~/other/AGENTS.md", "outer").write("./AGENTS.md", "own");
    assert_eq!(files(&world), ["~/other/AGENTS.md: outer", "./AGENTS.md: own"]);
}
