//! Questions of extensions, and about trust, to the user of the editor.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use pith_acp::acp::{
    CreateElicitationRequest, ElicitationSessionScope, RequestPermissionRequest, SessionUpdate, ToolCall, ToolCallId,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use pith_acp::dialog::{
    Choice, about_call, about_card, card, chosen, filled_in, form, opened, page, whole_answer, whole_form,
};
use pith_acp::permission::{self, Answer};
use pith_protocol::host::{Page, UiAnswer, UiMethod, UiRequest};
use pith_protocol::permissions::{OptionId, PermissionFrame};
use pith_protocol::{HostReply, Inbound};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::conversation::Conversation;
use super::outbox::lock;

/// The request that shows a permission card.
const PERMISSION: &str = "session/request_permission";

/// How the id of a call begins that exists only for a question.
const CARD: &str = "pith-dialog-";

/// Whether a call exists only for a question: it is part of no conversation.
pub fn is_card(call: &ToolCallId) -> bool {
    call.0.starts_with(CARD)
}

/// The open dialogs of a session. Dropped with it, which withdraws them.
pub struct Dialogs {
    conversation: Rc<Conversation>,
    /// Tasks that wait for answers, by the id of the dialog.
    open: Rc<RefCell<HashMap<String, JoinHandle<()>>>>,
    n_cards: Cell<u64>,
}

/// How the user is asked.
enum Question {
    Form(CreateElicitationRequest),
    /// The form of an MCP server.
    WholeForm(CreateElicitationRequest),
    /// Whether the user opens a page.
    Page(CreateElicitationRequest),
    /// About a call that exists only for the question.
    Card(Box<ToolCall>, RequestPermissionRequest),
    /// About a call of the model.
    Permission(RequestPermissionRequest),
}

impl Dialogs {
    pub fn new(conversation: Rc<Conversation>) -> Self {
        Dialogs { conversation, open: Rc::default(), n_cards: Cell::new(0) }
    }

    /// Takes a request of the session: asks, or withdraws what was asked.
    pub async fn take(&self, request: UiRequest) {
        let (text, unshown) = match &request.method {
            UiMethod::Confirm { page: Some(_), .. } => {
                ("An MCP server asked for a page, which this client cannot open", UiAnswer::Cancelled)
            }
            UiMethod::Confirm { .. } => {
                ("A dialog asked a question, which this client cannot show", UiAnswer::Cancelled)
            }
            UiMethod::Select { .. } => {
                ("A dialog asked for a choice, which this client cannot show", UiAnswer::Cancelled)
            }
            UiMethod::Input { .. } | UiMethod::Editor { .. } => {
                ("A dialog asked for text, which this client cannot show", UiAnswer::Cancelled)
            }
            // The server is told that there is no point in asking again.
            UiMethod::Form { .. } => {
                ("An MCP server asked for a form, which this client cannot show", UiAnswer::Confirmed(false))
            }
            UiMethod::Cancel { target_id } => return self.withdraw(target_id).await,
            // Notices are told by the outbox; nothing in an editor shows the rest.
            UiMethod::Notify { .. }
            | UiMethod::SetStatus { .. }
            | UiMethod::SetWidget { .. }
            | UiMethod::SetTitle { .. }
            | UiMethod::SetEditorText { .. } => return,
        };
        if let Some(question) = self.question(&request) {
            return self.ask(request, question);
        }
        self.conversation.note_unshown(text, &dialog_text(&request.method));
        reply(&self.conversation, request.id, unshown).await;
    }

    /// Decides how to ask; `None` if this editor cannot.
    fn question(&self, request: &UiRequest) -> Option<Question> {
        let UiRequest { method, tool_call_id, .. } = request;
        let (session, client) = (self.conversation.session_id(), &self.conversation.client);
        let scope =
            ElicitationSessionScope::new(session.clone()).tool_call_id(tool_call_id.clone().map(ToolCallId::new));
        let decided_call = match method {
            UiMethod::Form { message, schema } => {
                let form = || whole_form(scope, message, schema).map(Question::WholeForm);
                return client.shows_forms().then(form).flatten();
            }
            UiMethod::Confirm { page: Some(Page { id, url }), .. } => {
                let page = || Question::Page(page(scope, &self.conversation.page_id(id), url, dialog_text(method)));
                return client.opens_pages().then(page);
            }
            _ => tool_call_id.as_deref(),
        };
        let call = decided_call.and_then(|id| lock(&self.conversation.translator).live_call(id));
        if let Some(permission) = call.and_then(|call| about_call(&session, call, method)) {
            return Some(Question::Permission(permission));
        }
        if client.shows_forms() {
            return form(&session, method).map(Question::Form);
        }
        self.n_cards.set(self.n_cards.get() + 1);
        let card = card(&format!("{CARD}{}", self.n_cards.get()), method);
        let permission = about_card(&session, &card, method)?;
        Some(Question::Card(Box::new(card), permission))
    }

    fn ask(&self, request: UiRequest, question: Question) {
        let (conversation, open) = (self.conversation.clone(), self.open.clone());
        let key = request.id.clone();
        let task = tokio::task::spawn_local(async move {
            let UiRequest { id, method, .. } = request;
            // An editor refuses questions about a session that it does not know yet.
            let is_early = !conversation.channel.is_released();
            conversation.questioned.cancel();
            conversation.channel.released().await;
            let choice = question.ask(&conversation, &method).await;
            open.borrow_mut().remove(&id);
            let answer = match choice {
                Choice::Answer(answer) => answer,
                Choice::TurnCancelled => {
                    conversation.cancel();
                    UiAnswer::Cancelled
                }
            };
            reply(&conversation, id, answer).await;
            // A project that is trusted now brings commands of its own.
            conversation.tell_commands().await;
            if is_early {
                conversation.tell_options().await;
            }
        });
        self.open.borrow_mut().insert(key, task);
    }

