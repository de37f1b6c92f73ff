//! Transcripts: one readable file per specified behaviour, playable against any binary.
//!
//! ```text
//! # Why the case exists.
//! #! args --stream-updates delta
//! #! settings {"retry":{"enabled":false}}
//! #! env PI_RPC_EMIT_TITLE=1
//! #! file agent/rules/a.md "---\ncondition: x\n---\nno x"
//! ~ call bash {"command":"echo hi"}
//! ~ text "done"
//! > {"id":"1","type":"prompt","message":"go"}
//! < {"id":"1","type":"response","command":"prompt","success":true}
//! ...
//! < {"type":"agent_settled"}
//! ```
//!
//! `>` is sent, `<` is the next frame (listed members must match, see
//! [`matching`]), `...` stands for any number of frames, `~` is the next answer
//! of the scripted model: `text`, `thinking`, `call`, or a whole turn as JSON.
//! An expected `"[ID:name]"` remembers the identifier it matched; `[ID:name]` in
//! later lines stands for it. A file below `agent/` goes to the agent directory,
//! any other to the work directory.
//! When all steps are done stdin is closed; unexpected frames and an exit code other
//! than 0 are failures. With `UPDATE_TRANSCRIPTS=1` expectations that fail are
//! rewritten from what came, for review.

mod parse;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::host::{Host, HostBuilder};
use crate::{Api, ModelServer, Script, TempHome};
use matching::Placeholders;
use parse::Step;
pub use parse::Transcript;
pub use pith_conformance::matching;

/// How long a rewritten transcript waits for a frame that may no longer come.
const UPDATE_TIMEOUT: Duration = Duration::from_secs(3);

/// Starts the host a transcript is played against, as a process or within this one.
pub type Start<'a> = &'a dyn Fn(HostBuilder) -> Host;

/// Plays a file; fails with the first difference, or rewrites the file if asked to.
#[track_caller]
pub fn check(path: &Path, start: Start<'_>) {
    if let Err(problem) = play_file(path, start) {
        panic!("{problem}");
    }
}

/// Plays every `.jsonl` file of a directory, and fails with all that differ.
#[track_caller]
pub fn check_directory(directory: &Path, start: Start<'_>) {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    assert!(!paths.is_empty(), "{} has no transcripts", directory.display());
    let problems: Vec<String> = paths.iter().filter_map(|path| play_file(path, start).err()).collect();
    assert!(problems.is_empty(), "{} of {} differ\n\n{}", problems.len(), paths.len(), problems.join("\n\n"));
}

fn play_file(path: &Path, start: Start<'_>) -> Result<(), String> {
    let name = path.display();
    let text = fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    let transcript = Transcript::parse(&text).map_err(|problem| format!("{name}: {problem}"))?;
    if std::env::var_os("UPDATE_TRANSCRIPTS").is_some_and(|value| value == "1") {
        let text = transcript.timeout(UPDATE_TIMEOUT).play(start, Purpose::Update).text;
        return fs::write(path, text).map_err(|error| format!("{name}: {error}"));
    }
    let played = transcript.play(start, Purpose::Check);
    played.problem.map_or(Ok(()), |problem| Err(format!("{name}: {problem}")))
}

/// Why a transcript is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To find the first difference.
    Check,
    /// To continue after differences and write what came instead.
    Update,
}

/// The result of a play.
#[derive(Debug)]
pub struct Played {
    /// The first difference.
    pub problem: Option<String>,
    /// The transcript with failed expectations replaced by what came; complete only after an update.
    pub text: String,
}

