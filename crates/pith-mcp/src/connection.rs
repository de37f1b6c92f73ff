//! A connection to a running server: lists, calls, the end.

mod opening;

use std::sync::Arc;
use std::time::Duration;

use pith_agent::TraceContext;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ListPromptsRequest, ListToolsRequest,
    PaginatedRequestParams, PingRequest, ProgressNotificationParam, RequestParamsMeta, ServerPeerInfo, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, ServiceError};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::callers::{Caller, Callers};
use crate::calls::{CallError, Routes};
use crate::changes::Changes;
use crate::config::ServerConfig;
use crate::handler::log_level_request;
use crate::handshake::{Era, Service};
use crate::http;
use crate::inputs::{Given, Inputs, MAX_ROUNDS};
use crate::offer::{Offer, ServerInfo, ToolList, add_prompts, instructions};
use crate::program::Program;
use crate::query::Query;
use crate::remarks::Remarks;
use crate::state::Failure;

/// However much progress a call reports.
const LONGEST_CALL: Duration = Duration::from_secs(30 * 60);
/// How long telling a server of a cancelled call may take.
pub const CANCEL_GRACE: Duration = Duration::from_millis(100);
const MAX_PAGES: usize = 200;
/// Before a request without effects is sent a second time.
pub const REPEAT_PAUSE: Duration = Duration::from_millis(500);

/// What is at the other end.
enum Counterpart {
    Program(Program),
    Address(http::Session),
}

/// A connection whose handshake is done.
pub struct Connection {
    /// Taken when the connection is closed.
    service: tokio::sync::Mutex<Option<Service>>,
    peer: Peer<RoleClient>,
    progress: Arc<Routes>,
    changes: Changes,
    /// Hears of changes where the server has to be asked for them.
    listening: AbortHandle,
    callers: Arc<Callers>,
    counterpart: Counterpart,
    remarks: Remarks,
    /// What the server logs over the protocol.
    log: Remarks,
    timeout: Duration,
}

impl Connection {
    /// Notes that another session uses the connection; `false` if none may.
    pub fn join(&self, inputs: &Arc<Inputs>) -> bool {
        self.callers.join(inputs)
    }

    /// Leaves the connection to those who use it: whoever wants the server from now on gets another one.
    pub fn retire(&self) {
        self.callers.retire();
    }

    /// Tells of every change of what the server offers from now on.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Asks a server of the older era to log what is worth a warning. One that refuses logs what it likes.
    pub async fn ask_for_warnings(&self) {
        let has_log = self.info().is_some_and(|info| info.capabilities.logging.is_some());
        if has_log && self.is_legacy() {
            let _ = self.request(log_level_request(), None, &CancellationToken::new(), |_| {}).await;
        }
    }

    /// Whether the server answers at all. Whatever it says is an answer.
    pub async fn answers_ping(&self, within: Duration) -> bool {
        let request = ClientRequest::PingRequest(PingRequest::default());
        let asked = timeout(within, self.request(request, None, &CancellationToken::new(), |_| {})).await;
        matches!(asked, Ok(Ok(_) | Err(CallError::Refused { .. })))
    }

    /// Whether the server speaks the older era of the protocol.
    pub fn is_legacy(&self) -> bool {
        self.info().is_some_and(|info| Era::of(info.protocol_version.as_str()) == Era::Older)
    }

    /// What the server said about itself.
    pub fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    /// Whether nothing can be sent any more.
    pub fn is_closed(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// Asks for everything that is kept of a server. Problems of single tools are returned beside it.
    pub async fn offer(&self) -> Result<(Offer, Vec<String>), CallError> {
        let info = self.info().ok_or_else(|| CallError::Lost("has not introduced itself".to_owned()))?;
        let capabilities = &info.capabilities;
        let (mut list, mut prompts) = (ToolList::default(), Vec::new());
        if capabilities.tools.is_some() {
            let request = |params| ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            self.pages(request, |page| list.add(page)).await?;
        }
        if capabilities.prompts.is_some() {
            let request = |params| ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(params));
            match self.pages(request, |page| add_prompts(&mut prompts, page)).await {
                Err(CallError::Refused { message, .. }) => {
                    list.note(format!("its prompts cannot be listed: {message}"));
                }
                listed => listed?,
            }
        }
        let problems = list.problems();
        let named = info.server_info.as_ref().filter(|named| !named.name.is_empty());
        let offer = Offer {
            protocol_version: info.protocol_version.to_string(),
            is_sse: matches!(&self.counterpart, Counterpart::Address(session) if session.is_sse()),
            server_info: named.map(|named| ServerInfo { name: named.name.clone(), version: named.version.clone() }),
            instructions: info.instructions.as_deref().and_then(instructions),
            tools: list.tools,
            prompts,
            has_resources: capabilities.resources.is_some(),
            ttl: list.ttl,
        };
        Ok((offer, problems))
    }

