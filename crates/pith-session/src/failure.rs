//! Failures that more than one command can have.

use pith_protocol::{CommandError, ErrorCode};

use crate::session::CLOSING;

/// The session is ending.
pub(crate) fn closing() -> CommandError {
    CommandError::new(ErrorCode::Closing, CLOSING)
}

/// A defect of pith.
pub(crate) fn internal(text: impl Into<String>) -> CommandError {
    CommandError::new(ErrorCode::Internal, text)
}
