//! The places where somebody who watches hears of the session: its work, compactions, limits, refusals. Runs report
//! their own calls, see [`pith_agent::trace`].

use std::sync::Arc;

use pith_agent::trace::{ChatParent, CompactionSpan, TurnTrace, WorkSpan, WorkStart};
use pith_protocol::{CompactionReason, SandboxDenial, SandboxProfile};

use crate::activity::Work;
use crate::session::Session;

impl Work {
    /// Called when a compaction begins.
    pub fn compaction_span(&self, reason: CompactionReason) -> Option<Arc<dyn CompactionSpan>> {
        self.trace.as_ref().map(|trace| trace.compaction(reason))
    }
}

impl Session {
    /// Called when work begins. `traceparent` is the place in the host's trace, as it has written it.
    pub(crate) fn begin_work(&self, mut work: Work, traceparent: Option<&str>) -> Box<Work> {
        work.trace = self.tracer.as_ref().map(|tracer| {
            let model = self.models.current().map(|model| &**model);
            tracer.work(WorkStart { session: self.store.id(), model, traceparent })
        });
        Box::new(work)
    }

    pub(crate) fn work_trace(&self) -> Option<&Arc<dyn WorkSpan>> {
        self.activity.work()?.trace.as_ref()
    }

    /// What the calls of the next turn are part of.
    pub(crate) fn turn_trace(&self) -> Option<TurnTrace> {
        let work = self.work_trace()?.clone();
        let policy = self.workbench().sandbox.as_ref().and_then(|sandbox| sandbox.policy());
        Some(TurnTrace { work, sandbox: policy.map_or(SandboxProfile::Off, |policy| policy.profile) })
    }

    /// Called when a compaction begins that is no part of work.
    pub(crate) fn requested_compaction_span(&self, reason: CompactionReason) -> Option<Arc<dyn CompactionSpan>> {
        self.tracer.as_ref().map(|tracer| tracer.compaction(reason))
    }

    /// What the requests of a branch summary are part of: nothing but themselves.
    pub(crate) fn summary_trace(&self) -> Option<Arc<dyn ChatParent>> {
        self.tracer.clone().map(|tracer| tracer as Arc<dyn ChatParent>)
    }

    /// What a request to the model is part of that no run has made: the work, if there is some.
    pub(crate) fn chat_parent(&self) -> Option<Arc<dyn ChatParent>> {
        self.work_trace().map(|work| work.clone() as Arc<dyn ChatParent>).or_else(|| self.summary_trace())
    }

    pub(crate) fn trace_limit(&self, name: &str) {
        if let Some(work) = self.work_trace() {
            work.limit_reached(name);
        }
    }

    pub(crate) fn trace_denied(&self, kind: SandboxDenial) {
        if let Some(work) = self.work_trace() {
            work.denied(match kind {
                SandboxDenial::File => "file",
                SandboxDenial::Network => "network",
                SandboxDenial::Protected => "protected",
                SandboxDenial::Syscall => "syscall",
            });
        }
    }

    /// Called when work is over.
    pub(crate) fn trace_end(&self, work: &Work, was_aborted: bool) {
        if let Some(trace) = &work.trace {
            let last = self.store.messages().iter().rev().find_map(|message| message.as_assistant());
            trace.end(was_aborted, last);
        }
    }
}
