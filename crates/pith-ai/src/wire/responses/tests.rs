use super::*;
use crate::testing::{
    assistant, call, fixture, message, own, request, result, second_turn, show, survive_every_cut, user,
};
use pith_protocol::{CacheRetention, ErrorKind, LlmCall, Message, ModelCost, StopReason, ThinkingLevel};
use serde_json::{Value, json};
use std::sync::Arc;

const SESSION: &str = "01a1ddfb-3ef2-73b8-88cb-4dddf27531ac";

fn model() -> Model {
    Model {
        id: "o-rec".into(),
        api: "openai-responses".into(),
        provider: "rec".into(),
        base_url: "http://127.0.0.1:9/v1".into(),
        reasoning: true,
        input: vec!["text".into(), "image".into()],
        cost: ModelCost { input: 1.0, output: 2.0, ..ModelCost::default() },
        context_window: 128_000,
        max_tokens: 8000,
        ..Model::default()
    }
}

fn answer() -> Value {
    let item = json!({"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"I should read the file."}],"encrypted_content":"gAAAAABx=="});
    json!([{"type":"thinking","thinking":"I should read the file.","thinkingSignature":item.to_string()},
        {"type":"text","text":"Let me look.","textSignature":"{\"v\":1,\"id\":\"msg_1\"}"},
        {"type":"toolCall","id":"call_abc|fc_1","name":"read","arguments":{"path":"note.txt"}}])
}

fn body(call: &LlmCall) -> Value {
    request(&Responses, call).2
}

#[test]
fn the_example_request() {
    let mut call = second_turn(model(), answer(), "call_abc|fc_1");
    call.session_id = Some(Arc::from(SESSION));
    let (url, headers, body) = request(&Responses, &call);
    assert_eq!(url, "http://127.0.0.1:9/v1/responses");
    for (name, value) in [("authorization", "Bearer k-test"), ("session-id", SESSION), ("x-client-request-id", SESSION)]
    {
        assert_eq!(headers.get(name), Some(value), "{name}");
    }
    let expected: Value = serde_json::from_str(&fixture("responses.request.json")).expect("JSON");
    assert_eq!(body, expected);
}

#[test]
fn the_example_stream() {
    let (lines, message) = show(&Responses, &model(), &fixture("responses.sse"));
    // The blank line after a part is sent only when another part follows, so that deltas add up to the content.
    assert_eq!(
        lines,
        [
            "thinking_start 0",
            "thinking_delta 0 I should read the file.",
            "thinking_end 0 I should read the file.",
            "text_start 1",
            "text_delta 1 Let me look.",
            "text_end 1 Let me look.",
            "toolcall_start 2 call_abc|fc_1 read",
            "toolcall_delta 2 {\"path\":\"no",
            "toolcall_delta 2 te.txt\"}",
            "toolcall_end 2 {\"path\":\"note.txt\"}",
            "done ToolUse",
        ]
    );
    assert_eq!(serde_json::to_value(&message.content).expect("serializes"), answer());
    let usage = &message.usage;
    assert_eq!((usage.input, usage.cache_read, usage.output), (64, 256, 42));
    assert_eq!((usage.reasoning, usage.total_tokens), (Some(9), 362));
    assert_eq!(
        (message.response_id.as_deref(), message.raw_stop_reason.as_deref()),
        (Some("resp_1"), Some("completed"))
    );
}

#[test]
fn any_cut_of_the_stream_ends_cleanly() {
    survive_every_cut(crate::fuzz::fuzz_responses, &fixture("responses.sse"));
}

fn stream(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

#[test]
fn parts_of_the_thinking_are_set_apart() {
    let delta = |text: &str| json!({"type":"response.reasoning_summary_text.delta","output_index":0,"delta":text});
    let (lines, _) = show(
        &Responses,
        &model(),
        &stream(&[
            json!({"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"r"}}),
            delta("one"),
            json!({"type":"response.reasoning_summary_part.done","output_index":0}),
            delta("two"),
            json!({"type":"response.reasoning_summary_part.done","output_index":0}),
            json!({"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"r",
                "summary":[{"text":"one"},{"text":"two"}]}}),
        ]),
    );
    assert_eq!(lines[4], "thinking_end 0 one\n\ntwo");
}

#[test]
fn items_may_come_whole_and_reasoning_late() {
    let (lines, message) = show(
        &Responses,
        &model(),
        &stream(&[
            json!({"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"r","summary":[],
                "content":[{"text":"thought"}],"encrypted_content":null}}),
            json!({"type":"response.output_item.done","output_index":1,"item":{"type":"web_search_call","id":"w"}}),
            json!({"type":"response.output_item.done","output_index":2,"item":{"type":"message","id":"m","phase":"final",
                "content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"b"}]}}),
            json!({"type":"response.brand_new","delta":{"not":"text"},"message":5}),
            json!({"type":"response.completed","response":{"status":"completed","service_tier":"flex",
                "usage":{"input_tokens":1_000_000,"output_tokens":0},
                "output":[{"type":"reasoning","id":"r","encrypted_content":"E"}]}}),
        ]),
    );
    assert_eq!(
        lines,
        [
            "thinking_start 0",
            "thinking_delta 0 thought",
            "thinking_end 0 thought",
            "text_start 1",
            "text_delta 1 ab",
            "text_end 1 ab",
            "done Stop"
        ]
    );
    let content = serde_json::to_value(&message.content).expect("serializes");
    assert!(content[0]["thinkingSignature"].as_str().is_some_and(|text| text.contains(r#""encrypted_content":"E""#)));
    assert_eq!(content[1]["textSignature"], r#"{"v":1,"id":"m","phase":"final"}"#);
    assert_eq!(message.usage.cost.total, 0.5);
}

#[test]
fn endings() {
    let end = |event: Value| {
        let (lines, message) = show(&Responses, &model(), &stream(&[event]));
        (lines.join("|"), message.error.map(|failure| failure.kind), message.raw_stop_reason)
    };
    let done = |status: &str, reason: &str| json!({"type":format!("response.{status}"),"response":{"status":status,"incomplete_details":{"reason":reason}}});
    let (line, _, raw) = end(done("incomplete", "max_output_tokens"));
    assert_eq!((line.as_str(), raw.as_deref()), ("done Length", Some("incomplete.max_output_tokens")));
    assert_eq!(end(done("incomplete", "content_filter")).0, "error Response incomplete: content_filter");
    assert_eq!(end(done("failed", "odd")).0, "error incomplete: odd");
    let (line, kind, _) = end(
        json!({"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"m"}}}),
    );
    assert_eq!((line.as_str(), kind), ("error server_error: m", Some(ErrorKind::Overloaded)));
    let (line, kind, _) = end(json!({"type":"error","code":"rate_limit_exceeded","message":"slow"}));
    assert_eq!((line.as_str(), kind), ("error Error Code rate_limit_exceeded: slow", Some(ErrorKind::RateLimit)));
    let (line, kind, _) = end(json!({"type":"response.created","response":{"id":"r"}}));
    assert_eq!(line, "error OpenAI Responses stream ended before a terminal response event");
    assert_eq!(kind, Some(ErrorKind::Network));
}

#[test]
fn thinking_and_caching_fields() {
    let fields = |change: &dyn Fn(&mut Model), level, cache| {
        let mut model = model();
        change(&mut model);
        let mut call = call(model, vec![user("hi")]);
        call.session_id = Some(Arc::from("s"));
        (call.thinking, call.cache) = (level, cache);
        let body = body(&call);
        json!([
            body["reasoning"],
            body["include"],
            body["prompt_cache_key"],
            body["prompt_cache_retention"],
            body["prompt_cache_options"]
        ])
    };
    let (off, high) = (ThinkingLevel::Off, ThinkingLevel::High);
    let encrypted = json!(["reasoning.encrypted_content"]);
    let nothing = |_: &mut Model| {};
    assert_eq!(
        fields(&nothing, high, CacheRetention::Short),
        json!([{"effort":"high","summary":"auto"}, encrypted, "s", null, null])
    );
    assert_eq!(fields(&nothing, off, CacheRetention::Long), json!([{"effort":"none"}, null, "s", "24h", null]));
    assert_eq!(fields(&nothing, off, CacheRetention::None), json!([{"effort":"none"}, null, null, null, null]));
    let endless = |model: &mut Model| model.thinking_level_map = Some([(off, None)].into());
    assert_eq!(fields(&endless, off, CacheRetention::Short)[0], Value::Null);
    let xai = |model: &mut Model| model.provider = "xai".into();
    assert_eq!(fields(&xai, off, CacheRetention::Short)[1], encrypted);
    let explicit =
        |model: &mut Model| model.compat = json!({"supportsExplicitPromptCacheMode":true}).as_object().cloned();
    assert_eq!(fields(&explicit, off, CacheRetention::Long)[4], json!({"ttl":"30m"}));
    assert_eq!(fields(&explicit, off, CacheRetention::None)[4], json!({"mode":"explicit"}));
    let plain = |model: &mut Model| model.reasoning = false;
    assert_eq!(fields(&plain, off, CacheRetention::Short)[0], Value::Null);
}

#[test]
fn compat_keys() {
    let sent = |compat: Value| {
        let mut call = second_turn(Model { compat: compat.as_object().cloned(), ..model() }, answer(), "call_abc|fc_1");
        call.max_tokens = Some(3);
        body(&call)
    };
    let body = sent(json!({"supportsDeveloperRole":false,"supportsStrictMode":true}));
    assert_eq!((&body["input"][0]["role"], &body["tools"][0]["strict"]), (&json!("system"), &json!(true)));
    assert_eq!(body["max_output_tokens"], 16);
    assert_eq!(sent(json!({"supportsMaxOutputTokens":false})).get("max_output_tokens"), None);
}

#[test]
fn histories_of_other_models() {
    let content = json!([{"type":"thinking","thinking":"plan"},{"type":"text","text":"Let me look."},
        {"type":"toolCall","id":"toolu_01X","name":"read","arguments":{}},
        {"type":"toolCall","id":"call_abc|fc_1","name":"read","arguments":{}}]);
    let history = |provider: &str| {
        let mut foreign = assistant(content.clone());
        foreign.provider = provider.into();
        vec![user("q"), Message::Assistant(foreign), result("toolu_01X", "r")]
    };
    let input = body(&call(model(), history("other")))["input"].clone();
    assert_eq!((&input[1]["id"], &input[2]["id"]), (&json!("msg_pi_1"), &json!("msg_pi_1_1")));
    assert_eq!((&input[3]["call_id"], input[3].get("id")), (&json!("toolu_01X"), None));
    assert_eq!((&input[4]["call_id"], input[4].get("id")), (&json!("call_abc_fc_1"), None));
    assert_eq!(input[5], json!({"type":"function_call_output","call_id":"toolu_01X","output":"r"}));

    let openai = Model { provider: "openai".into(), ..model() };
    let input = body(&call(openai.clone(), history("other")))["input"].clone();
    assert_eq!(input[4]["call_id"], "call_abc");
    assert!(input[4]["id"].as_str().is_some_and(|id| id.starts_with("fc_")), "{input}");
    // Items of another model of the same provider go without their ids.
    let input = body(&call(openai, history("openai")))["input"].clone();
    assert_eq!((&input[4]["call_id"], input[4].get("id")), (&json!("call_abc"), None));
}

#[test]
fn awkward_results_and_ids() {
    let image = json!({"type":"image","data":"AA==","mimeType":"image/png"});
    let calls = json!([{"type":"text","text":"t","textSignature":"m".repeat(70)},
        {"type":"toolCall","id":"a|x","name":"read","arguments":{}},{"type":"toolCall","id":"b|fc_2","name":"read","arguments":{}}]);
    let given = |id: &str, content: Value| {
        message(json!({"role":"toolResult","toolCallId":id,"toolName":"read","content":content}))
    };
    let history = vec![
        own(&model(), calls),
        given("a|x", json!([])),
        given("b|fc_2", json!([image, {"type":"text","text":"see"}])),
    ];
    let input = body(&call(model(), history))["input"].clone();
    assert!(input[0]["id"].as_str().is_some_and(|id| id.starts_with("msg_") && id.len() == 12), "{input}");
    assert_eq!((input[1].get("id"), &input[2]["id"]), (None, &json!("fc_2")));
    assert_eq!(input[3]["output"], "(no tool output)");
    assert_eq!(
        input[4]["output"],
        json!([{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,AA=="},{"type":"input_text","text":"see"}])
    );
}

#[test]
fn empty_prompts_are_sent() {
    let input = |content: Value| {
        let message = message(json!({"role":"user","content":content}));
        body(&call(model(), vec![message]))["input"].clone()
    };
    let empty = json!({"type":"input_text","text":""});
    assert_eq!(input(json!("")), json!([{"role":"user","content":[empty]}]));
    assert_eq!(input(json!([{"type":"text","text":""}])), json!([{"role":"user","content":[empty]}]));
    let image = json!({"type":"image","data":"AA==","mimeType":"image/png"});
    let sent = json!({"type":"input_image","detail":"auto","image_url":"data:image/png;base64,AA=="});
    assert_eq!(input(json!([{"type":"text","text":""}, image])), json!([{"role":"user","content":[empty, sent]}]));
    // Results are another matter: the picture is what the tool had to say.
    let history = vec![
        own(&model(), json!([{"type":"toolCall","id":"a|fc_1","name":"read","arguments":{}}])),
        message(json!({"role":"toolResult","toolCallId":"a|fc_1","toolName":"read",
            "content":[{"type":"text","text":""}, image]})),
    ];
    assert_eq!(body(&call(model(), history))["input"][1]["output"], json!([sent]));
}

#[test]
fn errors_name_the_provider() {
    let text = |provider: &str, status, body: &str| {
        Responses.error_text(&Model { provider: provider.into(), ..model() }, status, body)
    };
    assert_eq!(text("openai", 529, r#"{"error":{"message":"x"}}"#), r#"OpenAI API error (529): {"message":"x"}"#);
    assert_eq!(text("rec", 502, "bad"), "rec API error (502): bad");
    assert_eq!(text("rec", 400, ""), "rec API error (400): 400 status code (no body)");
}

#[test]
fn calls_that_cannot_be_told_apart_end_the_answer() {
    let added = |id: &str| {
        json!({"type":"response.output_item.added","item":{"type":"function_call","id":id,"call_id":format!("call_{id}"),
            "name":"bash","arguments":""}})
    };
    let delta =
        |id: &str, delta: &str| json!({"type":"response.function_call_arguments.delta","item_id":id,"delta":delta});
    let done = |id: &str, arguments: &str| {
        json!({"type":"response.output_item.done","item":{"type":"function_call","id":id,"call_id":format!("call_{id}"),
            "name":"bash","arguments":arguments}})
    };
    let completed = json!({"type":"response.completed","response":{"status":"completed"}});
    let (a, b) = (r#"{"command":"a"}"#, r#"{"command":"b"}"#);

    // By the id of the item, where a server does not number them; the last event counts, whatever the pieces were.
    let mixed =
        [added("1"), added("2"), delta("1", "{\"comm"), delta("2", b), done("2", b), done("1", a), completed.clone()];
    let (_, message) = show(&Responses, &model(), &stream(&mixed));
    let calls: Vec<_> = message.tool_calls().map(|call| (&*call.id, call.arguments["command"].as_str())).collect();
    assert_eq!(calls, [("call_1|1", Some("a")), ("call_2|2", Some("b"))]);
    assert_eq!(message.stop_reason, StopReason::ToolUse);

    let check = |events: &[Value], expected: &str| {
        let (_, message) = show(&Responses, &model(), &stream(events));
        assert_eq!(message.stop_reason, StopReason::Error);
        assert_eq!(message.error_message.as_deref(), Some(expected));
    };
    let mut nameless = delta("", a);
    nameless.as_object_mut().expect("an object").shift_remove("item_id");
    check(
        &[added("1"), nameless, done("1", a), completed.clone()],
        "OpenAI Responses stream is mixed up: arguments came without the call they belong to",
    );
    check(
        &[added("1"), delta("1", a), completed],
        "OpenAI Responses stream is mixed up: a call of bash was never finished (call_1)",
    );
}