impl Transcript {
    /// Waits this long for a frame instead of the default time.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Plays against a host that `start` starts, with the scripted model as its provider.
    pub fn play(&self, start: Start<'_>, purpose: Purpose) -> Played {
        let server = ModelServer::start(Script::of(self.answers().cloned()));
        let home = TempHome::for_server(&server);
        home.write_settings(&self.settings);
        for (path, content) in &self.files {
            match path.strip_prefix("agent/") {
                Some(path) => home.write_agent_file(path, content),
                None => home.write_file(path, content),
            }
        }
        let agent = home.agent().display().to_string();
        let mut builder = Host::builder(OsStr::new("")).rpc(Api::Anthropic).args(&self.arguments).home(&home);
        // Dialects look in different placeholders; this one is meant in all of them.
        builder = builder.env("PITH_AGENT_DIR", &agent).timeout(self.timeout);
        for (name, value) in &self.environment {
            builder = builder.env(name, value);
        }
        let host = start(builder);
        let placeholders = Placeholders::new(&home);
        let mut player =
            Player { host, placeholders, next: 0, is_free: false, purpose, problem: None, lines: Vec::new() };
        for line in &self.lines {
            player.step(&line.step, line.number, &line.text);
            if player.problem.is_some() && purpose == Purpose::Check {
                break;
            }
        }
        if player.problem.is_none() || purpose == Purpose::Update {
            player.end();
        }
        Played { problem: player.problem, text: player.lines.join("\n") + "\n" }
    }
}

struct Player {
    host: Host,
    placeholders: Placeholders,
    /// The first frame that no step has matched.
    next: usize,
    /// Whether `...` was last: any frames may be skipped.
    is_free: bool,
    purpose: Purpose,
    problem: Option<String>,
    /// The transcript as it should read.
    lines: Vec<String>,
}

impl Player {
    fn step(&mut self, step: &Step, number: usize, text: &str) {
        match step {
            Step::Comment | Step::Answer(_) => self.lines.push(text.to_owned()),
            Step::Send(line) => {
                self.host.send_raw(format!("{}\n", self.placeholders.fill(line)));
                self.lines.push(text.to_owned());
            }
            Step::Skip => {
                self.is_free = true;
                self.lines.push(text.to_owned());
            }
            Step::Expect(pattern) => match self.expect(pattern) {
                Ok(()) => self.lines.push(text.to_owned()),
                Err(difference) => {
                    self.replace(pattern);
                    self.report(format!("line {number}: {difference}\n  wanted: {pattern}"));
                }
            },
        }
    }

    fn expect(&mut self, pattern: &Value) -> Result<(), String> {
        if !std::mem::take(&mut self.is_free) {
            let frame = self.host.try_frame(self.next).ok_or("no frame came")?;
            matching::matches(pattern, &frame.value, &self.placeholders)
                .map_err(|difference| format!("{difference}\n  frame:  {}", frame.value))?;
            self.placeholders.remember(pattern, &frame.value);
            self.next += 1;
            return Ok(());
        }
        let placeholders = self.placeholders.clone();
        let found =
            self.host.try_find(self.next, |frame| matching::matches(pattern, &frame.value, &placeholders).is_ok());
        let found = found.ok_or("no such frame came")?;
        if let Some(frame) = self.host.try_frame(found) {
            self.placeholders.remember(pattern, &frame.value);
        }
        self.next = found + 1;
        Ok(())
    }

    /// Replaces a failed expectation by what came.
    fn replace(&mut self, pattern: &Value) {
        let frame = match self.purpose {
            Purpose::Check => None,
            Purpose::Update => self.host.try_frame(self.next),
        };
        if let Some(frame) = frame {
            self.lines.push(format!("< {}", matching::project(&frame.value, Some(pattern), &self.placeholders)));
            self.next += 1;
        }
    }

    fn end(&mut self) {
        let (frames, code) = self.host.finish();
        if !self.is_free {
            for frame in frames.iter().skip(self.next) {
                self.report(format!("left unread at the end: {frame}"));
                self.lines.push(format!("< {}", matching::project(frame, None, &self.placeholders)));
            }
        }
        if code != 0 {
            self.report(format!("exit code {code}"));
        }
    }

    fn report(&mut self, problem: String) {
        let host = &self.host;
        self.problem.get_or_insert_with(|| format!("{problem}\n{}", host.describe()));
    }
}

#[cfg(test)]
mod tests;
