//! The tools that an extension has chosen, in the session file: whoever opens the session next has no others.

use serde::Deserialize;
use serde_json::json;

use super::{Chosen, Tools};
use crate::log::log_line;
use crate::session::Session;

/// The `customType` of entries that say which tools are active.
const CHOSEN_TOOLS: &str = "pith.tools";

impl Tools {
    /// Takes what a branch says about the active tools, unless the flags do.
    fn restore(&mut self, recorded: Option<Chosen>) {
        let recorded = recorded.filter(|_| !self.choice.is_made_by_flags());
        self.chosen = recorded.clone().map(|mut chosen| {
            self.choice.change(&mut chosen);
            chosen
        });
        self.recorded = recorded;
        self.rebuild();
    }

    /// Returns what the session file does not say yet. The default selection is not worth an entry.
    fn unrecorded(&mut self) -> Option<Chosen> {
        let chosen = self.chosen.clone()?;
        let is_known = match &self.recorded {
            Some(recorded) => *recorded == chosen,
            None => self.is_default(),
        };
        if is_known {
            return None;
        }
        self.recorded = Some(chosen.clone());
        Some(chosen)
    }
}

impl Session {
    /// Sets the active tools, from the next model request on.
    pub(crate) fn set_active_tools(&mut self, names: &[String]) {
        self.tools.choose(names);
        if self.store.is_saved() {
            self.record_tools();
        }
        self.assemble_prompt();
    }

    /// Writes down which tools an extension has chosen, if the branch does not say so. In a session without a file that
    /// waits for its first prompt: a start alone leaves none.
    pub(crate) fn record_tools(&mut self) {
        if let Some(chosen) = self.tools.unrecorded() {
            self.append_custom_entry(CHOSEN_TOOLS, Some(json!(chosen)));
        }
    }

    /// Restores the tools that were chosen when the session was used before. Called when another session or branch
    /// begins.
    pub(crate) fn restore_tools(&mut self) {
        let recorded = self.store.last_custom_data(CHOSEN_TOOLS).and_then(|data| match Chosen::deserialize(&data) {
            Ok(chosen) => Some(chosen),
            Err(error) => {
                log_line(&format!("Warning: the tools in the session file are not understood: {error}"));
                None
            }
        });
        self.tools.restore(recorded);
    }
}
