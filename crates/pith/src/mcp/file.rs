//! Changes the servers of a configuration file and keeps the rest of it.

use std::path::Path;

use anyhow::{Context, bail};
use pith_config::{Environment, locked_file};
use pith_mcp::config::{ImportedProgram, Source, TimeoutUnit, is_same, read_entry};
use serde_json::{Map, Value, json};

use super::inputs::ImportedInputs;

/// Adds a server, or replaces the one of that name.
pub fn add(file: &Path, name: &str, entry: Map<String, Value>) -> anyhow::Result<()> {
    let entry = Value::Object(entry);
    read_entry(name, &entry, Source::User, TimeoutUnit::Seconds)?;
    change(file, |object| insert(object, name, entry))
}

/// Changes the document of a file, which need not exist.
fn change(file: &Path, change: impl FnOnce(&mut Map<String, Value>)) -> anyhow::Result<()> {
    check_shape(file)?;
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    }
    locked_file::update(file, change).with_context(|| format!("cannot write {}", file.display()))
}

fn insert(object: &mut Map<String, Value>, name: &str, entry: Value) {
    let key =
        if object.contains_key("servers") && !object.contains_key("mcpServers") { "servers" } else { "mcpServers" };
    if let Value::Object(servers) = object.entry(key).or_insert_with(|| json!({})) {
        servers.insert(name.to_owned(), entry);
    }
}

/// Copies the servers of another program, with what the user is asked for in them, and says what came of each. Those of
/// a name that is there stay as they are.
pub fn import(
    file: &Path,
    program: ImportedProgram,
    environment: &Environment,
    is_dry: bool,
) -> anyhow::Result<Vec<String>> {
    let theirs = program.file(environment);
    let failed = |why: String| anyhow::anyhow!("{}: {why}", theirs.display());
    let document = program.document(&theirs).map_err(failed)?;
    let inputs = ImportedInputs::of(program, document.as_ref());
    let entries = program.entries(document).map_err(failed)?;
    let present = names(file)?;
    let mut lines = Vec::new();
    for (name, entry) in entries {
        let mut entry = with_plain_timeout(entry, program.unit());
        lines.push(match read_entry(&name, &entry, Source::User, TimeoutUnit::Seconds) {
            Err(error) => format!("left out: {error}"),
            Ok(_) if present.iter().any(|other| is_same(other, &name)) => format!("{name} is there already"),
            Ok(_) if is_dry => format!("would add {name}"),
            Ok(_) => {
                let mut line = format!("added {name}");
                change(file, |object| {
                    for (id, other) in inputs.copy_into(object, &mut entry) {
                        line.push_str(&format!("; its input \"{id}\" is called \"{other}\" here"));
                    }
                    insert(object, &name, entry);
                })?;
                line
            }
        });
    }
    Ok(lines)
}

/// Writes a timeout as the key that means the same in every file.
fn with_plain_timeout(mut entry: Value, unit: TimeoutUnit) -> Value {
    if let (TimeoutUnit::Milliseconds, Some(entry)) = (unit, entry.as_object_mut())
        && let Some(timeout) = entry.shift_remove("timeout")
    {
        entry.entry("requestTimeoutMs").or_insert(timeout);
    }
    entry
}

fn names(file: &Path) -> anyhow::Result<Vec<String>> {
    check_shape(file)?;
    let read = locked_file::read(file).map_err(|why| anyhow::anyhow!("{}: {why}", file.display()))?;
    let of = |key: &str| read.as_ref().and_then(|read| read.get(key)).and_then(Value::as_object);
    let servers = ["mcpServers", "servers"].into_iter().filter_map(of).flatten();
    Ok(servers.map(|(name, _)| name.clone()).collect())
}

/// Removes a server; an error if there is none of that name.
pub fn remove(file: &Path, name: &str) -> anyhow::Result<()> {
    check_shape(file)?;
    let mut is_found = false;
    if file.exists() {
        let written = locked_file::update(file, |object| {
            for key in ["mcpServers", "servers"] {
                if let Some(Value::Object(servers)) = object.get_mut(key) {
                    let before = servers.len();
                    servers.retain(|other, _| !is_same(other, name));
                    is_found |= servers.len() < before;
                }
            }
        });
        written.with_context(|| format!("cannot write {}", file.display()))?;
    }
    if !is_found {
        bail!("there is no server \"{name}\" in {}", file.display());
    }
    Ok(())
}

/// Refuses a file that would be damaged by a change.
fn check_shape(file: &Path) -> anyhow::Result<()> {
    let read = locked_file::read(file).map_err(|why| anyhow::anyhow!("{}: {why}", file.display()))?;
    let is_plain = || std::fs::read(file).is_ok_and(|text| serde_json::from_slice::<Value>(&text).is_ok());
    if read.is_some() && !is_plain() {
        bail!("{} has comments or trailing commas, which a change would lose; edit it by hand", file.display());
    }
    match read {
        None => Ok(()),
        Some(Value::Object(object)) => {
            let is_wrong = |key: &&str| object.get(*key).is_some_and(|servers| !servers.is_object());
            if let Some(key) = ["mcpServers", "servers"].iter().find(|key| is_wrong(key)) {
                bail!("{}: {key} is no object", file.display());
            }
            if object.get("inputs").is_some_and(|inputs| !inputs.is_array()) {
                bail!("{}: inputs is no array", file.display());
            }
            Ok(())
        }
        Some(_) => bail!("{} is no JSON object", file.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_comments_is_left_as_it_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("mcp.json");
        let text = "{\"mcpServers\": {} // none yet\n}";
        std::fs::write(&file, text).expect("written");
        let entry = Map::from_iter([("command".to_owned(), json!("x"))]);
        let refused = add(&file, "a", entry).expect_err("refused").to_string();
        assert!(refused.ends_with("edit it by hand"), "{refused}");
        assert_eq!(std::fs::read_to_string(&file).expect("there"), text);
    }

    #[test]
    fn servers_of_another_program_are_copied_once() {
        let home = tempfile::tempdir().expect("a directory");
        let environment = Environment::of(home.path(), []);
        std::fs::create_dir(home.path().join(".cursor")).expect("made");
        let theirs = json!({"mcpServers": {"a": {"command": "x", "env": {"T": "${TOKEN}"}, "timeout": 5000},
            "b": {"command": "y"}, "c": {}}});
        std::fs::write(home.path().join(".cursor/mcp.json"), theirs.to_string()).expect("written");
        let file = home.path().join("mcp.json");
        std::fs::write(&file, r#"{"mcpServers": {"b": {"command": "mine"}}, "other": 1}"#).expect("written");
        let import = |is_dry| import(&file, ImportedProgram::Cursor, &environment, is_dry).expect("imported");
        let bad = "left out: server \"c\": it has neither \"command\" nor \"url\"";
        assert_eq!(import(true), ["would add a", "b is there already", bad]);
        assert_eq!(import(false), ["added a", "b is there already", bad]);
        assert_eq!(import(false)[0], "a is there already");
        let read: Value = serde_json::from_slice(&std::fs::read(&file).expect("there")).expect("JSON");
        let a = json!({"command": "x", "env": {"T": "${TOKEN}"}, "requestTimeoutMs": 5000});
        assert_eq!(read, json!({"mcpServers": {"b": {"command": "mine"}, "a": a}, "other": 1}));
    }
}
