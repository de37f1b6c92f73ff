//! The project a session works in: its instructions, skills, templates and settings, the system prompt made from them,
//! and reading all of it again when it has changed.

mod locale;
mod shown;
mod trust;

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use pith_agent::{Queue, Tool};
use pith_config::{Diagnostic as Finding, Settings};
use pith_protocol::answers::{Commands, Diagnostic, Diagnostics, ResourceChange};
use pith_protocol::commands::{GetCommands, GetDiagnostics};
use pith_resources::{ActiveTool, CommandEntry, ContributedPath, PromptParts, Resources};

use crate::reply::Reply;
use crate::rules::StreamRules;
use crate::session::{Session, SessionOptions};
pub use trust::OpenQuestion;
use trust::TrustQuestion;
pub(crate) use trust::TrustTurn;

/// The files of a working directory, as read at one moment.
pub struct ProjectFiles {
    pub resources: Resources,
    pub settings: Arc<Settings>,
    /// Rules that watch the model's answers.
    pub rules: StreamRules,
    /// The options that follow from the settings. A reload applies only those no command can change.
    pub options: SessionOptions,
    /// Problems with settings and trust; resources have their own.
    pub diagnostics: Vec<Finding>,
    /// Whether the project's own files are used.
    pub is_trusted: bool,
    /// The question whether to trust the project, if it is undecided and the host has not been asked.
    pub question: Option<OpenQuestion>,
}

/// Why the files of a project are read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadReason {
    /// They may have changed.
    Changed,
    /// The host has answered that the project may be trusted.
    Trusted,
    /// The host has answered another session of the directory.
    Decided,
}

/// Reads the files of a working directory, and what extensions contribute.
pub type LoadProject = Box<dyn FnMut(&Path, ReloadReason, &Contributed) -> ProjectFiles + Send>;

/// Skills and templates of extensions, in addition to those of directories and settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contributed {
    pub skills: Vec<ContributedPath>,
    pub prompts: Vec<ContributedPath>,
}

/// The files as last read, and the function that reads them again.
pub(crate) struct Project {
    pub resources: Resources,
    diagnostics: Vec<Finding>,
    pub is_trusted: bool,
    /// The state of the question whether the project may be trusted.
    pub trust: TrustQuestion,
    /// Kept because every later reading needs it too.
    contributed: Contributed,
    load: LoadProject,
    /// The language answers should have.
    locale: Option<String>,
    /// The system prompt made from the resources, the active tools and the language.
    prompt: Arc<str>,
}

impl Project {
    /// Adds to what `get_diagnostics` answers, once.
    pub fn note(&mut self, finding: Finding) {
        if !self.diagnostics.iter().any(|known| known.message == finding.message) {
            self.diagnostics.push(finding);
        }
    }

    /// Creates a project whose prompt is empty until `assemble_prompt` is called.
    pub fn new(files: ProjectFiles, load: LoadProject) -> Self {
        let ProjectFiles { resources, diagnostics, is_trusted, question, .. } = files;
        let (trust, contributed) = (TrustQuestion::of(question), Contributed::default());
        Project { resources, diagnostics, is_trusted, trust, contributed, load, locale: None, prompt: "".into() }
    }

    /// The system prompt, before extensions change it for a run.
    pub fn prompt(&self) -> &Arc<str> {
        &self.prompt
    }

    pub fn locale(&self) -> Option<&str> {
        self.locale.as_deref()
    }

    fn set_locale(&mut self, tag: &str) {
        self.locale = Some(tag.to_owned());
    }

    /// Sets what extensions contribute; `true` if that differs from before.
    pub fn contribute(&mut self, contributed: Contributed) -> bool {
        let is_new = self.contributed != contributed;
        self.contributed = contributed;
        is_new
    }
}

impl Session {
    /// Expands `/skill:name` and `/template`; other texts stay as they are.
    pub(crate) fn expand(&mut self, text: String) -> String {
        if !text.starts_with('/') {
            return text;
        }
        let expansion = self.project.resources.expand(&text);
        let failure = expansion.failure;
        let expanded = match expansion.text {
            Cow::Owned(expanded) => Some(expanded),
            Cow::Borrowed(_) => None,
        };
        if let Some(failure) = failure {
            self.tell_error(&failure.path.to_string_lossy(), failure.event, &failure.message);
        }
        expanded.unwrap_or(text)
    }

    /// Reads the project again if one of its files has changed. Costs a few `stat` calls if none has.
    pub(crate) fn reload_stale_files(&mut self) {
        if self.project.resources.is_stale() {
            self.reload_project(ReloadReason::Changed);
        }
    }

