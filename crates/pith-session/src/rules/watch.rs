//! Matches the blocks of an answer against the rules, delta by delta.
//!
//! Each byte moves an automaton by one state, so it does not matter how a text is cut into deltas, and no text is kept.

use pith_protocol::AssistantEvent;
use regex_automata::Anchored;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::util::start;

use super::patterns::{StreamRules, Watched};

/// How many blocks are watched at the same time; providers send one block after the other.
const MAX_OPEN: usize = 8;

/// The open blocks of the answer being streamed.
#[derive(Default)]
pub(crate) struct Watch {
    open: Vec<Stream>,
    /// Caches of blocks that have ended, for reuse.
    spare: Vec<Cache>,
}

struct Stream {
    index: usize,
    block: Watched,
    cache: Cache,
    /// `None` once nothing can match any more.
    state: Option<LazyStateID>,
}

impl Watch {
    /// Takes one event; returns the rules that match now, each once.
    pub fn feed(&mut self, rules: &StreamRules, event: &AssistantEvent) -> Vec<usize> {
        let Some(dfa) = rules.automaton() else { return Vec::new() };
        match event {
            AssistantEvent::TextStart { index } => self.open(dfa, *index, Watched::Text),
            AssistantEvent::ThinkingStart { index } => self.open(dfa, *index, Watched::Thinking),
            AssistantEvent::ToolCallStart { index, name, .. } => self.open(dfa, *index, Watched::Tool(name.clone())),
            AssistantEvent::TextDelta { index, delta }
            | AssistantEvent::ThinkingDelta { index, delta }
            | AssistantEvent::ToolCallDelta { index, delta } => return self.step(rules, dfa, *index, delta.as_bytes()),
            AssistantEvent::TextEnd { index, .. }
            | AssistantEvent::ThinkingEnd { index, .. }
            | AssistantEvent::ToolCallEnd { index, .. } => return self.end(rules, dfa, *index),
            AssistantEvent::Start(_) | AssistantEvent::Meta { .. } | AssistantEvent::End(_) => {}
        }
        Vec::new()
    }

    /// Forgets the current answer.
    pub fn reset(&mut self) {
        self.spare.extend(self.open.drain(..).map(|stream| stream.cache));
    }

    fn open(&mut self, dfa: &DFA, index: usize, block: Watched) {
        if self.open.len() >= MAX_OPEN {
            return;
        }
        let mut cache = self.spare.pop().unwrap_or_else(|| StreamRules::cache(dfa));
        let state = dfa.start_state(&mut cache, &start::Config::new().anchored(Anchored::No)).ok();
        self.open.push(Stream { index, block, cache, state });
    }

    fn step(&mut self, rules: &StreamRules, dfa: &DFA, index: usize, bytes: &[u8]) -> Vec<usize> {
        let mut hits = Vec::new();
        let Some(stream) = self.open.iter_mut().find(|stream| stream.index == index) else { return hits };
        for &byte in bytes {
            let Some(state) = stream.state else { break };
            stream.state = dfa.next_state(&mut stream.cache, state, byte).ok();
            stream.collect(rules, dfa, &mut hits);
        }
        hits
    }

    /// Ends a block. Patterns that require the end of the text may match only now.
    fn end(&mut self, rules: &StreamRules, dfa: &DFA, index: usize) -> Vec<usize> {
        let mut hits = Vec::new();
        let Some(at) = self.open.iter().position(|stream| stream.index == index) else { return hits };
        let mut stream = self.open.remove(at);
        if let Some(state) = stream.state {
            stream.state = dfa.next_eoi_state(&mut stream.cache, state).ok();
            stream.collect(rules, dfa, &mut hits);
        }
        self.spare.push(stream.cache);
        hits
    }
}

impl Stream {
    fn collect(&mut self, rules: &StreamRules, dfa: &DFA, hits: &mut Vec<usize>) {
        let Some(state) = self.state.filter(|state| state.is_tagged()) else { return };
        if state.is_match() {
            for n in 0..dfa.match_len(&self.cache, state) {
                let pattern = dfa.match_pattern(&self.cache, state, n).as_usize();
                if let Some(rule) = rules.owner(pattern, &self.block).filter(|rule| !hits.contains(rule)) {
                    hits.push(rule);
                }
            }
        } else if state.is_dead() || state.is_quit() {
            self.state = None;
        }
    }
}
