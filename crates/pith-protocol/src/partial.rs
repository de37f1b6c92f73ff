//! Tool-call arguments while they stream in: a valid JSON object for whatever
//! part of the text has arrived.
//!
//! The text is read once, byte by byte, into a cleaned copy; a snapshot is that
//! copy up to the last point that can be closed, plus the closing brackets. So
//! the cost of a long argument does not depend on how finely it was cut.

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

    /// Reads inside a string, up to its end or the end of `rest`.
    fn read_string(&mut self, rest: &str) -> usize {
        let bytes = rest.as_bytes();
        if !self.escape.is_empty() {
            return self.read_escape(bytes[0]);
        }
        let plain = bytes.iter().position(|&byte| is_special(byte)).unwrap_or(bytes.len());
        if plain > 0 {
            self.settle_surrogate();
            self.clean.extend_from_slice(&bytes[..plain]);
            return plain;
        }
        if bytes[0] == b'\\' {
            self.escape.push(b'\\');
            return 1;
        }
        self.settle_surrogate();
        match bytes {
            [b'"', ..] => {
                let next = if self.state == State::InKey { State::Colon } else { State::AfterValue };
                self.keep(b'"', next);
                1
            }
            [0xC2, 0x85, ..] => self.replace(b"\\u0085", 2),
            [0xE2, 0x80, 0xA8, ..] => self.replace(b"\\u2028", 3),
            [0xE2, 0x80, 0xA9, ..] => self.replace(b"\\u2029", 3),
            [byte @ ..0x20, ..] => {
                let hex = |digit: u8| b"0123456789abcdef"[usize::from(digit)];
                self.replace(&[b'\\', b'u', b'0', b'0', hex(byte >> 4), hex(byte & 15)], 1)
            }
            // An ordinary character that shares its first byte with one of the above.
            _ => {
                let taken = if bytes[0] == 0xC2 { 2 } else { 3 };
                self.replace(&bytes[..taken], taken)
            }
        }
    }

    fn replace(&mut self, escaped: &[u8], taken: usize) -> usize {
        self.clean.extend_from_slice(escaped);
        taken
    }

    /// Reads one byte of an escape sequence. A byte that spoils the sequence is not used up.
    fn read_escape(&mut self, byte: u8) -> usize {
        let valid = match self.escape.len() {
            1 => matches!(byte, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' | b'u'),
            _ => byte.is_ascii_hexdigit(),
        };
        if !valid {
            // Not an escape after all: the backslash stands for itself.
            self.settle_surrogate();
            self.clean.push(b'\\');
            self.clean.append(&mut self.escape);
            return 0;
        }
        self.escape.push(byte);
        match self.escape[..] {
            [b'\\', b'u', a, b, c, d] => self.end_unicode_escape([b'\\', b'u', a, b, c, d]),
            [b'\\', b'u', ..] => {}
            _ => {
                self.settle_surrogate();
                self.clean.append(&mut self.escape);
            }
        }
        1
    }

    fn end_unicode_escape(&mut self, sequence: [u8; 6]) {
        self.escape.clear();
        let is_surrogate = sequence[2].eq_ignore_ascii_case(&b'd');
        match sequence[3].to_ascii_lowercase() {
            b'8' | b'9' | b'a' | b'b' if is_surrogate => {
                self.settle_surrogate();
                self.high_surrogate = Some(sequence);
            }
            b'c'..=b'f' if is_surrogate => match self.high_surrogate.take() {
                Some(high) => {
                    self.clean.extend_from_slice(&high);
                    self.clean.extend_from_slice(&sequence);
                }
                None => self.clean.extend_from_slice(b"\\ufffd"),
            },
            _ => {
                self.settle_surrogate();
                self.clean.extend_from_slice(&sequence);
            }
        }
    }

    /// Half a pair that stays alone cannot be represented; it becomes U+FFFD.
    fn settle_surrogate(&mut self) {
        if self.high_surrogate.take().is_some() {
            self.clean.extend_from_slice(b"\\ufffd");
        }
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

/// Bytes of a string that may not simply be copied.
fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | ..0x20 | 0xC2 | 0xE2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn arguments(pieces: &[&str]) -> PartialArguments {
        let mut arguments = PartialArguments::new();
        pieces.iter().for_each(|piece| arguments.push(piece));
        arguments
    }

    fn snapshot(arguments: &PartialArguments) -> String {
        let mut out = Vec::new();
        arguments.append_snapshot(&mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    /// Checks the snapshot of `text` fed whole and character by character.
    fn check(text: &str, expected: &str) {
        assert_eq!(snapshot(&arguments(&[text])), expected, "whole: {text:?}");
        let mut single = PartialArguments::new();
        for character in text.chars() {
            single.push(character.encode_utf8(&mut [0; 4]));
        }
        assert_eq!(snapshot(&single), expected, "in single characters: {text:?}");
        assert_eq!(single.raw(), text);
        serde_json::from_str::<Map<String, Value>>(expected).expect("an object");
    }

    #[test]
    fn open_text_is_closed() {
        check(r#"{"a": "x"#, r#"{"a":"x"}"#);
        check(r#"{"a": [1, 2"#, r#"{"a":[1,2]}"#);
        check(r#"{"a": [1, {"b": [[]"#, r#"{"a":[1,{"b":[[]]}]}"#);
        check(r#"{"a": tr"#, r#"{"a":true}"#);
        check(r#"{"a": fal"#, r#"{"a":false}"#);
        check(r#"{"a": nul"#, r#"{"a":null}"#);
        check(r#"{"a":"", "b": [ ], "c": { } , "d":-0.5e+3 }"#, r#"{"a":"","b":[],"c":{},"d":-0.5e+3}"#);
    }

    #[test]
    fn what_is_not_known_yet_is_left_out() {
        check("", "{}");
        check(" \n", "{}");
        check("{", "{}");
        check(r#"{"a"#, "{}");
        check(r#"{"a":"#, "{}");
        check(r#"{"a": 1."#, "{}");
        check(r#"{"a": -"#, "{}");
        check(r#"{"a": 1e"#, "{}");
        check(r#"{"x":1, "a": -"#, r#"{"x":1}"#);
        check(r#"{"x":[1, -"#, r#"{"x":[1]}"#);
        check(r#"{"x":{"y":"z"}, "a"#, r#"{"x":{"y":"z"}}"#);
        check(r#"{"path": "a\"#, r#"{"path":"a"}"#);
        check(r#"{"a":"\u00"#, r#"{"a":""}"#);
        check("{\"a\":\"\\ud83d", r#"{"a":""}"#);
    }

    #[test]
    fn faulty_strings_are_repaired() {
        check(r#"{"a":"C:\q"}"#, r#"{"a":"C:\\q"}"#);
        check(r#"{"a":"\u00g"}"#, r#"{"a":"\\u00g"}"#);
        check(r#"{"a":"\u00""#, r#"{"a":"\\u00"}"#);
        check("{\"a\":\"x\ny\u{1}\"", "{\"a\":\"x\\u000ay\\u0001\"}");
        check("{\"a\":\"\u{2028}é\u{2029}€\u{85}â\"}", "{\"a\":\"\\u2028é\\u2029€\\u0085â\"}");
    }

    #[test]
    fn half_a_surrogate_pair_becomes_the_replacement_character() {
        check(r#"{"a":"\ud83d\ude00"}"#, r#"{"a":"\ud83d\ude00"}"#);
        check(r#"{"a":"\ud83dx"}"#, r#"{"a":"\ufffdx"}"#);
        check(r#"{"a":"\ude00"}"#, r#"{"a":"\ufffd"}"#);
        check(r#"{"a":"\ud83d\ud83d\n"}"#, r#"{"a":"\ufffd\ufffd\n"}"#);
        check(r#"{"\ud83d":"\ud83d\q"}"#, r#"{"\ufffd":"\ufffd\\q"}"#);
        check(r#"{"a":"\uD83D\u0041"}"#, r#"{"a":"\ufffd\u0041"}"#);
    }

    #[test]
    fn text_that_is_not_json_shows_what_came_before() {
        check("garbage", "{}");
        check("[1]", "{}");
        check("null", "{}");
        check(r#"{"a":1 oops"#, r#"{"a":1}"#);
        check(r#"{"a":1,"b":truX"#, r#"{"a":1}"#);
        check(r#"{"a":1,"b":01}"#, r#"{"a":1,"b":0}"#);
        check(r#"{"a":1]"#, r#"{"a":1}"#);
        check(r#"{"a":[1}"#, r#"{"a":[1]}"#);
        check(r#"{"a":1,}"#, r#"{"a":1}"#);
        check(r#"{"a":1} {"b":2}"#, r#"{"a":1}"#);
        check(r#"{"a":1,"b":1e999}"#, r#"{"a":1}"#);
    }

    #[test]
    fn depth_is_bounded() {
        let deep = "{\"a\":".to_owned() + &"[".repeat(100_000);
        let shown = snapshot(&arguments(&[&deep]));
        assert!(serde_json::from_str::<Map<String, Value>>(&shown).is_ok());
        assert_eq!(shown.matches('[').count(), MAX_DEPTH - 1);
        assert!(arguments(&[&deep]).finish().is_err());
    }

    #[test]
    fn only_complete_objects_can_be_called_with() {
        let good = |text: &str| Value::Object(arguments(&[text]).finish().expect(text));
        assert_eq!(good(" "), serde_json::json!({}));
        assert_eq!(good("{\"a\":\"x\ny\\q\"} \n"), serde_json::json!({"a": "x\ny\\q"}));
        let bad = |text: &str| arguments(&[text]).finish().expect_err(text).to_string();
        assert_eq!(bad(r#"{"command":"echo hello wor"#), "text ends inside a string at offset 26");
        assert_eq!(bad(r#"{"a":[1"#), "text ends at offset 7 with 2 open brackets");
        assert_eq!(bad(r#"{"a":1} x"#), "unexpected 'x' at offset 8");
        assert_eq!(bad("[1"), "unexpected '[' at offset 0");
        assert_eq!(bad("{\"a\":é}"), "unexpected 'é' at offset 5");
    }

    #[test]
    fn json_that_is_no_object_is_called_by_its_kind() {
        let check = |text: &str, kind| {
            assert_eq!(arguments(&[text]).finish(), Err(BadArguments::NotAnObject(kind)), "{text}");
        };
        check(" [1] ", "array");
        check(r#""{\"a\":1}""#, "string");
        check("-1.5e3", "number");
        check("true", "boolean");
        check("null", "null");
    }

    #[test]
    fn a_mebibyte_in_single_bytes_is_quick() {
        let text = format!("{{\"content\":\"{}\"}}", "abc\\n".repeat(1 << 18));
        let started = std::time::Instant::now();
        let mut arguments = PartialArguments::new();
        for at in 0..text.len() {
            arguments.push(&text[at..=at]);
        }
        assert_eq!(arguments.finish().expect("complete")["content"].as_str().map(str::len), Some(1 << 20));
        assert!(started.elapsed().as_secs_f32() < 1.0, "{:?}", started.elapsed());
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            prop::num::f64::NORMAL.prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn object() -> impl Strategy<Value = Map<String, Value>> {
        prop::collection::vec((any::<String>(), value()), 0..5).prop_map(|members| members.into_iter().collect())
    }

    /// Feeds `text` in pieces of the given sizes, looking at every snapshot.
    fn feed(text: &str, sizes: &[usize]) -> PartialArguments {
        let mut arguments = PartialArguments::new();
        let (mut rest, mut sizes) = (text, sizes.iter().cycle());
        while !rest.is_empty() {
            let mut cut = rest.len().min(*sizes.next().unwrap_or(&1));
            while !rest.is_char_boundary(cut) {
                cut += 1;
            }
            let (piece, tail) = rest.split_at(cut);
            arguments.push(piece);
            rest = tail;
            let shown = snapshot(&arguments);
            assert!(serde_json::from_str::<Map<String, Value>>(&shown).is_ok(), "{shown}");
            assert!(!shown.contains(['\n', '\r', '\u{2028}', '\u{2029}', '\u{85}']), "{shown}");
        }
        arguments
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn every_prefix_is_an_object_and_the_whole_is_equal(
            object in object(), pretty in any::<bool>(), sizes in prop::collection::vec(1usize..9, 1..8)
        ) {
            let text = if pretty { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) };
            let text = text.expect("serializes");
            let parsed: Map<String, Value> = serde_json::from_str(&text).expect("parses");
            let arguments = feed(&text, &sizes);
            let shown: Map<String, Value> = serde_json::from_str(&snapshot(&arguments)).expect("an object");
            prop_assert_eq!(&shown, &parsed);
            prop_assert_eq!(arguments.finish(), Ok(parsed));
        }

        #[test]
        fn anything_at_all_gives_an_object(
            text in r#"(\{"a":)?([\{\}\[\]":,\\ut0-9eE.nr\-\n \u{2028}é]|\\ud83d|\\udc00|true|null|"a":){0,60}"#,
            sizes in prop::collection::vec(1usize..9, 1..8)
        ) {
            let arguments = feed(&text, &sizes);
            if let Ok(object) = arguments.finish() {
                prop_assert_eq!(serde_json::from_str::<Map<String, Value>>(&snapshot(&arguments)).expect("object"), object);
            }
        }
    }
}
