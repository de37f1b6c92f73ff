//! `pith sandbox check|run`: what this machine can enforce, and a command held to it.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use pith_config::Environment;
use pith_sandbox::git::is_bare_explicit;
use pith_sandbox::home::OPENED_IN_HOME;
use pith_sandbox::names::{Row, TABLE};
use pith_sandbox::support::{NEVER_CLOSED, WITHOUT_NAMESPACES};
use pith_sandbox::watch::{PutBack, is_watched_whole};
use pith_sandbox::{Profile, Require, Support};
use pith_tools::process::{CgroupUse, CommandLine, Jobs, Supervisor, probe_cgroups, probe_namespaces};
use pith_tools::sandbox::{Oversight, Variables};

use super::Sandboxes;
use crate::cli::Cli;
use crate::open::agent_dir;
use crate::program::Program;
use crate::{rpc, show, warn};

const USAGE: &str = "Usage:
  pith sandbox check [--all]
  pith sandbox names
  pith sandbox run [--profile PROFILE] -- COMMAND...

check says what this machine can enforce, and what of the home can be read; --all names what is not there, too. Its
exit code is 1 if workspace-write is not possible.
names prints which names are protected in every directory, which programs run or obey them, and why.
run runs a command as a tool would, in this directory, with the settings that apply here; its exit code is the command's.
PROFILE is read-only, workspace-write (the default) or custom.
";

/// Runs the subcommand.
pub fn run(arguments: &[String], program: &Program) -> anyhow::Result<u8> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["check"] => check(Rows::ThatExist),
        ["check", "--all"] => check(Rows::All),
        ["names"] => names(),
        ["run", rest @ ..] => run_command(rest, program),
        ["-h" | "--help"] | [_, "-h" | "--help"] => show(USAGE),
        [] => bail!("a verb is missing\n{USAGE}"),
        [other, ..] => bail!("unexpected argument: {other}\n{USAGE}"),
    }
}

/// Which places of the home are named.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rows {
    ThatExist,
    All,
}

fn check(rows: Rows) -> anyhow::Result<u8> {
    let namespaces = probe_namespaces(&Supervisor::this_program()?);
    let support = Support { namespaces: namespaces.is_ok(), ..Support::of_this_kernel() };
    let landlock = match support.landlock_abi {
        0 => "no".to_owned(),
        level => format!("level {level}"),
    };
    let mut text = format!("Landlock: {landlock}\nseccomp: {}\n", if support.seccomp { "yes" } else { "no" });
    match &namespaces {
        Ok(()) => text.push_str("namespaces: yes\n"),
        Err(why) => text.push_str(&format!("namespaces: no ({why})\n")),
    }
    text.push_str(match probe_cgroups() {
        CgroupUse::None => "cgroups: no; pith watches limits of commands itself, and freezes commands by signals\n",
        CgroupUse::Freezing => "cgroups: to freeze commands; pith watches their limits itself\n",
        CgroupUse::Limits => "cgroups: yes; the kernel holds commands to limits.processes and limits.memoryMb\n",
    });
    let verdict = support.check(Profile::WorkspaceWrite, Require::Full);
    match &verdict {
        Ok(()) => {
            text.push_str(
                "read-only, workspace-write and custom are enforced: commands and file tools by the kernel, ",
            );
            text.push_str(match namespaces {
                Ok(()) => "protected paths too; network.mode may be domains.\n",
                Err(_) => "protected paths by putting back what was changed; network.mode cannot be domains.\n",
            });
            text.push_str("Gaps that stay open:\n");
            let gaps = support.missing().into_iter().chain(NEVER_CLOSED);
            gaps.for_each(|gap| text.push_str(&format!("  {gap}\n")));
            if support.namespaces {
                text.push_str("Without namespaces, as sandbox.namespaces \"never\" wants it, also:\n");
                WITHOUT_NAMESPACES.iter().for_each(|gap| text.push_str(&format!("  {gap}\n")));
            }
        }
        Err(why) => text.push_str(&format!("{why}\n")),
    }
    if verdict.is_ok() {
        let home = Environment::of_process().home().to_owned();
        text.push_str(&readable_in(&home, rows, namespaces.is_ok()));
    }
    text.push_str(&advice(Environment::of_process().home()));
    show(&text)?;
    Ok(u8::from(verdict.is_err()))
}