    /// Reads the project again, applies it to the session, and returns what has changed.
    pub(crate) fn reload_project(&mut self, reason: ReloadReason) -> Vec<ResourceChange> {
        let files = (self.project.load)(self.store.cwd(), reason, &self.project.contributed);
        let mut changes: Vec<ResourceChange> =
            files.resources.changes_since(&self.project.resources).into_iter().map(shown::change).collect();
        let is_decided = matches!(reason, ReloadReason::Trusted | ReloadReason::Decided);
        if is_decided {
            self.permissions.reread();
        }
        if files.settings != self.settings {
            changes.push(shown::changed_settings());
            self.models.set_settings(files.settings.clone());
            self.options.merge_settings(&files.options);
            if is_decided {
                self.reset_to_settings(&files.options);
            }
            self.settings = files.settings;
            self.tools.remake(self.store.cwd(), &self.settings);
            self.apply_limits();
            self.out.options_changed();
        }
        self.replace_rules(files.rules);
        self.project.resources = files.resources;
        self.project.diagnostics = files.diagnostics;
        self.project.is_trusted = files.is_trusted;
        self.reload_mcp();
        self.assemble_prompt();
        changes
    }

    /// Applies the settings of a project that was just trusted, including those that commands can change.
    fn reset_to_settings(&mut self, read: &SessionOptions) {
        self.queues.set_mode(Queue::Steering, read.steering_mode);
        self.queues.set_mode(Queue::FollowUp, read.follow_up_mode);
        self.options.interrupt_mode = read.interrupt_mode;
        self.options.auto_compaction = read.auto_compaction;
        self.options.retry.is_enabled = read.retry.is_enabled;
    }

    /// Assembles the system prompt from the active tools and the resources. Equal inputs give equal bytes.
    pub(crate) fn assemble_prompt(&mut self) {
        let prompt = {
            let active = self.tools.active();
            let rules: Vec<Vec<&str>> = active.iter().map(|tool| tool.rules()).collect();
            let tools: Vec<ActiveTool<'_>> =
                active.iter().zip(&rules).map(|(tool, rules)| active_tool(tool, rules)).collect();
            let parts = self.project.resources.prompt_parts(&tools, self.store.cwd());
            let sandbox = self.sandbox_line();
            let (locale, sandbox, servers) = (self.project.locale(), sandbox.as_deref(), &*self.mcp.instructions);
            PromptParts { locale, sandbox, servers, ..parts }.assemble()
        };
        if *self.project.prompt != prompt {
            self.project.prompt = prompt.into();
        }
        self.out.tools(self.tools.active());
    }

    /// Returns what the prompt says about the sandbox.
    pub(crate) fn sandbox_line(&self) -> Option<String> {
        let policy = self.workbench().sandbox.as_ref().and_then(|sandbox| sandbox.policy())?;
        Some(policy.summary())
    }

    pub(crate) fn get_commands(&mut self, reply: Reply<GetCommands>) {
        self.load_mcp();
        let commands = self.commands();
        let commands = commands.into_iter().map(shown::command).collect();
        self.answer(reply, Ok(Commands { commands }));
    }

    /// Slash commands of extensions, then templates and skills, then prompts of MCP servers.
    pub(crate) fn commands(&self) -> Vec<CommandEntry> {
        let mut commands = self.extension_commands();
        commands.extend(self.project.resources.commands());
        commands.extend(self.mcp_commands());
        commands
    }

    pub(crate) fn get_diagnostics(&mut self, reply: Reply<GetDiagnostics>) {
        let mut all: Vec<Diagnostic> = self.permission_findings().iter().map(shown::finding).collect();
        all.extend(self.project.diagnostics.iter().chain(&self.models.registry().diagnostics()).map(shown::finding));
        all.extend(self.project.resources.diagnostics().iter().map(shown::finding));
        all.extend(self.limit_diagnostics().iter().map(shown::finding));
        all.extend(self.mcp_diagnostics().iter().map(shown::finding));
        all.extend(self.extensions.errors.iter().map(shown::unloaded));
        all.extend(self.tracer.as_ref().and_then(|tracer| tracer.problem()).map(shown::untraceable));
        let secrets = self.models.registry().secrets();
        all.iter_mut().for_each(|found| found.message = secrets.redact(&found.message).into_owned());
        self.answer(reply, Ok(Diagnostics { diagnostics: all }));
    }
}

fn active_tool<'a>(tool: &'a Arc<dyn Tool>, rules: &'a [&'a str]) -> ActiveTool<'a> {
    ActiveTool { name: &tool.spec().name, snippet: tool.snippet(), rules }
}

impl SessionOptions {
    /// Takes the options that only settings decide; those a host may have set stay.
    fn merge_settings(&mut self, read: &SessionOptions) {
        let is_enabled = self.retry.is_enabled;
        self.retry = read.retry.clone();
        self.retry.is_enabled = is_enabled;
        self.limits = read.limits;
        self.session_limits = read.session_limits.clone();
        self.block_images = read.block_images;
        self.fsync = read.fsync;
    }
}
