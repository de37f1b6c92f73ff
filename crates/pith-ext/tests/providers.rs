//! Models that extensions implement.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::Arc;

use pith_agent::ModelClient;
use pith_ext::{ExtensionModels, ProviderAction};
use pith_protocol::{AssistantEvent, Block, LlmCall, Message, Model, StopReason, ThinkingLevel, ToolSpec};
use serde_json::json;
use support::Harness;
use tokio_util::sync::CancellationToken;

fn call(provider: &str) -> LlmCall {
    let tool =
        ToolSpec { name: "t".into(), description: "d".into(), parameters: Arc::new(json!({})), prefer_strict: false };
    let user = serde_json::from_value::<Message>(json!({ "role": "user", "content": "hi", "timestamp": 1 })).unwrap();
    LlmCall {
        model: Arc::new(Model { id: "m1".into(), provider: provider.into(), api: "mine".into(), ..Model::default() }),
        system_prompt: "be good".into(),
        messages: vec![Arc::new(user)],
        tools: [tool].into(),
        thinking: ThinkingLevel::High,
        search_tool: None,
        max_tokens: Some(99),
        session_id: None,
        cache: Default::default(),
        block_images: false,
        hooks: None,
    }
}

async fn events(harness: &Harness, provider: &str, cancel: &CancellationToken) -> Vec<AssistantEvent> {
    let mut stream = ExtensionModels::new(harness.handle.clone()).stream(call(provider), cancel.clone());
    let mut events = Vec::new();
    while let Some(event) = stream.recv().await {
        events.push(event);
    }
    events
}

fn end(events: &[AssistantEvent]) -> &pith_protocol::AssistantMessage {
    match events.last() {
        Some(AssistantEvent::End(message)) => message,
        other => panic!("no end: {other:?}"),
    }
}

const PROVIDERS: &str = r#"
    import { createAssistantMessageEventStream, calculateCost, getCurrentSystemPrompt, getCurrentTools } from "@earendil-works/pi-ai";
    export default (pi) => {
        const provider = (name, streamSimple) => pi.registerProvider(name, { baseUrl: "http://x", api: "mine", models: [{ id: "m1", name: "M1" }], streamSimple });
        provider("good", (model, context, options) => {
            const stream = createAssistantMessageEventStream();
            (async () => {
                const output = { role: "assistant", content: [], api: model.api, provider: model.provider, model: model.id, usage: { input: 1, output: 2, cacheRead: 0, cacheWrite: 0, totalTokens: 3, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } }, stopReason: "stop", timestamp: 5 };
                stream.push({ type: "start", partial: output });
                const payload = await options.onPayload({ prompt: getCurrentSystemPrompt(context.messages), tools: getCurrentTools(context.messages).length, both: context.systemPrompt + context.tools.length, options: [options.reasoning, options.maxTokens] }, model);
                await options.onResponse({ status: 200, headers: {} }, model);
                output.content.push({ type: "text", text: "" });
                stream.push({ type: "text_start", contentIndex: 0, partial: output });
                for (const delta of ["one ", JSON.stringify(payload)]) { output.content[0].text += delta; stream.push({ type: "text_delta", contentIndex: 0, delta, partial: output }); }
                stream.push({ type: "text_end", contentIndex: 0, content: output.content[0].text, partial: output });
                output.content.push({ type: "toolCall", id: "c1", name: "t", arguments: { x: 1 } });
                stream.push({ type: "toolcall_start", contentIndex: 1, partial: output });
                stream.push({ type: "toolcall_end", contentIndex: 1, toolCall: output.content[1], partial: output });
                output.stopReason = "toolUse";
                stream.push({ type: "done", reason: "toolUse", message: output });
                stream.end();
            })();
            return stream;
        });
        provider("throws", () => { throw new Error("no stream"); });
        provider("silent", () => { const stream = createAssistantMessageEventStream(); stream.end(); return stream; });
        provider("fails", () => { const stream = createAssistantMessageEventStream(); stream.push({ type: "error", reason: "error", error: { role: "assistant", content: [], errorMessage: "429 slow down" } }); return stream; });
        provider("waits", (model, context, options) => { const stream = createAssistantMessageEventStream(); options.signal.addEventListener("abort", () => stream.push({ type: "error", reason: "aborted", error: { role: "assistant", content: [] } })); return stream; });
        pi.on("before_provider_request", (event) => ({ ...event.payload, patched: true }));
        pi.registerProvider("login", { oauth: { name: "Log in", login: async (callbacks) => ({ access: await callbacks.onPrompt({ message: "Code?" }) }), refreshToken: async (c) => ({ ...c, fresh: true }), getApiKey: (c) => c.access } });
    };"#;

