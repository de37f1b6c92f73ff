//! How sessions are opened: the command line gives the defaults, the editor the rest.

use std::path::{Path, PathBuf};

use pith_acp::acp::{ContentBlock, Error, McpServer, Meta, SystemPrompt, SystemPromptMode};
use pith_acp::error::{internal, invalid_params};
use pith_acp::options::Choices;
use pith_ai::select::Defaults;
use pith_config::{AgentDir, Environment, settings};
use pith_protocol::ThinkingLevel;
use pith_resources::PromptText;
use pith_session::{SessionPlaces, ToolFlags};
use pith_store::StoreError;
use pith_tools::process::Supervisor;
use serde_json::Value;

use crate::cli::Cli;
use crate::dialect::Dialect;
use crate::open::{OpenRequest, WrongModel, agent_dir};
use crate::sessions::places;

/// What all sessions of this process begin with.
pub struct Launch {
    cli: Cli,
    dialect: &'static Dialect,
    environment: Environment,
    agent_dir: AgentDir,
    supervisor: Option<Supervisor>,
    /// Where pith was started; sessions have directories of their own.
    cwd: PathBuf,
}

/// What an editor says about a session that it opens.
#[derive(Default)]
pub struct Wanted {
    pub cwd: PathBuf,
    pub additional_directories: Vec<PathBuf>,
    pub mcp_servers: Vec<McpServer>,
    pub system_prompt: Option<SystemPrompt>,
    pub meta: Option<Meta>,
}

impl Wanted {
    /// What `_meta.pith` says.
    fn own(&self) -> Option<&Value> {
        self.meta.as_ref()?.get("pith")
    }
}

