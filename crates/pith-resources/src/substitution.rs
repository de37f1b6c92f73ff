//! Arguments of a template: how the text after the name is split, and where the
//! pieces go.

use std::borrow::Cow;

/// Splits at white space. A quote of either kind at the beginning of an argument groups what follows, nothing at all
/// included; `\` before that quote makes it text. An apostrophe inside a word and a quote that stays open are text.
pub(crate) fn split(text: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (grouped, after) = quoted(rest).unwrap_or((String::new(), rest));
        // What touches the closing quote belongs to the argument.
        let end = after.find(char::is_whitespace).unwrap_or(after.len());
        arguments.push(grouped + &after[..end]);
        rest = after[end..].trim_start();
    }
    arguments
}

/// Returns what stands between the quotes at the beginning of a text, and what follows them.
fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|char| matches!(char, '"' | '\''))?;
    let mut inner = String::new();
    let mut rest = &text[1..];
    loop {
        let end = rest.find([quote, '\\'])?;
        inner.push_str(&rest[..end]);
        let after = &rest[end + 1..];
        rest = match (rest[end..].starts_with(quote), after.strip_prefix(quote)) {
            (true, _) => return Some((inner, after)),
            (false, Some(after)) => {
                inner.push(quote);
                after
            }
            (false, None) => {
                inner.push('\\');
                after
            }
        };
    }
}

/// Replaces the placeholders in one pass; what they are replaced by is not looked at again.
pub(crate) fn fill(body: &str, arguments: &[String]) -> String {
    let mut filled = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.find('$') {
        filled.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        rest = match placeholder(after) {
            Some((placeholder, after)) => {
                filled.push_str(&placeholder.value(arguments));
                after
            }
            None => {
                filled.push('$');
                after
            }
        };
    }
    filled.push_str(rest);
    filled
}

#[derive(Debug, PartialEq, Eq)]
enum Placeholder<'t> {
    /// `$N`, with a default in `${N:-…}`.
    One(usize, Option<&'t str>),
    /// `$@` and `$ARGUMENTS`, likewise.
    All(Option<&'t str>),
    /// `${@:N}` and `${@:N:L}`.
    Slice(usize, Option<usize>),
}

impl Placeholder<'_> {
    fn value<'v>(&'v self, arguments: &'v [String]) -> Cow<'v, str> {
        let (value, default) = match self {
            Placeholder::One(n, default) => {
                let argument = n.checked_sub(1).and_then(|index| arguments.get(index));
                (Cow::Borrowed(argument.map_or("", |argument| &**argument)), default)
            }
            Placeholder::All(default) => (Cow::Owned(arguments.join(" ")), default),
            Placeholder::Slice(start, length) => {
                let start = start.saturating_sub(1).min(arguments.len());
                let end = length.map_or(arguments.len(), |length| start.saturating_add(length).min(arguments.len()));
                (Cow::Owned(arguments[start..end].join(" ")), &None)
            }
        };
        match default {
            Some(default) if value.is_empty() => Cow::Borrowed(default),
            _ => value,
        }
    }
}

/// Returns the placeholder that follows a `$`, and what comes after it.
fn placeholder(text: &str) -> Option<(Placeholder<'_>, &str)> {
    if let Some(inner) = text.strip_prefix('{') {
        let (inner, after) = inner.split_once('}')?;
        return Some((braced(inner)?, after));
    }
    if let Some((n, after)) = number(text) {
        return Some((Placeholder::One(n, None), after));
    }
    let after = text.strip_prefix('@').or_else(|| text.strip_prefix("ARGUMENTS"))?;
    Some((Placeholder::All(None), after))
}

/// Parses what stands between `${` and `}`.
fn braced(inner: &str) -> Option<Placeholder<'_>> {
    if let Some((name, default)) = inner.split_once(":-") {
        return match (name, number(name)) {
            ("@" | "ARGUMENTS", _) => Some(Placeholder::All(Some(default))),
            (_, Some((n, ""))) => Some(Placeholder::One(n, Some(default))),
            _ => None,
        };
    }
    let (start, rest) = number(inner.strip_prefix("@:")?)?;
    match rest.strip_prefix(':').map(number) {
        None if rest.is_empty() => Some(Placeholder::Slice(start, None)),
        Some(Some((length, ""))) => Some(Placeholder::Slice(start, Some(length))),
        _ => None,
    }
}