    /// Asks for all pages of a list; one that leads back to an earlier page ends it.
    async fn pages(
        &self,
        request: impl Fn(PaginatedRequestParams) -> ClientRequest,
        mut add: impl FnMut(&Value),
    ) -> Result<(), CallError> {
        let (mut cursor, mut seen) = (None, Vec::new());
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let never = CancellationToken::new();
            let page = match self.request(request(params.clone()), None, &never, |_| {}).await {
                Err(error) if error.is_passing() && !self.is_closed() => {
                    sleep(REPEAT_PAUSE).await;
                    self.request(request(params), None, &never, |_| {}).await?
                }
                page => page?,
            };
            add(&page);
            cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            match &cursor {
                Some(next) if !next.is_empty() && !seen.contains(next) => seen.push(next.clone()),
                _ => break,
            }
        }
        Ok(())
    }

    /// Asks for something that changes nothing.
    pub async fn query(
        &self,
        caller: &Caller,
        query: &Query<'_>,
        cancel: &CancellationToken,
    ) -> Result<Value, CallError> {
        self.in_rounds(caller, cancel, |_| {}, |given| query.request(given)).await
    }

    /// Calls a tool, and tells the server its place in a trace. `report` hears of progress, which also starts the time of the call again.
    pub async fn call(
        &self,
        caller: &Caller,
        tool: &str,
        arguments: Map<String, Value>,
        trace: Option<&TraceContext>,
        cancel: &CancellationToken,
        report: impl FnMut(ProgressNotificationParam),
    ) -> Result<Value, CallError> {
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        if let Some(TraceContext { traceparent, tracestate }) = trace {
            params.set_traceparent(traceparent);
            if !tracestate.is_empty() {
                params.set_tracestate(tracestate);
            }
        }
        self.in_rounds(caller, cancel, report, |inputs: Option<Given>| {
            (params.input_responses, params.request_state) = Given::parts(inputs);
            ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()))
        })
        .await
    }

    /// Sends a request, and again with what the server wants to know first, which is how servers of the newer era ask.
    async fn in_rounds(
        &self,
        caller: &Caller,
        cancel: &CancellationToken,
        mut report: impl FnMut(ProgressNotificationParam),
        mut request: impl FnMut(Option<Given>) -> ClientRequest,
    ) -> Result<Value, CallError> {
        let _under_way = self.callers.begin(caller);
        let mut given = None;
        for _ in 0..=MAX_ROUNDS {
            let result = self.request(request(given.take()), Some(caller), cancel, &mut report).await?;
            if result.get("resultType").and_then(Value::as_str) != Some("input_required") {
                return Ok(result);
            }
            let answered = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(CallError::Aborted),
                answered = caller.inputs.answer(&result, caller.call.as_deref()) => answered,
            };
            given = Some(answered.map_err(CallError::Unusable)?);
        }
        Err(CallError::Unusable(format!("asked for more input more than {MAX_ROUNDS} times")))
    }

    async fn request(
        &self,
        request: ClientRequest,
        caller: Option<&Caller>,
        cancel: &CancellationToken,
        mut report: impl FnMut(ProgressNotificationParam),
    ) -> Result<Value, CallError> {
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options());
        let mut handle = match sent.await {
            Ok(handle) => handle,
            Err(error) => return Err(self.failed(error).await),
        };
        let token = handle.progress_token.0.clone();
        let (route, mut progress) = mpsc::unbounded_channel();
        self.progress.all().insert(token.clone(), route);
        let longest = Instant::now() + LONGEST_CALL;
        let mut deadline = Instant::now() + self.timeout;
        let ended = loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => break Ended::Answered(Box::new(answer.unwrap_or(Err(ServiceError::TransportClosed)))),
                () = cancel.cancelled() => break Ended::Aborted,
                Some(step) = progress.recv() => {
                    deadline = Instant::now() + self.timeout;
                    report(step);
                }
                () = sleep_until(deadline.min(longest)) => {
                    // While the user is asked, the server cannot answer.
                    let now = Instant::now();
                    let since = self.last_waited(caller).map(|waited| waited + self.timeout);
                    match since.filter(|since| *since > now && now < longest) {
                        Some(since) => deadline = since,
                        None => break Ended::TimedOut,
                    }
                }
            }
        };
        self.progress.all().remove(&token);
        match ended {
            Ended::Answered(answer) => match *answer {
                Ok(ServerResult::CustomResult(result)) => Ok(result.0),
                Ok(other) => Ok(serde_json::to_value(other).unwrap_or_default()),
                Err(error) => Err(self.failed(error).await),
            },
            Ended::Aborted => {
                withdraw(handle, "the user aborted the call").await;
                Err(CallError::Aborted)
            }
            Ended::TimedOut => {
                withdraw(handle, "the call took too long").await;
                Err(CallError::TimedOut(self.timeout))
            }
        }
    }

    /// When the server last waited for an answer of the one who makes a request, or of anybody.
    fn last_waited(&self, caller: Option<&Caller>) -> Option<Instant> {
        match caller {
            Some(caller) => caller.inputs.questions.last_waited(),
            None => self.callers.sessions().iter().filter_map(|inputs| inputs.questions.last_waited()).max(),
        }
    }

    async fn failed(&self, error: ServiceError) -> CallError {
        match (error, &self.counterpart) {
            (ServiceError::McpError(error), _) => {
                CallError::Refused { code: error.code.0, message: self.remarks.masked(&error.message) }
            }
            (_, Counterpart::Program(program)) => CallError::Lost(program.fate(None).await),
            (ServiceError::TransportSend(error), Counterpart::Address(session)) => {
                let why = self.remarks.masked(&error.error.to_string());
                let fault = error.error.downcast_ref::<http::Fault>();
                if let Some(fault @ http::Fault::NeedsAuth(_)) = fault {
                    session.want_sign_in(fault);
                }
                if fault.is_some_and(http::Fault::is_passing) { CallError::Lost(why) } else { CallError::Unusable(why) }
            }
            (_, Counterpart::Address(session)) => CallError::Lost(self.remarks.masked(&session.fate())),
        }
    }

    /// Why the connection has ended, if that is for want of a sign-in.
    pub fn sign_in_wanted(&self, config: &ServerConfig) -> Option<Failure> {
        match &self.counterpart {
            Counterpart::Program(_) => None,
            Counterpart::Address(session) => session.sign_in_wanted(config),
        }
    }

    /// Waits until the server has ended the connection.
    pub async fn ended(&self) {
        match &self.counterpart {
            Counterpart::Program(program) => program.ended().await,
            Counterpart::Address(session) => session.ended().await,
        }
    }

    /// The last lines the server wrote beside the protocol, and the last ones of its log.
    pub fn remarks(&self, n_lines: usize) -> Vec<String> {
        let logged = self.log.last(n_lines).into_iter().map(|line| self.remarks.masked(&line));
        self.remarks.last(n_lines).into_iter().chain(logged).collect()
    }

    /// Ends the connection and what is behind it, unless other sessions use it.
    pub async fn close(&self, inputs: &Arc<Inputs>) {
        if self.callers.leave(inputs) {
            self.end().await;
        }
    }

    /// Does the same when the calls that are under way have ended.
    pub async fn close_after_calls(&self, inputs: &Arc<Inputs>) {
        if self.callers.leave(inputs) {
            self.callers.idle().await;
            self.end().await;
        }
    }

    async fn end(&self) {
        self.listening.abort();
        if let Some(mut service) = self.service.lock().await.take() {
            let _ = service.close_with_timeout(CANCEL_GRACE).await;
        }
        match &self.counterpart {
            Counterpart::Program(program) => program.end().await,
            Counterpart::Address(session) => session.end().await,
        }
    }
}

enum Ended {
    Answered(Box<Result<ServerResult, ServiceError>>),
    Aborted,
    TimedOut,
}

/// Tells the server that nobody waits any more. One that does not read is not waited for.
async fn withdraw(handle: RequestHandle<RoleClient>, why: &str) {
    let _ = timeout(CANCEL_GRACE, handle.cancel(Some(why.to_owned()))).await;
}
