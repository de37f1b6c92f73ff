//! What people brought along: instructions, skills, templates, settings; and
//! reading all of it again when it has changed.

use std::path::Path;
use std::sync::Arc;

use pith_agent::{Queue, Tool};
use pith_ai::settings::Settings;
use pith_protocol::Event;
use pith_protocol::commands::{GetCommands, GetDiagnostics, Reload};
use pith_resources::{ActiveTool, CommandEntry, ContributedPath, PromptParts, Question, Resources};
use serde_json::{Value, json};

use crate::reply::Reply;
use crate::session::{Session, SessionOptions};

/// One reading of the files of a working directory.
pub struct Brought {
    pub resources: Resources,
    pub settings: Arc<Settings>,
    /// What follows from the settings. Only what no command can change is taken over by a reload.
    pub options: SessionOptions,
    /// About settings and trust; resources have their own.
    pub diagnostics: Vec<pith_ai::diagnostic::Diagnostic>,
    /// Whether the project's own files are in force.
    pub is_trusted: bool,
    /// What to ask about the project, if nobody has decided and nobody could be asked.
    pub question: Option<Question>,
}

/// Why files are read another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// They may have changed.
    Again,
    /// The host has said that the project may be trusted.
    Trusted,
}

/// Reads the files of a working directory, and what extensions bring along.
pub type ReadAgain = Box<dyn FnMut(&Path, Reading, &Contributed) -> Brought + Send>;

/// Skills and templates of extensions, beside those of directories and settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contributed {
    pub skills: Vec<ContributedPath>,
    pub prompts: Vec<ContributedPath>,
}

/// The latest reading and the way to another one.
pub(crate) struct Library {
    pub resources: Resources,
    diagnostics: Vec<pith_ai::diagnostic::Diagnostic>,
    pub is_trusted: bool,
    /// Kept, so that every later reading has it too.
    contributed: Contributed,
    read_again: ReadAgain,
}

impl Library {
    pub fn new(brought: Brought, read_again: ReadAgain) -> Self {
        let Brought { resources, diagnostics, is_trusted, .. } = brought;
        Library { resources, diagnostics, is_trusted, contributed: Contributed::default(), read_again }
    }

    /// Takes what extensions bring along from here on; `true` if that is something else than before.
    pub fn contribute(&mut self, contributed: Contributed) -> bool {
        let is_new = self.contributed != contributed;
        self.contributed = contributed;
        is_new
    }
}

impl Session {
    /// Expands `/skill:name` and `/template`; what names neither stays as it is.
    pub(crate) fn expand(&mut self, text: String) -> String {
        if !text.starts_with('/') {
            return text;
        }
        let expansion = self.library.resources.expand(&text);
        let failure = expansion.failure;
        let expanded = match expansion.text {
            std::borrow::Cow::Owned(expanded) => Some(expanded),
            std::borrow::Cow::Borrowed(_) => None,
        };
        if let Some(failure) = failure {
            self.out.event(&Event::ExtensionError {
                extension_path: &failure.path.to_string_lossy(),
                event: failure.event,
                error: &failure.message,
            });
        }
        expanded.unwrap_or(text)
    }

    /// Reads resources again if a file they came from is another one now. A few `stat` calls when nothing is.
    pub(crate) fn freshen(&mut self) {
        if self.library.resources.is_stale() {
            self.read_again();
        }
    }

    pub(crate) fn reload_files(&mut self, reply: Reply<Reload>) {
        self.reload(move |session, changes| session.answer(reply, Ok(json!({ "changes": changes }))));
    }

    /// Puts the files of the session's directory in force and tells what is different.
    pub(crate) fn read_again(&mut self) -> Vec<Value> {
        self.read_as(Reading::Again)
    }

