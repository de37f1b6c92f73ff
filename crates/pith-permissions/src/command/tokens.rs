//! Texts that a program may get or run, and the words that can be seen in them.

use super::word::Word;

/// Stands in a text for whatever the shell computes there.
pub(crate) const COMPUTED: char = '\0';

/// A text in which a program may be mentioned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    pub kind: TextKind,
    /// Its words, with [`COMPUTED`] for what only the shell will know.
    pub words: Vec<String>,
}

/// What a text is to the command line, which says how much of a program must be named in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// A simple command: the first word is its program.
    Command,
    /// A simple command that only prints or searches, so that only its own program counts.
    Printed,
    /// A string, here-document or list of words.
    Loose,
    /// A value that may become a program later: it counts if it is nothing but the name.
    Value,
    /// Makes a program known under another name, so that its name alone counts.
    Alone,
}

impl Text {
    pub(super) fn new(kind: TextKind, words: Vec<String>) -> Text {
        Text { kind, words }
    }

    /// Returns the words of a command as rules take them.
    pub(crate) fn as_command(&self) -> Option<Vec<Word>> {
        let word = |text: &String| match is_computed(text) {
            true => Word::Unknown(text.clone()),
            false => Word::Literal(text.clone()),
        };
        matches!(self.kind, TextKind::Command | TextKind::Printed).then(|| self.words.iter().map(word).collect())
    }

    /// Returns the names and options in the text, read in two ways: with quotes that hold together, and that separate.
    /// The words that are the text's own program are left out.
    pub(crate) fn tokens(&self) -> Vec<Vec<String>> {
        let words = match self.kind {
            TextKind::Printed => return Vec::new(),
            TextKind::Command => &self.words[1..],
            TextKind::Loose | TextKind::Value | TextKind::Alone => &self.words[..],
        };
        let is_quoted = words.iter().any(|word| word.contains(['\'', '"', '\\']));
        let read = |quotes| {
            let mut tokens = Vec::new();
            words.iter().for_each(|word| split(word, quotes, &mut tokens));
            tokens
        };
        if is_quoted { vec![read(Quotes::Join), read(Quotes::Separate)] } else { vec![read(Quotes::Join)] }
    }

    /// Returns how people see it.
    pub(crate) fn shown(&self) -> String {
        self.words.join(" ").replace(COMPUTED, "…")
    }
}

/// Whether the shell computes a part of the word.
pub(crate) fn is_computed(word: &str) -> bool {
    word.contains(COMPUTED)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    Join,
    Separate,
}

/// Splits a text at everything that is no part of a name, an option or a path.
fn split(text: &str, quotes: Quotes, tokens: &mut Vec<String>) {
    let mut token = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\\' => rest = escape(rest, quotes, &mut token, tokens),
            '\'' | '"' if quotes == Quotes::Join => {}
            '$' => rest = dollar(rest, &mut token, tokens),
            '*' | '?' => token.push(COMPUTED),
            '`' if rest.contains('`') => {
                let (inside, after) = rest.split_once('`').unwrap_or((rest, ""));
                split(inside, quotes, tokens);
                token.push(COMPUTED);
                rest = after;
            }
            '[' if bracket(rest).is_some() => {
                token.push(COMPUTED);
                rest = bracket(rest).unwrap_or(rest);
            }
            '{' if !token.is_empty() && rest.contains('}') && !rest[..rest.find('}').unwrap_or(0)].contains(' ') => {
                token.push(COMPUTED);
                rest = rest.split_once('}').map_or(rest, |(_, rest)| rest);
            }
            c if c.is_alphanumeric() || "_-./+@%~\0".contains(c) => token.push(c),
            _ => end(&mut token, tokens),
        }
    }
    end(&mut token, tokens);
}

fn end(token: &mut String, tokens: &mut Vec<String>) {
    // make prints no command that begins with this sign.
    let name = token.trim_start_matches('@');
    let name = if name.chars().all(|c| c == '.') { name } else { name.trim_end_matches('.') };
    if !name.is_empty() {
        tokens.push(name.to_owned());
    }
    token.clear();
}

/// Reads what follows a backslash and returns the rest.
fn escape<'a>(rest: &'a str, quotes: Quotes, token: &mut String, tokens: &mut Vec<String>) -> &'a str {
    let number = |from: usize, longest: usize, radix: u32| {
        let digits = rest[from..].chars().take(longest).take_while(|c| c.is_digit(radix)).count();
        let value = u32::from_str_radix(&rest[from..from + digits], radix).ok().and_then(char::from_u32);
        value.filter(|c| !c.is_control()).map(|c| (c, from + digits))
    };
    let coded = match rest.chars().next() {
        Some('x') => number(1, 2, 16),
        Some('u') => number(1, 4, 16),
        Some('U') => number(1, 8, 16),
        Some('0'..='7') => number(0, 4, 8),
        _ => None,
    };
    if let Some((c, length)) = coded {
        token.push(c);
        return &rest[length..];
    }
    match rest.chars().next() {
        Some('n' | 't' | 'r') if quotes == Quotes::Separate => {
            end(token, tokens);
            &rest[1..]
        }
        Some(c @ ('\n' | '\'' | '"')) => &rest[c.len_utf8()..],
        Some(c) if c.is_alphanumeric() => {
            token.push(c);
            &rest[c.len_utf8()..]
        }
        _ => rest,
    }
}

/// Reads what follows a dollar inside a string and returns the rest.
fn dollar<'a>(rest: &'a str, token: &mut String, tokens: &mut Vec<String>) -> &'a str {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let (name, after) = match rest.strip_prefix('{') {
        Some(inside) => match inside.find('}') {
            // What stands in an expansion may be what it becomes.
            Some(end) if inside[..end].chars().all(is_name) => (&inside[..end], &inside[end + 1..]),
            _ => ("x", inside),
        },
        None => {
            let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            match rest.chars().next() {
                Some('@' | '*') if length == 0 => ("x", &rest[1..]),
                _ => rest.split_at(length),
            }
        }
    };
    match name {
        "" => {}
        "IFS" => end(token, tokens),
        _ => token.push(COMPUTED),
    }
    after
}

/// Returns what follows a set of characters such as `[a-z]`.
fn bracket(rest: &str) -> Option<&str> {
    let end = rest.find(']').filter(|end| (1..=8).contains(end))?;
    rest[..end].chars().all(|c| c.is_alphanumeric() || "-!^".contains(c)).then(|| &rest[end + 1..])
}
