//! What the index needs to know of a line, read without building the rest.

use std::borrow::Cow;

use serde::de::{MapAccess, SeqAccess};

use crate::lenient::{Lenient, LenientRead, Number, Text, mend, next_name, skip, value};
use crate::time;

/// The members of a line that matter before anyone asks for its content.
#[derive(Default)]
pub(crate) struct Sketch<'a> {
    pub kind: Option<Cow<'a, str>>,
    pub id: Option<Cow<'a, str>>,
    pub parent: Parent<'a>,
    pub timestamp: Option<i64>,
    pub version: Option<f64>,
    pub cwd: Option<Cow<'a, str>>,
    pub parent_session: Option<Cow<'a, str>>,
    pub name: Option<Cow<'a, str>>,
    pub target: Option<Cow<'a, str>>,
    pub label: Option<Cow<'a, str>>,
    pub provider: Option<Cow<'a, str>>,
    pub model_id: Option<Cow<'a, str>>,
    pub thinking_level: Option<Cow<'a, str>>,
    pub first_kept: Option<Cow<'a, str>>,
    pub usage: UsageSketch,
    pub message: MessageSketch<'a>,
}

/// What a line says about the entry before it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Parent<'a> {
    /// Nothing, or nothing that makes sense.
    #[default]
    Unknown,
    /// The entry has no parent.
    Root,
    Id(Cow<'a, str>),
}

impl<'de> LenientRead<'de> for Parent<'de> {
    fn text(text: Cow<'de, str>) -> Self {
        Parent::Id(text)
    }

    fn null() -> Self {
        Parent::Root
    }
}

/// The part of a `message` that matters.
#[derive(Default)]
pub(crate) struct MessageSketch<'a> {
    pub role: Option<Cow<'a, str>>,
    pub provider: Option<Cow<'a, str>>,
    pub model: Option<Cow<'a, str>>,
    pub tool_name: Option<Cow<'a, str>>,
    pub timestamp: Option<f64>,
    pub n_tool_calls: u64,
    pub usage: UsageSketch,
}

/// The numbers of a `usage` that are summed up.
#[derive(Default)]
pub(crate) struct UsageSketch {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub cost: f64,
}

impl<'a> Sketch<'a> {
    /// Reads a line; `scratch` holds the mended copy when the line needs one.
    /// `None`: the line is not a JSON object.
    pub fn read(line: &'a [u8], scratch: &'a mut Vec<u8>) -> Option<Self> {
        if line.trim_ascii_start().first() != Some(&b'{') {
            return None;
        }
        if let Ok(Lenient(sketch)) = serde_json::from_slice(line) {
            return Some(sketch);
        }
        *scratch = mend(line)?;
        serde_json::from_slice(scratch).ok().map(|Lenient(sketch)| sketch)
    }

    pub fn is_header(&self) -> bool {
        self.kind.as_deref() == Some("session")
    }
}

impl<'de> LenientRead<'de> for Sketch<'de> {
    fn object<A: MapAccess<'de>>(mut object: A) -> Result<Self, A::Error> {
        let mut sketch = Sketch::default();
        while let Some(name) = next_name(&mut object)? {
            let text = match &*name {
                "type" => &mut sketch.kind,
                "id" => &mut sketch.id,
                "cwd" => &mut sketch.cwd,
                "parentSession" => &mut sketch.parent_session,
                "name" => &mut sketch.name,
                "targetId" => &mut sketch.target,
                "label" => &mut sketch.label,
                "provider" => &mut sketch.provider,
                "modelId" => &mut sketch.model_id,
                "thinkingLevel" => &mut sketch.thinking_level,
                "firstKeptEntryId" => &mut sketch.first_kept,
                other => {
                    sketch.other(other, &mut object)?;
                    continue;
                }
            };
            *text = value::<Text, _>(&mut object)?.0;
        }
        Ok(sketch)
    }
}

impl<'de> Sketch<'de> {
    fn other<A: MapAccess<'de>>(&mut self, name: &str, object: &mut A) -> Result<(), A::Error> {
        match name {
            "parentId" => self.parent = value(object)?,
            "timestamp" => self.timestamp = value::<Text, _>(object)?.0.and_then(|text| time::from_iso(&text)),
            "version" => self.version = value::<Number, _>(object)?.0,
            "usage" => self.usage = value(object)?,
            "message" => self.message = value(object)?,
            _ => skip(object)?,
        }
        Ok(())
    }
}

