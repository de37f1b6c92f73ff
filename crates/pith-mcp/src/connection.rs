//! A connection to a running server: the handshake, lists, calls, the end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, GetPromptRequest, GetPromptRequestParams,
    ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest, ListToolsRequest, NumberOrString,
    PaginatedRequestParams, ProgressNotificationParam, ReadResourceRequest, ReadResourceRequestParams, ServerPeerInfo,
    ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RunningService, ServiceError};
use serde_json::{Map, Value};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::config::{ServerConfig, Transport};
use crate::handler::{Handler, root_of};
use crate::handshake::Era;
use crate::http;
use crate::inputs::{Given, Inputs, MAX_ROUNDS};
use crate::launch::Launch;
use crate::offer::{Offer, ServerInfo, ToolList, add_prompts, instructions};
use crate::program::Program;
use crate::questions::Questions;
use crate::remarks::Remarks;
use crate::state::Failure;

/// However much progress a call reports.
const LONGEST_CALL: Duration = Duration::from_secs(30 * 60);
/// How long telling a server of a cancelled call may take.
pub const CANCEL_GRACE: Duration = Duration::from_millis(100);
const MAX_PAGES: usize = 200;

/// What is at the other end.
enum Counterpart {
    Program(Program),
    Address(http::Session),
}

/// A connection whose handshake is done.
pub struct Connection {
    /// Taken when the connection is closed.
    service: tokio::sync::Mutex<Option<RunningService<RoleClient, Handler>>>,
    peer: Peer<RoleClient>,
    progress: Arc<Routes>,
    pub list_changed: Arc<Notify>,
    inputs: Inputs,
    counterpart: Counterpart,
    remarks: Remarks,
    timeout: Duration,
}

/// Who hears of the progress of which call.
#[derive(Default)]
pub struct Routes(Mutex<HashMap<NumberOrString, mpsc::UnboundedSender<ProgressNotificationParam>>>);

/// Why a request has no result.
#[derive(Debug)]
pub enum CallError {
    /// The server refused it.
    Refused {
        code: i32,
        message: String,
    },
    Aborted,
    TimedOut(Duration),
    /// The connection is gone; the text says what is known.
    Lost(String),
}

impl Routes {
    /// Passes a report on; reports of calls that have ended are dropped.
    pub fn pass(&self, progress: ProgressNotificationParam) {
        if let Some(route) = self.all().get(&progress.progress_token.0) {
            let _ = route.send(progress);
        }
    }

