//! What the answers of the session are for.

use serde_json::{Value, json};

use super::App;
use super::commands::Submitted;
use super::tools::{SHELL, ToolEnd};
use crate::modes::screen::count;

/// Sessions with more messages are not read to show their end.
const MAX_READ: u64 = 400;

/// What is done with the answer to a command. A failure is shown, whatever was expected.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    Nothing,
    /// Says this, and looks at the state again.
    Done(String),
    Greeting,
    State,
    Permissions,
    Stats,
    ShownStats,
    Commands,
    ShownCommands,
    /// Tries a command again that was not known.
    CommandsFor(Submitted),
    Prompt,
    /// The queue is given back to the editor.
    Queue,
    Models(String),
    Levels(String),
    Sessions(String),
    LastSession,
    Switched,
    /// The state of a session that is open now.
    Opened,
    Messages,
    LastText,
    ForkMessages(String),
    Forked,
    Tree(String),
    Navigated,
    Checkpoints(String),
    Restored,
    Shell,
    Compacted,
    Exported,
    Reloaded,
    Diagnostics,
    Raw,
}

impl App {
    /// Takes the answer to a command.
    pub(super) fn answered(&mut self, id: u64, result: Result<Value, String>) {
        let Some(expected) = self.expected.remove(&id) else { return };
        let data = match result {
            Ok(data) => data,
            Err(error) => return self.failed(&expected, &error),
        };
        match expected {
            Expected::Nothing => {}
            Expected::Done(said) => {
                self.say(&said);
                self.refresh_state();
            }
            Expected::Greeting => self.greet(&data),
            Expected::State => self.footer.set_state(&data),
            Expected::Permissions => self.footer.set_permissions(&data),
            Expected::Stats => self.footer.set_stats(&data),
            Expected::ShownStats => self.show_stats(&data),
            Expected::Commands => self.learn_commands(&data),
            Expected::ShownCommands => {
                self.learn_commands(&data);
                self.list_commands();
            }
            Expected::CommandsFor(submitted) => {
                self.learn_commands(&data);
                self.resubmit(&submitted);
            }
            // An extension that took it may have registered others.
            Expected::Prompt if data["disposition"] == "handled" => self.ask_commands(),
            Expected::Prompt => {}
            Expected::Queue => self.give_back(&data),
            Expected::Models(search) => self.offer_models(&data, &search),
            Expected::Levels(search) => self.offer_levels(&data, &search),
            Expected::Sessions(search) => self.offer_sessions(&data, &search),
            Expected::LastSession => self.mention_session(&data),
            Expected::Switched if data["cancelled"] == true => self.complain("an extension did not allow it"),
            Expected::Switched => self.ask_what_is_open(),
            Expected::Opened => {
                self.footer.set_state(&data);
                self.show_session(data["messageCount"].as_u64().unwrap_or(0));
            }
            Expected::LastText => {
                let answer = json!({"role": "assistant", "content": [{"type": "text", "text": data["text"]}]});
                self.recall_answer(&answer);
            }
            Expected::Messages => {
                let messages: Vec<Value> = data["messages"].as_array().cloned().unwrap_or_default();
                self.recall(&messages);
            }
            Expected::ForkMessages(search) => self.offer_forks(&data, &search),
            Expected::Forked | Expected::Navigated if data["cancelled"] == true => {
                self.complain("an extension did not allow it");
            }
            Expected::Forked | Expected::Navigated => {
                self.ask_what_is_open();
                if let Some(text) = data["text"].as_str() {
                    self.editor.set(text);
                }
            }
            Expected::Tree(search) => self.offer_tree(&data, &search),
            Expected::Checkpoints(search) => self.offer_checkpoints(&data, &search),
            Expected::Restored => self.show_restored(&data),
            Expected::Shell => self.end_shell(&data),
            Expected::Compacted => {
                self.work = None;
                self.say(data["summary"].as_str().unwrap_or("Done."));
                self.refresh_stats();
            }
            Expected::Exported => self.say(&format!("Written to {}", text(&data, "path"))),
            Expected::Reloaded => self.show_changes(&data),
            Expected::Diagnostics => self.show_diagnostics(&data),
            Expected::Raw => {
                let shown = serde_json::to_string_pretty(&data).expect("a value always serializes");
                self.say(&shown);
            }
        }
    }

    fn failed(&mut self, expected: &Expected, error: &str) {
        match expected {
            Expected::Shell => {
                self.end_tool(SHELL, error, None, ToolEnd::Failed);
                return;
            }
            Expected::Compacted => self.work = None,
            // What is shown in passing is not worth a complaint.
            Expected::State | Expected::Permissions | Expected::Stats | Expected::Commands | Expected::LastSession => {
                return;
            }
            _ => {}
        }
        self.complain(error);
    }