/// Which session is opened.
pub enum Which<'a> {
    New,
    /// A new one where the same is chosen as in another.
    Like(&'a Choices),
    Saved(&'a Path),
    CopyOf(&'a Path),
}

impl Launch {
    pub fn new(cli: Cli, dialect: &'static Dialect) -> anyhow::Result<Self> {
        let environment = Environment::of_process();
        let agent_dir = agent_dir(dialect, &environment);
        let supervisor = Supervisor::this_program().ok();
        Ok(Launch { cli, dialect, environment, agent_dir, supervisor, cwd: crate::current_dir()? })
    }

    /// Where sessions of a directory are kept, and those of all.
    pub fn places(&self, cwd: Option<&Path>) -> SessionPlaces {
        let cwd = cwd.unwrap_or(&self.cwd);
        let setting = settings::session_dir(&self.agent_dir, cwd);
        places(self.cli.session_dir.clone(), &self.environment, setting.as_deref(), &self.agent_dir, cwd)
    }

    /// Checks what an editor says about a session.
    pub fn check(&self, wanted: &Wanted) -> Result<(), Error> {
        self.request(wanted, &Which::New).map(drop)
    }

    /// Makes the request that opens a session.
    pub fn request(&self, wanted: &Wanted, which: &Which<'_>) -> Result<OpenRequest, Error> {
        let cwd = directory("cwd", &wanted.cwd)?;
        let mut cli = self.cli.clone();
        // What its user has chosen in a session outlasts the flags of an editor's configuration.
        cli.permissions.mode_is_default = true;
        match which {
            Which::New => {}
            Which::Like(choices) => set_choices(&mut cli, choices),
            Which::Saved(path) => cli.sessions.open = Some(path.to_string_lossy().into_owned()),
            Which::CopyOf(path) => cli.sessions.fork = Some(path.to_string_lossy().into_owned()),
        }
        let mut roots = Vec::new();
        for (index, path) in wanted.additional_directories.iter().enumerate() {
            roots.push(directory(&format!("additionalDirectories[{index}]"), path)?);
        }
        if !roots.is_empty() {
            let names: Vec<_> = roots.iter().map(|root| root.display().to_string()).collect();
            let line = format!("Further directories of this project: {}", names.join(", "));
            cli.append_system_prompt.push(PromptText::Literal(line));
        }
        match &wanted.system_prompt {
            Some(prompt) => set_system_prompt(&mut cli, prompt)?,
            None => set_older_system_prompt(&mut cli, wanted.meta.as_ref())?,
        }
        let defaults = set_own(&mut cli, wanted.own())?;
        Ok(OpenRequest {
            cwd,
            environment: self.environment.clone(),
            arguments: cli,
            defaults,
            dialect: self.dialect,
            // Extensions know no other word for a program at the other end.
            mode: pith_ext::Mode::Rpc,
            ask: None,
            supervisor: self.supervisor.clone(),
            additional_roots: roots,
            // Those that it cannot show are declined, not taken apart.
            takes_forms: true,
            is_replaceable: false,
            // The question stays open in the editor until its user answers.
            trust_answer_limit: None,
            shares_thread: true,
        })
    }

    /// Whether the command line names a model, so that its absence is told by its own error.
    pub fn names_model(&self) -> bool {
        self.cli.model.is_some() || self.cli.provider.is_some() || self.cli.script.is_some()
    }
}

/// Checks a path that the editor names.
pub fn absolute(field: &str, path: &Path) -> Result<(), Error> {
    if path.is_absolute() {
        return Ok(());
    }
    Err(invalid_params(field, format!("{field} must be an absolute path: {}", path.display())))
}

/// Checks a directory that the editor names.
fn directory(field: &str, path: &Path) -> Result<PathBuf, Error> {
    absolute(field, path)?;
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(path.to_owned()),
        Ok(_) => Err(invalid_params(field, format!("{field} is not a directory: {}", path.display()))),
        Err(error) => Err(invalid_params(field, format!("{field}: {}: {error}", path.display()))),
    }
}

/// Makes a session begin with what is chosen in another.
fn set_choices(cli: &mut Cli, choices: &Choices) {
    if let Some(model) = &choices.model {
        cli.provider = Some(model.provider.clone());
        cli.model = Some(model.id.clone());
    }
    cli.thinking = Some(choices.level);
    cli.permissions.mode = Some(choices.mode);
}

fn set_system_prompt(cli: &mut Cli, prompt: &SystemPrompt) -> Result<(), Error> {
    let mut text = String::new();
    for (index, block) in prompt.content.iter().enumerate() {
        match block {
            ContentBlock::Text(block) => text.push_str(&block.text),
            _ => {
                let field = format!("systemPrompt.content[{index}]");
                return Err(invalid_params(&field, "The system prompt can only have text"));
            }
        }
    }
    match &prompt.mode {
        SystemPromptMode::Append => cli.append_system_prompt.push(PromptText::Literal(text)),
        SystemPromptMode::Override => cli.system_prompt = Some(PromptText::Literal(text)),
        other => {
            let word = pith_protocol::json::to_string(other);
            let why = format!("Unknown mode of the system prompt: {word}. There are: append, override");
            return Err(invalid_params("systemPrompt.mode", why));
        }
    }
    Ok(())
}

/// The form in which acpx sends a system prompt: a text that replaces, or `{"append": text}`.
fn set_older_system_prompt(cli: &mut Cli, meta: Option<&Meta>) -> Result<(), Error> {
    let Some(value) = meta.and_then(|meta| meta.get("systemPrompt")) else { return Ok(()) };
    match (value, value.get("append")) {
        (Value::Null, _) => {}
        (Value::String(text), _) => cli.system_prompt = Some(PromptText::Literal(text.clone())),
        (_, Some(Value::String(text))) => cli.append_system_prompt.push(PromptText::Literal(text.clone())),
        _ => {
            return Err(invalid_params("_meta.systemPrompt", "Expected a string, or an object with the string append"));
        }
    }
    Ok(())
}

/// Takes what `_meta.pith` says of a session; returns which flags it leaves to be defaults.
fn set_own(cli: &mut Cli, own: Option<&Value>) -> Result<Defaults, Error> {
    let mut defaults = Defaults { model: true, thinking: true };
    let Some(own) = own else { return Ok(defaults) };
    let text = |key: &str| match own.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(invalid_params(&format!("_meta.pith.{key}"), format!("_meta.pith.{key} must be a string"))),
    };
    if let Some(model) = text("model")? {
        cli.model = Some(model);
        cli.provider = None;
        defaults.model = false;
    }
    if let Some(word) = text("thinkingLevel")? {
        let level = ThinkingLevel::parse(&word);
        let field = "_meta.pith.thinkingLevel";
        cli.thinking = Some(level.ok_or_else(|| invalid_params(field, format!("Unknown thinking level: {word}")))?);
        defaults.thinking = false;
    }
    if let Some(name) = text("name")? {
        cli.name = Some(name);
    }
    if let Some(tools) = own.get("tools").filter(|tools| !tools.is_null()) {
        let field = "_meta.pith.tools";
        let names: Vec<String> = serde_json::from_value(tools.clone())
            .map_err(|_| invalid_params(field, "_meta.pith.tools must be a list of names"))?;
        if let Some(problem) = ToolFlags::problem(&names) {
            return Err(invalid_params(field, format!("{field}: {problem}")));
        }
        cli.tools = Some(names);
    }
    Ok(defaults)
}

/// Why a session could not be opened.
pub fn refusal(failure: &anyhow::Error, wanted: &Wanted) -> Error {
    let names_model = wanted.own().and_then(|own| own.get("model")).is_some_and(Value::is_string);
    if names_model && failure.is::<WrongModel>() {
        return invalid_params("_meta.pith.model", failure.to_string());
    }
    match failure.downcast_ref::<StoreError>() {
        Some(StoreError::InUse { pid: Some(pid), .. }) => internal(format!("Session is in use by process {pid}")),
        _ => internal(format!("{failure:#}")),
    }
}
