use super::*;
use crate::testing::{
    assistant, call, decode, fixture, message, own, request, result, second_turn, show, survive_every_cut, user,
};
use pith_protocol::{AssistantEvent, AssistantMessage, ErrorKind, LlmCall, Message, StopReason, ThinkingLevel};
use serde_json::json;

fn model(id: &str) -> Model {
    Model {
        id: id.into(),
        api: "google-generative-ai".into(),
        provider: "rec".into(),
        base_url: "http://127.0.0.1:9/v1beta".into(),
        reasoning: true,
        input: vec!["text".into(), "image".into()],
        context_window: 1_000_000,
        max_tokens: 65536,
        ..Model::default()
    }
}

fn body(call: &LlmCall) -> Value {
    request(&Google, call).2
}

#[test]
fn the_example_request() {
    let answer = json!([{"type":"thinking","thinking":"I should read the file."},{"type":"text","text":"Let me look."},
        {"type":"toolCall","id":"read_1794725595183_1","name":"read","arguments":{"path":"note.txt"},"thoughtSignature":"QUJDRA=="}]);
    let (url, headers, body) =
        request(&Google, &second_turn(model("gemini-3-pro-rec"), answer, "read_1794725595183_1"));
    assert_eq!(url, "http://127.0.0.1:9/v1beta/models/gemini-3-pro-rec:streamGenerateContent?alt=sse");
    assert_eq!((headers.get("x-goog-api-key"), headers.get("authorization")), (Some("k-test"), None));
    let expected: Value = serde_json::from_str(&fixture("google.request.json")).expect("JSON");
    assert_eq!(body, expected);
}

fn decoded(stream: &str) -> (Vec<String>, AssistantMessage) {
    show(&Google, &model("gemini-3-pro-rec"), stream)
}

#[test]
fn the_example_stream() {
    // The id of the call is made from the clock, so the stream is not compared line by line across cuttings here.
    let events = decode(&Google, &model("gemini-3-pro-rec"), &fixture("google.sse"), 1);
    let names: Vec<_> = events
        .iter()
        .map(|event| format!("{event:?}").split([' ', '(']).next().unwrap_or_default().to_owned())
        .collect();
    let names: Vec<_> = names.iter().map(String::as_str).filter(|name| *name != "Meta").collect();
    assert_eq!(
        names,
        [
            "Start",
            "ThinkingStart",
            "ThinkingDelta",
            "ThinkingEnd",
            "TextStart",
            "TextDelta",
            "TextEnd",
            "ToolCallStart",
            "ToolCallDelta",
            "ToolCallEnd",
            "End"
        ]
    );
    let Some(AssistantEvent::End(message)) = events.last() else { panic!("no end") };
    let usage = &message.usage;
    assert_eq!((usage.input, usage.cache_read, usage.output), (64, 256, 21));
    assert_eq!((usage.reasoning, usage.total_tokens, message.stop_reason), (Some(9), 341, StopReason::ToolUse));
    let call = message.tool_calls().next().expect("a call");
    assert!(call.id.starts_with("read_") && call.id.ends_with("_1"), "{}", call.id);
    assert_eq!(
        (call.arguments["path"].as_str(), call.thought_signature.as_deref()),
        (Some("note.txt"), Some("QUJDRA=="))
    );
    assert_eq!((message.response_id.as_deref(), message.raw_stop_reason.as_deref()), (Some("gresp1"), Some("STOP")));
}

#[test]
fn any_cut_of_the_stream_ends_cleanly() {
    survive_every_cut(crate::fuzz::fuzz_google, &fixture("google.sse"));
}

fn chunk(parts: Value, finish: Option<&str>) -> String {
    format!("data: {}\r\n\r\n", json!({"candidates":[{"content":{"parts":parts},"finishReason":finish}]}))
}

