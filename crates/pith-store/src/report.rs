//! What the store mended or could not do, in words for the user.

use std::fmt::Write;
use std::path::Path;

/// Something the user should hear about once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreReport {
    pub kind: ReportKind,
    pub message: String,
}

/// What a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportKind {
    /// Damage in the file was worked around.
    Repair,
    /// The session is not being saved.
    Write,
}

impl ReportKind {
    /// Returns the `event` of the `extension_error` frame that carries the report.
    pub fn event(self) -> &'static str {
        match self {
            ReportKind::Repair => "session_repair",
            ReportKind::Write => "session_write",
        }
    }
}

/// Damage found while reading; becomes one report however much there is.
#[derive(Debug, Default)]
pub(crate) struct Repairs {
    pub damaged: Found,
    pub nameless: Found,
    pub orphans: Found,
    pub cycles: Found,
    pub unreadable: Found,
    /// The last line has no end; its size in bytes.
    pub torn: Option<u64>,
}

/// How often something was found, and where first.
#[derive(Debug, Default)]
pub(crate) struct Found {
    n: u64,
    first: String,
}

impl Found {
    pub fn note(&mut self, place: impl FnOnce() -> String) {
        if self.n == 0 {
            self.first = place();
        }
        self.n += 1;
    }
}

impl Repairs {
    pub fn report(self, path: Option<&Path>) -> Option<StoreReport> {
        let clauses = [
            (self.damaged, "line(s) skipped that are not JSON objects"),
            (self.nameless, "line(s) skipped that have no id"),
            (self.orphans, "entries with a lost parent attached to the entry before them"),
            (self.cycles, "parent cycle(s) cut"),
            (self.unreadable, "entries left out of the conversation because they cannot be read"),
        ];
        let mut message = String::new();
        for (found, what) in clauses.into_iter().filter(|(found, _)| found.n > 0) {
            let comma = if message.is_empty() { "" } else { "; " };
            _ = write!(message, "{comma}{} {what} (first: {})", found.n, found.first);
        }
        if let Some(n_bytes) = self.torn {
            let comma = if message.is_empty() { "" } else { "; " };
            _ = write!(
                message,
                "{comma}the last line was cut off and is ignored; \
                 its {n_bytes} bytes move to a .torn file before the next entry is written"
            );
        }
        if message.is_empty() {
            return None;
        }
        let path = path.map(|path| format!("session file {}: ", path.display())).unwrap_or_default();
        Some(StoreReport { kind: ReportKind::Repair, message: path + &message })
    }
}
