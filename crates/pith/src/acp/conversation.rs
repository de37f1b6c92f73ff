//! A session and the editor that has it open.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use pith_acp::acp::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, Error, Notice, NoticeSeverity, SessionId,
    SessionUpdate, UnstructuredCommandInput,
};
use pith_acp::replay::{Replay, Totals, turns};
use pith_acp::{Client, error, plan};
use pith_protocol::answers::{Diagnostic, DiagnosticKind, Diagnostics, State};
use pith_protocol::commands::{GetCommands, GetDiagnostics, GetState, NavigateTree, SetMcpServers};
use pith_protocol::{CommandError, ErrorCode};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::channel::Channel;
use super::options::KnownOptions;
use super::outbox::{SharedTranslator, lock};
use super::place::ToolPlace;
use super::requests::Requests;
use super::servers::{self, Servers};
use super::slash::SlashCommand;
use super::turn::TurnRequest;
use crate::hub::Seat;

/// How much is kept of what an editor could not show.
const MAX_UNSHOWN: usize = 100;

/// How many bytes of a replay are sent at once. To wake the thread that writes takes as long as to make several frames.
const REPLAY_PIECE: usize = 64 << 10;

/// A session that an editor has open.
pub struct Conversation {
    pub seat: Rc<Seat>,
    /// Directories of the session beside that of the seat.
    pub additional_directories: Vec<PathBuf>,
    pub channel: Arc<Channel>,
    pub translator: SharedTranslator,
    pub client: Rc<Client>,
    /// Questions to the editor.
    pub requests: Arc<Requests>,
    /// To the task that takes prompts, which ends with the session.
    pub turns: mpsc::UnboundedSender<TurnRequest>,
    pub(super) options: KnownOptions,
    /// Fired when the user is to be asked something.
    pub questioned: CancellationToken,
    /// The slash commands that the editor was told last.
    commands: RefCell<Option<Vec<AvailableCommand>>>,
    /// The names of those that the session has, which come before pith's own.
    names: RefCell<HashSet<String>>,
    /// Sign-ins whose pages the editor shows: their ids by the name of the MCP server.
    pub sign_ins: RefCell<HashMap<String, String>>,
    /// Dialogs and notices that the editor could not show.
    unshown: RefCell<Vec<Diagnostic>>,
}

impl Conversation {
    pub fn new(
        seat: Rc<Seat>,
        additional_directories: Vec<PathBuf>,
        channel: Arc<Channel>,
        translator: SharedTranslator,
        client: Rc<Client>,
        requests: Arc<Requests>,
        turns: mpsc::UnboundedSender<TurnRequest>,
    ) -> Self {
        let options = KnownOptions::new(seat.settings.retry.enabled);
        lock(&translator).set_place(Arc::new(ToolPlace(seat.workbench.clone())));
        Conversation {
            seat,
            additional_directories,
            channel,
            translator,
            client,
            requests,
            turns,
            options,
            questioned: CancellationToken::new(),
            commands: RefCell::default(),
            names: RefCell::default(),
            sign_ins: RefCell::default(),
            unshown: RefCell::default(),
        }
    }

    /// The session as the editor names it.
    pub fn session_id(&self) -> SessionId {
        SessionId::new(self.seat.id.clone())
    }

    /// Whether nothing has been said in it yet.
    pub async fn is_new(&self) -> Result<bool, Error> {
        Ok(self.seat.branch().await.map_err(of_command)?.messages().next().is_none())
    }

    /// Tells the editor which slash commands there are, also if it was told before.
    pub async fn repeat_commands(&self) {
        self.commands.take();
        self.tell_commands().await;
    }

