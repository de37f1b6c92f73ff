//! Configured values that have to be resolved: keys and headers written as
//! `literal`, `$NAME`, `${NAME}text` or `!command`.

use std::collections::BTreeMap;
use std::fmt;

use pith_config::Environment;

use crate::key_command::{Commands, Reuse};

/// Variables stored with a credential; they win over the environment.
pub type CredentialEnv = BTreeMap<String, String>;

/// The variables that a value may name.
#[derive(Clone, Copy)]
pub struct Variables<'a> {
    pub credential: Option<&'a CredentialEnv>,
    pub environment: &'a Environment,
}

impl<'a> Variables<'a> {
    /// Takes variables from the environment alone.
    pub fn of(environment: &'a Environment) -> Variables<'a> {
        Variables { credential: None, environment }
    }

    /// Returns a variable; an empty one counts as unset.
    pub fn get(&self, name: &str) -> Option<String> {
        let own = self.credential.and_then(|own| own.get(name)).filter(|value| !value.is_empty());
        own.cloned().or_else(|| self.environment.get(name))
    }
}

/// Why a value could not be turned into text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// The command as written, and what went wrong.
    Command { command: String, reason: String },
    /// The variables that are not set.
    Variables(Vec<String>),
    /// There is nothing in it.
    Empty,
}

impl Unresolved {
    /// Returns the error text; `subject` says what was wanted, such as `API key for provider "x"`.
    pub fn about(&self, subject: impl fmt::Display) -> String {
        match self {
            Unresolved::Command { command, reason } => {
                format!("Failed to resolve {subject} from shell command: {command} ({reason})")
            }
            Unresolved::Variables(names) if names.len() == 1 => {
                format!("Failed to resolve {subject} from environment variable: {}", names[0])
            }
            Unresolved::Variables(names) => {
                format!("Failed to resolve {subject} from environment variables: {}", names.join(", "))
            }
            Unresolved::Empty => format!("Failed to resolve {subject}: the value is empty"),
        }
    }
}

/// Whether a value would resolve, as far as can be told without running anything. A command counts as yes.
pub fn is_configured(value: &str, names: Variables<'_>) -> bool {
    match value.strip_prefix('!') {
        Some(command) => !command.trim().is_empty(),
        None => expand(value, names).is_ok(),
    }
}

/// Resolves a value, running its command if it is one.
pub async fn resolve(
    value: &str,
    names: Variables<'_>,
    commands: &Commands,
    reuse: Reuse,
) -> Result<String, Unresolved> {
    match value.strip_prefix('!') {
        Some(command) => commands.output(command, reuse).await.map_err(|reason| {
            let command = command.to_owned();
            Unresolved::Command { command, reason }
        }),
        None => expand(value, names),
    }
}

/// Returns the variables a value mentions.
pub fn variables(value: &str) -> Vec<String> {
    if value.starts_with('!') {
        return vec![];
    }
    if is_legacy_name(value) {
        return vec![value.to_owned()];
    }
    let names = pieces(value).filter_map(|piece| match piece {
        Piece::Name(name) => Some(name.to_owned()),
        Piece::Text(_) => None,
    });
    names.collect()
}

/// Puts the variables into a value that is no command.
pub fn expand(value: &str, names: Variables<'_>) -> Result<String, Unresolved> {
    if is_legacy_name(value)
        && let Some(text) = names.get(value)
    {
        return Ok(text);
    }
    let mut text = String::with_capacity(value.len());
    let mut missing = Vec::new();
    for piece in pieces(value) {
        match piece {
            Piece::Text(piece) => text.push_str(piece),
            Piece::Name(name) => match names.get(name) {
                Some(value) => text.push_str(&value),
                None if missing.iter().any(|seen| seen == name) => {}
                None => missing.push(name.to_owned()),
            },
        }
    }
    match (missing.is_empty(), text.is_empty()) {
        (false, _) => Err(Unresolved::Variables(missing)),
        (true, true) => Err(Unresolved::Empty),
        (true, false) => Ok(text),
    }
}

/// Whether a value is a variable without the `$`, as older files write it.
fn is_legacy_name(value: &str) -> bool {
    value.starts_with(|first: char| first.is_ascii_uppercase())
        && value.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

enum Piece<'a> {
    Text(&'a str),
    Name(&'a str),
}

fn pieces(value: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = value;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, after) = piece(rest);
        rest = after;
        Some(piece)
    })
}

