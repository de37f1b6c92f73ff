//! The handshake. A host that never sends `hello` sees no difference.

use pith_protocol::answers::{Disposition, Greeting, PromptDisposition};
use pith_protocol::commands::{AbortAndPrompt, Hello, Prompt};
use pith_protocol::{Announcement, Call, Event};

use crate::permissions::Attendance;
use crate::reply::{InputReply, Reply};
use crate::session::Session;

impl Session {
    pub(crate) fn hello(&mut self, call: Hello, reply: Reply<Hello>) {
        let accept = call.accept.unwrap_or_default();
        if let Some(mode) = accept.stream_updates {
            self.options.stream_updates = mode;
        }
        self.settles_handled = accept.settled_when_handled.unwrap_or(false);
        self.accept_permission_requests(accept.permission_request.unwrap_or(false));
        let greeting = Greeting::new(self.options.wire, env!("CARGO_PKG_VERSION"), &accept);
        self.answer(reply, Ok(greeting));
    }

    /// Called when the first line of the host says something about it.
    pub(crate) fn on_announced_host(&mut self, announced: Announcement) {
        if announced.takes_permission_requests {
            self.accept_permission_requests(true);
        }
        if announced.shows_dialogs {
            self.options.attendance = Attendance::Present;
            self.on_ui_announced();
        }
    }

    /// Whoever takes questions about tool calls as frames of their own sees them.
    fn accept_permission_requests(&mut self, accepts: bool) {
        self.permissions.takes_frames = accepts;
        if accepts {
            self.options.attendance = Attendance::Present;
        }
    }

    /// Answers a prompt that extensions have taken.
    pub(crate) fn answer_handled(&mut self, reply: InputReply) {
        let is_prompt = matches!(reply.command(), Some((_, Prompt::NAME | AbortAndPrompt::NAME)));
        reply.send(&mut *self.out, Ok(PromptDisposition { disposition: Disposition::Handled }));
        if is_prompt {
            self.settle_handled();
        }
    }

    /// Called after a prompt was answered with `handled`: tells a host that asked for it that nothing follows. A run that
    /// is under way tells its own end.
    pub(crate) fn settle_handled(&mut self) {
        if self.settles_handled && !self.activity.is_busy() {
            self.out.event(&Event::AgentSettled { aborted: false, limit: None });
        }
    }
}
