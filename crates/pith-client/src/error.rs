//! What can go wrong between a host and pith.

use std::io;
use std::process::ExitStatus;

use pith_protocol::ErrorCode;
use serde_json::Value;

/// Why a call has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The program could not be started.
    #[error("{program}: {kind}")]
    Spawn { program: String, kind: io::ErrorKind },
    /// The command was answered with `success: false`.
    #[error(transparent)]
    Failed(#[from] CommandFailed),
    /// The answer has a form that this version of the client does not know; `data` is what came.
    #[error("{command}: an answer of unknown form: {why}")]
    Unreadable { command: String, data: Value, why: String },
    /// pith has ended.
    #[error(transparent)]
    Exited(#[from] Exited),
}

/// A command that was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{command}: {error}")]
pub struct CommandFailed {
    pub command: String,
    /// For people.
    pub error: String,
    /// Stable name of the kind of failure, if there is one.
    pub code: Option<String>,
}

impl CommandFailed {
    /// Returns the kind of failure, if this version of the client knows it.
    pub fn known_code(&self) -> Option<ErrorCode> {
        let code = self.code.as_deref()?;
        ErrorCode::ALL.iter().find(|(_, word, _)| *word == code).map(|(code, ..)| *code)
    }
}

/// The end of pith; commands that were not answered fail with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pith has ended ({}): {}", self.how(), self.last_words())]
pub struct Exited {
    /// Unknown if it could not be waited for.
    pub status: Option<ExitStatus>,
    /// The last 64 KiB of what it said there.
    pub stderr: String,
}

impl Exited {
    fn how(&self) -> String {
        self.status.map_or_else(|| "status unknown".to_owned(), |status| status.to_string())
    }

    fn last_words(&self) -> &str {
        self.stderr.trim_end().lines().next_back().unwrap_or("nothing on stderr")
    }
}
