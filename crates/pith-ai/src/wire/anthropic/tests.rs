use super::*;
use crate::testing::{
    call, example_stream, fixture, message, own, read_tool, request, request_without, second_turn, show,
    survive_every_cut, user,
};
use crate::wire::Refused;
use pith_protocol::{CacheRetention, ErrorKind, ModelCost, StopReason, ThinkingLevel, ToolSpec};
use serde_json::{Value, json};
use std::sync::Arc;

fn model() -> Model {
    Model {
        id: "claude-rec".into(),
        api: "anthropic-messages".into(),
        provider: "rec".into(),
        base_url: "http://127.0.0.1:9".into(),
        reasoning: true,
        input: vec!["text".into(), "image".into()],
        cost: ModelCost { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75, tiers: vec![] },
        context_window: 200_000,
        max_tokens: 32_000,
        ..Model::default()
    }
}

fn with_compat(compat: Value) -> Model {
    Model { compat: compat.as_object().cloned(), ..model() }
}

fn answer() -> Value {
    json!([{"type":"thinking","thinking":"I should read the file.","thinkingSignature":"EqQBCgIYAhIM1gbc"},
        {"type":"text","text":"Let me look."},
        {"type":"toolCall","id":"toolu_01X","name":"read","arguments":{"path":"note.txt"}}])
}

fn body(call: &pith_protocol::LlmCall) -> Value {
    request(&Anthropic, call).2
}

#[test]
fn the_example_request() {
    let (url, headers, body) = request(&Anthropic, &second_turn(model(), answer(), "toolu_01X"));
    assert_eq!(url, "http://127.0.0.1:9/v1/messages");
    assert_eq!(headers.get("x-api-key"), Some("k-test"));
    assert_eq!(headers.get("anthropic-version"), Some("2023-06-01"));
    assert_eq!(headers.get("anthropic-beta"), Some("interleaved-thinking-2025-05-14"));
    assert_eq!(headers.get("authorization"), None);
    let mut expected: Value = serde_json::from_str(&fixture("anthropic.request.json")).expect("JSON");
    // The fourth breakpoint is ours: the last two user turns are marked.
    expected["messages"][0]["content"][1]["cache_control"] = json!({"type": "ephemeral"});
    assert_eq!(body, expected);
}

#[test]
fn the_example_stream() {
    let (lines, message) = show(&Anthropic, &model(), &fixture("anthropic.sse"));
    assert_eq!(lines, example_stream("toolu_01X"));
    let usage = &message.usage;
    assert_eq!((usage.input, usage.output, usage.cache_write, usage.total_tokens), (12, 42, 300, 354));
    assert_eq!((usage.cache_write_1h, usage.reasoning), (Some(0), None));
    assert!((usage.cost.total - 0.001791).abs() < 1e-12);
    assert_eq!(message.response_id.as_deref(), Some("msg_01A"));
    assert_eq!((message.response_model, message.raw_stop_reason.as_deref()), (None, Some("tool_use")));
    assert_eq!(serde_json::to_value(&message.content).expect("serializes"), answer());
}

#[test]
fn any_cut_of_the_stream_ends_cleanly() {
    survive_every_cut(crate::fuzz::fuzz_anthropic, &fixture("anthropic.sse"));
}

fn event(value: Value) -> String {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default())
}

fn stream(events: &[Value]) -> String {
    events.iter().cloned().map(event).collect()
}

fn stopped(reason: &str) -> String {
    stream(&[
        json!({"type":"message_start","message":{"id":"m","model":"claude-x","usage":{"input_tokens":1}}}),
        json!({"type":"message_delta","delta":{"stop_reason":reason,"stop_details":{"explanation":null}},"usage":{"output_tokens":2}}),
        json!({"type":"message_stop"}),
    ])
}

