//! Finds unknown names in files and flags: keys of settings, providers, models, tools.

use std::path::Path;

use pith_ai::{Registry, Stored};
use pith_config::settings::{self, Settings};
use pith_config::{AgentDir, near, suggestion};
use pith_session::name_in_entry;
use pith_tools::BUILTINS;

use super::Report;
use crate::cli::Cli;

/// Implemented by the session, so not among the built-in tools.
const TODO_WRITE: &str = "todo_write";

/// What the files are compared with.
pub(super) struct Known<'a> {
    pub agent_dir: &'a AgentDir,
    pub cwd: &'a Path,
    pub settings: &'a Settings,
    pub registry: &'a Registry,
    /// Tools of extensions.
    pub tools: &'a [String],
}

impl Known<'_> {
    /// Reports every unknown name.
    pub(super) fn check(&self, report: &mut Report) {
        self.check_keys(report);
        self.check_default_model(report);
        self.check_default_tools(report);
        self.check_credentials(report);
        self.check_replaced_files(report);
    }

    /// A typo is a problem; a key that resembles none of pith's is probably another agent's.
    fn check_keys(&self, report: &mut Report) {
        for file in [self.agent_dir.settings_file(), self.agent_dir.project_settings_file(self.cwd)] {
            for key in settings::unknown_keys(&file) {
                match key.near {
                    Some(near) => report
                        .problem(Some(file.clone()), &format!("unknown key {}; did you mean \"{near}\"?", key.path)),
                    None => report.remark(Some(file.clone()), &format!("pith does not use the key {}", key.path)),
                }
            }
        }
    }

    fn check_default_model(&self, report: &mut Report) {
        let file = |key: &str| Some(settings::file_with(self.agent_dir, self.cwd, key));
        let (provider, model) = (&self.settings.default_provider, &self.settings.default_model);
        if let Some(provider) = provider
            && !self.registry.is_listed(provider)
        {
            let ids = self.registry.provider_ids();
            let near = suggestion(provider, ids.iter().map(String::as_str));
            let text = format!("defaultProvider \"{provider}\" is no provider{near}");
            return report.problem(file("defaultProvider"), &text);
        }
        match (provider, model) {
            (None, None) => {}
            (Some(_), None) => {
                report.problem(file("defaultProvider"), "defaultProvider has no effect without defaultModel");
            }
            (None, Some(_)) => {
                report.problem(file("defaultModel"), "defaultModel has no effect without defaultProvider");
            }
            (Some(provider), Some(model)) => {
                let models = self.registry.models_of(provider);
                match self.registry.find(provider, model) {
                    Some(model) => {
                        if let Err(why) = self.registry.check(&model) {
                            report.remark(file("defaultModel"), &format!("the default model cannot be used: {why}"));
                        }
                    }
                    // The models of a local server are known only after a request to it.
                    None if models.is_empty() => {}
                    None => {
                        let near = suggestion(model, models.iter().map(|model| &*model.id));
                        let text = format!("defaultModel \"{model}\" is no model of {provider}{near}");
                        report.problem(file("defaultModel"), &text);
                    }
                }
            }
        }
    }

    fn check_default_tools(&self, report: &mut Report) {
        let file = settings::file_with(self.agent_dir, self.cwd, "defaultTools");
        for name in self.settings.default_tools.iter().flatten().map(|entry| name_in_entry(entry)) {
            if !is_tool(name, self.tools) {
                let near = suggestion(name, tool_names(self.tools));
                report.problem(Some(file.clone()), &format!("defaultTools: there is no tool \"{name}\"{near}"));
            }
        }
    }

    fn check_credentials(&self, report: &mut Report) {
        let auth = self.registry.auth_file();
        let ids = self.registry.provider_ids();
        for (provider, entry) in auth.entries().iter() {
            if let Stored::Unreadable(why) = entry {
                report.problem(Some(auth.path().to_owned()), &format!("the entry of {provider} is not used: {why}"));
            }
            if !self.registry.is_listed(provider)
                && let Some(near) = near(provider, ids.iter().map(String::as_str))
            {
                let text = format!("\"{provider}\" is no provider; did you mean \"{near}\"?");
                report.problem(Some(auth.path().to_owned()), &text);
            }
        }
    }

    /// `auth.json` replaces what older releases wrote.
    fn check_replaced_files(&self, report: &mut Report) {
        let auth = self.agent_dir.auth_file();
        if !auth.exists() {
            return;
        }
        let logins = auth.with_file_name("oauth.json");
        if logins.exists() {
            report.remark(Some(logins), "not read, because auth.json is there");
        }
        if !self.settings.api_keys.is_empty() {
            let file = settings::file_with(self.agent_dir, self.cwd, "apiKeys");
            report.remark(Some(file), "apiKeys is not used, because auth.json is there");
        }
    }
}

/// Refuses a name in `--tools` or `--exclude-tools` that no tool has: a mistyped one would leave the model with too few
/// tools, or with one too many. Extensions may register more tools later, so if there are any only a typo is refused.
pub fn check_tools(cli: &Cli, extension_tools: &[String], has_extensions: bool) -> Result<(), String> {
    let chosen = cli.tools.iter().flatten().map(|entry| ("--tools", name_in_entry(entry)));
    let excluded = cli.exclude_tools.iter().map(|name| ("--exclude-tools", name.as_str()));
    for (flag, name) in chosen.chain(excluded).filter(|(_, name)| !is_tool(name, extension_tools)) {
        let near = suggestion(name, tool_names(extension_tools));
        if !near.is_empty() {
            return Err(format!("{flag}: there is no tool \"{name}\"{near}"));
        }
        if !has_extensions {
            let known = tool_names(extension_tools).collect::<Vec<_>>().join(", ");
            return Err(format!("{flag}: there is no tool \"{name}\". There are {known}"));
        }
    }
    Ok(())
}

/// Tools of MCP servers are known only when the servers have run, and a pattern may mean them.
fn is_tool(name: &str, extension_tools: &[String]) -> bool {
    name.starts_with("mcp__") || name.contains('*') || tool_names(extension_tools).any(|known| known == name)
}

fn tool_names(extension_tools: &[String]) -> impl Iterator<Item = &str> {
    let builtins = BUILTINS.iter().map(|builtin| builtin.name);
    builtins.chain([TODO_WRITE]).chain(extension_tools.iter().map(String::as_str))
}
