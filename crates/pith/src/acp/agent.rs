//! Takes frames of the editor and sees to it that every request is answered.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use pith_acp::acp::{
    AuthMethod, AuthenticateRequest, AuthenticateResponse, CancelNotification, CloseSessionRequest,
    DeleteSessionRequest, Error, InitializeRequest, PromptRequest, SessionId, SessionStatusRequest,
    SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse,
};
use pith_acp::client::{Client, greeting};
use pith_acp::error::{cancelled, invalid_params, invalid_request, no_session, unknown_method};
use pith_acp::options::Choices;
use pith_acp::params;
use pith_acp::prompt::{PromptInput, PromptPlace, convert};
use pith_acp::wire::{Incoming, RequestId, append_answer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;
use tracing::{debug, trace};

use super::conversation::Conversation;
use super::launch::Launch;
use super::requests::Requests;
use super::responder::{InFlight, Responder};
use super::turn::TurnRequest;
use crate::cli::SIGN_IN;
use crate::hub::Hub;
use crate::transport::writer::FrameQueue;

/// How long requests may take once no other can come.
const LAST_ANSWERS: Duration = Duration::from_secs(3);

/// The program as an editor sees it.
pub struct Agent {
    pub(super) launch: Launch,
    pub(super) hub: Rc<Hub>,
    pub(super) queue: Arc<FrameQueue>,
    in_flight: InFlight,
    pub(super) requests: Arc<Requests>,
    /// `None` before `initialize`.
    client: RefCell<Option<Rc<Client>>>,
    conversations: RefCell<HashMap<String, Rc<Conversation>>>,
    /// Held by the request that opens a saved session.
    openings: RefCell<HashMap<String, Arc<Mutex<()>>>>,
}

/// Parameters of the method that older editors select models with (avante).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetModelRequest {
    session_id: SessionId,
    model_id: String,
}

impl Agent {
    pub fn new(launch: Launch, queue: Arc<FrameQueue>) -> Self {
        Agent {
            launch,
            hub: Rc::default(),
            requests: Arc::new(Requests::new(queue.clone())),
            queue,
            in_flight: InFlight::default(),
            client: RefCell::default(),
            conversations: RefCell::default(),
            openings: RefCell::default(),
        }
    }

    /// Takes one frame. What has to be waited for becomes a task.
    pub fn handle(self: &Rc<Self>, incoming: Incoming) {
        match incoming {
            Incoming::Request { id, method, params } => {
                debug!(target: "pith::acp", method, "request");
                // Other parameters may have keys of MCP servers in them.
                if method == "session/prompt" {
                    trace!(target: "pith::acp", prompt = %params["prompt"], "words of the user");
                }
                if let Some(responder) = Responder::new(id, &self.queue, &self.in_flight) {
                    self.request(&method, params, responder);
                }
            }
            Incoming::Notification { method, params } => self.notification(&method, params),
            Incoming::Answer { id, result } => self.requests.answer(&id, result),
            Incoming::Refused { id, error } => self.queue.push(|out| append_answer(out, &id, Err(&error))),
        }
    }

    /// The client; a default one before `initialize`, which no request gets past.
    pub(super) fn client(&self) -> Rc<Client> {
        self.client.borrow().clone().unwrap_or_default()
    }

    /// The open session of that id.
    pub(super) fn conversation(&self, id: &SessionId) -> Result<Rc<Conversation>, Error> {
        self.conversations.borrow().get(&*id.0).cloned().ok_or_else(|| no_session(&id.0))
    }

    /// Waits until no other request opens that session.
    pub(super) async fn turn_to_open(&self, id: &SessionId) -> OwnedMutexGuard<()> {
        let turn = {
            let mut openings = self.openings.borrow_mut();
            openings.retain(|_, turn| Arc::strong_count(turn) > 1);
            openings.entry(id.0.to_string()).or_default().clone()
        };
        turn.lock_owned().await
    }

    /// All open sessions.
    pub(super) fn open_conversations(&self) -> Vec<Rc<Conversation>> {
        self.conversations.borrow().values().cloned().collect()
    }

    /// Takes a session that was opened. It is forgotten when it ends, whoever ends it.
    pub(super) fn keep(self: &Rc<Self>, conversation: Rc<Conversation>) {
        let (agent, seat) = (self.clone(), conversation.seat.clone());
        self.conversations.borrow_mut().insert(seat.id.clone(), conversation);
        tokio::task::spawn_local(async move {
            seat.ended().await;
            agent.conversations.borrow_mut().remove(&seat.id);
        });
    }