#[test]
fn stop_reasons() {
    let ends = |reason: &str| show(&Anthropic, &model(), &stopped(reason)).0.join("|");
    assert_eq!(ends("end_turn"), "done Stop");
    assert_eq!(ends("stop_sequence"), "done Stop");
    assert_eq!(ends("pause_turn"), "done Stop");
    assert_eq!(ends("max_tokens"), "done Length");
    assert_eq!(ends("refusal"), "error The model refused to complete the request");
    assert_eq!(ends("moonrise"), "error Unhandled stop reason: moonrise");
    let (_, message) = show(&Anthropic, &model(), &stopped("end_turn"));
    assert_eq!(message.response_model.as_deref(), Some("claude-x"));
}

#[test]
fn streams_that_break_off() {
    let (lines, message) = show(&Anthropic, &model(), "");
    assert_eq!(lines, ["error Anthropic stream ended without a stop reason"]);
    assert!(crate::failure::is_retryable(&message));
    let text = fixture("anthropic.sse");
    let cut = &text[..text.find("event: message_delta").expect("there")];
    let (lines, message) = show(&Anthropic, &model(), cut);
    assert_eq!(lines.last().expect("an end"), "error Anthropic stream ended before message_stop");
    assert_eq!((message.content.len(), message.stop_reason), (3, StopReason::Error));
    assert_eq!((message.usage.input, message.usage.cost.total > 0.0), (12, true));
}

#[test]
fn errors_inside_the_stream() {
    let error = json!({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}});
    let (lines, message) = show(&Anthropic, &model(), &event(error.clone()));
    assert_eq!(lines, [format!("error {error}")]);
    assert_eq!(message.error.expect("a failure").kind, ErrorKind::Overloaded);
    let broken = "data: {\"type\":\"content_block_delta\",oops}\n\n";
    let (_, message) = show(&Anthropic, &model(), &format!("event: content_block_delta\n{broken}"));
    assert_eq!(message.error.expect("a failure").kind, ErrorKind::Protocol);
}

#[test]
fn unknown_events_may_hold_anything() {
    for broken in ["data: {\"type\":\"content_block_delta\",oops}\n\n", "data: hello\n\n", "event: odd\ndata: {\n\n"] {
        let (lines, _) = show(&Anthropic, &model(), &format!("{broken}{}", stopped("end_turn")));
        assert_eq!(lines, ["done Stop"], "{broken}");
    }
}

#[test]
fn odd_servers() {
    // Numbers need not start at zero, texts may come with the start, calls may come whole.
    let (lines, message) = show(
        &Anthropic,
        &model(),
        &stream(&[
            json!({"type":"message_start","message":{"usage":{"input_tokens":5.0,"cache_read_input_tokens":null}}}),
            json!({"type":"content_block_start","index":4,"content_block":{"type":"text","text":"Hi"}}),
            json!({"type":"content_block_delta","index":4,"delta":{"type":"text_delta","text":" you"}}),
            json!({"type":"content_block_start","index":7,"content_block":{"type":"redacted_thinking","data":"xyz"}}),
            json!({"type":"content_block_stop","index":7}),
            json!({"type":"content_block_start","index":9,"content_block":{"type":"server_tool_use","id":"s"}}),
            json!({"type":"content_block_delta","index":9,"delta":{"type":"input_json_delta","partial_json":"{}"}}),
            json!({"type":"content_block_stop","index":9}),
            json!({"type":"content_block_start","index":10,"content_block":{"type":"tool_use","id":"t","name":"ls","input":{"path":"."}}}),
            json!({"type":"something_new","data":{}}),
            json!({"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3,"input_tokens":null,
                "output_tokens_details":{"thinking_tokens":2}}}),
            json!({"type":"message_stop"}),
        ]),
    );
    assert_eq!(
        lines,
        [
            "text_start 0",
            "text_delta 0 Hi",
            "text_delta 0  you",
            "thinking_start 1",
            "thinking_delta 1 [Reasoning redacted]",
            "thinking_end 1 [Reasoning redacted]",
            "toolcall_start 2 t ls",
            "text_end 0 Hi you",
            "toolcall_delta 2 {\"path\":\".\"}",
            "toolcall_end 2 {\"path\":\".\"}",
            "done ToolUse",
        ]
    );
    assert_eq!(
        serde_json::to_value(&message.content[1]).expect("serializes"),
        json!({"type":"thinking","thinking":"[Reasoning redacted]","thinkingSignature":"xyz","redacted":true})
    );
    assert_eq!((message.usage.input, message.usage.output, message.usage.reasoning), (5, 3, Some(2)));
}

