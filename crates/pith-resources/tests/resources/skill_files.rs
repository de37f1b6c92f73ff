//! What a skill file says about itself.

use serde_json::json;

use crate::world::World;

/// Writes one skill in the directory `dir`, and gives its name if it was loaded and the messages about it.
fn load(content: &[u8]) -> (Option<String>, Vec<String>) {
    let world = World::new();
    world.write("@/skills/dir/SKILL.md", content);
    let resources = world.load();
    let name = resources.skills().first().map(|skill| skill.name.clone());
    (name, resources.diagnostics().iter().map(|diagnostic| diagnostic.message.clone()).collect())
}

fn check(content: &str, name: Option<&str>, messages: &[&str]) {
    let (loaded, found) = load(content.as_bytes());
    assert_eq!(loaded.as_deref(), name, "{content}");
    assert_eq!(found, messages, "{content}");
}

#[test]
fn names() {
    let named = |name: &str| format!("---\nname: {name}\ndescription: d\n---\n");
    check(&named("good-1"), Some("good-1"), &[]);
    check("---\ndescription: d\n---\n", Some("dir"), &[]);
    check(&named("''"), Some("dir"), &[]);
    check(&named("[list]"), Some("dir"), &[]);
    check(&named("12"), Some("12"), &[]);
    check(&named("yes"), Some("yes"), &[]);
    check(&named("Two Words"), Some("Two Words"), &["name \"Two Words\" may only contain a-z, 0-9 and -"]);
    check(&named("a--b"), Some("a--b"), &["name \"a--b\" must not contain --"]);
    check(&named("-a"), Some("-a"), &["name \"-a\" must not start or end with -"]);
    check(&named("a-"), Some("a-"), &["name \"a-\" must not start or end with -"]);
    let long = "x".repeat(65);
    check(&named(&long), Some(&long), &["name is longer than 64 characters (65)"]);
    check(&named(&long[1..]), Some(&long[1..]), &[]);
}

#[test]
fn descriptions() {
    let described = |description: &str| format!("---\ndescription: {description}\n---\n");
    check(&described("d"), Some("dir"), &[]);
    for missing in [described(""), described("'  '"), described("[a]"), "no head".into(), String::new()] {
        check(&missing, None, &["description is required"]);
    }
    for other in ["42", "true", "1.5", "0x1F", ".inf", ".nan"] {
        check(&described(other), None, &["description is required"]);
    }
    check(&described("'42'"), Some("dir"), &[]);
    check("----\ndescription: d\n---\n", Some("dir"), &[]);
    check(&described(&"é".repeat(1024)), Some("dir"), &[]);
    let message = "description is longer than 1024 characters (1025)";
    check(&described(&"é".repeat(1025)), Some("dir"), &[message]);
}

#[test]
fn heads_that_are_not_yaml() {
    let (name, messages) = load(b"---\ndescription: Use when: always\n---\n");
    assert_eq!((name, messages.len()), (None, 1));
    assert!(messages[0].starts_with("invalid front matter: "), "{messages:?}");
    // This is YAML; it only says nothing.
    check("---\ntext\n---\n", None, &["description is required"]);
}

#[test]
fn bytes_that_are_not_text() {
    let (name, messages) = load(b"\xef\xbb\xbf---\r\nname: ok\r\ndescription: caf\xe9\r\n---\r\n");
    assert_eq!(name.as_deref(), Some("ok"));
    assert_eq!(messages, ["not UTF-8 text; the bytes in question were replaced"]);
}

#[test]
fn all_fields_are_kept_and_the_switch_must_be_true() {
    let world = World::new();
    let head = |switch: &str| {
        format!("---\ndescription: d\nlicense: MIT\nallowed-tools: [read]\ndisable-model-invocation: {switch}\n---\n")
    };
    for (switch, expected) in [("true", true), ("false", false), ("'true'", false), ("1", false)] {
        world.write("@/skills/dir/SKILL.md", head(switch));
        let resources = world.load();
        let skill = &resources.skills()[0];
        assert_eq!(skill.disable_model_invocation, expected, "{switch}");
        assert_eq!(skill.front_matter["license"], json!("MIT"));
        assert_eq!(skill.front_matter["allowed-tools"], json!(["read"]));
        assert_eq!(skill.directory(), world.path("@/skills/dir"));
    }
}
