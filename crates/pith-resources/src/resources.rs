//! All resources of a session, loaded once and replaced as a whole by a reload.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use globset::{Glob, GlobMatcher};
use pith_config::{Collision, Diagnostic, DiagnosticKind};

use crate::changes::{self, ResourceChange};
use crate::commands::CommandEntry;
use crate::context_files::{self, ContextFile};
use crate::discovery::{self, Located, Resource};
use crate::notes::Notes;
use crate::options::ResourceOptions;
use crate::prompt_files;
use crate::scan::Candidate;
use crate::skills::{self, Skill};
use crate::source_info::SourceInfo;
use crate::system_prompt::{ActiveTool, ListedSkill, PromptParts};
use crate::templates::{self, PromptTemplate};

/// Skills, templates, context files and prompt texts. Bodies of skills and templates stay on disk until used.
#[derive(Debug, Default)]
pub struct Resources {
    skills: Vec<Skill>,
    templates: Vec<PromptTemplate>,
    context_files: Vec<ContextFile>,
    custom_prompt: Option<String>,
    append_prompts: Vec<String>,
    pub(crate) notes: Notes,
}

/// A user's text after expansion.
#[derive(Debug, PartialEq, Eq)]
pub struct Expansion<'t> {
    /// The text to use; the one given if it names nothing.
    pub text: Cow<'t, str>,
    /// Why a skill or template could not be read, or what was left out of it.
    pub failure: Option<ExpansionFailure>,
}

/// Why an expansion failed. Hosts get it as an `extension_error` event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpansionFailure {
    /// The file; the event's `extensionPath`.
    pub path: PathBuf,
    /// `skill_expansion` or `prompt_expansion`.
    pub event: &'static str,
    pub message: String,
}

impl Resources {
    /// Looks for everything the options ask for. Never fails: what is wrong becomes a diagnostic.
    pub fn load(options: &ResourceOptions) -> Resources {
        let mut notes = Notes::following(options.followed.clone());
        let context_files = if options.no_context_files {
            Vec::new()
        } else {
            context_files::load(&options.agent_dir, &options.cwd, &mut notes)
        };
        let custom_prompt = prompt_files::custom(options, &mut notes);
        let append_prompts = prompt_files::appended(options, &mut notes);
        let skills = load_skills(options, &mut notes);
        let templates = load_templates(options, &mut notes);
        Resources { skills, templates, context_files, custom_prompt, append_prompts, notes }
    }

    /// Returns the skills in order of precedence.
    pub fn skills(&self) -> &[Skill] {
        &self.skills
    }

    /// Returns the templates in order of precedence.
    pub fn templates(&self) -> &[PromptTemplate] {
        &self.templates
    }

    /// Returns the context files, outermost first.
    pub fn context_files(&self) -> &[ContextFile] {
        &self.context_files
    }

    /// Returns the text that replaces the built-in prompt.
    pub fn custom_prompt(&self) -> Option<&str> {
        self.custom_prompt.as_deref()
    }

    /// Returns texts added to the prompt.
    pub fn append_prompts(&self) -> &[String] {
        &self.append_prompts
    }

    /// Returns the diagnostics of the load.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.notes.diagnostics
    }

    /// Returns templates and skills as `get_commands` lists them, after the extensions' commands.
    pub fn commands(&self) -> Vec<CommandEntry> {
        let templates = self.templates.iter().map(CommandEntry::prompt);
        templates.chain(self.skills.iter().map(CommandEntry::skill)).collect()
    }

    /// Expands `/skill:name arguments` and `/template arguments`. Text that names neither stays as it is.
    pub fn expand<'t>(&self, text: &'t str) -> Expansion<'t> {
        let Some((name, arguments)) = skill_call(text) else { return self.expand_template(text) };
        match self.skills.iter().find(|skill| skill.name == name) {
            Some(skill) => {
                expansion(text, &skill.path, "skill_expansion", skill.expand(arguments, &self.notes.followed))
            }
            None => self.expand_template(text),
        }
    }

    /// Expands templates only.
    pub fn expand_template<'t>(&self, text: &'t str) -> Expansion<'t> {
        let call = template_call(text);
        let named = |name| self.templates.iter().find(|template| template.name == name);
        match call.and_then(|(name, arguments)| Some((named(name)?, arguments))) {
            Some((template, arguments)) => {
                expansion(text, &template.path, "prompt_expansion", template.expand(arguments, &self.notes.followed))
            }
            None => Expansion { text: text.into(), failure: None },
        }
    }

    /// Returns what these resources contribute to the system prompt. The rest of the parts may be filled in afterwards.
    pub fn prompt_parts<'a>(&'a self, tools: &'a [ActiveTool<'a>], cwd: &'a Path) -> PromptParts<'a> {
        let visible = self.skills.iter().filter(|skill| !skill.disable_model_invocation);
        PromptParts {
            tools,
            cwd,
            custom: self.custom_prompt(),
            append: &self.append_prompts,
            context_files: &self.context_files,
            skills: visible.map(ListedSkill::from).collect(),
            ..PromptParts::default()
        }
    }

    /// Whether any file or directory this result depends on has changed since the load. Costs one `stat` for each of
    /// them.
    pub fn is_stale(&self) -> bool {
        self.notes.is_stale()
    }

    /// Returns what is different from an earlier load.
    pub fn changes_since(&self, earlier: &Resources) -> Vec<ResourceChange> {
        changes::between(earlier, self)
    }
}

