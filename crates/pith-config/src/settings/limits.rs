//! `limits`: what a session may use. A value that cannot be read is kept as a problem, because a limit that was meant
//! must not vanish.

use std::collections::BTreeMap;

use pith_protocol::{Amount, LimitKind, LimitName};
use serde_json::{Map, Value};

use crate::near::suggestion;

const SOFT_PERCENT: &str = "softPercent";
const STRICT: &str = "strict";

/// The limits of a session. The default has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    max: BTreeMap<LimitName, Amount>,
    /// At how many percent of a limit hosts are told.
    soft_percent: Option<u8>,
    /// Whether a limit that cannot be watched refuses prompts.
    pub is_strict: bool,
    /// What is wrong with values that were meant as limits; prompts are refused while there is anything.
    pub problems: Vec<String>,
}

impl Limits {
    /// Reads the value of `limits`.
    pub fn read(value: &Value) -> Limits {
        let mut limits = Limits::default();
        match value {
            Value::Null => {}
            Value::Object(members) => members.iter().for_each(|(name, value)| limits.put(name, value)),
            _ => limits.problems.push("limits: expected an object".to_owned()),
        }
        limits
    }

    /// Reads `name=value` of a command line.
    pub fn read_pair(text: &str) -> Result<Limits, String> {
        let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, such as tokens=2000000")?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        let limits = Limits::read(&Value::Object(Map::from_iter([(name.to_owned(), value)])));
        match limits.problems.first() {
            Some(problem) => Err(problem.clone()),
            None => Ok(limits),
        }
    }

    fn put(&mut self, name: &str, value: &Value) {
        let limit = LimitName::ALL.iter().find(|limit| limit.as_str() == name);
        let problem = match (limit, name, value) {
            (Some(limit), _, value) => match amount(limit.kind(), value) {
                Ok(max) => {
                    self.max.insert(*limit, max);
                    return;
                }
                Err(expected) => expected.to_owned(),
            },
            (None, SOFT_PERCENT, value) => match value.as_u64() {
                Some(percent @ 1..=100) => {
                    self.soft_percent = Some(percent as u8);
                    return;
                }
                _ => "expected a whole number from 1 to 100".to_owned(),
            },
            (None, STRICT, Value::Bool(is_strict)) => {
                self.is_strict = *is_strict;
                return;
            }
            (None, STRICT, _) => "expected true or false".to_owned(),
            (None, ..) => {
                let known = LimitName::ALL.iter().map(|limit| limit.as_str()).chain([SOFT_PERCENT, STRICT]);
                format!("there is no such limit{}", suggestion(name, known))
            }
        };
        self.problems.push(format!("limits.{name}: {problem}"));
    }

    /// Whether nothing is limited, and nothing was meant to be.
    pub fn is_empty(&self) -> bool {
        self.max.is_empty() && self.problems.is_empty()
    }

    pub fn max(&self, name: LimitName) -> Option<Amount> {
        self.max.get(&name).copied()
    }

    /// The limits that are set, in the order of [`LimitName::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (LimitName, Amount)> {
        self.max.iter().map(|(name, max)| (*name, *max))
    }

    /// From where on hosts are told that a limit is near; `None` if they are not told.
    pub fn soft(&self, max: Amount) -> Option<Amount> {
        self.soft_percent.map(|percent| Amount(max.0 * f64::from(percent) / 100.0))
    }

    /// Takes a project's limits where they are lower. Returns the names of those that are not.
    pub(super) fn lower(&mut self, project: Limits) -> Vec<LimitName> {
        let mut ignored = Vec::new();
        for (name, max) in project.max {
            match self.max.get(&name) {
                Some(own) if *own < max => ignored.push(name),
                _ => _ = self.max.insert(name, max),
            }
        }
        self.soft_percent = self.soft_percent.into_iter().chain(project.soft_percent).min();
        self.is_strict |= project.is_strict;
        self.problems.extend(project.problems);
        ignored
    }

    /// Takes what somebody set who counts more: flags over settings, commands over both.
    pub fn override_with(&mut self, other: &Limits) {
        self.max.extend(other.iter());
        self.soft_percent = other.soft_percent.or(self.soft_percent);
        self.is_strict |= other.is_strict;
        self.problems.extend_from_slice(&other.problems);
    }

    /// Takes limits away.
    pub fn without(mut self, names: &[LimitName]) -> Limits {
        self.max.retain(|name, _| !names.contains(name));
        self
    }
}

fn amount(kind: LimitKind, value: &Value) -> Result<Amount, &'static str> {
    let number = value.as_f64().filter(|number| *number > 0.0 && number.is_finite());
    match kind {
        LimitKind::Count => {
            number.filter(|number| number.fract() == 0.0).map(Amount).ok_or("expected a whole number above 0")
        }
        LimitKind::Amount => number.map(Amount).ok_or("expected a number above 0"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_that_is_no_limit_is_a_problem() {
        let check = |value: Value, problem: &str| assert_eq!(Limits::read(&value).problems, [problem], "{value}");
        check(json!({"tokens": -1}), "limits.tokens: expected a whole number above 0");
        check(json!({"tokens": 0}), "limits.tokens: expected a whole number above 0");
        check(json!({"turns": 1.5}), "limits.turns: expected a whole number above 0");
        check(json!({"turns": "many"}), "limits.turns: expected a whole number above 0");
        check(json!({"costUsd": null}), "limits.costUsd: expected a number above 0");
        check(json!({"softPercent": 101}), "limits.softPercent: expected a whole number from 1 to 100");
        check(json!({"strict": 1}), "limits.strict: expected true or false");
        check(json!({"token": 5}), "limits.token: there is no such limit; did you mean \"tokens\"?");
        check(json!(5), "limits: expected an object");
    }

    #[test]
    fn a_project_lowers_and_does_not_raise() {
        let mut limits = Limits::read(&json!({"tokens": 100, "turns": 5}));
        let ignored = limits.lower(Limits::read(&json!({"tokens": 50, "turns": 9, "costUsd": 0.5})));
        assert_eq!(ignored, [LimitName::Turns]);
        assert_eq!(limits, Limits::read(&json!({"tokens": 50, "turns": 5, "costUsd": 0.5})));
    }

    #[test]
    fn a_flag_is_a_name_and_a_value() {
        assert_eq!(Limits::read_pair("costUsd=0.5").ok(), Some(Limits::read(&json!({"costUsd": 0.5}))));
        assert_eq!(Limits::read_pair("tokens=many").unwrap_err(), "limits.tokens: expected a whole number above 0");
        assert_eq!(Limits::read_pair("tokens").unwrap_err(), "expected NAME=VALUE, such as tokens=2000000");
    }

    #[test]
    fn hosts_are_told_at_a_share_of_the_limit() {
        assert_eq!(Limits::read(&json!({"tokens": 100, "softPercent": 80})).soft(50.into()), Some(40.into()));
        assert_eq!(Limits::read(&json!({"tokens": 100})).soft(50.into()), None);
    }
}
