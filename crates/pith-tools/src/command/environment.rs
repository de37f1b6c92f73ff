//! The shell that runs commands, and the environment of those commands.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use pith_agent::TraceContext;

use crate::process::CommandLine;

/// Variables that describe the session; inherited values would be another session's.
pub const SESSION_VARIABLES: [&str; 5] =
    ["PI_SESSION_ID", "PI_SESSION_FILE", "PI_PROVIDER", "PI_MODEL", "PI_REASONING_LEVEL"];

/// How commands are run, from the settings.
#[derive(Clone, Debug, Default)]
pub struct Shell {
    /// `shellPath`: must exist.
    pub path: Option<PathBuf>,
    /// `shellCommandPrefix`: lines put before every command.
    pub prefix: Option<String>,
}

/// Changes to the environment that commands inherit.
#[derive(Clone, Debug, Default)]
pub struct CommandEnv {
    /// The variables that commands inherit instead of those of this process.
    pub inherited: Option<Vec<(String, String)>>,
    /// Set for every command.
    pub common: Vec<(String, String)>,
    /// Set for commands of the model only: the [`SESSION_VARIABLES`].
    pub session: Vec<(String, String)>,
    /// Variables that are removed, such as credentials.
    pub hidden: Vec<String>,
    /// Put first in `PATH`.
    pub bin: Option<PathBuf>,
}

/// Who runs a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    Model,
    Host,
}

impl Shell {
    /// Builds the command line for `command`; the error says why it cannot be run.
    pub(crate) fn command_line(
        &self,
        command: &str,
        cwd: &Path,
        environment: Vec<(OsString, OsString)>,
    ) -> Result<CommandLine, String> {
        if !cwd.is_dir() {
            let cwd = cwd.display();
            return Err(format!("Working directory does not exist: {cwd}\nCannot execute bash commands."));
        }
        let script = match &self.prefix {
            Some(prefix) => format!("{prefix}\n{command}"),
            None => command.to_owned(),
        };
        Ok(CommandLine {
            program: self.program()?,
            arguments: vec!["-c".into(), script.into()],
            cwd: cwd.to_owned(),
            environment,
            confinement: None,
        })
    }

    fn program(&self) -> Result<PathBuf, String> {
        match &self.path {
            Some(path) if path.exists() => Ok(path.clone()),
            Some(path) => Err(format!("Custom shell path not found: {}", path.display())),
            None => Ok(default_program(std::env::var_os("PATH"))),
        }
    }
}

fn default_program(path: Option<OsString>) -> PathBuf {
    let usual = PathBuf::from("/bin/bash");
    if usual.exists() {
        return usual;
    }
    let directories = path.iter().flat_map(std::env::split_paths).filter(|directory| directory.is_absolute());
    directories.map(|directory| directory.join("bash")).find(|bash| bash.is_file()).unwrap_or_else(|| "/bin/sh".into())
}

impl CommandEnv {
    /// Returns the variables that commands get beside those they inherit.
    pub(crate) fn own(&self, caller: Caller) -> Vec<(String, String)> {
        let session = match caller {
            Caller::Model => self.session.as_slice(),
            Caller::Host => &[],
        };
        self.common.iter().chain(session).cloned().collect()
    }

    /// Builds the whole environment of a command from the inherited variables.
    pub(crate) fn apply(
        &self,
        inherited: impl Iterator<Item = (OsString, OsString)>,
        caller: Caller,
    ) -> Vec<(OsString, OsString)> {
        let own = self.own(caller);
        let replaced = |name: &OsString| {
            SESSION_VARIABLES.iter().any(|variable| name == variable)
                || self.hidden.iter().any(|hidden| name == hidden.as_str())
                || own.iter().any(|(own, _)| name == own.as_str())
        };
        let mut environment: Vec<(OsString, OsString)> = inherited.filter(|(name, _)| !replaced(name)).collect();
        environment.extend(own.into_iter().map(|(name, value)| (name.into(), value.into())));
        if let Some(bin) = &self.bin {
            put_first_in_path(bin, &mut environment);
        }
        environment
    }
}

