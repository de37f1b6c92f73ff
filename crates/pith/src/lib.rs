//! The pith program: argv, stdin, stdout, dialects, exit codes. The binary only calls [`main`].

mod acp;
mod auth;
mod check;
mod cli;
mod conformance;
mod debug;
mod dialect;
pub mod embed;
mod export;
mod extensions;
mod hub;
mod launcher;
mod lifecycle;
mod log;
mod mcp;
#[cfg(target_os = "linux")]
mod memory;
mod modes;
mod open;
mod outbox;
mod packages;
mod permissions;
mod program;
mod project;
mod rpc;
mod sandbox;
mod schema;
mod secrets_file;
mod sessions;
mod telemetry;
mod tour;
mod transport;
mod trust;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use cli::{Action, Cli, Mode};
use pith_config::Environment;
use pith_secrets::Secrets;
use pith_tools::process::{SUPERVISOR_ARGUMENT, supervisor_main};
use pith_visible::{visible, write_stderr};
use program::Program;

/// Runs the program of this process.
pub fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = Program::of(arguments.next());
    let mut arguments = arguments.peekable();
    if arguments.next_if(|first| first == SUPERVISOR_ARGUMENT).is_some() {
        return supervisor_main(arguments);
    }
    // An extension that starts the agent again as Node would passes the script path it was given.
    let _ = arguments.next_if(|first| first == pith_ext::SCRIPT);
    lifecycle::outlive_file_size_limit();
    lifecycle::close_memory(&Environment::of_process());
    match run(&program, arguments.collect()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let prefix = if error.is::<sessions::PlainError>() { "" } else { "Error: " };
            warn(&format!("{prefix}{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(program: &Program, arguments: Vec<std::ffi::OsString>) -> anyhow::Result<u8> {
    let arguments = program::utf8(arguments)?;
    let mode = program.is_rpc().then_some(Mode::Rpc);
    let mut cli = Cli::parse_in(mode, arguments).map_err(anyhow::Error::msg)?;
    cli.is_called_pi = program.is_pi();
    mask_stderr();
    let environment = Environment::of_process();
    if debug::is_wanted(&cli.debug, &environment) {
        debug::open(&cli, rpc::dialect(&cli, program)?, &environment)?;
    }
    log::install(cli.verbose, &environment);
    for warning in &cli.warnings {
        warn(&format!("Warning: {warning}"));
    }
    match &cli.action {
        Action::Help => check::help(&cli, rpc::dialect(&cli, program)?),
        Action::Version => show(&format!("{}\n", program.version())),
        Action::Completions(shell) => show(&cli::completions(*shell)),
        Action::Man => show(&cli::man()),
        Action::Tour { raw: true } => tour::play(tour::Form::Lines),
        Action::Tour { .. } if !is_attended() => tour::play(tour::Form::Prose),
        Action::Tour { .. } => modes::tour(tour::arguments()?, rpc::dialect(&cli, program)?, tour::STEERING),
        Action::ListModels => check::list_models(&cli, rpc::dialect(&cli, program)?),
        Action::ConfigCheck => check::config(&cli, rpc::dialect(&cli, program)?),
        Action::Auth(arguments) => auth::run(arguments, program),
        Action::Mcp(arguments) => mcp::run(arguments, program),
        Action::Sandbox(arguments) => sandbox::run(arguments, program),
        Action::Permissions(arguments) => permissions::run(arguments, program),
        Action::Debug(arguments) => debug::run(arguments, program),
        Action::Trust(arguments) => trust::run(arguments, program),
        Action::Schema(arguments) => schema::print(arguments, program),
        Action::Packages(verb, arguments) => packages::run(*verb, arguments, program),
        Action::Conformance(arguments) => conformance::run(arguments, program),
        Action::Export(file) => export::page(file, cli.messages.first(), rpc::dialect(&cli, program)?),
        Action::Usage(text) => show(text),
        Action::Refuse(text) => {
            warn(text);
            Ok(2)
        }
        Action::Serve => converse(cli, program),
    }
}

/// Starts the conversation in the mode that flags and streams select.
fn converse(cli: Cli, program: &Program) -> anyhow::Result<u8> {
    match cli.mode {
        Some(Mode::Rpc) => return rpc::serve(cli, program),
        Some(Mode::Acp) => return acp::serve(cli, program),
        None | Some(Mode::Text | Mode::Json) => {}
    }
    let dialect = rpc::dialect(&cli, program)?;
    match cli.mode {
        Some(Mode::Json) => modes::json(cli, dialect),
        _ if cli.print || !is_attended() => modes::print(cli, dialect),
        _ => {
            cli.refuse_output_flags("the chat").map_err(anyhow::Error::msg)?;
            modes::chat(cli, dialect)
        }
    }
}

/// Whether a person reads and types.
fn is_attended() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Prints text: on a terminal with control characters made visible, for a script as it is.
fn show(text: &str) -> anyhow::Result<u8> {
    let text = if io::stdout().is_terminal() { visible(text) } else { text.into() };
    match io::stdout().write_all(text.as_bytes()) {
        // A pager that was closed is no failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        written => written.map(|()| 0).context("cannot write to stdout"),
    }
}

/// The directory pith was started in.
fn current_dir() -> anyhow::Result<PathBuf> {
    std::env::current_dir().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            anyhow::anyhow!("the current directory has been deleted; change to another one and start pith again")
        }
        _ => anyhow::Error::new(error).context("cannot tell the current directory"),
    })
}

/// Keeps known secrets out of whatever is written to stderr from now on.
fn mask_stderr() {
    pith_visible::filter_stderr(|text| Secrets::of_process().redact(text));
}

/// Prints one line to stderr.
fn warn(text: &str) {
    write_stderr(&format!("{text}\n"));
}