impl<'de> LenientRead<'de> for MessageSketch<'de> {
    fn object<A: MapAccess<'de>>(mut object: A) -> Result<Self, A::Error> {
        let mut sketch = MessageSketch::default();
        while let Some(name) = next_name(&mut object)? {
            match &*name {
                "role" => sketch.role = value::<Text, _>(&mut object)?.0,
                "provider" => sketch.provider = value::<Text, _>(&mut object)?.0,
                "model" => sketch.model = value::<Text, _>(&mut object)?.0,
                "toolName" => sketch.tool_name = value::<Text, _>(&mut object)?.0,
                "timestamp" => sketch.timestamp = value::<Number, _>(&mut object)?.0,
                "content" => sketch.n_tool_calls = value::<ToolCalls, _>(&mut object)?.0,
                "usage" => sketch.usage = value(&mut object)?,
                _ => skip(&mut object)?,
            }
        }
        Ok(sketch)
    }
}

/// Counts the tool-call blocks of a content list.
#[derive(Default)]
struct ToolCalls(u64);

impl<'de> LenientRead<'de> for ToolCalls {
    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut n_calls = 0;
        while let Some(Lenient(IsToolCall(is_call))) = list.next_element()? {
            n_calls += u64::from(is_call);
        }
        Ok(ToolCalls(n_calls))
    }
}

#[derive(Default)]
struct IsToolCall(bool);

impl<'de> LenientRead<'de> for IsToolCall {
    fn object<A: MapAccess<'de>>(mut object: A) -> Result<Self, A::Error> {
        let mut is_call = false;
        while let Some(name) = next_name(&mut object)? {
            match &*name {
                "type" => is_call = value::<Text, _>(&mut object)?.0.as_deref() == Some("toolCall"),
                _ => skip(&mut object)?,
            }
        }
        Ok(IsToolCall(is_call))
    }
}

impl<'de> LenientRead<'de> for UsageSketch {
    fn object<A: MapAccess<'de>>(mut object: A) -> Result<Self, A::Error> {
        let mut sketch = UsageSketch::default();
        while let Some(name) = next_name(&mut object)? {
            let count = match &*name {
                "input" => &mut sketch.input,
                "output" => &mut sketch.output,
                "cacheRead" => &mut sketch.cache_read,
                "cacheWrite" => &mut sketch.cache_write,
                "cost" => {
                    sketch.cost = value::<Total, _>(&mut object)?.0;
                    continue;
                }
                _ => {
                    skip(&mut object)?;
                    continue;
                }
            };
            // Saturates: negative and absurd counts of a damaged file become harmless.
            *count = value::<Number, _>(&mut object)?.0.unwrap_or_default() as u64;
        }
        Ok(sketch)
    }
}

/// `cost.total`.
#[derive(Default)]
struct Total(f64);

impl<'de> LenientRead<'de> for Total {
    fn object<A: MapAccess<'de>>(mut object: A) -> Result<Self, A::Error> {
        let mut total = 0.0;
        while let Some(name) = next_name(&mut object)? {
            match &*name {
                "total" => total = value::<Number, _>(&mut object)?.0.unwrap_or_default(),
                _ => skip(&mut object)?,
            }
        }
        Ok(Total(total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_the_wrong_type_cost_only_themselves() {
        let mut scratch = Vec::new();
        let line =
            br#"{"type":"message","id":"a","parentId":7,"timestamp":[],"usage":"none","message":{"role":"assistant",
            "content":[1,{"type":"toolCall"},{"type":{}}],"usage":{"input":-3,"output":2.0,"cost":{"total":"x"}}}}"#;
        let sketch = Sketch::read(line, &mut scratch).unwrap();
        assert_eq!((sketch.id.as_deref(), sketch.parent, sketch.timestamp), (Some("a"), Parent::Unknown, None));
        assert_eq!((sketch.message.n_tool_calls, sketch.message.usage.input, sketch.message.usage.output), (1, 0, 2));
    }

    #[test]
    fn the_last_of_repeated_members_counts() {
        let mut scratch = Vec::new();
        let sketch = Sketch::read(br#"{"id":"a","id":"b","t\u0079pe":"x"}"#, &mut scratch).unwrap();
        assert_eq!((sketch.id.as_deref(), sketch.kind.as_deref()), (Some("b"), Some("x")));
    }

    #[test]
    fn lines_that_are_no_objects() {
        for line in ["", "null", "[{}]", "{", "{}}", "{\"id\":}", "\"{}\""] {
            assert!(Sketch::read(line.as_bytes(), &mut Vec::new()).is_none(), "{line}");
        }
        assert!(Sketch::read(br#"{"id":"\ud83d"}"#, &mut Vec::new()).is_some());
    }
}
