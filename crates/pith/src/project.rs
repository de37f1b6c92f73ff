//! Settings and resources of a working directory, and whether its own may be used.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pith_config::settings::{self, LoadedSettings, Settings, UnknownKey};
use pith_config::{AgentDir, Diagnostic, Environment, ProjectTrust};
use pith_ext::TrustDecision;
use pith_resources::{
    Followed, GatedResources, PackageResources, Question, ResourceOptions, Resources, Scope, TrustFile, TrustInputs,
    Verdict, decide,
};
use pith_sandbox::own_reads::OwnReads;
use pith_session::{Contributed, OpenQuestion, ProjectFiles, SessionOptions, StreamRules};
use pith_tools::sandbox::CurrentSandbox;

use crate::cli::Cli;
use crate::mcp;
use crate::packages::{self, Package, PackageDirs};
use crate::warn;

/// Asks the user a yes-or-no question; `None` is no answer.
pub type Ask = Box<dyn Fn(&Question) -> Option<bool> + Send>;

/// Reads settings and resources of directories, as the command line selects them.
pub struct Project {
    agent_dir: AgentDir,
    environment: Environment,
    /// `--approve`, `--no-approve`.
    approve: Option<bool>,
    /// A template; directory, trust and settings lists are filled in for each reading.
    flags: ResourceOptions,
    ask: Option<Ask>,
    /// Valid for the life of the process.
    trust_decisions: TrustDecisions,
    /// `--extension`; a directory may contain skills and templates too.
    extensions: Vec<String>,
    /// Whether stream rules are read.
    has_rules: bool,
    /// Decides which links are followed.
    sandbox: CurrentSandbox,
}

/// Which directories are trusted, as far as that was decided. Shared by the sessions of a process.
#[derive(Clone, Default)]
pub struct TrustDecisions {
    decided: Arc<Mutex<HashMap<PathBuf, ProjectTrust>>>,
    /// Questions that nobody has answered.
    open: Arc<Mutex<HashMap<PathBuf, OpenQuestion>>>,
}

impl TrustDecisions {
    fn of(&self, cwd: &Path) -> Option<ProjectTrust> {
        self.decided.lock().unwrap_or_else(PoisonError::into_inner).get(cwd).copied()
    }

    /// What somebody has decided, which stays as it is.
    fn decided(&self, cwd: &Path) -> Option<bool> {
        match self.of(cwd)? {
            ProjectTrust::Given => Some(true),
            ProjectTrust::Refused => Some(false),
            ProjectTrust::NotNeeded => None,
        }
    }

    fn decide(&self, cwd: &Path, trust: ProjectTrust) {
        self.decided.lock().unwrap_or_else(PoisonError::into_inner).insert(cwd.to_owned(), trust);
    }

    /// The question about a directory, if it has to be asked.
    fn question(&self, cwd: &Path) -> Option<OpenQuestion> {
        let mut questions = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        questions.retain(|_, question| !question.is_answered());
        questions.get(cwd).cloned()
    }

    fn ask_later(&self, cwd: &Path, question: Question) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(cwd.to_owned(), OpenQuestion::new(question));
    }
}

/// What is known of a directory before trust is decided.
pub struct UndecidedProject {
    user: LoadedSettings,
    gated: GatedResources,
}

impl UndecidedProject {
    /// The user's settings alone.
    pub fn user_settings(&self) -> &Settings {
        &self.user.settings
    }
}

impl Project {
    /// Creates a project for a command line. Without `ask`, an undecided project is not trusted.
    pub fn new(cli: &Cli, agent_dir: &AgentDir, environment: &Environment, ask: Option<Ask>) -> Self {
        let flags = ResourceOptions {
            agent_dir: agent_dir.path().to_owned(),
            project_dir_name: agent_dir.layout().project_name().to_owned(),
            home: Some(environment.home().to_owned()),
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
            environment: environment.clone(),
            approve: cli.approve,
            flags,
            ask,
            trust_decisions: TrustDecisions::default(),
            extensions: cli.extensions.clone(),
            has_rules: false,
            sandbox: CurrentSandbox::default(),
        }
    }

    /// Reads stream rules too, if the dialect has them.
    pub fn with_rules(self, has_rules: bool) -> Self {
        Project { has_rules, ..self }
    }

    /// Reads what the sandbox of the session lets a session see, wherever links lead.
    pub fn held_by(self, sandbox: CurrentSandbox) -> Self {
        Project { sandbox, ..self }
    }

    /// Which files are read for a session in a directory.
    fn own_reads(&self, cwd: &Path) -> Option<OwnReads> {
        let sandbox = self.sandbox.get()?;
        Some(OwnReads::new(&sandbox.policy()?.reading, cwd, self.agent_dir.path()))
    }

