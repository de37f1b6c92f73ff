//! Opening, closing and listing sessions for an editor.

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use pith_acp::acp::{
    CloseSessionResponse, DeleteSessionResponse, Error, ForkSessionRequest, ForkSessionResponse, ListSessionsRequest,
    LoadSessionRequest, LoadSessionResponse, NewSessionRequest, NewSessionResponse, ResumeSessionRequest,
    ResumeSessionResponse, SessionConfigOption, SessionId, SessionModeState, SessionStatus, SessionStatusResponse,
    SetSessionTitleRequest, SetSessionTitleResponse,
};
use pith_acp::error::{auth_required, cancelled, internal, invalid_params};
use pith_acp::options::Choices;
use pith_acp::params;
use pith_acp::updates::Translator;
use pith_protocol::commands::{GetForkMessages, SetSessionName};
use pith_protocol::{Announcement, Inbound};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::agent::Agent;
use super::bridge::EditorBridge;
use super::channel::Channel;
use super::conversation::{Conversation, of_command};
use super::dialogs::Dialogs;
use super::host_tools::HostTools;
use super::launch::{Wanted, Which, absolute, refusal};
use super::outbox::AcpOutbox;
use super::responder::Responder;
use super::{saved, servers, turns};
use crate::hub::Seat;

/// What an editor is told when no model can be used.
const NO_KEY: &str = "No model has a key. Set one with `pith auth set PROVIDER`, or in the environment, \
                      such as ANTHROPIC_API_KEY or OPENAI_API_KEY, and try again";

/// What a request to open a session says about it. Four requests have the same fields and no type in common.
macro_rules! wanted {
    ($request:ident) => {
        Wanted {
            cwd: $request.cwd,
            additional_directories: $request.additional_directories,
            mcp_servers: $request.mcp_servers,
            system_prompt: $request.system_prompt,
            meta: $request.meta,
        }
    };
}

impl Agent {
    pub(super) async fn new_session(self: Rc<Self>, params: Value, responder: Responder) {
        let opened = async {
            let request: NewSessionRequest = params::read(params)?;
            let wanted = wanted!(request);
            self.open(wanted, Which::New, Shown::No).await
        };
        self.answer_opened(responder, opened, |id, offered| {
            NewSessionResponse::new(id).modes(offered.modes).config_options(offered.options)
        })
        .await;
    }

    pub(super) async fn load_session(self: Rc<Self>, params: Value, responder: Responder) {
        let opened = async {
            let request: LoadSessionRequest = params::read(params)?;
            let wanted = wanted!(request);
            self.open_saved(&request.session_id, wanted, Shown::Replayed).await
        };
        self.answer_opened(responder, opened, |_, offered| {
            LoadSessionResponse::new().modes(offered.modes).config_options(offered.options)
        })
        .await;
    }

    pub(super) async fn resume_session(self: Rc<Self>, params: Value, responder: Responder) {
        let opened = async {
            let request: ResumeSessionRequest = params::read(params)?;
            let wanted = wanted!(request);
            self.open_saved(&request.session_id, wanted, Shown::No).await
        };
        self.answer_opened(responder, opened, |_, offered| {
            ResumeSessionResponse::new().modes(offered.modes).config_options(offered.options)
        })
        .await;
    }

    pub(super) async fn fork_session(self: Rc<Self>, params: Value, responder: Responder) {
        let opened = async {
            let request: ForkSessionRequest = params::read(params)?;
            let id = request.session_id.clone();
            let wanted = wanted!(request);
            match self.conversation(&id) {
                // Nothing has been said in it, so it has no file.
                Ok(source) if !source.seat.is_closing() && source.is_new().await? => {
                    self.open(wanted, Which::Like(&source.choices().await?), Shown::No).await
                }
                _ => self.open(wanted, Which::CopyOf(&self.find(id).await?), Shown::No).await,
            }
        };
        self.answer_opened(responder, opened, |id, offered| {
            ForkSessionResponse::new(id).modes(offered.modes).config_options(offered.options)
        })
        .await;
    }

    /// Copies a session up to before a prompt, and answers that prompt for editing.
    pub(super) async fn fork_before(self: Rc<Self>, params: Value, responder: Responder) {
        let text = Cell::new(String::new());
        let opened = async {
            let ForkBefore { session_id, entry_id } = params::read(params)?;
            let seat = self.conversation(&session_id)?.seat.clone();
            let prompts = seat.ask(GetForkMessages {}).await.map_err(of_command)?.messages;
            let Some(prompt) = prompts.into_iter().find(|prompt| prompt.entry_id == entry_id) else {
                return Err(invalid_params("entryId", format!("There is no prompt with the id {entry_id}")));
            };
            text.set(prompt.text);
            let source = self.find(session_id).await?;
            let wanted = Wanted { cwd: seat.cwd.clone(), ..Wanted::default() };
            let opened = self.open(wanted, Which::CopyOf(&source), Shown::No).await?;
            // Entries keep their ids in the copy.
            let copy = CloseUnlessKept::new(&opened.conversation, Origin::Copied);
            opened.conversation.go_before(&entry_id).await.map_err(of_command)?;
            copy.keep();
            Ok(opened)
        };
        self.answer_opened(responder, opened, |session_id, offered| {
            let (text, Offered { modes, options }) = (text.take(), offered);
            json!({"sessionId": session_id, "text": text, "modes": modes, "configOptions": options})
        })
        .await;
    }

