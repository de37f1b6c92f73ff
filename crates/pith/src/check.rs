//! `pith config check` and `--list-models`: what the files say, and what is wrong with them.

mod names;

use std::fmt::Write;
use std::path::PathBuf;

use pith_ai::{model_catalogue, model_table};
use pith_config::{AgentDir, DiagnosticKind, Environment, ProjectTrust};
use pith_mcp::config::{Places, Transport, read_all};
use pith_resources::TrustFile;

use crate::cli::{self, Cli};
use crate::dialect::Dialect;
use crate::extensions::{ExtensionSurvey, Survey};
use crate::open::agent_dir;
use crate::project::Project;
use crate::{mcp, permissions, show, warn};
pub use names::check_tools;

/// `--help`, with the flags of extensions. Works even if an extension is broken.
pub fn help(cli: &Cli, dialect: &'static Dialect) -> anyhow::Result<u8> {
    let environment = Environment::of_process();
    let agent_dir = agent_dir(dialect, &environment);
    let cwd = crate::current_dir()?;
    let survey = ExtensionSurvey { cli, agent_dir: &agent_dir, environment: &environment, cwd: &cwd };
    let (survey, _) = survey.run()?;
    show(&cli::help(&survey.flags, survey.is_complete && survey.errors.is_empty()))
}

/// `--list-models`: prints a table of the usable models.
pub fn list_models(cli: &Cli, dialect: &'static Dialect) -> anyhow::Result<u8> {
    let environment = Environment::of_process();
    let agent_dir = agent_dir(dialect, &environment);
    let cwd = crate::current_dir()?;
    let survey = ExtensionSurvey { cli, agent_dir: &agent_dir, environment: &environment, cwd: &cwd };
    let (survey, registry) = survey.run()?;
    if let Some(refusal) = survey.refusal {
        return Err(refusal);
    }
    if !survey.is_complete {
        warn("Warning: extensions took too long; their models are not listed");
    }
    survey.errors.iter().for_each(|error| warn(&format!("Warning: {}", error.error)));
    survey.other_errors.iter().for_each(|error| warn(&format!("Warning: {}: {}", error.path, error.error)));
    if let Some(errors) = registry.models_error() {
        warn(&format!("Warning: errors loading models.json:\n{errors}"));
    }
    let table = if cli.lists_all { model_catalogue } else { model_table };
    show(&format!("{}\n", table(&registry, cli.search.as_deref())))
}

/// `config check`: lists every file and every problem with it. Project files are checked whether trusted or not.
pub fn config(cli: &Cli, dialect: &'static Dialect) -> anyhow::Result<u8> {
    let environment = Environment::of_process();
    let agent_dir = agent_dir(dialect, &environment);
    let cwd = crate::current_dir()?;
    let mut report = Report::default();
    let mut project = Project::new(cli, &agent_dir, &environment, None);
    project.trust(&cwd);
    let loaded = project.settings(&cwd);
    let survey = ExtensionSurvey { cli, agent_dir: &agent_dir, environment: &environment, cwd: &cwd };
    let (survey, registry) = survey.run()?;
    let rules = permissions::sources(cli, &agent_dir, &environment, &cwd, true).load().diagnostics;
    for found in loaded.diagnostics.iter().cloned().chain(rules).chain(registry.diagnostics()) {
        report.problem(found.path, &found.message);
    }
    check_modes(&agent_dir, &mut report);
    if let Err(error) = TrustFile::in_agent_dir(agent_dir.path()).decision(&cwd) {
        report.problem(Some(agent_dir.trust_file()), &error.to_string());
    }
    let resources = project.resources(&cwd, &loaded.settings);
    for found in resources.diagnostics() {
        match found.kind {
            DiagnosticKind::Collision => report.remark(found.path.clone(), &found.message),
            DiagnosticKind::Warning | DiagnosticKind::Error => report.problem(found.path.clone(), &found.message),
        }
    }
    check_extensions(&survey, &mut report);
    let places = Places { agent_dir: agent_dir.clone(), environment: environment.clone(), cwd: cwd.clone() };
    check_servers(cli, &places, &mut report);
    let tools: Vec<String> = survey.loaded.iter().flat_map(|extension| extension.tools.clone()).collect();
    if let Err(text) = check_tools(cli, &tools, !survey.loaded.is_empty()) {
        report.problem(None, &text);
    }
    names::Known { agent_dir: &agent_dir, cwd: &cwd, settings: &loaded.settings, registry: &registry, tools: &tools }
        .check(&mut report);
    let files = [
        agent_dir.settings_file(),
        agent_dir.project_settings_file(&cwd),
        agent_dir.models_file(),
        agent_dir.auth_file(),
        agent_dir.trust_file(),
    ];
    let summary = format!(
        "{} extensions, {} skills, {} prompt templates, {} context files; {} usable models",
        survey.loaded.len(),
        resources.skills().len(),
        resources.templates().len(),
        resources.context_files().len(),
        registry.available().len(),
    );
    show(&report.text(&files, &summary))?;
    Ok(u8::from(report.has_problems()))
}

