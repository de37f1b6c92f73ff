//! Dialogs of extensions as questions to an editor: a form where the editor has forms, otherwise the card that asks for
//! permission.

use agent_client_protocol_schema::v1::{
    BooleanPropertySchema, CreateElicitationRequest, CreateElicitationResponse, ElicitationAction,
    ElicitationContentValue, ElicitationFormMode, ElicitationPropertySchema, ElicitationSchema,
    ElicitationSessionScope, ElicitationUrlMode, EnumOption, PermissionOption, PermissionOptionKind,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, SessionId, StringPropertySchema,
    ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use pith_protocol::host::{UiAnswer, UiMethod};
use serde_json::{Value, json};

use PermissionOptionKind::{AllowOnce, RejectOnce};

/// How many choices a permission card may have.
const MAX_CHOICES: usize = 20;

/// The option that dismisses a dialog.
const CANCEL: &str = "cancel";

/// What the user said to a permission card.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    Answer(UiAnswer),
    /// The editor says that the turn is cancelled.
    TurnCancelled,
}

/// Returns a dialog as a form; `None` for what asks nothing, or leaves nothing to choose.
pub fn form(session: &SessionId, method: &UiMethod) -> Option<CreateElicitationRequest> {
    let (message, schema) = match method {
        UiMethod::Confirm { title, message, .. } => {
            let answer = BooleanPropertySchema::new().title(title.clone());
            (join(title, message), ElicitationSchema::new().property("answer", answer, true))
        }
        UiMethod::Select { title, options, .. } if !options.is_empty() => {
            let choices: Vec<_> =
                options.iter().map(|option| EnumOption::new(option.clone(), option.clone())).collect();
            let choice = StringPropertySchema::new().title(title.clone()).one_of(choices);
            (title.clone(), ElicitationSchema::new().property("choice", choice, true))
        }
        UiMethod::Input { title, placeholder, .. } => {
            let text = StringPropertySchema::new().title(title.clone()).description(placeholder.clone());
            (title.clone(), ElicitationSchema::new().property("text", text, true))
        }
        UiMethod::Editor { title, prefill } => {
            let text = StringPropertySchema::new().title(title.clone()).default_value(prefill.clone());
            (title.clone(), ElicitationSchema::new().property("text", text, true))
        }
        _ => return None,
    };
    let scope = ElicitationSessionScope::new(session.clone());
    Some(CreateElicitationRequest::new(ElicitationFormMode::new(scope, schema), message))
}

/// Reads what the user filled in. Whatever is no answer dismisses the dialog.
pub fn filled_in(method: &UiMethod, result: Value) -> UiAnswer {
    let Ok(response) = serde_json::from_value::<CreateElicitationResponse>(result) else { return UiAnswer::Cancelled };
    let ElicitationAction::Accept(accepted) = response.action else { return UiAnswer::Cancelled };
    let mut content = accepted.content.unwrap_or_default();
    let mut take = |name: &str| content.remove(name);
    match method {
        UiMethod::Confirm { .. } => match take("answer") {
            Some(ElicitationContentValue::Boolean(is)) => UiAnswer::Confirmed(is),
            _ => UiAnswer::Cancelled,
        },
        UiMethod::Select { options, .. } => match take("choice") {
            Some(ElicitationContentValue::String(choice)) if options.contains(&choice) => UiAnswer::Value(choice),
            _ => UiAnswer::Cancelled,
        },
        _ => match take("text") {
            Some(ElicitationContentValue::String(text)) => UiAnswer::Value(text),
            _ => UiAnswer::Cancelled,
        },
    }
}

/// Returns the form of an MCP server as it is; `None` if an editor has no words for it.
pub fn whole_form(scope: ElicitationSessionScope, message: &str, schema: &Value) -> Option<CreateElicitationRequest> {
    let mut schema = schema.clone();
    schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten().for_each(|(_, property)| {
        name_choices(property);
    });
    let schema: ElicitationSchema = serde_json::from_value(schema).ok()?;
    let is_known = |property: &ElicitationPropertySchema| !matches!(property, ElicitationPropertySchema::Other(_));
    let request = || CreateElicitationRequest::new(ElicitationFormMode::new(scope, schema.clone()), message);
    schema.properties.values().all(is_known).then(request)
}

/// Writes choices with names as editors know them: older servers have the names in a list of their own.
fn name_choices(property: &mut Value) {
    let Some(property) = property.as_object_mut() else { return };
    let (Some(Value::Array(names)), Some(Value::Array(values))) = (property.get("enumNames"), property.get("enum"))
    else {
        return;
    };
    let name = |at: usize, value: &Value| names.get(at).unwrap_or(value).clone();
    let choice = |(at, value): (usize, &Value)| json!({"const": value, "title": name(at, value)});
    let choices: Vec<Value> = values.iter().enumerate().map(choice).collect();
    property.remove("enumNames");
    property.remove("enum");
    property.insert("oneOf".to_owned(), Value::Array(choices));
}

