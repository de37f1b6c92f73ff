//! Optional fields a server does not accept, in the words of the servers.
//!
//! A refusal is understood when it complains and names a field that was sent,
//! by its own name or by one that a gateway gave it on the way. What is said of
//! the conversation says nothing about fields that stand elsewhere.

pub mod table;

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

use super::Wire;
use table::{ABOUT_THINKING, CLASSES, COMPLAINTS, OptionalField, Place};

static COMPLAINT: LazyLock<RegexSet> = LazyLock::new(|| set(COMPLAINTS));
static THOUGHT: LazyLock<RegexSet> = LazyLock::new(|| set(ABOUT_THINKING));
/// Ways to point at a message: `messages.1.content`, `input[2]`, `"loc": ["body", "messages", 3]`.
static IN_MESSAGES: LazyLock<Regex> = LazyLock::new(|| pointer("messages|input|contents"));
static IN_TOOLS: LazyLock<Regex> = LazyLock::new(|| pointer("tools"));

fn set(patterns: &[&str]) -> RegexSet {
    RegexSet::new(patterns.iter().map(|pattern| format!("(?i){pattern}"))).expect("the patterns are constants")
}

fn pointer(lists: &str) -> Regex {
    Regex::new(&format!(r#"\b({lists})(['"]?, ?|[.\[/])\d+"#)).expect("the patterns are constants")
}

/// The optional fields one server has refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refused(Vec<&'static str>);

impl Refused {
    /// Whether the field is to be left out.
    pub fn contains(&self, field: &str) -> bool {
        self.0.contains(&field)
    }

    /// Adds the optional fields of `request` that an error answer complains about. False if it is about something else.
    pub fn learn(&mut self, wire: &dyn Wire, request: &[u8], status: u16, body: &str) -> bool {
        let body = CLASSES.iter().fold(body.to_ascii_lowercase(), |body, class| body.replace(class, ""));
        if !matches!(status, 400 | 422) || THOUGHT.is_match(&body) {
            return false;
        }
        let is_sent = |name: &str| memchr::memmem::find(request, format!("\"{name}\"").as_bytes()).is_some();
        let places = Place::named(&body);
        let may_be_meant = |field: &&OptionalField| {
            is_sent(field.name) && !self.contains(field.name) && (places.is_empty() || places.contains(&field.place))
        };
        let new: Vec<_> = wire.optional_fields().iter().filter(may_be_meant).collect();
        let by_phrase = |field: &&OptionalField| field.phrases.iter().any(|phrase| body.contains(phrase));
        let mut meant = names_of(new.iter().copied().filter(by_phrase));
        if meant.is_empty() && COMPLAINT.is_match(&body) {
            // A field that is called by its name is the one that is meant.
            let by_name = |field: &&OptionalField| {
                names(&body, field.name) || (field.name == "developer" && names(&body, "role"))
            };
            let by_alias = |field: &&OptionalField| field.aliases.iter().any(|alias| names(&body, alias));
            meant = names_of(new.iter().copied().filter(by_name));
            if meant.is_empty() {
                meant = names_of(new.iter().copied().filter(by_alias));
            }
        }
        // `reasoning.summary` and `thinking.adaptive.display` are about the last member only.
        let is_path = |name: &str| meant.iter().any(|member| *member != name && is_member(&body, name, member));
        self.0.extend(meant.iter().filter(|name| !is_path(name)));
        !meant.is_empty()
    }
}

/// Whether a refusal is about thinking that the request gives back, as opposed to the wish for more of it.
pub fn is_about_thinking(status: u16, body: &str) -> bool {
    matches!(status, 400 | 422) && THOUGHT.is_match(body)
}

impl Place {
    /// Returns the places that an error, in lower case, points at; none if it points at none.
    fn named(error: &str) -> Vec<Place> {
        let mut places = Vec::new();
        if IN_MESSAGES.is_match(error) {
            places.push(Place::Message);
        }
        if IN_TOOLS.is_match(error) || error.contains("schema for function") {
            places.push(Place::Tool);
        }
        if !places.is_empty() {
            places.push(Place::Anywhere);
        }
        places
    }
}

fn names_of<'f>(fields: impl Iterator<Item = &'f OptionalField>) -> Vec<&'static str> {
    fields.map(|field| field.name).collect()
}

/// Whether `text` has a path that leads from `name` to `member`.
fn is_member(text: &str, name: &str, member: &str) -> bool {
    let is_step = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    let start = format!("{name}.");
    text.match_indices(&start).any(|(at, _)| {
        let path = &text[at + start.len()..];
        let end = path.bytes().position(|byte| !is_step(byte)).unwrap_or(path.len());
        path[..end].split('.').any(|step| step == member)
    })
}

/// Whether `text`, which is in lower case, has `word` standing alone.
fn names(text: &str, word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    text.match_indices(&word).any(|(at, _)| {
        let (before, after) = (at.checked_sub(1), at + word.len());
        !is_part(before.and_then(|before| text.as_bytes().get(before))) && !is_part(text.as_bytes().get(after))
    })
}

#[cfg(test)]
mod tests;