    pub(crate) fn read_as(&mut self, reading: Reading) -> Vec<Value> {
        let brought = (self.library.read_again)(self.store.cwd(), reading, &self.library.contributed);
        let value = |change| serde_json::to_value(change).expect("wire types always serialize");
        let mut changes: Vec<Value> =
            brought.resources.changes_since(&self.library.resources).into_iter().map(value).collect();
        if brought.settings != self.settings {
            changes.push(json!({"change": "changed", "resource": "settings"}));
            self.models.set_settings(brought.settings.clone());
            self.options.take_over(&brought.options);
            if reading == Reading::Trusted {
                self.begin_with(&brought.options);
            }
            self.settings = brought.settings;
            self.renew_tools();
        }
        self.library.resources = brought.resources;
        self.library.diagnostics = brought.diagnostics;
        self.library.is_trusted = brought.is_trusted;
        self.assemble_prompt();
        changes
    }

    /// The built-in tools as the settings want them now.
    fn renew_tools(&mut self) {
        let (workbench, tools) = (self.relocation)(self.store.cwd(), &self.settings, Some(&self.workbench));
        self.workbench = workbench;
        self.tools.set_defaults(self.settings.default_tools.clone());
        self.tools.relocate(tools);
        self.publish_conditions();
    }

    /// What a host can change starts as the settings of a project say that is trusted only now.
    fn begin_with(&mut self, read: &SessionOptions) {
        self.queues.set_mode(Queue::Steering, read.steering_mode);
        self.queues.set_mode(Queue::FollowUp, read.follow_up_mode);
        self.options.interrupt_mode = read.interrupt_mode;
        self.options.auto_compaction = read.auto_compaction;
        self.options.retry.is_enabled = read.retry.is_enabled;
    }

    /// The system prompt of the active tools and resources. Equal inputs give equal bytes.
    pub(crate) fn assemble_prompt(&mut self) {
        let prompt = {
            let active = self.tools.active();
            let rules: Vec<Vec<&str>> = active.iter().map(|tool| tool.rules()).collect();
            let tools: Vec<ActiveTool<'_>> =
                active.iter().zip(&rules).map(|(tool, rules)| mention(tool, rules)).collect();
            let parts = self.library.resources.prompt_parts(&tools, self.store.cwd());
            PromptParts { locale: self.tools.locale(), ..parts }.assemble()
        };
        self.tools.set_prompt(prompt);
    }

    pub(crate) fn get_commands(&mut self, reply: Reply<GetCommands>) {
        let commands = self.commands();
        self.answer(reply, Ok(json!({ "commands": commands })));
    }

    /// Commands of extensions, then templates and skills.
    pub(crate) fn commands(&self) -> Vec<CommandEntry> {
        let mut commands = self.extension_commands();
        commands.extend(self.library.resources.commands());
        commands
    }

    pub(crate) fn get_diagnostics(&mut self, reply: Reply<GetDiagnostics>) {
        let mut all: Vec<Value> = Vec::new();
        all.extend(
            self.library.diagnostics.iter().chain(&self.models.registry().diagnostics()).map(|found| json!(found)),
        );
        all.extend(self.library.resources.diagnostics().iter().map(|found| json!(found)));
        let unloaded = self.extensions.errors.iter();
        all.extend(unloaded.map(
            |found| json!({"type": "error", "message": found.error, "path": found.path, "code": "extension_load"}),
        ));
        self.answer(reply, Ok(json!({ "diagnostics": all })));
    }
}

fn mention<'a>(tool: &'a Arc<dyn Tool>, rules: &'a [&'a str]) -> ActiveTool<'a> {
    ActiveTool { name: &tool.spec().name, snippet: tool.snippet(), rules }
}

impl SessionOptions {
    /// Takes what only settings decide; what a host may have set stays as it is.
    fn take_over(&mut self, read: &SessionOptions) {
        let is_enabled = self.retry.is_enabled;
        self.retry = read.retry.clone();
        self.retry.is_enabled = is_enabled;
        self.max_turns = read.max_turns;
        self.block_images = read.block_images;
        self.fsync = read.fsync;
    }
}