    fn followed(&self, cwd: &Path) -> Followed {
        let own_reads = self.own_reads(cwd);
        own_reads.map_or_else(Followed::default, |reads| Followed::by(move |path, real| reads.admit(path, real)))
    }

    /// Shares the decisions about trust with other sessions.
    pub fn with_trust_decisions(self, trust_decisions: TrustDecisions) -> Self {
        Project { trust_decisions, ..self }
    }

    /// Returns the settings that apply in a directory.
    pub fn settings(&mut self, cwd: &Path) -> LoadedSettings {
        let undecided = self.inspect(cwd);
        self.decide_trust(cwd, undecided, None)
    }

    /// Reads what can be read without trust.
    pub fn inspect(&self, cwd: &Path) -> UndecidedProject {
        UndecidedProject { user: settings::load(&self.agent_dir, cwd, false), gated: self.gated(cwd) }
    }

    /// Returns whether extensions may decide about trust, because nothing before them has.
    pub fn is_open(&self, cwd: &Path, undecided: &UndecidedProject) -> bool {
        self.approve.is_none() && !undecided.gated.is_empty() && self.trust_decisions.decided(cwd).is_none()
    }

    /// Returns the settings that apply, after the decision of an extension, if any.
    pub fn decide_trust(
        &mut self,
        cwd: &Path,
        undecided: UndecidedProject,
        decision: Option<TrustDecision>,
    ) -> LoadedSettings {
        let UndecidedProject { user, gated } = undecided;
        let mut problems = Vec::new();
        let is_trusted = self.is_trusted(cwd, &gated, decision, &user.settings, &mut problems);
        let file = self.agent_dir.project_settings_file(cwd);
        let refusal = self.own_reads(cwd).and_then(|reads| reads.admit(&file, &file.canonicalize().ok()?).err());
        let has_own = is_trusted && file.exists() && refusal.is_none();
        if let Some(why) = refusal.filter(|_| is_trusted) {
            problems.push(Diagnostic::warning("settings_file", &file, format!("cannot read settings: {why}")));
        }
        let mut loaded = if has_own { settings::load(&self.agent_dir, cwd, true) } else { user };
        loaded.diagnostics.extend(problems);
        loaded.diagnostics.extend(packages::installed(&loaded.settings, self.package_dirs(cwd)).1);
        loaded
    }

    /// Reads the settings and resources that apply in a directory.
    pub fn read(
        &mut self,
        cwd: &Path,
        contributed: &Contributed,
        options: impl FnOnce(&Settings) -> SessionOptions,
    ) -> ProjectFiles {
        let loaded = self.settings(cwd);
        self.read_with_settings(cwd, loaded, contributed, options)
    }

    /// Reads resources, for settings that were read already.
    pub fn read_with_settings(
        &self,
        cwd: &Path,
        loaded: LoadedSettings,
        contributed: &Contributed,
        options: impl FnOnce(&Settings) -> SessionOptions,
    ) -> ProjectFiles {
        let LoadedSettings { settings, diagnostics } = loaded;
        let resources = self.load(cwd, &settings, contributed);
        let question = self.trust_decisions.question(cwd);
        let is_trusted = self.trusts(cwd);
        let options = options(&settings);
        let rules = self.rules(cwd, is_trusted);
        ProjectFiles { resources, options, settings: Arc::new(settings), rules, diagnostics, is_trusted, question }
    }

    /// The stream rules of the trusted project, then of the user.
    fn rules(&self, cwd: &Path, is_trusted: bool) -> StreamRules {
        if !self.has_rules {
            return StreamRules::default();
        }
        let mut directories: Vec<PathBuf> = is_trusted.then(|| self.agent_dir.project_dir(cwd)).into_iter().collect();
        directories.push(self.agent_dir.path().to_owned());
        let (rules, found) = pith_resources::load_rules(&directories, &self.followed(cwd));
        for diagnostic in found {
            let path = diagnostic.path.as_deref().unwrap_or(Path::new("rules"));
            warn(&format!("Warning: {}: {}", path.display(), diagnostic.message));
        }
        let (rules, problems) = StreamRules::compile(rules);
        problems.iter().for_each(|problem| warn(&format!("Warning: {problem}")));
        rules
    }

