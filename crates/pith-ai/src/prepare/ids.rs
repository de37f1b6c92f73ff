//! Tool-call ids that satisfy the provider and cannot collide.

use std::borrow::Cow;
use std::collections::HashSet;

use pith_protocol::Model;

/// What a provider accepts as the id of a tool call.
#[derive(Clone, Copy, Debug)]
pub struct IdRule {
    /// Longest id, when one has to be made.
    pub max: usize,
    /// Rewrites an id that another model gave.
    pub foreign: fn(&str, &Model) -> String,
    /// Ids are `call|item`; only the first part has to be unique.
    pub has_items: bool,
}

/// Hands out the ids of one request.
pub(super) struct Ids<'a> {
    rule: IdRule,
    model: &'a Model,
    used: HashSet<String>,
}

impl<'a> Ids<'a> {
    pub(super) fn new(rule: IdRule, model: &'a Model) -> Self {
        Ids { rule, model, used: HashSet::new() }
    }

    /// Returns the id to send for a call. Depends only on the calls before it, so requests keep a stable prefix.
    pub(super) fn assign(&mut self, id: &'a str, same_model: bool) -> Cow<'a, str> {
        let mut assigned = if same_model { Cow::Borrowed(id) } else { Cow::Owned((self.rule.foreign)(id, self.model)) };
        let mut attempt = 1;
        while assigned.is_empty() || !self.used.insert(self.key(&assigned).to_owned()) {
            attempt += 1;
            assigned = Cow::Owned(self.distinct(&assigned, &format!("{id}#{attempt}")));
        }
        assigned
    }

    fn key<'s>(&self, id: &'s str) -> &'s str {
        if self.rule.has_items { id.split('|').next().unwrap_or(id) } else { id }
    }

    fn distinct(&self, id: &str, origin: &str) -> String {
        if self.rule.max < 16 {
            // No room for a readable part.
            return format!("c{}", short_hash(origin));
        }
        let key = self.key(id);
        let stem = &key[..floor(key, self.rule.max - 9)];
        format!("{stem}_{}{}", short_hash(origin), &id[key.len()..])
    }
}

/// Replaces everything but letters, digits, `_` and `-` by `_`.
pub fn sanitise(id: &str) -> String {
    let legal = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    id.chars().map(|character| if legal(character) { character } else { '_' }).collect()
}

/// Cuts `id` to `max` bytes; a cut one ends in a hash of `origin`.
pub fn shorten(id: &str, origin: &str, max: usize) -> String {
    if id.len() <= max {
        return id.to_owned();
    }
    format!("{}_{}", &id[..floor(id, max - 9)], short_hash(origin))
}

/// Returns eight letters and digits that are the same on every run (FNV-1a).
pub fn short_hash(text: &str) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let mut hash = text.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step);
    let mut digit = || {
        let digit = DIGITS[(hash % 36) as usize];
        hash /= 36;
        char::from(digit)
    };
    (0..8).map(|_| digit()).collect()
}

/// Returns the nearest character boundary at or below `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}
