//! What the session answers about itself, and small changes to it.

use std::path::Path;
use std::sync::Arc;

use pith_agent::Queue;
use pith_ext::{EventName, ExtensionHandle};
use pith_protocol::answers::{ContextUsage, CycledModel, LastText, SessionStats, State, TokenTotals};
use pith_protocol::commands::{CycleModel, SetModel, SetSessionName};
use pith_protocol::{Event, Message, Model, ThinkingLevel};
use pith_store::{Kind, Role, StoreReport};
use serde_json::{Value, json};

use crate::context::{Context, has_count};
use crate::models::Changed;
use crate::reply::Reply;
use crate::session::Session;

/// How a model was chosen, as `model_select` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    Set,
    Cycle,
}

impl Selection {
    fn as_str(self) -> &'static str {
        match self {
            Selection::Set => "set",
            Selection::Cycle => "cycle",
        }
    }
}

impl Session {
    /// Records model and level, unless the session has them from before; on disk only
    /// once the session has content.
    pub(crate) fn begin(&mut self) {
        let model = self.models.current().cloned();
        if let Some(model) = model.filter(|_| self.store.tree().is_empty()) {
            self.store.append_model_change(&model.provider, &model.id);
        }
        if self.store.settings().thinking_level.is_none() {
            self.store.append_thinking_level(self.models.level());
        }
        self.resume_todos();
        // The only ones that matter; the rest of a long session is not read before it is needed.
        let is_custom = |kind| matches!(kind, Kind::CustomMessage | Kind::Message(Role::Custom));
        self.ttsr.resume(&self.store.messages_of(is_custom));
        self.publish_conditions();
    }

    pub(crate) fn state(&self) -> State {
        let n_waiting = self.queues.len();
        State {
            model: self.models.current().cloned(),
            thinking_level: self.shown(self.models.level()),
            is_streaming: self.is_streaming(),
            is_compacting: self.summary.is_some(),
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
            todo_phases: self.todos.to_values(),
            session_write_error: self.store.write_error().map(str::to_owned),
            system_prompt: self.options.state_has_prompt.then(|| self.tools.prompt().clone()),
            dump_tools: self.options.state_has_prompt.then(|| self.dump_tools()),
        }
    }

    fn dump_tools(&self) -> Vec<serde_json::Value> {
        let tools = self.tools.active().specs().iter();
        tools
            .map(|tool| json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters}))
            .collect()
    }

    /// Trimmed text of the last answer; aborted answers without content do not count.
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

    /// How full the window is. In a long session the last count and what follows it say so,
    /// and the rest need not be read.
    fn context_usage(&self) -> Option<ContextUsage> {
        let window = self.models.current().map_or(0, |model| model.context_window);
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
            return self.answer(reply, Err("Session name cannot be empty".to_owned()));
        }
        self.rename(name);
        self.answer(reply, Ok(()));
    }

    /// Names the session, or takes its name away; hosts and extensions are told.
    pub(crate) fn rename(&mut self, name: &str) {
        self.store.append_session_info(name);
        self.report_store();
        let name = self.store.name();
        self.out.event(&Event::SessionInfoChanged { name });
        if let Some(handle) = self.listeners(EventName::SessionInfoChanged) {
            handle.announce(EventName::SessionInfoChanged, json!({ "name": name }));
        }
    }

    pub(crate) fn set_model(&mut self, call: &SetModel, reply: Reply<SetModel>) {
        match self.models.select(&call.provider, &call.model_id) {
            Ok(changed) => {
                let model = (*changed.model).clone();
                self.tell_model(&changed, Selection::Set, move |session| session.answer(reply, Ok(model)));
            }
            Err(why) => self.answer(reply, Err(why)),
        }
    }

    pub(crate) fn cycle_model(&mut self, reply: Reply<CycleModel>) {
        let Some(changed) = self.models.cycle() else { return self.answer(reply, Ok(None)) };
        let answer = CycledModel {
            thinking_level: self.shown(self.models.level()),
            model: changed.model.clone(),
            is_scoped: changed.is_scoped,
        };
        self.tell_model(&changed, Selection::Cycle, move |session| session.answer(reply, Ok(Some(answer))));
    }

    /// Puts a choice of the host in force; extensions hear of it before the host's answer. The lane is free.
    fn tell_model(
        &mut self,
        changed: &Changed,
        selection: Selection,
        then: impl FnOnce(&mut Session) + Send + 'static,
    ) {
        match self.note_model(changed, selection) {
            Some((handle, payload)) => self.step(async move {
                handle.notify(EventName::ModelSelect, payload).await;
                then
            }),
            None => then(self),
        }
    }

    pub(crate) fn record_model(&mut self, changed: &Changed, selection: Selection) {
        if let Some((handle, payload)) = self.note_model(changed, selection) {
            handle.announce(EventName::ModelSelect, payload);
        }
    }

    /// Writes a choice down; the event, and who is to hear it.
    fn note_model(&mut self, changed: &Changed, selection: Selection) -> Option<(ExtensionHandle, Value)> {
        self.store.append_model_change(&changed.model.provider, &changed.model.id);
        if let Some(level) = changed.level {
            self.record_level(level, changed.previous_level);
        }
        self.report_store();
        self.publish_conditions();
        let is_same = |other: &Arc<Model>| other.provider == changed.model.provider && other.id == changed.model.id;
        if changed.previous.as_ref().is_some_and(is_same) {
            return None;
        }
        let handle = self.listeners(EventName::ModelSelect)?;
        let Changed { model, previous, .. } = changed;
        Some((handle, json!({ "model": model, "previousModel": previous, "source": selection.as_str() })))
    }

    /// Sets the level; hosts hear of it only if the effective level changed.
    pub(crate) fn set_level(&mut self, wanted: ThinkingLevel) {
        let previous = self.models.level();
        if let Some(level) = self.models.set_level(wanted) {
            self.record_level(level, previous);
            self.report_store();
            self.publish_conditions();
        }
    }

    fn record_level(&mut self, level: ThinkingLevel, previous: ThinkingLevel) {
        self.store.append_thinking_level(level);
        self.out.event(&Event::ThinkingLevelChanged { level: self.shown(level) });
        if let Some(handle) = self.listeners(EventName::ThinkingLevelSelect) {
            handle.announce(EventName::ThinkingLevelSelect, json!({ "level": level, "previousLevel": previous }));
        }
    }

    /// A level in words the host knows.
    pub(crate) fn shown(&self, level: ThinkingLevel) -> ThinkingLevel {
        level.min(self.options.highest_level)
    }

    pub(crate) fn shown_levels(&self) -> Vec<ThinkingLevel> {
        let mut levels: Vec<_> = self.models.levels().into_iter().map(|level| self.shown(level)).collect();
        levels.dedup();
        levels
    }

    /// Repairs and failed writes: told once, on the wire and on stderr.
    pub(crate) fn report_store(&mut self) {
        for report in self.store.take_report() {
            self.report(&report);
        }
    }

    pub(crate) fn report(&mut self, report: &StoreReport) {
        log_line(&report.message);
        self.out.event(&Event::ExtensionError {
            extension_path: "<session>",
            event: report.kind.event(),
            error: &report.message,
        });
    }
}

/// One line on stderr for the person who reads logs.
#[allow(clippy::print_stderr, reason = "the log of a headless program")]
pub(crate) fn log_line(text: &str) {
    eprintln!("pith: {text}");
}
