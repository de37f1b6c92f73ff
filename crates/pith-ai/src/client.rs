//! All models behind one door: takes a call, finds who can answer it, and
//! streams the answer.

use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pith_agent::{Given, ModelClient};
use pith_protocol::{AssistantEvent, ErrorKind, LlmCall};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::assemble::MessageBuilder;
use crate::discovery::Fetch;
use crate::failure::Fault;
use crate::hooks;
use crate::http::{
    Answer, Clients, CredentialSource, Credentials, Patience, Sender, Tape, Web, redact, secrets, timed_out,
};
use crate::limits::request_tokens;
use crate::prepare::ForeignThinking;
use crate::scripted::{SCRIPTED, Scripts};
use crate::settings::{HandoffThinking, Settings};
use crate::sse::{SseDecoder, SseEvent};
use crate::wire::{self, Decoder, Order, Refused, Taste, Wire, cut, error_member};

/// Events a consumer may lag behind before the socket is left unread.
const CHANNEL_EVENTS: usize = 256;

/// How long the rest of a finished response is read, so that its connection can be used again.
const LINGER: Duration = Duration::from_millis(250);

/// What the user can choose about model calls.
#[derive(Clone, Default)]
pub struct ClientOptions {
    pub patience: Patience,
    pub taste: Taste,
    /// Used where the environment names none.
    pub proxy: Option<String>,
    /// Calls are recorded or replayed.
    pub tape: Tape,
    /// Told about things worth showing while a call runs. Must not block.
    pub notice: Option<Arc<dyn Fn(Notice) + Send + Sync>>,
}

impl fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientOptions")
            .field("patience", &self.patience)
            .field("taste", &self.taste)
            .finish_non_exhaustive()
    }
}

impl From<&Settings> for ClientOptions {
    fn from(settings: &Settings) -> Self {
        let provider = &settings.retry.provider;
        let foreign_thinking = match settings.handoff.thinking {
            HandoffThinking::Keep => ForeignThinking::AsText,
            HandoffThinking::Drop => ForeignThinking::Drop,
        };
        let patience = Patience {
            first_byte: settings.http_idle_timeout,
            idle: settings.http_idle_timeout,
            whole: provider.timeout,
            retries: provider.max_retries.try_into().unwrap_or(u32::MAX),
            max_retry_delay: provider.max_retry_delay,
            ..Patience::default()
        };
        let attribution = settings.enable_install_telemetry;
        let taste = Taste { budgets: settings.thinking_budgets, foreign_thinking, attribution };
        ClientOptions { patience, taste, proxy: settings.http_proxy.clone(), tape: Tape::from_env(), notice: None }
    }
}

/// Something worth knowing about a running call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The provider has not sent a byte for this long; twice as long ends the call.
    Silence { provider: String, model: String, elapsed: Duration },
    /// The server refuses an optional field, which is left out from now on.
    FieldRefused { provider: String, model: String, text: String },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Silence { provider, model, elapsed } => {
                write!(f, "{provider}/{model} has been silent for {} s", elapsed.as_secs())
            }
            Notice::FieldRefused { provider, model, text } => {
                write!(f, "{provider}/{model} refuses an optional field, which is left out from now on: {text}")
            }
        }
    }
}

/// The model client of the product.
#[derive(Clone)]
pub struct Providers {
    shared: Arc<Shared>,
}

struct Shared {
    source: Arc<dyn CredentialSource>,
    options: ClientOptions,
    sender: Sender,
    scripts: Scripts,
    /// What servers have refused in this process, by address and model. Held for a few lines at a time.
    refused: Mutex<HashMap<String, Refused>>,
}

impl Providers {
    /// A client that takes credentials from `source`. Nothing is connected or read before the first call.
    pub fn new(source: Arc<dyn CredentialSource>, options: ClientOptions) -> Self {
        Self::with_scripts(source, options, Scripts::default())
    }

    /// The same, with a script for the models of provider `scripted`.
    pub fn with_scripts(source: Arc<dyn CredentialSource>, options: ClientOptions, scripts: Scripts) -> Self {
        let clients = Arc::new(Clients::with_proxy(options.proxy.clone()));
        Self::with_clients(source, options, scripts, clients)
    }

    /// The same over connections that others use too.
    pub fn with_clients(
        source: Arc<dyn CredentialSource>,
        options: ClientOptions,
        scripts: Scripts,
        clients: Arc<Clients>,
    ) -> Self {
        let sender = Sender::new(clients, options.patience, options.tape.clone());
        Providers { shared: Arc::new(Shared { source, options, sender, scripts, refused: Mutex::default() }) }
    }
}

impl Providers {
    /// Asks servers for their models over the same connections as calls.
    pub fn fetch(&self) -> Fetch {
        self.web().fetch()
    }

    /// Other requests over the same connections.
    pub fn web(&self) -> Web {
        Web::new(self.shared.sender.clients.clone(), self.shared.options.patience)
    }
}

