//! What a submitted text means: a message, a shell command, or a slash command.

use serde_json::{Map, Value, json};

use super::answers::Expected;
use super::{Action, App};
use crate::modes::attach::{Draft, resolve};
use crate::modes::chat::theme;

/// How a message joins a run that is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joins {
    /// At the next pause.
    Steering,
    /// When the run would end.
    FollowUp,
}

/// A command that only the session may know.
#[derive(Clone, Debug, PartialEq)]
pub struct Submitted {
    name: String,
    line: String,
    joins: Joins,
}

/// Name, arguments, description.
const COMMANDS: &[(&str, &str, &str)] = &[
    ("help", "", "this list"),
    ("model", "[search]", "choose a model"),
    ("thinking", "[level]", "choose how hard the model thinks"),
    ("new", "", "start a new session"),
    ("resume", "[search]", "go on with an earlier session of this directory"),
    ("fork", "[search]", "a new session from before one of your messages"),
    ("tree", "[search]", "go on from another place of this session"),
    ("undo", "[search]", "put files back to before one of the tool calls"),
    ("clone", "", "go on in a copy of this session"),
    ("name", "<text>", "name this session"),
    ("show", "[number]", "the output of a tool in full; Ctrl-O shows the last one"),
    ("stats", "", "messages, tokens and cost so far"),
    ("compact", "[what matters]", "summarise the conversation to make room"),
    ("export", "[file]", "write the conversation as HTML"),
    ("commands", "", "commands of extensions, prompt templates and skills"),
    ("reload", "", "read settings, extensions, skills, templates and AGENTS.md again"),
    ("diagnostics", "", "what is wrong with them"),
    ("retry", "on|off", "ask again after failures that pass"),
    ("rpc", "<json>", "any command of the protocol, such as {\"type\":\"get_state\"}"),
    ("quit", "", "leave"),
];

/// Keys that `/help` explains.
const KEYS: &[(&str, &str)] = &[
    ("Enter", "send; while the agent works, join at its next pause"),
    ("Alt-Enter", "a new line; while the agent works, send when it is done"),
    ("Esc, Ctrl-C", "stop, and take back what is queued; Ctrl-C twice leaves"),
    ("Ctrl-O", "the last tool output in full, again for the one before"),
    ("Shift-Tab", "the next thinking level"),
    ("Ctrl-_", "undo; Ctrl-W, Ctrl-U, Ctrl-K cut, Ctrl-Y puts back"),
    ("↑ ↓", "earlier messages"),
    ("!<command>", "run a shell command; its output is part of the conversation"),
    ("@<file>", "attach a file or picture to a message; Tab completes"),
];

/// The chat's own commands, with their explanations.
pub fn own() -> Vec<(String, String)> {
    COMMANDS.iter().map(|(name, _, help)| ((*name).to_owned(), (*help).to_owned())).collect()
}

impl App {
    /// Takes a text that the user has sent.
    pub(super) fn submit(&mut self, line: &str, joins: Joins) {
        if line.trim().is_empty() {
            return;
        }
        if line.starts_with(char::is_whitespace) {
            return self.message(line.trim(), joins);
        }
        if let Some(command) = line.strip_prefix('!') {
            return self.shell(command.trim());
        }
        let Some(call) = line.strip_prefix('/') else { return self.message(line, joins) };
        let (name, argument) = call.split_once(char::is_whitespace).unwrap_or((call, ""));
        if COMMANDS.iter().any(|(known, ..)| *known == name) {
            self.say_styled(&format!("› {line}"), theme::dim());
        }
        self.command(name, argument.trim(), line, joins);
    }

    fn command(&mut self, name: &str, argument: &str, line: &str, joins: Joins) {
        let search = argument.to_owned();
        match name {
            "quit" | "exit" | "q" => self.actions.push(Action::Leave),
            "help" => self.help(),
            "model" | "models" => self.send(json!({"type": "get_available_models"}), Expected::Models(search)),
            "thinking" => self.send(json!({"type": "get_available_thinking_levels"}), Expected::Levels(search)),
            "new" => self.send(json!({"type": "new_session"}), Expected::Done("A new session.".to_owned())),
            "resume" | "sessions" => self.send(json!({"type": "list_sessions"}), Expected::Sessions(search)),
            "fork" => self.send(json!({"type": "get_fork_messages"}), Expected::ForkMessages(search)),
            "tree" => self.send(json!({"type": "get_tree", "flat": true}), Expected::Tree(search)),
            "undo" => self.send(json!({"type": "list_checkpoints"}), Expected::Checkpoints(search)),
            "clone" => self.send(json!({"type": "clone"}), Expected::Done("This is the copy.".to_owned())),
            "name" => {
                let command = json!({"type": "set_session_name", "name": argument});
                self.send(command, Expected::Done("Named.".to_owned()));
            }
            "show" => match argument.parse() {
                Ok(number) => self.show(Some(number)),
                Err(_) if argument.is_empty() => self.show(None),
                Err(_) => self.complain("/show takes a number, as it stands beside an output"),
            },
            "stats" => self.send(json!({"type": "get_session_stats"}), Expected::ShownStats),
            "compact" => self.compact(argument),
            "export" => self.export(argument),
            "commands" => self.send(json!({"type": "get_commands"}), Expected::ShownCommands),
            "reload" => self.send(json!({"type": "reload"}), Expected::Reloaded),
            "diagnostics" => self.send(json!({"type": "get_diagnostics"}), Expected::Diagnostics),
            "retry" => {
                let enabled = argument != "off";
                self.send(json!({"type": "set_auto_retry", "enabled": enabled}), Expected::Done("Done.".to_owned()));
            }
            "rpc" => self.raw(argument),
            // A path is a message, and commands of extensions, templates and skills are the session's.
            name if name.contains('/') || self.session_commands.iter().any(|(known, _)| known == name) => {
                self.message(line, joins);
            }
            // It may be one that the session has got since it was asked.
            name => {
                let submitted = Submitted { name: name.to_owned(), line: line.to_owned(), joins };
                self.send(json!({"type": "get_commands"}), Expected::CommandsFor(submitted));
            }
        }
    }

