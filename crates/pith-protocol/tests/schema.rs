//! The files in `schema/` say what the types say, and nothing a host relies on has gone unannounced.

use std::path::{Path, PathBuf};

use pith_protocol::Event;
use pith_protocol::host::UiMethod;
use pith_protocol::schema::{Dialect, breaking_changes, document, typescript};
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares a file of the repository, or writes it with `PITH_UPDATE_SCHEMA=1`.
fn check(path: &str, wanted: &str) {
    let path = root().join(path);
    if std::env::var_os("PITH_UPDATE_SCHEMA").is_some() {
        std::fs::create_dir_all(path.parent().expect("a file has a directory")).expect("writable");
        std::fs::write(&path, wanted).expect("writable");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == wanted, "{} is not current: PITH_UPDATE_SCHEMA=1 cargo test -p pith-protocol", path.display());
}

#[test]
fn the_committed_schemas_are_those_of_the_types() {
    for dialect in [Dialect::Pi, Dialect::Xcsh] {
        let document = document(dialect);
        let text = serde_json::to_string_pretty(&document).expect("JSON") + "\n";
        check(&format!("schema/{}.json", dialect.name()), &text);
        check(&format!("schema/{}.ts", dialect.name()), &typescript(&document));
    }
}

#[test]
fn what_would_break_hosts_of_the_released_schema_is_announced() {
    let changelog = std::fs::read_to_string(root().join("CHANGELOG.md")).expect("a changelog");
    let unreleased = changelog.split("\n## ").nth(1).unwrap_or_default();
    for dialect in [Dialect::Pi, Dialect::Xcsh] {
        let path = root().join(format!("schema/released/{}.json", dialect.name()));
        let released: Value = serde_json::from_str(&std::fs::read_to_string(path).expect("there")).expect("JSON");
        for change in breaking_changes(&released, &document(dialect)) {
            let name = change.split([' ', '.', ':', '[']).next().unwrap_or_default();
            let is_announced = unreleased.lines().any(|line| line.contains("Breaking") && line.contains(name));
            assert!(
                is_announced,
                "{}: {change}: CHANGELOG.md announces no \"Breaking\" change of {name}",
                dialect.name()
            );
        }
    }
}

#[test]
fn the_lists_of_names_are_complete() {
    let named = |definition: &Value| definition["properties"]["type"]["const"].as_str().map(str::to_owned);
    let mut events = Vec::new();
    for dialect in [Dialect::Pi, Dialect::Xcsh] {
        let document = document(dialect);
        let definitions = document["$defs"].as_object().expect("definitions").iter();
        events.extend(definitions.filter(|(name, _)| name.ends_with("Event")).filter_map(|(_, schema)| named(schema)));
        let methods = document["$defs"]["UiRequest"]["oneOf"].as_array().expect("methods").iter();
        let methods: Vec<_> = methods.filter_map(|method| method["properties"]["method"]["const"].as_str()).collect();
        assert_eq!(methods, UiMethod::NAMES);
    }
    let missing = Event::NAMES.iter().filter(|name| !events.iter().any(|event| event == *name)).collect::<Vec<_>>();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(events.iter().all(|event| Event::NAMES.contains(&event.as_str())), "{events:?}");
}