/// Lists each extension with what it registers, or with why it is not loaded.
fn check_extensions(survey: &Survey, report: &mut Report) {
    if !survey.is_complete {
        report.problem(None, "extensions took too long to load");
    }
    for error in &survey.errors {
        report.problem(Some(error.path.clone().into()), &error.in_full());
    }
    for error in &survey.other_errors {
        report.problem(Some(error.path.clone().into()), &format!("{}: {}", error.event, error.error));
    }
    for extension in &survey.loaded {
        let prefixed = |prefix: &str, names: &[String]| -> Vec<String> {
            names.iter().map(|name| format!("{prefix}{name}")).collect()
        };
        let brings = [
            ("tools", extension.tools.clone()),
            ("commands", prefixed("/", &extension.commands)),
            ("flags", prefixed("--", &extension.flags)),
            ("providers", extension.providers.clone()),
            ("listens for", extension.events.clone()),
        ];
        let lines = brings.iter().filter(|(_, names)| !names.is_empty());
        let text: Vec<String> = lines.map(|(what, names)| format!("{what}: {}", names.join(", "))).collect();
        let text = if text.is_empty() { "loads and registers nothing".to_owned() } else { text.join("; ") };
        report.add(Some(extension.path.clone().into()), "extension", &text);
    }
    for path in &survey.untrusted {
        report.add(Some(path.into()), "extension", "not loaded: the project is not trusted (--approve)");
    }
}

/// Lists each MCP server by the file that configures it. None is started.
fn check_servers(cli: &Cli, places: &Places, report: &mut Report) {
    // As all files of the project, those with servers are checked whether it is trusted or not.
    let read = read_all(places, &mcp::given(cli), ProjectTrust::Given);
    for found in read.diagnostics {
        report.problem(found.path, &found.message);
    }
    for server in read.servers {
        let state = if server.is_enabled { "" } else { ", switched off" };
        let place = match &server.transport {
            Transport::Stdio(stdio) => format!("program {}", stdio.command),
            // The query and the user of an address may be secrets.
            Transport::Remote(_) => "at an address".to_owned(),
        };
        report.add(server.path, "MCP server", &format!("{}: {place}{state}", server.name));
    }
}

/// Reports a key file that others can read.
fn check_modes(agent_dir: &AgentDir, report: &mut Report) {
    use std::os::unix::fs::PermissionsExt;
    let file = agent_dir.auth_file();
    let mode = std::fs::metadata(&file).map_or(0, |metadata| metadata.permissions().mode());
    if mode & 0o077 != 0 {
        report.problem(Some(file), "others on this machine can read it: chmod 600");
    }
}

/// Problems by file.
#[derive(Default)]
struct Report {
    lines: Vec<(Option<PathBuf>, &'static str, String)>,
}

impl Report {
    fn problem(&mut self, path: Option<PathBuf>, message: &str) {
        self.add(path, "problem", message);
    }

    fn remark(&mut self, path: Option<PathBuf>, message: &str) {
        self.add(path, "remark", message);
    }

    fn add(&mut self, path: Option<PathBuf>, kind: &'static str, message: &str) {
        let line = (path, kind, message.to_owned());
        if !self.lines.contains(&line) {
            self.lines.push(line);
        }
    }

    fn has_problems(&self) -> bool {
        self.lines.iter().any(|(_, kind, _)| *kind == "problem")
    }

    /// Lists each file with its state, then the problems of all others.
    fn text(&self, files: &[PathBuf], summary: &str) -> String {
        let mut text = String::new();
        let others: Vec<Option<PathBuf>> = self.lines.iter().map(|(path, ..)| path.clone()).collect();
        let mut paths: Vec<Option<PathBuf>> = files.iter().cloned().map(Some).collect();
        others.into_iter().for_each(|path| {
            if !paths.contains(&path) {
                paths.push(path)
            }
        });
        for path in paths {
            let lines: Vec<_> = self.lines.iter().filter(|(about, ..)| *about == path).collect();
            let name = path.as_ref().map_or_else(|| "elsewhere".to_owned(), |path| path.display().to_string());
            match (lines.is_empty(), path.is_some_and(|path| path.exists())) {
                (true, true) => writeln!(text, "{name}: ok"),
                (true, false) => writeln!(text, "{name}: not there"),
                (false, _) => writeln!(text, "{name}:"),
            }
            .expect("writing to a string");
            for (_, kind, message) in lines {
                writeln!(text, "  {kind}: {}", message.replace('\n', "\n    ")).expect("writing to a string");
            }
        }
        writeln!(text, "{summary}").expect("writing to a string");
        text
    }
}