    /// Called when all commands of the session are known.
    pub(super) fn resubmit(&mut self, submitted: &Submitted) {
        if self.session_commands.iter().any(|(known, _)| *known == submitted.name) {
            self.message(&submitted.line, submitted.joins);
        } else {
            self.unknown(&submitted.name);
        }
    }

    fn unknown(&mut self, name: &str) {
        let near = self.commands.iter().map(|(known, _)| (strsim::osa_distance(known, name), known)).min();
        let near = near.filter(|(distance, _)| *distance <= 2).map(|(_, known)| format!(" (/{known}?)"));
        self.complain(&format!(
            "there is no /{name}{}; /help lists commands, and a space in front makes it a message",
            near.unwrap_or_default()
        ));
    }

    /// Sends a message; `@file` in it attaches the file if it exists.
    fn message(&mut self, line: &str, joins: Joins) {
        let words = line.split_whitespace().filter_map(|word| word.strip_prefix('@')).filter(|word| !word.is_empty());
        let is_file = |word: &&str| resolve(word, &self.setup.cwd, &self.setup.home).is_file();
        let (files, others): (Vec<&str>, Vec<&str>) = words.partition(is_file);
        for other in others {
            self.say(&format!("! there is no file {other}; @{other} is sent as text"));
        }
        let mut draft = Draft::default();
        for file in files {
            let path = resolve(file, &self.setup.cwd, &self.setup.home);
            if let Err(error) = draft.attach(&path, self.setup.rules) {
                self.editor.set(line);
                return self.complain(&format!("{error:#}"));
            }
        }
        draft.push(line);
        let Some(mut prompt) = draft.into_prompt() else { return };
        prompt["streamingBehavior"] = match joins {
            Joins::Steering => "steer".into(),
            Joins::FollowUp => "followUp".into(),
        };
        self.send(prompt, Expected::Prompt);
    }

    fn shell(&mut self, command: &str) {
        if command.is_empty() {
            return;
        }
        if self.is_shell_running() {
            return self.complain("a shell command is running; Esc stops it");
        }
        self.start_shell(command);
        self.send(json!({"type": "bash", "command": command}), Expected::Shell);
    }

    pub(super) fn is_shell_running(&self) -> bool {
        self.tools.iter().any(|tool| tool.id == super::tools::SHELL)
    }

    fn compact(&mut self, instructions: &str) {
        let mut command = json!({"type": "compact"});
        if !instructions.is_empty() {
            command["customInstructions"] = instructions.into();
        }
        self.begin_work("summarising the conversation");
        self.send(command, Expected::Compacted);
    }

    fn export(&mut self, file: &str) {
        let mut command = json!({"type": "export_html"});
        if !file.is_empty() {
            command["outputPath"] = file.into();
        }
        self.send(command, Expected::Exported);
    }

    fn help(&mut self) {
        let commands = COMMANDS.iter().map(|(name, arguments, help)| (format!("/{name} {arguments}"), *help));
        let keys = KEYS.iter().map(|(name, help)| ((*name).to_owned(), *help));
        for (name, help) in commands.chain(keys) {
            self.say_term(&name, help);
        }
    }

    /// Sends any command of the protocol and shows its answer.
    fn raw(&mut self, argument: &str) {
        match serde_json::from_str::<Map<String, Value>>(argument) {
            Err(error) => self.complain(&format!("not a command object: {error}")),
            Ok(command) if command.get("type").is_some_and(|kind| kind == "prompt") => {
                self.send(command.into(), Expected::Prompt);
            }
            Ok(command) => self.send(command.into(), Expected::Raw),
        }
    }
}
