//! The session as extensions look at it: questions answered from its state alone.

use pith_ext::Query;

use crate::session::Session;

impl Session {
    /// The extension's thread waits for this answer.
    pub(crate) fn answer_query(&mut self, _query: Query) {}
}
