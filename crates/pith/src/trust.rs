//! `pith trust`: shows and changes the decision whether a project's own settings and resources are used.

use std::path::PathBuf;

use anyhow::{Context, bail};
use pith_config::Environment;
use pith_resources::TrustFile;

use crate::cli::Cli;
use crate::open::agent_dir;
use crate::program::Program;
use crate::{mcp, rpc, show};

/// What to do about a directory.
enum Wish {
    Trust,
    Refuse,
    Forget,
    Show,
}

/// Runs the subcommand and returns the exit code.
pub fn run(arguments: &[String], program: &Program) -> anyhow::Result<u8> {
    let (mut wish, mut directory) = (Wish::Trust, None);
    for argument in arguments {
        match argument.as_str() {
            "--no" => wish = Wish::Refuse,
            "--forget" => wish = Wish::Forget,
            "--show" => wish = Wish::Show,
            other if other.starts_with('-') || directory.is_some() => {
                bail!("unexpected argument: {other}; use pith trust [--no|--forget|--show] [DIR]")
            }
            path => directory = Some(PathBuf::from(path)),
        }
    }
    let environment = Environment::of_process();
    let agent_dir = agent_dir(rpc::dialect(&Cli::default(), program)?, &environment);
    let file = TrustFile::in_agent_dir(agent_dir.path());
    let current = crate::current_dir()?;
    let directory = directory.map_or(current.clone(), |directory| current.join(directory));
    let directory =
        directory.canonicalize().with_context(|| format!("there is no directory {}", directory.display()))?;
    match wish {
        Wish::Trust => {
            file.save(&directory, true)?;
            mcp::accept_project(agent_dir, environment, &directory);
        }
        Wish::Refuse => file.save(&directory, false)?,
        Wish::Forget => file.forget(&directory)?,
        Wish::Show => {}
    }
    let state = match file.decision(&directory)? {
        Some(true) => "trusted",
        Some(false) => "not trusted",
        None => "undecided",
    };
    show(&format!("{}: {state}\n", directory.display()))
}
