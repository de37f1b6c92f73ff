//! What configuration has to say about itself, in a form a host can read.

use std::path::PathBuf;

use serde::Serialize;

/// One finding about a file or a flag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    #[serde(rename = "type")]
    pub kind: DiagnosticKind,
    /// Without the `Warning: ` prefix a terminal shows.
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Stable name of the finding.
    pub code: &'static str,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiagnosticKind {
    Warning,
    Error,
}

impl Diagnostic {
    /// Something was ignored and the rest stays in force.
    pub fn warning(code: &'static str, path: impl Into<PathBuf>, message: impl Into<String>) -> Diagnostic {
        Diagnostic { kind: DiagnosticKind::Warning, message: message.into(), path: Some(path.into()), code }
    }

    /// A whole file or provider is out of force.
    pub fn error(code: &'static str, path: impl Into<PathBuf>, message: impl Into<String>) -> Diagnostic {
        Diagnostic { kind: DiagnosticKind::Error, message: message.into(), path: Some(path.into()), code }
    }
}
