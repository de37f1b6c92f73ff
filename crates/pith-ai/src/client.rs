//! The model client: takes a call, finds the API and the credentials for it, and
//! streams the answer.

mod http_call;
mod images;
mod quirks;
mod response_reader;
mod thinking;

use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pith_agent::{CallOverrides, ModelClient};
use pith_config::settings::{HandoffThinking, Settings};
use pith_protocol::{AssistantEvent, ErrorKind, LlmCall};
use pith_secrets::Secrets;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug};

use crate::assemble::MessageBuilder;
use crate::credentials::{CredentialSource, Credentials};
use crate::discovery::Fetch;
use crate::failure::Fault;
use crate::http::{Clients, Sender, Tape, Timeouts, Web, secrets, timed_out};
use crate::limits::request_tokens;
use crate::prepare::ForeignThinking;
use crate::scripted::{SCRIPTED, Scripts};
use crate::wire::{self, RequestOptions};

use http_call::HttpCall;
use quirks::Quirks;

/// How many events may wait for the consumer before the socket is left unread.
const CHANNEL_EVENTS: usize = 256;

/// What the user can choose about model calls.
#[derive(Clone, Default)]
pub struct ClientOptions {
    pub timeouts: Timeouts,
    pub request: RequestOptions,
    /// Used where the environment names none.
    pub proxy: Option<String>,
    /// Whether calls are recorded or replayed.
    pub tape: Tape,
    /// Called with things worth showing while a call runs. Must not block.
    pub notice: Option<Arc<dyn Fn(Notice) + Send + Sync>>,
    /// Learns the credentials of every call; none of them is in an error or a recording.
    pub secrets: Arc<Secrets>,
}

impl fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientOptions")
            .field("timeouts", &self.timeouts)
            .field("request", &self.request)
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
        let timeouts = Timeouts {
            first_byte: settings.http_idle_timeout,
            idle: settings.http_idle_timeout,
            whole: provider.timeout,
            retries: provider.max_retries.try_into().unwrap_or(u32::MAX),
            max_retry_delay: provider.max_retry_delay,
            ..Timeouts::default()
        };
        let attribution = settings.enable_install_telemetry;
        let request = RequestOptions { budgets: settings.thinking_budgets, foreign_thinking, attribution };
        let (proxy, tape) = (settings.http_proxy.clone(), Tape::from_env());
        ClientOptions { timeouts, request, proxy, tape, ..ClientOptions::default() }
    }
}

/// Something worth knowing about a running call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The provider has not sent a byte for this long; twice as long ends the call.
    Silence { provider: String, model: String, elapsed: Duration },
    /// The server refuses an optional field, which is left out from now on.
    FieldRefused { provider: String, model: String, text: String },
    /// The server cannot take the output limit the model's entry allows; requests ask for less from now on.
    LimitRefused { provider: String, model: String, limit: u64, text: String },
    /// The server refuses images of the conversation; a note takes their place from now on.
    ImageRefused { provider: String, model: String, count: usize, text: String },
    /// The server refuses earlier thinking of the conversation, which is left out from now on.
    ThinkingRefused { provider: String, model: String, count: usize, text: String },
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
            Notice::ImageRefused { provider, model, count, text } => {
                write!(f, "{provider}/{model} refuses {count} image(s), which are left out from now on: {text}")
            }
            Notice::ThinkingRefused { provider, model, count, text } => write!(
                f,
                "{provider}/{model} refuses {count} block(s) of earlier thinking, which are left out from now on: {text}"
            ),
            Notice::LimitRefused { provider, model, limit, text } => write!(
                f,
                "{provider}/{model} refuses the output limit and was asked again for {limit} tokens; \"contextWindow\" \
                 and \"maxTokens\" of the model say what it can take: {text}"
            ),
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
    /// What servers have refused in this process, by API, address and model. Held for a few lines at a time.
    quirks: Mutex<HashMap<String, Quirks>>,
}

impl Providers {
    /// Makes a client that takes credentials from `source`. Nothing is connected or read before the first call.
    pub fn new(source: Arc<dyn CredentialSource>, options: ClientOptions) -> Self {
        Self::with_scripts(source, options, Scripts::default())
    }