    /// Called when the editor has got its last frame.
    pub fn end(&self) {
        self.hub.end();
    }

    /// Called when no request can come any more. Prompts are cancelled; what else the editor has asked for before it
    /// closed its end is done, for a while, unless `stop` is fired.
    pub async fn answer_last(&self, stop: &CancellationToken) {
        self.conversations.borrow().values().for_each(|conversation| conversation.cancel());
        tokio::select! {
            () = self.in_flight.all_answered() => {}
            () = stop.cancelled() => {}
            () = tokio::time::sleep(LAST_ANSWERS) => {}
        }
    }

    /// Withdraws the requests under way and ends all sessions.
    pub async fn shut_down(&self) {
        self.in_flight.cancel_all();
        self.hub.close_all().await;
        self.in_flight.all_answered().await;
        // The tasks that answer are woken by the end of their sessions.
        while !self.conversations.borrow().is_empty() {
            tokio::task::yield_now().await;
        }
    }

    fn request(self: &Rc<Self>, method: &str, params: Value, responder: Responder) {
        if method == "initialize" {
            return responder.send(self.initialize(params));
        }
        if self.client.borrow().is_none() {
            return responder.fail(&invalid_request("Call initialize first"));
        }
        let agent = self.clone();
        match method {
            "authenticate" => responder.send(self.authenticate(params)),
            "session/new" => spawn(agent.new_session(params, responder)),
            "session/load" => spawn(agent.load_session(params, responder)),
            "session/resume" => spawn(agent.resume_session(params, responder)),
            "session/fork" => spawn(agent.fork_session(params, responder)),
            "session/list" => answer(responder, agent.list_sessions(params)),
            "session/set_title" => answer(responder, agent.set_title(params)),
            "session/close" => {
                self.with(responder, params, |request: CloseSessionRequest| agent.close_session(request.session_id))
            }
            "session/delete" => {
                self.with(responder, params, |request: DeleteSessionRequest| agent.delete_session(request.session_id))
            }
            "session/status" => {
                self.with(responder, params, |request: SessionStatusRequest| agent.session_status(request.session_id))
            }
            "session/prompt" => self.prompt(params, responder),
            "_session/steering" => self.steering(params, responder),
            "session/set_mode" => answer(responder, agent.set_mode(params)),
            "session/set_config_option" => answer(responder, agent.set_config_option(params)),
            "session/set_model" => answer(responder, agent.set_model(params)),
            "_pith/fork" => spawn(agent.fork_before(params, responder)),
            _ if method.starts_with("_pith/") => answer(responder, agent.own_method(method.to_owned(), params)),
            _ => responder.fail(&unknown_method(method)),
        }
    }

    fn notification(&self, method: &str, params: Value) {
        match method {
            "session/cancel" => {
                let Ok(request) = params::read::<CancelNotification>(params) else { return };
                if let Ok(conversation) = self.conversation(&request.session_id) {
                    conversation.cancel();
                }
            }
            "$/cancel_request" => {
                let Some(id) = params.get("requestId") else { return };
                self.in_flight.cancel(&RequestId::of_value(id));
                for conversation in self.conversations.borrow().values() {
                    let _ = conversation.turns.send(TurnRequest::Withdrawn);
                }
            }
            _ => debug!(target: "pith::acp", method, "unknown notification"),
        }
    }

    /// Reads the parameters, then answers with what the work returns.
    fn with<P, T, F>(&self, responder: Responder, params: Value, work: impl FnOnce(P) -> F)
    where
        P: serde::de::DeserializeOwned,
        T: Serialize + 'static,
        F: Future<Output = Result<T, Error>> + 'static,
    {
        match params::read(params) {
            Ok(params) => answer(responder, work(params)),
            Err(error) => responder.fail(&error),
        }
    }

    fn initialize(&self, params: Value) -> Result<impl Serialize, Error> {
        let request: InitializeRequest = params::read(params)?;
        // A second introduction changes nothing.
        self.client.borrow_mut().get_or_insert_with(|| Rc::new(Client::of(request)));
        Ok(greeting(env!("CARGO_PKG_VERSION"), self.auth_methods()))
    }

    /// How the user of this editor can sign in.
    pub(super) fn auth_methods(&self) -> Vec<AuthMethod> {
        let program = std::env::current_exe().unwrap_or_else(|_| "pith".into());
        self.client().auth_methods(&program, &SIGN_IN)
    }

