//! What a line of the host is: a command, a reply, or one of the mistakes that are answered differently.

use std::borrow::Cow;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::commands::Command;
use crate::fields::type_name;
use crate::host::HostReply;
use crate::{CommandError, ErrorCode};

/// Deeper input is refused before it can exhaust a stack.
pub const MAX_DEPTH: usize = 512;

/// What a line turned out to be.
#[derive(Debug)]
pub enum Inbound {
    /// A command with usable fields.
    Command(Id, Command),
    /// An answer to something pith asked the host; never answered itself.
    Reply(HostReply),
    /// What the first line of the host says about it. The line itself follows.
    Announced(Announcement),
    /// A well-formed object naming no command.
    Unknown { id: Id, name: String },
    /// Not a command object at all.
    Malformed { id: Id, error: CommandError },
    /// A known command with unusable fields.
    BadFields { id: Id, name: &'static str, error: CommandError },
}

/// A command's id, kept as the bytes the host wrote.
#[derive(Clone, Debug, Default)]
pub struct Id(Option<Box<RawValue>>);

impl Id {
    /// The raw JSON, if the command had an id.
    pub fn raw(&self) -> Option<&RawValue> {
        self.0.as_deref()
    }
}

/// The id of a command that another part of this program sends.
impl From<u64> for Id {
    fn from(number: u64) -> Self {
        Id(Some(RawValue::from_string(number.to_string()).expect("a number is JSON")))
    }
}

/// An object with its id kept apart, or why there is none.
pub type ReadObject = Result<(Id, Map<String, Value>), NoObject>;

/// Why a line is no JSON object.
#[derive(Debug)]
pub enum NoObject {
    /// It is no JSON, or nested too deeply; the text says where.
    Syntax(String),
    /// It is JSON of this kind.
    Other(&'static str),
}

/// Decodes one line without its newline; `None` for a blank line.
pub fn decode(line: &[u8]) -> Option<Inbound> {
    Some(match read_object(line)? {
        Ok((id, fields)) => object(id, fields),
        Err(NoObject::Syntax(why)) => malformed(Id::default(), why),
        Err(NoObject::Other(kind)) => malformed(Id::default(), format!("expected a JSON object, got {kind}")),
    })
}

/// Reads a line as an object, whose `id` is kept apart as it was written; `None` for a blank line.
pub fn read_object(line: &[u8]) -> Option<ReadObject> {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_matches([' ', '\t', '\r']);
    (!text.is_empty()).then(|| read_text(text))
}

/// What a host says about itself in its first line, whatever command that is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Announcement {
    /// `"ui":true`: it can show dialogs.
    pub shows_dialogs: bool,
    /// `"capabilities":["permission_request"]`: it takes questions about tool calls as frames of their own.
    pub takes_permission_requests: bool,
}

impl Announcement {
    /// Reads a line; most hosts announce nothing.
    pub fn read(line: &[u8]) -> Option<Announcement> {
        #[derive(serde::Deserialize)]
        struct Members {
            #[serde(default)]
            ui: Value,
            #[serde(default)]
            capabilities: Value,
        }
        // The first line may be large.
        let mentions = |key: &[u8]| line.windows(key.len()).any(|window| window == key);
        if !mentions(br#""ui""#) && !mentions(br#""capabilities""#) {
            return None;
        }
        let Members { ui, capabilities } = serde_json::from_slice(line).ok()?;
        let mut named = capabilities.as_array().into_iter().flatten();
        let announced = Announcement {
            shows_dialogs: ui == Value::Bool(true),
            takes_permission_requests: named.any(|name| name == "permission_request"),
        };
        (announced != Announcement::default()).then_some(announced)
    }
}

/// The answer to a line that was too long to be kept.
pub fn too_long(limit: usize) -> Inbound {
    malformed(Id::default(), format!("line exceeds {limit} bytes"))
}

fn read_text(text: &str) -> ReadObject {
    if nesting(text.as_bytes()) > MAX_DEPTH {
        return Err(NoObject::Syntax("JSON nested too deeply".to_owned()));
    }
    let parsed = parse(text).or_else(|error| match replace_lone_surrogates(text) {
        Cow::Owned(mended) => parse(&mended),
        Cow::Borrowed(_) => Err(error),
    });
    match parsed {
        Ok(Envelope::Object { id, fields }) => Ok((Id(id), fields)),
        Ok(Envelope::Other(kind)) => Err(NoObject::Other(kind)),
        Err(error) => Err(NoObject::Syntax(error.to_string())),
    }
}

fn object(id: Id, mut fields: Map<String, Value>) -> Inbound {
    let Some(Value::String(name)) = fields.remove("type") else {
        return malformed(id, "missing string field \"type\"");
    };
    if HostReply::NAMES.contains(&name.as_str()) {
        let id = id.raw().and_then(|raw| serde_json::from_str(raw.get()).ok());
        return Inbound::Reply(HostReply::read(&name, id, fields));
    }
    match Command::read(&name, &mut fields) {
        Some(Ok(command)) => Inbound::Command(id, command),
        Some(Err(error)) => {
            let name = Command::NAMES.iter().find(|known| **known == name).expect("only known commands have fields");
            Inbound::BadFields { id, name, error: error.into() }
        }
        None => Inbound::Unknown { id, name },
    }
}

fn malformed(id: Id, why: impl std::fmt::Display) -> Inbound {
    Inbound::Malformed { id, error: CommandError::new(ErrorCode::Parse, format!("Failed to parse command: {why}")) }
}

/// Top level of a line: the id stays raw, everything else becomes a value, and
/// of repeated keys the last one counts.
enum Envelope {
    Object { id: Option<Box<RawValue>>, fields: Map<String, Value> },
    Other(&'static str),
}

fn parse(text: &str) -> Result<Envelope, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.disable_recursion_limit(); // the depth was checked already
    let envelope = if text.starts_with('{') {
        deserializer.deserialize_map(EnvelopeVisitor)?
    } else {
        Envelope::Other(type_name(&serde::Deserialize::deserialize(&mut deserializer)?))
    };
    deserializer.end()?;
    Ok(envelope)
}

struct EnvelopeVisitor;

impl<'de> Visitor<'de> for EnvelopeVisitor {
    type Value = Envelope;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Envelope, A::Error> {
        let (mut id, mut fields) = (None, Map::new());
        while let Some(key) = access.next_key::<String>()? {
            if key == "id" {
                id = Some(access.next_value()?);
            } else {
                fields.insert(key, access.next_value()?);
            }
        }
        Ok(Envelope::Object { id, fields })
    }
}

/// Deepest nesting of arrays and objects, ignoring what stands in strings.
fn nesting(bytes: &[u8]) -> usize {
    let (mut depth, mut deepest, mut at) = (0usize, 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => at = end_of_string(bytes, at + 1),
            _ => {}
        }
        at += 1;
    }
    deepest
}