    fn all(
        &self,
    ) -> std::sync::MutexGuard<'_, HashMap<NumberOrString, mpsc::UnboundedSender<ProgressNotificationParam>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Connects to a server: starts its program if it has one, and shakes hands.
    /// What it spoke last is tried first.
    pub async fn open(config: &ServerConfig, launch: &Launch, last: Option<Era>) -> Result<Connection, Failure> {
        let (progress, list_changed) = (Arc::<Routes>::default(), Arc::new(Notify::new()));
        let questions = Questions::of(&config.name, launch.ask.clone());
        let handler = || Handler::new(&launch.cwd, progress.clone(), list_changed.clone(), questions.clone());
        let (service, counterpart, remarks) = match &config.transport {
            Transport::Stdio(stdio) => {
                let program = Program::start(config, stdio, launch).await?;
                let service = program.shake_hands(config, last, handler).await?;
                let remarks = program.remarks.clone();
                (service, Counterpart::Program(program), remarks)
            }
            Transport::Remote(remote) => {
                let target = http::Target::resolve(config, remote, launch).await?;
                let remarks = target.remarks.clone();
                let (service, session) = http::connect(target, config, remote.is_sse, last, handler).await?;
                (service, Counterpart::Address(session), remarks)
            }
        };
        Ok(Connection {
            peer: service.peer().clone(),
            service: tokio::sync::Mutex::new(Some(service)),
            progress,
            list_changed,
            inputs: Inputs { questions, root: root_of(&launch.cwd) },
            counterpart,
            remarks,
            timeout: config.timeout,
        })
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
                    list.problems.push(format!("its prompts cannot be listed: {message}"));
                }
                listed => listed?,
            }
        }
        let named = info.server_info.as_ref().filter(|named| !named.name.is_empty());
        let offer = Offer {
            protocol_version: info.protocol_version.to_string(),
            server_info: named.map(|named| ServerInfo { name: named.name.clone(), version: named.version.clone() }),
            instructions: info.instructions.as_deref().and_then(instructions),
            tools: list.tools,
            prompts,
            has_resources: capabilities.resources.is_some(),
        };
        Ok((offer, list.problems))
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
            let page = self.request(request(params), &CancellationToken::new(), |_| {}).await?;
            add(&page);
            cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            match &cursor {
                Some(next) if !next.is_empty() && !seen.contains(next) => seen.push(next.clone()),
                _ => break,
            }
        }
        Ok(())
    }

    /// Asks for a page of the resources, or of their templates.
    pub async fn list_resources(
        &self,
        kind: ResourceList,
        cursor: Option<String>,
        cancel: &CancellationToken,
    ) -> Result<Value, CallError> {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let request = match kind {
            ResourceList::Resources => ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(params)),
            ResourceList::Templates => {
                ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest::with_param(params))
            }
        };
        self.request(request, cancel, |_| {}).await
    }

    /// Reads a resource.
    pub async fn read_resource(&self, uri: &str, cancel: &CancellationToken) -> Result<Value, CallError> {
        let mut params = ReadResourceRequestParams::new(uri);
        self.in_rounds(
            cancel,
            |_| {},
            |inputs: Option<Given>| {
                (params.input_responses, params.request_state) = Given::parts(inputs);
                ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params.clone()))
            },
        )
        .await
    }

    /// Fills a prompt.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        cancel: &CancellationToken,
    ) -> Result<Value, CallError> {
        let mut params = GetPromptRequestParams::new(name);
        params.arguments = Some(arguments).filter(|arguments| !arguments.is_empty());
        self.in_rounds(
            cancel,
            |_| {},
            |inputs: Option<Given>| {
                (params.input_responses, params.request_state) = Given::parts(inputs);
                ClientRequest::GetPromptRequest(GetPromptRequest::new(params.clone()))
            },
        )
        .await
    }

    /// Calls a tool. `report` hears of progress, which also starts the time of the call again.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        cancel: &CancellationToken,
        report: impl FnMut(ProgressNotificationParam),
    ) -> Result<Value, CallError> {
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        self.in_rounds(cancel, report, |inputs: Option<Given>| {
            (params.input_responses, params.request_state) = Given::parts(inputs);
            ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()))
        })
        .await
    }

    /// Sends a request, and again with what the server wants to know first, which is how servers of the newer era ask.
    async fn in_rounds(
        &self,
        cancel: &CancellationToken,
        mut report: impl FnMut(ProgressNotificationParam),
        mut request: impl FnMut(Option<Given>) -> ClientRequest,
    ) -> Result<Value, CallError> {
        let mut given = None;
        for _ in 0..=MAX_ROUNDS {
            let result = self.request(request(given.take()), cancel, &mut report).await?;
            if result.get("resultType").and_then(Value::as_str) != Some("input_required") {
                return Ok(result);
            }
            let answered = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(CallError::Aborted),
                answered = self.inputs.answer(&result) => answered,
            };
            given = Some(answered.map_err(CallError::Lost)?);
        }
        Err(CallError::Lost(format!("asked for more input more than {MAX_ROUNDS} times")))
    }

    async fn request(
        &self,
        request: ClientRequest,
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
                    if !self.inputs.questions.is_open() || Instant::now() >= longest {
                        break Ended::TimedOut;
                    }
                    deadline = Instant::now() + self.timeout;
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

    async fn failed(&self, error: ServiceError) -> CallError {
        match (error, &self.counterpart) {
            (ServiceError::McpError(error), _) => {
                CallError::Refused { code: error.code.0, message: self.remarks.masked(&error.message) }
            }
            (_, Counterpart::Program(program)) => CallError::Lost(program.fate(None).await),
            (ServiceError::TransportSend(error), Counterpart::Address(_)) => {
                CallError::Lost(self.remarks.masked(&error.error.to_string()))
            }
            (_, Counterpart::Address(session)) => CallError::Lost(self.remarks.masked(&session.fate())),
        }
    }

    /// Waits until the server has ended the connection.
    pub async fn ended(&self) {
        match &self.counterpart {
            Counterpart::Program(program) => program.ended().await,
            Counterpart::Address(session) => session.ended().await,
        }
    }

    /// The last lines the server wrote beside the protocol.
    pub fn remarks(&self, n_lines: usize) -> Vec<String> {
        self.remarks.last(n_lines)
    }

    /// Ends the connection and what is behind it.
    pub async fn close(&self) {
        if let Some(mut service) = self.service.lock().await.take() {
            let _ = service.close_with_timeout(CANCEL_GRACE).await;
        }
        match &self.counterpart {
            Counterpart::Program(program) => program.end().await,
            Counterpart::Address(session) => session.end().await,
        }
    }
}

/// What a server lists of its resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceList {
    Resources,
    Templates,
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
