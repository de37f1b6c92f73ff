//! The command line. Hosts pass flags written for other agents and other
//! versions, so what rpc mode does not know is warned about, not refused.

mod flags;

use std::path::PathBuf;

use pith_protocol::{StreamUpdates, ThinkingLevel};

use crate::dialect::{self, Dialect};
use crate::sessions::SessionFlags;
pub use flags::help;
use flags::{FLAGS, Flag, Support, Takes};

/// The command line, read.
#[derive(Debug, Default)]
pub struct Cli {
    pub action: Action,
    pub mode: Option<Mode>,
    pub provider: Option<String>,
    pub model: Option<String>,
    pub models: Option<String>,
    pub thinking: Option<ThinkingLevel>,
    pub api_key: Option<String>,
    pub script: Option<PathBuf>,
    pub session_dir: Option<PathBuf>,
    pub sessions: SessionFlags,
    pub name: Option<String>,
    pub tools: Option<Vec<String>>,
    pub exclude_tools: Vec<String>,
    pub no_tools: bool,
    pub dialect: Option<&'static Dialect>,
    pub stream_updates: Option<StreamUpdates>,
    pub max_line_bytes: Option<usize>,
    pub messages: Vec<String>,
    pub files: Vec<String>,
    /// For stderr, before anything else.
    pub warnings: Vec<String>,
    unknown: Vec<String>,
}

/// What the process is asked to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    #[default]
    Serve,
    Help,
    Version,
    Tour,
}

/// The `--mode` values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Text,
    Json,
    Rpc,
}

impl Cli {
    /// Reads the arguments after the program name; `Err` is the text after `Error: `.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Cli, String> {
        let mut cli = Cli::default();
        let mut arguments = arguments.into_iter().peekable();
        if arguments.peek().map(String::as_str) == Some("tour") {
            cli.action = Action::Tour;
            return Ok(cli);
        }
        while let Some(argument) = arguments.next() {
            if argument == "--" {
                arguments.by_ref().for_each(|rest| cli.positional(rest));
            } else if !argument.starts_with('-') || argument == "-" {
                cli.positional(argument);
            } else {
                cli.option(argument, &mut arguments)?;
            }
        }
        cli.check()?;
        Ok(cli)
    }

    fn positional(&mut self, argument: String) {
        match argument.strip_prefix('@') {
            Some(file) => self.files.push(file.to_owned()),
            None => self.messages.push(argument),
        }
    }

    fn option(
        &mut self,
        argument: String,
        rest: &mut std::iter::Peekable<impl Iterator<Item = String>>,
    ) -> Result<(), String> {
        let (name, inline) = match argument.split_once('=') {
            Some((name, value)) if argument.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
            _ => (argument.clone(), None),
        };
        let known = FLAGS.iter().find(|flag| flag.long == name || flag.short == Some(&*name));
        match known {
            Some(flag) => {
                let value = match flag.takes {
                    Takes::Nothing => None,
                    Takes::Value(_) => inline.or_else(|| rest.next()),
                    Takes::Optional(_) => inline.or_else(|| rest.next_if(|next| !next.starts_with(['-', '@']))),
                };
                self.known(flag, value)
            }
            None if argument.starts_with("--") => {
                // Another agent's flag; what follows it may be its value.
                if inline.is_none() && rest.peek().is_some_and(|next| !next.starts_with(['-', '@'])) {
                    rest.next();
                }
                self.unknown.push(name);
                Ok(())
            }
            None => Err(format!("Unknown option: {argument}")),
        }
    }

    fn known(&mut self, flag: &Flag, value: Option<String>) -> Result<(), String> {
        match flag.support {
            Support::Ignored => return Ok(()),
            Support::Planned => return Err(format!("not available yet: {}", flag.long)),
            Support::Full => {}
        }
        let needed = || match flag.long {
            "--mode" => "--mode requires text, json, or rpc".to_owned(),
            long => format!("{long} requires a value"),
        };
        let value = match flag.takes {
            Takes::Nothing => String::new(),
            Takes::Value(_) => value.ok_or_else(needed)?,
            Takes::Optional(_) => value.unwrap_or_default(),
        };
        self.set(flag.long, value)
    }

    fn set(&mut self, long: &str, value: String) -> Result<(), String> {
        match long {
            "--mode" => self.mode = Some(mode(&value)?),
            "--provider" => self.provider = Some(value),
            "--model" => self.model = Some(value),
            "--models" => self.models = Some(value),
            "--thinking" => self.set_thinking(&value),
            "--api-key" => self.api_key = Some(value),
            "--script" => self.script = Some(value.into()),
            "--session-dir" => self.session_dir = Some(value.into()),
            "--no-session" => self.sessions.is_unsaved = true,
            "--continue" => self.sessions.is_latest = true,
            "--session" => self.sessions.open = Some(value),
            "--session-id" => self.sessions.id = Some(value),
            "--fork" => self.sessions.fork = Some(value),
            "--resume" => self.sessions.resume = Some(value),
            "--name" if value.trim().is_empty() => return Err("--name requires a non-empty value".to_owned()),
            "--name" => self.name = Some(value.trim().to_owned()),
            "--tools" => self.tools = Some(names(&value)),
            "--exclude-tools" => self.exclude_tools = names(&value),
            "--no-tools" | "--no-builtin-tools" => self.no_tools = true,
            "--dialect" => self.dialect = Some(dialect_named(&value)?),
            "--stream-updates" => self.stream_updates = Some(stream_updates(&value)?),
            "--max-line-bytes" => self.max_line_bytes = Some(max_line(&value)?),
            "--help" => self.action = Action::Help,
            "--version" => self.action = Action::Version,
            _ => {}
        }
        Ok(())
    }

    fn set_thinking(&mut self, value: &str) {
        self.thinking = ThinkingLevel::parse(value);
        if self.thinking.is_none() {
            let valid = ThinkingLevel::ALL.map(ThinkingLevel::as_str).join(", ");
            self.warnings.push(format!("Invalid thinking level \"{value}\". Valid values: {valid}"));
        }
    }

    fn check(&mut self) -> Result<(), String> {
        if self.action != Action::Serve {
            return Ok(());
        }
        self.sessions.check()?;
        let is_rpc = self.mode == Some(Mode::Rpc);
        if is_rpc && !self.files.is_empty() {
            return Err("@file arguments are not supported in RPC mode".to_owned());
        }
        if is_rpc && !self.messages.is_empty() {
            self.warnings.push("messages on the command line are ignored in rpc mode".to_owned());
        }
        let listed = self.unknown.join(", ");
        match (self.unknown.len(), is_rpc) {
            (0, _) => {}
            (1, false) => return Err(format!("Unknown option: {listed}")),
            (_, false) => return Err(format!("Unknown options: {listed}")),
            (_, true) => self.warnings.push(format!("ignoring unknown options: {listed}")),
        }
        Ok(())
    }
}

