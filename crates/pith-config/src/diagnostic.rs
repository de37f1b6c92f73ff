//! What was found wrong with configuration and resources, in a form hosts can read.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

/// One finding about a file, a directory, a setting or a flag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    #[serde(rename = "type")]
    pub kind: DiagnosticKind,
    /// What is wrong, without the `Warning: ` prefix a terminal shows.
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "optional_path_text")]
    pub path: Option<PathBuf>,
    /// Stable name of the finding.
    pub code: &'static str,
    /// Who lost against whom, for [`DiagnosticKind::Collision`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collision: Option<Collision>,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiagnosticKind {
    /// Something was ignored or mended; the rest applies.
    Warning,
    /// A whole file or provider does not apply, or something the user asked for by name is missing.
    Error,
    /// Two resources want the same name.
    Collision,
}

/// Two resources of the same name; the first one found is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Collision {
    /// `skill` or `prompt`.
    pub resource_type: &'static str,
    pub name: String,
    #[serde(serialize_with = "path_text")]
    pub winner_path: PathBuf,
    #[serde(serialize_with = "path_text")]
    pub loser_path: PathBuf,
}

impl Diagnostic {
    /// Reports something that was ignored or mended.
    pub fn warning(code: &'static str, path: impl Into<PathBuf>, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(DiagnosticKind::Warning, code, path, message)
    }

    /// Reports something that does not apply at all.
    pub fn error(code: &'static str, path: impl Into<PathBuf>, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(DiagnosticKind::Error, code, path, message)
    }

    /// Reports something that is in no file.
    pub fn without_path(code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic { kind: DiagnosticKind::Warning, message: message.into(), path: None, code, collision: None }
    }

    fn new(
        kind: DiagnosticKind,
        code: &'static str,
        path: impl Into<PathBuf>,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic { kind, message: message.into(), path: Some(path.into()), code, collision: None }
    }
}

/// Writes a path as text. Names that are not Unicode are shown as well as possible; serde would refuse them.
pub fn path_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// Does what [`path_text`] does, for a path that may be missing.
pub fn optional_path_text<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => path_text(path, serializer),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_collision_carries_both_paths() {
        let collision = Collision {
            resource_type: "skill",
            name: "x".into(),
            winner_path: "/a/SKILL.md".into(),
            loser_path: "/b/SKILL.md".into(),
        };
        let diagnostic = Diagnostic {
            kind: DiagnosticKind::Collision,
            message: "name \"x\" collision".into(),
            path: Some("/b/SKILL.md".into()),
            code: "skill_collision",
            collision: Some(collision),
        };
        let expected = json!({
            "type": "collision", "message": "name \"x\" collision", "path": "/b/SKILL.md", "code": "skill_collision",
            "collision": {"resourceType": "skill", "name": "x", "winnerPath": "/a/SKILL.md", "loserPath": "/b/SKILL.md"},
        });
        assert_eq!(serde_json::to_value(diagnostic).unwrap(), expected);
    }

    #[cfg(unix)]
    #[test]
    fn a_path_that_is_no_text_is_still_shown() {
        use std::os::unix::ffi::OsStrExt;
        let path = Path::new(std::ffi::OsStr::from_bytes(b"/a\xff"));
        let value = serde_json::to_value(Diagnostic::warning("c", path, "m")).unwrap();
        assert_eq!(value, json!({"type": "warning", "message": "m", "path": "/a\u{fffd}", "code": "c"}));
    }
}
