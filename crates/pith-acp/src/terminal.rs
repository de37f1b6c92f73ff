//! The terminal card of a command whose output is in updates (`_meta.terminal_output`, Zed): its id is that of the call.

use std::path::Path;

use agent_client_protocol_schema::v1::{
    Meta, SessionUpdate, Terminal, ToolCallContent, ToolCallUpdate, ToolCallUpdateFields,
};
use serde_json::json;

use crate::client::meta;

/// The content of a call that is shown in a terminal.
pub(crate) fn content(id: &str) -> Vec<ToolCallContent> {
    vec![ToolCallContent::Terminal(Terminal::new(id.to_owned()))]
}

/// Makes the terminal.
pub(crate) fn info(id: &str, cwd: &Path) -> Meta {
    meta(json!({"terminal_info": {"terminal_id": id, "cwd": cwd}}))
}

/// Adds to what the terminal shows.
pub(crate) fn output(id: &str, data: &str) -> SessionUpdate {
    let output = meta(json!({"terminal_output": {"terminal_id": id, "data": data}}));
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.to_owned(), ToolCallUpdateFields::new()).meta(output))
}

/// Says how the command has ended: a signal leaves no exit code, although shells make one of it.
pub(crate) fn exit(id: &str, code: Option<i32>, signal: Option<&str>) -> Meta {
    let code = if signal.is_some() { None } else { code };
    meta(json!({"terminal_exit": {"terminal_id": id, "exit_code": code, "signal": signal}}))
}