    /// Returns the resources that apply in a directory with these settings.
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
            followed: self.followed(cwd),
            ..self.flags.clone()
        })
    }

    /// The packages of the command line, then of settings.
    fn packages(&self, cwd: &Path, settings: &Settings) -> Vec<PackageResources> {
        let package_dirs = self.package_dirs(cwd);
        let named = self.extensions.iter().filter_map(|source| {
            let found = packages::named(source, package_dirs, self.trusts(cwd));
            let root = found
                .map_or_else(|| Some(pith_ext::discovery::expand(source, cwd, self.environment.home())), Result::ok)?;
            let (source, scope) = (source.clone(), Scope::Temporary);
            root.is_dir().then_some(PackageResources { root, source, scope, skills: None, prompts: None })
        });
        let installed = packages::installed(settings, package_dirs).0;
        named.chain(installed.iter().map(Package::resources)).collect()
    }

    fn package_dirs<'a>(&'a self, cwd: &'a Path) -> PackageDirs<'a> {
        PackageDirs { agent_dir: &self.agent_dir, cwd, home: self.environment.home() }
    }

    /// Trusts a directory for the life of the process.
    pub fn trust(&mut self, cwd: &Path) {
        self.trust_decisions.decide(cwd, ProjectTrust::Given);
    }

    /// Called when the user has agreed to what a directory brings.
    pub fn accept(&mut self, cwd: &Path) {
        self.trust(cwd);
        mcp::accept_project(self.agent_dir.clone(), self.environment.clone(), cwd);
    }

    /// Returns what was decided about a directory whose settings have been read.
    pub fn trusts(&self, cwd: &Path) -> bool {
        matches!(self.trust_decisions.of(cwd), Some(ProjectTrust::Given | ProjectTrust::NotNeeded))
    }

    /// Returns whether MCP servers of a directory's files may be used. A directory that brings nothing yet counts as
    /// trusted if one above it is: whoever looks then notes that it had no servers, and notices those that come later.
    pub fn trust_in_servers(&self, cwd: &Path) -> ProjectTrust {
        let saved = || TrustFile::in_agent_dir(self.agent_dir.path()).decision(cwd).ok().flatten();
        match self.trust_decisions.of(cwd) {
            Some(ProjectTrust::NotNeeded) if saved() == Some(true) => ProjectTrust::Given,
            decided => decided.unwrap_or(ProjectTrust::Refused),
        }
    }

    /// Keys of settings that are probably meant to be others, for the user.
    pub fn mistyped_keys(&self, cwd: &Path) -> Vec<String> {
        let own = self.trusts(cwd).then(|| self.agent_dir.project_settings_file(cwd));
        let files = [self.agent_dir.settings_file()].into_iter().chain(own);
        let keys = files.flat_map(|file| settings::unknown_keys(&file).into_iter().map(move |key| (file.clone(), key)));
        let text = |(file, key): (PathBuf, UnknownKey)| {
            Some(format!("{}: unknown key {}; did you mean \"{}\"?", file.display(), key.path, key.near?))
        };
        keys.filter_map(text).collect()
    }

    /// Whether the project brings anything that needs trust.
    pub fn has_own_files(&self, cwd: &Path) -> bool {
        !self.gated(cwd).is_empty()
    }

    fn gated(&self, cwd: &Path) -> GatedResources {
        GatedResources::find(cwd, self.agent_dir.layout().project_name(), Some(self.environment.home()))
    }

    fn is_trusted(
        &mut self,
        cwd: &Path,
        gated: &GatedResources,
        decision: Option<TrustDecision>,
        user: &Settings,
        problems: &mut Vec<Diagnostic>,
    ) -> bool {
        if let Some(known) = self.trust_decisions.decided(cwd) {
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
            extension: decision.map(|decision| decision.trusted),
            saved,
            default: user.default_project_trust,
        });
        if let Some(decision) = decision.filter(|decision| decision.remember) {
            self.save(cwd, decision.trusted, &file, problems);
        }
        let is_trusted = match verdict {
            Verdict::Trusted => true,
            Verdict::Untrusted => false,
            Verdict::Ask if self.ask.is_none() => {
                self.trust_decisions.ask_later(cwd, gated.question(cwd));
                false
            }
            Verdict::Ask => self.ask_and_save(cwd, gated, &file, problems),
        };
        let trust = if !is_trusted {
            ProjectTrust::Refused
        } else if gated.is_empty() {
            ProjectTrust::NotNeeded
        } else {
            ProjectTrust::Given
        };
        self.trust_decisions.decide(cwd, trust);
        is_trusted
    }

    fn ask_and_save(
        &mut self,
        cwd: &Path,
        gated: &GatedResources,
        file: &TrustFile,
        problems: &mut Vec<Diagnostic>,
    ) -> bool {
        let answer = self.ask.as_ref().and_then(|ask| ask(&gated.question(cwd)));
        if let Some(trusted) = answer {
            self.save(cwd, trusted, file, problems);
            if trusted {
                self.accept(cwd);
            }
        }
        answer.unwrap_or(false)
    }

    fn save(&self, cwd: &Path, trusted: bool, file: &TrustFile, problems: &mut Vec<Diagnostic>) {
        if let Err(error) = file.save(cwd, trusted) {
            problems.push(Diagnostic::warning("trust_file", self.agent_dir.trust_file(), error.to_string()));
        }
    }
}