    fn greet(&mut self, state: &Value) {
        self.footer.set_state(state);
        let model = self.footer.model.as_ref().map_or_else(
            || "no model: set an API key, or try --model scripted/tour".to_owned(),
            |model| format!("{model} ({})", self.footer.level),
        );
        self.say(&format!("pith {} · {model}", env!("CARGO_PKG_VERSION")));
        if self.setup.opening.tour.is_none() {
            self.note("Enter sends, Alt-Enter starts a new line, Esc stops, /help lists commands.");
        }
        for problem in std::mem::take(&mut self.setup.opening.problems) {
            self.note(&problem);
        }
        self.rows.push(Default::default());
        let n_messages = state["messageCount"].as_u64().unwrap_or(0);
        if n_messages > 0 {
            self.show_session(n_messages);
        } else if self.setup.opening.wants_list {
            self.send(json!({"type": "list_sessions"}), Expected::Sessions(String::new()));
        } else if self.setup.opening.prompt.is_none() {
            self.send(json!({"type": "list_sessions"}), Expected::LastSession);
        }
        self.ask_commands();
        self.send(json!({"type": "get_permissions"}), Expected::Permissions);
        if let Some(prompt) = self.setup.opening.prompt.take() {
            self.send(prompt, Expected::Prompt);
        }
    }

    fn ask_what_is_open(&mut self) {
        self.send(json!({"type": "get_state"}), Expected::Opened);
        self.ask_commands();
    }

    /// Shows the end of the conversation that is open now. Of a long one only the last answer is asked for: reading it
    /// all would take what talking in it takes.
    fn show_session(&mut self, n_messages: u64) {
        self.refresh_stats();
        match n_messages {
            0 => self.note("an empty session"),
            1..=MAX_READ => self.send(json!({"type": "get_messages"}), Expected::Messages),
            n_messages => {
                self.note(&format!("{n_messages} messages; the last answer:"));
                self.send(json!({"type": "get_last_assistant_text"}), Expected::LastText);
            }
        }
    }

    fn ask_commands(&mut self) {
        self.send(json!({"type": "get_commands"}), Expected::Commands);
    }

    fn give_back(&mut self, queues: &Value) {
        let texts =
            ["steering", "followUp"].into_iter().flat_map(|queue| queues[queue].as_array().into_iter().flatten());
        let texts: Vec<&str> = texts.filter_map(Value::as_str).collect();
        if !texts.is_empty() {
            self.editor.give_back(&texts.join("\n"));
        }
    }

    fn end_shell(&mut self, data: &Value) {
        let output = text(data, "output").trim_end();
        match data["exitCode"].as_i64() {
            Some(0) => self.end_tool(SHELL, output, None, ToolEnd::Done),
            Some(code) => self.end_tool(SHELL, &format!("{output}\nexit code {code}"), None, ToolEnd::Failed),
            None => self.end_tool(SHELL, &format!("{output}\nstopped"), None, ToolEnd::Failed),
        }
    }

    fn learn_commands(&mut self, data: &Value) {
        let pair = |command: &Value| (text(command, "name").to_owned(), text(command, "description").to_owned());
        self.session_commands = data["commands"].as_array().into_iter().flatten().map(pair).collect();
        self.commands = super::commands::own().into_iter().chain(self.session_commands.iter().cloned()).collect();
    }

    fn list_commands(&mut self) {
        if self.session_commands.is_empty() {
            self.say("No extension commands, prompt templates or skills.");
        }
        for (name, about) in self.session_commands.clone() {
            self.say_term(&format!("/{name}"), &about);
        }
    }

    fn show_stats(&mut self, stats: &Value) {
        self.footer.set_stats(stats);
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
        lines.extend(stats["sessionFile"].as_str().map(str::to_owned));
        self.say(&lines.join("\n"));
    }

    fn show_changes(&mut self, data: &Value) {
        let one = |change: &Value| {
            let name = change["name"].as_str().map_or_else(String::new, |name| format!(" {name}"));
            format!("  {} {}{name}", text(change, "change"), text(change, "resource"))
        };
        let lines: Vec<String> = data["changes"].as_array().into_iter().flatten().map(one).collect();
        self.say_lines(&lines, "Nothing has changed.");
        self.ask_commands();
    }

    fn show_diagnostics(&mut self, data: &Value) {
        let one = |found: &Value| {
            let path = found["path"].as_str().map_or_else(String::new, |path| format!("{path}: "));
            format!("  {}: {path}{}", text(found, "type"), text(found, "message"))
        };
        let lines: Vec<String> = data["diagnostics"].as_array().into_iter().flatten().map(one).collect();
        self.say_lines(&lines, "Nothing is wrong.");
    }

    fn say_lines(&mut self, lines: &[String], none: &str) {
        self.say(&if lines.is_empty() { none.to_owned() } else { lines.join("\n") });
    }
}

/// A member that is a text; empty if it is none.
pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}