impl ModelClient for Providers {
    fn stream(&self, call: LlmCall, cancel: CancellationToken) -> mpsc::Receiver<AssistantEvent> {
        self.stream_with(call, Given::default(), cancel)
    }

    fn stream_with(&self, call: LlmCall, given: Given, cancel: CancellationToken) -> mpsc::Receiver<AssistantEvent> {
        // The task sends, the caller of `stream` receives; a channel that closes without an `End` means the task
        // panicked, which is how its owner notices.
        let (sender, receiver) = mpsc::channel(CHANNEL_EVENTS);
        let shared = self.shared.clone();
        tokio::spawn(async move { shared.run(call, given, cancel, sender).await });
        receiver
    }
}

impl Shared {
    async fn run(&self, call: LlmCall, given: Given, cancel: CancellationToken, sender: mpsc::Sender<AssistantEvent>) {
        let input_tokens = request_tokens(&call);
        let mut message = MessageBuilder::new(call.model.clone(), input_tokens);
        let whole = self.options.patience.whole;
        let overtime = async {
            match whole {
                Some(limit) => sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let answered = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            answered = self.answer(&call, given, input_tokens, &mut message, &sender) => Some(answered),
            () = overtime => Some(Err(timed_out(whole.unwrap_or_default()))),
        };
        match answered {
            // The response was dropped with the future, and its socket with it.
            None => message.abort(),
            Some(Err(fault)) => message.fail(fault),
            Some(Ok(())) => {}
        }
        let _ = deliver(&mut message, &sender).await;
    }

    /// Finds the wire and the credentials, then converses. Cancel-safe: undelivered events stay in `message`.
    async fn answer(
        &self,
        call: &LlmCall,
        given: Given,
        input_tokens: u64,
        message: &mut MessageBuilder,
        sender: &mpsc::Sender<AssistantEvent>,
    ) -> Result<(), Fault> {
        let refuse = |text: String| Fault::new(ErrorKind::InvalidRequest, text);
        let api = &call.model.api;
        if api == SCRIPTED {
            return self.scripts.answer(call, message, sender).await;
        }
        let wire = wire::for_api(api).ok_or_else(|| refuse(format!("No API provider registered for api: {api}")))?;
        let credentials = self.credentials(call, given).await.map_err(|text| Fault::new(ErrorKind::Auth, text))?;
        message.hide(secrets(&credentials));
        let conversation = Conversation { shared: self, call, wire, credentials: &credentials, input_tokens };
        let answer = conversation.request().await?;
        conversation.read(answer, message, sender).await
    }

    /// What the caller brought along, or what is configured.
    async fn credentials(&self, call: &LlmCall, given: Given) -> Result<Credentials, String> {
        let mut credentials = match given.api_key {
            Some(key) => Credentials {
                // A token looks like a key and is shown another way.
                bearer: key.contains("sk-ant-oat"),
                api_key: Some(key),
                ..Credentials::default()
            },
            None => self.source.credentials(&call.model).await?,
        };
        for (name, value) in given.headers {
            credentials.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
            credentials.headers.push((name, value));
        }
        Ok(credentials)
    }

    fn tell(&self, notice: Notice) {
        if let Some(listener) = &self.options.notice {
            listener(notice);
        }
    }
}

/// One call over HTTP.
struct Conversation<'a> {
    shared: &'a Shared,
    call: &'a LlmCall,
    wire: &'static dyn Wire,
    credentials: &'a Credentials,
    input_tokens: u64,
}

