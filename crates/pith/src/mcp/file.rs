//! Changes the servers of a configuration file and keeps the rest of it.

use std::path::Path;

use anyhow::{Context, bail};
use pith_config::locked_file;
use pith_mcp::config::{Source, TimeoutUnit, is_same, read_entry};
use serde_json::{Map, Value, json};

/// Adds a server, or replaces the one of that name.
pub fn add(file: &Path, name: &str, entry: Map<String, Value>) -> anyhow::Result<()> {
    let entry = Value::Object(entry);
    read_entry(name, &entry, Source::User, TimeoutUnit::Seconds)?;
    check_shape(file)?;
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    }
    let written = locked_file::update(file, |object| {
        let key =
            if object.contains_key("servers") && !object.contains_key("mcpServers") { "servers" } else { "mcpServers" };
        if let Value::Object(servers) = object.entry(key).or_insert_with(|| json!({})) {
            servers.insert(name.to_owned(), entry);
        }
    });
    written.with_context(|| format!("cannot write {}", file.display()))
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
    match read {
        None => Ok(()),
        Some(Value::Object(object)) => {
            let is_wrong = |key: &&str| object.get(*key).is_some_and(|servers| !servers.is_object());
            match ["mcpServers", "servers"].iter().find(|key| is_wrong(key)) {
                Some(key) => bail!("{}: {key} is no object", file.display()),
                None => Ok(()),
            }
        }
        Some(_) => bail!("{} is no JSON object", file.display()),
    }
}