#[test]
fn blocks_follow_the_kind_of_their_parts() {
    let stream = chunk(
        json!([{"text":"a","thought":true},{"text":"b","thought":true,"thoughtSignature":"c2ln"},{"text":"c"}]),
        None,
    ) + &chunk(
        json!([{"text":"d"},{"functionCall":{"id":"x","name":"ls"}},{"text":"","thoughtSignature":"bGFzdA=="}]),
        None,
    ) + &chunk(json!([{"text":""}]), Some("STOP"));
    let (lines, message) = decoded(&stream);
    assert_eq!(
        lines,
        [
            "thinking_start 0",
            "thinking_delta 0 a",
            "thinking_delta 0 b",
            "thinking_end 0 ab",
            "text_start 1",
            "text_delta 1 c",
            "text_delta 1 d",
            "text_end 1 cd",
            "toolcall_start 2 x ls",
            "toolcall_delta 2 {}",
            "toolcall_end 2 {}",
            "text_start 3",
            "text_delta 3 ",
            "text_end 3 ",
            "done ToolUse",
        ]
    );
    let content = serde_json::to_value(&message.content).expect("serializes");
    assert_eq!((&content[0]["thinkingSignature"], &content[3]["textSignature"]), (&json!("c2ln"), &json!("bGFzdA==")));
}

#[test]
fn empty_parts_are_blocks() {
    let check = |parts: Value, expected: &[&str], content: Value| {
        let (lines, message) = decoded(&(chunk(parts, None) + &chunk(json!([{"text":""}]), Some("STOP"))));
        assert_eq!(lines, expected);
        assert_eq!(serde_json::to_value(&message.content).expect("serializes"), content);
    };
    let empty = json!({"type":"text","text":""});
    check(json!([]), &["text_start 0", "text_delta 0 ", "text_end 0 ", "done Stop"], json!([empty]));
    check(
        json!([{"functionCall":{"id":"x","name":"ls","args":{}}}]),
        &[
            "toolcall_start 0 x ls",
            "toolcall_delta 0 {}",
            "toolcall_end 0 {}",
            "text_start 1",
            "text_delta 1 ",
            "text_end 1 ",
            "done ToolUse",
        ],
        json!([{"type":"toolCall","id":"x","name":"ls","arguments":{}}, empty]),
    );
    check(
        json!([{"text":"","thought":true}]),
        &[
            "thinking_start 0",
            "thinking_delta 0 ",
            "thinking_end 0 ",
            "text_start 1",
            "text_delta 1 ",
            "text_end 1 ",
            "done Stop",
        ],
        json!([{"type":"thinking","thinking":""}, empty]),
    );
    // One that finds its block open has nothing to add.
    check(
        json!([{"text":"a"}]),
        &["text_start 0", "text_delta 0 a", "text_end 0 a", "done Stop"],
        json!([{"type":"text","text":"a"}]),
    );
}

#[test]
fn empty_blocks_are_not_sent_back() {
    let contents = |content: Value| {
        let history = vec![user("q"), own(&model("gemini-2.5-pro"), content), user("next")];
        body(&call(model("gemini-2.5-pro"), history))["contents"].clone()
    };
    let said = |role: &str, text: &str| json!({"role":role,"parts":[{"text":text}]});
    let empty = json!({"type":"text","text":""});
    assert_eq!(contents(json!([empty])), json!([said("user", "q"), said("user", "next")]));
    assert_eq!(
        contents(json!([{"type":"thinking","thinking":""}, {"type":"text","text":"a"}, empty])),
        json!([said("user", "q"), said("model", "a"), said("user", "next")])
    );
}

#[test]
fn empty_prompts_are_sent() {
    let contents = |content: Value| {
        let message = message(json!({"role":"user","content":content}));
        body(&call(model("gemini-2.5-pro"), vec![message]))["contents"].clone()
    };
    let empty = json!([{"role":"user","parts":[{"text":""}]}]);
    assert_eq!(contents(json!("")), empty);
    assert_eq!(contents(json!([{"type":"text","text":""}])), empty);
    assert_eq!(contents(json!([])), empty);
    let image = json!({"type":"image","data":"AA==","mimeType":"image/png"});
    assert_eq!(
        contents(json!([{"type":"text","text":""}, image])),
        json!([{"role":"user","parts":[{"text":""},{"inlineData":{"mimeType":"image/png","data":"AA=="}}]}])
    );
}

