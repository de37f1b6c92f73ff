use super::*;
use crate::testing::{
    assistant, call, example_stream, fixture, message, own, read_tool, request, request_without, result, second_turn,
    show, survive_every_cut, user,
};
use crate::wire::Refused;
use pith_protocol::{CacheRetention, ErrorKind, LlmCall, Message, ThinkingLevel};
use serde_json::{Value, json};
use std::sync::Arc;

fn model() -> Model {
    Model {
        id: "gpt-rec".into(),
        api: "openai-completions".into(),
        provider: "rec".into(),
        base_url: "https://api.openai.com/v1".into(),
        reasoning: true,
        input: vec!["text".into(), "image".into()],
        context_window: 128_000,
        max_tokens: 8000,
        ..Model::default()
    }
}

fn local() -> Model {
    Model { base_url: "http://127.0.0.1:9/v1".into(), ..model() }
}

fn with_compat(compat: Value) -> Model {
    Model { compat: compat.as_object().cloned(), ..local() }
}

fn answer() -> Value {
    json!([{"type":"thinking","thinking":"I should read the file.","thinkingSignature":"reasoning_content"},
        {"type":"text","text":"Let me look."},
        {"type":"toolCall","id":"call_abc","name":"read","arguments":{"path":"note.txt"}}])
}

fn body(call: &LlmCall) -> Value {
    request(&Completions, call).2
}

#[test]
fn the_example_request() {
    let (url, headers, body) = request(&Completions, &second_turn(model(), answer(), "call_abc"));
    assert_eq!(url, "https://api.openai.com/v1/chat/completions");
    assert_eq!(headers.get("authorization"), Some("Bearer k-test"));
    let expected: Value = serde_json::from_str(&fixture("completions.request.json")).expect("JSON");
    assert_eq!(body, expected);
}

#[test]
fn unknown_hosts_get_what_every_server_takes() {
    let body = body(&second_turn(local(), answer(), "call_abc"));
    let mut expected: Value = serde_json::from_str(&fixture("completions.request.json")).expect("JSON");
    let fields = expected.as_object_mut().expect("an object");
    fields.shift_remove("store");
    let limit = fields.shift_remove("max_completion_tokens").expect("there");
    fields.insert("max_tokens".into(), limit);
    expected["messages"][0]["role"] = json!("system");
    assert_eq!(body, expected);
}

#[test]
fn the_example_stream() {
    let (lines, message) = show(&Completions, &model(), &fixture("completions.sse"));
    // Every block ends as soon as the next one begins.
    assert_eq!(lines, example_stream("call_abc"));
    let usage = &message.usage;
    assert_eq!((usage.input, usage.cache_read, usage.output), (64, 256, 42));
    assert_eq!((usage.reasoning, usage.total_tokens), (Some(9), 362));
    assert_eq!(serde_json::to_value(&message.content).expect("serializes"), answer());
    assert_eq!(message.response_id.as_deref(), Some("chatcmpl-1"));
    assert_eq!(message.raw_stop_reason.as_deref(), Some("tool_calls"));
}

#[test]
fn any_cut_of_the_stream_ends_cleanly() {
    survive_every_cut(crate::fuzz::fuzz_completions, &fixture("completions.sse"));
}

fn stream(deltas: &[Value], finish: &str) -> String {
    let mut text = String::new();
    for delta in deltas {
        text += &format!("data: {}\n\n", json!({"id":"c","choices":[{"index":0,"delta":delta}]}));
    }
    text + &format!("data: {}\n\n", json!({"choices":[{"delta":{},"finish_reason":finish}]}))
}

fn decoded(deltas: &[Value]) -> Vec<String> {
    show(&Completions, &local(), &stream(deltas, "stop")).0
}

