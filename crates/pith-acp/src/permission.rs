//! Whether a tool call may run, as a question to an editor.

use agent_client_protocol_schema::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SessionId, ToolCallContent, ToolCallUpdate,
};
use pith_protocol::permissions::{self, OptionId, OptionKind};
use serde_json::Value;

/// What the user said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// `None` is no option that there is, which is a no.
    Chosen(Option<OptionId>),
    /// The editor says that the turn is cancelled.
    TurnCancelled,
}

/// Returns the question about a call. The card shows why it is asked above what the call shows itself.
pub fn request(
    session: &SessionId,
    mut call: ToolCallUpdate,
    arguments: Value,
    reason: &str,
    options: &[permissions::PermissionOption],
) -> RequestPermissionRequest {
    let asked = ToolCallContent::from(reason.to_owned());
    call.fields.content = Some([asked].into_iter().chain(call.fields.content.take().unwrap_or_default()).collect());
    call.fields.raw_input = Some(arguments);
    RequestPermissionRequest::new(session.clone(), call, options.iter().map(option).collect())
}

/// Reads an answer.
pub fn answer(result: Value) -> Answer {
    match serde_json::from_value::<RequestPermissionResponse>(result).map(|response| response.outcome) {
        Ok(RequestPermissionOutcome::Selected(selected)) => Answer::Chosen(OptionId::parse(&selected.option_id.0)),
        Ok(RequestPermissionOutcome::Cancelled) => Answer::TurnCancelled,
        Ok(_) | Err(_) => Answer::Chosen(None),
    }
}

fn option(option: &permissions::PermissionOption) -> PermissionOption {
    let kind = match option.kind {
        OptionKind::AllowOnce => PermissionOptionKind::AllowOnce,
        OptionKind::AllowAlways => PermissionOptionKind::AllowAlways,
        OptionKind::RejectOnce => PermissionOptionKind::RejectOnce,
        OptionKind::RejectAlways => PermissionOptionKind::RejectAlways,
    };
    let name = match (option.id, &option.rule) {
        (OptionId::Once, _) => "Allow".to_owned(),
        (OptionId::Session, Some(rule)) => format!("Always allow {rule} in this session"),
        (OptionId::Session, None) => "Always allow this call in this session".to_owned(),
        (OptionId::Project | OptionId::Similar, rule) => {
            format!("Always allow {} in this project", rule.as_deref().unwrap_or("such calls"))
        }
        (OptionId::Deny, _) => "Reject".to_owned(),
        (OptionId::Stop, _) => "Reject and stop".to_owned(),
    };
    PermissionOption::new(option.id.as_str(), name, kind)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_an_offered_option_is_an_answer() {
        let chose = |option: &str| answer(json!({"outcome": {"outcome": "selected", "optionId": option}}));
        assert_eq!(chose("session"), Answer::Chosen(Some(OptionId::Session)));
        assert_eq!(chose("dance"), Answer::Chosen(None));
        assert_eq!(answer(json!({"outcome": {"outcome": "cancelled"}})), Answer::TurnCancelled);
        assert_eq!(answer(json!(3)), Answer::Chosen(None));
    }
}
