//! One session with a server at an address, as rmcp's transport: every message is a request of its own, answered as
//! JSON or as a stream of events.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pith_ai::WebResponse;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::headers::Mirrored;
use super::target::{Fault, Target, TargetRequest, header, read_body, read_refusal};
use crate::frames::{Reading, Requests, read_message};
use crate::stdio::MAX_LINE;

/// How many messages of a server wait to be handled before it is made to wait.
const MAX_WAITING: usize = 64;
const SESSION_ID: &str = "mcp-session-id";
const VERSION: &str = "MCP-Protocol-Version";
const VERSION_IN_META: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";

/// The transport of one connection.
pub struct HttpTransport {
    shared: Arc<Shared>,
    /// Messages of the server, from all its streams.
    messages: mpsc::Receiver<ServerJsonRpcMessage>,
}

/// What the requests of a session share.
pub struct Shared {
    pub(super) target: Arc<Target>,
    messages: mpsc::Sender<ServerJsonRpcMessage>,
    state: Mutex<SessionState>,
    /// Cancelled when the session has ended, by whomever; ends all streams.
    pub closed: CancellationToken,
}

#[derive(Default)]
pub(super) struct SessionState {
    pub(super) requests: Requests,
    /// Given by servers of the older era.
    session_id: Option<String>,
    /// What a server of the older era has agreed to.
    pub(super) legacy_version: Option<String>,
    /// Where messages go in the transport of 2024-11-05.
    pub(super) endpoint: Option<Url>,
    mirrored: Mirrored,
    /// Ends the exchange of a request that nobody waits for any more.
    withdrawn: HashMap<i64, CancellationToken>,
    /// Why a message could not be sent last.
    fault: Option<Fault>,
}

impl HttpTransport {
    pub fn new(target: Arc<Target>) -> Self {
        let (sender, messages) = mpsc::channel(MAX_WAITING);
        let shared = Shared { target, messages: sender, state: Mutex::default(), closed: CancellationToken::new() };
        HttpTransport { shared: Arc::new(shared), messages }
    }

    pub fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }
}

impl Drop for HttpTransport {
    fn drop(&mut self) {
        self.shared.closed.cancel();
    }
}

