//! Rules about tool calls: where they are read, and `pith permissions check`, which says what they make of a command.

use std::path::Path;

use anyhow::bail;
use pith_config::{AgentDir, Environment};
use pith_permissions::command::Word;
use pith_permissions::{Action, Judgement, LoadedPolicy, Reason, Sources, ToolUse, Verdict};

use crate::cli::Cli;
use crate::open::agent_dir;
use crate::program::Program;
use crate::project::Project;
use crate::{rpc, show, warn};

const USAGE: &str = "Usage: pith permissions check COMMAND [options]

Says what the rules that apply in this directory make of a shell command, part by part.
The exit code is 0 if it runs, 1 if it is refused, 2 if the user is asked.
Options are --permission-mode, --approval-mode, --allowed-tools, --disallowed-tools, --approve and --no-approve, as for a session.
";

/// Returns where the rules of a directory are read. Reads nothing.
pub fn sources(cli: &Cli, agent_dir: &AgentDir, environment: &Environment, cwd: &Path, is_trusted: bool) -> Sources {
    let (agent_dir, cwd, home) = (agent_dir.clone(), cwd.to_owned(), environment.home().to_owned());
    Sources { agent_dir, cwd, home, is_trusted, flags: cli.permissions.clone() }
}

/// Runs the subcommand and returns the exit code.
pub fn run(arguments: &[String], program: &Program) -> anyhow::Result<u8> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["check", "-h" | "--help"] | ["-h" | "--help"] => show(USAGE),
        ["check", ..] => check(&arguments[1..], program),
        [] => bail!("a verb is missing\n{USAGE}"),
        [other, ..] => bail!("unexpected argument: {other}\n{USAGE}"),
    }
}

fn check(arguments: &[String], program: &Program) -> anyhow::Result<u8> {
    let cli = Cli::parse_in(None, arguments.iter().cloned()).map_err(anyhow::Error::msg)?;
    let command = match cli.messages.as_slice() {
        [command] => command,
        [] => bail!("a command is missing\n{USAGE}"),
        [_, extra, ..] => bail!("unexpected argument: {extra}; a command is one argument, in quotes\n{USAGE}"),
    };
    let environment = Environment::of_process();
    let agent_dir = agent_dir(rpc::dialect(&cli, program)?, &environment);
    let cwd = crate::current_dir()?;
    let mut project = Project::new(&cli, &agent_dir, &environment, None);
    project.settings(&cwd);
    let sources = sources(&cli, &agent_dir, &environment, &cwd, project.trusts(&cwd));
    let LoadedPolicy { policy, diagnostics } = sources.load();
    diagnostics.iter().for_each(|found| warn(&format!("Warning: {}", found.message)));
    let action = Action::Command(command);
    let call = ToolUse { tool: "bash", action, workspace: &cwd, home: &sources.home, is_confined: false };
    let judgement = policy.judge(&call);
    show(&described(&judgement, command, policy.mode.as_str()))?;
    Ok(match judgement.verdict {
        Verdict::Allow => 0,
        Verdict::Deny => 1,
        Verdict::Ask => 2,
    })
}

fn described(judgement: &Judgement, command: &str, mode: &str) -> String {
    let mut text = String::new();
    for part in &judgement.parts {
        text.push_str(&line(part.verdict, &part.words, &why(&part.reason, mode)));
    }
    if judgement.parts.is_empty() {
        // All commands are treated alike, so nobody has read this one: what holds for it holds for each part.
        let parts = pith_permissions::command::read(command).parts;
        parts
            .iter()
            .for_each(|part| text.push_str(&line(judgement.verdict, &part.words, &why(&judgement.reason, mode))));
    }
    judgement.writes.iter().for_each(|path| text.push_str(&format!("writes {path}\n")));
    judgement.opaque.iter().for_each(|reason| text.push_str(&format!("not understood: {reason}\n")));
    text + &format!("verdict: {} ({})\n", judgement.verdict.as_str(), why(&judgement.reason, mode))
}

fn line(verdict: Verdict, words: &[Word], why: &str) -> String {
    let words: Vec<&str> = words.iter().map(Word::shown).collect();
    format!("{:5}  {}  ({why})\n", verdict.as_str(), pith_visible::visible(&words.join(" ")))
}

fn why(reason: &Reason, mode: &str) -> String {
    match reason {
        Reason::Rule { rule, origin } => format!("{rule} of {origin}"),
        Reason::Possible { rule, mentioned: Some(mentioned) } => format!("mentions `{mentioned}`, see {rule}"),
        Reason::Possible { rule, mentioned: None } => format!("{rule} may be meant"),
        Reason::Mode => format!("mode {mode}"),
        Reason::Opaque => "not all of it is understood".to_owned(),
    }
}
