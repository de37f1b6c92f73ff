//! `pith config check` and `--list-models`: what the files say, and what is wrong with them.

use std::fmt::Write;
use std::path::PathBuf;

use pith_ai::agent_dir::AgentDir;
use pith_ai::environment::Environment;
use pith_ai::registry::{Registry, model_table};
use pith_resources::{DiagnosticKind, TrustFile};

use crate::cli::Cli;
use crate::dialect::Dialect;
use crate::project::Project;
use crate::startup::agent_dir;
use crate::{show, warn};

/// `--list-models`: a table of what can be used now.
pub fn list_models(cli: &Cli, dialect: &'static Dialect) -> anyhow::Result<u8> {
    let environment = Environment::of_process();
    let agent_dir = agent_dir(dialect, &environment);
    let settings = Project::new(cli, &agent_dir, &environment, None).settings(&std::env::current_dir()?).settings;
    let registry = Registry::load(&agent_dir, environment, &settings);
    if let Some(errors) = registry.models_error() {
        warn(&format!("Warning: errors loading models.json:\n{errors}"));
    }
    show(&format!("{}\n", model_table(&registry, cli.search.as_deref())))
}

/// `config check`: every file, and every problem with it. Project files are checked whether trusted or not.
pub fn config(cli: &Cli, dialect: &'static Dialect) -> anyhow::Result<u8> {
    let environment = Environment::of_process();
    let agent_dir = agent_dir(dialect, &environment);
    let cwd = std::env::current_dir()?;
    let mut report = Report::default();
    let mut project = Project::new(cli, &agent_dir, &environment, None);
    project.trust(&cwd);
    let loaded = project.settings(&cwd);
    let registry = Registry::load(&agent_dir, environment.clone(), &loaded.settings);
    for found in loaded.diagnostics.into_iter().chain(registry.diagnostics()) {
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
    let files = [
        agent_dir.settings_file(),
        agent_dir.project_settings_file(&cwd),
        agent_dir.models_file(),
        agent_dir.auth_file(),
        agent_dir.trust_file(),
    ];
    let summary = format!(
        "{} skills, {} prompt templates, {} context files; {} usable models",
        resources.skills().len(),
        resources.templates().len(),
        resources.context_files().len(),
        registry.available().len(),
    );
    show(&report.text(&files, &summary))?;
    Ok(u8::from(report.has_problems()))
}

/// Keys that others can read are a problem, although everything works.
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

    /// Each file with its state, then the problems of all others.
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
