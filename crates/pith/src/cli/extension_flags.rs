//! Options that pith itself does not know. Whether an extension registers them is known only after extensions were
//! loaded, so they are kept until then.

use std::collections::HashMap;

use pith_ext::registry::{FlagInfo, FlagKind};
use serde_json::Value;

use super::flags;

/// The options, in the order they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtensionFlags(Vec<UnresolvedFlag>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct UnresolvedFlag {
    /// The name without the dashes.
    name: String,
    value: Option<String>,
    /// Whether it is a flag of another agent, which no extension need have registered.
    is_foreign: bool,
}

/// What to do with options that no extension has registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownFlags {
    Error,
    /// Hosts pass flags written for other agents and other versions.
    Warn,
}

/// The values for extensions, and warnings for the user.
#[derive(Debug, Default, PartialEq)]
pub struct ResolvedFlags {
    pub values: HashMap<String, Value>,
    pub warnings: Vec<String>,
}

impl ExtensionFlags {
    pub(super) fn push(&mut self, name: &str, value: Option<String>) {
        self.0.push(UnresolvedFlag { name: name.to_owned(), value, is_foreign: false });
    }

    pub(super) fn push_foreign(&mut self, name: &str, value: Option<String>) {
        self.0.push(UnresolvedFlag { name: name.to_owned(), value, is_foreign: true });
    }

    /// Returns whether there is nothing to resolve.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Compares the options with what extensions have registered; `Err` is the text after `Error: `.
    pub fn resolve(&self, registered: &[FlagInfo], unknown_flags: UnknownFlags) -> Result<ResolvedFlags, String> {
        let mut resolved = ResolvedFlags::default();
        let mut unknown: Vec<String> = Vec::new();
        for UnresolvedFlag { name, value, is_foreign } in &self.0 {
            match (registered.iter().find(|flag| flag.name == *name).map(|flag| flag.kind), value) {
                (Some(FlagKind::Boolean), _) => {
                    resolved.values.insert(name.clone(), Value::Bool(true));
                }
                (Some(FlagKind::String), Some(value)) => {
                    resolved.values.insert(name.clone(), Value::String(value.clone()));
                }
                (Some(FlagKind::String), None) => return Err(format!("Extension flag \"--{name}\" requires a value")),
                (None, _) if *is_foreign => resolved.warnings.push(format!("--{name} has no effect in pith")),
                (None, _) => {
                    let option = format!("--{name}");
                    if !unknown.contains(&option) {
                        unknown.push(option);
                    }
                }
            }
        }
        match (unknown.as_slice(), unknown_flags) {
            ([], _) => {}
            (_, UnknownFlags::Warn) => {
                resolved.warnings.push(format!("ignoring unknown options: {}", unknown.join(", ")));
            }
            ([option], UnknownFlags::Error) => {
                let hint = match flags::nearest(option) {
                    Some(near) if near == option => " (it needs a value)".to_owned(),
                    Some(near) => format!(" (did you mean {near}?)"),
                    None => String::new(),
                };
                return Err(format!("Unknown option: {option}{hint}"));
            }
            (_, UnknownFlags::Error) => return Err(format!("Unknown options: {}", unknown.join(", "))),
        }
        Ok(resolved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;

    fn registered(name: &str, kind: FlagKind) -> FlagInfo {
        let extension_path = "x.ts".to_owned();
        FlagInfo { name: name.to_owned(), kind, description: None, default: None, extension_path }
    }

    fn resolve(line: &str, unknown_flags: UnknownFlags) -> Result<ResolvedFlags, String> {
        let cli = Cli::parse(line.split_whitespace().map(str::to_owned)).expect("parses");
        let registered = [
            registered("loud", FlagKind::Boolean),
            registered("plan", FlagKind::Boolean),
            registered("preset", FlagKind::String),
        ];
        cli.extension_flags.resolve(&registered, unknown_flags)
    }

    #[test]
    fn extensions_get_what_they_have_registered() {
        let check = |line: &str, expected: Value| {
            let values = resolve(line, UnknownFlags::Error).expect(line).values;
            assert_eq!(serde_json::to_value(values).expect("plain"), expected, "{line}");
        };
        check("--loud", serde_json::json!({"loud": true}));
        check("--loud=no", serde_json::json!({"loud": true}));
        check("--preset quick", serde_json::json!({"preset": "quick"}));
        check("--preset=a --preset=b", serde_json::json!({"preset": "b"}));
        check("--preset= --loud @file", serde_json::json!({"preset": "", "loud": true}));
        // Another agent has a flag of this name; the extension's is used.
        check("--plan --loud", serde_json::json!({"plan": true, "loud": true}));
    }

    #[test]
    fn unregistered_flags_are_refused_or_ignored() {
        let check = |line: &str, text: &str| assert_eq!(resolve(line, UnknownFlags::Error).expect_err(line), text);
        check("--preset", "Extension flag \"--preset\" requires a value");
        check("--preset --loud", "Extension flag \"--preset\" requires a value");
        check("--frobnicate", "Unknown option: --frobnicate");
        check("--one --two=3 --one", "Unknown options: --one, --two");
        check("--modle x", "Unknown option: --modle (did you mean --model?)");
        check("--no-skill", "Unknown option: --no-skill (did you mean --no-skills?)");
        let ignored = resolve("--mode rpc --frobnicate yes --smol m --loud", UnknownFlags::Warn).expect("goes on");
        assert_eq!(ignored.warnings, ["--smol has no effect in pith", "ignoring unknown options: --frobnicate"]);
        assert_eq!(ignored.values.len(), 1);
    }
}
