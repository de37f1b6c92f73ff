//! Settings and resources of a working directory, and whether its own may be used.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pith_config::settings::{self, LoadedSettings, Settings};
use pith_config::{AgentDir, Diagnostic, Environment};
use pith_ext::TrustDecision;
use pith_resources::{
    GatedResources, PackageResources, Question, ResourceOptions, Resources, Scope, TrustFile, TrustInputs, Verdict,
    decide,
};
use pith_session::{Contributed, ProjectFiles, SessionOptions, StreamRules};

use crate::cli::Cli;
use crate::packages::{self, Package, Shelves};
use crate::warn;

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
    verdicts: Verdicts,
    /// What nobody could be asked so far.
    questions: HashMap<PathBuf, Question>,
    /// `--extension`; a directory may bring skills and templates too.
    extensions: Vec<String>,
    /// Whether stream rules are read.
    has_rules: bool,
}

/// Whether directories are trusted, as far as that was decided. Shared by the sessions of a process.
#[derive(Clone, Default)]
pub struct Verdicts(Arc<Mutex<HashMap<PathBuf, bool>>>);

impl Verdicts {
    fn of(&self, cwd: &Path) -> Option<bool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(cwd).copied()
    }

    fn decide(&self, cwd: &Path, is_trusted: bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(cwd.to_owned(), is_trusted);
    }
}

/// What is known of a directory before it is trusted.
pub struct Unjudged {
    user: LoadedSettings,
    gated: GatedResources,
}

