//! Entries of `get_commands`.

use pith_resources::{CommandEntry, ContributedPath, Origin, Scope, SourceInfo};
use serde_json::{Value, json};

use crate::world::World;

fn commands(world: &World) -> Value {
    serde_json::to_value(world.load().commands()).unwrap()
}

const TEMPLATE: &str = "---\ndescription: Review a thing\nargument-hint: \"<what>\"\n---\nReview $1.\n";

#[test]
fn templates_come_before_skills() {
    let world = World::new();
    world.skill("@/skills/tidy/SKILL.md", "tidy").write("@/prompts/review.md", TEMPLATE);
    let (template, skill) = (world.text("@/prompts/review.md"), world.text("@/skills/tidy/SKILL.md"));
    let base = world.text("@");
    let info =
        |path: &str| json!({"path": path, "source": "auto", "scope": "user", "origin": "top-level", "baseDir": base});
    let expected = json!([
        {"name": "review", "description": "Review a thing", "source": "prompt", "location": "user", "path": template,
         "sourceInfo": info(&template)},
        {"name": "skill:tidy", "description": "About tidy", "source": "skill", "location": "user", "path": skill,
         "sourceInfo": info(&skill)},
    ]);
    assert_eq!(commands(&world), expected);
    // The order of fields is the documented one.
    let text = serde_json::to_string(&world.load().commands()[0]).unwrap();
    assert!(
        text.starts_with(
            r#"{"name":"review","description":"Review a thing","source":"prompt","location":"user","path":"#
        )
    );
}

/// Checks `scope source baseDir location` of the only command.
fn check(world: &World, expected: [&str; 4]) {
    let commands = commands(world);
    assert_eq!(commands.as_array().unwrap().len(), 1, "{commands}");
    let (info, text) = (&commands[0]["sourceInfo"], |value: &Value| value.as_str().unwrap_or("none").to_owned());
    let base = info.get("baseDir").map_or("none".to_owned(), |base| world.short(text(base).as_ref()));
    let found = [text(&info["scope"]), text(&info["source"]), base, text(&commands[0]["location"])];
    assert_eq!(found, expected.map(str::to_owned), "{commands}");
    assert_eq!(info["path"], commands[0]["path"]);
    assert_eq!(info["origin"], "top-level");
}

#[test]
fn conventional_places() {
    let world = World::new();
    world.skill("./.pi/skills/x/SKILL.md", "x");
    check(&world, ["project", "auto", "./.pi", "project"]);
    let world = World::new();
    world.skill("./.agents/skills/x/SKILL.md", "x");
    check(&world, ["project", "auto", "./.agents", "project"]);
    let world = World::new();
    world.skill("~/.agents/skills/x/SKILL.md", "x");
    check(&world, ["user", "auto", "~/.agents", "user"]);
}

#[test]
fn named_places() {
    let mut world = World::new();
    world.skill("./sk/tidy/SKILL.md", "tidy");
    world.options.skill_paths = vec!["sk".into()];
    check(&world, ["temporary", "local", "./sk/tidy", "path"]);

    let mut world = World::new();
    world.write("./tp/review.md", TEMPLATE);
    world.options.prompt_paths = vec!["tp/review.md".into()];
    check(&world, ["temporary", "local", "./tp", "path"]);

    let mut world = World::new();
    world.write("@/prompts/review.md", TEMPLATE);
    world.options.no_prompt_templates = true;
    world.options.prompt_paths = vec![world.text("@/prompts/review.md")];
    check(&world, ["user", "local", "@/prompts", "user"]);

    let mut world = World::new();
    world.write("~/more/review.md", TEMPLATE);
    world.options.project_lists.prompts = vec!["~/more".into()];
    check(&world, ["project", "local", "none", "project"]);

    let mut world = World::new();
    world.skill("~/ext/s/SKILL.md", "s");
    world.options.contributed_skills = vec![contributed(&world, "~/ext/s")];
    check(&world, ["temporary", "extension:demo", "~/ext", "path"]);

    let mut world = World::new();
    world.write("~/ext/prompts/review.md", TEMPLATE);
    world.options.contributed_prompts = vec![contributed(&world, "~/ext/prompts/review.md")];
    check(&world, ["temporary", "extension:demo", "~/ext", "path"]);
}

/// A path that an extension in `~/ext` brings.
fn contributed(world: &World, path: &str) -> ContributedPath {
    let base_dir = Some(world.text("~/ext").into());
    ContributedPath { path: world.text(path), source: "extension:demo".into(), base_dir }
}

#[test]
fn skills_hidden_from_the_model_are_listed() {
    let world = World::new();
    world.write("@/skills/x/SKILL.md", "---\ndescription: d\ndisable-model-invocation: true\n---\n");
    assert_eq!(commands(&world)[0]["name"], "skill:x");
}

#[test]
fn commands_of_extensions_have_the_same_shape() {
    let info = SourceInfo {
        path: "<inline:demo>".into(),
        source: "inline".into(),
        scope: Scope::Temporary,
        origin: Origin::TopLevel,
        base_dir: None,
    };
    let entry = CommandEntry::extension("sel".into(), None, info);
    let expected = json!({
        "name": "sel", "source": "extension", "path": "<inline:demo>",
        "sourceInfo": {"path": "<inline:demo>", "source": "inline", "scope": "temporary", "origin": "top-level"},
    });
    assert_eq!(serde_json::to_value(entry).unwrap(), expected);
}
