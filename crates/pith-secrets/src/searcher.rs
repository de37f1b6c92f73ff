//! What a text is searched for, and the text without it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use regex::bytes::{NoExpand, Regex};

use crate::automaton::Automaton;
use crate::forms::forms;

/// What stands in the place of a value.
pub const MASK: &str = "[redacted]";

/// What stands in the place of something found; `None` is the usual mask.
pub(crate) type Mask = Option<Arc<str>>;

/// All forms of all values, and the patterns of the user.
pub(crate) struct Searcher {
    /// `None` if no value is known.
    automaton: Option<Automaton>,
    masks: Vec<Mask>,
    patterns: Vec<(Regex, Mask)>,
}

impl Searcher {
    pub fn build(values: &BTreeMap<String, Mask>, patterns: &[(Regex, Mask)]) -> Self {
        let (mut all, mut masks) = (Vec::new(), Vec::new());
        for (value, mask) in values {
            let forms = forms(value);
            masks.extend(forms.iter().map(|_| mask.clone()));
            all.extend(forms);
        }
        Searcher { automaton: Automaton::build(&all), masks, patterns: patterns.to_vec() }
    }

    pub fn has_patterns(&self) -> bool {
        !self.patterns.is_empty()
    }

    /// Returns where a part at the end begins that could become a value; the end of the text if there is none.
    pub fn open_end(&self, text: &[u8]) -> usize {
        self.automaton.as_ref().map_or(text.len(), |automaton| automaton.open_end(text))
    }

    /// Returns the text without anything that is searched for.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut redacted = Vec::new();
        let mut is_whole = false;
        self.pass_all(text.as_bytes(), |bytes| {
            is_whole = std::ptr::eq(bytes, text.as_bytes());
            if !is_whole {
                redacted.extend_from_slice(bytes);
            }
        });
        if is_whole || text.is_empty() {
            return Cow::Borrowed(text);
        }
        // Values are whole characters; a pattern need not be.
        Cow::Owned(String::from_utf8(redacted).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into()))
    }

    /// Passes on a text that is complete.
    pub fn pass_all(&self, text: &[u8], mut pass: impl FnMut(&[u8])) {
        self.pass_before(text.len(), text, &mut pass);
    }

    /// Passes on what begins before `end`; returns where the rest begins. A value that begins there is complete.
    pub fn pass_before(&self, end: usize, text: &[u8], pass: &mut impl FnMut(&[u8])) -> usize {
        if !self.has_patterns() {
            return self.pass_values(end, text, pass);
        }
        let mut whole = Vec::new();
        let from = self.pass_values(end, text, &mut |bytes| whole.extend_from_slice(bytes));
        for (pattern, mask) in &self.patterns {
            if let Cow::Owned(replaced) = pattern.replace_all(&whole, NoExpand(shown(mask).as_bytes())) {
                whole = replaced;
            }
        }
        if !whole.is_empty() {
            pass(&whole);
        }
        from
    }

    fn pass_values(&self, end: usize, text: &[u8], pass: &mut impl FnMut(&[u8])) -> usize {
        let mut from = 0;
        while let Some(found) = self.automaton.as_ref().and_then(|automaton| automaton.find(text, from)) {
            if found.place.start >= end {
                break;
            }
            if from < found.place.start {
                pass(&text[from..found.place.start]);
            }
            pass(shown(&self.masks[found.form]).as_bytes());
            from = found.place.end;
        }
        if from < end {
            pass(&text[from..end]);
        }
        from.max(end)
    }
}

fn shown(mask: &Mask) -> &str {
    mask.as_deref().unwrap_or(MASK)
}
