//! Text of models, tools and extensions on its way to a terminal: control characters are shown, not obeyed.
//!
//! A terminal takes orders from the text it shows: to erase lines, to set its title or the clipboard, to print
//! backwards. Text that pith did not write itself passes [`visible`] first.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

/// Whether a terminal, or a reader, could take a character for an order.
///
/// Joiners and variation selectors are not among them, because ordinary text in many scripts needs them.
pub fn is_order(char: char) -> bool {
    match char {
        '\n' | '\t' => false,
        // Bidirectional embeddings, overrides and isolates show one text and mean another.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        '\u{2028}' | '\u{2029}' => true,
        // Tag characters are invisible letters.
        '\u{e0000}'..='\u{e007f}' => true,
        // C0, DEL and C1.
        char => char.is_control(),
    }
}

/// Returns the text with every order in a visible form: `␛` for escape, `\u{9b}` for others that have no picture.
///
/// A carriage return before a line feed is part of the line's end and is left out.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_order) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        if char != '\r' || chars.peek() != Some(&'\n') {
            push_visible(char, &mut shown);
        }
    }
    Cow::Owned(shown)
}

/// Appends the visible form of one character.
pub fn push_visible(char: char, shown: &mut String) {
    match char {
        char if !is_order(char) => shown.push(char),
        '\0'..='\u{1f}' => {
            let picture = char::from_u32(0x2400 + u32::from(char));
            shown.push(picture.expect("every C0 character has a control picture"));
        }
        '\u{7f}' => shown.push('␡'),
        char => write!(shown, "\\u{{{:x}}}", u32::from(char)).expect("writing to a string"),
    }
}

/// What texts for stderr pass first; the program sets it once.
static STDERR_FILTER: OnceLock<Filter> = OnceLock::new();

/// Changes a text on its way out.
pub type Filter = for<'a> fn(&'a str) -> Cow<'a, str>;

/// Lets every text for stderr pass a filter first. The first one stays.
pub fn filter_stderr(filter: Filter) {
    let _ = STDERR_FILTER.set(filter);
}

/// Returns what stderr may show of a text.
pub fn for_stderr(text: &str) -> Cow<'_, str> {
    STDERR_FILTER.get().map_or(Cow::Borrowed(text), |filter| filter(text))
}

/// Writes to stderr; text for a terminal in its visible form, text for a file or a host as it is.
///
/// Nobody is left to tell that stderr cannot be written; `eprint` would panic.
pub fn write_stderr(text: &str) {
    let text = for_stderr(text);
    let mut stderr = io::stderr().lock();
    let shown = if stderr.is_terminal() { visible(&text) } else { Cow::Borrowed(&*text) };
    let _ = stderr.write_all(shown.as_bytes()).and_then(|()| stderr.flush());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn orders_are_shown() {
        let check = |text: &str, expected: &str| assert_eq!(visible(text), expected, "{text:?}");
        check("plain\n\ttext, naïve, 日本語, 👩‍👩‍👧, ❤️", "plain\n\ttext, naïve, 日本語, 👩‍👩‍👧, ❤️");
        check("\x1b[2J\x1b]0;title\x07", "␛[2J␛]0;title␇");
        check("\u{9b}2J\u{9d}52;c;eA==\u{9c}\u{90}q", "\\u{9b}2J\\u{9d}52;c;eA==\\u{9c}\\u{90}q");
        check("a\rb\r\nc\x08\x7f\0", "a␍b\nc␈␡␀");
        check("\u{202e}abc\u{2066}d\u{2069}", "\\u{202e}abc\\u{2066}d\\u{2069}");
        check("a\u{e0041}b\u{2028}", "a\\u{e0041}b\\u{2028}");
    }

    #[test]
    fn text_without_orders_is_not_copied() {
        assert!(matches!(visible("as it is\n"), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn nothing_that_comes_out_is_an_order(text in any::<String>(), orders in "[\\x00-\\x1f\\x7f-\\x{9f}\\x{2028}-\\x{202e}\\x{2066}-\\x{2069}a-z]*") {
            let shown = visible(&text).into_owned() + &visible(&orders);
            prop_assert!(!shown.contains(is_order), "{shown:?}");
            // Terminals that know C1 in eight bits look at bytes that are no part of a character; there are none.
            prop_assert!(shown.bytes().all(|byte| byte >= 0x20 && byte != 0x7f || byte == b'\n' || byte == b'\t'));
            prop_assert_eq!(visible(&shown), shown.as_str());
        }
    }
}