#[test]
fn a_later_piece_of_an_ended_kind_opens_a_new_block() {
    assert_eq!(
        decoded(&[json!({"content":"a"}), json!({"reasoning":"b"}), json!({"content":"c"}), json!({"content":""})]),
        [
            "text_start 0",
            "text_delta 0 a",
            "text_end 0 a",
            "thinking_start 1",
            "thinking_delta 1 b",
            "thinking_end 1 b",
            "text_start 2",
            "text_delta 2 c",
            "text_end 2 c",
            "done Stop"
        ]
    );
}

#[test]
fn calls_end_when_whole_and_may_interleave() {
    let fragment = |index: u64, text: &str| json!({"tool_calls":[{"index":index,"function":{"arguments":text}}]});
    let start =
        |index: u64, id: &str| json!({"tool_calls":[{"index":index,"id":id,"function":{"name":"ls","arguments":""}}]});
    assert_eq!(
        decoded(&[
            start(0, "a"),
            fragment(0, "{}"),
            start(1, "b"),
            fragment(1, "{\"p\":"),
            start(2, "c"),
            fragment(1, "1}"),
            fragment(2, "{}")
        ]),
        [
            "toolcall_start 0 a ls",
            "toolcall_delta 0 ",
            "toolcall_delta 0 {}",
            "toolcall_end 0 {}",
            "toolcall_start 1 b ls",
            "toolcall_delta 1 ",
            "toolcall_delta 1 {\"p\":",
            "toolcall_start 2 c ls",
            "toolcall_delta 2 ",
            "toolcall_delta 1 1}",
            "toolcall_delta 2 {}",
            "toolcall_end 1 {\"p\":1}",
            "toolcall_end 2 {}",
            "done ToolUse",
        ]
    );
}

#[test]
fn calls_of_odd_servers() {
    // All numbered 0, told apart by id; arguments as an object.
    let whole = |id: &str| json!({"tool_calls":[{"index":0,"id":id,"function":{"name":"ls","arguments":{"p":1}}}]});
    assert_eq!(
        decoded(&[whole("a"), whole("b")]),
        [
            "toolcall_start 0 a ls",
            "toolcall_delta 0 {\"p\":1}",
            "toolcall_end 0 {\"p\":1}",
            "toolcall_start 1 b ls",
            "toolcall_delta 1 {\"p\":1}",
            "toolcall_end 1 {\"p\":1}",
            "done ToolUse"
        ]
    );
    // No index at all, the name late.
    let lines = decoded(&[
        json!({"tool_calls":[{"id":"x","function":{"arguments":"{"}}]}),
        json!({"tool_calls":[{"id":"x","function":{"name":"ls"}}]}),
        json!({"tool_calls":[{"function":{"arguments":"}"}}]}),
    ]);
    assert_eq!(
        lines,
        ["toolcall_start 0 x ls", "toolcall_delta 0 {", "toolcall_delta 0 }", "toolcall_end 0 {}", "done ToolUse"]
    );
    // No id: one is made up.
    let (_, message) =
        show_once(&stream(&[json!({"tool_calls":[{"index":0,"function":{"name":"ls","arguments":"{}"}}]})], "stop"));
    assert!(message.tool_calls().next().expect("a call").id.starts_with("call_"));
}

