//! Selects the next answer.

use std::collections::HashMap;
use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

use super::script::{After, Script, Turn};

/// A script being played: knows the position of each conversation.
pub(super) struct ScriptPlayer {
    main: Track,
    routes: Vec<(Regex, Track)>,
    default: Arc<Turn>,
    /// The number of requests so far, by conversation and track.
    counts: HashMap<(String, String), usize>,
}

struct Track {
    turns: Vec<Arc<Turn>>,
    after: After,
}

/// The answer selected for a request.
pub(super) struct Choice {
    pub turn: Arc<Turn>,
    /// `main` or `route<n>`.
    pub route: String,
}

impl ScriptPlayer {
    pub(super) fn new(script: Script) -> Self {
        let default = script.default.unwrap_or_else(|| Turn::text("(end of script)")).labelled("td".to_owned());
        let mut main = Track { turns: Vec::new(), after: script.after };
        script.turns.into_iter().for_each(|turn| main.add(turn));
        let routes = script.routes.into_iter().map(|route| {
            let mut track = Track { turns: Vec::new(), after: route.after };
            route.turns.into_iter().for_each(|turn| track.add(turn));
            (route.matching, track)
        });
        ScriptPlayer { main, routes: routes.collect(), default: Arc::new(default), counts: HashMap::new() }
    }

    /// Appends to the main track.
    pub(super) fn add(&mut self, turn: Turn) {
        self.main.add(turn);
    }

    /// Takes the next answer for a request of `conversation`.
    pub(super) fn choose(&mut self, conversation: &str, body: &Value) -> Choice {
        let newest = if self.routes.is_empty() { String::new() } else { newest_message(body) };
        let matching = self.routes.iter().position(|(pattern, _)| pattern.is_match(&newest));
        let route = matching.map_or_else(|| "main".to_owned(), |index| format!("route{index}"));
        let track = matching.map_or(&self.main, |index| &self.routes[index].1);
        let count = self.counts.entry((conversation.to_owned(), route.clone())).or_insert(0);
        let turn = track.turn(*count).unwrap_or(&self.default);
        *count += 1;
        Choice { turn: Arc::clone(turn), route }
    }
}

impl Track {
    fn add(&mut self, turn: Turn) {
        for _ in 0..turn.times {
            let label = format!("t{}", self.turns.len());
            self.turns.push(Arc::new(turn.labelled(label)));
        }
    }

    fn turn(&self, index: usize) -> Option<&Arc<Turn>> {
        let last = self.turns.len().checked_sub(1)?;
        match self.after {
            After::Default => self.turns.get(index),
            After::Repeat => self.turns.get(index.min(last)),
            After::Loop => self.turns.get(index % self.turns.len()),
        }
    }
}

/// The JSON text of the newest message of a request in any of the wire formats.
fn newest_message(body: &Value) -> String {
    let messages = ["messages", "input", "contents"].iter().find_map(|name| body.get(name)?.as_array());
    messages.and_then(|messages| messages.last()).unwrap_or(body).to_string()
}
