//! Finds many forms of values in one pass.

use std::ops::Range;

use aho_corasick::automaton::Automaton as _;
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, Input, MatchKind};

use crate::grams::Grams;

/// All forms. Of several that begin at the same place the longest counts.
pub(crate) struct Automaton {
    nfa: NFA,
    /// Where it is worth to look; `None` if a form is too short to say so.
    grams: Option<Grams>,
    longest: usize,
}

/// A form in a text.
pub(crate) struct Found {
    pub place: Range<usize>,
    /// Its number.
    pub form: usize,
}

impl Automaton {
    /// Builds the automaton of forms. `None` if there are no forms.
    pub fn build(forms: &[String]) -> Option<Self> {
        let longest = forms.iter().map(String::len).max()?;
        let nfa = NFA::builder().match_kind(MatchKind::LeftmostLongest).build(forms);
        Some(Automaton {
            nfa: nfa.expect("credentials do not have two thousand million bytes"),
            grams: Grams::of(forms),
            longest,
        })
    }

    /// Returns the first form that begins at `from` or later.
    pub fn find(&self, text: &[u8], from: usize) -> Option<Found> {
        let Some(grams) = &self.grams else { return self.search(text, from, Anchored::No) };
        let mut from = from;
        while let Some(mut places) = grams.next(text, from) {
            from = places.end;
            if let Some(found) = places.find_map(|at| self.search(text, at, Anchored::Yes)) {
                return Some(found);
            }
        }
        None
    }

    fn search(&self, text: &[u8], from: usize, anchored: Anchored) -> Option<Found> {
        let found = self.nfa.try_find(&Input::new(text).range(from..).anchored(anchored));
        let found = found.expect("an automaton of this kind can be asked so")?;
        Some(Found { place: found.range(), form: found.pattern().as_usize() })
    }

    /// Returns where a part at the end of a text begins that is also the beginning of a form; the end if there is none.
    pub fn open_end(&self, text: &[u8]) -> usize {
        let first = (text.len() + 1).saturating_sub(self.longest);
        (first..text.len()).find(|at| self.is_beginning(&text[*at..])).unwrap_or(text.len())
    }

    fn is_beginning(&self, text: &[u8]) -> bool {
        let mut state = self.nfa.start_state(Anchored::Yes).expect("an automaton of this kind can be asked so");
        text.iter().all(|&byte| {
            state = self.nfa.next_state(Anchored::Yes, state, byte);
            !self.nfa.is_dead(state)
        })
    }
}
