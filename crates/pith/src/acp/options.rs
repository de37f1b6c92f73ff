//! The options of a session: what can be chosen, who changes it, and what the editor knows of it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use pith_acp::acp::{ConfigOptionUpdate, CurrentModeUpdate, Error, SessionConfigOption, SessionUpdate};
use pith_acp::options::{Change, Choices, mode_id};
use pith_protocol::Model;
use pith_protocol::commands::{
    GetAvailableModels, GetAvailableThinkingLevels, GetPermissions, SetAutoCompaction, SetAutoRetry, SetModel,
    SetPermissions, SetThinkingLevel,
};
use pith_protocol::permissions::PermissionMode;

use super::conversation::{Conversation, of_command, window};
use super::outbox::lock;

/// What the editor knows of the options.
#[derive(Default)]
pub struct KnownOptions {
    /// What `set_auto_retry` was told last; the state does not say it.
    auto_retry: Cell<bool>,
    /// The options that the editor was told last.
    told: RefCell<Vec<SessionConfigOption>>,
    /// The mode that the editor was told last.
    mode: Cell<PermissionMode>,
    /// Changes of the editor that are under way: it gets all options with the answers.
    n_changing: Cell<usize>,
    /// Something has changed meanwhile, perhaps after the options for an answer were read.
    was_skipped: Cell<bool>,
}

impl KnownOptions {
    pub fn new(auto_retry: bool) -> Self {
        KnownOptions { auto_retry: Cell::new(auto_retry), ..KnownOptions::default() }
    }
}

/// A change that the editor has asked for. It is over when this is dropped, also if the request is withdrawn.
struct Changing(Rc<Conversation>);

impl Changing {
    fn begin(conversation: &Rc<Conversation>) -> Self {
        let known = &conversation.options;
        known.n_changing.set(known.n_changing.get() + 1);
        Changing(conversation.clone())
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        let known = &self.0.options;
        known.n_changing.set(known.n_changing.get() - 1);
        // The answer is sent first, and what it says is not told again.
        if known.n_changing.get() == 0 && known.was_skipped.take() {
            self.0.clone().follow_options();
        }
    }
}

impl Conversation {
    /// What can be chosen now.
    pub async fn choices(&self) -> Result<Choices, Error> {
        let state = self.state().await?;
        lock(&self.translator).set_window(window(&state));
        let models = tokio::select! {
            biased;
            models = self.seat.ask(GetAvailableModels {}) => models.map_err(of_command)?.models,
            // A handler that asks at the start holds up the list, and its question waits for the session to be named.
            () = self.held_question() => Vec::new(),
        };
        let named = &self.seat.named_models;
        let is_named = |model: &Arc<Model>| {
            named.is_empty() || named.iter().any(|(provider, id)| *provider == model.provider && *id == model.id)
        };
        let models = models.into_iter().filter(is_named).collect();
        let levels = self.seat.ask(GetAvailableThinkingLevels {}).await.map_err(of_command)?.levels;
        let mode = self.seat.ask(GetPermissions {}).await.map_err(of_command)?.mode;
        Ok(Choices {
            mode,
            model: state.model,
            models,
            level: state.thinking_level,
            levels,
            auto_compact: state.auto_compaction_enabled,
            auto_retry: self.options.auto_retry.get(),
        })
    }

    /// Waits for a question that waits for the session to be named.
    async fn held_question(&self) {
        self.questioned.cancelled().await;
        if self.channel.is_released() {
            std::future::pending().await
        }
    }

    /// Carries out a change and returns all options.
    pub async fn change(
        self: &Rc<Self>,
        change: impl FnOnce(&Choices) -> Result<Change, Error>,
    ) -> Result<Vec<SessionConfigOption>, Error> {
        let change = change(&self.choices().await?)?;
        let changing = Changing::begin(self);
        let mode = match change {
            Change::Mode(mode) => Some(mode),
            _ => None,
        };
        let changed = match change {
            Change::Mode(mode) => self.seat.ask(mode_command(mode)).await.map(drop),
            Change::Model { provider, id } => self.seat.ask(SetModel { provider, model_id: id }).await.map(drop),
            Change::Level(level) => self.seat.ask(SetThinkingLevel { level }).await,
            Change::AutoCompact(enabled) => self.seat.ask(SetAutoCompaction { enabled }).await,
            Change::AutoRetry(enabled) => {
                let changed = self.seat.ask(SetAutoRetry { enabled }).await;
                changed.inspect(|()| self.options.auto_retry.set(enabled))
            }
            Change::Nothing => Ok(()),
        };
        let options = self.choices().await.map(|choices| choices.options(&self.client));
        drop(changing);
        changed.map_err(of_command)?;
        if let Some(mode) = mode {
            self.tell_mode(mode);
        }
        options
    }

    /// Called when options may have changed, whoever has changed them: tells the editor as soon as it knows the session.
    pub fn follow_options(self: Rc<Self>) {
        // Not in the way of a question that an extension asks before it lets the models be listed.
        tokio::task::spawn_local(async move {
            tokio::select! {
                biased;
                () = self.channel.released() => self.tell_options().await,
                () = self.seat.ended() => {}
            }
        });
    }

    /// Tells the editor the options, if it knows others. While it changes them itself, they are told afterwards.
    pub async fn tell_options(&self) {
        if self.options.n_changing.get() > 0 {
            return self.options.was_skipped.set(true);
        }
        if let Ok(choices) = self.choices().await {
            let options = choices.options(&self.client);
            if self.note_options(&options) {
                self.channel.update(SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(options)));
            }
            self.tell_mode(choices.mode);
        }
    }

    /// Called when the editor is told the options; returns whether it knew others.
    pub fn note_options(&self, options: &[SessionConfigOption]) -> bool {
        self.options.told.replace(options.to_owned()) != options
    }

    /// Tells the editor the mode, if it knows another.
    fn tell_mode(&self, mode: PermissionMode) {
        if self.options.mode.replace(mode) != mode {
            self.channel.update(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode_id(mode))));
        }
    }

    /// Called when the editor is told the mode with an answer.
    pub fn note_mode(&self, mode: PermissionMode) {
        self.options.mode.set(mode);
    }
}

fn mode_command(mode: PermissionMode) -> SetPermissions {
    SetPermissions { mode: Some(mode), allow: None, ask: None, deny: None, forget: None }
}