/// Index of the closing quote, or the end of the input.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at
}

/// JavaScript hosts can write half a surrogate pair; a strict parser refuses it.
fn replace_lone_surrogates(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let unit = |at: usize| -> Option<u16> {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match unit(at) {
            Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
            Some(0xD800..=0xDFFF) => {
                out.push_str(&text[copied..at]);
                out.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            Some(_) => at += 6,
            None => at += 2,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::{Prompt, StreamingBehavior};

    fn check(line: &str, expected: &str) {
        let shown = match decode(line.as_bytes()) {
            None => "blank".to_owned(),
            Some(Inbound::Command(id, command)) => {
                format!("{} {}", id.raw().map_or("-", RawValue::get), command.name())
            }
            Some(Inbound::Reply(reply)) => format!("reply {reply:?}"),
            Some(Inbound::Announced(_)) => unreachable!("a line is never only that"),
            Some(Inbound::Unknown { id, name }) => format!("{} unknown {name}", id.raw().map_or("-", RawValue::get)),
            Some(Inbound::Malformed { id, error }) => {
                format!(
                    "{} {}",
                    id.raw().map_or("-", RawValue::get),
                    error.text.replace("Failed to parse command: ", "parse: ")
                )
            }
            Some(Inbound::BadFields { id, error, .. }) => format!("{} {error}", id.raw().map_or("-", RawValue::get)),
        };
        assert_eq!(shown, expected, "{line}");
    }

    #[test]
    fn hosts_announce_themselves_at_the_top_level() {
        let check = |line: &str, shows_dialogs, takes_permission_requests| {
            let expected = Announcement { shows_dialogs, takes_permission_requests };
            assert_eq!(Announcement::read(line.as_bytes()).unwrap_or_default(), expected, "{line}");
        };
        check(r#"{"type":"get_state","ui":true}"#, true, false);
        check(r#"{"type":"get_state","ui":false}"#, false, false);
        check(r#"{"type":"prompt","message":"\"ui\":true"}"#, false, false);
        check(r#"{"type":"prompt","nested":{"ui":true}}"#, false, false);
        check(r#"{"ui":"yes"}"#, false, false);
        check(r#"{"ui":true"#, false, false);
        check(r#"{"type":"get_state","capabilities":["permission_request",3,"other"]}"#, false, true);
        check(r#"{"type":"get_state","ui":true,"capabilities":"permission_request"}"#, true, false);
    }

    #[test]
    fn lines_that_are_no_commands() {
        check("", "blank");
        check(" \t\r", "blank");
        check("[1]", "- parse: expected a JSON object, got array");
        check("null", "- parse: expected a JSON object, got null");
        check("42", "- parse: expected a JSON object, got number");
        check("\"x\"", "- parse: expected a JSON object, got string");
        check("{\"id\":7}", "7 parse: missing string field \"type\"");
        check("{\"id\":\"a\",\"type\":5}", "\"a\" parse: missing string field \"type\"");
        check("{\"id\":1,\"type\":\"dance\"}", "1 unknown dance");
        check(
            "{\"a\":\"\u{0}\"}",
            "- parse: control character (\\u0000-\\u001F) found while parsing a string at line 1 column 7",
        );
    }

    #[test]
    fn ids_keep_their_bytes() {
        check("{\"id\":1.50e3,\"type\":\"abort\"}", "1.50e3 abort");
        check("{\"id\":{\"b\":[ 1]},\"type\":\"abort\"}", "{\"b\":[ 1]} abort");
        check("{\"id\":null,\"type\":\"abort\"}", "null abort");
        check("{\"type\":\"abort\"}\r", "- abort");
        check("{\"id\":1,\"id\":2,\"type\":\"dance\",\"type\":\"abort\"}", "2 abort");
    }

    #[test]
    fn fields_are_checked_by_name() {
        check("{\"id\":1,\"type\":\"prompt\"}", "1 Missing required field \"message\" for command \"prompt\"");
        check(
            "{\"type\":\"prompt\",\"message\":3}",
            "- Invalid field \"message\" for command \"prompt\": expected string, got number",
        );
        check(
            "{\"type\":\"set_steering_mode\",\"mode\":\"bogus\"}",
            "- Invalid field \"mode\" for command \"set_steering_mode\": expected one of \"all\", \"one-at-a-time\", got \"bogus\"",
        );
        check("{\"type\":\"prompt\",\"message\":\"\",\"streamingBehavior\":null,\"extra\":[]}", "- prompt");
    }

    #[test]
    fn half_a_surrogate_pair_becomes_the_replacement_character() {
        let line = br#"{"type":"prompt","message":"a\ud800b\ud83d\ude00\\ud800","streamingBehavior":"followUp"}"#;
        let Some(Inbound::Command(_, Command::Prompt(Prompt { message, streaming_behavior, .. }))) = decode(line)
        else {
            panic!("a prompt");
        };
        assert_eq!(message, "a\u{fffd}b😀\\ud800");
        assert_eq!(streaming_behavior, Some(StreamingBehavior::FollowUp));
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| format!("{{\"type\":\"abort\",\"x\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        check(&nested(511), "- abort");
        check(&nested(512), "- parse: JSON nested too deeply");
        check(&format!("{{\"type\":\"abort\",\"x\":\"{}\"}}", "[".repeat(9999)), "- abort");
        check(&"[".repeat(1_000_000), "- parse: JSON nested too deeply");
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        let Some(Inbound::Command(_, Command::Prompt(prompt))) =
            decode(b"{\"type\":\"prompt\",\"message\":\"x\xffy\"}")
        else {
            panic!("a prompt");
        };
        assert_eq!(prompt.message, "x\u{fffd}y");
    }
}