#[test]
fn strings_servers_get_wrong_are_mended() {
    let text = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\"}}\n\n\
        data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"text\":\"tab\tand \\ud83d half\"}}\n\n";
    let (lines, _) = show(&Anthropic, &model(), text);
    assert_eq!(lines[1], "text_delta 0 tab\tand \u{FFFD} half");
}

#[test]
fn broken_arguments_are_reported_and_not_completed() {
    let (lines, message) = show(
        &Anthropic,
        &model(),
        &stream(&[
            json!({"type":"message_start","message":{}}),
            json!({"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"bash","input":{}}}),
            json!({"type":"content_block_delta","index":0,"delta":{"partial_json":"{\"command\":\"echo hello wor"}}),
            json!({"type":"content_block_stop","index":0}),
            json!({"type":"message_delta","delta":{"stop_reason":"tool_use"}}),
            json!({"type":"message_stop"}),
        ]),
    );
    assert_eq!(lines[2..], ["toolcall_end 0 {} (truncated)", "done ToolUse"]);
    assert_eq!(message.diagnostics.expect("notes")["toolCalls"]["t"]["raw"], "{\"command\":\"echo hello wor");
}

#[test]
fn thinking_follows_the_level() {
    let thinking = |model: Model, level| {
        let mut call = call(model, vec![user("hi")]);
        call.thinking = level;
        let body = body(&call);
        json!([body["thinking"], body["output_config"], body["max_tokens"]])
    };
    let on = |budget: u64| json!({"type":"enabled","budget_tokens":budget,"display":"summarized"});
    assert_eq!(thinking(model(), ThinkingLevel::Off), json!([{"type":"disabled"}, null, 32000]));
    assert_eq!(thinking(model(), ThinkingLevel::Low), json!([on(2048), null, 32000]));
    assert_eq!(thinking(model(), ThinkingLevel::Max), json!([on(16384), null, 32000]));
    let small = Model { max_tokens: 16384, ..model() };
    assert_eq!(thinking(small, ThinkingLevel::High), json!([on(15360), null, 16384]));
    let tiny = Model { max_tokens: 1500, ..model() };
    assert_eq!(thinking(tiny, ThinkingLevel::High), json!([{"type":"disabled"}, null, 1500]));
    let plain = Model { reasoning: false, ..model() };
    assert_eq!(thinking(plain, ThinkingLevel::Off), json!([null, null, 32000]));

    let adaptive = || with_compat(json!({"forceAdaptiveThinking":true}));
    let thinks = json!({"type":"adaptive","display":"summarized"});
    assert_eq!(thinking(adaptive(), ThinkingLevel::Minimal), json!([thinks, {"effort":"low"}, 32000]));
    assert_eq!(thinking(adaptive(), ThinkingLevel::High), json!([thinks, {"effort":"high"}, 32000]));
    let mut mapped = adaptive();
    mapped.thinking_level_map = Some([(ThinkingLevel::Off, None), (ThinkingLevel::Max, Some("max".into()))].into());
    assert_eq!(thinking(mapped.clone(), ThinkingLevel::Max), json!([thinks, {"effort":"max"}, 32000]));
    assert_eq!(thinking(mapped, ThinkingLevel::Off), json!([null, null, 32000]));
}

#[test]
fn thinking_may_come_back_behind_another_prompt() {
    let sent = |compat: Value, level, refused: &str| {
        let mut model = with_compat(compat);
        model.thinking_level_map = Some([(ThinkingLevel::Off, None)].into());
        let mut call = call(model, vec![user("hi")]);
        call.thinking = level;
        let mut learned = Refused::default();
        learned.learn(&Anthropic, format!("{{\"{refused}\":1}}").as_bytes(), 400, &format!("{refused}: unknown field"));
        let (_, headers, body) = request_without(&Anthropic, &call, &learned);
        (body["thinking"].clone(), headers.get("anthropic-beta").map(str::to_owned))
    };
    let beta = || Some("thinking-binding-controls-2026-08-01".to_owned());
    let both = json!({"forceAdaptiveThinking":true,"supportsMidConvoEffort":true});
    let bound =
        json!({"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}});
    assert_eq!(sent(both.clone(), ThinkingLevel::High, ""), (bound.clone(), beta()));
    assert_eq!(sent(both.clone(), ThinkingLevel::Off, ""), (bound, beta()));
    let plain = json!({"type":"adaptive","display":"summarized"});
    assert_eq!(sent(both, ThinkingLevel::High, "block_binding"), (plain.clone(), None));
    assert_eq!(sent(json!({"forceAdaptiveThinking":true}), ThinkingLevel::High, ""), (plain, None));
    let budgeted = sent(json!({"supportsMidConvoEffort":true}), ThinkingLevel::High, "");
    assert_eq!((&budgeted.0["type"], &budgeted.0["block_binding"]), (&json!("enabled"), &Value::Null));
}

#[test]
fn caching_follows_the_retention() {
    let marks = |cache, compat: Value| {
        let mut call = second_turn(with_compat(compat), answer(), "toolu_01X");
        call.cache = cache;
        let body = body(&call);
        let text = body.to_string();
        (
            text.matches("cache_control").count(),
            text.matches("\"ttl\":\"1h\"").count(),
            body["tools"][0]["cache_control"].clone(),
        )
    };
    assert_eq!(marks(CacheRetention::Short, json!({})), (4, 0, json!({"type":"ephemeral"})));
    assert_eq!(marks(CacheRetention::Long, json!({})), (4, 4, json!({"type":"ephemeral","ttl":"1h"})));
    assert_eq!(marks(CacheRetention::Long, json!({"supportsLongCacheRetention":false})).1, 0);
    assert_eq!(marks(CacheRetention::None, json!({})), (0, 0, Value::Null));
    assert_eq!(marks(CacheRetention::Short, json!({"supportsCacheControlOnTools":false})), (3, 0, Value::Null));
}

#[test]
fn tools_follow_the_compat_keys() {
    let tool = |compat: Value| {
        let mut call = call(with_compat(compat), vec![user("hi")]);
        call.tools = Arc::from([read_tool()]);
        let (_, headers, body) = request(&Anthropic, &call);
        (body["tools"][0].clone(), headers.get("anthropic-beta").map(str::to_owned))
    };
    let (plain, beta) = tool(json!({"supportsEagerToolInputStreaming":false}));
    assert_eq!(plain["eager_input_streaming"], Value::Null);
    assert_eq!(beta.as_deref(), Some("fine-grained-tool-streaming-2025-05-14"));
    let (strict, beta) = tool(json!({"supportsStrictTools":true,"allowedFallbackModels":["claude-2"]}));
    assert_eq!((&strict["strict"], &strict["input_schema"]["additionalProperties"]), (&json!(true), &json!(false)));
    assert_eq!(strict["input_schema"]["required"], json!(["path", "offset", "limit"]));
    assert_eq!(beta.as_deref(), Some("server-side-fallback-2026-07-01"));
    let known = json!({"allowedFallbackModels":["a",{"provider":"anthropic","model":"b","cost":{"input":1}}]});
    let sent = request(&Anthropic, &call(with_compat(known), vec![user("hi")])).2;
    assert_eq!(sent["fallbacks"], json!([{"model":"a"},{"model":"b"}]));
}

#[test]
fn schemas_are_sent_in_the_form_the_server_takes() {
    let sent = |parameters: Value, supports_strict: bool| {
        let mut call = call(with_compat(json!({"supportsStrictTools":supports_strict})), vec![user("hi")]);
        call.tools = Arc::from([ToolSpec { parameters: Arc::new(parameters), ..read_tool() }]);
        let tool = body(&call)["tools"][0].clone();
        (tool["strict"] == true, tool["input_schema"].clone())
    };
    let with = |property: Value| json!({"type":"object","properties":{"p":property},"required":["p"]});
    // One such keyword, wherever it stands, and the server would refuse the request.
    for (keyword, value) in [
        ("minimum", json!(1)),
        ("maximum", json!(1)),
        ("exclusiveMinimum", json!(1)),
        ("exclusiveMaximum", json!(1)),
        ("multipleOf", json!(2)),
        ("maxItems", json!(3)),
        ("uniqueItems", json!(true)),
        ("minContains", json!(1)),
        ("maxContains", json!(1)),
        ("minProperties", json!(1)),
        ("maxProperties", json!(1)),
        ("minItems", json!(2)),
        ("format", json!("regex")),
        ("format", json!(5)),
    ] {
        let mut property = json!({"type":"array"});
        property[keyword] = value;
        let deep = json!({"type":"array","items":property,"minItems":1});
        for parameters in [with(property), with(deep)] {
            assert_eq!(sent(parameters.clone(), true), (false, parameters));
        }
    }
    for property in [json!({"type":"string","format":"date-time","minLength":3}), json!({"type":"array","minItems":0})]
    {
        assert!(sent(with(property), true).0);
    }
    assert!(sent(json!({"type":"object","properties":{"minimum":{"type":"string"}}}), true).0, "a name is no keyword");

    // A choice at the root makes the server refuse the request; references need their definitions.
    let odd = json!({"anyOf":[{"required":["a"]}],"oneOf":[],"additionalProperties":true,"title":"T","$schema":"s",
        "properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"anyOf":[{"type":"string"}]}},"definitions":{}});
    let plain = json!({"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"required":[],
        "$defs":{"x":{"anyOf":[{"type":"string"}]}},"definitions":{}});
    for supports_strict in [false, true] {
        assert_eq!(sent(odd.clone(), supports_strict), (false, plain.clone()));
        assert_eq!(sent(json!(true), supports_strict).1, json!({"type":"object","properties":{},"required":[]}));
    }
}

#[test]
fn found_tools_leave_the_cached_prefix_as_it_is() {
    let named = |name: &str| ToolSpec { name: name.into(), ..read_tool() };
    let search = json!([{"type":"toolCall","id":"toolu_1","name":"tool_search","arguments":{"query":"x"}}]);
    let found = json!({"role":"toolResult","toolCallId":"toolu_1","toolName":"tool_search","isError":false,
        "content":[{"type":"text","text":"{…}"}],"details":{"tools":["mcp__a__b","mcp__a__gone"]}});
    let at = |base_url: &str, id: &str, tools: &[&str]| {
        let model = Model { base_url: base_url.into(), id: id.into(), ..model() };
        let messages = vec![user("go"), own(&model, search.clone()), message(found.clone())];
        let mut call = call(model, messages);
        call.tools = tools.iter().map(|name| named(name)).collect();
        call.search_tool = Some("tool_search".into());
        let body = body(&call);
        let result = body["messages"][2]["content"][0]["content"].clone();
        let defers: Vec<Value> =
            body["tools"].as_array().expect("tools").iter().map(|tool| tool["defer_loading"].clone()).collect();
        let cached: Vec<bool> =
            body["tools"].as_array().expect("tools").iter().map(|tool| tool.get("cache_control").is_some()).collect();
        (result, defers, cached)
    };
    let (own_server, all) = ("https://api.anthropic.com", ["read", "tool_search", "mcp__a__b", "mcp__a__used"]);
    let (result, defers, cached) = at(own_server, "claude-sonnet-4-5", &all);
    assert_eq!(result, json!([{"type":"tool_reference","tool_name":"mcp__a__b"}]), "only tools that are there");
    // A tool that no result refers to is declared as ever, and the last one that is not deferred ends the prefix.
    assert_eq!(defers, [Value::Null, Value::Null, json!(true), Value::Null]);
    assert_eq!(cached, [false, false, false, true]);
    let (_, _, cached) = at(own_server, "claude-sonnet-4-5", &all[..3]);
    assert_eq!(cached, [false, true, false], "a deferred tool cannot be cached");
    let plain = (json!("{…}"), vec![Value::Null; 4]);
    let shown = |base_url: &str, id: &str| {
        let (result, defers, _) = at(base_url, id, &all);
        (result, defers)
    };
    assert_eq!(shown("http://127.0.0.1:9", "claude-sonnet-4-5"), plain, "other servers may not know it");
    assert_eq!(shown(own_server, "claude-3-5-haiku-latest"), plain);
    assert_eq!(at(own_server, "claude-sonnet-4-5", &["mcp__a__b"]).1, [Value::Null], "one tool must not be deferred");
}

#[test]
fn awkward_histories() {
    let image = json!({"type":"image","data":"AA==","mimeType":"image/png"});
    let call = call(
        model(),
        vec![
            message(json!({"role":"user","content":[{"type":"text","text":" "}]})),
            user("go"),
            own(
                &model(),
                json!([{"type":"thinking","thinking":"unsigned"},{"type":"text","text":"  "},
                {"type":"thinking","thinking":"[gone]","thinkingSignature":"D","redacted":true},
                {"type":"toolCall","id":"a","name":"read","arguments":{}},
                {"type":"toolCall","id":"b","name":"read","arguments":{}}]),
            ),
            message(json!({"role":"toolResult","toolCallId":"a","toolName":"read","content":[image],"isError":false})),
            message(json!({"role":"toolResult","toolCallId":"b","toolName":"read",
                "content":[{"type":"text","text":"x"},{"type":"text","text":"y"}],"isError":true})),
            own(&model(), json!([])),
            user("next"),
        ],
    );
    let mut messages = body(&call)["messages"].clone();
    let strip = |value: &mut Value| {
        for message in value.as_array_mut().expect("messages") {
            for block in message["content"].as_array_mut().expect("blocks") {
                block.as_object_mut().expect("an object").shift_remove("cache_control");
            }
        }
    };
    strip(&mut messages);
    let picture = json!({"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}});
    assert_eq!(
        messages,
        json!([
            {"role":"user","content":[{"type":"text","text":"go"}]},
            {"role":"assistant","content":[{"type":"text","text":"unsigned"},{"type":"redacted_thinking","data":"D"},
                {"type":"tool_use","id":"a","name":"read","input":{}},{"type":"tool_use","id":"b","name":"read","input":{}}]},
            {"role":"user","content":[
                {"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"(see attached image)"},picture],"is_error":false},
                {"type":"tool_result","tool_use_id":"b","content":"x\ny","is_error":true}]},
            {"role":"user","content":[{"type":"text","text":"next"}]},
        ])
    );
    let lenient = Model { compat: json!({"allowEmptySignature":true}).as_object().cloned(), ..model() };
    let body = body(&pith_protocol::LlmCall { model: Arc::new(lenient), ..call });
    assert_eq!(body["messages"][1]["content"][0], json!({"type":"thinking","thinking":"unsigned","signature":""}));
}

#[test]
fn consecutive_requests_share_their_beginning() {
    let bytes = |messages: Vec<pith_protocol::Message>| {
        let mut call = second_turn(model(), answer(), "toolu_01X");
        call.messages.extend(messages.into_iter().map(Arc::new));
        call.cache = CacheRetention::None;
        request(&Anthropic, &call).2.to_string()
    };
    let first = bytes(vec![]);
    let second = bytes(vec![own(&model(), json!([{"type":"text","text":"It says hello."}])), user("thanks")]);
    let shared = &first[..first.find("],\"max_tokens\"").expect("there")];
    assert!(second.starts_with(shared), "{first}\n{second}");
}

#[test]
fn errors_are_quoted_with_their_status() {
    let text = |status, body: &str| Anthropic.error_text(&model(), status, body);
    assert_eq!(text(529, r#"{"type":"error"}"#), r#"529 {"type":"error"}"#);
    assert_eq!(text(413, "too big"), "413 too big");
    assert_eq!(text(500, " "), "500 status code (no body)");
    assert_eq!(text(400, &"x".repeat(5000)).len(), 4 + 4000 + "... [truncated 1000 chars]".len());
}
