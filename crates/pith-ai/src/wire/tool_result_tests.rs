//! Tool results that servers would refuse as they are, and with them every later request of the session.

use pith_protocol::Model;
use serde_json::{Value, json};

use super::anthropic::Anthropic;
use super::completions::Completions;
use super::google::Google;
use super::responses::Responses;
use super::{Wire, api_names, for_api};
use crate::testing::{call, message, own, request, result, user};

fn model(compat: Value) -> Model {
    Model {
        id: "m-3".into(),
        provider: "p".into(),
        base_url: "http://127.0.0.1:9".into(),
        input: vec!["text".into(), "image".into()],
        compat: compat.as_object().cloned(),
        ..Model::default()
    }
}

fn text(text: &str) -> Value {
    json!({"type":"text","text":text})
}

fn image(data: &str) -> Value {
    json!({"type":"image","data":data,"mimeType":"image/png"})
}

/// Returns what is sent of the conversation after results with these contents, each an error or not.
fn sent(wire: &dyn Wire, results: &[(Value, bool)]) -> Value {
    let model = model(json!({}));
    let id = |at: usize| format!("call_{at}");
    let calls: Vec<_> =
        (0..results.len()).map(|at| json!({"type":"toolCall","id":id(at),"name":"read","arguments":{}})).collect();
    let result = |(at, (content, is_error)): (usize, &(Value, bool))| {
        message(json!({"role":"toolResult","toolCallId":id(at),"toolName":"read","content":content,"isError":is_error}))
    };
    let mut history = vec![user("go"), own(&model, json!(calls))];
    history.extend(results.iter().enumerate().map(result));
    history.push(user("next"));
    let mut body = request(wire, &call(model, history)).2;
    let key = ["messages", "input", "contents"].into_iter().find(|key| body.get(key).is_some()).expect("messages");
    body[key].take()
}

#[test]
fn blank_output_is_sent_as_what_servers_take() {
    for blank in [json!([]), json!([text("")]), json!([text(" \n")]), json!([text("\t"), text("\u{a0}\r\n")])] {
        for is_error in [false, true] {
            let seen = |wire: &dyn Wire, path: &str| {
                let sent = sent(wire, &[(blank.clone(), is_error)]);
                sent.pointer(path).unwrap_or_else(|| panic!("{path} of {sent}")).clone()
            };
            assert_eq!(seen(&Completions, "/2/content"), "(no tool output)", "{blank}");
            assert_eq!(seen(&Responses, "/2/output"), "(no tool output)", "{blank}");
            let response = if is_error { json!({"error":""}) } else { json!({"output":""}) };
            assert_eq!(seen(&Google, "/2/parts/0/functionResponse/response"), response, "{blank}");
        }
    }
}

#[test]
fn no_blank_text_stands_beside_a_picture() {
    let is_blank = |value: &Value| value.as_str().is_some_and(|text| text.trim().is_empty());
    fn texts<'v>(value: &'v Value, found: &mut Vec<&'v Value>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
            Value::Object(fields) => fields.iter().for_each(|(name, value)| match name.as_str() {
                "text" | "output" | "error" if value.is_string() => found.push(value),
                _ => texts(value, found),
            }),
            _ => {}
        }
    }
    for api in api_names() {
        let wire = for_api(api).expect("an API");
        for content in [json!([image("AA==")]), json!([text(" \n"), image("AA==")]), json!([image("AA=="), text("\t")])]
        {
            for is_error in [false, true] {
                let sent = sent(wire, &[(content.clone(), is_error)]);
                let mut found = Vec::new();
                texts(&sent, &mut found);
                assert!(!found.iter().any(|text| is_blank(text)), "{api} {content}: {sent}");
                assert_eq!(sent.to_string().matches("AA==").count(), 1, "{api} {content}: {sent}");
            }
        }
    }
}

#[test]
fn anthropic_is_sent_the_pictures_of_errors_behind_all_results() {
    let sent = sent(
        &Anthropic,
        &[
            (json!([text("a"), image("AA=="), image("BB=="), text("b")]), true),
            (json!([text("fine"), image("CC==")]), false),
            (json!([image("DD==")]), true),
            (json!([text("plain")]), true),
        ],
    );
    let picture = |data: &str| json!({"type":"image","source":{"type":"base64","media_type":"image/png","data":data}});
    let result = |id: &str, content: Value, is_error: bool| json!({"type":"tool_result","tool_use_id":id,"content":content,"is_error":is_error});
    let mut results = sent[2].clone();
    results["content"][8].as_object_mut().expect("the last block").shift_remove("cache_control");
    assert_eq!(
        results["content"],
        json!([
            result("call_0", json!("a\n(image attached after the tool results)\nb"), true),
            result("call_1", json!([text("fine"), picture("CC==")]), false),
            result("call_2", json!("(image attached after the tool results)"), true),
            result("call_3", json!("plain"), true),
            text("Images of the failed call call_0 (read):"),
            picture("AA=="),
            picture("BB=="),
            text("Images of the failed call call_2 (read):"),
            picture("DD=="),
        ])
    );
    assert_eq!(sent[3]["content"][0]["text"], "next");
}

#[test]
fn a_history_of_calls_needs_no_tools_but_where_a_server_says_so() {
    let body = |wire: &dyn Wire, compat: Value| {
        let model = model(compat);
        let calls = json!([{"type":"toolCall","id":"a","name":"read","arguments":{}}]);
        let history = vec![user("go"), own(&model, calls), result("a", "r"), user("next")];
        request(wire, &call(model, history)).2
    };
    for api in api_names() {
        let sent = body(for_api(api).expect("an API"), json!({}));
        assert_eq!(sent.get("tools"), None, "{api}");
    }
    let fussy = || json!({"requiresToolsWithToolHistory":true});
    assert_eq!(body(&Completions, fussy())["tools"], json!([]));
    assert_eq!(request(&Completions, &call(model(fussy()), vec![user("hi")])).2.get("tools"), None);
}
