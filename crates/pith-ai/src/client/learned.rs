//! What servers teach this process about themselves.
//!
//! A refusal that names what would have been accepted is a lesson: the request
//! is made again in that way, and later ones are right from the start.

use std::sync::Arc;

use pith_protocol::{ErrorKind, LlmCall};

use super::pictures::RefusedPictures;
use crate::http::Refusal;
use crate::limits::{LearnedLimits, asked_for};
use crate::wire::{HttpRequest, Refused, Wire};

/// How often one call may be made again with another output limit. A server may name the limit of the model first
/// and that of the window afterwards.
const MAX_LIMITS: usize = 2;

/// The lessons of one server about one model.
#[derive(Clone, Debug, Default)]
pub(super) struct Learned {
    pub refused: Refused,
    pub limits: LearnedLimits,
    pub pictures: RefusedPictures,
}

/// A lesson, and how the request is made now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lesson {
    /// Without an optional field.
    Field,
    /// With this output limit.
    Limit(u64),
    /// Without so many pictures, for this reason.
    Pictures(usize, Arc<str>),
}

/// The lessons of one call.
#[derive(Debug, Default)]
pub(super) struct Course {
    n_limits: usize,
}

impl Course {
    /// Looks for a lesson in a refusal. The input of the request is about `input_tokens` long.
    pub fn learn(
        &mut self,
        learned: &mut Learned,
        call: &LlmCall,
        wire: &dyn Wire,
        request: &HttpRequest,
        refusal: &Refusal,
        input_tokens: u64,
    ) -> Option<Lesson> {
        let (status, body) = refusal.answer.as_ref()?;
        if let Some((count, reason)) = learned.pictures.learn(call, &request.body, *status, body) {
            return Some(Lesson::Pictures(count, reason));
        }
        let kind = refusal.fault.failure.kind;
        if !matches!(kind, ErrorKind::InvalidRequest | ErrorKind::Overflow) {
            return None;
        }
        if self.n_limits < MAX_LIMITS {
            let asked = asked_for(&request.body);
            let fitting = asked.and_then(|asked| learned.limits.learn(body, asked, input_tokens));
            if let Some(limit) = fitting {
                self.n_limits += 1;
                return Some(Lesson::Limit(limit));
            }
        }
        let is_field = kind == ErrorKind::InvalidRequest && learned.refused.learn(wire, &request.body, *status, body);
        is_field.then_some(Lesson::Field)
    }
}

impl Learned {
    /// The call as the server can take it; nothing if that is as it was made.
    pub fn correct(&self, call: &LlmCall) -> Option<LlmCall> {
        let limited = self.limits.correct(call);
        let messages = self.pictures.replace(&call.messages);
        match (limited, messages) {
            (limited, None) => limited,
            (limited, Some(messages)) => Some(LlmCall { messages, ..limited.unwrap_or_else(|| call.clone()) }),
        }
    }
}