/// Reads what became of the form of an MCP server.
pub fn whole_answer(result: Value) -> UiAnswer {
    match serde_json::from_value::<CreateElicitationResponse>(result).map(|response| response.action) {
        Ok(ElicitationAction::Accept(accepted)) => {
            let content = serde_json::to_string(&accepted.content.unwrap_or_default());
            content.map_or(UiAnswer::Cancelled, UiAnswer::Value)
        }
        Ok(ElicitationAction::Decline) => UiAnswer::Confirmed(false),
        _ => UiAnswer::Cancelled,
    }
}

/// Returns the question whether the user opens a page.
pub fn page(scope: ElicitationSessionScope, id: &str, url: &str, message: String) -> CreateElicitationRequest {
    CreateElicitationRequest::new(ElicitationUrlMode::new(scope, id.to_owned(), url), message)
}

/// Reads whether the user opens the page.
pub fn opened(result: Value) -> UiAnswer {
    match serde_json::from_value::<CreateElicitationResponse>(result).map(|response| response.action) {
        Ok(ElicitationAction::Accept(_)) => UiAnswer::Confirmed(true),
        Ok(ElicitationAction::Decline) => UiAnswer::Confirmed(false),
        _ => UiAnswer::Cancelled,
    }
}

/// Returns the call that exists only for a dialog.
pub fn card(call: &str, method: &UiMethod) -> ToolCall {
    let (title, text) = match method {
        UiMethod::Confirm { title, message, .. } => (title.as_str(), message.as_str()),
        UiMethod::Select { title, .. } => (title.as_str(), ""),
        _ => ("", ""),
    };
    let content = if text.is_empty() { Vec::new() } else { vec![ToolCallContent::from(text.to_owned())] };
    ToolCall::new(call.to_owned(), title).kind(ToolKind::Other).content(content)
}

/// Returns the question of a permission card about the call of [`card`]; `None` for what such a card cannot ask.
pub fn about_card(session: &SessionId, card: &ToolCall, method: &UiMethod) -> Option<RequestPermissionRequest> {
    let fields = ToolCallUpdateFields::new()
        .title(card.title.clone())
        .kind(card.kind)
        .status(ToolCallStatus::Pending)
        .content((!card.content.is_empty()).then(|| card.content.clone()));
    let call = ToolCallUpdate::new(card.tool_call_id.clone(), fields);
    Some(RequestPermissionRequest::new(session.clone(), call, options(method, ["Yes", "No"])?))
}

/// Returns the question of an extension that decides about a call of the model; `None` if it is no question of yes or
/// no. The card shows what is asked above what the call shows itself.
pub fn about_call(
    session: &SessionId,
    mut call: ToolCallUpdate,
    method: &UiMethod,
) -> Option<RequestPermissionRequest> {
    let UiMethod::Confirm { title, message, .. } = method else { return None };
    let asked = ToolCallContent::from(join(title, message));
    call.fields.content = Some([asked].into_iter().chain(call.fields.content.take().unwrap_or_default()).collect());
    Some(RequestPermissionRequest::new(session.clone(), call, options(method, ["Allow", "Reject"])?))
}

/// Reads which option the user chose. Unknown options and malformed answers dismiss the dialog.
pub fn chosen(method: &UiMethod, result: Value) -> Choice {
    let response = serde_json::from_value::<RequestPermissionResponse>(result);
    let selected = match response.map(|response| response.outcome) {
        Ok(RequestPermissionOutcome::Selected(selected)) => selected,
        Ok(RequestPermissionOutcome::Cancelled) => return Choice::TurnCancelled,
        Ok(_) | Err(_) => return Choice::Answer(UiAnswer::Cancelled),
    };
    Choice::Answer(match (method, &*selected.option_id.0) {
        (UiMethod::Confirm { .. }, "allow") => UiAnswer::Confirmed(true),
        (UiMethod::Confirm { .. }, "reject") => UiAnswer::Confirmed(false),
        (UiMethod::Select { options, .. }, number) => {
            let choice = number.parse::<usize>().ok().and_then(|number| options.get(number));
            choice.map_or(UiAnswer::Cancelled, |choice| UiAnswer::Value(choice.clone()))
        }
        _ => UiAnswer::Cancelled,
    })
}

/// The options of a card; `None` for what it cannot ask.
fn options(method: &UiMethod, [yes, no]: [&str; 2]) -> Option<Vec<PermissionOption>> {
    match method {
        UiMethod::Confirm { .. } => {
            Some(vec![PermissionOption::new("allow", yes, AllowOnce), PermissionOption::new("reject", no, RejectOnce)])
        }
        UiMethod::Select { options, .. } if (1..=MAX_CHOICES).contains(&options.len()) => {
            let choice = |(n, name): (usize, &String)| PermissionOption::new(n.to_string(), name.clone(), AllowOnce);
            let cancel = PermissionOption::new(CANCEL, "Cancel", RejectOnce);
            Some(options.iter().enumerate().map(choice).chain([cancel]).collect())
        }
        _ => None,
    }
}