    /// Called after the user has signed in. Sessions that are opened from now on read the keys again anyway.
    fn authenticate(&self, params: Value) -> Result<AuthenticateResponse, Error> {
        let request: AuthenticateRequest = params::read(params)?;
        let is_offered = self.auth_methods().iter().any(|method| *method.id() == request.method_id);
        if is_offered {
            return Ok(AuthenticateResponse::new());
        }
        Err(invalid_params("methodId", format!("Unknown method of authentication: {}", request.method_id)))
    }

    fn prompt(&self, params: Value, responder: Responder) {
        let steers = params.pointer("/_meta/pith/delivery").is_some_and(|delivery| delivery == "steer");
        match self.read_prompt(params) {
            Ok((conversation, input)) if steers => send(&conversation, TurnRequest::Steer(input, responder)),
            Ok((conversation, input)) => send(&conversation, TurnRequest::Prompt(input, responder)),
            Err(error) => responder.fail(&error),
        }
    }

    /// Text for the turn that runs, as several agents and editors have agreed on.
    fn steering(&self, params: Value, responder: Responder) {
        let idle = params.pointer("/_meta/steering/idleBehavior").and_then(Value::as_str) == Some("promptRequired");
        match self.read_prompt(params) {
            Ok((conversation, input)) => {
                let request = if idle {
                    TurnRequest::InjectIfRunning(input, responder)
                } else {
                    TurnRequest::Inject(input, responder)
                };
                send(&conversation, request);
            }
            Err(error) => responder.fail(&error),
        }
    }

    fn read_prompt(&self, params: Value) -> Result<(Rc<Conversation>, PromptInput), Error> {
        let request: PromptRequest = params::read(params)?;
        let conversation = self.conversation(&request.session_id)?;
        let seat = &conversation.seat;
        let place = PromptPlace { cwd: &seat.cwd, keep: &|text| seat.workbench.output_dir.keep(text) };
        let mut input = convert(&request.prompt, &place)?;
        let traceparent = request.meta.as_ref().and_then(|meta| meta.get("traceparent")).and_then(Value::as_str);
        input.traceparent = traceparent.map(str::to_owned);
        Ok((conversation, input))
    }

    async fn set_mode(self: Rc<Self>, params: Value) -> Result<SetSessionModeResponse, Error> {
        let request: SetSessionModeRequest = params::read(params)?;
        let conversation = self.conversation(&request.session_id)?;
        let change = |choices: &Choices| {
            choices.mode_change(&request.mode_id.0).map_err(|error| error.data(json!({"field": "modeId"})))
        };
        conversation.change(change).await?;
        conversation.tell_options().await;
        Ok(SetSessionModeResponse::new())
    }

    async fn set_config_option(self: Rc<Self>, params: Value) -> Result<SetSessionConfigOptionResponse, Error> {
        let request: SetSessionConfigOptionRequest = params::read_option(params)?;
        let conversation = self.conversation(&request.session_id)?;
        let options = conversation.change(|choices| choices.change(&request.config_id.0, &request.value)).await?;
        conversation.note_options(&options);
        Ok(SetSessionConfigOptionResponse::new(options))
    }

    async fn set_model(self: Rc<Self>, params: Value) -> Result<Value, Error> {
        let SetModelRequest { session_id, model_id } = params::read(params)?;
        let conversation = self.conversation(&session_id)?;
        let change = |choices: &Choices| {
            choices.model_change(&model_id).map_err(|error| error.data(json!({"field": "modelId"})))
        };
        conversation.change(change).await?;
        // Its answer has no room for the options.
        conversation.tell_options().await;
        Ok(json!({}))
    }
}

fn send(conversation: &Conversation, request: TurnRequest) {
    // The task that takes them ends with the session.
    if let Err(unsent) = conversation.turns.send(request)
        && let Some(responder) = unsent.0.into_responder()
    {
        responder.fail(&no_session(&conversation.seat.id));
    }
}

/// Starts a task that answers its request itself; a responder that is dropped answers, too.
fn spawn(work: impl Future<Output = ()> + 'static) {
    tokio::task::spawn_local(work);
}

/// Starts a task whose result is the answer.
fn answer<T: Serialize + 'static>(responder: Responder, work: impl Future<Output = Result<T, Error>> + 'static) {
    spawn(async move {
        let cancel = responder.cancel.clone();
        let result = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(cancelled()),
            result = work => result,
        };
        responder.send(result);
    });
}
