//! What servers have refused in this process, and how requests are adjusted to it.
//!
//! Many refusals name what would have been accepted. The request is then made
//! again in that way, and later requests to the same model start from there.
//! What can be learned, and from which words, is in four tables: fields in
//! `wire::refused::table`, with the words for thinking that is given back;
//! sizes in `limits::refused`; pictures in `images`.

use std::sync::Arc;

use pith_protocol::{ErrorKind, LlmCall};

use super::images::RefusedImages;
use super::thinking::RefusedThinking;
use crate::http::Refusal;
use crate::limits::{LearnedLimits, asked_for};
use crate::wire::{HttpRequest, Refused, Wire};

/// How often one call may be made again with a lower output limit. A server may name the limit of the model first
/// and that of the window afterwards.
const MAX_LOWERED: usize = 2;

/// What one server has refused for one model.
#[derive(Clone, Debug, Default)]
pub(super) struct Quirks {
    pub refused: Refused,
    pub limits: LearnedLimits,
    pub images: RefusedImages,
    pub thinking: RefusedThinking,
}

/// How a refused request is made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Adjustment {
    /// Without an optional field.
    DropField,
    /// With this output limit.
    LowerLimit(u64),
    /// Without so many images, for this reason.
    OmitImages(usize, Arc<str>),
    /// Without so many blocks of earlier thinking.
    OmitThinking(usize),
}

impl Adjustment {
    /// Returns a name for logs.
    pub fn word(&self) -> &'static str {
        match self {
            Adjustment::DropField => "without a field",
            Adjustment::LowerLimit(_) => "with a lower limit",
            Adjustment::OmitImages(..) => "without images",
            Adjustment::OmitThinking(_) => "without earlier thinking",
        }
    }
}

/// Decides whether one call is made again after a refusal.
#[derive(Debug, Default)]
pub(super) struct Adjuster {
    n_lowered: usize,
}

impl Adjuster {
    /// Reads a refusal and records in `quirks` what it says. The input of the request is about `input_tokens` long.
    /// Returns nothing when another request would be refused as well.
    pub fn adjust(
        &mut self,
        quirks: &mut Quirks,
        call: &LlmCall,
        wire: &dyn Wire,
        request: &HttpRequest,
        refusal: &Refusal,
        input_tokens: u64,
    ) -> Option<Adjustment> {
        let (status, body) = refusal.answer.as_ref()?;
        if let Some((count, reason)) = quirks.images.learn(call, &request.body, *status, body) {
            return Some(Adjustment::OmitImages(count, reason));
        }
        if let Some(count) = quirks.thinking.learn(call, *status, body) {
            return Some(Adjustment::OmitThinking(count));
        }
        let kind = refusal.fault.failure.kind;
        if !matches!(kind, ErrorKind::InvalidRequest | ErrorKind::Overflow) {
            return None;
        }
        if self.n_lowered < MAX_LOWERED {
            let asked = asked_for(&request.body);
            if let Some(limit) = asked.and_then(|asked| quirks.limits.learn(body, asked, input_tokens)) {
                self.n_lowered += 1;
                return Some(Adjustment::LowerLimit(limit));
            }
        }
        let is_field = kind == ErrorKind::InvalidRequest && quirks.refused.learn(wire, &request.body, *status, body);
        is_field.then_some(Adjustment::DropField)
    }
}

impl Quirks {
    /// Returns the call changed to what the server accepts; `None` if nothing has to change.
    pub fn correct(&self, call: &LlmCall) -> Option<LlmCall> {
        let limited = self.limits.correct(call);
        let thoughtless = self.thinking.remove(&call.messages);
        let messages = self.images.replace(thoughtless.as_ref().unwrap_or(&call.messages)).or(thoughtless);
        match messages {
            None => limited,
            Some(messages) => Some(LlmCall { messages, ..limited.unwrap_or_else(|| call.clone()) }),
        }
    }
}
