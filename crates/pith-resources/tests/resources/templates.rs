//! Where templates are found and what their files say.

use pith_resources::ContributedPath;

use crate::world::World;

#[test]
fn places_in_order_of_precedence() {
    let mut world = World::new();
    world.write("~/listed/a.md", "a").write("~/listed/deep/b.md", "b").write("./.pi/prompts/c.md", "c");
    world.write("~/single.md", "d").write("@/prompts/e.md", "e").write("./x/f.md", "f").write("./x/deep/no.md", "no");
    world.write("~/ext/g.md", "g").write("@/prompts/deep/no.md", "no").write("./.agents/prompts/no.md", "no");
    world.options.project_lists.prompts = vec!["~/listed".into()];
    world.options.user_lists.prompts = vec!["~/single.md".into()];
    world.options.prompt_paths = vec!["x".into()];
    let extension = ContributedPath { path: world.text("~/ext"), source: "extension:demo".into(), base_dir: None };
    world.options.contributed_prompts = vec![extension];
    let expected = [
        "a ~/listed/a.md",
        "b ~/listed/deep/b.md",
        "c ./.pi/prompts/c.md",
        "single ~/single.md",
        "e @/prompts/e.md",
        "g ~/ext/g.md",
        "f ./x/f.md",
    ];
    assert_eq!(world.templates(&world.load()), expected);
    world.options.trusted = false;
    assert_eq!(world.templates(&world.load()), expected[3..]);
    world.options.no_prompt_templates = true;
    assert_eq!(world.templates(&world.load()), expected[5..]);
}

#[test]
fn only_visible_markdown_files_that_are_not_ignored() {
    let world = World::new();
    world.write("@/prompts/a.md", "a").write("@/prompts/.b.md", "b").write("@/prompts/c.txt", "c");
    world.write("@/prompts/d.MD", "d").write("@/prompts/e.md", "e").write("@/prompts/.gitignore", "e.md\n");
    world.write("@/prompts/node_modules/f.md", "f");
    std::fs::create_dir_all(world.path("@/prompts/g.md")).unwrap();
    let resources = world.load();
    assert_eq!(world.templates(&resources), ["a @/prompts/a.md"]);
    assert!(world.problems(&resources).is_empty());
}

#[test]
fn the_old_directory_is_read_while_there_is_no_new_one() {
    let world = World::new();
    world.write("@/commands/old.md", "old").write("./.pi/commands/mine.md", "mine");
    assert_eq!(world.templates(&world.load()), ["mine ./.pi/commands/mine.md", "old @/commands/old.md"]);
    world.write("@/prompts/new.md", "new");
    assert_eq!(world.templates(&world.load()), ["mine ./.pi/commands/mine.md", "new @/prompts/new.md"]);
}

#[test]
fn the_first_of_equal_names_wins() {
    let world = World::new();
    world.write("@/prompts/x.md", "user").write("./.pi/prompts/x.md", "project");
    let resources = world.load();
    assert_eq!(world.templates(&resources), ["x ./.pi/prompts/x.md"]);
    assert_eq!(world.problems(&resources), ["collision prompt_collision @/prompts/x.md: name \"/x\" collision"]);
    let collision = resources.diagnostics()[0].collision.as_ref().unwrap();
    assert_eq!((collision.resource_type, &*collision.name), ("prompt", "x"));
}

#[test]
fn paths_that_name_nothing() {
    let mut world = World::new();
    world.write("./x.txt", "x");
    world.options.prompt_paths = vec!["missing.md".into(), "x.txt".into()];
    world.options.user_lists.prompts = vec!["gone".into()];
    let expected = [
        "warning prompt_path_missing @/gone: prompt template path does not exist",
        "error prompt_path_missing ./missing.md: Prompt template path does not exist",
        "warning prompt_path_not_markdown ./x.txt: prompt template path is not a markdown file",
    ];
    assert_eq!(world.problems(&world.load()), expected);
}

#[test]
fn descriptions_and_hints() {
    let check = |content: &str, description: &str, hint: Option<&str>| {
        let world = World::new();
        world.write("@/prompts/x.md", content);
        let resources = world.load();
        let template = &resources.templates()[0];
        assert_eq!((&*template.description, template.argument_hint.as_deref()), (description, hint), "{content}");
    };
    check("---\ndescription: Review\nargument-hint: \"<what>\"\n---\nbody", "Review", Some("<what>"));
    check("---\nargument-hint: [file]\n---\n\nbody line\nmore", "body line", None);
    for other in ["42", "true", "1.5", "~", "{a: b}"] {
        check(&format!("---\nargument-hint: {other}\n---\nbody"), "body", None);
    }
    check("---\nargument-hint: '42'\n---\nbody", "body", Some("42"));
    check("---\ndescription: ''\n---\nbody", "body", None);
    for other in ["42", "true", "1.5", "0x1F", ".inf", "-.inf", ".nan", "~", "[a]", "{a: b}"] {
        check(&format!("---\ndescription: {other}\n---\nbody"), "body", None);
    }
    check("---\ndescription: '42'\n---\nbody", "42", None);
    check("---\njust text\n---\nbody", "body", None);
    check("---\n- a\n- b\n---\nbody", "body", None);
    check("----\njust text\n---\nbody", "body", None);
    check("----\ndescription: Review\n---\nbody", "Review", None);
    check("\n  \n first\nsecond", " first", None);
    check("", "", None);
    let line = "é".repeat(61);
    check(&line[2..], &line[2..], None);
    check(&line, &format!("{}...", &line[2..]), None);
}

#[test]
fn a_head_that_is_not_yaml_is_reported() {
    let world = World::new();
    world.write("@/prompts/bad.md", "---\ndescription: a: b\n---\nbody").write("@/prompts/good.md", "x");
    let resources = world.load();
    assert_eq!(world.templates(&resources), ["good @/prompts/good.md"]);
    let problems = world.problems(&resources);
    assert!(
        problems[0].starts_with("warning prompt_unreadable @/prompts/bad.md: invalid front matter: "),
        "{problems:?}"
    );
}

#[test]
fn lists_filter_templates_too() {
    let mut world = World::new();
    world.write("@/prompts/a.md", "a").write("@/prompts/b.md", "b").write("~/more/c.md", "c").write("~/more/d.md", "d");
    world.options.user_lists.prompts = vec!["~/more".into(), "c*".into(), "!a.md".into(), "-prompts/b.md".into()];
    assert_eq!(world.templates(&world.load()), ["c ~/more/c.md"]);
}
