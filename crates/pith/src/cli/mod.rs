//! The command line. Hosts pass flags written for other agents and other
//! versions, so what rpc mode does not know is warned about, not refused.

mod completions;
mod extension_flags;
mod flags;
mod help;
mod man;
mod subcommand;

use std::path::PathBuf;
use std::time::Duration;

use pith_protocol::{StreamUpdates, ThinkingLevel};

use crate::dialect::{self, Dialect};
use crate::sessions::SessionFlags;
pub use completions::completions;
pub use extension_flags::{ExtensionFlags, ResolvedFlags, UnknownFlags};
use flags::{Flag, Support, Takes};
pub use help::help;
pub use man::man;
pub use subcommand::{Shell, Subcommand};

/// The command line, read.
#[derive(Debug, Default)]
pub struct Cli {
    pub action: Action,
    pub mode: Option<Mode>,
    pub print: bool,
    /// What `--list-models` looks for.
    pub search: Option<String>,
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
    pub no_builtin_tools: bool,
    pub system_prompt: Option<String>,
    pub append_system_prompt: Vec<String>,
    pub skill_paths: Vec<String>,
    pub skill_names: Vec<String>,
    pub no_skills: bool,
    pub prompt_paths: Vec<String>,
    pub no_prompt_templates: bool,
    pub no_context_files: bool,
    pub extensions: Vec<String>,
    pub no_extensions: bool,
    /// `--extension-errors`: which extensions must load.
    pub extension_errors: Option<ExtensionErrors>,
    /// Options that only extensions may know.
    pub extension_flags: ExtensionFlags,
    /// `--approve` or `--no-approve`, the last one given.
    pub approve: Option<bool>,
    pub offline: bool,
    pub dialect: Option<&'static Dialect>,
    pub stream_updates: Option<StreamUpdates>,
    pub max_line_bytes: Option<usize>,
    pub host_tool_timeout: Option<Duration>,
    pub no_rules: bool,
    pub ui_cancel: bool,
    pub messages: Vec<String>,
    pub files: Vec<String>,
    /// For stderr, before anything else.
    pub warnings: Vec<String>,
    /// Options with one dash that nobody knows.
    unknown: Vec<String>,
}

/// What the process is asked to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// A conversation, in whatever mode.
    #[default]
    Serve,
    Help,
    Version,
    ListModels,
    /// A session file as a page.
    Export(PathBuf),
    Tour,
    ConfigCheck,
    /// `auth`, with its own arguments.
    Auth(Vec<String>),
    Completions(Shell),
    Man,
    /// `-h` of a subcommand.
    Usage(String),
    /// Something pith does not do; the text says so.
    Refuse(String),
}