/// Returns the first piece of a template and what follows it.
fn piece(text: &str) -> (Piece<'_>, &str) {
    let Some(after) = text.strip_prefix('$') else {
        let end = text.find('$').unwrap_or(text.len());
        return (Piece::Text(&text[..end]), &text[end..]);
    };
    if after.starts_with(['$', '!']) {
        return (Piece::Text(&after[..1]), &after[1..]);
    }
    if let Some(inner) = after.strip_prefix('{')
        && let Some(end) = inner.find('}')
        && name_length(inner) == end
        && end > 0
    {
        return (Piece::Name(&inner[..end]), &inner[end + 1..]);
    }
    match name_length(after) {
        0 => (Piece::Text(&text[..1]), after),
        length => (Piece::Name(&after[..length]), &after[length..]),
    }
}

/// Returns how many bytes at the start are a variable name.
fn name_length(text: &str) -> usize {
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        return 0;
    }
    text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        Environment::of("/home/u", [("REC_KEY", "rk"), ("a_1", "one"), ("EMPTY", ""), ("BOTH", "process")])
    }

    fn check(value: &str, expected: Result<&str, Unresolved>) {
        let environment = environment();
        let credential = CredentialEnv::from([("BOTH".to_owned(), "stored".to_owned())]);
        let names = Variables { credential: Some(&credential), environment: &environment };
        assert_eq!(expand(value, names), expected.map(str::to_owned), "{value}");
        assert_eq!(is_configured(value, names), expand(value, names).is_ok(), "{value}");
    }

    fn unset(names: &[&str]) -> Result<&'static str, Unresolved> {
        Err(Unresolved::Variables(names.iter().map(|name| (*name).to_owned()).collect()))
    }

    #[test]
    fn templates() {
        check("plain", Ok("plain"));
        check("$REC_KEY", Ok("rk"));
        check("${REC_KEY}", Ok("rk"));
        check("K-${REC_KEY}-$$", Ok("K-rk-$"));
        check("$!x", Ok("!x"));
        check("$a_1.$REC_KEY", Ok("one.rk"));
        check("$BOTH", Ok("stored"));
        check("a$", Ok("a$"));
        check("a$ b $1 $-", Ok("a$ b $1 $-"));
        check("${REC_KEY", Ok("${REC_KEY"));
        check("${1x}", Ok("${1x}"));
        check("${}", Ok("${}"));
        check("é$REC_KEYé", Ok("érké"));
        check("$EMPTY", unset(&["EMPTY"]));
        check("$A-$REC_KEY-$B-$A", unset(&["A", "B"]));
        check("", Err(Unresolved::Empty));
    }

    #[test]
    fn bare_upper_case_names_are_variables_when_set() {
        check("REC_KEY", Ok("rk"));
        check("OTHER_KEY", Ok("OTHER_KEY"));
        check("Rec_Key", Ok("Rec_Key"));
        check("EMPTY", Ok("EMPTY"));
    }

    #[test]
    fn commands_count_as_configured() {
        let environment = environment();
        assert!(is_configured("!exit 1", Variables::of(&environment)));
        assert!(!is_configured("! ", Variables::of(&environment)));
    }

    #[test]
    fn mentioned_variables() {
        let check = |value, expected: &[&str]| assert_eq!(variables(value), expected, "{value}");
        check("x-$A-${B}", &["A", "B"]);
        check("SOME_KEY", &["SOME_KEY"]);
        check("!echo $A", &[]);
        check("literal", &[]);
    }

    #[test]
    fn error_texts() {
        let subject = "API key for provider \"x\"";
        let check = |unresolved: Unresolved, expected: &str| assert_eq!(unresolved.about(subject), expected);
        check(
            Unresolved::Variables(vec!["NAME".into()]),
            "Failed to resolve API key for provider \"x\" from environment variable: NAME",
        );
        check(
            Unresolved::Variables(vec!["A".into(), "B".into()]),
            "Failed to resolve API key for provider \"x\" from environment variables: A, B",
        );
        check(
            Unresolved::Command { command: "pass x".into(), reason: "exit code 1".into() },
            "Failed to resolve API key for provider \"x\" from shell command: pass x (exit code 1)",
        );
    }
}
