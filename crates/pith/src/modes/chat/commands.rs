//! What a typed line means: a message, a shell command, or a slash command.

use serde_json::{Map, Value, json};

use super::Chat;
use crate::modes::client::Client;
use crate::modes::screen::count;
use crate::modes::tool_line::cut;

/// What to do after a line.
pub enum AfterLine {
    Nothing,
    Leave,
    /// The agent works; Ctrl-C sends `stop`.
    Turn {
        command: Value,
        stop: Value,
    },
}

/// Name, arguments, description.
const COMMANDS: &[(&str, &str, &str)] = &[
    ("help", "", "this list"),
    ("model", "[search]", "show the model, or change to the one found"),
    ("models", "[search]", "models that can be used now"),
    ("thinking", "[level]", "show or set how hard the model thinks"),
    ("new", "", "start a new session"),
    ("resume", "[number]", "continue the last session of this directory, or another one"),
    ("sessions", "", "earlier sessions of this directory"),
    ("name", "<text>", "name this session"),
    ("stats", "", "messages, tokens and cost so far"),
    ("compact", "[what matters]", "summarise the conversation to make room"),
    ("fork", "[number]", "earlier messages, or a new session from before one of them"),
    ("clone", "", "go on in a copy of this session"),
    ("export", "[file]", "write the conversation as HTML"),
    ("commands", "", "commands of extensions, prompt templates and skills"),
    ("reload", "", "read settings, extensions, skills, templates and AGENTS.md again"),
    ("diagnostics", "", "what is wrong with them"),
    ("retry", "on|off", "ask again after failures that pass"),
    ("rpc", "<json>", "any command of the protocol, such as {\"type\":\"get_state\"}"),
    ("quit", "", "leave"),
];

impl Chat {
    pub(super) async fn take(&mut self, client: &mut Client, line: &str) -> AfterLine {
        if line.starts_with(char::is_whitespace) {
            return self.message(line.trim());
        }
        if let Some(command) = line.strip_prefix('!') {
            return shell(command);
        }
        let Some(call) = line.strip_prefix('/') else { return self.message(line) };
        let (name, argument) = call.split_once(char::is_whitespace).unwrap_or((call, ""));
        let argument = argument.trim();
        match name {
            "quit" | "exit" | "q" => return AfterLine::Leave,
            "compact" => return compact(argument),
            "help" => self.help(),
            "model" => self.model(client, argument).await,
            "models" => self.models(client, argument).await,
            "thinking" => self.thinking(client, argument).await,
            "new" => self.plain(client, json!({"type": "new_session"}), "A new session.").await,
            "resume" => self.resume(client, argument).await,
            "sessions" => self.list_sessions(client).await,
            "name" => self.plain(client, json!({"type": "set_session_name", "name": argument}), "Named.").await,
            "stats" => self.stats(client).await,
            "fork" => self.fork(client, argument).await,
            "clone" => self.plain(client, json!({"type": "clone"}), "This is the copy.").await,
            "export" => self.export(client, argument).await,
            "commands" => self.list_commands(client).await,
            "reload" => self.reload(client).await,
            "diagnostics" => self.diagnostics(client).await,
            "retry" => {
                let enabled = argument != "off";
                self.plain(client, json!({"type": "set_auto_retry", "enabled": enabled}), "Done.").await;
            }
            "rpc" => return self.raw(client, argument).await,
            name => return self.other(client, name, line).await,
        }
        AfterLine::Nothing
    }

    /// Makes a message; `@file` in it attaches the file if it exists.
    fn message(&mut self, line: &str) -> AfterLine {
        let words = line.split_whitespace().filter_map(|word| word.strip_prefix('@')).filter(|word| !word.is_empty());
        let is_file = |word: &&str| super::resolve(word, &self.cwd, &self.home).is_file();
        let (files, others): (Vec<&str>, Vec<&str>) = words.partition(is_file);
        for other in others {
            self.say(&format!("! there is no file {other}; @{other} is sent as text"));
        }
        let files: Vec<String> = files.into_iter().map(str::to_owned).collect();
        match self.draft(line, &files) {
            Ok(Some(command)) => AfterLine::Turn { command, stop: json!({"type": "abort"}) },
            Ok(None) => AfterLine::Nothing,
            Err(error) => {
                self.complain(&format!("{error:#}"));
                AfterLine::Nothing
            }
        }
    }

    /// Passes commands of extensions, templates and skills to the session; a path is a message; anything else is a
    /// typo.
    async fn other(&mut self, client: &mut Client, name: &str, line: &str) -> AfterLine {
        let is_path = name.contains('/');
        if is_path || self.session_commands(client).await.iter().any(|(known, _)| known == name) {
            return self.message(line);
        }
        self.complain(&format!("there is no /{name}; /help lists commands, and a space in front makes it a message"));
        AfterLine::Nothing
    }

