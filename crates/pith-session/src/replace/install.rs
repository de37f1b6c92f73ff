//! Puts another session in the place of this one. Nothing runs.

use super::Successor;
use crate::jobs::{Job, JobEnd};
use crate::log::log_line;
use crate::project::ReloadReason;
use crate::session::Session;

impl Session {
    pub(super) fn install(&mut self, successor: Successor) {
        for input in self.queues.forget(&mut *self.out) {
            self.store.input_done(input);
        }
        self.store.save_leaf();
        match successor.store {
            Some(store) => {
                self.report_store();
                self.store = store;
            }
            // The same file stays open; only queued input that was not stored is lost.
            None => self.store.refresh(),
        }
        self.shell.forget_deferred();
        self.queues.deferred.forget();
        self.schedule_rest();
        if self.workbench().base.cwd != self.store.cwd() {
            self.move_to_directory();
        }
        self.restart_mcp();
        self.permissions.forget();
        self.restore_settings();
        self.resume_inputs();
        self.append_drafts(successor.drafts);
    }

    /// Selects the model and level the session was last used with, if they can be used here.
    fn restore_settings(&mut self) {
        if let Some(warning) = self.models.restore(self.store.settings()) {
            log_line(&format!("Warning: {warning}"));
        }
        self.begin_session();
        self.restore_tools();
        self.assemble_prompt();
        self.report_store();
    }

    /// Moves the tools to the session's working directory; processes they left running elsewhere are ended.
    fn move_to_directory(&mut self) {
        let left = self.tools.move_to(self.store.cwd(), &self.settings);
        self.governor.leave_directory();
        self.freeze_if_paused();
        // Another directory has other instructions, skills and project settings.
        self.reload_project(ReloadReason::Changed);
        self.jobs.spawn(Job::Background, async move {
            left.jobs.shutdown_all(pith_tools::process::SHUTDOWN_GRACE).await;
            JobEnd::Done
        });
    }
}