    /// Makes such a client with a script for the models of provider `scripted`.
    pub fn with_scripts(source: Arc<dyn CredentialSource>, options: ClientOptions, scripts: Scripts) -> Self {
        let clients = Arc::new(Clients::with_proxy(options.proxy.clone()));
        Self::with_clients(source, options, scripts, clients)
    }

    /// Makes such a client over connections that it shares.
    pub fn with_clients(
        source: Arc<dyn CredentialSource>,
        options: ClientOptions,
        scripts: Scripts,
        clients: Arc<Clients>,
    ) -> Self {
        let sender = Sender::new(clients, options.timeouts, options.tape.clone());
        Providers { shared: Arc::new(Shared { source, options, sender, scripts, quirks: Mutex::default() }) }
    }
}

impl Providers {
    /// Asks servers for their models over the same connections as calls.
    pub fn fetch(&self) -> Fetch {
        self.web().fetch()
    }

    /// Returns a client for other requests over the same connections.
    pub fn web(&self) -> Web {
        Web::new(self.shared.sender.clients.clone(), self.shared.options.timeouts)
    }
}

impl ModelClient for Providers {
    fn stream(&self, call: LlmCall, cancel: CancellationToken) -> mpsc::Receiver<AssistantEvent> {
        self.stream_with(call, CallOverrides::default(), cancel)
    }

    fn stream_with(
        &self,
        call: LlmCall,
        overrides: CallOverrides,
        cancel: CancellationToken,
    ) -> mpsc::Receiver<AssistantEvent> {
        // The task sends, the caller of `stream` receives; a channel that closes without an `End` means the task
        // panicked, which is how its owner notices.
        let (sender, receiver) = mpsc::channel(CHANNEL_EVENTS);
        let shared = self.shared.clone();
        tokio::spawn(async move { shared.run(call, overrides, cancel, sender).await }.in_current_span());
        receiver
    }
}

impl Shared {
    async fn run(
        &self,
        call: LlmCall,
        overrides: CallOverrides,
        cancel: CancellationToken,
        sender: mpsc::Sender<AssistantEvent>,
    ) {
        let input_tokens = request_tokens(&call);
        let mut message = MessageBuilder::new(call.model.clone(), input_tokens);
        let whole = self.options.timeouts.whole;
        let overtime = async {
            match whole {
                Some(limit) => sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let answered = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            answered = self.answer(&call, overrides, input_tokens, &mut message, &sender) => Some(answered),
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

    /// Finds the wire and the credentials, then makes the call. Cancel-safe: undelivered events stay in `message`.
    async fn answer(
        &self,
        call: &LlmCall,
        overrides: CallOverrides,
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
        let start = Instant::now();
        let credentials = self.credentials(call, overrides).await.map_err(|text| Fault::new(ErrorKind::Auth, text))?;
        // Their `Debug` has names and no values.
        debug!(target: "pith::model", ?credentials, took = ?start.elapsed(), "credentials");
        secrets(&credentials, &call.model.base_url).iter().for_each(|value| self.options.secrets.remember(value));
        message.hide(self.options.secrets.clone());
        let http_call = HttpCall { shared: self, call, wire, credentials: &credentials, input_tokens };
        let answer = http_call.request(message).await?;
        http_call.read(answer, message, sender).await
    }

    /// Returns the credentials of the caller, else the configured ones.
    async fn credentials(&self, call: &LlmCall, overrides: CallOverrides) -> Result<Credentials, String> {
        let mut credentials = match overrides.api_key {
            Some(key) => Credentials {
                // A token looks like a key and is sent in another header.
                bearer: key.contains("sk-ant-oat"),
                api_key: Some(key),
                ..Credentials::default()
            },
            None => self.source.credentials(&call.model).await?,
        };
        for (name, value) in overrides.headers {
            credentials.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
            credentials.headers.push((name, value));
        }
        Ok(credentials)
    }

    fn notify(&self, notice: Notice) {
        if let Some(listener) = &self.options.notice {
            listener(notice);
        }
    }
}

/// Sends the builder's events. Breaks when the receiver is gone. Cancel-safe: an event leaves the builder only when
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
