//! Servers in the files of other programs, read and never written: `"imports": ["codex"]` in the user's `mcp.json`, and
//! `pith mcp import`.

use std::path::{Path, PathBuf};

use pith_config::{Environment, document};
use serde_json::{Map, Value, json};

use super::sources::TimeoutUnit;

/// A program whose servers can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    VsCode,
    Windsurf,
    Codex,
    OpenCode,
}

impl Program {
    pub const ALL: [Program; 7] = [
        Program::ClaudeCode,
        Program::ClaudeDesktop,
        Program::Cursor,
        Program::VsCode,
        Program::Windsurf,
        Program::Codex,
        Program::OpenCode,
    ];

    /// The word in `imports`.
    pub fn name(self) -> &'static str {
        match self {
            Program::ClaudeCode => "claude-code",
            Program::ClaudeDesktop => "claude-desktop",
            Program::Cursor => "cursor",
            Program::VsCode => "vscode",
            Program::Windsurf => "windsurf",
            Program::Codex => "codex",
            Program::OpenCode => "opencode",
        }
    }

    /// Returns the program of a word, or all words there are.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = Program::ALL.into_iter().find(|program| program.name() == name);
        found.ok_or_else(|| {
            let names: Vec<String> = Program::ALL.iter().map(|program| format!("\"{}\"", program.name())).collect();
            format!("expected one of {}, got \"{name}\"", names.join(", "))
        })
    }

    /// The user's own file of the program.
    pub fn file(self, environment: &Environment) -> PathBuf {
        let home = environment.home();
        let settings = |linux: &str, mac: &str| home.join(if cfg!(target_os = "macos") { mac } else { linux });
        match self {
            Program::ClaudeCode => home.join(".claude.json"),
            Program::ClaudeDesktop => settings(
                ".config/Claude/claude_desktop_config.json",
                "Library/Application Support/Claude/claude_desktop_config.json",
            ),
            Program::Cursor => home.join(".cursor/mcp.json"),
            Program::VsCode => settings(".config/Code/User/mcp.json", "Library/Application Support/Code/User/mcp.json"),
            Program::Windsurf => home.join(".codeium/windsurf/mcp_config.json"),
            Program::Codex => home.join(".codex/config.toml"),
            Program::OpenCode => home.join(".config/opencode/opencode.json"),
        }
    }

    /// What `timeout` means there.
    pub fn unit(self) -> TimeoutUnit {
        match self {
            Program::ClaudeCode | Program::ClaudeDesktop | Program::Cursor | Program::Windsurf | Program::OpenCode => {
                TimeoutUnit::Milliseconds
            }
            Program::VsCode | Program::Codex => TimeoutUnit::Seconds,
        }
    }

    /// Returns the program's servers as entries of pith; none without a document.
    pub fn entries(self, document: Option<Value>) -> Result<Map<String, Value>, String> {
        let Some(mut document) = document else { return Ok(Map::new()) };
        let key = match self {
            Program::VsCode => "servers",
            Program::Codex => "mcp_servers",
            Program::OpenCode => "mcp",
            Program::ClaudeCode | Program::ClaudeDesktop | Program::Cursor | Program::Windsurf => "mcpServers",
        };
        let servers = match document.get_mut(key).map(Value::take) {
            None | Some(Value::Null) => return Ok(Map::new()),
            Some(Value::Object(servers)) => servers,
            Some(_) => return Err(format!("{key}: expected an object")),
        };
        Ok(servers.into_iter().map(|(name, entry)| (name, self.converted(entry))).collect())
    }

    /// Reads the program's file, if there is one.
    pub fn document(self, file: &Path) -> Result<Option<Value>, String> {
        if self != Program::Codex {
            return document::read(file);
        }
        match std::fs::read_to_string(file) {
            Ok(text) => toml::from_str(&text).map(Some).map_err(|error| error.message().to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// An entry with the keys that pith knows; others stay, and are reported like any unknown key.
    fn converted(self, entry: Value) -> Value {
        let Value::Object(mut entry) = entry else { return entry };
        match self {
            Program::Codex => from_codex(&mut entry),
            Program::OpenCode => from_opencode(&mut entry),
            Program::Windsurf => rename(&mut entry, "serverUrl", "url"),
            Program::ClaudeCode | Program::ClaudeDesktop | Program::Cursor | Program::VsCode => {}
        }
        Value::Object(entry)
    }
}

fn rename(entry: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = entry.shift_remove(from) {
        entry.entry(to).or_insert(value);
    }
}

fn from_codex(entry: &mut Map<String, Value>) {
    for (from, to) in [
        ("bearer_token_env_var", "bearerTokenEnv"),
        ("http_headers", "headers"),
        ("enabled_tools", "includeTools"),
        ("disabled_tools", "excludeTools"),
    ] {
        rename(entry, from, to);
    }
    for (from, to) in [("startup_timeout_sec", "startupTimeoutMs"), ("tool_timeout_sec", "requestTimeoutMs")] {
        if let Some(seconds) = entry.shift_remove(from).as_ref().and_then(Value::as_f64) {
            entry.insert(to.to_owned(), json!(seconds * 1000.0));
        }
    }
    if let Some(Value::Object(variables)) = entry.shift_remove("env_http_headers") {
        let headers = entry.entry("headers").or_insert_with(|| json!({}));
        // Headers that are no object are refused when the entry is read.
        if let Value::Object(headers) = headers {
            let value = |variable: Value| json!(format!("${{{}}}", variable.as_str().unwrap_or_default()));
            headers.extend(variables.into_iter().map(|(header, variable)| (header, value(variable))));
        }
    }
}

fn from_opencode(entry: &mut Map<String, Value>) {
    // `local` and `remote` say what `command` and `url` say.
    entry.shift_remove("type");
    rename(entry, "environment", "env");
    if let Some(Value::Array(words)) = entry.get("command").cloned() {
        let mut words = words.into_iter();
        entry.insert("command".to_owned(), words.next().unwrap_or_default());
        entry.insert("args".to_owned(), Value::Array(words.collect()));
    }
    entry.values_mut().for_each(replace_variables);
}

/// Writes `{env:NAME}` as pith does.
fn replace_variables(value: &mut Value) {
    match value {
        Value::String(text) => *text = text.replace("{env:", "${"),
        Value::Array(items) => items.iter_mut().for_each(replace_variables),
        Value::Object(members) => members.values_mut().for_each(replace_variables),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(program: Program, text: &str) -> Result<Value, String> {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join(if program == Program::Codex { "config.toml" } else { "config.json" });
        std::fs::write(&file, text).expect("written");
        program.entries(program.document(&file)?).map(Value::Object)
    }

    #[test]
    fn entries_of_every_shape_become_ours() {
        let check = |program: Program, text: &str, expected: Value| {
            assert_eq!(entries(program, text), Ok(expected), "{}", program.name());
        };
        check(
            Program::ClaudeCode,
            r#"{"mcpServers": {"a": {"command": "x"}}, "y": 1}"#,
            json!({"a": {"command": "x"}}),
        );
        check(
            Program::VsCode,
            r#"{"servers": {"a": {"url": "http://x"}}, /* c */}"#,
            json!({"a": {"url": "http://x"}}),
        );
        check(
            Program::Windsurf,
            r#"{"mcpServers": {"a": {"serverUrl": "http://x"}}}"#,
            json!({"a": {"url": "http://x"}}),
        );
        let codex = r#"
            model = "m"
            [mcp_servers.a]
            command = "x"
            args = ["y"]
            startup_timeout_sec = 20
            tool_timeout_sec = 1.5
            enabled_tools = ["t"]
            [mcp_servers.b]
            url = "https://x"
            bearer_token_env_var = "TOKEN"
            [mcp_servers.b.env_http_headers]
            K = "KEY"
        "#;
        let expected = json!({
            "a": {"command": "x", "args": ["y"], "includeTools": ["t"], "startupTimeoutMs": 20000.0, "requestTimeoutMs": 1500.0},
            "b": {"url": "https://x", "bearerTokenEnv": "TOKEN", "headers": {"K": "${KEY}"}},
        });
        check(Program::Codex, codex, expected);
        let opencode = r#"{"mcp": {"a": {"type": "local", "command": ["x", "y"], "environment": {"T": "{env:TOKEN}"}},
            "b": {"type": "remote", "url": "https://x", "enabled": false}}}"#;
        let expected = json!({"a": {"command": "x", "env": {"T": "${TOKEN}"}, "args": ["y"]},
            "b": {"url": "https://x", "enabled": false}});
        check(Program::OpenCode, opencode, expected);
        check(Program::Cursor, "{}", json!({}));
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        assert!(entries(Program::Codex, "a = ").is_err());
        let mixed = "[mcp_servers.a]\nurl = \"u\"\nhttp_headers = \"oops\"\nenv_http_headers = { K = \"V\" }";
        assert_eq!(entries(Program::Codex, mixed).map(|entries| entries["a"]["headers"].clone()), Ok(json!("oops")));
        assert_eq!(entries(Program::OpenCode, r#"{"mcp": []}"#), Err("mcp: expected an object".to_owned()));
        assert_eq!(Program::Codex.document(Path::new("/nowhere/config.toml")), Ok(None));
        assert_eq!(Program::Codex.entries(None), Ok(Map::new()));
        assert_eq!(Program::named("codex"), Ok(Program::Codex));
        assert!(Program::named("emacs").expect_err("unknown").ends_with("got \"emacs\""));
    }
}