#[tokio::test]
async fn a_streaming_provider_answers_like_any_other() {
    let harness = Harness::start();
    harness.run(&[("p.ts", PROVIDERS)]).await;
    harness.logged("register_provider good streams=true").await;
    let events = events(&harness, "good", &CancellationToken::new()).await;
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| match event {
            AssistantEvent::Start(_) => "start",
            AssistantEvent::Meta { .. } => "meta",
            AssistantEvent::TextStart { .. } => "text_start",
            AssistantEvent::TextDelta { .. } => "text_delta",
            AssistantEvent::TextEnd { .. } => "text_end",
            AssistantEvent::ToolCallStart { .. } => "tool_start",
            AssistantEvent::ToolCallEnd { .. } => "tool_end",
            AssistantEvent::End(_) => "end",
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        kinds,
        ["start", "meta", "text_start", "text_delta", "text_delta", "text_end", "tool_start", "tool_end", "end"]
    );
    let message = end(&events);
    assert_eq!(message.stop_reason, StopReason::ToolUse);
    assert_eq!(message.usage.total_tokens, 3);
    let Block::Text(text) = &message.content[0] else { panic!("text") };
    assert_eq!(
        text.text,
        r#"one {"prompt":"be good","tools":1,"both":"be good1","options":["high",99],"patched":true}"#
    );
}

#[tokio::test]
async fn a_failing_provider_ends_its_stream_with_the_reason() {
    let harness = Harness::start();
    harness.run(&[("p.ts", PROVIDERS)]).await;
    for (provider, expected) in [
        ("throws", "no stream"),
        ("silent", "The provider's stream ended without a result"),
        ("fails", "429 slow down"),
        ("unknown", "No extension provides unknown/m1"),
    ] {
        let events = events(&harness, provider, &CancellationToken::new()).await;
        let message = end(&events);
        assert_eq!(message.stop_reason, StopReason::Error, "{provider}");
        assert_eq!(message.error_message.as_deref(), Some(expected), "{provider}");
    }
}

#[tokio::test]
async fn an_aborted_call_ends_as_aborted() {
    let harness = Harness::start();
    harness.run(&[("p.ts", PROVIDERS)]).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let events = events(&harness, "waits", &cancel).await;
    assert_eq!(end(&events).stop_reason, StopReason::Aborted);
}

#[tokio::test]
async fn a_provider_logs_in_through_dialogs() {
    let harness = Harness::start();
    harness.run(&[("p.ts", PROVIDERS)]).await;
    harness.answer(pith_protocol::host::UiAnswer::Value("secret".to_owned()));
    let credentials = harness.handle.provider_action("login", ProviderAction::Login).await.unwrap();
    assert_eq!(credentials, json!({ "access": "secret" }));
    let key =
        harness.handle.provider_action("login", ProviderAction::ApiKey { credentials: credentials.clone() }).await;
    assert_eq!(key, Ok(json!("secret")));
    let fresh = harness.handle.provider_action("login", ProviderAction::RefreshToken { credentials }).await.unwrap();
    assert_eq!(fresh["fresh"], true);
    assert!(harness.handle.provider_action("nobody", ProviderAction::Login).await.is_err());
}
