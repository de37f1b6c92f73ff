//! The pith binary: argv, stdin, stdout, dialects, exit codes.

mod cli;
mod dialect;
mod lifecycle;
mod outbox;
mod program;
mod rpc;
mod sessions;
mod startup;
mod tour;
mod transport;

use std::io::Write;
use std::process::ExitCode;

use cli::{Action, Cli, Mode};
use pith_tools::process::{GUARD_ARGUMENT, guard_main};
use program::Program;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = Program::of(arguments.next());
    let mut arguments = arguments.peekable();
    if arguments.next_if(|first| first == GUARD_ARGUMENT).is_some() {
        return guard_main(arguments);
    }
    match run(&program, arguments.collect()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let prefix = if error.is::<sessions::Plain>() { "" } else { "Error: " };
            warn(&format!("{prefix}{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(program: &Program, arguments: Vec<std::ffi::OsString>) -> anyhow::Result<u8> {
    let arguments = program::utf8(arguments)?;
    let cli = Cli::parse(arguments).map_err(anyhow::Error::msg)?;
    for warning in &cli.warnings {
        warn(&format!("Warning: {warning}"));
    }
    match (cli.action, cli.mode) {
        (Action::Help, _) => show(&cli::help()),
        (Action::Version, _) => show(&format!("{}\n", program.version())),
        (Action::Tour, _) => tour::play(),
        (Action::Serve, Some(Mode::Rpc)) => rpc::serve(cli, program),
        (Action::Serve, Some(Mode::Json)) => anyhow::bail!("not available yet: --mode json"),
        (Action::Serve, Some(Mode::Text) | None) => {
            warn("pith is driven by a host: use --mode rpc, or see pith --help");
            Ok(2)
        }
    }
}

fn show(text: &str) -> anyhow::Result<u8> {
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(0)
}

/// One line for a person, on stderr.
#[allow(clippy::print_stderr, reason = "stderr is where a headless program talks to people")]
fn warn(text: &str) {
    eprintln!("{text}");
}
