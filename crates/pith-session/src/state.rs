//! What the session reports about itself, and small changes to it.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use pith_agent::Queue;
use pith_ext::EventName;
use pith_protocol::answers::{ContextUsage, DumpedTool, LastText, SessionStats, State, TokenTotals};
use pith_protocol::commands::SetSessionName;
use pith_protocol::{CommandError, ErrorCode, Event, Message, Model, ToolSpec};
use pith_store::StoreReport;
use serde_json::json;

use crate::compaction::{Context, has_count};
use crate::log::log_line;
use crate::reply::Reply;
use crate::session::Session;

/// What pi says it uses before there is a model; its hosts read members of it.
fn unknown_model() -> Arc<Model> {
    let unknown = || "unknown".to_owned();
    Arc::new(Model { id: unknown(), name: unknown(), api: unknown(), provider: unknown(), ..Model::default() })
}

impl Session {
    /// Records model and level, unless the session already has them. They reach the disk only once the session has
    /// content.
    pub(crate) fn begin_session(&mut self) {
        let model = self.models.current().cloned();
        if let Some(model) = model.filter(|_| self.store.tree().is_empty()) {
            self.store.append_model_change(&model.provider, &model.id);
        }
        if self.store.settings().thinking_level.is_none() {
            self.store.append_thinking_level(self.models.level());
        }
        self.resume_todos();
        self.resume_rules();
        self.update_call_options();
    }

    pub(crate) fn state(&self) -> State {
        let n_waiting = self.queues.len();
        State {
            model: self.models.current().cloned().or_else(|| self.options.state_has_unknown_model.then(unknown_model)),
            thinking_level: self.level_for_host(self.models.level()),
            is_streaming: self.activity.is_working(),
            is_compacting: self.activity.is_summarising(),
            steering_mode: self.queues.mode(Queue::Steering),
            follow_up_mode: self.queues.mode(Queue::FollowUp),
            interrupt_mode: self.options.interrupt_mode,
            session_file: self.session_file(),
            session_id: self.store.id().to_owned(),
            session_name: self.store.name().map(str::to_owned),
            auto_compaction_enabled: self.options.auto_compaction,
            message_count: self.store.n_messages(),
            pending_message_count: n_waiting,
            queued_message_count: n_waiting,
            todo_phases: self.todos.phases().to_vec(),
            session_write_error: self.store.write_error().map(str::to_owned),
            mcp_servers: self.mcp.states(),
            sandbox: self.workbench().sandbox.as_ref().map(|sandbox| sandbox.state()),
            limits: self.governor.uses(),
            is_paused: self.is_paused(),
            is_waiting_for_permission: self.permissions.is_waiting(),
            system_prompt: self.options.state_has_prompt.then(|| self.project.prompt().clone()),
            dump_tools: self.options.state_has_prompt.then(|| self.dump_tools()),
        }
    }

    fn dump_tools(&self) -> Vec<DumpedTool> {
        let dump = |tool: &ToolSpec| DumpedTool {
            name: tool.name.to_string(),
            description: tool.description.to_string(),
            parameters: (*tool.parameters).clone(),
        };
        self.tools.active().specs().iter().map(dump).collect()
    }

    /// Trimmed text of the last answer. Aborted answers without content do not count.
    pub(crate) fn last_text(&self) -> LastText {
        LastText { text: self.store.last_assistant_text() }
    }

    pub(crate) fn stats(&self) -> SessionStats {
        let tally = self.store.tree().tally();
        SessionStats {
            session_file: self.session_file(),
            session_id: self.store.id().to_owned(),
            user_messages: tally.user_messages,
            assistant_messages: tally.assistant_messages,
            tool_calls: tally.tool_calls,
            tool_results: tally.tool_results,
            total_messages: tally.total_messages,
            tokens: TokenTotals {
                input: tally.input,
                output: tally.output,
                cache_read: tally.cache_read,
                cache_write: tally.cache_write,
                total: tally.total_tokens(),
            },
            cost: tally.cost,
            premium_requests: self.options.counts_premium_requests.then_some(0),
            context_usage: self.context_usage(),
        }
    }

    /// How full the window is. A long session needs only the messages since the last token count; the rest is not read.
    fn context_usage(&self) -> Option<ContextUsage> {
        let window = self.models.current().map_or(0, |model| self.models.window(model));
        let is_counted = |message: &Message| message.as_assistant().is_some_and(has_count);
        let recent = self.store.messages_since(is_counted).filter(|_| self.store.rewritten_to() == 0);
        match recent {
            Some(recent) => Context { messages: &recent, ..self.fixed_context() }.usage(window),
            None => self.context().usage(window),
        }
    }

    pub(crate) fn session_file(&self) -> Option<String> {
        self.store.path().map(|path: &Path| path.to_string_lossy().into_owned())
    }

    pub(crate) fn set_session_name(&mut self, call: &SetSessionName, reply: Reply<SetSessionName>) {
        let name = call.name.trim();
        if name.is_empty() {
            return self.answer(reply, Err(CommandError::new(ErrorCode::InvalidField, "Session name cannot be empty")));
        }
        self.rename(name);
        self.answer(reply, Ok(()));
    }

    /// Sets or removes the session's name, and tells host and extensions.
    pub(crate) fn rename(&mut self, name: &str) {
        self.store.append_session_info(name);
        self.report_store();
        let name = self.store.name();
        self.out.event(&Event::SessionInfoChanged { name: name.map(Cow::Borrowed) });
        if let Some(handle) = self.listeners(EventName::SessionInfoChanged) {
            handle.announce(EventName::SessionInfoChanged, json!({ "name": name }));
        }
    }

    /// Reports repairs and failed writes once, on the wire and on stderr.
    pub(crate) fn report_store(&mut self) {
        for report in self.store.take_report() {
            self.report(&report);
        }
    }

    pub(crate) fn report(&mut self, report: &StoreReport) {
        log_line(&report.message);
        self.tell_error("<session>", report.kind.event(), &report.message);
    }
}
