//! What the sandbox refuses a call: the texts the model reads, and what hosts are told of them.

use std::path::Path;

use pith_agent::ToolOutput;
use pith_protocol::{Block, SandboxDenial};
use pith_sandbox::Profile;
use pith_sandbox::watch::{CommandWatch, PutBack};
use serde_json::{Value, json};

use crate::proxy::RefusedHost;

const NOT_ALLOWED: &str = "EACCES: not allowed by the sandbox (";
const PROTECTED: &str = "EACCES: protected path, ";
/// Stands after the quoted path.
const REASON: &str = ": ";
const CHANGED: &str = "Changed a protected path: ";
const PUT_BACK: &str = ". It was put back and the command was stopped.";

/// The member of a failed call's details that says what was refused.
const DETAIL: &str = "sandboxDenied";

/// Something that a call was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    pub kind: SandboxDenial,
    pub target: Option<String>,
    /// How often.
    pub count: u32,
    /// What a host was refused by, as its command was told.
    pub reason: Option<String>,
}

/// Says that the sandbox refused, where the text says only that something did; `None` for other errors.
pub(crate) fn explained(error: &str, profile: Profile) -> Option<String> {
    const REFUSED: &str = "EACCES: permission denied";
    error.strip_prefix(REFUSED).map(|rest| format!("{NOT_ALLOWED}{profile}){rest}"))
}

/// The refusal to look at a closed path, and what opens it if the user may want that.
pub(crate) fn closed(call: &str, path: &Path, profile: Profile, is_in_home: bool) -> String {
    let opens = if is_in_home {
        ". What begins with a dot in a home is closed but for what tools need; \
         sandbox.filesystem.allowRead in the user settings opens more"
    } else {
        ""
    };
    format!("{NOT_ALLOWED}{profile}), {call} '{}'{opens}", path.display())
}

/// The refusal to change a protected path. `reason` may be empty and has no quotation marks.
pub(crate) fn protected(call: &str, path: &Path, reason: &str) -> String {
    let reason = if reason.is_empty() { String::new() } else { format!("{REASON}{reason}") };
    format!("{PROTECTED}{call} '{}'{reason}", path.display())
}

/// The refusal of a change that was put back, if something was; `path` is what the call has changed.
pub(crate) fn change_undone(guard: CommandWatch, path: &Path) -> Option<String> {
    let changes = guard.end();
    if changes.protected.is_some() {
        return Some(protected("open", path, ""));
    }
    let undone = changes.put_back.into_iter().next()?;
    Some(protected("open", &undone.path, &undone.reason.replace('\'', "")))
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
        Some(Denied { kind, target, reason, .. }) => {
            let mut detail = json!({"kind": kind, "target": target});
            if let Some(reason) = reason {
                detail["reason"] = json!(reason);
            }
            output.with_details(json!({ DETAIL: detail }))
        }
        None => output,
    }
}

/// Says what a call has left behind that was put back. Its other work stays as it is.
pub(crate) fn with_put_back(mut output: ToolOutput, put_back: &[PutBack], cwd: &Path) -> ToolOutput {
    let mut told: Vec<(&PutBack, u32)> = Vec::new();
    for one in put_back {
        match told.iter_mut().find(|(known, _)| *known == one) {
            Some((_, count)) => *count += 1,
            None => told.push((one, 1)),
        }
    }
    if told.is_empty() {
        return output;
    }
    let shown = |path: &Path| path.strip_prefix(cwd).unwrap_or(path).display().to_string();
    let lines = told.iter().map(|(one, _)| format!("[Put back: {} ({})]", shown(&one.path), one.reason));
    let text = lines.collect::<Vec<_>>().join("\n");
    output.content.push(Block::text(format!("\n{text}")));
    let kind = SandboxDenial::Protected;
    let denied = told
        .iter()
        .map(|(one, count)| json!({"kind": kind, "target": shown(&one.path), "count": count, "reason": one.reason}));
    add(&mut output, denied.collect());
    output
}

/// Adds to what the details of a call say that it was refused.
fn add(output: &mut ToolOutput, denied: Vec<Value>) {
    let details = output.details.get_or_insert_with(|| json!({}));
    let before = match details[DETAIL].take() {
        Value::Array(all) => all,
        Value::Null => Vec::new(),
        one => vec![one],
    };
    details[DETAIL] = before.into_iter().chain(denied).collect();
}

/// Adds the hosts that a command was refused. It may have succeeded all the same.
pub(crate) fn with_hosts(mut output: ToolOutput, refused: &[RefusedHost]) -> ToolOutput {
    let mut hosts: Vec<(&RefusedHost, u32)> = Vec::new();
    for host in refused {
        match hosts.iter_mut().find(|(known, _)| *known == host) {
            Some((_, count)) => *count += 1,
            None => hosts.push((host, 1)),
        }
    }
    if !hosts.is_empty() {
        let kind = SandboxDenial::Network;
        let denied = hosts.iter().map(
            |(RefusedHost { host, code }, count)| json!({"kind": kind, "target": host, "count": count, "reason": code}),
        );
        let denied = denied.collect();
        add(&mut output, denied);
    }
    output
}

