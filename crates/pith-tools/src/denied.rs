//! What the sandbox refuses a call: the texts the model reads, and what hosts are told of them.

use std::path::Path;

use pith_agent::ToolOutput;
use pith_protocol::SandboxDenial;
use pith_sandbox::Profile;
use serde_json::{Value, json};

const NOT_ALLOWED: &str = "EACCES: not allowed by the sandbox (";
const PROTECTED: &str = "EACCES: protected path, ";
const CHANGED: &str = "Changed a protected path: ";
const PUT_BACK: &str = ". It was put back and the command was stopped.";

/// The member of a failed call's details that says what was refused.
const DETAIL: &str = "sandboxDenied";

/// Something that a call was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    pub kind: SandboxDenial,
    pub target: Option<String>,
}

/// Says that the sandbox refused, where the text says only that something did; `None` for other errors.
pub(crate) fn explained(error: &str, profile: Profile) -> Option<String> {
    const REFUSED: &str = "EACCES: permission denied";
    error.strip_prefix(REFUSED).map(|rest| format!("{NOT_ALLOWED}{profile}){rest}"))
}

/// The refusal to change a protected path.
pub(crate) fn protected(call: &str, path: &Path) -> String {
    format!("{PROTECTED}{call} '{}'", path.display())
}

/// The end of a command that has changed a protected path.
pub(crate) fn changed(path: &Path) -> String {
    format!("{CHANGED}{}{PUT_BACK}", path.display())
}

/// A failed call, with what it was refused in its details.
pub(crate) fn failed(text: String) -> ToolOutput {
    let denied = Denied::said_in(&text);
    let output = ToolOutput::error(text);
    match denied {
        Some(Denied { kind, target }) => output.with_details(json!({ DETAIL: {"kind": kind, "target": target} })),
        None => output,
    }
}

impl Denied {
    /// What a result says that its call was refused.
    pub fn of(output: &ToolOutput) -> Option<Denied> {
        let detail = output.details.as_ref().filter(|_| output.is_error)?.get(DETAIL)?;
        let kind = serde_json::from_value(detail.get("kind")?.clone()).ok()?;
        Some(Denied { kind, target: detail.get("target").and_then(Value::as_str).map(str::to_owned) })
    }

    fn said_in(text: &str) -> Option<Denied> {
        let quoted = |text: &str| {
            let (_, quoted) = text.split_once('\'')?;
            Some(quoted.rsplit_once('\'')?.0.to_owned())
        };
        if let Some(rest) = text.strip_prefix(NOT_ALLOWED) {
            return Some(Denied { kind: SandboxDenial::File, target: quoted(rest) });
        }
        if let Some(rest) = text.strip_prefix(PROTECTED) {
            return Some(Denied { kind: SandboxDenial::Protected, target: quoted(rest) });
        }
        let target = text.strip_prefix(CHANGED)?.strip_suffix(PUT_BACK)?;
        Some(Denied { kind: SandboxDenial::Protected, target: Some(target.to_owned()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_is_found_in_the_texts() {
        let check = |text: String, kind, target: &str| {
            let denied = Denied::of(&failed(text.clone()));
            assert_eq!(denied, Some(Denied { kind, target: Some(target.to_owned()) }), "{text}");
        };
        let file = explained("EACCES: permission denied, open '/a/it's'", Profile::ReadOnly).expect("a refusal");
        assert_eq!(file, "EACCES: not allowed by the sandbox (read-only), open '/a/it's'");
        check(file, SandboxDenial::File, "/a/it's");
        check(protected("open", Path::new("/a/.envrc")), SandboxDenial::Protected, "/a/.envrc");
        check(changed(Path::new(".git/hooks/x")), SandboxDenial::Protected, ".git/hooks/x");
        let other = failed("ENOENT: no such file or directory, open '/a'".to_owned());
        assert_eq!((Denied::of(&other), other.details), (None, Some(json!({}))));
        assert_eq!(explained("EPERM: operation not permitted", Profile::ReadOnly), None);
        let value: Value = json!({"kind": "protected", "target": "x"});
        assert_eq!(failed(changed(Path::new("x"))).details, Some(json!({ DETAIL: value })));
    }
}