impl Transport<RoleClient> for HttpTransport {
    type Error = Fault;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = Result<(), Fault>> + Send + 'static {
        let shared = self.shared.clone();
        let id = shared.state().requests.sent(&message);
        async move {
            let message = serde_json::to_value(&message).map_err(|error| Fault::Unusable(error.to_string()))?;
            let sent = match id {
                Some(id) => shared.request(id, &message).await,
                None => shared.notify(&message).await,
            };
            if let Err(fault) = &sent {
                shared.state().fault = Some(fault.clone());
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        tokio::select! {
            biased;
            message = self.messages.recv() => message,
            () = self.shared.closed.cancelled() => None,
        }
    }

    async fn close(&mut self) -> Result<(), Fault> {
        self.shared.closed.cancel();
        Ok(())
    }
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why a message could not be sent last.
    pub fn take_fault(&self) -> Option<Fault> {
        self.state().fault.take()
    }

    /// Sends a request and passes on what comes until its answer is there, or nobody waits for it any more.
    async fn request(self: &Arc<Self>, id: i64, message: &Value) -> Result<(), Fault> {
        let withdrawn = CancellationToken::new();
        self.state().withdrawn.insert(id, withdrawn.clone());
        let done = tokio::select! {
            biased;
            () = withdrawn.cancelled() => Ok(()),
            () = self.closed.cancelled() => Err(Fault::Unreachable("the connection was closed".to_owned())),
            done = self.exchange(id, message) => done,
        };
        self.state().withdrawn.remove(&id);
        done
    }

    async fn exchange(self: &Arc<Self>, id: i64, message: &Value) -> Result<(), Fault> {
        let mut response = self.post(message).await?;
        if !(200..300).contains(&response.status) {
            return self.refused(id, response).await;
        }
        if self.state().endpoint.is_some() {
            // The answer comes over the stream of the session.
            return Ok(());
        }
        let kind = header(&response, "content-type").unwrap_or_default().to_ascii_lowercase();
        if kind.starts_with("text/event-stream") {
            return self.follow(id, response).await;
        }
        if !kind.starts_with("application/json") {
            let body = read_refusal(&mut response).await;
            let kind = if kind.is_empty() { "no type".to_owned() } else { kind };
            return Err(Fault::Unusable(format!(
                "answered {} with {kind}{}",
                response.status,
                self.target.quoted(&body)
            )));
        }
        let body = read_body(&mut response, MAX_LINE).await?;
        let Ok(answer) = serde_json::from_slice(&body) else {
            return Err(Fault::Unusable(format!(
                "answered {} with no JSON{}",
                response.status,
                self.target.quoted(&body)
            )));
        };
        self.deliver(answer).await;
        if self.state().requests.is_pending(id) {
            return Err(Fault::Unusable(format!(
                "answered {} without a result{}",
                response.status,
                self.target.quoted(&body)
            )));
        }
        Ok(())
    }

    /// Says what a refusal means: an error of the protocol is the answer to the request.
    async fn refused(self: &Arc<Self>, id: i64, mut response: WebResponse) -> Result<(), Fault> {
        let body = read_refusal(&mut response).await;
        let fault = self.fault(&response, &body);
        if let Fault::Status { .. } = &fault
            && let Ok(Value::Object(mut answer)) = serde_json::from_slice(&body)
            && answer.get("error").is_some_and(Value::is_object)
        {
            self.state().fault = Some(fault);
            // Servers that have not read the request cannot repeat its id.
            answer.insert("id".to_owned(), id.into());
            self.deliver(Value::Object(answer)).await;
            return Ok(());
        }
        Err(fault)
    }

    pub(super) fn fault(&self, response: &WebResponse, body: &[u8]) -> Fault {
        let challenge = header(response, "www-authenticate").unwrap_or_default();
        match response.status {
            401 => Fault::NeedsAuth(401),
            403 if challenge.contains("insufficient_scope") => Fault::NeedsAuth(403),
            404 if self.state().session_id.take().is_some() => {
                self.state().fault = Some(Fault::SessionExpired);
                // The next call finds the connection closed and opens another one.
                self.closed.cancel();
                Fault::SessionExpired
            }
            status => Fault::Status { status, said: self.target.quoted(body) },
        }
    }

    /// Sends a message that has no answer: a notification, or the answer to a request of the server.
    async fn notify(self: &Arc<Self>, message: &Value) -> Result<(), Fault> {
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
        let is_legacy = self.state().legacy_version.is_some();
        if method == "notifications/cancelled" {
            let id = message.pointer("/params/requestId").and_then(Value::as_i64);
            if let Some(withdrawn) = id.and_then(|id| self.state().withdrawn.remove(&id)) {
                withdrawn.cancel();
            }
            if !is_legacy {
                // The end of the stream has said it.
                return Ok(());
            }
        }
        let mut response = self.post(message).await?;
        if !(200..300).contains(&response.status) {
            let body = read_refusal(&mut response).await;
            return Err(self.fault(&response, &body));
        }
        if method == "notifications/initialized" && self.state().endpoint.is_none() {
            tokio::spawn(self.clone().listen());
        }
        Ok(())
    }

    async fn post(&self, message: &Value) -> Result<WebResponse, Fault> {
        let mut headers = vec![
            ("Content-Type".to_owned(), "application/json".to_owned()),
            ("Accept".to_owned(), "application/json, text/event-stream".to_owned()),
        ];
        let url = {
            let state = self.state();
            match message.pointer(VERSION_IN_META).and_then(Value::as_str) {
                Some(version) => {
                    headers.push((VERSION.to_owned(), version.to_owned()));
                    headers.extend(state.mirrored.of(message));
                }
                None => headers.extend(state.legacy_headers()),
            }
            state.endpoint.clone().unwrap_or_else(|| self.target.url.clone())
        };
        let body = serde_json::to_vec(message).map_err(|error| Fault::Unusable(error.to_string()))?;
        let request = TargetRequest { method: "POST", url: &url, headers, body: Some(body.into()) };
        let response = self.target.send(&request).await?;
        if let Some(id) = header(&response, SESSION_ID).filter(|_| (200..300).contains(&response.status)) {
            self.state().session_id = Some(id.to_owned());
        }
        Ok(response)
    }

    /// Ends the session at the server.
    pub async fn delete(&self) {
        let headers = self.state().legacy_headers();
        if self.state().session_id.take().is_some() {
            // Servers may refuse to let sessions be ended.
            let request = TargetRequest { method: "DELETE", url: &self.target.url, headers, body: None };
            let _ = self.target.send(&request).await;
        }
    }

    pub(super) async fn deliver_text(self: &Arc<Self>, text: &str) {
        match serde_json::from_str(text) {
            // Such an event only says where the stream goes on.
            _ if text.is_empty() => {}
            Ok(message) => self.deliver(message).await,
            Err(_) => self.target.remarks.push(text.as_bytes()),
        }
    }

    /// Passes on what a server has sent: one message, or several.
    async fn deliver(self: &Arc<Self>, message: Value) {
        let messages = match message {
            Value::Array(messages) => messages,
            message => vec![message],
        };
        for message in messages {
            let reading = {
                let mut state = self.state();
                state.learn(&message);
                let Value::Object(message) = message else { continue };
                read_message(message, |id| state.requests.answered(id))
            };
            match reading {
                Reading::Message(message) => drop(self.messages.send(*message).await),
                Reading::Refusal(answer) => drop(self.post(&answer).await),
                Reading::Noise | Reading::Nothing => {}
            }
        }
    }
}

impl SessionState {
    /// The headers of every request of the older era.
    pub(super) fn legacy_headers(&self) -> Vec<(String, String)> {
        let id = self.session_id.clone().map(|id| (SESSION_ID.to_owned(), id));
        let version = self.legacy_version.clone().map(|version| (VERSION.to_owned(), version));
        id.into_iter().chain(version).collect()
    }

    fn learn(&mut self, message: &Value) {
        self.mirrored.learn(message);
        if let Some(version) = message.pointer("/result/protocolVersion").and_then(Value::as_str) {
            self.legacy_version.get_or_insert_with(|| version.to_owned());
        }
    }
}