fn mode(value: &str) -> Result<Mode, String> {
    match value {
        "text" => Ok(Mode::Text),
        "json" => Ok(Mode::Json),
        "rpc" => Ok(Mode::Rpc),
        other => Err(format!("Invalid mode \"{other}\". Valid values: text, json, rpc")),
    }
}

/// The dialect of a flag or variable value.
pub fn dialect_named(value: &str) -> Result<&'static Dialect, String> {
    Dialect::named(value).ok_or_else(|| {
        format!("Invalid dialect \"{value}\". Valid values: {}, {}", dialect::PI.name, dialect::XCSH.name)
    })
}

/// The stream form of a flag or variable value.
pub fn stream_updates(value: &str) -> Result<StreamUpdates, String> {
    let found = StreamUpdates::WORDS.iter().find(|(word, _)| *word == value);
    found.map(|(_, mode)| *mode).ok_or_else(|| format!("Invalid stream updates \"{value}\". Valid values: full, delta"))
}

fn max_line(value: &str) -> Result<usize, String> {
    let parsed = value.parse().ok().filter(|limit| *limit > 0);
    parsed.ok_or_else(|| format!("Invalid --max-line-bytes \"{value}\": expected a positive number"))
}

fn names(list: &str) -> Vec<String> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Cli, String> {
        Cli::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn flags_reach_their_fields() {
        let cli = parse("--mode rpc --provider p --model=m -t read,,bash --no-session -n x --stream-updates delta")
            .expect("parses");
        assert_eq!((cli.mode, cli.provider.as_deref(), cli.model.as_deref()), (Some(Mode::Rpc), Some("p"), Some("m")));
        assert_eq!(cli.tools, Some(vec!["read".to_owned(), "bash".to_owned()]));
        assert!(
            cli.sessions.is_unsaved
                && cli.name.as_deref() == Some("x")
                && cli.stream_updates == Some(StreamUpdates::Delta)
        );
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        let check = |line: &str, text: &str| assert_eq!(parse(line).expect_err(line), text);
        check("--mode", "--mode requires text, json, or rpc");
        check("--mode bogus", "Invalid mode \"bogus\". Valid values: text, json, rpc");
        check("-z", "Unknown option: -z");
        check("--unknown-flag", "Unknown option: --unknown-flag");
        check("--one --two=3", "Unknown options: --one, --two");
        check("--mode rpc @x", "@file arguments are not supported in RPC mode");
        check("--name", "--name requires a value");
        check("--mode rpc --fork a -c", "--fork cannot be combined with --continue");
    }

    #[test]
    fn rpc_hosts_may_pass_flags_of_other_versions() {
        let cli = parse("--mode rpc --frobnicate yes --no-lsp --model m").expect("parses");
        assert_eq!(cli.warnings, vec!["ignoring unknown options: --frobnicate"]);
        assert_eq!(cli.model.as_deref(), Some("m"));
        let cli = parse("--mode rpc --thinking silly hello").expect("parses");
        assert_eq!(cli.warnings.len(), 2);
    }

    #[test]
    fn help_lists_what_works() {
        assert!(help().contains("--stream-updates <full|delta>") && !help().contains("--tui-mode"));
    }
}
