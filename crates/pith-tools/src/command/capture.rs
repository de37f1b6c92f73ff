//! Collects the output of one command.

use std::io;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::decode::Decoder;
use super::spill::{Bounds, OutputDir, Spill};
use super::tail::Tail;
use crate::truncate::{Limits, TruncatedBy, Truncation, size};

/// The end of the output in memory, and all of it in a file once it is too long for a result.
pub(crate) struct Capture<'a> {
    pub tail: Tail,
    directory: &'a OutputDir,
    full: Full,
}

enum Full {
    /// Everything so far still fits a result.
    InMemory(Vec<u8>),
    OnDisk(Spill),
    Lost(io::Error),
}

impl<'a> Capture<'a> {
    pub fn new(directory: &'a OutputDir) -> Self {
        Capture { tail: Tail::default(), directory, full: Full::InMemory(Vec::new()) }
    }

    /// Adds bytes to the tail and the log.
    pub fn take(&mut self, decoder: &mut Decoder, bytes: &[u8]) {
        decoder.push(bytes, |text| self.tail.push(text));
        self.log(bytes);
    }

    /// Adds bytes to the log; the tail has them already.
    pub fn log(&mut self, bytes: &[u8]) {
        match &mut self.full {
            Full::InMemory(early) => {
                early.extend_from_slice(bytes);
                if !self.tail.total().fits(Limits::RESULT) {
                    self.full = open_log(self.directory, early).map_or_else(Full::Lost, Full::OnDisk);
                }
            }
            Full::OnDisk(spill) => {
                if let Err(error) = spill.write(bytes) {
                    self.full = Full::Lost(error);
                }
            }
            Full::Lost(_) => {}
        }
    }

    /// The `details` of a result or update with this `truncation`.
    pub fn details(&self, truncation: Option<&Truncation>) -> Value {
        let mut details = Map::new();
        if let Some(truncation) = truncation {
            details.insert("truncation".into(), truncation.details());
        }
        if let Full::OnDisk(spill) = &self.full {
            details.insert("fullOutputPath".into(), json!(spill.path()));
        }
        Value::Object(details)
    }

    /// Completes and closes the log.
    pub fn finish(self) -> Captured {
        let (text, truncation) = self.tail.cut(Limits::RESULT);
        let log = match self.full {
            Full::InMemory(_) => Log::NotNeeded,
            Full::OnDisk(spill) => spill.finish().map_or_else(Log::Lost, Log::At),
            Full::Lost(error) => Log::Lost(error),
        };
        Captured { text: text.to_owned(), truncation, last_line: self.tail.last_line(), log }
    }
}

fn open_log(directory: &OutputDir, early: &[u8]) -> io::Result<Spill> {
    let mut spill = Spill::create(directory, Bounds::DEFAULT)?;
    spill.write(early)?;
    Ok(spill)
}

/// Where the full output is.
pub(crate) enum Log {
    NotNeeded,
    At(PathBuf),
    Lost(io::Error),
}

/// The output of a finished command.
pub(crate) struct Captured {
    pub text: String,
    pub truncation: Option<Truncation>,
    last_line: usize,
    pub log: Log,
}

impl Captured {
    /// The output with a note about what is missing.
    pub fn annotated(&self) -> String {
        match &self.truncation {
            None => self.text.clone(),
            Some(truncation) => format!("{}\n\n[{}. {}]", self.text, self.shown(truncation), self.whereabouts()),
        }
    }

    /// The `details` of a result; `None` if nothing was cut.
    pub fn details(&self) -> Option<Value> {
        let truncation = self.truncation.as_ref()?.details();
        Some(match &self.log {
            Log::At(path) => json!({"truncation": truncation, "fullOutputPath": path}),
            Log::NotNeeded | Log::Lost(_) => json!({"truncation": truncation}),
        })
    }

    fn shown(&self, truncation: &Truncation) -> String {
        let last = truncation.total.lines;
        if truncation.last_line_partial {
            let (shown, whole) = (size(truncation.output.bytes), size(self.last_line));
            return format!("Showing last {shown} of line {last} (line is {whole})");
        }
        let first = last - truncation.output.lines + 1;
        match truncation.by {
            TruncatedBy::Lines => format!("Showing lines {first}-{last} of {last}"),
            TruncatedBy::Bytes => {
                format!("Showing lines {first}-{last} of {last} ({} limit)", size(truncation.limits.bytes))
            }
        }
    }

    fn whereabouts(&self) -> String {
        match &self.log {
            Log::At(path) => format!("Full output: {}", path.display()),
            Log::Lost(error) => format!("Full output could not be saved: {error}"),
            Log::NotNeeded => "Full output was not kept".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(directory: &OutputDir, output: &str) -> Captured {
        let mut capture = Capture::new(directory);
        for piece in output.as_bytes().chunks(1000) {
            capture.tail.push(std::str::from_utf8(piece).unwrap());
            capture.log(piece);
        }
        capture.finish()
    }

    #[test]
    fn remarks_name_what_is_shown() {
        let base = tempfile::tempdir().unwrap();
        let directory = OutputDir::below(base.path().into());
        let check = |output: &str, remark: &str| {
            let captured = captured(&directory, output);
            let Log::At(path) = &captured.log else { panic!("no log") };
            assert_eq!(std::fs::read_to_string(path).unwrap(), output);
            let text = captured.annotated();
            let (_, got) = text.rsplit_once("\n\n").unwrap();
            assert_eq!(got, format!("[{remark}. Full output: {}]", path.display()));
        };
        let numbers: String = (1..=5000).map(|n| format!("{n}\n")).collect();
        check(&numbers, "Showing lines 3001-5000 of 5000");
        check(&format!("{}\n", "x".repeat(99)).repeat(1000), "Showing lines 489-1000 of 1000 (50.0KB limit)");
        check(&"x".repeat(200_000), "Showing last 50.0KB of line 1 (line is 195.3KB)");
        check(&format!("first\n{}\n", "x".repeat(60_000)), "Showing last 50.0KB of line 2 (line is 58.6KB)");
    }

    #[test]
    fn short_output_needs_no_log() {
        let base = tempfile::tempdir().unwrap();
        let captured = captured(&OutputDir::below(base.path().into()), "out\nerr\n");
        assert!(matches!(captured.log, Log::NotNeeded));
        assert_eq!((captured.annotated().as_str(), captured.details()), ("out\nerr\n", None));
    }

    #[test]
    fn a_log_that_cannot_be_written_costs_only_the_log() {
        let captured = captured(&OutputDir::below("/nonexistent/base".into()), &"x\n".repeat(3000));
        let text = captured.annotated();
        assert!(text.contains("[Showing lines 1001-3000 of 3000. Full output could not be saved: "), "{text}");
        assert!(captured.details().unwrap().get("fullOutputPath").is_none());
    }
}