fn show_once(stream: &str) -> (usize, pith_protocol::AssistantMessage) {
    let events = crate::testing::decode(&Completions, &local(), stream, usize::MAX);
    match events.last() {
        Some(pith_protocol::AssistantEvent::End(message)) => (events.len(), (**message).clone()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn typed_content_parts_are_understood() {
    assert_eq!(
        decoded(&[
            json!({"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}),
            json!({"content":[{"type":"text","text":"hi"}], "reasoning":{"effort":1}}),
        ]),
        [
            "thinking_start 0",
            "thinking_delta 0 hm",
            "thinking_end 0 hm",
            "text_start 1",
            "text_delta 1 hi",
            "text_end 1 hi",
            "done Stop"
        ]
    );
}

#[test]
fn reasoning_details_are_kept_for_the_next_request() {
    let details = |value: Value| json!({"reasoning_details":[value]});
    let text = stream(
        &[
            json!({"reasoning":"ab","reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]}),
            details(json!({"type":"reasoning.text","text":"b","index":0,"signature":"s"})),
            json!({"content":"hi"}),
            details(json!({"type":"reasoning.encrypted","data":"E"})),
            details(json!({"type":"unheard-of"})),
        ],
        "stop",
    );
    let (_, answer) = show(&Completions, &local(), &text);
    let signature = serde_json::to_value(&answer.content[0]).expect("serializes")["thinkingSignature"].clone();
    let expected = json!([{"type":"reasoning.text","text":"ab","index":0,"signature":"s"},{"type":"reasoning.encrypted","data":"E"}]);
    assert_eq!(signature, json!(expected.to_string()));
    let content = serde_json::to_value(&answer.content).expect("serializes");
    let sent = body(&call(local(), vec![user("q"), own(&local(), content), user("next")]));
    assert_eq!(sent["messages"][1], json!({"role":"assistant","content":"hi","reasoning_details":expected}));
}

#[test]
fn what_was_thought_comes_first_even_if_it_is_encrypted() {
    let encrypted = json!({"type":"reasoning.encrypted","data":"E"});
    let lines = decoded(&[json!({"content":"hi","reasoning_details":[encrypted]}), json!({"content":" there"})]);
    let expected = ["thinking_start 0", "thinking_end 0 ", "text_start 1", "text_delta 1 hi", "text_delta 1  there"];
    assert_eq!(lines[..5], expected);
    let call = json!([{"index":0,"id":"a","function":{"name":"ls","arguments":"{}"}}]);
    let lines = decoded(&[json!({"tool_calls":call,"reasoning_details":[encrypted]})]);
    assert_eq!(lines[..3], ["thinking_start 0", "thinking_end 0 ", "toolcall_start 1 a ls"]);
    // What comes late takes no text apart.
    let late = [json!({"content":"hi"}), json!({"reasoning_details":[encrypted]}), json!({"content":" there"})];
    let lines = decoded(&late);
    assert_eq!(lines[..4], ["text_start 0", "text_delta 0 hi", "text_delta 0  there", "text_end 0 hi there"]);
    assert!(decoded(&[json!({"content":"hi","reasoning_details":[{"type":"unheard.of"}]})])[0].starts_with("text"));
}

#[test]
fn stop_reasons_and_faults() {
    let end = |text: &str, model: &Model| show(&Completions, model, text).0.pop().expect("an end");
    assert_eq!(end(&stream(&[], "end"), &local()), "done Stop");
    assert_eq!(end(&stream(&[], "length"), &local()), "done Length");
    assert_eq!(end(&format!("data: null\n\n{}", stream(&[], "stop")), &local()), "done Stop");
    assert_eq!(end(&stream(&[], "content_filter"), &local()), "error Provider finish_reason: content_filter");
    assert_eq!(end(&stream(&[], "eos_maybe"), &local()), "error Provider finish_reason: eos_maybe");
    let unfinished = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n";
    assert_eq!(end(unfinished, &local()), "error Stream ended without finish_reason");
    assert_eq!(end(unfinished, &with_compat(json!({"supportsFinishReason":false}))), "done Stop");

    let fault = |error: Value| show(&Completions, &local(), &format!("data: {}\n\n", json!({"error":error})));
    let (lines, message) = fault(json!({"message":"Provider returned error","code":502}));
    assert_eq!(lines, ["error Provider returned error"]);
    let failure = message.error.expect("a failure");
    assert_eq!((failure.kind, failure.status), (ErrorKind::Overloaded, Some(502)));
    let kind = |error: Value| fault(error).1.error.expect("a failure").kind;
    assert_eq!(
        kind(json!({"message":"m","type":"invalid_request_error","code":"context_length_exceeded"})),
        ErrorKind::Overflow
    );
    assert_eq!(kind(json!("rate limit")), ErrorKind::RateLimit);
}

#[test]
fn unknown_endings_of_complete_answers() {
    let end = |deltas: &[Value], finish: &str| {
        let (mut lines, message) = show(&Completions, &local(), &stream(deltas, finish));
        (lines.pop().expect("an end"), message.diagnostics.unwrap_or_default()["stopReason"].clone())
    };
    let text = [json!({"content":"hi"})];
    let call =
        |arguments: &str| [json!({"tool_calls":[{"index":0,"id":"a","function":{"name":"ls","arguments":arguments}}]})];
    for (word, taken_as, line) in
        [("eos", "stop", "done Stop"), ("MAX_TOKENS", "length", "done Length"), ("halted", "stop", "done Stop")]
    {
        assert_eq!(end(&text, word), (line.to_owned(), json!({"unknown":word.to_lowercase(),"takenAs":taken_as})));
    }
    assert_eq!(end(&call("{}"), "FUNCTION_CALL").0, "done ToolUse");
    assert_eq!(end(&call("{}"), "halted").0, "done ToolUse");
    assert_eq!(end(&call("{\"p"), "halted").0, "error Provider finish_reason: halted");
    assert_eq!(end(&text, "safety_stop").0, "error Provider finish_reason: safety_stop");
    assert_eq!(end(&text, "stop").1, Value::Null);
}

#[test]
fn thinking_goes_back_in_the_field_it_came_in() {
    for field in ["reasoning_content", "reasoning", "reasoning_text", "thinking"] {
        let (_, answer) =
            show(&Completions, &local(), &stream(&[json!({field:"hm"}), json!({"content":"hi"})], "stop"));
        let content = serde_json::to_value(&answer.content).expect("serializes");
        assert_eq!(content[0], json!({"type":"thinking","thinking":"hm","thinkingSignature":field}));
        let sent = body(&call(local(), vec![user("q"), own(&local(), content), user("next")]));
        assert_eq!(sent["messages"][1], json!({"role":"assistant","content":"hi",field:"hm"}));
    }
}

#[test]
fn usage_wherever_it_is_and_none_at_all() {
    let usage = |text: &str| show(&Completions, &local(), text).1.usage;
    let chunk = |value: Value| format!("data: {value}\n\n");
    let inside = chunk(
        json!({"choices":[{"finish_reason":"stop","usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_cache_hit_tokens":4}}]}),
    );
    let seen = usage(&inside);
    assert_eq!((seen.input, seen.cache_read, seen.output, seen.estimated), (5, 4, 2, None));
    let silent = usage(&stream(&[json!({"content":"12345678"})], "stop"));
    assert_eq!((silent.input, silent.output, silent.total_tokens, silent.estimated), (100, 2, 102, Some(true)));
}

#[test]
fn thinking_formats() {
    let fields = |compat: Value, level, off: Option<Option<&str>>| {
        let mut model = with_compat(compat);
        model.thinking_level_map = off.map(|word| [(ThinkingLevel::Off, word.map(str::to_owned))].into());
        let mut call = call(model, vec![user("hi")]);
        call.thinking = level;
        let mut body = body(&call);
        let object = body.as_object_mut().expect("an object");
        for known in ["model", "messages", "stream", "stream_options", "max_tokens"] {
            object.shift_remove(known);
        }
        body
    };
    let format = |name: &str| json!({"thinkingFormat":name});
    let (high, off) = (ThinkingLevel::High, ThinkingLevel::Off);
    for (name, on, without, off_is_null) in [
        ("openai", json!({"reasoning_effort":"high"}), json!({}), json!({})),
        ("openrouter", json!({"reasoning":{"effort":"high"}}), json!({"reasoning":{"effort":"none"}}), json!({})),
        (
            "deepseek",
            json!({"thinking":{"type":"enabled"},"reasoning_effort":"high"}),
            json!({"thinking":{"type":"disabled"}}),
            json!({}),
        ),
        (
            "zai",
            json!({"thinking":{"type":"enabled","clear_thinking":false},"reasoning_effort":"high"}),
            json!({"thinking":{"type":"disabled"}}),
            json!({"thinking":{"type":"disabled"}}),
        ),
        (
            "together",
            json!({"reasoning":{"enabled":true},"reasoning_effort":"high"}),
            json!({"reasoning":{"enabled":false}}),
            json!({"reasoning":{"enabled":false}}),
        ),
        (
            "qwen",
            json!({"enable_thinking":true,"reasoning_effort":"high"}),
            json!({"enable_thinking":false}),
            json!({"enable_thinking":false}),
        ),
        (
            "qwen-chat-template",
            json!({"chat_template_kwargs":{"enable_thinking":true,"preserve_thinking":true}}),
            json!({"chat_template_kwargs":{"enable_thinking":false,"preserve_thinking":true}}),
            json!({"chat_template_kwargs":{"enable_thinking":false,"preserve_thinking":true}}),
        ),
        ("string-thinking", json!({"thinking":"high"}), json!({"thinking":"none"}), json!({})),
        ("ant-ling", json!({}), json!({}), json!({})),
    ] {
        assert_eq!(fields(format(name), high, None), on, "{name}");
        assert_eq!(fields(format(name), off, None), without, "{name} off");
        assert_eq!(fields(format(name), off, Some(None)), off_is_null, "{name} without off");
    }
    assert_eq!(fields(format("openai"), off, Some(Some("minimal"))), json!({"reasoning_effort":"minimal"}));
    assert_eq!(fields(json!({"supportsReasoningEffort":false}), high, None), json!({}));
    let template = json!({"thinkingFormat":"chat-template","chatTemplateKwargs":{"fixed":1,
        "enable_thinking":{"$var":"thinking.enabled"},"effort":{"$var":"thinking.effort","omitWhenOff":true},
        "budget":{"$var":"thinking.budget"}}});
    assert_eq!(
        fields(template.clone(), ThinkingLevel::Low, None),
        json!({"chat_template_kwargs":{"fixed":1,"enable_thinking":true,"effort":"low","budget":2048}})
    );
    assert_eq!(fields(template, off, None), json!({"chat_template_kwargs":{"fixed":1,"enable_thinking":false}}));
    let budgeted =
        json!({"thinkingFormat":"baseten","chatTemplateArgs":{"a":true},"thinkingTokenBudgetField":"thinking_budget"});
    assert_eq!(
        fields(budgeted, high, None),
        json!({"chat_template_args":{"a":true},"reasoning_effort":"high","thinking_budget":6976})
    );
}

fn vendor(provider: &str, base_url: &str) -> Model {
    Model { provider: provider.into(), base_url: base_url.into(), ..model() }
}

#[test]
fn vendors_are_known_by_name_and_host() {
    let manners = |model: Model| {
        let mut call = call(model, vec![user("hi")]);
        call.system_prompt = Arc::from("s");
        let body = body(&call);
        let limit = if body.get("max_tokens").is_some() { "max_tokens" } else { "max_completion_tokens" };
        format!("{} {} {limit}", body["messages"][0]["role"].as_str().expect("a role"), body.get("store").is_some())
    };
    assert_eq!(manners(model()), "developer true max_completion_tokens");
    assert_eq!(manners(vendor("groq", "https://api.groq.com/openai/v1")), "developer true max_completion_tokens");
    assert_eq!(manners(vendor("cerebras", "https://api.cerebras.ai/v1")), "system false max_completion_tokens");
    assert_eq!(manners(vendor("x", "https://api.deepseek.com")), "system false max_tokens");
    assert_eq!(manners(vendor("zai", "http://proxy.internal")), "system false max_tokens");
    assert_eq!(manners(vendor("openai", "http://proxy.internal/v1")), "system false max_tokens");
    assert_eq!(manners(vendor("openrouter", "https://openrouter.ai/api/v1")), "system true max_completion_tokens");
    assert_eq!(
        manners(with_compat(
            json!({"supportsDeveloperRole":true,"supportsStore":true,"maxTokensField":"max_completion_tokens"})
        )),
        "developer true max_completion_tokens"
    );
}

#[test]
fn refused_fields_are_left_out() {
    let compat = json!({"supportsDeveloperRole":true,"supportsStore":true,"supportsStrictMode":true});
    let mut call = second_turn(with_compat(compat), answer(), "call_abc");
    call.thinking = ThinkingLevel::Off;
    let mut refused = Refused::default();
    let sent = |refused: &Refused| request_without(&Completions, &call, refused).2;
    for field in ["developer", "store", "stream_options", "strict", "max_tokens"] {
        let before = sent(&refused).to_string();
        assert!(before.contains(&format!("\"{field}\"")), "{field} is sent");
        assert!(refused.learn(&Completions, before.as_bytes(), 400, &format!("Unknown value: {field}")));
        assert!(!sent(&refused).to_string().contains(&format!("\"{field}\"")), "{field} is gone");
    }
    let body = sent(&refused);
    assert_eq!((&body["messages"][0]["role"], &body["max_completion_tokens"]), (&json!("system"), &json!(8000)));
}

#[test]
fn strict_tools_and_tool_lists() {
    let mut strict =
        second_turn(with_compat(json!({"supportsStrictMode":true,"zaiToolStream":true})), answer(), "call_abc");
    let function = body(&strict)["tools"][0]["function"].clone();
    assert_eq!((&function["strict"], &function["parameters"]["additionalProperties"]), (&json!(true), &json!(false)));
    assert_eq!(body(&strict)["tool_stream"], json!(true));
    strict.tools = Arc::from([]);
    assert_eq!((&body(&strict)["tools"], body(&strict).get("tool_stream")), (&Value::Null, None));
    assert_eq!(body(&call(local(), vec![user("hi")])).get("tools"), None);
}

#[test]
fn caching_and_sessions() {
    let sent = |model: Model, cache| {
        let mut call = call(model, vec![user("hi")]);
        call.session_id = Some(Arc::from("s".repeat(70)));
        call.cache = cache;
        request(&Completions, &call)
    };
    let (_, _, body) = sent(model(), CacheRetention::Short);
    assert_eq!(body["prompt_cache_key"].as_str().map(str::len), Some(64));
    assert_eq!(sent(local(), CacheRetention::Short).2.get("prompt_cache_key"), None);
    let (_, _, body) = sent(local(), CacheRetention::Long);
    assert_eq!((body["prompt_cache_retention"].as_str(), body.get("prompt_cache_key").is_some()), (Some("24h"), true));
    assert_eq!(sent(model(), CacheRetention::None).2.get("prompt_cache_key"), None);

    let affine = |format: &str, cache| {
        let compat = json!({"sendSessionAffinityHeaders":true,"sessionAffinityFormat":format});
        let (_, headers, _) = sent(with_compat(compat), cache);
        let names = ["session_id", "x-client-request-id", "x-session-affinity", "x-session-id"];
        names.into_iter().filter(|name| headers.get(name).is_some()).collect::<Vec<_>>()
    };
    assert_eq!(affine("openai", CacheRetention::Short), ["session_id", "x-client-request-id", "x-session-affinity"]);
    assert_eq!(affine("openai-nosession", CacheRetention::Short), ["x-client-request-id", "x-session-affinity"]);
    assert_eq!(affine("openrouter", CacheRetention::Short), ["x-session-id"]);
    assert!(affine("openai", CacheRetention::None).is_empty());
}

#[test]
fn anthropic_cache_marks_through_aggregators() {
    let mut call = second_turn(with_compat(json!({"cacheControlFormat":"anthropic"})), answer(), "call_abc");
    let mark = json!({"type":"ephemeral"});
    let sent = body(&call);
    assert_eq!(sent["messages"][0]["content"][0]["cache_control"], mark);
    assert_eq!(sent["tools"][0]["cache_control"], mark);
    assert_eq!(sent["messages"][3]["content"], json!([{"type":"text","text":"hello note\n","cache_control":mark}]));
    assert_eq!(sent.to_string().matches("cache_control").count(), 3);
    call.cache = CacheRetention::None;
    assert!(!body(&call).to_string().contains("cache_control"));
}

#[test]
fn histories_of_other_models() {
    let foreign = assistant(json!([
        {"type":"thinking","thinking":"I should read the file.","thinkingSignature":"rs"},
        {"type":"text","text":"Let me look."},
        {"type":"toolCall","id":"call_abc|fc_1","name":"read","arguments":{}},
        {"type":"toolCall","id":format!("call_1|{}", "f".repeat(60)),"name":"read","arguments":{}}]));
    let sent = body(&call(local(), vec![user("q"), Message::Assistant(foreign), result("call_abc|fc_1", "r")]));
    let answer = &sent["messages"][1];
    // Thinking and text are not glued together.
    assert_eq!(answer["content"], "I should read the file.\n\nLet me look.");
    assert_eq!(answer["tool_calls"][0]["id"], "call_abc_fc_1");
    let long = answer["tool_calls"][1]["id"].as_str().expect("an id");
    assert!(long.starts_with("call_1_") && long.len() == "call_1_".len() + 8, "{long}");
    assert_eq!(sent["messages"][2]["tool_call_id"], "call_abc_fc_1");
}

#[test]
fn tool_results_and_their_pictures() {
    let image = json!({"type":"image","data":"AA==","mimeType":"image/png"});
    let given = |id: &str, content: Value| {
        message(json!({"role":"toolResult","toolCallId":id,"toolName":"read","content":content}))
    };
    let calls = json!([{"type":"toolCall","id":"a","name":"read","arguments":{}},{"type":"toolCall","id":"b","name":"read","arguments":{}},
        {"type":"toolCall","id":"c","name":"read","arguments":{}}]);
    let history = || {
        vec![
            own(&local(), calls.clone()),
            given("a", json!([image])),
            given("b", json!([{"type":"text","text":"x"}, image, {"type":"text","text":"y"}])),
            given("c", json!([])),
            user("and?"),
        ]
    };
    let sent = body(&call(local(), history()));
    let picture = json!({"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}});
    assert_eq!(sent["messages"][0]["content"], Value::Null);
    assert_eq!(
        json!([sent["messages"][1], sent["messages"][2], sent["messages"][3], sent["messages"][4]]),
        json!([
            {"role":"tool","content":"(see attached image)","tool_call_id":"a"},
            {"role":"tool","content":"x\ny","tool_call_id":"b"},
            {"role":"tool","content":"(no tool output)","tool_call_id":"c"},
            {"role":"user","content":[{"type":"text","text":"Attached image(s) from tool result:"}, picture, picture]},
        ])
    );
    let fussy = json!({"requiresToolResultName":true,"requiresAssistantAfterToolResult":true,
        "requiresReasoningContentOnAssistantMessages":true});
    let plain = vec![
        own(&local(), json!([{"type":"toolCall","id":"a","name":"read","arguments":{}}])),
        result("a", "r"),
        user("and?"),
    ];
    let sent = body(&call(with_compat(fussy), plain));
    assert_eq!(
        sent["messages"],
        json!([
            {"role":"assistant","content":"","reasoning_content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{}"}}]},
            {"role":"tool","content":"r","tool_call_id":"a","name":"read"},
            {"role":"assistant","content":"I have processed the tool results."},
            {"role":"user","content":[{"type":"text","text":"and?"}]},
        ])
    );
}

#[test]
fn thinking_as_text_and_alternation() {
    let history = vec![user("1"), user("2"), own(&local(), answer()), result("call_abc", "r")];
    let sent = body(&call(with_compat(json!({"requiresThinkingAsText":true,"requiresAlternation":true})), history));
    assert_eq!(sent["messages"][0]["content"], json!([{"type":"text","text":"1"},{"type":"text","text":"2"}]));
    assert_eq!(
        sent["messages"][1]["content"],
        json!([{"type":"text","text":"I should read the file."},{"type":"text","text":"Let me look."}])
    );
}

#[test]
fn mistral_wants_short_ids() {
    let mistral = vendor("mistral", "https://api.mistral.ai/v1");
    let foreign = assistant(json!([{"type":"toolCall","id":"call_abc","name":"read","arguments":{}},
        {"type":"toolCall","id":"Abc123Xyz","name":"read","arguments":{}}]));
    let (url, _, sent) = request(&Completions, &call(mistral, vec![user("q"), Message::Assistant(foreign)]));
    assert_eq!(url, "https://api.mistral.ai/v1/chat/completions");
    let ids: Vec<_> =
        sent["messages"][1]["tool_calls"].as_array().expect("calls").iter().map(|call| call["id"].as_str()).collect();
    assert_eq!(ids[0].map(str::len), Some(9));
    assert_eq!(ids[1], Some("Abc123Xyz"));
}

#[test]
fn routing_and_sampling_parameters() {
    let mut model = with_compat(
        json!({"vllmPriority":3,"openRouterRouting":{"only":["a"]},"vercelGatewayRouting":{"order":["b"],"x":1}}),
    );
    model.sampling_params = json!({"temperature":0.1,"max_tokens":5}).as_object().cloned();
    let sent = body(&call(model, vec![user("hi")]));
    assert_eq!(sent["priority"], 3);
    assert_eq!(sent["provider"], json!({"only":["a"]}));
    assert_eq!(sent["providerOptions"], json!({"gateway":{"order":["b"]}}));
    assert_eq!((&sent["temperature"], &sent["max_tokens"]), (&json!(0.1), &json!(5)));
}

#[test]
fn consecutive_requests_share_their_beginning() {
    let text = |more: Vec<Message>| {
        let mut call = second_turn(local(), answer(), "call_abc");
        call.messages.extend(more.into_iter().map(Arc::new));
        call.tools = Arc::from([read_tool()]);
        body(&call).to_string()
    };
    let first = text(vec![]);
    let second = text(vec![own(&local(), json!([{"type":"text","text":"done"}])), user("thanks")]);
    let shared = &first[..first.find("],\"stream\"").expect("there")];
    assert!(second.starts_with(shared), "{first}\n{second}");
}

#[test]
fn errors_are_quoted_with_their_status() {
    let text = |status, body: &str| Completions.error_text(&model(), status, body);
    assert_eq!(text(529, r#"{"error":{"message":"busy"}}"#), r#"529: {"message":"busy"}"#);
    assert_eq!(
        text(502, r#"{"error":{"message":"m","metadata":{"raw":"upstream said no"}}}"#),
        r#"502: {"message":"m","metadata":{"raw":"upstream said no"}}"#
    );
    assert_eq!(
        text(502, r#"{"error":{"message":"m","metadata":{"raw":"say \"no\""}}}"#),
        "502: {\"message\":\"m\",\"metadata\":{\"raw\":\"say \\\"no\\\"\"}}\nsay \"no\""
    );
    assert_eq!(text(502, "Bad gateway"), "502 Bad gateway");
    assert_eq!(text(422, r#"{"detail":"x"}"#), r#"422 {"detail":"x"}"#);
    assert_eq!(text(400, ""), "400 status code (no body)");
}
