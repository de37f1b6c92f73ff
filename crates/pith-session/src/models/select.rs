//! Selecting models and thinking levels: recorded in the session, announced to extensions and the host.

use std::sync::Arc;

use pith_ext::{EventName, ExtensionHandle};
use pith_protocol::answers::CycledModel;
use pith_protocol::commands::{CycleModel, SetModel};
use pith_protocol::{Event, Model, ThinkingLevel};
use serde_json::{Value, json};

use super::Changed;
use crate::admission::Step;
use crate::reply::Reply;
use crate::session::Session;

/// How a model was selected, as `model_select` reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    Set,
    Cycle,
}

/// The answer to `set_model` or `cycle_model`, sent after extensions were told.
pub(crate) enum ModelAnswer {
    Set(Reply<SetModel>, Box<Model>),
    Cycle(Reply<CycleModel>, CycledModel),
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
    pub(crate) fn set_model(&mut self, call: &SetModel, reply: Reply<SetModel>) {
        match self.models.select(&call.provider, &call.model_id) {
            Ok(changed) => {
                let model = Box::new((*changed.model).clone());
                self.tell_model(&changed, Selection::Set, ModelAnswer::Set(reply, model));
            }
            Err(why) => self.answer(reply, Err(why)),
        }
    }

    pub(crate) fn cycle_model(&mut self, reply: Reply<CycleModel>) {
        let Some(changed) = self.models.cycle() else { return self.answer(reply, Ok(None)) };
        let answer = CycledModel {
            thinking_level: self.level_for_host(self.models.level()),
            model: changed.model.clone(),
            is_scoped: changed.is_scoped,
        };
        self.tell_model(&changed, Selection::Cycle, ModelAnswer::Cycle(reply, answer));
    }

    /// Records a selection of the host. Extensions are told before the host is answered. No step is under way.
    fn tell_model(&mut self, changed: &Changed, selection: Selection, answer: ModelAnswer) {
        match self.record_choice(changed, selection) {
            Some((handle, payload)) => self.begin_step(async move {
                handle.notify(EventName::ModelSelect, payload).await;
                Step::ModelTold(answer)
            }),
            None => self.answer_model(answer),
        }
    }

    pub(crate) fn answer_model(&mut self, answer: ModelAnswer) {
        match answer {
            ModelAnswer::Set(reply, model) => self.answer(reply, Ok(*model)),
            ModelAnswer::Cycle(reply, answer) => self.answer(reply, Ok(Some(answer))),
        }
    }

    /// Records a selection without waiting for extensions.
    pub(crate) fn record_model(&mut self, changed: &Changed, selection: Selection) {
        if let Some((handle, payload)) = self.record_choice(changed, selection) {
            handle.announce(EventName::ModelSelect, payload);
        }
    }

    /// Records a selection; returns the event and the extensions that listen for it.
    fn record_choice(&mut self, changed: &Changed, selection: Selection) -> Option<(ExtensionHandle, Value)> {
        self.store.append_model_change(&changed.model.provider, &changed.model.id);
        if let Some(level) = changed.level {
            self.record_level(level, changed.previous_level);
        }
        self.report_store();
        self.update_call_options();
        self.out.options_changed();
        let is_same = |other: &Arc<Model>| other.provider == changed.model.provider && other.id == changed.model.id;
        if changed.previous.as_ref().is_some_and(is_same) {
            return None;
        }
        let handle = self.listeners(EventName::ModelSelect)?;
        let Changed { model, previous, .. } = changed;
        Some((handle, json!({ "model": model, "previousModel": previous, "source": selection.as_str() })))
    }

    /// Sets the level; the host is told only if the effective level changed.
    pub(crate) fn set_level(&mut self, wanted: ThinkingLevel) {
        let previous = self.models.level();
        if let Some(level) = self.models.set_level(wanted) {
            self.record_level(level, previous);
            self.report_store();
            self.update_call_options();
            self.out.options_changed();
        }
    }

    fn record_level(&mut self, level: ThinkingLevel, previous: ThinkingLevel) {
        self.store.append_thinking_level(level);
        self.out.event(&Event::ThinkingLevelChanged { level: self.level_for_host(level) });
        if let Some(handle) = self.listeners(EventName::ThinkingLevelSelect) {
            handle.announce(EventName::ThinkingLevelSelect, json!({ "level": level, "previousLevel": previous }));
        }
    }

    /// Records the level on a branch that says another one, as after a move in the tree, so that a restart finds what
    /// the prompt ran with. A recorded level that this model only lowers stays for the next model.
    pub(crate) fn record_level_of_branch(&mut self) {
        let recorded = self.store.settings().thinking_level.as_deref().and_then(ThinkingLevel::parse);
        let level = self.models.level();
        let effective = recorded.zip(self.models.current()).map(|(recorded, model)| model.clamp_thinking(recorded));
        if effective.is_some_and(|effective| effective != level) {
            self.store.append_thinking_level(level);
        }
    }

    /// Limits a level to those the host knows.
    pub(crate) fn level_for_host(&self, level: ThinkingLevel) -> ThinkingLevel {
        level.min(self.options.highest_level)
    }

    pub(crate) fn levels_for_host(&self) -> Vec<ThinkingLevel> {
        let mut levels: Vec<_> = self.models.levels().into_iter().map(|level| self.level_for_host(level)).collect();
        levels.dedup();
        levels
    }
}
