//! Variables and commands in configured texts, resolved when the server starts and never before.

use std::collections::HashMap;
use std::path::Path;

use pith_config::Environment;
use pith_secrets::{Secrets, is_secret_name};

/// Why a text has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    #[error("needs variable {0}")]
    Variable(String),
    /// The id of something that the user has to say.
    #[error("needs input {0}")]
    Input(String),
    /// A variable that the entry must not have.
    #[error("names {0}, which holds a key of a model; files of a project do not get it")]
    Withheld(String),
}

/// Where values come from.
pub struct Variables<'a> {
    pub environment: &'a Environment,
    /// The session's directory.
    pub cwd: &'a Path,
    /// What is known of `${input:ID}`.
    pub inputs: &'a HashMap<String, String>,
    /// Learns the values of variables whose names say that nobody may read them.
    pub secrets: &'a Secrets,
    /// Variables that the entry must not have.
    pub withheld: &'a [String],
}

/// A text with its variables replaced, or the command whose output is the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    Text(String),
    Command(String),
}

/// Resolves a text: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `$env:VAR`, `${input:ID}`, `${workspaceFolder}`,
/// `${userHome}`; `!command`, with `!!` for a text that begins with `!`.
pub fn resolve(text: &str, variables: &Variables<'_>) -> Result<Resolved, Unresolved> {
    if let Some(rest) = text.strip_prefix('!')
        && !rest.starts_with('!')
    {
        return Ok(Resolved::Command(rest.to_owned()));
    }
    let text = if text.starts_with("!!") { &text[1..] } else { text };
    variables.replace(text).map(Resolved::Text)
}

impl Variables<'_> {
    /// Replaces the variables of a text.
    pub fn replace(&self, text: &str) -> Result<String, Unresolved> {
        let (mut replaced, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once('$') {
            let (value, behind) = self.named(after)?;
            replaced.push_str(before);
            replaced.push_str(&value);
            rest = behind;
        }
        replaced.push_str(rest);
        Ok(replaced)
    }

    /// Returns the value of what stands behind a `$`, and the text after it. Any other `$` is text, also one before an
    /// opening that is never closed.
    fn named<'t>(&self, after: &'t str) -> Result<(String, &'t str), Unresolved> {
        if let Some((inside, behind)) = after.strip_prefix('{').and_then(|inside| inside.split_once('}')) {
            return Ok((self.value(inside)?, behind));
        }
        match after.strip_prefix("env:").map(split_name) {
            Some((name, behind)) if !name.is_empty() => Ok((self.needed(name)?, behind)),
            _ => Ok(("$".to_owned(), after)),
        }
    }

    fn needed(&self, name: &str) -> Result<String, Unresolved> {
        self.variable(name)?.ok_or_else(|| Unresolved::Variable(name.to_owned()))
    }

    fn variable(&self, name: &str) -> Result<Option<String>, Unresolved> {
        if self.withheld.iter().any(|withheld| withheld == name) {
            return Err(Unresolved::Withheld(name.to_owned()));
        }
        let value = self.environment.get(name);
        if is_secret_name(name) {
            value.iter().for_each(|value| self.secrets.remember(value));
        }
        Ok(value)
    }

    fn value(&self, inside: &str) -> Result<String, Unresolved> {
        match inside {
            "workspaceFolder" => return Ok(self.cwd.to_string_lossy().into_owned()),
            "userHome" => return Ok(self.environment.home().to_string_lossy().into_owned()),
            _ => {}
        }
        if let Some(id) = inside.strip_prefix("input:") {
            return self.inputs.get(id).cloned().ok_or_else(|| Unresolved::Input(id.to_owned()));
        }
        let inside = inside.strip_prefix("env:").unwrap_or(inside);
        match inside.split_once(":-") {
            Some((name, default)) => Ok(self.variable(name)?.unwrap_or_else(|| default.to_owned())),
            None => self.needed(inside),
        }
    }
}

/// Splits a text after the name of a variable at its beginning.
fn split_name(text: &str) -> (&str, &str) {
    let end = text.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &str) -> Result<Resolved, Unresolved> {
        let environment = Environment::of("/home/u", [("TOKEN", "secret")]);
        let inputs = HashMap::from([("github-key".to_owned(), "${TOKEN}".to_owned())]);
        let (cwd, secrets) = (Path::new("/project"), &Secrets::default());
        let withheld = &["MODEL_KEY".to_owned()];
        resolve(text, &Variables { environment: &environment, cwd, inputs: &inputs, secrets, withheld })
    }

    #[test]
    fn variables_are_replaced_in_every_spelling() {
        let check = |text: &str, expected: &str| {
            assert_eq!(resolved(text), Ok(Resolved::Text(expected.to_owned())), "{text}");
        };
        check("plain $HOME", "plain $HOME");
        check("Bearer ${TOKEN}", "Bearer secret");
        check("${env:TOKEN}", "secret");
        check("$env:TOKEN", "secret");
        check("Bearer $env:TOKEN, $env: and $$", "Bearer secret, $env: and $$");
        check("${NONE:-a:-b}", "a:-b");
        check("${TOKEN:-other}", "secret");
        check("${input:github-key}", "${TOKEN}");
        check("${workspaceFolder}/x ${userHome}", "/project/x /home/u");
        check("open ${TOKEN", "open ${TOKEN");
        check("!!literal", "!literal");
    }

    #[test]
    fn what_is_not_set_is_named() {
        assert_eq!(resolved("a ${NONE}"), Err(Unresolved::Variable("NONE".to_owned())));
        assert_eq!(resolved("$env:NONE"), Err(Unresolved::Variable("NONE".to_owned())));
        assert_eq!(resolved("x$env:NONE"), Err(Unresolved::Variable("NONE".to_owned())));
        for text in ["${MODEL_KEY}", "a $env:MODEL_KEY", "${MODEL_KEY:-none}"] {
            assert_eq!(resolved(text), Err(Unresolved::Withheld("MODEL_KEY".to_owned())), "{text}");
        }
        assert_eq!(resolved("${input:none}"), Err(Unresolved::Input("none".to_owned())));
        assert_eq!(resolved("!pass show x"), Ok(Resolved::Command("pass show x".to_owned())));
    }
}
