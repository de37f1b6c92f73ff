//! A rule of the user: what else must not be seen.

use std::sync::Arc;

use regex::bytes::Regex;

use crate::searcher::Mask;

/// A value or a pattern that the user wants hidden, and what stands in its place.
#[derive(Clone, Debug)]
pub struct Rule {
    pub(crate) hides: Hides,
    pub(crate) mask: Mask,
}

#[derive(Clone, Debug)]
pub(crate) enum Hides {
    Value(String),
    Pattern(Regex),
}

impl Rule {
    /// Makes the rule of a value, which may be a short one.
    pub fn value(value: &str) -> Result<Self, String> {
        if value.is_empty() {
            return Err("it is empty".to_owned());
        }
        Ok(Rule { hides: Hides::Value(value.to_owned()), mask: None })
    }

    /// Makes the rule of a regular expression with JavaScript's flags.
    pub fn pattern(pattern: &str, flags: &str) -> Result<Self, String> {
        let mut inner = String::new();
        for flag in flags.chars() {
            match flag {
                'i' | 'm' | 's' => inner.push(flag),
                // Every match is replaced, and texts are Unicode.
                'g' | 'u' | 'v' => {}
                other => return Err(format!("there is no flag \"{other}\"")),
            }
        }
        let pattern = if inner.is_empty() { pattern.to_owned() } else { format!("(?{inner}){pattern}") };
        let pattern = Regex::new(&pattern).map_err(|error| last_line(&error.to_string()))?;
        if pattern.is_match(b"") {
            return Err("it matches the empty text".to_owned());
        }
        Ok(Rule { hides: Hides::Pattern(pattern), mask: None })
    }

    /// Sets what stands in the place of what it hides.
    pub fn shown_as(self, mask: &str) -> Self {
        Rule { mask: Some(Arc::from(mask)), ..self }
    }
}

/// Returns the line of an error text that says what is wrong; those before it draw where.
fn last_line(text: &str) -> String {
    let line = text.lines().last().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}
