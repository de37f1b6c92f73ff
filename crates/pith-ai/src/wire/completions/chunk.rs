//! The shapes of stream chunks, borrowed from the event and forgiving about
//! what the many servers put into them.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::wire::common::{Bill, Count, First, Text};

#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub model: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub choices: First<Choice<'a>>,
    #[serde(default)]
    pub usage: Option<Counts>,
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(borrow, default)]
    pub delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub finish_reason: Option<Text<'a>>,
    #[serde(default)]
    pub usage: Option<Counts>,
}

#[derive(Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub content: Content<'a>,
    #[serde(borrow, default)]
    pub reasoning_content: Content<'a>,
    #[serde(borrow, default)]
    pub reasoning: Content<'a>,
    #[serde(borrow, default)]
    pub reasoning_text: Content<'a>,
    #[serde(borrow, default)]
    pub thinking: Content<'a>,
    #[serde(default)]
    pub reasoning_details: Option<Vec<Map<String, Value>>>,
    #[serde(borrow, default)]
    pub tool_calls: Option<Vec<Call<'a>>>,
}

#[derive(Deserialize)]
pub(super) struct Call<'a> {
    #[serde(default)]
    pub index: Count,
    #[serde(borrow, default)]
    pub id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub function: Option<Function<'a>>,
}

#[derive(Default, Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow, default)]
    pub name: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub arguments: Arguments<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Counts {
    pub prompt_tokens: Count,
    pub completion_tokens: Count,
    pub prompt_tokens_details: Option<PromptDetails>,
    pub completion_tokens_details: Option<CompletionDetails>,
    pub prompt_cache_hit_tokens: Count,
    pub cached_tokens: Count,
    #[serde(flatten)]
    pub bill: Bill,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct PromptDetails {
    pub cached_tokens: Count,
    pub cache_write_tokens: Count,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct CompletionDetails {
    pub reasoning_tokens: Count,
}

/// Streamed text: a string, a list of typed parts, or something to be ignored.
#[derive(Default)]
pub(super) enum Content<'a> {
    #[default]
    Nothing,
    Text(Cow<'a, str>),
    /// Whether a part is thinking, and its text.
    Parts(Vec<(bool, String)>),
}

impl<'a> Content<'a> {
    /// Returns the text, if it is one and not empty.
    pub(super) fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Content::Text(text) if !text.is_empty() => Some(text),
            Content::Text(_) | Content::Parts(_) | Content::Nothing => None,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("streamed text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Content<'de>, E> {
        Ok(Content::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Content<'de>, E> {
        Ok(Content::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<Content<'de>, E> {
        Ok(Content::Text(Cow::Owned(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Content<'de>, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = list.next_element::<Value>()? {
            parts.extend(typed_part(&part));
        }
        Ok(Content::Parts(parts))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Content::Nothing)
    }

    fn visit_unit<E>(self) -> Result<Content<'de>, E> {
        Ok(Content::Nothing)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Content<'de>, E> {
        Ok(Content::Nothing)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Content<'de>, E> {
        Ok(Content::Nothing)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Content<'de>, E> {
        Ok(Content::Nothing)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Content<'de>, E> {
        Ok(Content::Nothing)
    }
}

/// Reads `{type:"text", text}` or `{type:"thinking", thinking:[{text}]}`.
fn typed_part(part: &Value) -> Option<(bool, String)> {
    match part["type"].as_str() {
        Some("thinking") => match &part["thinking"] {
            Value::String(text) => Some((true, text.clone())),
            Value::Array(parts) => Some((true, parts.iter().filter_map(|part| part["text"].as_str()).collect())),
            _ => None,
        },
        _ => Some((false, part["text"].as_str()?.to_owned())),
    }
}

/// Argument text; some servers send the object itself.
#[derive(Default)]
pub(super) struct Arguments<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Arguments<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Arguments<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("argument text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Arguments<'de>, E> {
                Ok(Arguments(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Arguments<'de>, E> {
                Ok(Arguments(Cow::Owned(text.to_owned())))
            }

            fn visit_unit<E>(self) -> Result<Arguments<'de>, E> {
                Ok(Arguments::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Arguments<'de>, A::Error> {
                let object = Map::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(Arguments(Cow::Owned(Value::Object(object).to_string())))
            }
        }
        deserializer.deserialize_any(Any)
    }
}
