//! Methods of pith's own: what the protocol has no words for is asked with the commands of rpc mode.

use std::rc::Rc;

use pith_acp::acp::{Error, SessionId};
use pith_acp::error::{invalid_params, unknown_method};
use pith_acp::params;
use pith_protocol::Command;
use pith_protocol::fields::FieldError;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::agent::Agent;
use super::conversation::{Conversation, of_command};

/// Methods and the commands they stand for; parameters have the same names.
const METHODS: &[(&str, &str)] = &[
    ("_pith/steer", "steer"),
    ("_pith/follow_up", "follow_up"),
    ("_pith/clear_queue", "clear_queue"),
    ("_pith/compact", "compact"),
    ("_pith/bash", "bash"),
    ("_pith/abort_bash", "abort_bash"),
    ("_pith/export_html", "export_html"),
    ("_pith/reload", "reload"),
    ("_pith/tree", "get_tree"),
    ("_pith/entries", "get_entries"),
    ("_pith/navigate", "navigate_tree"),
    ("_pith/label", "set_label"),
    ("_pith/stats", "get_session_stats"),
    ("_pith/state", "get_state"),
    ("_pith/mcp", "get_mcp_servers"),
    ("_pith/set_mcp_servers", "set_mcp_servers"),
    ("_pith/host_tools", "set_host_tools"),
    (DIAGNOSTICS, "get_diagnostics"),
    (COMMAND, ""),
];

/// Takes any other command.
const COMMAND: &str = "_pith/command";

/// Asks all open sessions if it names none.
const DIAGNOSTICS: &str = "_pith/diagnostics";

/// Commands that another method stands for: a session keeps its id here, and turns belong to prompts.
const REPLACED: &[(&str, &str)] = &[
    ("new_session", "session/new"),
    ("switch_session", "session/load"),
    ("fork", "_pith/fork"),
    ("branch", "_pith/fork"),
    ("clone", "session/fork"),
    ("prompt", "session/prompt"),
    ("abort_and_prompt", "session/prompt"),
    ("abort", "session/cancel"),
    ("set_model", "session/set_config_option"),
    ("set_auto_retry", "session/set_config_option"),
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnRequest {
    session_id: SessionId,
    #[serde(flatten)]
    fields: Map<String, Value>,
}

/// What an editor shows that a command changes without an event that says so.
enum Changes {
    Nothing,
    Plan,
    Everything,
}

impl Changes {
    fn of(command: &Command) -> Self {
        match command {
            Command::Reload(_) => Changes::Everything,
            Command::SetTodos(_) => Changes::Plan,
            _ => Changes::Nothing,
        }
    }
}

impl Agent {
    /// Serves `_pith/…`: answers what the command answers.
    pub(super) async fn own_method(self: Rc<Self>, method: String, params: Value) -> Result<Value, Error> {
        let Some((_, command)) = METHODS.iter().find(|(name, _)| *name == method) else {
            return Err(unknown_method(&method));
        };
        if method == DIAGNOSTICS && params.get("sessionId").is_none_or(Value::is_null) {
            return self.all_diagnostics().await;
        }
        let OwnRequest { session_id, fields } = params::read(params)?;
        let conversation = self.conversation(&session_id)?;
        if method == DIAGNOSTICS {
            return Ok(json!(conversation.diagnostics().await.map_err(of_command)?));
        }
        let command = if method == COMMAND { any_command(fields) } else { known_command(command, fields) };
        let command = command?;
        let changes = Changes::of(&command);
        let answer = conversation.seat.ask_any(command).await.map_err(of_command)?;
        match changes {
            Changes::Nothing => {}
            Changes::Everything => after_reload(&conversation).await,
            Changes::Plan => conversation.tell_plan().await,
        }
        Ok(answer)
    }

    /// What is wrong in any open session, each thing once.
    async fn all_diagnostics(&self) -> Result<Value, Error> {
        let mut found = Vec::new();
        for conversation in self.open_conversations() {
            // A session that ends meanwhile has nothing to say.
            let Ok(answer) = conversation.diagnostics().await else { continue };
            for diagnostic in answer.diagnostics {
                let diagnostic = json!(diagnostic);
                if !found.contains(&diagnostic) {
                    found.push(diagnostic);
                }
            }
        }
        Ok(json!({ "diagnostics": found }))
    }
}

/// Tells the editor what may be different after settings, models and resources were read again.
pub(super) async fn after_reload(conversation: &Conversation) {
    conversation.tell_commands().await;
    conversation.tell_options().await;
}

/// Reads the command that a method stands for.
fn known_command(name: &str, mut fields: Map<String, Value>) -> Result<Command, Error> {
    if name == "compact"
        && let Some(instructions) = fields.remove("instructions")
    {
        fields.insert("customInstructions".to_owned(), instructions);
    }
    read_command(name, &mut fields, "")
}

/// Reads the command that `_pith/command` carries.
fn any_command(mut fields: Map<String, Value>) -> Result<Command, Error> {
    let Some(Value::Object(mut command)) = fields.remove("command") else {
        return Err(invalid_params("command", "Parameter command must be an object"));
    };
    let Some(Value::String(name)) = command.remove("type") else {
        return Err(invalid_params("command.type", "Parameter command.type must be the name of a command"));
    };
    if let Some((_, instead)) = REPLACED.iter().find(|(replaced, _)| *replaced == name) {
        return Err(invalid_params("command.type", format!("{name} is not served here: use {instead}")));
    }
    read_command(&name, &mut command, "command.")
}

/// Reads a command; `below` is where its fields stand in the parameters.
fn read_command(name: &str, fields: &mut Map<String, Value>, below: &str) -> Result<Command, Error> {
    let command = Command::read(name, fields)
        .ok_or_else(|| invalid_params("command.type", format!("Unknown command: {name}")))?;
    command.map_err(|error| {
        let field = match &error {
            FieldError::Missing { path, .. } | FieldError::Invalid { path, .. } => format!("{below}{path}"),
            FieldError::HostTool(_) => format!("{below}tools"),
        };
        invalid_params(&field, error.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(error: &Error) -> &str {
        error.data.as_ref().and_then(|data| data["field"].as_str()).unwrap_or_default()
    }

    #[test]
    fn every_method_stands_for_a_command() {
        for (method, name) in METHODS.iter().filter(|(method, _)| *method != COMMAND) {
            assert!(Command::NAMES.contains(name), "{method}");
        }
        for (name, _) in REPLACED {
            assert!(Command::NAMES.contains(name), "{name}");
        }
    }

    #[test]
    fn wrong_parameters_are_named() {
        let check = |params: Value, expected: &str| {
            let Value::Object(fields) = params.clone() else { panic!("an object") };
            assert_eq!(field(&any_command(fields).expect_err("it is refused")), expected, "{params}");
        };
        check(json!({}), "command");
        check(json!({"command": "get_state"}), "command");
        check(json!({"command": {"type": 5}}), "command.type");
        check(json!({"command": {"type": "dance"}}), "command.type");
        check(json!({"command": {"type": "new_session"}}), "command.type");
        check(json!({"command": {"type": "steer"}}), "command.message");
        check(json!({"command": {"type": "set_auto_compaction", "enabled": "yes"}}), "command.enabled");
        let bash = known_command("bash", Map::new()).expect_err("it is refused");
        assert_eq!(field(&bash), "command");
    }
}