/// Parses leading digits; a number that is too large counts as the largest.
fn number(text: &str) -> Option<(usize, &str)> {
    let end = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    (!digits.is_empty()).then(|| (digits.parse().unwrap_or(usize::MAX), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_split() {
        let check = |text: &str, expected: &[&str]| assert_eq!(split(text), expected, "{text:?}");
        check("", &[]);
        check("  a  b\tc\nd ", &["a", "b", "c", "d"]);
        check("'a b' c \"d\"", &["a b", "c", "d"]);
        check("a'b c'd", &["a'b", "c'd"]);
        check("don't 'it''s' 'a'b", &["don't", "it's'", "ab"]);
        check("\"it's\" 'say \"hi\"'", &["it's", "say \"hi\""]);
        check("'open to 'the end", &["open to the", "end"]);
        check("'open to the end", &["'open", "to", "the", "end"]);
        check("\"\" '' a", &["", "", "a"]);
        check(r#""say \"hi\"" 'a\"b' \"x"#, &["say \"hi\"", "a\\\"b", "\\\"x"]);
        check(r"a\ b", &["a\\", "b"]);
    }

    #[test]
    fn placeholders_are_filled() {
        let check = |body: &str, expected: &str| {
            assert_eq!(fill(body, &split("'a b' c \"d\"")), expected, "{body}");
        };
        check("$1|$2|$3|$4", "a b|c|d|");
        check("$@ $ARGUMENTS", "a b c d a b c d");
        check("${@:2}|${@:0}|${@:1:2}|${@:2:0}|${@:9}|${@:9:9}", "c d|a b c d|a b c|||");
        check("${3:-dflt} ${4:-dflt} ${0:-z} ${4:-}.", "d dflt z .");
        check("${@:-none} ${ARGUMENTS:-none}", "a b c d a b c d");
        check("$0$10$01", "a b"); // $01 is the first argument
        check("$ARGUMENTSx $@x", "a b c dx a b c dx");
        // Everything else stays.
        for text in
            ["$", "$$", "${1}", "${@}", "$x", "${@:x}", "${@:1:}", "${1:2}", "${1", "${x:-y}", "€$é", "${@:1:2:3}"]
        {
            check(text, text);
        }
        check("$$1", "$a b");
        check("${1:-a\nb} ${9:-a\nb}", "a b a\nb");
        check("${9:-:-}", ":-");
        check("$99999999999999999999999.${@:99999999999999999999999:5}.${@:2:99999999999999999999999}", "..c d");
    }

    #[test]
    fn without_arguments_defaults_are_used() {
        let check = |body: &str, expected: &str| assert_eq!(fill(body, &[]), expected, "{body}");
        check("${@:-all} ${ARGUMENTS:-all} ${1:-one}", "all all one");
        check("[$@][$1][${@:1}]", "[][][]");
    }

    #[test]
    fn what_was_put_in_is_not_looked_at_again() {
        let arguments = ["$2".to_owned(), "$1 ${@:1}".to_owned()];
        assert_eq!(fill("$1 $2 ${3:-$1}", &arguments), "$2 $1 ${@:1} $1");
    }
    proptest::proptest! {
        #[test]
        fn quoted_arguments_come_back_whole(arguments in proptest::collection::vec("[a-c '\"é\t$]{0,6}", 0..5)) {
            let quoted: Vec<_> = arguments.iter().map(|text| format!("\"{}\"", text.replace('"', "\\\""))).collect();
            proptest::prop_assert_eq!(split(&quoted.join(" ")), arguments);
        }

        #[test]
        fn any_text_is_accepted(body in "[${}@:A-Z0-9é\\-\n ]{0,40}", arguments in "[a-c '\"é\t]{0,20}") {
            let arguments = split(&arguments);
            let filled = fill(&body, &arguments);
            // What has no placeholder stays as it is.
            proptest::prop_assert!(body.contains('$') || filled == body);
        }
    }
}
