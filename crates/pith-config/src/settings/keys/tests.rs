//! `docs/settings.md` has every key, with its type, its scope and its default.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::{ResourceLists, Settings};
use super::*;

/// A row of a table: key, type, default.
struct Row {
    path: String,
    kind: String,
    default: String,
}

fn rows() -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    let page = std::fs::read_to_string(path).expect("docs/settings.md");
    let row = |line: &str| {
        let cells: Vec<&str> = line.strip_prefix("| `")?.split(" | ").collect();
        let [key, kind, default, _meaning] = cells.as_slice() else { return None };
        let path = key.strip_suffix('`')?.to_owned();
        Some(Row { path, kind: (*kind).to_owned(), default: default.trim_matches('`').to_owned() })
    };
    page.lines().filter_map(row).collect()
}

/// All keys in the words of the page; those inside the members of an object have a star for its name.
fn expected() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for key in KEYS {
        let owner = if key.scope.is_some() { ", user only" } else { "" };
        all.push((key.path.to_owned(), named(&key.kind) + owner));
        if let Kind::EachOf(members) = &key.kind {
            all.extend(members.iter().map(|(name, kind)| (format!("{}.*.{name}", key.path), named(kind) + owner)));
        }
    }
    all
}

fn named(kind: &Kind) -> String {
    match kind {
        Kind::Text => "text".into(),
        Kind::Texts => "list of texts".into(),
        Kind::Flag => "true or false".into(),
        Kind::Count => "whole number".into(),
        Kind::Seconds => "seconds".into(),
        Kind::Timeout => "milliseconds or `disabled`".into(),
        Kind::Level => "thinking level".into(),
        Kind::Word(words) => {
            let (last, others) = words.split_last().expect("a choice has words");
            format!("`{}` or `{last}`", others.join("`, `"))
        }
        Kind::Each(kind) => format!("object of {}s", named(kind)),
        Kind::EachOf(_) => "object of objects".into(),
        Kind::List => "list".into(),
        Kind::Amount => "number".into(),
    }
}

/// A value that no key of the kind has by default.
fn other(kind: &Kind, default: &str) -> Value {
    match kind {
        Kind::Text => json!("x"),
        Kind::Texts | Kind::List => json!(["x"]),
        Kind::Flag => json!(default != "true"),
        Kind::Count | Kind::Seconds | Kind::Amount | Kind::Timeout => json!(7),
        Kind::Level => json!("high"),
        Kind::Word(words) => json!(words.iter().find(|word| format!("{word:?}") != default)),
        Kind::Each(kind) => json!({ "x": other(kind, "") }),
        Kind::EachOf(members) => json!({ "x": { members[0].0: other(&members[0].1, "") } }),
    }
}

/// What pith makes of a document with one key.
fn read(path: &str, value: Value) -> Option<(Settings, ResourceLists)> {
    let document = path.rsplit('.').fold(value, |inner, name| json!({ name: inner }));
    Some((Settings::deserialize(&document).ok()?, ResourceLists::deserialize(&document).ok()?))
}

#[test]
fn every_key_is_documented_with_its_type() {
    let documented: Vec<_> = rows().into_iter().map(|row| (row.path, row.kind)).collect();
    let expected = expected();
    let missing: Vec<_> = expected.iter().filter(|key| !documented.contains(key)).collect();
    let unknown: Vec<_> = documented.iter().filter(|key| !expected.contains(key)).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "missing: {missing:#?}; no such key: {unknown:#?}");
}

#[test]
fn every_key_has_the_documented_default() {
    let unset = read("none", Value::Null).expect("an empty document");
    // These are kept as they are written; pith-sandbox and pith-permissions read them. Limits are read by `limits`.
    let kept = ["sandbox.", "permissions.", "approvalMode", "tools.approval", "bash.patterns", "limits."];
    let is_kept = |row: &Row| kept.iter().any(|prefix| row.path.starts_with(prefix));
    for row in rows().iter().filter(|row| !row.path.contains(".*.") && !is_kept(row)) {
        let default = match row.default.as_str() {
            "none" | "built in" => Value::Null,
            written => serde_json::from_str(written).unwrap_or_else(|error| panic!("{}: {error}", row.path)),
        };
        assert_eq!(read(&row.path, default).as_ref(), Some(&unset), "{}: {} is not the default", row.path, row.default);
        let key = KEYS.iter().find(|key| key.path == row.path).expect("a documented key exists");
        let changed = read(&row.path, other(&key.kind, &row.default));
        assert!(changed.is_some_and(|changed| changed != unset), "{}: nothing reads it", row.path);
    }
}

#[test]
fn every_older_name_is_documented() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    let page = std::fs::read_to_string(path).expect("docs/settings.md");
    let (_, below) = page.split_once("## Older names").expect("a section");
    let rows: Vec<_> = below.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | `")).collect();
    assert_eq!(rows.len(), 3);
    for (old, today) in rows {
        let key = KEYS.iter().find(|key| today.trim_end_matches("` |") == key.path).expect("a key of today");
        let value = other(&key.kind, "");
        let nested = |path: &str| path.rsplit('.').fold(value.clone(), |inner, name| json!({ name: inner }));
        let mut document: Map<String, Value> = serde_json::from_value(nested(old)).expect("an object");
        super::super::migrate::migrate(&mut document);
        assert_eq!(Value::Object(document), nested(key.path), "{old}");
    }
}