/// Tells a command its place in a trace, instead of the one that pith was told.
pub(crate) fn with_trace(
    mut environment: Vec<(OsString, OsString)>,
    trace: Option<&TraceContext>,
) -> Vec<(OsString, OsString)> {
    let Some(trace) = trace else { return environment };
    environment.retain(|(name, _)| !TraceContext::VARIABLES.iter().any(|variable| name == variable));
    environment.extend(trace.variables().map(|(name, value)| (name.into(), value.into())));
    environment
}

fn put_first_in_path(bin: &Path, environment: &mut Vec<(OsString, OsString)>) {
    let position = environment.iter().position(|(name, _)| name == "PATH");
    let old = position.map(|at| environment.swap_remove(at).1);
    let rest = old.iter().flat_map(std::env::split_paths).filter(|directory| directory != bin);
    // Fails only for a directory with a colon in its name, which `PATH` cannot contain.
    let joined = std::env::join_paths(std::iter::once(bin.to_owned()).chain(rest)).ok().or(old);
    environment.extend(joined.map(|path| ("PATH".into(), path)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn environment(env: &CommandEnv, caller: Caller, inherited: &[(&str, &str)]) -> Vec<String> {
        let inherited = inherited.iter().map(|(name, value)| (name.into(), value.into()));
        let mut lines: Vec<String> = env
            .apply(inherited, caller)
            .into_iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect();
        lines.sort();
        lines
    }

    #[test]
    fn session_variables_replace_inherited_ones_for_the_model_only() {
        let env = CommandEnv {
            common: pairs(&[("PITH", "1")]),
            session: pairs(&[("PI_SESSION_ID", "new")]),
            hidden: vec!["ANTHROPIC_API_KEY".to_owned()],
            bin: Some("/agent/bin".into()),
            ..CommandEnv::default()
        };
        let inherited = [
            ("PI_SESSION_ID", "old"),
            ("PI_MODEL", "old"),
            ("PITH", "0"),
            ("ANTHROPIC_API_KEY", "sk"),
            ("PATH", "/usr/bin:/bin"),
            ("LANG", "C"),
        ];
        let for_model = ["LANG=C", "PATH=/agent/bin:/usr/bin:/bin", "PITH=1", "PI_SESSION_ID=new"];
        assert_eq!(environment(&env, Caller::Model, &inherited), for_model);
        let for_host = ["LANG=C", "PATH=/agent/bin:/usr/bin:/bin", "PITH=1"];
        assert_eq!(environment(&env, Caller::Host, &inherited), for_host);
    }

    #[test]
    fn a_command_is_told_its_own_place_in_a_trace() {
        let inherited = || vec![("TRACEPARENT".into(), "old".into()), ("TRACESTATE".into(), "old=1".into())];
        let trace = TraceContext { traceparent: "new".to_owned(), tracestate: String::new() };
        assert_eq!(with_trace(inherited(), Some(&trace)), [("TRACEPARENT".into(), "new".into())]);
        assert_eq!(with_trace(inherited(), None), inherited());
    }

    #[test]
    fn by_default_everything_is_inherited() {
        let inherited = [("ANTHROPIC_API_KEY", "sk"), ("PATH", "/bin")];
        assert_eq!(
            environment(&CommandEnv::default(), Caller::Model, &inherited),
            ["ANTHROPIC_API_KEY=sk", "PATH=/bin"]
        );
    }

    #[test]
    fn an_error_names_why_a_command_cannot_run() {
        let shell = Shell { path: Some("/no/such/shell".into()), prefix: None };
        let line = |shell: &Shell, cwd: &str| shell.command_line("true", Path::new(cwd), Vec::new());
        assert_eq!(line(&shell, "/").unwrap_err(), "Custom shell path not found: /no/such/shell");
        assert_eq!(
            line(&Shell::default(), "/no/such/dir").unwrap_err(),
            "Working directory does not exist: /no/such/dir\nCannot execute bash commands."
        );
        let prefixed = Shell { path: None, prefix: Some("shopt -s extglob".to_owned()) };
        assert_eq!(line(&prefixed, "/").unwrap().arguments[1], "shopt -s extglob\ntrue");
    }
}