fn load_skills(options: &ResourceOptions, notes: &mut Notes) -> Vec<Skill> {
    let located = discovery::discover(Resource::Skill, options, notes);
    let mut skills = load_each(located, notes, skills::load, |skill| (&skill.name, &skill.path), Resource::Skill);
    if !options.skill_names.is_empty() {
        let globs: Vec<_> = options.skill_names.iter().filter_map(|glob| name_glob(glob, options, notes)).collect();
        skills.retain(|skill| globs.iter().any(|glob| glob.is_match(&skill.name)));
    }
    skills
}

fn load_templates(options: &ResourceOptions, notes: &mut Notes) -> Vec<PromptTemplate> {
    let located = discovery::discover(Resource::Prompt, options, notes);
    load_each(located, notes, templates::load, |template| (&template.name, &template.path), Resource::Prompt)
}

/// Loads candidates in order. A file found twice is read once; of two with the same name the first one stays.
fn load_each<T>(
    located: Vec<Located>,
    notes: &mut Notes,
    load: fn(Candidate, SourceInfo, &mut Notes) -> Option<T>,
    identity: fn(&T) -> (&String, &PathBuf),
    resource: Resource,
) -> Vec<T> {
    let mut loaded: Vec<T> = Vec::with_capacity(located.len());
    let mut by_name: HashMap<String, usize> = HashMap::with_capacity(located.len());
    let mut seen = HashSet::with_capacity(located.len());
    for Located { candidate, source_info } in located {
        if !seen.insert(candidate.real.clone()) {
            continue;
        }
        let Some(item) = load(candidate, source_info, notes) else { continue };
        let (name, path) = identity(&item);
        match by_name.get(name) {
            Some(&winner) => {
                let (_, winner) = identity(&loaded[winner]);
                notes.diagnostics.push(collision(resource, name, winner, path));
            }
            None => {
                by_name.insert(name.clone(), loaded.len());
                loaded.push(item);
            }
        }
    }
    loaded
}

fn collision(resource: Resource, name: &str, winner: &Path, loser: &Path) -> Diagnostic {
    let (resource_type, code, shown) = match resource {
        Resource::Skill => ("skill", "skill_collision", name.to_owned()),
        Resource::Prompt => ("prompt", "prompt_collision", format!("/{name}")),
    };
    Diagnostic {
        kind: DiagnosticKind::Collision,
        message: format!("name \"{shown}\" collision"),
        path: Some(loser.to_path_buf()),
        code,
        collision: Some(Collision {
            resource_type,
            name: name.to_owned(),
            winner_path: winner.to_path_buf(),
            loser_path: loser.to_path_buf(),
        }),
    }
}

fn name_glob(glob: &str, options: &ResourceOptions, notes: &mut Notes) -> Option<GlobMatcher> {
    match Glob::new(glob.trim()) {
        Ok(glob) => Some(glob.compile_matcher()),
        Err(error) => {
            let message = format!("skill name pattern is ignored: {error}");
            notes.diagnostics.push(Diagnostic::warning("pattern_invalid", &options.cwd, message));
            None
        }
    }
}

/// Splits `/skill:name arguments`; only a space ends the name.
fn skill_call(text: &str) -> Option<(&str, &str)> {
    let call = text.strip_prefix("/skill:")?;
    Some(call.split_once(' ').unwrap_or((call, "")))
}

/// Splits `/name arguments`; any white space ends the name.
fn template_call(text: &str) -> Option<(&str, &str)> {
    let call = text.strip_prefix('/')?;
    let (name, arguments) = call.split_once(char::is_whitespace).unwrap_or((call, ""));
    (!name.is_empty()).then_some((name, arguments))
}

fn expansion<'t>(text: &'t str, path: &Path, event: &'static str, read: io::Result<(String, bool)>) -> Expansion<'t> {
    let failure = |message| Some(ExpansionFailure { path: path.to_path_buf(), event, message });
    match read {
        Ok((expanded, false)) => Expansion { text: expanded.into(), failure: None },
        Ok((expanded, true)) => {
            let message = format!("file is too long: only the first {} bytes were used", skills::MAX_BODY);
            Expansion { text: expanded.into(), failure: failure(message) }
        }
        Err(error) => {
            Expansion { text: text.into(), failure: failure(format!("cannot read {}: {error}", path.display())) }
        }
    }
}
