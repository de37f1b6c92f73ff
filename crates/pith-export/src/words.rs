//! Numbers, times and excerpts for people.

use std::borrow::Cow;

use jiff::Timestamp;

/// Returns the beginning of a text on one line, cut after so many characters.
pub(crate) fn excerpt(text: &str, limit: usize) -> String {
    let mut excerpt = String::new();
    let mut n_chars = 0;
    for word in text.split_whitespace() {
        if n_chars > 0 {
            excerpt.push(' ');
            n_chars += 1;
        }
        for c in word.chars() {
            if n_chars >= limit {
                excerpt.truncate(excerpt.trim_end().len());
                excerpt.push('…');
                return excerpt;
            }
            excerpt.push(c);
            n_chars += 1;
        }
    }
    excerpt
}

/// Formats a count as `1 line` or `2 lines`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(n as u64))
}

/// Formats a number as `12 345`, with narrow no-break spaces.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut grouped = String::with_capacity(digits.len() * 2);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a number as `950`, `12.3k` or `4.6M`.
pub(crate) fn short(n: u64) -> String {
    let scaled = |unit: f64, name: &str| {
        let value = n as f64 / unit;
        if value < 99.95 { format!("{value:.1}{name}") } else { format!("{value:.0}{name}") }
    };
    match n {
        0..1_000 => n.to_string(),
        1_000..999_500 => scaled(1e3, "k"),
        _ => scaled(1e6, "M"),
    }
}

/// Formats a price as `$0.0123` or `$4.50`.
pub(crate) fn dollars(cost: f64) -> String {
    match cost {
        _ if !cost.is_finite() => "$0.00".to_owned(),
        cost if cost.abs() < 0.995 => format!("${cost:.4}"),
        cost => format!("${cost:.2}"),
    }
}

/// Formats a time as `2026-11-15T06:52:54.872Z`.
pub(crate) fn iso(millis: i64) -> String {
    let timestamp = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{timestamp:.3}")
}

/// Formats a time as `2026-11-15 06:52 UTC`.
pub(crate) fn date(millis: i64) -> String {
    let iso = iso(millis);
    match (iso.get(..10), iso.get(11..16)) {
        (Some(day), Some(clock)) => format!("{day} {clock} UTC"),
        _ => iso,
    }
}

/// Formats a time as `06:52`.
pub(crate) fn clock(millis: i64) -> String {
    iso(millis).get(11..16).unwrap_or_default().to_owned()
}

/// Returns the text without the newlines at its end.
pub(crate) fn body(text: &str) -> &str {
    text.trim_end_matches(['\n', '\r'])
}

/// Returns a name that every file system takes.
pub(crate) fn file_name(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.chars().all(is_plain) { name.into() } else { name.replace(|c| !is_plain(c), "-").into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_one_short_line() {
        let check = |text: &str, expected: &str| assert_eq!(excerpt(text, 8), expected);
        check("", "");
        check(" one\n\t two ", "one two");
        check("exactly8", "exactly8");
        check("exactly 9", "exactly…");
        check("ééééééééé", "éééééééé…");
    }

    #[test]
    fn numbers_are_short() {
        let cases =
            [(0, "0"), (999, "999"), (1_000, "1.0k"), (12_345, "12.3k"), (123_456, "123k"), (4_560_000, "4.6M")];
        for (n, expected) in cases {
            assert_eq!(short(n), expected);
        }
        assert_eq!((short(999_499), short(999_500)), ("999k".to_owned(), "1.0M".to_owned()));
        assert_eq!(
            (count(1, "line"), count(1234567, "line")),
            ("1 line".to_owned(), "1\u{202f}234\u{202f}567 lines".to_owned())
        );
        assert_eq!(
            (dollars(0.01234), dollars(4.5), dollars(f64::NAN)),
            ("$0.0123".to_owned(), "$4.50".to_owned(), "$0.00".to_owned())
        );
    }

    #[test]
    fn times_are_utc() {
        assert_eq!(
            (date(1794725574872), clock(1794725574872)),
            ("2026-11-15 06:52 UTC".to_owned(), "06:52".to_owned())
        );
        assert_eq!(date(i64::MAX), "1970-01-01 00:00 UTC");
    }

    #[test]
    fn file_names_are_plain() {
        assert_eq!((file_name("a-b_1.x"), file_name("a/../b\" c")), ("a-b_1.x".into(), "a-..-b--c".into()));
    }
}