impl Denied {
    /// What a result says that its call was refused, each target once.
    pub fn of(output: &ToolOutput) -> Vec<Denied> {
        let detail = output.details.as_ref().and_then(|details| details.get(DETAIL));
        let read = |detail: &Value| {
            let kind = serde_json::from_value(detail.get("kind")?.clone()).ok()?;
            let target = detail.get("target").and_then(Value::as_str).map(str::to_owned);
            let count = detail.get("count").and_then(Value::as_u64).and_then(|count| u32::try_from(count).ok());
            let reason = detail.get("reason").and_then(Value::as_str).map(str::to_owned);
            Some(Denied { kind, target, count: count.unwrap_or(1), reason })
        };
        match detail {
            // Files are refused to calls that fail; a tool of an extension may show anything in its details.
            Some(Value::Array(all)) => all.iter().filter_map(read).collect(),
            Some(one) if output.is_error => read(one).into_iter().collect(),
            Some(_) | None => Vec::new(),
        }
    }

    fn said_in(text: &str) -> Option<Denied> {
        let quoted = |text: &str| {
            let (_, quoted) = text.split_once('\'')?;
            Some(quoted.rsplit_once('\'')?.0.to_owned())
        };
        if let Some(rest) = text.strip_prefix(NOT_ALLOWED) {
            return Some(Denied::one(SandboxDenial::File, quoted(rest)));
        }
        if let Some(rest) = text.strip_prefix(PROTECTED) {
            let reason = rest.rsplit_once('\'').and_then(|(_, after)| after.strip_prefix(REASON)).map(str::to_owned);
            return Some(Denied { reason, ..Denied::one(SandboxDenial::Protected, quoted(rest)) });
        }
        let target = text.strip_prefix(CHANGED)?.strip_suffix(PUT_BACK)?;
        Some(Denied::one(SandboxDenial::Protected, Some(target.to_owned())))
    }

    fn one(kind: SandboxDenial, target: Option<String>) -> Denied {
        Denied { kind, target, count: 1, reason: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_is_found_in_the_texts() {
        let check = |text: String, kind, target: &str| {
            let denied = Denied::of(&failed(text.clone()));
            assert_eq!(denied, [Denied::one(kind, Some(target.to_owned()))], "{text}");
        };
        let file = explained("EACCES: permission denied, open '/a/it's'", Profile::ReadOnly).expect("a refusal");
        assert_eq!(file, "EACCES: not allowed by the sandbox (read-only), open '/a/it's'");
        check(file, SandboxDenial::File, "/a/it's");
        let path = Path::new("/a/.netrc");
        check(closed("open", path, Profile::ReadOnly, true), SandboxDenial::File, "/a/.netrc");
        check(protected("open", Path::new("/a/.envrc"), ""), SandboxDenial::Protected, "/a/.envrc");
        let with_reason = Denied::of(&failed(protected("open", Path::new("/it's"), "direnv: runs it")));
        let shown = with_reason.into_iter().map(|denied| (denied.target, denied.reason)).collect::<Vec<_>>();
        assert_eq!(shown, [(Some("/it's".to_owned()), Some("direnv: runs it".to_owned()))]);
        check(changed(Path::new(".git/hooks/x")), SandboxDenial::Protected, ".git/hooks/x");
        let other = failed("ENOENT: no such file or directory, open '/a'".to_owned());
        assert_eq!((Denied::of(&other), other.details), (Vec::new(), Some(json!({}))));
        assert_eq!(explained("EPERM: operation not permitted", Profile::ReadOnly), None);
        let hosts = [("a.example", "x"), ("b.example", "x"), ("a.example", "y"), ("a.example", "x")];
        let hosts = hosts.map(|(host, code)| RefusedHost { host: host.to_owned(), code });
        let refused = with_hosts(ToolOutput::text("fine"), &hosts);
        let shown = |denied: Denied| (denied.target.unwrap(), denied.reason.unwrap(), denied.count);
        let found: Vec<_> = Denied::of(&refused).into_iter().map(shown).collect();
        let expected = [("a.example", "x", 2), ("b.example", "x", 1), ("a.example", "y", 1)];
        assert_eq!(found, expected.map(|(host, code, count)| (host.to_owned(), code.to_owned(), count)));
        assert_eq!(with_hosts(ToolOutput::text("fine"), &[]).details, None);
        let value: Value = json!({"kind": "protected", "target": "x"});
        assert_eq!(failed(changed(Path::new("x"))).details, Some(json!({ DETAIL: value })));
    }
}
