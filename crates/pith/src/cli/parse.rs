//! Parses the arguments: subcommands, flags by the table, messages and files.

use std::iter::Peekable;
use std::vec;

use pith_protocol::ThinkingLevel;
use pith_protocol::permissions::PermissionMode;

use super::flags::{Effect, Flag, Takes};
use super::subcommand::{self, Subcommand};
use super::{Action, Cli, Mode, OutputFlags};

/// What editors start in a terminal, as `pith acp` announces it.
pub const SIGN_IN: [&str; 2] = ["auth", "setup"];

/// The arguments that have not been parsed yet.
type Rest = Peekable<vec::IntoIter<String>>;

impl Cli {
    /// Parses the arguments after the program name; `Err` is the text after `Error: `.
    #[cfg(test)]
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Cli, String> {
        Cli::parse_in(None, arguments)
    }

    /// Like [`Cli::parse`], for a program that has a default mode.
    pub fn parse_in(mode: Option<Mode>, arguments: impl IntoIterator<Item = String>) -> Result<Cli, String> {
        let arguments: Vec<String> = arguments.into_iter().collect();
        let first = arguments.first().and_then(|first| Subcommand::of(first, arguments.get(1).map(String::as_str)));
        let mut cli = Cli { mode, ..Cli::default() };
        if let [name, rest @ ..] = arguments.as_slice()
            // What stands behind two dashes is for somebody else.
            && rest.iter().take_while(|argument| *argument != "--").any(|argument| argument == "-h" || argument == "--help")
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
                Subcommand::Acp => {
                    cli.mode = Some(Mode::Acp);
                    Action::Serve
                }
                Subcommand::Tour => Action::Tour { raw: arguments.next_if(|next| next == "--raw").is_some() },
                Subcommand::Man => Action::Man,
                Subcommand::Doctor => Action::ConfigCheck,
                Subcommand::Auth => return Ok(Cli { action: Action::Auth(arguments.collect()), ..cli }),
                Subcommand::Packages(verb) => {
                    return Ok(Cli { action: Action::Packages(verb, arguments.collect()), ..cli });
                }
                Subcommand::Mcp => return Ok(Cli { action: Action::Mcp(arguments.collect()), ..cli }),
                Subcommand::Permissions => {
                    return Ok(Cli { action: Action::Permissions(arguments.collect()), ..cli });
                }
                Subcommand::Sandbox => return Ok(Cli { action: Action::Sandbox(arguments.collect()), ..cli }),
                Subcommand::Debug => return Ok(Cli { action: Action::Debug(arguments.collect()), ..cli }),
                Subcommand::Trust => return Ok(Cli { action: Action::Trust(arguments.collect()), ..cli }),
                Subcommand::Schema => return Ok(Cli { action: Action::Schema(arguments.collect()), ..cli }),
                Subcommand::Conformance => return Ok(Cli { action: Action::Conformance(arguments.collect()), ..cli }),
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

    fn option(&mut self, argument: String, rest: &mut Rest) -> Result<(), String> {
        let (name, inline) = match argument.split_once('=') {
            Some((name, value)) if argument.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
            _ => (argument.clone(), None),
        };
        match Flag::named(&name) {
            Some(flag) => self.known(flag, inline, rest),
            None if argument.starts_with("--") => {
                // A flag of an extension or of another agent; what follows it may be its value.
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

    fn known(&mut self, flag: &Flag, inline: Option<String>, rest: &mut Rest) -> Result<(), String> {
        let value = match (flag.takes, flag.effect) {
            (Takes::Nothing, _) => None,
            (Takes::Optional(_), _) | (Takes::Value(_), Effect::Foreign) => {
                inline.or_else(|| rest.next_if(|next| !next.starts_with(['-', '@'])))
            }
            (Takes::Value(_), _) => inline.or_else(|| rest.next()),
        };
        let is_missing = matches!(flag.takes, Takes::Value(_)) && value.is_none();
        match flag.effect {
            Effect::Ignored => {}
            Effect::Foreign => self.extension_flags.push_foreign(&flag.long[2..], value),
            Effect::Set(_) | Effect::Check(_) if is_missing => match flag.missing_value {
                Some(text) => return Err(text.to_owned()),
                // An extension may have a flag of the same name without a value.
                None => self.extension_flags.push(&flag.long[2..], None),
            },
            Effect::Switch(set) => set(self),
            Effect::Set(set) => set(self, value.unwrap_or_default()),
            Effect::Check(set) => set(self, value.unwrap_or_default())?,
        }
        // A document with front matter is a message although it begins with dashes.
        let is_message = |next: &String| !next.starts_with(['-', '@']) || next.starts_with("---");
        if ["--print", "--json"].contains(&flag.long)
            && let Some(message) = rest.next_if(is_message)
        {
            self.messages.push(message);
        }
        Ok(())
    }

    /// Sets what `--list-models` looks for, if it is anything.
    pub(super) fn look_for(&mut self, search: String) {
        if !search.trim().is_empty() {
            self.search = Some(search);
        }
    }

    /// Sets `--thinking`; like other agents, pith only warns about unknown levels.
    pub(super) fn set_thinking(&mut self, value: &str) {
        self.thinking = ThinkingLevel::parse(value);
        if self.thinking.is_none() {
            let valid = ThinkingLevel::ALL.map(ThinkingLevel::as_str).join(", ");
            self.warnings.push(format!("Invalid thinking level \"{value}\". Valid values: {valid}"));
        }
    }

    /// Sets the mode for tool calls, which has two flags. The last of one counts; both must say the same.
    pub(super) fn set_mode(&mut self, flag: &'static str, mode: PermissionMode) -> Result<(), String> {
        if let Some(other) = self.mode_flag.replace(flag).filter(|other| *other != flag)
            && self.permissions.mode != Some(mode)
        {
            return Err(format!("{flag} and {other} contradict each other"));
        }
        self.permissions.mode = Some(mode);
        Ok(())
    }

    /// Resolves `--json`, and refuses flags about an answer in a mode that serves a host.
    fn check_output(&mut self) -> Result<(), String> {
        match self.mode {
            Some(Mode::Rpc) if self.json => self.warnings.push("--json has no effect in rpc mode".to_owned()),
            Some(Mode::Acp) if self.json => self.warnings.push("--json has no effect in acp mode".to_owned()),
            Some(Mode::Text) if self.json => return Err("--json cannot be combined with --mode text".to_owned()),
            None if self.json => self.mode = Some(Mode::Json),
            None | Some(Mode::Text | Mode::Json | Mode::Rpc | Mode::Acp) => {}
        }
        match self.mode {
            Some(Mode::Rpc) => self.refuse_output_flags("rpc mode")?,
            Some(Mode::Acp) => self.refuse_output_flags("acp mode")?,
            None | Some(Mode::Text | Mode::Json) => {}
        }
        Ok(())
    }

    /// Refuses flags about an answer where there is not one answer.
    pub fn refuse_output_flags(&self, place: &str) -> Result<(), String> {
        let flag = match &self.output {
            OutputFlags { schema: Some(_), .. } => "--output-schema",
            OutputFlags { file: Some(_), .. } => "--output",
            OutputFlags { schema: None, file: None, .. } => return Ok(()),
        };
        Err(format!("{flag} has no meaning in {place}; use it with -p or --json"))
    }

    /// Refuses what the editor decides in acp mode: which session it is, and what is said in it.
    fn check_acp(&self) -> Result<(), String> {
        let sessions = &self.sessions;
        let flag = match () {
            () if sessions.open.is_some() => "--session",
            () if sessions.is_latest => "--continue",
            () if sessions.resume.is_some() => "--resume",
            () if sessions.id.is_some() => "--session-id",
            () if sessions.fork.is_some() => "--fork",
            () if !self.messages.is_empty() || !self.files.is_empty() => "a message",
            () => return Ok(()),
        };
        Err(format!("{flag} has no meaning in acp mode: the editor chooses the session and sends the prompts"))
    }

    fn check(&mut self) -> Result<(), String> {
        let is_rpc = self.mode == Some(Mode::Rpc);
        let serves_host = self.mode.is_some_and(Mode::serves_host);
        match self.unknown.as_slice() {
            [] => {}
            // Hosts pass flags written for other agents and other versions.
            unknown if serves_host => self.warnings.push(format!("ignoring unknown options: {}", unknown.join(", "))),
            [first, ..] => return Err(format!("Unknown option: {first}")),
        }
        match self.action {
            Action::Serve => {}
            // These actions send no messages.
            Action::ConfigCheck | Action::Man | Action::Completions(_) | Action::Tour { .. }
                if !self.messages.is_empty() =>
            {
                return Err(format!("unexpected argument: {}", self.messages[0]));
            }
            _ => return Ok(()),
        }
        self.check_output()?;
        self.sessions.check()?;
        // Other agents create directories for their hosts, too.
        self.sessions.serves_host = serves_host;
        if self.mode == Some(Mode::Acp) {
            // An editor appends this to the command line of its agent when its user has to sign in.
            if self.messages == SIGN_IN {
                self.action = Action::Auth(vec!["setup".to_owned()]);
                return Ok(());
            }
            return self.check_acp();
        }
        if is_rpc && !self.files.is_empty() {
            return Err("@file arguments are not supported in RPC mode".to_owned());
        }
        if is_rpc && !self.messages.is_empty() {
            self.warnings.push("messages on the command line are ignored in rpc mode".to_owned());
        }
        Ok(())
    }
}
