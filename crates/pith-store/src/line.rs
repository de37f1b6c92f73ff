//! Building and rewriting the lines of a session file.
//!
//! A new line starts with `type`, `id`, `parentId` and `timestamp`, so that its
//! first bytes identify it. A line that came from a file is only ever changed
//! member by member: whatever pith does not know keeps its exact bytes.

use std::borrow::Cow;
use std::fmt;

use pith_protocol::json;
use serde::Serialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::lenient::mend;
use crate::time;

/// A JSON object under construction; complete once [`Line::finish`] has closed it.
pub(crate) struct Line(Vec<u8>);

impl Line {
    /// Makes an entry with the members every entry has.
    pub fn entry(kind: &str, id: &str, parent: Option<&str>, timestamp: i64) -> Self {
        Line::start(kind).member("id", id).member("parentId", &parent).member("timestamp", &time::to_iso(timestamp))
    }

    /// Makes a bare object with its `type`.
    pub fn start(kind: &str) -> Self {
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(b"{\"type\":");
        json::append(&mut out, kind);
        Line(out)
    }

    pub fn member<T: Serialize + ?Sized>(mut self, name: &str, value: &T) -> Self {
        self.0.push(b',');
        json::append(&mut self.0, name);
        self.0.push(b':');
        json::append(&mut self.0, value);
        self
    }

    /// Members without value are left out.
    pub fn optional<T: Serialize>(self, name: &str, value: &Option<T>) -> Self {
        match value {
            Some(value) => self.member(name, value),
            None => self,
        }
    }

    /// Returns the line with its newline.
    pub fn finish(mut self) -> Vec<u8> {
        self.0.extend_from_slice(b"}\n");
        self.0
    }
}

/// The members of an object in order, values as their exact text.
pub(crate) struct Members<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Members<'a> {
    /// Splits a line; `scratch` holds the mended copy when the line needs one.
    pub fn read(line: &'a [u8], scratch: &'a mut Vec<u8>) -> Option<Self> {
        if let Ok(members) = Members::of(line) {
            return Some(members);
        }
        *scratch = mend(line)?;
        Members::of(scratch).ok()
    }

    /// Splits an object; fails if it is not one, in UTF-8.
    pub fn of(line: &'a [u8]) -> serde_json::Result<Self> {
        let mut deserializer = serde_json::Deserializer::from_slice(line);
        let members = deserializer.deserialize_map(MembersVisitor)?;
        deserializer.end()?;
        Ok(members)
    }

    /// Returns the last value of that name, as JSON parsers see it.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// Returns the last value of that name, if it is a string.
    pub fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.get(name)?).ok()
    }

    /// Replaces a member in place, or adds it behind the others.
    pub fn set<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        let value = Cow::Owned(json::to_string(value));
        let last = self.0.iter().rposition(|(key, _)| key == name);
        match last {
            Some(at) => self.0[at].1 = value,
            None => self.0.push((Cow::Owned(name.to_owned()), value)),
        }
    }

    /// Moves or adds a member to the given position.
    pub fn set_at<T: Serialize + ?Sized>(&mut self, position: usize, name: &str, value: &T) {
        self.remove(name);
        let value = Cow::Owned(json::to_string(value));
        self.0.insert(position.min(self.0.len()), (Cow::Owned(name.to_owned()), value));
    }

    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| key != name);
    }

    /// Returns the object as one line with its newline.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = self.to_json().into_bytes();
        line.push(b'\n');
        line
    }

    /// Returns the object as JSON.
    pub fn to_json(&self) -> String {
        let mut out = String::with_capacity(self.0.iter().map(|(key, value)| key.len() + value.len() + 6).sum());
        for (position, (key, value)) in self.0.iter().enumerate() {
            out.push(if position == 0 { '{' } else { ',' });
            out.push_str(&json::to_string(&**key));
            out.push(':');
            out.push_str(value);
        }
        out.push_str(if self.0.is_empty() { "{}" } else { "}" });
        out
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::with_capacity(8);
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value::<&'de RawValue>()?;
            members.push((Cow::Owned(key), Cow::Borrowed(value.get())));
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifying_members_come_first() {
        let line = Line::entry("model_change", "8b73ce37", None, 1794725575021).member("provider", "mock").finish();
        assert_eq!(
            String::from_utf8(line).unwrap(),
            "{\"type\":\"model_change\",\"id\":\"8b73ce37\",\"parentId\":null,\
             \"timestamp\":\"2026-11-15T06:52:55.021Z\",\"provider\":\"mock\"}\n"
        );
    }

    #[test]
    fn unknown_members_keep_their_bytes() {
        let check = |line: &str, expected: &str| {
            let mut members = Members::of(line.as_bytes()).unwrap();
            members.set("parentId", "p");
            assert_eq!(members.to_line(), format!("{expected}\n").as_bytes());
        };
        check(r#"{"parentId":null,"x":1.50e+2,"y":[ 1 ]}"#, r#"{"parentId":"p","x":1.50e+2,"y":[ 1 ]}"#);
        check(
            r#"{"x":"\ud83d","n":123456789012345678901}"#,
            r#"{"x":"\ud83d","n":123456789012345678901,"parentId":"p"}"#,
        );
        check("{}", r#"{"parentId":"p"}"#);
        assert!(Members::of(b"[1]").is_err() && Members::of(b"{} x").is_err());
    }
}
