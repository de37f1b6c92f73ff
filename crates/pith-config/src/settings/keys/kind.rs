//! What a value of a setting may be, and how one that is something else is told.

use pith_protocol::ThinkingLevel;
use serde_json::Value;

/// What a value is.
pub(super) enum Kind {
    Text,
    Texts,
    Flag,
    /// A whole number; JavaScript's safe range.
    Count,
    /// A number, fractions and negative ones included.
    Seconds,
    /// Milliseconds as number or text, or `"disabled"`.
    Timeout,
    Level,
    Word(&'static [&'static str]),
    /// An object whose values are all of one kind.
    Each(&'static Kind),
    /// An object with known keys in each value.
    EachOf(&'static [(&'static str, Kind)]),
    List,
    /// A number.
    Amount,
}

impl Kind {
    /// Whether the value may stay. `null` means unset and is removed without a report.
    pub(super) fn accept(&self, path: &str, value: &mut Value, report: &mut impl FnMut(&str, &Value, &str)) -> bool {
        if value.is_null() {
            return false;
        }
        let fits = match self {
            Kind::Text => value.is_string(),
            Kind::Texts => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
            Kind::Flag => value.is_boolean(),
            Kind::List => value.is_array(),
            Kind::Count => whole(value).map(|number| *value = number.into()).is_some(),
            Kind::Seconds | Kind::Amount => value.is_number(),
            Kind::Timeout => timeout(value).map(|number| *value = number.into()).is_some(),
            Kind::Level => value.as_str().is_some_and(|name| ThinkingLevel::parse(name).is_some()),
            Kind::Word(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Kind::Each(kind) => {
                return check_members(path, value, report, |path, member, report| kind.accept(path, member, report));
            }
            Kind::EachOf(kinds) => {
                return check_members(path, value, report, |path, member, report| {
                    check_fields(kinds, path, member, report)
                });
            }
        };
        if !fits {
            report(path, value, &self.expected());
        }
        fits
    }

    fn expected(&self) -> String {
        match self {
            Kind::Text => "a string".into(),
            Kind::Texts => "an array of strings".into(),
            Kind::Flag => "true or false".into(),
            Kind::List => "an array".into(),
            Kind::Amount => "a number".into(),
            Kind::Count => "a non-negative safe integer".into(),
            Kind::Seconds => "a number of seconds".into(),
            Kind::Timeout => "a number of milliseconds or \"disabled\"".into(),
            Kind::Level => format!("one of {}", ThinkingLevel::ALL.map(ThinkingLevel::as_str).join(", ")),
            Kind::Word(words) => format!("one of {}", words.join(", ")),
            Kind::Each(_) | Kind::EachOf(_) => "an object".into(),
        }
    }
}

/// Checks every member of an object on its own and removes the wrong ones.
fn check_members<R: FnMut(&str, &Value, &str)>(
    path: &str,
    value: &mut Value,
    report: &mut R,
    mut check: impl FnMut(&str, &mut Value, &mut R) -> bool,
) -> bool {
    let Value::Object(members) = value else {
        report(path, value, "an object");
        return false;
    };
    members.retain(|name, member| check(&format!("{path}[{name:?}]"), member, report));
    true
}

fn check_fields<R: FnMut(&str, &Value, &str)>(
    kinds: &[(&str, Kind)],
    path: &str,
    value: &mut Value,
    report: &mut R,
) -> bool {
    let Value::Object(fields) = value else {
        report(path, value, "an object");
        return false;
    };
    for (name, kind) in kinds {
        let Some(field) = fields.get_mut(*name) else { continue };
        if !kind.accept(&format!("{path}.{name}"), field, report) {
            fields.shift_remove(*name);
        }
    }
    true
}

/// Returns a whole number in the range other JSON programs keep exactly.
fn whole(value: &Value) -> Option<u64> {
    const MAX: u64 = (1 << 53) - 1;
    let number = match value.as_u64() {
        Some(number) => number,
        None => {
            value.as_f64().filter(|number| *number >= 0.0 && number.fract() == 0.0 && *number <= MAX as f64)? as u64
        }
    };
    (number <= MAX).then_some(number)
}

fn timeout(value: &Value) -> Option<u64> {
    let Some(text) = value.as_str() else {
        return value.as_f64().filter(|number| *number >= 0.0 && *number <= 9e15).map(|number| number as u64);
    };
    match text.trim() {
        "disabled" => Some(0),
        text => text.parse().ok(),
    }
}