/// What becomes of extensions that cannot be loaded. Without a word, those of the command line must load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtensionErrors {
    /// They are reported and left out.
    Warn,
    /// pith does not start.
    Fatal,
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
    #[cfg(test)]
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Cli, String> {
        Cli::parse_in(None, arguments)
    }

    /// The same for a program that has a mode unless it is told another one.
    pub fn parse_in(mode: Option<Mode>, arguments: impl IntoIterator<Item = String>) -> Result<Cli, String> {
        let arguments: Vec<String> = arguments.into_iter().collect();
        let first = arguments.first().and_then(|first| Subcommand::of(first, arguments.get(1).map(String::as_str)));
        let mut cli = Cli { mode, ..Cli::default() };
        if let [name, rest @ ..] = arguments.as_slice()
            && rest.iter().any(|argument| argument == "-h" || argument == "--help")
            && let Some(usage) = subcommand::usage(name)
        {
            return Ok(Cli { action: Action::Usage(usage), ..cli });
        }
        let mut arguments = arguments.into_iter().peekable();
        if let Some(subcommand) = first {
            arguments.next();
            cli.action = match subcommand {
                Subcommand::Rpc => {
                    cli.mode = Some(Mode::Rpc);
                    Action::Serve
                }
                Subcommand::Tour => Action::Tour,
                Subcommand::Man => Action::Man,
                Subcommand::Doctor => Action::ConfigCheck,
                Subcommand::Auth => return Ok(Cli { action: Action::Auth(arguments.collect()), ..cli }),
                Subcommand::Refused(text) => return Ok(Cli { action: Action::Refuse(text), ..cli }),
                Subcommand::Completions(shell) => {
                    arguments.next();
                    Action::Completions(shell)
                }
                Subcommand::ConfigCheck => {
                    arguments.next();
                    Action::ConfigCheck
                }
            };
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
        match Flag::named(&name) {
            Some(flag) => {
                let value = match (flag.takes, flag.support) {
                    (Takes::Nothing, _) => None,
                    (Takes::Value(_), Support::Full | Support::Ignored) => inline.or_else(|| rest.next()),
                    (Takes::Optional(_), _) | (Takes::Value(_), Support::Foreign) => {
                        inline.or_else(|| rest.next_if(|next| !next.starts_with(['-', '@'])))
                    }
                };
                let lacks_value = matches!(flag.takes, Takes::Value(_)) && value.is_none();
                if lacks_value && flag.support == Support::Full && !["--mode", "--name"].contains(&flag.long) {
                    // At the end, and so nothing anybody knows.
                    self.extension_flags.push(&flag.long[2..], None);
                    return Ok(());
                }
                self.known(flag, value)?;
                // A front-matter document is a message although it begins with dashes.
                let is_message = |next: &String| !next.starts_with(['-', '@']) || next.starts_with("---");
                if flag.long == "--print"
                    && let Some(message) = rest.next_if(is_message)
                {
                    self.messages.push(message);
                }
                Ok(())
            }
            None if argument.starts_with("--") => {
                // An extension's flag or another agent's; what follows it may be its value.
                let value = inline.or_else(|| rest.next_if(|next| !next.starts_with(['-', '@'])));
                self.extension_flags.push(&name[2..], value);
                Ok(())
            }
            None => {
                self.unknown.push(argument);
                Ok(())
            }
        }
    }

    fn known(&mut self, flag: &Flag, value: Option<String>) -> Result<(), String> {
        match flag.support {
            Support::Ignored => return Ok(()),
            Support::Foreign => {
                self.extension_flags.push_foreign(&flag.long[2..], value);
                return Ok(());
            }
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
            "--print" => self.print = true,
            "--list-models" => {
                self.action = Action::ListModels;
                self.search = Some(value).filter(|search| !search.trim().is_empty());
            }
            "--provider" => self.provider = Some(value),
            "--model" => self.model = Some(value),
            "--models" => self.models = Some(value),
            "--thinking" => self.set_thinking(&value),
            "--api-key" => self.api_key = Some(value),
            "--script" => self.script = Some(value.into()),
            "--session-dir" => self.session_dir = Some(value.into()),
            "--no-session" => self.sessions.is_unsaved = true,
            "--continue" => self.sessions.is_latest = true,
            "--session" if value.is_empty() => self.sessions.resume = Some(value),
            "--session" => self.sessions.open = Some(value),
            "--create" => self.sessions.may_create_directory = true,
            "--session-id" => self.sessions.id = Some(value),
            "--fork" => self.sessions.fork = Some(value),
            "--resume" => self.sessions.resume = Some(value),
            "--name" if value.trim().is_empty() => return Err("--name requires a non-empty value".to_owned()),
            "--name" => self.name = Some(value.trim().to_owned()),
            "--tools" => self.tools = Some(names(&value)),
            "--exclude-tools" => self.exclude_tools = names(&value),
            "--no-tools" => self.no_tools = true,
            "--no-builtin-tools" => self.no_builtin_tools = true,
            "--system-prompt" => self.system_prompt = Some(value),
            "--append-system-prompt" => self.append_system_prompt.push(value),
            "--skill" => self.skill_paths.push(value),
            "--skills" => self.skill_names.extend(names(&value)),
            "--no-skills" => self.no_skills = true,
            "--prompt-template" => self.prompt_paths.push(value),
            "--no-prompt-templates" => self.no_prompt_templates = true,
            "--no-context-files" => self.no_context_files = true,
            "--extension" => self.extensions.push(value),
            "--no-extensions" => self.no_extensions = true,
            "--extension-errors" => self.extension_errors = Some(extension_errors(&value)?),
            "--approve" => self.approve = Some(true),
            "--no-approve" => self.approve = Some(false),
            "--offline" => self.offline = true,
            "--dialect" => self.dialect = Some(dialect_named(&value)?),
            "--stream-updates" => self.stream_updates = Some(stream_updates(&value)?),
            "--host-tool-timeout-ms" => self.host_tool_timeout = Some(host_tool_timeout(&value)?),
            "--ui-cancel" => self.ui_cancel = true,
            "--no-rules" => self.no_rules = true,
            "--max-line-bytes" => self.max_line_bytes = Some(max_line(&value)?),
            "--export" => self.action = Action::Export(value.into()),
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
        let is_rpc = self.mode == Some(Mode::Rpc);
        match self.unknown.as_slice() {
            [] => {}
            // Hosts pass flags written for other agents and other versions.
            unknown if is_rpc => self.warnings.push(format!("ignoring unknown options: {}", unknown.join(", "))),
            [first, ..] => return Err(format!("Unknown option: {first}")),
        }
        match self.action {
            Action::Serve => {}
            // The conversation these came with would never see them.
            Action::ConfigCheck | Action::Man | Action::Completions(_) | Action::Tour if !self.messages.is_empty() => {
                return Err(format!("unexpected argument: {}", self.messages[0]));
            }
            _ => return Ok(()),
        }
        self.sessions.check()?;
        // Other agents make directories for their hosts, too.
        self.sessions.serves_host = is_rpc;
        if is_rpc && !self.files.is_empty() {
            return Err("@file arguments are not supported in RPC mode".to_owned());
        }
        if is_rpc && !self.messages.is_empty() {
            self.warnings.push("messages on the command line are ignored in rpc mode".to_owned());
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

fn extension_errors(value: &str) -> Result<ExtensionErrors, String> {
    match value {
        "warn" => Ok(ExtensionErrors::Warn),
        "fatal" => Ok(ExtensionErrors::Fatal),
        other => Err(format!("Invalid --extension-errors \"{other}\". Valid values: warn, fatal")),
    }
}

fn max_line(value: &str) -> Result<usize, String> {
    let parsed = value.parse().ok().filter(|limit| *limit > 0);
    parsed.ok_or_else(|| format!("Invalid --max-line-bytes \"{value}\": expected a positive number"))
}

fn host_tool_timeout(value: &str) -> Result<Duration, String> {
    let parsed = value.parse().ok().filter(|limit| *limit > 0).map(Duration::from_millis);
    parsed.ok_or_else(|| format!("Invalid --host-tool-timeout-ms \"{value}\": expected a positive number"))
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
        check("--extension-errors maybe", "Invalid --extension-errors \"maybe\". Valid values: warn, fatal");
        check("--mode rpc @x", "@file arguments are not supported in RPC mode");
        check("--host-tool-timeout-ms 0", "Invalid --host-tool-timeout-ms \"0\": expected a positive number");
        check("--name", "--name requires a value");
        check("--mode rpc --fork a -c", "--fork cannot be combined with --continue");
    }

    #[test]
    fn rpc_hosts_may_pass_flags_of_other_versions() {
        let cli = parse("--mode rpc --frobnicate yes --no-lsp --model m").expect("parses");
        assert_eq!(cli.extension_flags, parse("--frobnicate=yes").expect("parses").extension_flags);
        assert_eq!(cli.model.as_deref(), Some("m"));
        let cli = parse("--mode rpc --thinking silly hello").expect("parses");
        assert_eq!(cli.warnings.len(), 2);
    }

    #[test]
    fn help_lists_what_works() {
        let help = help(&[], true);
        assert!(help.contains("--stream-updates <full|delta>") && !help.contains("--tui-mode"));
        let too_wide = help.lines().filter(|line| line.chars().count() > 108).map(str::to_owned).collect::<Vec<_>>();
        assert!(too_wide.is_empty(), "{too_wide:#?}");
    }

    #[test]
    fn print_takes_the_next_argument_as_its_message() {
        let check = |line: &[&str], messages: &[&str], files: &[&str]| {
            let cli = Cli::parse(line.iter().map(|word| (*word).to_owned())).expect("parses");
            assert!(cli.print && cli.messages == messages && cli.files == files, "{line:?}: {cli:?}");
        };
        check(&["-p", "hello", "again"], &["hello", "again"], &[]);
        check(&["-p", "---\nname: x\n---"], &["---\nname: x\n---"], &[]);
        check(&["-p", "@file", "text"], &["text"], &["file"]);
        check(&["-p", "--model", "m", "text"], &["text"], &[]);
        check(&["-p"], &[], &[]);
        check(&["-p", "--", "-x", "@y", "--model"], &["-x", "--model"], &["y"]);
    }

    #[test]
    fn subcommands_stand_in_first_position() {
        let action = |line: &str| parse(line).expect(line).action;
        assert_eq!(action("rpc --model m"), Action::Serve);
        assert_eq!(parse("rpc").expect("parses").mode, Some(Mode::Rpc));
        assert_eq!(action("config check"), Action::ConfigCheck);
        assert_eq!(action("completions fish"), Action::Completions(Shell::Fish));
        assert_eq!(
            action("auth check --provider x"),
            Action::Auth(["check", "--provider", "x"].map(str::to_owned).to_vec())
        );
        assert!(matches!(action("install x"), Action::Refuse(_)));
        assert!(matches!(action("config"), Action::Refuse(_)));
        assert_eq!(action("-p install it"), Action::Serve);
        assert_eq!(parse("man page").expect_err("too much"), "unexpected argument: page");
    }

    #[test]
    fn a_search_term_is_optional() {
        let search = |line: &str| parse(line).map(|cli| (cli.action == Action::ListModels, cli.search)).expect(line);
        assert_eq!(search("--list-models"), (true, None));
        assert_eq!(search("--list-models sonnet"), (true, Some("sonnet".to_owned())));
        assert_eq!(search("--list-models --offline"), (true, None));
    }
}
