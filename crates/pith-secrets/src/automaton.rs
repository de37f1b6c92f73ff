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
    /// The first two bytes of each form, a bit for each pair.
    first_pairs: Vec<u64>,
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
            first_pairs: first_pairs(forms),
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
        // The end of every piece of a stream is looked at, and nearly all of its pairs begin no form.
        if text.first_chunk().is_some_and(|pair| !has_pair(&self.first_pairs, *pair)) {
            return false;
        }
        let mut state = self.nfa.start_state(Anchored::Yes).expect("an automaton of this kind can be asked so");
        text.iter().all(|&byte| {
            state = self.nfa.next_state(Anchored::Yes, state, byte);
            !self.nfa.is_dead(state)
        })
    }
}

/// Collects the first two bytes of each form; a shorter form may begin with every pair that begins with it.
fn first_pairs(forms: &[String]) -> Vec<u64> {
    let mut pairs = vec![0; (1 << 16) / 64];
    let mut add = |pair: [u8; 2]| {
        let bit = usize::from(u16::from_be_bytes(pair));
        pairs[bit / 64] |= 1 << (bit % 64);
    };
    for form in forms {
        match *form.as_bytes() {
            [] => {}
            [only] => (0..=u8::MAX).for_each(|second| add([only, second])),
            [first, second, ..] => add([first, second]),
        }
    }
    pairs
}

fn has_pair(pairs: &[u64], pair: [u8; 2]) -> bool {
    let bit = usize::from(u16::from_be_bytes(pair));
    pairs[bit / 64] >> (bit % 64) & 1 == 1
}
