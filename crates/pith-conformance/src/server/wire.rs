//! Encodes answers, one module per wire format.

mod anthropic;
mod completions;
mod google;
mod responses;

use serde_json::{Value, json};

use super::script::{Fault, Turn};

/// A wire format, and its provider in a test home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    Anthropic,
    Completions,
    Responses,
    Google,
}

impl Api {
    /// Every format.
    pub const ALL: [Api; 4] = [Api::Anthropic, Api::Completions, Api::Responses, Api::Google];

    /// The name of the format in `models.json`.
    pub fn name(self) -> &'static str {
        match self {
            Api::Anthropic => "anthropic-messages",
            Api::Completions => "openai-completions",
            Api::Responses => "openai-responses",
            Api::Google => "google-generative-ai",
        }
    }

    /// A short name.
    pub fn label(self) -> &'static str {
        match self {
            Api::Anthropic => "anthropic",
            Api::Completions => "completions",
            Api::Responses => "responses",
            Api::Google => "google",
        }
    }

    /// The provider of a test home.
    pub fn provider(self) -> &'static str {
        match self {
            Api::Anthropic => "mock-anthropic",
            Api::Completions => "mock-openai",
            Api::Responses => "mock-responses",
            Api::Google => "mock-google",
        }
    }

    /// The reasoning model of that provider.
    pub fn model(self) -> &'static str {
        match self {
            Api::Anthropic => "claude-mock",
            Api::Completions => "gpt-mock",
            Api::Responses => "gpt-mock-r",
            Api::Google => "gemini-mock",
        }
    }

    /// The path that clients of the format expect in the base URL.
    pub fn base_path(self) -> &'static str {
        match self {
            Api::Anthropic => "",
            Api::Completions | Api::Responses => "/v1",
            Api::Google => "/v1beta",
        }
    }

    /// The format of a request path.
    pub(super) fn of_path(path: &str) -> Option<Api> {
        Some(match path {
            _ if path.ends_with("/messages") => Api::Anthropic,
            _ if path.ends_with("/chat/completions") => Api::Completions,
            _ if path.ends_with("/responses") => Api::Responses,
            _ if path.ends_with(":streamGenerateContent") => Api::Google,
            _ => return None,
        })
    }
}

/// One server-sent event.
pub(super) struct Event {
    pub bytes: Vec<u8>,
    /// Whether it carries text, reasoning or arguments; `after` and `hold_after` count these.
    pub is_delta: bool,
}

impl Event {
    /// An event with its name in front, as Anthropic and the Responses API write it.
    fn named(name: &str, data: &Value) -> Self {
        Event { bytes: format!("event: {name}\ndata: {data}\n\n").into_bytes(), is_delta: false }
    }

    /// An event without a name.
    fn plain(data: &Value) -> Self {
        Event { bytes: format!("data: {data}\n\n").into_bytes(), is_delta: false }
    }

    fn delta(mut self) -> Self {
        self.is_delta = true;
        self
    }
}

/// A whole answer in HTTP chunks, faults applied, ready to be written.
#[derive(Debug)]
pub(super) struct Rendered {
    pub bytes: Vec<u8>,
    /// The end of each event in `bytes`, and whether it is a delta.
    pub events: Vec<(usize, bool)>,
}

impl Rendered {
    pub(super) fn new(turn: &Turn, api: Api) -> Self {
        let mut events = match api {
            Api::Anthropic => anthropic::events(turn),
            Api::Completions => completions::events(turn),
            Api::Responses => responses::events(turn),
            Api::Google => google::events(turn),
        };
        match &turn.fault {
            Some(Fault::Badjson { after }) => {
                let broken = b"data: {\"type\": \"broken\", oops\n\n".to_vec();
                events.insert(cut(&events, *after), Event { bytes: broken, is_delta: false });
            }
            Some(Fault::ErrorEvent { after, error }) => {
                events.truncate(cut(&events, *after));
                events.push(error_event(api, error));
            }
            Some(
                Fault::Reset { after } | Fault::Cut { after } | Fault::Truncate { after } | Fault::Hang { after, .. },
            ) => {
                events.truncate(cut(&events, *after));
            }
            Some(Fault::Http { .. }) | None => {}
        }
        Rendered::framed(&events)
    }

    fn framed(events: &[Event]) -> Self {
        let mut rendered = Rendered { bytes: Vec::new(), events: Vec::with_capacity(events.len()) };
        for event in events {
            rendered.bytes.extend_from_slice(format!("{:x}\r\n", event.bytes.len()).as_bytes());
            rendered.bytes.extend_from_slice(&event.bytes);
            rendered.bytes.extend_from_slice(b"\r\n");
            rendered.events.push((rendered.bytes.len(), event.is_delta));
        }
        rendered
    }
}

/// The index of the event after that many deltas.
fn cut(events: &[Event], after: usize) -> usize {
    let deltas = events.iter().enumerate().filter(|(_, event)| event.is_delta);
    deltas.map(|(index, _)| index).nth(after).unwrap_or(events.len())
}

fn error_event(api: Api, error: &Value) -> Event {
    match api {
        Api::Anthropic => Event::named("error", &json!({"type": "error", "error": error})),
        Api::Responses => Event::plain(&json!({"type": "error", "code": error["type"], "message": error["message"]})),
        Api::Completions | Api::Google => Event::plain(&json!({"error": error})),
    }
}

/// Splits the text into pieces of `size` characters; an empty text is one empty piece.
fn pieces(text: &str, size: usize) -> Vec<&str> {
    let mut pieces = Vec::with_capacity(text.len() / size.max(1) + 1);
    let mut rest = text;
    while let Some((end, _)) = rest.char_indices().nth(size.max(1)) {
        let (piece, tail) = rest.split_at(end);
        pieces.push(piece);
        rest = tail;
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_never_split_a_character() {
        assert_eq!(pieces("", 2), [""]);
        assert_eq!(pieces("ab", 2), ["ab"]);
        assert_eq!(pieces("aéü漢b", 2), ["aé", "ü漢", "b"]);
    }

    #[test]
    fn faults_count_deltas() {
        let deltas = |fault: Value| {
            let turn: Turn =
                serde_json::from_value(json!({"text": "abcdef", "chunk": 2, "fault": fault})).expect("a turn");
            let rendered = Rendered::new(&turn, Api::Anthropic);
            (rendered.events.iter().filter(|(_, is_delta)| *is_delta).count(), rendered.bytes)
        };
        assert_eq!(deltas(json!(null)).0, 3);
        assert_eq!(deltas(json!({"kind": "cut", "after": 2})).0, 2);
        assert_eq!(deltas(json!({"kind": "hang"})).0, 0);
        let (count, bytes) = deltas(json!({"kind": "badjson", "after": 1}));
        assert_eq!(count, 3);
        assert!(String::from_utf8(bytes).expect("text").contains("oops"));
        let (count, bytes) = deltas(json!({"kind": "error_event", "after": 1}));
        assert_eq!(count, 1);
        assert!(bytes.ends_with(b"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n\r\n"));
    }
}
