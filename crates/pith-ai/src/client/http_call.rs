//! One call over HTTP: sending the request, asking again in another way, reading the answer.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::time::Duration;

use pith_protocol::{AssistantEvent, ErrorKind, LlmCall};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tracing::{debug, warn};

use super::quirks::{Adjuster, Adjustment, Quirks};
use super::response_reader::ResponseReader;
use super::{Notice, Shared, deliver};
use crate::assemble::MessageBuilder;
use crate::credentials::Credentials;
use crate::failure::Fault;
use crate::hooks;
use crate::http::{Answer, Outgoing, secrets};
use crate::limits::with_exact_limit;
use crate::network;
use crate::wire::{self, RequestInput, Wire, cut, error_member};

/// How long the rest of a finished response is read, so that its connection can be used again.
const LINGER: Duration = Duration::from_millis(250);

/// One call over HTTP.
pub(super) struct HttpCall<'a> {
    pub shared: &'a Shared,
    pub call: &'a LlmCall,
    pub wire: &'static dyn Wire,
    pub credentials: &'a Credentials,
    pub input_tokens: u64,
}

impl HttpCall<'_> {
    /// Sends the request; a server whose refusal says what it would take is asked again for that.
    pub async fn request(&self, message: &mut MessageBuilder) -> Result<Answer, Fault> {
        let model = &self.call.model;
        let server = format!("{} {} {}", model.api, model.base_url, model.id);
        let secrets = secrets(self.credentials, &model.base_url);
        let on_silence = |elapsed| self.report_silence(elapsed);
        let mut quirks = self.quirks().get(&server).cloned().unwrap_or_default();
        let mut exact_limit = None;
        let mut adjuster = Adjuster::default();
        loop {
            let corrected = quirks.correct(self.call);
            let corrected = match exact_limit {
                Some(limit) => Some(with_exact_limit(corrected.as_ref().unwrap_or(self.call), limit)),
                None => corrected,
            };
            let call = corrected.as_ref().unwrap_or(self.call);
            let input = RequestInput {
                call,
                credentials: self.credentials,
                options: &self.shared.options.request,
                refused: &quirks.refused,
                input_tokens: self.input_tokens,
            };
            let request = self.wire.request(&input).map_err(|fault| self.explain(fault, None))?;
            let request = hooks::change_request(call, self.wire, request).await?;
            let (url, n_bytes) = (network::place(&request.url), request.body.len());
            debug!(target: "pith::model", api = %model.api, %url, n_bytes, tokens = self.input_tokens, "request");
            let outgoing = Outgoing {
                wire: self.wire,
                model,
                request: &request,
                secrets: &secrets,
                known_secrets: &self.shared.options.secrets,
                on_silence: &on_silence,
            };
            let refusal = match self.shared.sender.send(outgoing).await {
                Ok(answer) => {
                    hooks::report_response(call, answer.status(), answer.headers()).await;
                    return Ok(answer);
                }
                Err(refusal) => refusal.redacted(&self.shared.options.secrets),
            };
            if let Some((status, _)) = &refusal.answer {
                hooks::report_response(call, *status, &refusal.headers).await;
            }
            let adjustment = adjuster.adjust(&mut quirks, call, self.wire, &request, &refusal, self.input_tokens);
            if let Some(window) = quirks.limits.window {
                self.shared.source.on_window(model, window);
            }
            self.quirks().insert(server.clone(), quirks.clone());
            let Some(adjustment) = adjustment else { return Err(self.explain(refusal.fault, Some(&request.url))) };
            match &adjustment {
                Adjustment::DropField => {}
                Adjustment::LowerLimit(limit) => exact_limit = Some(*limit),
                Adjustment::OmitImages(count, reason) => {
                    message.note("imagesOmitted", json!({"count": count, "reason": &**reason}))
                }
                Adjustment::OmitThinking(count) => message.note("thinkingOmitted", json!({"count": count})),
            }
            warn!(target: "pith::model", how = adjustment.word(), "asking again");
            self.notify(adjustment, refusal.fault.text);
        }
    }

    /// Adds to the fault of an address that does not exist where it is configured and what was requested.
    fn explain(&self, mut fault: Fault, asked: Option<&str>) -> Fault {
        let is_unreachable =
            ["Invalid baseUrl", "Connection error: could not reach"].iter().any(|start| fault.text.starts_with(start));
        // A server that knows no such model says so; this one knows no such path.
        let is_path = matches!(fault.failure.status, Some(404 | 405)) && !fault.text.to_lowercase().contains("model");
        let place =
            (is_unreachable || is_path).then(|| self.shared.source.base_url_location(&self.call.model)).flatten();
        let Some(place) = place else { return fault };
        fault.text += &match asked.filter(|_| is_path) {
            Some(url) => format!(" (asked at {}; the address is {place})", network::without_credentials(url)),
            None => format!(" (the address is {place})"),
        };
        fault
    }

    /// Notifies the caller of how requests are made from now on.
    fn notify(&self, adjustment: Adjustment, text: String) {
        let (provider, model) = (self.call.model.provider.clone(), self.call.model.id.clone());
        self.shared.notify(match adjustment {
            Adjustment::DropField => Notice::FieldRefused { provider, model, text },
            Adjustment::OmitImages(count, _) => Notice::ImageRefused { provider, model, count, text },
            Adjustment::OmitThinking(count) => Notice::ThinkingRefused { provider, model, count, text },
            Adjustment::LowerLimit(limit) => Notice::LimitRefused { provider, model, limit, text },
        });
    }

    fn quirks(&self) -> std::sync::MutexGuard<'_, HashMap<String, Quirks>> {
        self.shared.quirks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the answer into `message` and sends its events.
    pub async fn read(
        &self,
        mut answer: Answer,
        message: &mut MessageBuilder,
        sender: &mpsc::Sender<AssistantEvent>,
    ) -> Result<(), Fault> {
        let idle = self.shared.options.timeouts.idle;
        let mut reader = ResponseReader::new(self.wire);
        let (start, mut n_bytes) = (Instant::now(), 0);
        while !message.is_finished() {
            match answer.chunk(idle, |elapsed| self.report_silence(elapsed)).await {
                Ok(Some(bytes)) => {
                    if n_bytes == 0 {
                        debug!(target: "pith::model", took = ?start.elapsed(), "first byte");
                    }
                    n_bytes += bytes.len();
                    reader.push(&bytes, message)?;
                }
                Ok(None) if reader.is_foreign() => {
                    if !reader.end_unstreamed(message) {
                        return Err(self.not_a_stream(&answer, &reader.head));
                    }
                }
                Ok(None) => reader.end(None, message),
                Err(fault) => reader.end(Some(fault), message),
            }
            if deliver(message, sender).await.is_break() {
                return Ok(());
            }
        }
        debug!(target: "pith::model", n_bytes, took = ?start.elapsed(), "last byte");
        // What follows the last event is read so that the connection can be used again; the answer is complete already.
        let rest = async { while let Ok(Some(_)) = answer.chunk(None, |_| {}).await {} };
        let _ = timeout(LINGER, rest).await;
        Ok(())
    }

    fn report_silence(&self, elapsed: Duration) {
        let (provider, model) = (self.call.model.provider.clone(), self.call.model.id.clone());
        self.shared.notify(Notice::Silence { provider, model, elapsed });
    }

    /// Returns the fault of a successful response without a single event: a login page, a proxy's notice, an error in
    /// disguise.
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