fn join(title: &str, message: &str) -> String {
    if message.is_empty() { title.to_owned() } else { format!("{title}\n\n{message}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confirm() -> UiMethod {
        UiMethod::Confirm { title: "Sure?".into(), message: String::new(), timeout: None, page: None }
    }

    fn select(n: usize) -> UiMethod {
        UiMethod::Select { title: "Pick".into(), options: (0..n).map(|n| format!("o{n}")).collect(), timeout: None }
    }

    #[test]
    fn only_what_fits_a_form_is_an_answer() {
        let check = |method: &UiMethod, content: Value, expected: UiAnswer| {
            let result = json!({"action": "accept", "content": content});
            assert_eq!(filled_in(method, result.clone()), expected, "{result}");
        };
        check(&confirm(), json!({"answer": true}), UiAnswer::Confirmed(true));
        check(&confirm(), json!({"answer": "yes"}), UiAnswer::Cancelled);
        check(&select(2), json!({"choice": "o1"}), UiAnswer::Value("o1".into()));
        check(&select(2), json!({"choice": "o7"}), UiAnswer::Cancelled);
        check(&select(2), json!({}), UiAnswer::Cancelled);
        check(&select(2), json!(null), UiAnswer::Cancelled);
        for other in [json!({"action": "decline"}), json!({"action": "cancel"}), json!({"action": "dance"}), json!(3)] {
            assert_eq!(filled_in(&confirm(), other), UiAnswer::Cancelled);
        }
    }

    #[test]
    fn a_whole_form_is_shown_in_the_words_of_editors_or_not_at_all() {
        let shown = |properties: Value| {
            let schema = json!({"type": "object", "properties": properties, "required": ["a"]});
            let request = whole_form(ElicitationSessionScope::new("s").tool_call_id("t"), "git asks: Who?", &schema)?;
            serde_json::to_value(request).ok()
        };
        let named = json!({"a": {"type": "string", "enum": ["x", "y"], "enumNames": ["Ex"]}, "b": {"type": "integer"}});
        let choices = json!([{"const": "x", "title": "Ex"}, {"const": "y", "title": "y"}]);
        let schema = json!({"type": "object", "required": ["a"], "properties":
            {"a": {"type": "string", "oneOf": choices}, "b": {"type": "integer"}}});
        let expected = json!({"mode": "form", "sessionId": "s", "toolCallId": "t", "message": "git asks: Who?",
            "requestedSchema": schema});
        assert_eq!(shown(named), Some(expected));
        assert_eq!(shown(json!({"a": {"type": "object"}})), None);
        assert_eq!(shown(json!({"a": 5})), None);
    }

    #[test]
    fn a_whole_form_is_filled_in_declined_or_dismissed() {
        let filled = json!({"action": "accept", "content": {"n": 7, "sure": true, "tags": ["x"]}});
        assert_eq!(whole_answer(filled), r#"{"n":7,"sure":true,"tags":["x"]}"#.into());
        assert_eq!(whole_answer(json!({"action": "accept"})), "{}".into());
        assert_eq!(whole_answer(json!({"action": "decline"})), UiAnswer::Confirmed(false));
        for other in [json!({"action": "cancel"}), json!({"action": "dance"}), json!(3)] {
            assert_eq!(whole_answer(other), UiAnswer::Cancelled);
        }
    }

    #[test]
    fn only_an_offered_option_is_an_answer() {
        let chose = |method: &UiMethod, option: &str| {
            chosen(method, json!({"outcome": {"outcome": "selected", "optionId": option}}))
        };
        let dismissed = Choice::Answer(UiAnswer::Cancelled);
        assert_eq!(chose(&confirm(), "allow"), Choice::Answer(UiAnswer::Confirmed(true)));
        assert_eq!(chose(&confirm(), "reject"), Choice::Answer(UiAnswer::Confirmed(false)));
        assert_eq!(chose(&confirm(), "always"), dismissed);
        assert_eq!(chose(&select(2), "1"), Choice::Answer(UiAnswer::Value("o1".into())));
        assert_eq!(chose(&select(2), "7"), dismissed);
        assert_eq!(chose(&select(2), "cancel"), dismissed);
        assert_eq!(chosen(&confirm(), json!({"outcome": {"outcome": "cancelled"}})), Choice::TurnCancelled);
        for other in [json!(null), json!({"outcome": 5}), json!({"outcome": {"outcome": "selected"}})] {
            assert_eq!(chosen(&confirm(), other), dismissed);
        }
    }

    #[test]
    fn a_card_has_room_for_twenty_choices() {
        let session = SessionId::new("s");
        let asks = |method: &UiMethod| about_card(&session, &card("c", method), method).is_some();
        assert!(asks(&confirm()) && asks(&select(20)));
        assert!(!asks(&select(21)) && !asks(&select(0)));
        let input = UiMethod::Input { title: "Name".into(), placeholder: None, timeout: None };
        assert!(!asks(&input) && form(&session, &input).is_some());
        assert!(form(&session, &select(21)).is_some() && form(&session, &select(0)).is_none());
    }
}