impl Unjudged {
    /// The user's settings alone.
    pub fn user_settings(&self) -> &Settings {
        &self.user.settings
    }
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
            verdicts: Verdicts::default(),
            questions: HashMap::new(),
            extensions: cli.extensions.clone(),
            has_rules: false,
        }
    }

    /// Reads stream rules too, where there are some to be read.
    pub fn with_rules(self, has_rules: bool) -> Self {
        Project { has_rules, ..self }
    }

    /// Shares what is decided about directories with other sessions.
    pub fn with_verdicts(self, verdicts: Verdicts) -> Self {
        Project { verdicts, ..self }
    }

    /// Settings that are in force in a directory.
    pub fn settings(&mut self, cwd: &Path) -> LoadedSettings {
        let unjudged = self.look(cwd);
        self.judge(cwd, unjudged, None)
    }

    /// What can be read without trust.
    pub fn look(&self, cwd: &Path) -> Unjudged {
        Unjudged {
            user: settings::load(&self.agent_dir, cwd, false),
            gated: GatedResources::find(cwd, self.agent_dir.layout().project_name(), Some(&self.home)),
        }
    }

    /// Whether extensions have a say in the judgement: nobody before them has.
    pub fn is_open(&self, cwd: &Path, unjudged: &Unjudged) -> bool {
        self.approve.is_none() && !unjudged.gated.is_empty() && self.verdicts.of(cwd).is_none()
    }

    /// Settings that are in force after all, with what an extension `said` about the directory.
    pub fn judge(&mut self, cwd: &Path, unjudged: Unjudged, said: Option<TrustDecision>) -> LoadedSettings {
        let Unjudged { user, gated } = unjudged;
        let mut problems = Vec::new();
        let is_trusted = self.is_trusted(cwd, &gated, said, &user.settings, &mut problems);
        let has_own = is_trusted && self.agent_dir.project_settings_file(cwd).exists();
        let mut loaded = if has_own { settings::load(&self.agent_dir, cwd, true) } else { user };
        loaded.diagnostics.extend(problems);
        loaded.diagnostics.extend(packages::installed(&loaded.settings, self.shelves(cwd)).1);
        loaded
    }

    /// Settings and resources that are in force in a directory.
    pub fn read(
        &mut self,
        cwd: &Path,
        contributed: &Contributed,
        options: impl FnOnce(&Settings) -> SessionOptions,
    ) -> ProjectFiles {
        let loaded = self.settings(cwd);
        self.read_judged(cwd, loaded, contributed, options)
    }

    /// Resources, for settings that were read already.
    pub fn read_judged(
        &self,
        cwd: &Path,
        loaded: LoadedSettings,
        contributed: &Contributed,
        options: impl FnOnce(&Settings) -> SessionOptions,
    ) -> ProjectFiles {
        let LoadedSettings { settings, diagnostics } = loaded;
        let resources = self.load(cwd, &settings, contributed);
        let question = self.questions.get(cwd).cloned();
        let is_trusted = self.trusts(cwd);
        let options = options(&settings);
        let rules = self.rules(cwd, is_trusted);
        ProjectFiles { resources, options, settings: Arc::new(settings), rules, diagnostics, is_trusted, question }
    }

    /// Stream rules of the trusted project, then of the user.
    fn rules(&self, cwd: &Path, is_trusted: bool) -> StreamRules {
        if !self.has_rules {
            return StreamRules::default();
        }
        let mut directories: Vec<PathBuf> = is_trusted.then(|| self.agent_dir.project_dir(cwd)).into_iter().collect();
        directories.push(self.agent_dir.path().to_owned());
        let (rules, found) = pith_resources::load_rules(&directories);
        for diagnostic in found {
            let path = diagnostic.path.as_deref().unwrap_or(Path::new("rules"));
            warn(&format!("Warning: {}: {}", path.display(), diagnostic.message));
        }
        let (rules, problems) = StreamRules::compile(rules);
        problems.iter().for_each(|problem| warn(&format!("Warning: {problem}")));
        rules
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
            user_lists: settings.user_resources.clone(),
            project_lists: settings.project_resources.clone(),
            packages: self.packages(cwd, settings),
            ..self.flags.clone()
        })
    }

    /// Packages of the command line, then of settings.
    fn packages(&self, cwd: &Path, settings: &Settings) -> Vec<PackageResources> {
        let shelves = self.shelves(cwd);
        let named = self.extensions.iter().filter_map(|source| {
            let found = packages::named(source, shelves, self.trusts(cwd));
            let root = found.map_or_else(|| Some(pith_ext::discovery::expand(source, cwd, &self.home)), Result::ok)?;
            let (source, scope) = (source.clone(), Scope::Temporary);
            root.is_dir().then_some(PackageResources { root, source, scope, skills: None, prompts: None })
        });
        let installed = packages::installed(settings, shelves).0;
        named.chain(installed.iter().map(Package::resources)).collect()
    }

    fn shelves<'a>(&'a self, cwd: &'a Path) -> Shelves<'a> {
        Shelves { agent_dir: &self.agent_dir, cwd, home: &self.home }
    }

    /// Somebody has said yes, for the life of the process.
    pub fn trust(&mut self, cwd: &Path) {
        self.verdicts.decide(cwd, true);
        self.questions.remove(cwd);
    }

    /// What was decided about a directory whose settings have been read.
    pub fn trusts(&self, cwd: &Path) -> bool {
        self.verdicts.of(cwd).unwrap_or(false)
    }

    fn is_trusted(
        &mut self,
        cwd: &Path,
        gated: &GatedResources,
        said: Option<TrustDecision>,
        user: &Settings,
        problems: &mut Vec<Diagnostic>,
    ) -> bool {
        if let Some(known) = self.verdicts.of(cwd) {
            return known;
        }
        let file = TrustFile::in_agent_dir(self.agent_dir.path());
        let saved = if gated.is_empty() {
            None
        } else {
            file.decision(cwd).unwrap_or_else(|error| {
                problems.push(Diagnostic::warning("trust_file", self.agent_dir.trust_file(), error.to_string()));
                None
            })
        };
        let verdict = decide(&TrustInputs {
            is_gated: !gated.is_empty(),
            flag: self.approve,
            extension: said.map(|said| said.trusted),
            saved,
            default: user.default_project_trust,
        });
        if let Some(said) = said.filter(|said| said.remember) {
            self.save(cwd, said.trusted, &file, problems);
        }
        let is_trusted = match verdict {
            Verdict::Trusted => true,
            Verdict::Untrusted => false,
            Verdict::Ask if self.ask.is_none() => {
                self.questions.insert(cwd.to_owned(), gated.question(cwd));
                false
            }
            Verdict::Ask => self.ask_and_save(cwd, gated, &file, problems),
        };
        self.verdicts.decide(cwd, is_trusted);
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
        if let Some(trusted) = answer {
            self.save(cwd, trusted, file, problems);
        }
        answer.unwrap_or(false)
    }

    fn save(&self, cwd: &Path, trusted: bool, file: &TrustFile, problems: &mut Vec<Diagnostic>) {
        if let Err(error) = file.save(cwd, trusted) {
            problems.push(Diagnostic::warning("trust_file", self.agent_dir.trust_file(), error.to_string()));
        }
    }
}
