//! Tool-call arguments while they stream in: a valid JSON object for whatever
//! part of the text has arrived.
//!
//! The text is read once, byte by byte, into a cleaned copy; a snapshot is that
//! copy up to the last point that can be closed, plus the closing brackets. So
//! the cost of a long argument does not depend on how finely it was cut.

mod strings;

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

/// Containers that may be open at once, one less than `serde_json` refuses.
const MAX_DEPTH: usize = 127;

/// Numbers longer than this are shown only once they are complete.
const MAX_SHOWN_NUMBER: usize = 512;

/// Collects the fragments of one argument text.
#[derive(Clone, Debug, Default)]
pub struct PartialArguments {
    raw: String,
    /// What was understood, ready to be spliced into a line.
    clean: Vec<u8>,
    /// Closing brackets owed, innermost last.
    closers: Vec<u8>,
    state: State,
    /// Length of `clean` before the member or element that is being read.
    anchor: usize,
    /// An escape sequence that is not complete yet.
    escape: Vec<u8>,
    /// The first half of a surrogate pair, waiting for the second.
    high_surrogate: Option<[u8; 6]>,
    /// Bytes read, to say where the text went wrong.
    offset: usize,
}

/// Why a text cannot be the arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadArguments {
    /// Where it stops being JSON, or ends too early.
    #[error("{0}")]
    NotJson(String),
    /// It is JSON of this kind.
    #[error("expected a JSON object, got {0}")]
    NotAnObject(&'static str),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing but white space so far.
    #[default]
    Start,
    /// After `{`.
    FirstKey,
    /// After `,` in an object.
    NextKey,
    InKey,
    /// Between a key and its colon.
    Colon,
    /// After `[`.
    FirstElement,
    /// After a colon, or `,` in an array.
    Value,
    InString,
    /// The word and how many of its bytes have come.
    Literal(&'static [u8], usize),
    /// Start of the number in `clean`.
    Number(usize, NumberState),
    /// After a value inside a container.
    AfterValue,
    /// The object is complete.
    Done,
    /// The text stopped being JSON at this offset; what came before stays visible.
    Broken(usize, char),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NumberState {
    Minus,
    Zero,
    Integer,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

impl PartialArguments {
    /// No text yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Feeds the next raw fragment.
    pub fn push(&mut self, fragment: &str) {
        self.raw.push_str(fragment);
        let mut rest = fragment;
        while !rest.is_empty() {
            let taken = match self.state {
                State::Broken(..) => rest.len(),
                State::InKey | State::InString => self.read_string(rest),
                _ => self.read_token(rest),
            };
            self.offset += taken;
            rest = &rest[taken..];
        }
    }

    /// The raw text so far.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// Appends a one-line JSON object for what is known so far; `{}` when nothing is.
    pub fn append_snapshot(&self, out: &mut Vec<u8>) {
        let (end, tail) = self.visible();
        if end == 0 {
            out.extend_from_slice(b"{}");
            return;
        }
        out.extend_from_slice(&self.clean[..end]);
        out.extend_from_slice(tail);
        out.extend(self.closers.iter().rev());
    }

    /// Returns the object of [`PartialArguments::append_snapshot`].
    pub fn snapshot(&self) -> Map<String, Value> {
        let mut text = Vec::new();
        self.append_snapshot(&mut text);
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// The complete arguments, or why the text is not a JSON object.
    ///
    /// Raw control characters and invalid escapes inside strings are the only
    /// faults overlooked: a text cut short may look like a valid call and must
    /// never become one.
    pub fn finish(&self) -> Result<Map<String, Value>, BadArguments> {
        let not_json = |why: String| Err(BadArguments::NotJson(why));
        match self.state {
            State::Start => Ok(Map::new()),
            State::Done => serde_json::from_slice(&self.clean).or_else(|error| not_json(error.to_string())),
            State::Broken(..) if let Some(kind) = self.other_kind() => Err(BadArguments::NotAnObject(kind)),
            State::Broken(offset, character) => not_json(format!("unexpected {character:?} at offset {offset}")),
            State::InKey | State::InString => not_json(format!("text ends inside a string at offset {}", self.offset)),
            State::FirstKey
            | State::NextKey
            | State::Colon
            | State::FirstElement
            | State::Value
            | State::Literal(..)
            | State::Number(..)
            | State::AfterValue => {
                not_json(format!("text ends at offset {} with {} open brackets", self.offset, self.closers.len()))
            }
        }
    }

    /// What the text is if it is JSON, but no object.
    fn other_kind(&self) -> Option<&'static str> {
        let kind = match self.raw.trim_ascii_start().as_bytes().first()? {
            b'[' => "array",
            b'"' => "string",
            b't' | b'f' => "boolean",
            b'n' => "null",
            b'-' | b'0'..=b'9' => "number",
            _ => return None,
        };
        serde_json::from_str::<IgnoredAny>(&self.raw).is_ok().then_some(kind)
    }

    /// How much of `clean` can be shown, and what completes the value at its end.
    fn visible(&self) -> (usize, &'static [u8]) {
        match self.state {
            State::Start | State::FirstKey | State::FirstElement | State::AfterValue | State::Done => {
                (self.clean.len(), b"")
            }
            State::NextKey | State::InKey | State::Colon | State::Value => (self.anchor, b""),
            State::InString => (self.clean.len(), b"\""),
            State::Literal(word, seen) => (self.clean.len(), &word[seen..]),
            State::Number(start, state) if self.number_is_sound(start, state) => (self.clean.len(), b""),
            State::Number(..) => (self.anchor, b""),
            State::Broken(..) => (self.clean.len(), b""),
        }
    }

    /// Whether the digits so far are a number a reader accepts.
    fn number_is_sound(&self, start: usize, state: NumberState) -> bool {
        state.is_complete() && self.clean.len() - start <= MAX_SHOWN_NUMBER && self.number_is_finite(start)
    }

    fn number_is_finite(&self, start: usize) -> bool {
        let digits = std::str::from_utf8(&self.clean[start..]).unwrap_or_default();
        digits.parse::<f64>().is_ok_and(f64::is_finite)
    }

    /// Reads one byte outside strings; returns how much of `rest` was used.
    fn read_token(&mut self, rest: &str) -> usize {
        let byte = rest.as_bytes()[0];
        if let State::Number(start, state) = self.state {
            if let Some(next) = state.after(byte) {
                self.clean.push(byte);
                self.state = State::Number(start, next);
                return 1;
            }
            if !(state.is_complete() && self.number_is_finite(start)) {
                return self.fail(rest);
            }
            // The number ended before this byte, which is read again below.
            self.state = State::AfterValue;
        }
        if let State::Literal(word, seen) = self.state {
            return self.read_literal(rest, word, seen);
        }
        if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            return 1;
        }
        match (self.state, byte) {
            (State::Start, b'{') => self.open(byte, b'}', State::FirstKey),
            (State::FirstKey | State::NextKey, b'"') => self.keep(byte, State::InKey),
            (State::Colon, b':') => self.keep(byte, State::Value),
            (State::FirstElement | State::Value, _) if byte != b']' => return self.start_value(rest),
            (State::AfterValue, b',') => {
                self.anchor = self.clean.len();
                let next = if self.closers.last() == Some(&b'}') { State::NextKey } else { State::Value };
                self.keep(byte, next);
            }
            (State::FirstKey | State::FirstElement | State::AfterValue, _) if self.closers.last() == Some(&byte) => {
                self.closers.pop();
                let next = if self.closers.is_empty() { State::Done } else { State::AfterValue };
                self.keep(byte, next);
            }
            _ => return self.fail(rest),
        }
        1
    }

    fn start_value(&mut self, rest: &str) -> usize {
        let byte = rest.as_bytes()[0];
        let next = match byte {
            b'{' | b'[' if self.closers.len() == MAX_DEPTH => return self.fail(rest),
            b'{' => {
                self.open(byte, b'}', State::FirstKey);
                return 1;
            }
            b'[' => {
                self.open(byte, b']', State::FirstElement);
                return 1;
            }
            b'"' => State::InString,
            b't' => State::Literal(b"true", 1),
            b'f' => State::Literal(b"false", 1),
            b'n' => State::Literal(b"null", 1),
            b'-' => State::Number(self.clean.len(), NumberState::Minus),
            b'0' => State::Number(self.clean.len(), NumberState::Zero),
            b'1'..=b'9' => State::Number(self.clean.len(), NumberState::Integer),
            _ => return self.fail(rest),
        };
        self.keep(byte, next);
        1
    }

    fn read_literal(&mut self, rest: &str, word: &'static [u8], seen: usize) -> usize {
        let byte = rest.as_bytes()[0];
        if word[seen] != byte {
            return self.fail(rest);
        }
        let next = if seen + 1 == word.len() { State::AfterValue } else { State::Literal(word, seen + 1) };
        self.keep(byte, next);
        1
    }

    fn open(&mut self, byte: u8, closer: u8, next: State) {
        self.keep(byte, next);
        self.closers.push(closer);
        self.anchor = self.clean.len();
    }

    fn keep(&mut self, byte: u8, next: State) {
        self.clean.push(byte);
        self.state = next;
    }

    /// Freezes what can be shown; the value being read is given up.
    fn fail(&mut self, rest: &str) -> usize {
        let end = match self.state {
            State::Literal(..) | State::Number(..) => self.anchor,
            _ => self.visible().0,
        };
        self.clean.truncate(end);
        self.state = State::Broken(self.offset, rest.chars().next().unwrap_or_default());
        rest.len()
    }
}

impl NumberState {
    fn is_complete(self) -> bool {
        matches!(self, NumberState::Zero | NumberState::Integer | NumberState::Fraction | NumberState::ExponentDigits)
    }

    fn after(self, byte: u8) -> Option<NumberState> {
        use NumberState::*;
        match (self, byte) {
            (Minus, b'0') => Some(Zero),
            (Minus, b'1'..=b'9') | (Integer, b'0'..=b'9') => Some(Integer),
            (Zero | Integer, b'.') => Some(Point),
            (Point | Fraction, b'0'..=b'9') => Some(Fraction),
            (Zero | Integer | Fraction, b'e' | b'E') => Some(Exponent),
            (Exponent, b'+' | b'-') => Some(ExponentSign),
            (Exponent | ExponentSign | ExponentDigits, b'0'..=b'9') => Some(ExponentDigits),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
