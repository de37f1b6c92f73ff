//! Parses JSON that JavaScript wrote.

use serde::de::DeserializeOwned;

/// Parses JSON. A lone surrogate, legal in JavaScript strings, becomes a replacement character.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).or_else(|error| match mended(text) {
        Some(mended) => serde_json::from_str(&mended).map_err(|error| error.to_string()),
        None => Err(error.to_string()),
    })
}

/// Replaces escapes of lone surrogates; `None` if there are none.
fn mended(text: &str) -> Option<String> {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_changed = false;
    while let Some(at) = rest.find('\\') {
        let escape = &rest[at..];
        let (length, is_lone) = match unit(escape) {
            Some(0xD800..=0xDBFF) => match escape.get(6..).and_then(unit) {
                Some(0xDC00..=0xDFFF) => (12, false),
                _ => (6, true),
            },
            Some(0xDC00..=0xDFFF) => (6, true),
            Some(_) => (6, false),
            None => (1 + escape[1..].chars().next().map_or(0, char::len_utf8), false),
        };
        result.push_str(&rest[..at]);
        result.push_str(if is_lone { "\\ufffd" } else { &escape[..length] });
        is_changed |= is_lone;
        rest = &escape[length..];
    }
    result.push_str(rest);
    is_changed.then_some(result)
}

/// The code unit of a `\uXXXX` escape at the start of `text`.
fn unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_surrogate_pair_is_replaced_and_nothing_else() {
        let check = |text: &str, expected: &str| assert_eq!(parse::<String>(text).unwrap(), expected, "{text}");
        check(r#""plain \n \\ud83d \u00e9""#, "plain \n \\ud83d é");
        check(r#""\ud83d\ude00""#, "😀");
        check(r#""\ud83d!""#, "\u{fffd}!");
        check(r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}");
        check(r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀");
        assert!(parse::<String>("\"open").is_err());
    }
}
