//! Settings and resources of a working directory, and whether its own may be used.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pith_ai::agent_dir::AgentDir;
use pith_ai::diagnostic::Diagnostic;
use pith_ai::environment::Environment;
use pith_ai::settings::{self, DefaultTrust as Setting, LoadedSettings, Settings};
use pith_resources::{
    DefaultTrust, GatedResources, Question, ResourceLists, ResourceOptions, Resources, TrustFile, TrustInputs, Verdict,
    decide,
};
use pith_session::{Brought, Contributed, SessionOptions};

use crate::cli::Cli;

/// Puts a yes-or-no question to whoever is there; `None` is no answer.
pub type Ask = Box<dyn Fn(&Question) -> Option<bool> + Send>;

/// Reads what directories bring, under the rules of the command line.
pub struct Project {
    agent_dir: AgentDir,
    home: PathBuf,
    /// `--approve`, `--no-approve`.
    approve: Option<bool>,
    /// A template; directory, trust and settings lists are filled in for each reading.
    flags: ResourceOptions,
    ask: Option<Ask>,
    /// Decisions hold for the life of the process.
    verdicts: HashMap<PathBuf, bool>,
    /// What nobody could be asked so far.
    questions: HashMap<PathBuf, Question>,
}

impl Project {
    /// Of a command line. Without `ask`, nobody's decision means no.
    pub fn new(cli: &Cli, agent_dir: &AgentDir, environment: &Environment, ask: Option<Ask>) -> Self {
        let home = environment.home().to_owned();
        let flags = ResourceOptions {
            agent_dir: agent_dir.path().to_owned(),
            project_dir_name: agent_dir.layout().project_name().to_owned(),
            home: Some(home.clone()),
            no_skills: cli.no_skills,
            no_prompt_templates: cli.no_prompt_templates,
            no_context_files: cli.no_context_files,
            skill_paths: cli.skill_paths.clone(),
            prompt_paths: cli.prompt_paths.clone(),
            skill_names: cli.skill_names.clone(),
            system_prompt: cli.system_prompt.clone(),
            append_system_prompt: cli.append_system_prompt.clone(),
            ..ResourceOptions::default()
        };
        Project {
            agent_dir: agent_dir.clone(),
            home,
            approve: cli.approve,
            flags,
            ask,
            verdicts: HashMap::new(),
            questions: HashMap::new(),
        }
    }

    /// Settings that are in force in a directory.
    pub fn settings(&mut self, cwd: &Path) -> LoadedSettings {
        let user = settings::load(&self.agent_dir, cwd, false);
        let gated = GatedResources::find(cwd, self.agent_dir.layout().project_name(), Some(&self.home));
        let mut problems = Vec::new();
        let is_trusted = self.is_trusted(cwd, &gated, &user.settings, &mut problems);
        let has_own = is_trusted && self.agent_dir.project_settings_file(cwd).exists();
        let mut loaded = if has_own { settings::load(&self.agent_dir, cwd, true) } else { user };
        loaded.diagnostics.extend(problems);
        loaded
    }

    /// Settings and resources that are in force in a directory.
    pub fn read(
        &mut self,
        cwd: &Path,
        contributed: &Contributed,
        options: impl FnOnce(&Settings) -> SessionOptions,
    ) -> Brought {
        let loaded = self.settings(cwd);
        self.bring(cwd, loaded, contributed, options)
    }

    /// Resources, for settings that were read already.
    pub fn bring(
        &self,
        cwd: &Path,
        loaded: LoadedSettings,
        contributed: &Contributed,
        options: impl FnOnce(&Settings) -> SessionOptions,
    ) -> Brought {
        let LoadedSettings { settings, diagnostics } = loaded;
        let resources = self.load(cwd, &settings, contributed);
        let question = self.questions.get(cwd).cloned();
        let is_trusted = self.trusts(cwd);
        let options = options(&settings);
        Brought { resources, options, settings: Arc::new(settings), diagnostics, is_trusted, question }
    }

    /// Resources that are in force in a directory with these settings.
    pub fn resources(&self, cwd: &Path, settings: &Settings) -> Resources {
        self.load(cwd, settings, &Contributed::default())
    }

    fn load(&self, cwd: &Path, settings: &Settings, contributed: &Contributed) -> Resources {
        Resources::load(&ResourceOptions {
            contributed_skills: contributed.skills.clone(),
            contributed_prompts: contributed.prompts.clone(),
            cwd: cwd.to_owned(),
            trusted: self.trusts(cwd),
            user_lists: lists(&settings.user_resources),
            project_lists: lists(&settings.project_resources),
            ..self.flags.clone()
        })
    }

    /// Somebody has said yes, for the life of the process.
    pub fn trust(&mut self, cwd: &Path) {
        self.verdicts.insert(cwd.to_owned(), true);
        self.questions.remove(cwd);
    }

    /// What was decided about a directory whose settings have been read.
    pub fn trusts(&self, cwd: &Path) -> bool {
        self.verdicts.get(cwd).copied().unwrap_or(false)
    }

    fn is_trusted(
        &mut self,
        cwd: &Path,
        gated: &GatedResources,
        user: &Settings,
        problems: &mut Vec<Diagnostic>,
    ) -> bool {
        if let Some(known) = self.verdicts.get(cwd) {
            return *known;
        }
        let file = TrustFile::in_agent_dir(self.agent_dir.path());
        let saved = match gated.is_empty() {
            true => None,
            false => file.decision(cwd).unwrap_or_else(|error| {
                problems.push(Diagnostic::warning("trust_file", self.agent_dir.trust_file(), error.to_string()));
                None
            }),
        };
        let verdict = decide(&TrustInputs {
            is_gated: !gated.is_empty(),
            flag: self.approve,
            extension: None,
            saved,
            default: match user.default_project_trust {
                Setting::Ask => DefaultTrust::Ask,
                Setting::Always => DefaultTrust::Always,
                Setting::Never => DefaultTrust::Never,
            },
        });
        let is_trusted = match verdict {
            Verdict::Trusted => true,
            Verdict::Untrusted => false,
            Verdict::Ask if self.ask.is_none() => {
                self.questions.insert(cwd.to_owned(), gated.question(cwd));
                false
            }
            Verdict::Ask => self.ask_and_save(cwd, gated, &file, problems),
        };
        self.verdicts.insert(cwd.to_owned(), is_trusted);
        is_trusted
    }

    fn ask_and_save(
        &self,
        cwd: &Path,
        gated: &GatedResources,
        file: &TrustFile,
        problems: &mut Vec<Diagnostic>,
    ) -> bool {
        let answer = self.ask.as_ref().and_then(|ask| ask(&gated.question(cwd)));
        if let Some(trusted) = answer
            && let Err(error) = file.save(cwd, trusted)
        {
            problems.push(Diagnostic::warning("trust_file", self.agent_dir.trust_file(), error.to_string()));
        }
        answer.unwrap_or(false)
    }
}

fn lists(settings: &settings::ResourceLists) -> ResourceLists {
    ResourceLists { skills: settings.skills.clone(), prompts: settings.prompts.clone() }
}