#[test]
fn repeated_ids_are_replaced() {
    let call = |arguments: Value| json!({"functionCall":{"id":"x","name":"ls","args":arguments}});
    // The second says the same as the first, so it is the same call.
    let parts = json!([call(json!({})), call(Value::Null), call(json!({"path":"a"}))]);
    let events = decode(&Google, &model("g"), &chunk(parts, Some("STOP")), usize::MAX);
    let Some(AssistantEvent::End(message)) = events.last() else { panic!("no end") };
    let ids: Vec<_> = message.tool_calls().map(|call| call.id.as_str()).collect();
    assert_eq!((ids.len(), ids[0]), (2, "x"), "{ids:?}");
    assert!(ids[1].starts_with("ls_") && ids[1].ends_with("_2"), "{ids:?}");
}

#[test]
fn arguments_are_passed_on_without_blanks() {
    let check = |arguments: &str, expected: &str| {
        let stream = format!(
            "data: {{\"candidates\": [{{\"content\": {{\"parts\": [{{\"functionCall\": {{\"id\": \"x\", \
             \"name\": \"ls\", \"args\": {arguments}}}}}]}}, \"finishReason\": \"STOP\"}}]}}\n\n"
        );
        assert_eq!(decoded(&stream).0[1], format!("toolcall_delta 0 {expected}"));
    };
    check(r#"{"path": "a: {b, c}", "z": [1, 2] , "a": {  }}"#, r#"{"path":"a: {b, c}","z":[1,2],"a":{}}"#);
    check(r#"{"n": [1.0, 12345678901234567890123, 1e2]}"#, r#"{"n":[1.0,12345678901234567890123,1e2]}"#);
    check(r#"{"tag": "\u003cb\u003e\n \/"}"#, r#"{"tag":"<b>\n /"}"#);
    check(r#"{"quote": "\" \\", "b" : "\u00e9 \ud800"}"#, r#"{"quote":"\" \\","b":"\u00e9 \ud800"}"#);
}

#[test]
fn endings_say_what_happened() {
    let end = |stream: &str| {
        let (lines, message) = decoded(stream);
        (lines.join("|"), message.error.map(|failure| failure.kind))
    };
    assert_eq!(end(&chunk(json!([]), Some("MAX_TOKENS"))), ("done Length".into(), None));
    assert_eq!(
        end(&chunk(json!([]), Some("SAFETY"))),
        ("error Provider stopped with: SAFETY".into(), Some(ErrorKind::InvalidRequest))
    );
    assert_eq!(
        end(&chunk(json!([]), Some("MALFORMED_FUNCTION_CALL"))),
        ("error Provider stopped with: MALFORMED_FUNCTION_CALL".into(), Some(ErrorKind::Protocol))
    );
    let event = |value: Value| format!("data: {value}\n\n");
    assert_eq!(
        end(&event(json!({"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}))),
        ("error Provider blocked the prompt: PROHIBITED_CONTENT".into(), Some(ErrorKind::InvalidRequest))
    );
    assert_eq!(
        end(&event(json!({"error":{"code":503,"message":"The model is overloaded","status":"UNAVAILABLE"}}))),
        ("error The model is overloaded".into(), Some(ErrorKind::Overloaded))
    );
    let (line, kind) = end(&chunk(json!([{"text":"x"}]), None));
    assert!(line.ends_with("error Google stream ended without a finish reason"));
    assert_eq!(kind, Some(ErrorKind::Network));
}

#[test]
fn empty_records_are_skipped() {
    let stream = chunk(json!([{"text":"a"}]), None) + "data: null\n\n" + &chunk(json!([]), Some("STOP"));
    assert_eq!(decoded(&stream).0, ["text_start 0", "text_delta 0 a", "text_end 0 a", "done Stop"]);
}

#[test]
fn parallel_results_stay_together_on_old_models() {
    let image = json!({"type":"image","data":"AA==","mimeType":"image/png"});
    let calls = json!([{"type":"toolCall","id":"a","name":"read","arguments":{}},{"type":"toolCall","id":"b","name":"read","arguments":{}}]);
    let given = |id: &str, content: Value, is_error: bool| {
        message(json!({"role":"toolResult","toolCallId":id,"toolName":"read","content":content,"isError":is_error}))
    };
    let contents = |id: &str| {
        let history = vec![
            own(&model(id), calls.clone()),
            given("a", json!([image]), false),
            given("b", json!([{"type":"text","text":"x"}, image]), true),
            user("next"),
        ];
        body(&call(model(id), history))["contents"].clone()
    };
    let picture = json!({"inlineData":{"mimeType":"image/png","data":"AA=="}});
    assert_eq!(
        contents("gemini-2.5-pro"),
        json!([
            {"role":"model","parts":[{"functionCall":{"name":"read","args":{}}},{"functionCall":{"name":"read","args":{}}}]},
            {"role":"user","parts":[
                {"functionResponse":{"name":"read","response":{"output":"(see attached image)"}}},
                {"functionResponse":{"name":"read","response":{"error":"x"}}}]},
            {"role":"user","parts":[{"text":"Tool result image:"}, picture, picture]},
            {"role":"user","parts":[{"text":"next"}]},
        ])
    );
    let modern = contents("gemini-3.1-pro");
    assert_eq!(
        modern[1]["parts"][0],
        json!({"functionResponse":{"id":"a","name":"read","response":{"output":"(see attached image)"},"parts":[picture]}})
    );
    assert_eq!(modern[2], json!({"role":"user","parts":[{"text":"next"}]}));
}

#[test]
fn only_models_known_to_be_old_get_pictures_after_the_results() {
    let is_nested = |id: &str| {
        let image = json!({"type":"image","data":"AA==","mimeType":"image/png"});
        let history = vec![
            own(&model(id), json!([{"type":"toolCall","id":"a","name":"read","arguments":{}}])),
            message(json!({"role":"toolResult","toolCallId":"a","toolName":"read","content":[image]})),
        ];
        let contents = body(&call(model(id), history))["contents"].clone();
        let has_parts = contents[1]["parts"][0]["functionResponse"].get("parts").is_some();
        assert_eq!(contents.as_array().map(Vec::len), Some(if has_parts { 2 } else { 3 }), "{id}: {contents}");
        has_parts
    };
    for id in ["gemini-3-pro", "gemini-live-3-flash", "gemini-mock", "gemini-flash-latest", "gemma-4-27b", "claude-x"] {
        assert!(is_nested(id), "{id}");
    }
    for id in ["gemini-2.5-pro", "Gemini-1.5-flash", "gemini-live-2.5-flash"] {
        assert!(!is_nested(id), "{id}");
    }
}

#[test]
fn signatures_go_back_to_their_model_only() {
    let content = json!([{"type":"thinking","thinking":"plan","thinkingSignature":"QUJDRA=="},
        {"type":"thinking","thinking":"","thinkingSignature":"not base64!"},
        {"type":"text","text":"","textSignature":"QUJDRA=="},{"type":"text","text":" "},
        {"type":"toolCall","id":"a.b","name":"ls","arguments":{},"thoughtSignature":"reasoning_content"}]);
    let id = "gemini-3-flash";
    let parts = |message: Message| {
        body(&call(model(id), vec![user("q"), message, result("a.b", "r")]))["contents"][1]["parts"].clone()
    };
    assert_eq!(
        parts(own(&model(id), content.clone())),
        json!([{"thought":true,"text":"plan","thoughtSignature":"QUJDRA=="},{"text":"","thoughtSignature":"QUJDRA=="},
            {"functionCall":{"id":"a.b","name":"ls","args":{}}}])
    );
    assert_eq!(
        parts(Message::Assistant(assistant(content))),
        json!([{"text":"plan"},{"functionCall":{"id":"a_b","name":"ls","args":{}}}])
    );
}

#[test]
fn constants_of_tools_are_sent_as_choices() {
    let mut call = call(model("gemini-3-pro"), vec![user("hi")]);
    let parameters = json!({"type":"object","properties":{"kind":{"const":"a"}},"required":["kind"]});
    let tool = |prefer_strict| pith_protocol::ToolSpec {
        parameters: parameters.clone().into(),
        prefer_strict,
        ..crate::testing::read_tool()
    };
    call.tools = [tool(false), tool(true)].into();
    let sent = body(&call)["tools"][0]["functionDeclarations"].clone();
    for at in [0, 1] {
        assert_eq!(sent[at]["parametersJsonSchema"]["properties"]["kind"], json!({"enum":["a"]}));
    }
}

#[test]
fn thinking_by_level_or_by_budget() {
    let config = |id: &str, level, off: Option<Option<String>>| {
        let mut model = model(id);
        model.thinking_level_map = off.map(|off| [(ThinkingLevel::Off, off)].into());
        let mut call = call(model, vec![user("hi")]);
        call.thinking = level;
        body(&call)["generationConfig"]["thinkingConfig"].clone()
    };
    use ThinkingLevel::{High, Low, Max, Medium, Minimal, Off};
    let level = |word: &str| json!({"includeThoughts":true,"thinkingLevel":word});
    let budget = |tokens: i64| json!({"includeThoughts":true,"thinkingBudget":tokens});
    assert_eq!(config("gemini-3.1-pro-preview", Low, None), level("LOW"));
    assert_eq!(config("gemini-flash-lite-latest", Max, None), level("HIGH"));
    assert_eq!(config("gemma-4-27b", Medium, None), level("MEDIUM"));
    for id in ["gemini-4-argon", "Gemini-4-argon", "gemini-4.5-flash", "gemini-9", "gemini-10-pro", "google/gemini-12"]
    {
        assert_eq!(config(id, High, None), level("HIGH"), "{id}");
        assert_eq!(config(id, Off, Some(None)), json!({"thinkingLevel":"MINIMAL"}), "{id}");
    }
    for id in ["gemini-1.5-pro", "gemini-2.0-flash", "gemini-1"] {
        assert_eq!(config(id, High, None), budget(-1), "{id}");
    }
    assert_eq!(config("gemini-3-flash", Off, Some(None)), json!({"thinkingLevel":"MINIMAL"}));
    for id in ["gemini-3-pro-preview", "gemini-3-flash", "gemini-flash-latest", "gemma-4-27b"] {
        assert_eq!(config(id, Off, None), json!({"thinkingBudget":0}), "{id}");
    }
    assert_eq!(config("gemini-2.5-pro", Low, None), budget(2048));
    assert_eq!(config("gemini-2.5-pro", High, None), budget(32768));
    assert_eq!(config("gemini-2.5-flash", High, None), budget(24576));
    assert_eq!(config("gemini-2.5-flash-lite", Minimal, None), budget(512));
    assert_eq!(config("gemini-mock", Medium, None), budget(-1));
    assert_eq!(config("gemini-2.5-flash", Off, None), json!({"thinkingBudget":0}));
}

#[test]
fn sampling_parameters_find_their_place() {
    let mut model = model("gemini-2.5-pro");
    model.sampling_params = json!({"temperature":0.5,"safetySettings":[],"maxOutputTokens":7}).as_object().cloned();
    let body = body(&call(model, vec![user("hi")]));
    assert_eq!((&body["generationConfig"]["temperature"], &body["safetySettings"]), (&json!(0.5), &json!([])));
    assert_eq!(body["generationConfig"]["maxOutputTokens"], 7);
}

#[test]
fn errors_are_the_body_or_the_status() {
    let text = |status, body: &str| Google.error_text(&model("g"), status, body);
    assert_eq!(text(400, r#"{"error":{"message":"x"}}"#), r#"{"error":{"message":"x"}}"#);
    assert_eq!(text(502, "<html>"), "502 Bad Gateway");
    assert_eq!(text(500, ""), "500 status code (no body)");
}