    fn help(&self) {
        let lines =
            COMMANDS.iter().map(|(name, arguments, help)| format!("  {:<26} {help}", format!("/{name} {arguments}")));
        let mut text: Vec<String> = lines.collect();
        text.push(format!("  {:<26} run a shell command; its output is part of the conversation", "!<command>"));
        text.push(format!("  {:<26} attach a file or picture to a message", "@<file>"));
        self.say(&text.join("\n"));
    }

    async fn plain(&self, client: &mut Client, command: Value, done: &str) {
        match client.call(command).await {
            Ok(_) => self.say(done),
            Err(error) => self.complain(&error),
        }
    }

    async fn call(&self, client: &mut Client, command: Value) -> Option<Value> {
        client.call(command).await.map_err(|error| self.complain(&error)).ok()
    }

    async fn matching(&self, client: &mut Client, search: &str) -> Vec<Value> {
        let Some(mut data) = self.call(client, json!({"type": "get_available_models"})).await else {
            return Vec::new();
        };
        let Value::Array(models) = data["models"].take() else { return Vec::new() };
        let search = search.to_lowercase();
        let fits = |model: &Value| search.split_whitespace().all(|word| reference(model).to_lowercase().contains(word));
        models.into_iter().filter(fits).collect()
    }

    async fn models(&self, client: &mut Client, search: &str) {
        let found = self.matching(client, search).await;
        let lines: Vec<String> = found.iter().map(|model| format!("  {}", reference(model))).collect();
        self.say(&if lines.is_empty() { "No such model can be used now.".to_owned() } else { lines.join("\n") });
    }

    async fn model(&self, client: &mut Client, search: &str) {
        if search.is_empty() {
            let state = client.call(json!({"type": "get_state"})).await.unwrap_or_default();
            return self.say(&model_line(&state));
        }
        let found = self.matching(client, search).await;
        let exact = found.iter().find(|model| model["id"] == search || reference(model) == search);
        match (exact, found.as_slice()) {
            (Some(model), _) | (None, [model]) => {
                let command = json!({"type": "set_model", "provider": model["provider"], "modelId": model["id"]});
                self.plain(client, command, &format!("Now {}.", reference(model))).await;
            }
            (None, []) => self.complain("no such model can be used now; /models lists them"),
            (None, [..]) => {
                let names: Vec<String> = found.iter().map(|model| format!("  {}", reference(model))).collect();
                self.say(&format!("Which one?\n{}", names.join("\n")));
            }
        }
    }