impl Conversation<'_> {
    /// Sends the request; a server that refuses an optional field is asked again without it.
    async fn request(&self) -> Result<Answer, Fault> {
        let (call, model) = (self.call, &self.call.model);
        let server = format!("{} {}", model.base_url, model.id);
        let secrets = secrets(self.credentials);
        let on_silence = |elapsed| self.silence(elapsed);
        let mut refused = self.refused().get(&server).cloned().unwrap_or_default();
        loop {
            let order = Order {
                call,
                credentials: self.credentials,
                taste: &self.shared.options.taste,
                refused: &refused,
                input_tokens: self.input_tokens,
            };
            let request = hooks::shape(call, self.wire, self.wire.request(&order)?).await?;
            let sending = self.shared.sender.send(self.wire, model, &request, &secrets, &on_silence);
            let refusal = match sending.await {
                Ok(answer) => {
                    hooks::arrived(call, answer.status(), answer.headers()).await;
                    return Ok(answer);
                }
                Err(refusal) => refusal,
            };
            if let Some((status, _)) = &refusal.answer {
                hooks::arrived(call, *status, &refusal.headers).await;
            }
            let is_learned = refusal.fault.failure.kind == ErrorKind::InvalidRequest
                && refusal.answer.is_some_and(|(status, body)| refused.learn(self.wire, &request.body, status, &body));
            if !is_learned {
                return Err(refusal.fault);
            }
            self.refused().insert(server.clone(), refused.clone());
            self.shared.tell(Notice::FieldRefused {
                provider: model.provider.clone(),
                model: model.id.clone(),
                text: redact(refusal.fault.text, &secrets),
            });
        }
    }

    fn refused(&self) -> std::sync::MutexGuard<'_, HashMap<String, Refused>> {
        self.shared.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read(
        &self,
        mut answer: Answer,
        message: &mut MessageBuilder,
        sender: &mpsc::Sender<AssistantEvent>,
    ) -> Result<(), Fault> {
        let idle = self.shared.options.patience.idle;
        let mut reading = Reading::new(self.wire);
        while !message.is_finished() {
            match answer.chunk(idle, |elapsed| self.silence(elapsed)).await {
                Ok(Some(bytes)) => reading.push(&bytes, message)?,
                Ok(None) if reading.is_foreign() => return Err(self.not_a_stream(&answer, &reading.head)),
                Ok(None) => reading.end(None, message),
                Err(fault) => reading.end(Some(fault), message),
            }
            if deliver(message, sender).await.is_break() {
                return Ok(());
            }
        }
        // What follows the last event is read so that the connection can be used again; nobody waits for it.
        let rest = async { while let Ok(Some(_)) = answer.chunk(None, |_| {}).await {} };
        let _ = timeout(LINGER, rest).await;
        Ok(())
    }

    fn silence(&self, elapsed: Duration) {
        let (provider, model) = (self.call.model.provider.clone(), self.call.model.id.clone());
        self.shared.tell(Notice::Silence { provider, model, elapsed });
    }

    /// A success without a single event: a login page, a proxy's notice, an error in disguise.
    fn not_a_stream(&self, answer: &Answer, head: &[u8]) -> Fault {
        let body = String::from_utf8_lossy(head);
        let body = body.trim();
        if let Some(error) = error_member(body) {
            let code = error["code"].as_str().or(error["type"].as_str());
            return Fault::reported(&self.call.model.provider, code, cut(&error.to_string(), wire::MAX_ERROR_CHARS));
        }
        let (kind, shown) = (answer.content_type(), cut(body, 500));
        Fault::new(ErrorKind::Protocol, format!("Expected an event stream, got {kind}: {shown}"))
    }
}

/// The bytes of one response on their way to becoming an answer.
struct Reading {
    sse: SseDecoder,
    decoder: Box<dyn Decoder>,
    n_events: u64,
    /// The beginning of a response that has no events so far.
    head: Vec<u8>,
}

impl Reading {
    fn new(wire: &dyn Wire) -> Self {
        Reading { sse: SseDecoder::default(), decoder: wire.decoder(), n_events: 0, head: Vec::new() }
    }

    fn push(&mut self, bytes: &[u8], message: &mut MessageBuilder) -> Result<(), Fault> {
        if self.n_events == 0 && self.head.len() < 4 * wire::MAX_ERROR_CHARS {
            self.head.extend_from_slice(bytes);
        }
        let Reading { sse, decoder, n_events, .. } = self;
        let mut handle = |event: SseEvent<'_>| decode(&mut **decoder, n_events, event, message);
        let pushed = sse.push(bytes, &mut handle);
        pushed.map(|_| ()).map_err(|error| Fault::new(ErrorKind::Protocol, error.to_string()))
    }

    /// Whether what came so far is not an event stream at all.
    fn is_foreign(&mut self) -> bool {
        self.n_events == 0 && !self.sse.has_pending_data() && !self.head.trim_ascii().is_empty()
    }

    fn end(&mut self, fault: Option<Fault>, message: &mut MessageBuilder) {
        let Reading { sse, decoder, n_events, .. } = self;
        // A cut may have left half an event behind; only a proper end completes it.
        if fault.is_none() {
            let _ = sse.finish(&mut |event: SseEvent<'_>| decode(&mut **decoder, n_events, event, message));
        }
        if !message.is_finished() {
            decoder.end(fault, message);
        }
    }
}

fn decode(
    decoder: &mut dyn Decoder,
    n_events: &mut u64,
    event: SseEvent<'_>,
    message: &mut MessageBuilder,
) -> ControlFlow<()> {
    *n_events += 1;
    decoder.event(event, message);
    if message.is_finished() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Hands the builder's events over. Breaks when nobody listens. Cancel-safe: an event leaves the builder only when
/// there is room for it.
pub(crate) async fn deliver(message: &mut MessageBuilder, sender: &mpsc::Sender<AssistantEvent>) -> ControlFlow<()> {
    while message.has_events() {
        let Ok(permit) = sender.reserve().await else { return ControlFlow::Break(()) };
        if let Some(event) = message.next_event() {
            permit.send(event);
        }
    }
    ControlFlow::Continue(())
}
