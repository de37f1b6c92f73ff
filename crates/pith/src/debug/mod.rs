//! `--debug FILE`: what happened in a process, as lines of JSON that may be given to others.
//!
//! Two things write to it: the layer takes every event that `log` could show, the taps of the transport pass on every
//! frame. Texts are not in it, only their lengths and whether two are the same, unless `--debug-content` is given; and
//! whatever is or looks like a key is masked in each string, last of all, in [`file::DebugFile`].
//!
//! Without the flag there is no file, and a tap is one look at an empty cell.

mod check;
mod file;
mod frame;
mod layer;
mod outbox;

use std::sync::OnceLock;

use pith_config::Environment;
use pith_secrets::Secrets;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::registry::LookupSpan;

pub use check::run;
pub use outbox::watched;

use crate::cli::{Cli, DebugFlags};
use crate::dialect::Dialect;
use crate::secrets_file;
use crate::transport::Line;
use file::{DebugFile, Record};
use layer::DebugLayer;

static FILE: OnceLock<DebugFile> = OnceLock::new();

/// Whether flag or variable ask for a file.
pub fn is_wanted(flags: &DebugFlags, environment: &Environment) -> bool {
    flags.file.is_some() || flags.shows_content || variable(environment).is_some()
}

fn variable(environment: &Environment) -> Option<String> {
    environment.get("PITH_DEBUG").filter(|path| !path.is_empty())
}

/// Opens the file that flag or variable name; the flag counts. Called once, before anything else is written.
pub fn open(cli: &Cli, dialect: &Dialect, environment: &Environment) -> anyhow::Result<()> {
    let DebugFlags { file, shows_content } = &cli.debug;
    let (path, source) = match (file, variable(environment)) {
        (Some(path), _) => (path.clone(), "--debug"),
        (None, Some(path)) => (path.into(), "PITH_DEBUG"),
        (None, None) => anyhow::bail!("--debug-content needs --debug FILE"),
    };
    let file = DebugFile::open(&path, environment.home(), *shows_content)
        .map_err(|error| anyhow::anyhow!("{source}: {}: {error}", path.display()))?;
    // A host may write before the session is open, and so before it has told what to mask.
    let _registry = secrets_file::learn_without_session(dialect, environment)?;
    cli.api_key.iter().for_each(|key| Secrets::of_process().remember(key));
    file.begin();
    // A second call would be that of another program in this process, and the first file stays.
    let _ = FILE.set(file);
    Ok(())
}

/// Returns the layer that writes events to the file, if there is one.
pub fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> Option<impl Layer<S>> {
    let events = Targets::new()
        .with_target("pith", LevelFilter::DEBUG)
        .with_target("pith::http", LevelFilter::TRACE)
        // At `debug` it is what servers write to stderr: texts that nobody counts.
        .with_target("pith::mcp", LevelFilter::INFO);
    FILE.get().map(|file| DebugLayer(file).with_filter(events))
}

/// Passes on a line of the host.
pub fn line_in(line: &Line<'_>) {
    let Some(file) = FILE.get() else { return };
    match line {
        Line::Whole([]) => {}
        Line::Whole(bytes) => file.write(&Record::In(file.frame(bytes))),
        Line::TooLong => file.write(&Record::TooLong {}),
    }
}

/// Passes on whole lines for the host.
pub fn lines_out(lines: &[u8]) {
    let Some(file) = FILE.get() else { return };
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        file.write(&Record::Out(file.frame(line)));
    }
}

/// Whether there is a file.
fn is_on() -> bool {
    FILE.get().is_some()
}