    async fn thinking(&self, client: &mut Client, level: &str) {
        if !level.is_empty() && self.call(client, json!({"type": "set_thinking_level", "level": level})).await.is_none()
        {
            return;
        }
        let state = client.call(json!({"type": "get_state"})).await.unwrap_or_default();
        let levels = client.call(json!({"type": "get_available_thinking_levels"})).await.unwrap_or_default();
        let known: Vec<&str> = levels["levels"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        self.say(&format!("{} (of {})", text(&state, "thinkingLevel"), known.join(", ")));
    }

    async fn stats(&self, client: &mut Client) {
        let Some(stats) = self.call(client, json!({"type": "get_session_stats"})).await else { return };
        let number = |path: &str| stats.pointer(path).and_then(Value::as_u64).unwrap_or(0);
        let mut lines = vec![
            format!("{} messages, {} tool calls", number("/totalMessages"), number("/toolCalls")),
            format!(
                "{} tokens: {} in, {} out, {} read from the cache",
                count(number("/tokens/total")),
                count(number("/tokens/input")),
                count(number("/tokens/output")),
                count(number("/tokens/cacheRead"))
            ),
            format!("${:.4}", stats["cost"].as_f64().unwrap_or(0.0)),
        ];
        if let Some(percent) = stats.pointer("/contextUsage/percent").and_then(Value::as_f64) {
            lines.push(format!("the context is {percent:.0}% full"));
        }
        if let Some(file) = stats["sessionFile"].as_str() {
            lines.push(file.to_owned());
        }
        self.say(&lines.join("\n"));
    }

    async fn fork(&self, client: &mut Client, which: &str) {
        let Some(data) = self.call(client, json!({"type": "get_fork_messages"})).await else { return };
        let messages: Vec<&Value> = data["messages"].as_array().into_iter().flatten().collect();
        match which.parse::<usize>().ok().and_then(|number| messages.get(number.wrapping_sub(1))) {
            Some(message) => {
                let done = format!("Back before: {}", cut(text(message, "text")));
                self.plain(client, json!({"type": "fork", "entryId": message["entryId"]}), &done).await;
            }
            None => {
                let line =
                    |(index, message): (usize, &&Value)| format!("{:>3}  {}", index + 1, cut(text(message, "text")));
                let lines: Vec<String> = messages.iter().enumerate().map(line).collect();
                self.say(&format!("{}\n/fork <number> goes back to before that message.", lines.join("\n")));
            }
        }
    }

    async fn export(&self, client: &mut Client, file: &str) {
        let mut command = json!({"type": "export_html"});
        if !file.is_empty() {
            command["outputPath"] = file.into();
        }
        if let Some(data) = self.call(client, command).await {
            self.say(&format!("Written to {}", text(&data, "path")));
        }
    }

    /// Names and descriptions of the commands of extensions, templates and skills.
    async fn session_commands(&self, client: &mut Client) -> Vec<(String, String)> {
        let data = client.call(json!({"type": "get_commands"})).await.unwrap_or_default();
        let pair = |command: &Value| (text(command, "name").to_owned(), text(command, "description").to_owned());
        data["commands"].as_array().into_iter().flatten().map(pair).collect()
    }

    async fn list_commands(&self, client: &mut Client) {
        let lines: Vec<String> = self
            .session_commands(client)
            .await
            .iter()
            .map(|(name, about)| format!("  {:<26} {about}", format!("/{name}")))
            .collect();
        self.say(&if lines.is_empty() {
            "No extension commands, prompt templates or skills.".to_owned()
        } else {
            lines.join("\n")
        });
    }

    /// Gives the editor all names to complete.
    pub(super) async fn learn_commands(&self, client: &mut Client) {
        let own = COMMANDS.iter().map(|(name, ..)| (*name).to_owned());
        let others = self.session_commands(client).await.into_iter().map(|(name, _)| name);
        self.lines.names().set(own.chain(others).collect());
    }

    async fn reload(&self, client: &mut Client) {
        let Some(data) = self.call(client, json!({"type": "reload"})).await else { return };
        let one = |change: &Value| {
            let name = change["name"].as_str().map_or_else(String::new, |name| format!(" {name}"));
            format!("  {} {}{name}", text(change, "change"), text(change, "resource"))
        };
        let lines: Vec<String> = data["changes"].as_array().into_iter().flatten().map(one).collect();
        self.say(&if lines.is_empty() { "Nothing has changed.".to_owned() } else { lines.join("\n") });
        self.learn_commands(client).await;
    }

    async fn diagnostics(&self, client: &mut Client) {
        let Some(data) = self.call(client, json!({"type": "get_diagnostics"})).await else { return };
        let one = |found: &Value| {
            let path = found["path"].as_str().map_or_else(String::new, |path| format!("{path}: "));
            format!("  {}: {path}{}", text(found, "type"), text(found, "message"))
        };
        let lines: Vec<String> = data["diagnostics"].as_array().into_iter().flatten().map(one).collect();
        self.say(&if lines.is_empty() { "Nothing is wrong.".to_owned() } else { lines.join("\n") });
    }

    /// Sends any command of the protocol and shows its answer.
    async fn raw(&self, client: &mut Client, argument: &str) -> AfterLine {
        match serde_json::from_str::<Map<String, Value>>(argument) {
            Err(error) => self.complain(&format!("not a command object: {error}")),
            Ok(command) if command.get("type").is_some_and(|kind| kind == "prompt") => {
                return AfterLine::Turn { command: command.into(), stop: json!({"type": "abort"}) };
            }
            Ok(command) => {
                if let Some(data) = self.call(client, command.into()).await {
                    self.say(&serde_json::to_string_pretty(&data).expect("a value always serializes"));
                }
            }
        }
        AfterLine::Nothing
    }
}

fn shell(command: &str) -> AfterLine {
    match command.trim() {
        "" => AfterLine::Nothing,
        command => AfterLine::Turn {
            command: json!({"type": "bash", "command": command}),
            stop: json!({"type": "abort_bash"}),
        },
    }
}

fn compact(instructions: &str) -> AfterLine {
    let mut command = json!({"type": "compact"});
    if !instructions.is_empty() {
        command["customInstructions"] = instructions.into();
    }
    AfterLine::Turn { command, stop: json!({"type": "abort"}) }
}

/// The result of a command that took a while.
pub fn work_done(data: &Value) -> String {
    match (data["output"].as_str(), data["exitCode"].as_i64()) {
        (Some(output), Some(0)) => output.trim_end().to_owned(),
        (Some(output), Some(code)) => format!("{}\nexit code {code}", output.trim_end()).trim_start().to_owned(),
        (Some(output), None) => format!("{}\nstopped", output.trim_end()).trim_start().to_owned(),
        (None, _) => data["summary"].as_str().unwrap_or("Done.").to_owned(),
    }
}

/// Describes the model of a state.
pub fn model_line(state: &Value) -> String {
    match &state["model"] {
        Value::Null => "no model: set an API key, or try --model scripted/tour".to_owned(),
        model => format!("{} ({})", reference(model), text(state, "thinkingLevel")),
    }
}

fn reference(model: &Value) -> String {
    format!("{}/{}", text(model, "provider"), text(model, "id"))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_told_with_its_outcome() {
        let check = |data: Value, expected: &str| assert_eq!(work_done(&data), expected);
        check(json!({"output": "a\n", "exitCode": 0}), "a");
        check(json!({"output": "", "exitCode": 2}), "exit code 2");
        check(json!({"output": "part\n", "cancelled": true}), "part\nstopped");
        check(json!({"summary": "All is well."}), "All is well.");
    }
}