    /// Tells the editor which slash commands there are, if it does not know.
    pub async fn tell_commands(&self) {
        let Ok(offered) = self.seat.ask(GetCommands {}).await else { return };
        let command = |offered: pith_protocol::answers::OfferedCommand| {
            let description =
                offered.description.filter(|text| !text.is_empty()).unwrap_or_else(|| offered.name.clone());
            let input = AvailableCommandInput::Unstructured(UnstructuredCommandInput::new("arguments"));
            AvailableCommand::new(offered.name, description).input(input)
        };
        let mut commands: Vec<_> = offered.commands.into_iter().map(command).collect();
        let names = commands.iter().map(|command| command.name.clone()).collect();
        let own = SlashCommand::offered().filter(|own| !commands.iter().any(|command| command.name == own.name));
        commands = own.chain(commands.iter().cloned()).collect();
        self.names.replace(names);
        let known = self.commands.replace(Some(commands.clone()));
        if known.as_ref() != Some(&commands) {
            self.channel.update(SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands)));
        }
    }

    /// Reads a prompt as a slash command of pith's own. Templates and commands of extensions of that name win.
    pub fn slash_command(&self, prompt: &str) -> Option<SlashCommand> {
        SlashCommand::of(prompt).filter(|command| !self.names.borrow().contains(command.name()))
    }

    /// Whether a text calls a slash command of the session: of an extension, a template, a skill, an MCP prompt.
    pub fn has_command(&self, text: &str) -> bool {
        let name = text.strip_prefix('/').and_then(|line| line.split(char::is_whitespace).next());
        name.is_some_and(|name| self.names.borrow().contains(name))
    }

    /// Tells the editor the plan as it is now.
    pub async fn tell_plan(&self) {
        if let Ok(state) = self.state().await {
            self.channel.update(SessionUpdate::Plan(plan(&state.todo_phases)));
        }
    }

    /// Warns the user: beside the conversation where the editor shows such notices, otherwise on stderr.
    pub fn say(&self, title: &str, description: &str) {
        if self.client.shows_notices() {
            let notice = Notice::new(NoticeSeverity::Warning, title).description(description.to_owned());
            return self.channel.update(SessionUpdate::Notice(notice));
        }
        self.channel.warn(&format!("{title}: {description}"));
    }

    /// Tells the user of a dialog that the editor cannot show, and keeps it for `_pith/diagnostics`.
    pub fn note_unshown(&self, text: &str, dialog: &str) {
        self.say(text, dialog);
        self.keep_unshown("dialog_unshown", format!("{text}: {dialog}"));
    }

    /// Keeps something that the editor could not show for `_pith/diagnostics`: the newest of it, each once.
    pub fn keep_unshown(&self, code: &str, message: String) {
        let code = code.to_owned();
        let note = Diagnostic { kind: DiagnosticKind::Warning, message, path: None, code, collision: None };
        let mut unshown = self.unshown.borrow_mut();
        unshown.retain(|known| *known != note);
        unshown.push(note);
        let n_old = unshown.len().saturating_sub(MAX_UNSHOWN);
        unshown.drain(..n_old);
    }

    /// What is wrong in the session, and what its editor could not show.
    pub async fn diagnostics(&self) -> Result<Diagnostics, CommandError> {
        let mut found = self.seat.ask(GetDiagnostics {}).await?;
        found.diagnostics.extend(self.unshown.borrow().iter().cloned());
        Ok(found)
    }

    /// Gives the session the MCP servers of the editor; an empty list leaves it the ones it has.
    pub async fn set_servers(&self, servers: Servers) -> Result<(), Error> {
        if servers.is_empty() {
            return Ok(());
        }
        let set = self.seat.ask(SetMcpServers { servers: servers.clone(), wait: None }).await;
        set.map(drop).map_err(|failure| servers::refusal(&servers, &failure.text))
    }

    /// Moves the conversation back before a prompt.
    pub async fn go_before(&self, prompt: &str) -> Result<(), CommandError> {
        let command = NavigateTree {
            target_id: prompt.to_owned(),
            summarize: None,
            custom_instructions: None,
            replace_instructions: None,
            label: None,
            restore_files: None,
        };
        self.seat.ask(command).await.map(drop)
    }

    /// Closes the session: cancels its turn, and returns when nothing of it is left.
    pub async fn close(&self) {
        self.cancel();
        self.seat.close().await;
    }

    /// Cancels the turn that runs and those that wait.
    pub fn cancel(&self) {
        // The task that takes it ends with the session.
        let _ = self.turns.send(TurnRequest::Cancel);
    }

    /// Sends the stored conversation, as fast as the editor reads, if `shows` says so; in any case takes from it what
    /// later updates depend on.
    pub async fn replay(&self, shows: bool) -> Result<(), Error> {
        let state = self.state().await?;
        if shows {
            self.channel.expect_replay();
        }
        let branch = self.seat.branch().await.map_err(of_command)?;
        let underway = self.channel.take_underway();
        let place = ToolPlace(self.seat.workbench.clone());
        let counted = lock(&self.translator).cost();
        let looks = lock(&self.translator).looks().clone();
        let mut replay = Replay { place: &place, client: &self.client, looks, underway };
        let (mut totals, mut frames) = (Totals::default(), Vec::new());
        for turn in turns(branch.messages()) {
            turn.iter().for_each(|(_, message)| totals.add(message));
            if shows {
                replay.updates(turn).into_iter().for_each(|update| self.channel.append(&mut frames, update));
                if frames.len() < REPLAY_PIECE {
                    continue;
                }
                self.channel.send_all(&mut frames);
                self.channel.room().wait().await;
            }
            // The thread is that of all sessions, and a request to cancel is read on it too.
            tokio::task::yield_now().await;
        }
        {
            let mut translator = lock(&self.translator);
            // What was spent since is not in the branch.
            let since = translator.cost() - counted;
            translator.set_cost(totals.cost + since);
            translator.set_updated(totals.updated());
            if totals.has_title() || state.session_name.is_some() {
                translator.set_titled();
            }
        }
        if shows {
            replay.rest().into_iter().for_each(|update| self.channel.append(&mut frames, update));
            let window = window(&state);
            let last = totals.updates(window, state.session_name).into_iter();
            last.for_each(|update| self.channel.append(&mut frames, update));
            self.channel.send_all(&mut frames);
        }
        Ok(())
    }

    pub(super) async fn state(&self) -> Result<State, Error> {
        self.seat.ask(GetState {}).await.map_err(of_command)
    }
}

/// The tokens that the model in use can take; 0 if there is none.
pub(super) fn window(state: &State) -> u64 {
    state.model.as_ref().map_or(0, |model| model.context_window)
}

/// A refused command as an error of the protocol.
pub fn of_command(failure: CommandError) -> Error {
    match failure.code {
        ErrorCode::NoModel | ErrorCode::ModelUnusable => error::auth_required(failure.text),
        ErrorCode::MissingField | ErrorCode::InvalidField => error::invalid_params("params", failure.text),
        _ => error::internal(failure.text),
    }
}