/// What of a home can be read, a line for each place with its reason.
fn readable_in(home: &Path, rows: Rows, is_shown: bool) -> String {
    let named: Vec<_> = OPENED_IN_HOME.iter().filter(|row| rows == Rows::All || home.join(row.path).exists()).collect();
    let n_others = OPENED_IN_HOME.len() - named.len();
    let home = home.display();
    let mut text = format!(
        "In {home} names that begin with a dot are closed, but for these, directories of PATH, the session's own and \
         sandbox.filesystem.allowRead:\n"
    );
    named.iter().for_each(|row| text.push_str(&format!("  ~/{:<32} {}\n", row.path, row.reason)));
    if n_others > 0 {
        text.push_str(&format!("  {n_others} others that are not here (pith sandbox check --all)\n"));
    }
    if !is_shown {
        text.push_str(&format!("Without namespaces commands cannot list {home}, nor the directories it lies in.\n"));
    }
    text
}

/// Says what of the current directory is not watched, and what git can be told to be safer.
fn advice(home: &Path) -> String {
    let mut text = String::new();
    if crate::current_dir().is_ok_and(|cwd| !is_watched_whole(&cwd)) {
        text.push_str(
            "This directory is too large to be watched as a whole: what appears deep in it is not compared with what git \
             and other programs would run.\n",
        );
    }
    if !is_bare_explicit(home) {
        text.push_str(
            "Recommended: git config --global safe.bareRepository explicit\n  \
             Without it git takes every directory for a repository that looks like one inside.\n",
        );
    }
    text
}

fn names() -> anyhow::Result<u8> {
    let mut text = String::new();
    for Row { name, program, reason, .. } in TABLE {
        text.push_str(&format!("{name:<28} {program:<20} {reason}\n"));
    }
    show(&text)
}

fn run_command(arguments: &[&str], program: &Program) -> anyhow::Result<u8> {
    let (profile, command) = match arguments {
        ["--profile", profile, "--", command @ ..] => {
            (profile.parse().map_err(|error| anyhow!("--profile: {error}"))?, command)
        }
        ["--", command @ ..] => (Profile::WorkspaceWrite, command),
        _ => bail!("{USAGE}"),
    };
    let [name, rest @ ..] = command else { bail!("a command is missing\n{USAGE}") };
    if profile == Profile::Off {
        bail!("--profile off would confine nothing; run the command itself");
    }
    let environment = Environment::of_process();
    let mut cli = Cli::default();
    cli.sandbox = Some(profile);
    let agent_dir = agent_dir(rpc::dialect(&cli, program)?, &environment);
    let cwd = crate::current_dir()?;
    let sandboxes = Sandboxes::new(&cli, &environment, &agent_dir, Some(Supervisor::this_program()?))?;
    sandboxes.enter(&cwd)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(confined(sandboxes.oversight(), name, rest, &cwd))?;
    Ok(u8::try_from(code).unwrap_or(1))
}

/// Runs one command and returns its exit code.
async fn confined(oversight: &Oversight, name: &str, arguments: &[&str], cwd: &Path) -> anyhow::Result<i32> {
    let jobs = Arc::new(Jobs::new(oversight.supervisor.clone(), false));
    let command = CommandLine {
        program: name.into(),
        arguments: arguments.iter().map(Into::into).collect(),
        cwd: cwd.to_owned(),
        environment: std::env::vars_os().collect(),
        confinement: None,
    };
    let command = oversight.sandbox.confine(command, &jobs, Variables::Filtered)?;
    let watch = command.confinement.as_ref().and_then(|confinement| confinement.watch.clone());
    let job = jobs.spawn_to(command, Stdio::inherit(), Stdio::inherit())?;
    let exit = job.exited().await.with_context(|| format!("cannot run {name}"))?;
    let changes = watch.map(|watch| watch.changes()).unwrap_or_default();
    for PutBack { path, reason } in changes.put_back {
        warn(&format!("Put back: {} ({reason})", path.display()));
    }
    if let Some(path) = changes.protected {
        bail!("Changed a protected path: {}. It was put back and the command was stopped.", path.display());
    }
    Ok(exit.code())
}
