//! `reload`: reads everything again, extensions included, in the same session.

use pith_ext::outgoing::Answer;
use pith_ext::{ExtensionSource, Loading};
use pith_protocol::answers::{Reloaded, ResourceChange};

use super::StartReason;
use crate::admission::Hold;
use crate::project::ReloadReason;
use crate::reply::Reply;
use crate::session::Session;

/// A reload under way.
pub(crate) struct Reload {
    reply: ReloadReply,
    /// What has changed.
    changes: Vec<ResourceChange>,
    /// The extensions being loaded.
    pub sources: Vec<ExtensionSource>,
}

/// Who asked for a reload.
pub(crate) enum ReloadReply {
    Host(Reply<pith_protocol::commands::Reload>),
    Extension(Answer<()>),
    /// The project was trusted; there is no command to answer.
    Nobody,
}

impl Session {
    /// Serves `ctx.reload()`. What runs was started by the extensions there are, so it ends first.
    pub(crate) fn reload_for_extension(&mut self, answer: Answer<()>) {
        if self.activity.is_working() {
            return answer.fail("Wait for the current response to finish before reloading.");
        }
        if self.activity.is_summarising() {
            return answer.fail("Wait for compaction to finish before reloading.");
        }
        self.reload(ReloadReply::Extension(answer));
    }

    /// Reads everything again and reports what has changed, after extensions have handled `session_shutdown`.
    pub(crate) fn reload(&mut self, reply: ReloadReply) {
        let (changes, sources) = Default::default();
        self.admission.hold(Hold::Reloading(Reload { reply, changes, sources }));
        match self.extension_handle().cloned() {
            Some(handle) => self.announce_shutdown(handle, StartReason::Reload, None),
            None => self.reload_after_shutdown(),
        }
    }

    pub(crate) fn reload_after_shutdown(&mut self) {
        self.models.registry().reload();
        self.permissions.reread();
        let changes = self.reload_project(ReloadReason::Changed);
        let cwd = self.store.cwd().to_owned();
        let sources = (self.extensions.find)(&cwd);
        let Some(reload) = self.admission.reload_mut() else { return };
        reload.changes = changes;
        if sources.is_empty() {
            self.stop_extensions();
            return self.end_reload();
        }
        reload.sources = sources.clone();
        self.load_extensions(&cwd, sources, Loading::Reload);
    }

    /// Answers the reload, then serves what waited.
    pub(crate) fn end_reload(&mut self) {
        let Some(Hold::Reloading(reload)) = self.admission.release() else { return };
        match reload.reply {
            ReloadReply::Host(reply) => self.answer(reply, Ok(Reloaded { changes: reload.changes })),
            ReloadReply::Extension(answer) => answer.send(()),
            ReloadReply::Nobody => {}
        }
        self.admit_waiting();
    }

    /// Loads the extensions of a project that was just trusted.
    pub(crate) fn load_trusted(&mut self) {
        let found = (self.extensions.find)(self.store.cwd());
        let is_same =
            found.iter().map(|source| &source.path).eq(self.extensions.sources().iter().map(|known| &known.path));
        if !is_same {
            self.reload(ReloadReply::Nobody);
        }
    }
}