    /// Asks whether a tool call may run, or withdraws that question.
    pub async fn take_permission(&self, frame: PermissionFrame) {
        let (id, request) = match frame {
            PermissionFrame::PermissionCancelled { id } => return self.withdraw(&id).await,
            PermissionFrame::PermissionRequest { id, tool_call_id, tool_name, arguments, reason, options, .. } => {
                let told = lock(&self.conversation.translator).live_call(&tool_call_id);
                let call = told
                    .unwrap_or_else(|| ToolCallUpdate::new(tool_call_id, ToolCallUpdateFields::new().title(tool_name)));
                let session = self.conversation.session_id();
                (id, permission::request(&session, call, Value::Object(arguments), &reason, &options))
            }
        };
        let (conversation, open) = (self.conversation.clone(), self.open.clone());
        let key = id.clone();
        let task = tokio::task::spawn_local(async move {
            let result = conversation.requests.ask(PERMISSION, &request).await;
            open.borrow_mut().remove(&id);
            let option = match result.map(permission::answer) {
                Ok(Answer::Chosen(option)) => option,
                Ok(Answer::TurnCancelled) => {
                    conversation.cancel();
                    Some(OptionId::Stop)
                }
                Err(_) => None,
            };
            let call = request.tool_call.tool_call_id;
            match option {
                Some(OptionId::Once | OptionId::Session | OptionId::Project | OptionId::Similar) => {
                    tell_running(&conversation, call)
                }
                Some(OptionId::Deny | OptionId::Stop) | None => lock(&conversation.translator).refuse(&call.0),
            }
            let reply = HostReply::Permission { id: Some(id), option, message: None };
            conversation.seat.send(Inbound::Reply(reply)).await;
        });
        self.open.borrow_mut().insert(key, task);
    }

    /// Ends a dialog that the extension no longer waits for. Its request is withdrawn with the task, before anything
    /// that follows is told.
    async fn withdraw(&self, id: &str) {
        let task = self.open.borrow_mut().remove(id);
        if let Some(task) = task {
            task.abort();
            // It fails because it was aborted.
            let _ = task.await;
        }
    }
}

impl Drop for Dialogs {
    fn drop(&mut self) {
        self.open.borrow_mut().drain().for_each(|(_, task)| task.abort());
    }
}

impl Question {
    /// Asks, and waits as long as it takes. An error for an answer dismisses the dialog.
    async fn ask(self, conversation: &Conversation, method: &UiMethod) -> Choice {
        const ELICITATION: &str = "elicitation/create";
        let requests = &conversation.requests;
        let (result, is_form) = match self {
            Question::Page(request) => {
                let answer = requests.ask(ELICITATION, &request).await.map_or(UiAnswer::Cancelled, opened);
                return Choice::Answer(answer);
            }
            Question::WholeForm(request) => {
                let answer = requests.ask(ELICITATION, &request).await.map_or(UiAnswer::Cancelled, whole_answer);
                return Choice::Answer(answer);
            }
            Question::Form(request) => (requests.ask(ELICITATION, &request).await, true),
            Question::Permission(request) => {
                let choice = requests.ask(PERMISSION, &request).await.map(|result| chosen(method, result));
                let choice = choice.unwrap_or(Choice::Answer(UiAnswer::Cancelled));
                if matches!(choice, Choice::Answer(UiAnswer::Confirmed(true) | UiAnswer::Value(_))) {
                    tell_running(conversation, request.tool_call.tool_call_id);
                }
                return choice;
            }
            Question::Card(card, request) => {
                let _closing = CloseCard { conversation, call: card.tool_call_id.clone() };
                conversation.channel.update(SessionUpdate::ToolCall(*card));
                (requests.ask(PERMISSION, &request).await, false)
            }
        };
        match result {
            Ok(result) if is_form => Choice::Answer(filled_in(method, result)),
            Ok(result) => chosen(method, result),
            Err(_) => Choice::Answer(UiAnswer::Cancelled),
        }
    }
}

/// Ends the call that stands for a dialog, however the dialog ends.
struct CloseCard<'c> {
    conversation: &'c Conversation,
    call: ToolCallId,
}

impl Drop for CloseCard<'_> {
    fn drop(&mut self) {
        let fields = ToolCallUpdateFields::new().status(ToolCallStatus::Completed);
        let update = ToolCallUpdate::new(self.call.clone(), fields);
        self.conversation.channel.update(SessionUpdate::ToolCallUpdate(update));
    }
}

/// Tells the editor that a call goes on: the question about it had said that it waits.
fn tell_running(conversation: &Conversation, call: ToolCallId) {
    let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
    conversation.channel.update(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call, fields)));
}

async fn reply(conversation: &Conversation, id: String, answer: UiAnswer) {
    conversation.seat.send(Inbound::Reply(HostReply::Ui { id: Some(id), answer })).await;
}

/// What a dialog says.
fn dialog_text(method: &UiMethod) -> String {
    match method {
        UiMethod::Confirm { title, message, .. } => format!("{title}\n\n{message}"),
        UiMethod::Select { title, .. }
        | UiMethod::Input { title, .. }
        | UiMethod::Editor { title, .. }
        | UiMethod::Form { message: title, .. } => title.clone(),
        _ => String::new(),
    }
}
