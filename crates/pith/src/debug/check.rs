//! `pith debug check FILE`: whether something that looks like a credential is in a debug file.

use std::fs::File;
use std::io::{BufRead, BufReader};

use pith_config::Environment;
use pith_secrets::{MASK, Secrets, is_secret_name, shape_in};
use serde_json::Value;

use crate::cli::Cli;
use crate::program::Program;
use crate::{rpc, secrets_file, show, warn};

const USAGE: &str = "Usage: pith debug check FILE

Looks for credentials in a file that --debug has written, before you give it to others: keys that pith knows here, and
what looks like one. Names the lines, not what is in them.
The exit code is 0 if there is none, 1 if there is one, 2 if the file cannot be read.
";

/// Runs the subcommand and returns the exit code.
pub fn run(arguments: &[String], program: &Program) -> anyhow::Result<u8> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["check", "-h" | "--help"] | ["-h" | "--help"] => show(USAGE),
        ["check", path] => {
            let dialect = rpc::dialect(&Cli::default(), program)?;
            let _registry = secrets_file::learn_without_session(dialect, &Environment::of_process())?;
            check(path)
        }
        ["check"] => refuse("a file is missing"),
        ["check", _, extra, ..] => refuse(&format!("unexpected argument: {extra}")),
        [] => refuse("a verb is missing"),
        [other, ..] => refuse(&format!("unexpected argument: {other}")),
    }
}

fn refuse(why: &str) -> anyhow::Result<u8> {
    warn(&format!("Error: {why}\n{}", USAGE.trim_end()));
    Ok(2)
}

fn check(path: &str) -> anyhow::Result<u8> {
    let lines = match File::open(path) {
        Ok(file) => BufReader::new(file).split(b'\n'),
        Err(error) => return unreadable(path, &error),
    };
    let (mut n_lines, mut n_found) = (0, 0);
    for line in lines {
        let line = match line {
            Ok(line) => line,
            Err(error) => return unreadable(path, &error),
        };
        n_lines += 1;
        let text = String::from_utf8_lossy(&line);
        let kind = match serde_json::from_str(&text) {
            Ok(value) => kind_in(&value),
            Err(_) => kind_of(&text),
        };
        if let Some(kind) = kind {
            n_found += 1;
            show(&format!("{path}:{n_lines}: {kind}\n"))?;
        }
    }
    if n_found == 0 {
        show(&format!("{path}: no credentials in {n_lines} lines\n"))?;
    }
    Ok(u8::from(n_found > 0))
}

fn unreadable(path: &str, error: &std::io::Error) -> anyhow::Result<u8> {
    warn(&format!("Error: {path}: {error}"));
    Ok(2)
}

/// Returns what kind of credential is in a value.
fn kind_in(value: &Value) -> Option<&'static str> {
    match value {
        Value::String(text) => kind_of(text),
        Value::Array(values) => values.iter().find_map(kind_in),
        Value::Object(members) => members.iter().find_map(|(name, value)| match value {
            Value::String(text) if is_secret_name(name) && text != MASK => Some("value of a secret name"),
            value => kind_of(name).or_else(|| kind_in(value)),
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn kind_of(text: &str) -> Option<&'static str> {
    let is_known = Secrets::of_process().redact(text) != text;
    if is_known { Some("known key") } else { shape_in(text) }
}
