//! `PITH_LOG`, `PITH_LOG_FILE` and `--verbose`: what pith does, line by line.
//!
//! Without them nothing is installed, and an event costs one comparison. With them, only events of pith's own parts
//! are written. Those name every value they carry, and none of them carries a request, an answer, an argument or a
//! header: that is what keeps keys out. What libraries could tell (hyper knows headers) cannot be asked for.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use pith_config::Environment;
use pith_secrets::Secrets;
use pith_visible::write_stderr;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::{debug, warn};

/// The parts that can be asked for one by one, as `pith::part` in the lines.
const PARTS: [&str; 11] =
    ["acp", "command", "compaction", "extension", "http", "mcp", "model", "run", "session", "telemetry", "tool"];

/// Starts the log if flag or environment ask for one, and lets the debug file have events if there is one. What is wrong
/// with the wish is told, and pith goes on.
pub fn install(is_verbose: bool, environment: &Environment) {
    let wish = environment.get("PITH_LOG").filter(|wish| !wish.trim().is_empty());
    let wish = wish.or_else(|| is_verbose.then(|| "debug".to_owned()));
    let filter = wish.and_then(|wish| match filter(&wish) {
        Ok(filter) => Some(filter),
        Err(why) => {
            warn(&format!("Warning: PITH_LOG: {why}"));
            None
        }
    });
    let lines = filter.map(|filter| {
        tracing_subscriber::fmt::layer()
            .with_ansi(false)
            // Nobody is left to tell that the log cannot be written.
            .log_internal_errors(false)
            .with_writer(writer(environment.get("PITH_LOG_FILE").filter(|path| !path.is_empty())))
            .with_filter(filter)
    });
    let records = debug::layer();
    if lines.is_none() && records.is_none() {
        return;
    }
    // A program that embeds pith may have a subscriber of its own, which then stays.
    let _ = tracing_subscriber::registry().with(lines).with(records).try_init();
}

/// Reads `LEVEL`, `PART=LEVEL` or `PART`, which means its level `debug`, comma-separated.
fn filter(wish: &str) -> Result<Targets, String> {
    let mut targets = Targets::new();
    for word in wish.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let alone = if PARTS.contains(&word) { (word, "debug") } else { ("pith", word) };
        let (part, level) = word.split_once('=').unwrap_or(alone);
        let level: LevelFilter = level.trim().parse().map_err(|_| {
            format!("\"{}\" is not a level; there are off, error, warn, info, debug and trace", level.trim())
        })?;
        let part = part.trim().trim_start_matches("pith::");
        targets = match part {
            "pith" => targets.with_target("pith", level),
            part if PARTS.contains(&part) => targets.with_target(format!("pith::{part}"), level),
            other => return Err(format!("there is no part \"{other}\"; there are {}", PARTS.join(", "))),
        };
    }
    Ok(targets)
}

fn writer(path: Option<String>) -> BoxMakeWriter {
    match path.as_deref().map(open) {
        None => BoxMakeWriter::new(|| Stderr),
        Some(Ok(file)) => {
            let file = Arc::new(file);
            BoxMakeWriter::new(move || LogFile(file.clone()))
        }
        Some(Err(error)) => {
            warn(&format!("Warning: PITH_LOG_FILE: {error}; the log goes to stderr"));
            BoxMakeWriter::new(|| Stderr)
        }
    }
}

/// Opens a log for appending. Nobody else may read it: it has paths, commands and names of models.
fn open(path: &str) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Whole lines for a file, without known secrets.
struct LogFile(Arc<File>);

impl io::Write for LogFile {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(lines);
        io::Write::write_all(&mut &*self.0, Secrets::of_process().redact(&text).as_bytes())?;
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whole lines for stderr, in their visible form on a terminal.
struct Stderr;

impl io::Write for Stderr {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        write_stderr(&String::from_utf8_lossy(lines));
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_wish_names_parts_and_levels() {
        let would = |wish: &str, target: &str, level: Level| filter(wish).expect(wish).would_enable(target, &level);
        assert!(would("debug", "pith::model", Level::DEBUG) && !would("debug", "pith::model", Level::TRACE));
        assert!(would("warn, tool=trace", "pith::tool", Level::TRACE));
        assert!(would("warn,pith::tool=trace", "pith::model", Level::WARN));
        assert!(!would("warn,tool=trace", "pith::model", Level::INFO));
        assert!(would("mcp", "pith::mcp", Level::DEBUG) && !would("mcp", "pith::tool", Level::ERROR));
        // Others know headers.
        assert!(!would("trace", "hyper::proto", Level::ERROR) && !would("trace", "h2", Level::ERROR));
    }

    #[test]
    fn what_is_wrong_with_a_wish_is_said() {
        let check = |wish: &str, text: &str| assert_eq!(filter(wish).expect_err(wish), text);
        check("loud", "\"loud\" is not a level; there are off, error, warn, info, debug and trace");
        check(
            "h2=trace",
            "there is no part \"h2\"; there are acp, command, compaction, extension, http, mcp, model, run, session, telemetry, tool",
        );
    }
}