    pub(super) async fn list_sessions(self: Rc<Self>, params: Value) -> Result<impl Serialize, Error> {
        let request: ListSessionsRequest = params::read(params)?;
        request.cwd.as_deref().map_or(Ok(()), |cwd| absolute("cwd", cwd))?;
        let places = self.launch.places(request.cwd.as_deref());
        let mut listed = blocking(move || saved::list(&request, &places)).await?;
        // Session files do not say them.
        for info in &mut listed.sessions {
            if let Ok(conversation) = self.conversation(&info.session_id) {
                info.additional_directories.clone_from(&conversation.additional_directories);
            }
        }
        Ok(listed)
    }

    /// Closes a session: everything of it has ended when this is answered.
    pub(super) async fn close_session(self: Rc<Self>, id: SessionId) -> Result<CloseSessionResponse, Error> {
        self.conversation(&id)?.close().await;
        Ok(CloseSessionResponse::new())
    }

    pub(super) async fn delete_session(self: Rc<Self>, id: SessionId) -> Result<DeleteSessionResponse, Error> {
        if let Ok(conversation) = self.conversation(&id) {
            conversation.close().await;
        }
        let places = self.launch.places(None);
        blocking(move || saved::remove(&id.0, &places)).await?;
        Ok(DeleteSessionResponse::new())
    }

    pub(super) async fn set_title(self: Rc<Self>, params: Value) -> Result<SetSessionTitleResponse, Error> {
        let SetSessionTitleRequest { session_id, title, .. } = params::read(params)?;
        let title = title.trim().to_owned();
        if title.is_empty() {
            return Err(invalid_params("title", "The title is empty"));
        }
        let Ok(conversation) = self.conversation(&session_id) else {
            let places = self.launch.places(None);
            return blocking(move || saved::set_title(&session_id.0, &title, &places)).await;
        };
        conversation.seat.ask(SetSessionName { name: title.clone() }).await.map_err(of_command)?;
        Ok(SetSessionTitleResponse::new(title))
    }

    pub(super) async fn session_status(self: Rc<Self>, id: SessionId) -> Result<SessionStatusResponse, Error> {
        if self.conversation(&id).is_ok() {
            return Ok(SessionStatusResponse::new(SessionStatus::Open));
        }
        self.find(id).await?;
        Ok(SessionStatusResponse::new(SessionStatus::Saved))
    }

    /// The file of a session, open or not.
    async fn find(&self, id: SessionId) -> Result<PathBuf, Error> {
        let places = self.launch.places(None);
        Ok(blocking(move || saved::find(&id.0, &places)).await?.path)
    }

    /// Opens a session that exists. One that is open already is only shown again.
    async fn open_saved(self: &Rc<Self>, id: &SessionId, wanted: Wanted, shown: Shown) -> Result<Opened, Error> {
        self.launch.check(&wanted)?;
        // A request that comes while another one opens the session finds it open.
        let _turn = self.turn_to_open(id).await;
        if let Some(conversation) = self.conversation(id).ok().filter(|conversation| !conversation.seat.is_closing()) {
            saved::check_directory(&conversation.seat.cwd, &wanted.cwd)?;
            conversation.set_servers(servers::configuration(&wanted.mcp_servers)?).await?;
            if shown == Shown::Replayed {
                let _hold = conversation.channel.hold();
                conversation.replay(true).await?;
            }
            let offered = Offered::of(&conversation, &conversation.choices().await?);
            return Ok(Opened { conversation, offered });
        }
        self.hub.wait_for_end(&id.0).await;
        let (places, cwd, id) = (self.launch.places(Some(&wanted.cwd)), wanted.cwd.clone(), id.clone());
        let path = blocking(move || saved::find_in(&id.0, &places, &cwd)).await?;
        self.open(wanted, Which::Saved(&path), shown).await
    }

