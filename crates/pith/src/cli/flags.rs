//! What a flag is, and how flags are found. The parser, the help, the completions and the manual page all read the rows
//! of `table.rs` through this file.

use pith_protocol::ThinkingLevel;

use super::Cli;
use super::table::{GROUPS, OTHERS};

/// Whether a flag has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    /// The name of the value, as help shows it.
    Value(&'static str),
    /// The next argument, if it looks like neither a flag nor a file.
    Optional(&'static str),
}

/// What pith does with a flag.
#[derive(Clone, Copy, Debug)]
pub enum Effect {
    /// Sets something on the command line being parsed.
    Switch(fn(&mut Cli)),
    /// Stores its value.
    Set(fn(&mut Cli, String)),
    /// Checks and stores its value.
    Check(fn(&mut Cli, String) -> Result<(), String>),
    /// Accepts it without effect: it concerns terminal interfaces, or features that pith does not have.
    Ignored,
    /// Accepts it with a warning: it asks for something of another agent that pith does not do.
    Foreign,
}

/// One flag.
#[derive(Debug)]
pub struct Flag {
    pub long: &'static str,
    pub short: Option<&'static str>,
    pub takes: Takes,
    pub help: &'static str,
    pub effect: Effect,
    /// The error when the value is missing. Without a text, the flag may then be an extension's.
    pub missing_value: Option<&'static str>,
}

type Short = Option<&'static str>;

/// A flag without a value.
pub const fn switch(long: &'static str, short: Short, help: &'static str, set: fn(&mut Cli)) -> Flag {
    Flag { long, short, takes: Takes::Nothing, help, effect: Effect::Switch(set), missing_value: None }
}

/// A flag with a value that is taken as it is.
pub const fn value(
    long: &'static str,
    short: Short,
    name: &'static str,
    help: &'static str,
    set: fn(&mut Cli, String),
) -> Flag {
    Flag { long, short, takes: Takes::Value(name), help, effect: Effect::Set(set), missing_value: None }
}

/// A flag with a value that may be wrong.
pub const fn checked(
    long: &'static str,
    short: Short,
    name: &'static str,
    help: &'static str,
    set: fn(&mut Cli, String) -> Result<(), String>,
) -> Flag {
    Flag { long, short, takes: Takes::Value(name), help, effect: Effect::Check(set), missing_value: None }
}

/// A flag of another agent that has no effect in pith.
pub const fn ignored(long: &'static str, takes: Takes) -> Flag {
    Flag { long, short: None, takes, help: "", effect: Effect::Ignored, missing_value: None }
}

/// A flag of another agent that asks for something pith does not do.
pub const fn foreign(long: &'static str, takes: Takes) -> Flag {
    Flag { long, short: None, takes, help: "", effect: Effect::Foreign, missing_value: None }
}

impl Flag {
    /// Makes a missing value an error with this text.
    pub const fn needing(self, text: &'static str) -> Flag {
        Flag { missing_value: Some(text), ..self }
    }

    /// Lets the value be left out; the setter gets an empty text then.
    pub const fn optional(self) -> Flag {
        match self.takes {
            Takes::Value(name) => Flag { takes: Takes::Optional(name), ..self },
            Takes::Optional(_) | Takes::Nothing => self,
        }
    }

    /// Finds a flag by its long or short name.
    pub fn named(name: &str) -> Option<&'static Flag> {
        all().chain(OTHERS).find(|flag| flag.long == name || flag.short == Some(name))
    }

    /// The values to choose from, for flags that have such a list.
    pub fn choices(&self) -> Vec<&'static str> {
        match self.takes {
            Takes::Value("LEVEL") => ThinkingLevel::ALL.map(ThinkingLevel::as_str).to_vec(),
            Takes::Value(value) if value.starts_with(char::is_lowercase) => value.split('|').collect(),
            Takes::Value(_) | Takes::Optional(_) | Takes::Nothing => Vec::new(),
        }
    }

    /// Whether the value names a file or a directory.
    pub fn takes_path(&self) -> bool {
        matches!(self.takes, Takes::Value(value) if value.split('|').any(|word| ["PATH", "FILE", "DIR"].contains(&word)))
    }

    /// The names and the value, as help and manual show them.
    pub fn usage(&self) -> String {
        let mut usage = self.short.map_or_else(String::new, |short| format!("{short}, "));
        usage.push_str(self.long);
        match self.takes {
            Takes::Nothing => {}
            Takes::Value(value) => usage.push_str(&format!(" <{value}>")),
            Takes::Optional(value) => usage.push_str(&format!(" [{value}]")),
        }
        usage
    }
}

/// Every flag that works, in the order of the help.
pub fn all() -> impl Iterator<Item = &'static Flag> {
    GROUPS.iter().flat_map(|group| group.flags)
}

/// Returns the flag that a mistyped one most likely means.
pub fn nearest(name: &str) -> Option<&'static str> {
    let (n_changes, _, near) = all()
        .map(|flag| (strsim::osa_distance(name, flag.long), name.len().abs_diff(flag.long.len()), flag.long))
        .min()?;
    (n_changes <= 2 && n_changes * 3 < name.len()).then_some(near)
}
