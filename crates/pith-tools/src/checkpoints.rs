//! Checkpoints where the tools are: what is told before and after a change, and how files are put back.

use std::path::Path;

use pith_checkpoints::CallInfo;
use pith_checkpoints::restore::{Step, Taken, take};

use crate::confine::real_path;
use crate::workbench::Workbench;

impl Workbench {
    /// Called before a tool changes a file, when no other call does. Returns when that can begin.
    pub(crate) fn before_change(&self, call_id: &str, tool: &str, path: &Path) {
        // A change that will be refused needs no checkpoint.
        let is_possible = || self.confinement.admit_change(path, "open").is_ok();
        if let Some(recorder) = self.checkpoints.as_ref().filter(|_| is_possible()) {
            recorder.before_change(CallInfo { id: call_id.to_owned(), tool: tool.to_owned() }, &real_path(path));
        }
    }

    /// Called when the tool has changed the file, or failed to.
    pub(crate) fn after_change(&self, call_id: &str) {
        if let Some(recorder) = &self.checkpoints {
            recorder.after(call_id);
        }
    }

    /// Puts files back, where the file tools may write; on a confined thread if there is a sandbox.
    pub async fn put_back(&self, steps: Vec<Step>) -> Result<Vec<Taken>, String> {
        let confinement = self.confinement.clone();
        self.on_thread(move || {
            Ok(take(steps, &|directory, path, name| confinement.admit_open_for_change(directory, path, name)))
        })
        .await
    }
}