    async fn open(self: &Rc<Self>, wanted: Wanted, which: Which<'_>, shown: Shown) -> Result<Opened, Error> {
        let servers = servers::configuration(&wanted.mcp_servers)?;
        let client = self.client();
        let request = self.launch.request(&wanted, &which)?;
        let roots = request.additional_roots.clone();
        let (notices, heard) = mpsc::unbounded_channel();
        let mut parts = None;
        let seat = self.hub.open(request, |opened| {
            let channel = Arc::new(Channel::held(&opened.session_name().id, self.queue.clone()));
            let translator = Translator::new(opened.cwd().to_owned(), (*client).clone());
            let translator = Arc::new(Mutex::new(translator));
            parts = Some((channel.clone(), translator.clone()));
            AcpOutbox::new(translator, channel, notices, &client)
        });
        let seat = seat.await.map_err(|failure| refusal(&failure, &wanted))?;
        let (channel, translator) = parts.ok_or_else(|| internal("Internal error: the session has no outbox"))?;
        let directories: Vec<PathBuf> = [seat.cwd.clone()].into_iter().chain(roots.clone()).collect();
        let bridge = EditorBridge::of(&client, &seat.settings.acp, &seat.id, self.requests.clone(), &directories);
        if let Some(bridge) = bridge {
            seat.workbench.set_bridge(Arc::new(bridge));
        }
        let (turns, requests) = mpsc::unbounded_channel();
        let conversation =
            Rc::new(Conversation::new(seat, roots, channel, translator, client, self.requests.clone(), turns));
        let origin = match which {
            Which::CopyOf(_) => Origin::Copied,
            // A new one has no file before its first prompt.
            Which::New | Which::Like(_) | Which::Saved(_) => Origin::Own,
        };
        let guard = CloseUnlessKept::new(&conversation, origin);
        let dialogs = Dialogs::new(conversation.clone());
        let host_tools = HostTools::new(conversation.clone());
        tokio::task::spawn_local(turns::serve(conversation.clone(), dialogs, host_tools, requests, heard));
        // The list of models waits for extensions, whose tools the replay shows by their labels.
        let choices = conversation.choices().await?;
        if choices.model.is_none() && choices.models.is_empty() && !self.launch.names_model() {
            return Err(auth_required(NO_KEY).data(json!({"authMethods": self.auth_methods()})));
        }
        // Before the replay, which is for a session that is opened and not for one that is refused.
        conversation.set_servers(servers).await?;
        conversation.replay(shown == Shown::Replayed).await?;
        self.keep(conversation.clone());
        guard.keep();
        Ok(Opened { offered: Offered::of(&conversation, &choices), conversation })
    }

    /// Answers a request that opens a session; its updates follow the answer.
    async fn answer_opened<T: Serialize>(
        &self,
        responder: Responder,
        opened: impl Future<Output = Result<Opened, Error>>,
        response: impl FnOnce(SessionId, Offered) -> T,
    ) {
        let cancel = responder.cancel.clone();
        let opened = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(cancelled()),
            opened = opened => opened,
        };
        match opened {
            Ok(Opened { conversation, offered }) => {
                responder.succeed(&response(SessionId::new(conversation.seat.id.clone()), offered));
                conversation.channel.release();
                let announced = Announcement { shows_dialogs: true, takes_permission_requests: true };
                // Now a question about trust can be asked.
                conversation.seat.send(Inbound::Announced(announced)).await;
                conversation.repeat_commands().await;
            }
            Err(error) => responder.fail(&error),
        }
    }
}

/// Parameters of `_pith/fork`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ForkBefore {
    session_id: SessionId,
    entry_id: String,
}

/// A session that was opened, with what its answer says.
struct Opened {
    conversation: Rc<Conversation>,
    offered: Offered,
}

/// What can be chosen in a session.
struct Offered {
    modes: SessionModeState,
    options: Vec<SessionConfigOption>,
}

impl Offered {
    fn of(conversation: &Conversation, choices: &Choices) -> Offered {
        let options = choices.options(&conversation.client);
        conversation.note_mode(choices.mode);
        conversation.note_options(&options);
        Offered { modes: choices.modes(), options }
    }
}

/// What the editor gets of the conversation so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    No,
    Replayed,
}

/// Whose file a session has that is being opened.
#[derive(Clone, Copy)]
enum Origin {
    /// Its own, if it has one.
    Own,
    /// A copy that was made for the request, which alone would tell of it.
    Copied,
}

/// Closes a session whose opening failed or was withdrawn; of a copy nothing stays.
struct CloseUnlessKept {
    seat: Option<Rc<Seat>>,
    origin: Origin,
}

impl CloseUnlessKept {
    fn new(conversation: &Conversation, origin: Origin) -> Self {
        CloseUnlessKept { seat: Some(conversation.seat.clone()), origin }
    }

    fn keep(mut self) {
        self.seat = None;
    }
}

impl Drop for CloseUnlessKept {
    fn drop(&mut self) {
        match (self.seat.take(), self.origin) {
            (None, _) => {}
            (Some(seat), Origin::Own) => seat.begin_to_close(),
            (Some(seat), Origin::Copied) => seat.discard(),
        }
    }
}

/// Runs what reads or writes files on a thread that may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(internal(format!("Internal error: {error}"))))
}
