//! What pith does for extensions outside the session: HTTP requests and built-in tools.

use pith_ext::outgoing::{FetchReply, FetchRequest, ToolReply, ToolRequest};

use crate::session::Session;

impl Session {
    pub(crate) fn fetch_for_extension(&mut self, _request: FetchRequest, _reply: FetchReply) {}

    pub(crate) fn run_tool_for_extension(&mut self, _request: ToolRequest, _reply: ToolReply) {}
}
