//! What spans and measurements look like, as an exporter gets them.

use std::collections::HashMap;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry::trace::{SpanId, SpanKind, Status};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData, SpanExporter};
use pith_agent::link::Call;
use pith_agent::trace::{CompactionFailure, ToolEnd, ToolStart, WorkStart};
use pith_agent::{ToolOutput, Tracer};
use pith_protocol::audit::{PermissionBy, PermissionDecision};
use pith_protocol::{
    AssistantMessage, CacheRetention, CompactionReason, ErrorKind, Failure, LlmCall, Message, Model, SandboxProfile,
    StopReason, ThinkingLevel, Usage, UserMessage,
};
use serde_json::{Map, json};

use crate::exporter::Telemetry;
use crate::{HostPlace, names};

struct Bench {
    tracer: Arc<dyn Tracer>,
    traces: SdkTracerProvider,
    metrics: SdkMeterProvider,
    spans: InMemorySpanExporter,
    measured: InMemoryMetricExporter,
}

impl Bench {
    fn new(has_content: bool) -> Self {
        let (spans, measured) = (InMemorySpanExporter::default(), InMemoryMetricExporter::default());
        let traces = SdkTracerProvider::builder().with_simple_exporter(spans.clone()).build();
        let metrics = SdkMeterProvider::builder().with_periodic_exporter(measured.clone()).build();
        let telemetry = Telemetry::with(traces.clone(), metrics.clone(), has_content, "1.2.3");
        let redact = Arc::new(|text: &str| text.replace("secret-key", "[redacted]"));
        Bench { tracer: telemetry.tracer(HostPlace::none(), redact), traces, metrics, spans, measured }
    }

    fn spans(&self) -> HashMap<String, SpanData> {
        let spans = self.spans.get_finished_spans().expect("spans");
        spans.into_iter().map(|span| (span.name.to_string(), span)).collect()
    }

    fn measured(&self) -> Vec<String> {
        self.metrics.force_flush().expect("a flush");
        let all = self.measured.get_finished_metrics().expect("metrics");
        let scopes = all.iter().flat_map(|resource| resource.scope_metrics());
        let mut names: Vec<String> =
            scopes.flat_map(|scope| scope.metrics().map(|metric| metric.name().to_owned())).collect();
        names.sort();
        names.dedup();
        names
    }
}

fn attribute(span: &SpanData, name: &str) -> Option<String> {
    span.attributes.iter().find(|pair| pair.key.as_str() == name).map(|pair| pair.value.to_string())
}

fn model() -> Model {
    Model {
        id: "claude-x".to_owned(),
        provider: "amazon-bedrock".to_owned(),
        base_url: "https://models.test/v1".to_owned(),
        max_tokens: 64,
        ..Model::default()
    }
}

fn call(text: &str) -> LlmCall {
    LlmCall {
        model: Arc::new(model()),
        system_prompt: "Be brief.".into(),
        messages: vec![Arc::new(Message::User(UserMessage::new(text.to_owned(), Vec::new(), 0)))],
        tools: Arc::new([]),
        thinking: ThinkingLevel::Off,
        search_tool: None,
        max_tokens: None,
        session_id: None,
        cache: CacheRetention::None,
        block_images: false,
        hooks: None,
    }
}

fn answer() -> AssistantMessage {
    AssistantMessage {
        model: "claude-x".to_owned(),
        response_model: Some("claude-x-1".to_owned()),
        response_id: Some("r1".to_owned()),
        usage: Usage { input: 1, cache_read: 2, cache_write: 4, output: 8, reasoning: Some(3), ..Usage::default() },
        ..AssistantMessage::default()
    }
}

fn tool_call() -> Call {
    let arguments = Map::from_iter([("command".to_owned(), json!("echo secret-key"))]);
    Call { id: "t1".into(), name: "bash".to_owned(), arguments }
}

fn start(call: &Call) -> ToolStart<'_> {
    ToolStart { call, is_remote: false, sandbox: SandboxProfile::ReadOnly }
}

#[test]
fn work_has_its_calls_as_parts_and_their_sums() {
    let bench = Bench::new(false);
    let model = model();
    let work = bench.tracer.work(WorkStart { session: "s1", model: Some(&model), traceparent: None });
    for _ in 0..2 {
        let mut chat = work.chat(&call("hi"));
        chat.first_chunk();
        chat.end(&answer());
    }
    let call = tool_call();
    let mut tool = work.tool(start(&call));
    let context = tool.context();
    tool.decided(PermissionDecision::Allow, PermissionBy::User, Duration::from_millis(1500));
    tool.end(ToolEnd::Ran, &ToolOutput::text("done"));
    work.compaction(CompactionReason::Threshold).end(Ok((100, 10)));
    work.checkpoint().end(Some(7));
    work.limit_reached("turns");
    work.denied("file");
    work.end(false, Some(&answer()));
    let spans = bench.spans();
    let agent = &spans["invoke_agent pith"];
    assert_eq!((agent.span_kind.clone(), agent.parent_span_id), (SpanKind::Internal, SpanId::INVALID));
    let of_agent = [
        (names::OPERATION_NAME, "invoke_agent"),
        (names::AGENT_NAME, "pith"),
        (names::AGENT_VERSION, "1.2.3"),
        (names::CONVERSATION_ID, "s1"),
        (names::PROVIDER_NAME, "aws.bedrock"),
        (names::REQUEST_MODEL, "claude-x"),
        (names::USAGE_INPUT, "14"),
        (names::USAGE_OUTPUT, "16"),
        (names::USAGE_CACHE_READ, "4"),
        (names::USAGE_CACHE_CREATION, "8"),
    ];
    let of_chat = [
        (names::OPERATION_NAME, "chat"),
        (names::PROVIDER_NAME, "aws.bedrock"),
        (names::REQUEST_MODEL, "claude-x"),
        (names::REQUEST_MAX_TOKENS, "64"),
        (names::REQUEST_STREAM, "true"),
        (names::RESPONSE_MODEL, "claude-x-1"),
        (names::RESPONSE_ID, "r1"),
        (names::RESPONSE_FINISH_REASONS, "[\"stop\"]"),
        (names::USAGE_INPUT, "7"),
        (names::USAGE_REASONING, "3"),
        (names::SERVER_ADDRESS, "models.test"),
        (names::SERVER_PORT, "443"),
    ];
    let of_tool = [
        (names::OPERATION_NAME, "execute_tool"),
        (names::TOOL_NAME, "bash"),
        (names::TOOL_CALL_ID, "t1"),
        (names::TOOL_TYPE, "function"),
        (names::SANDBOX_PROFILE, "read-only"),
        (names::PERMISSION_DECISION, "allow"),
        (names::PERMISSION_BY, "user"),
        (names::PERMISSION_WAIT, "1.5"),
    ];
    let of_compaction = [
        (names::COMPACTION_REASON, "threshold"),
        (names::COMPACTION_TOKENS_BEFORE, "100"),
        (names::COMPACTION_TOKENS_AFTER, "10"),
    ];
    let of_checkpoint = [(names::CHECKPOINT_FILES, "7"), (names::CHECKPOINT_IS_COMPLETE, "true")];
    let expected: [(&str, &[(&str, &str)]); 5] = [
        ("invoke_agent pith", &of_agent),
        ("chat claude-x", &of_chat),
        ("execute_tool bash", &of_tool),
        ("pith.compaction", &of_compaction),
        ("pith.checkpoint", &of_checkpoint),
    ];
    for (name, attributes) in expected {
        let span = &spans[name];
        for (key, value) in attributes {
            assert_eq!(attribute(span, key).as_deref(), Some(*value), "{name}: {key}");
        }
        assert_eq!(span.status, Status::Unset, "{name}");
        assert_eq!(span.span_context.trace_id(), agent.span_context.trace_id(), "{name}");
        if name != "invoke_agent pith" {
            assert_eq!(span.parent_span_id, agent.span_context.span_id(), "{name}");
        }
        let has_content = span.attributes.iter().any(|pair| {
            let key = pair.key.as_str();
            key.contains("messages") || key.contains("instructions") || key.contains("call.arguments")
        });
        assert!(!has_content, "{name}");
    }
    assert_eq!(spans["chat claude-x"].span_kind, SpanKind::Client);
    let tool = &spans["execute_tool bash"].span_context;
    assert_eq!(context.traceparent, format!("00-{}-{}-01", tool.trace_id(), tool.span_id()));
    assert_eq!(
        bench.measured(),
        [
            names::CLIENT_OPERATION_DURATION,
            names::CLIENT_TIME_TO_FIRST_CHUNK,
            names::CLIENT_TOKEN_USAGE,
            names::EXECUTE_TOOL_DURATION,
            names::INVOKE_AGENT_DURATION,
            names::LIMIT_REACHED,
            names::SANDBOX_DENIED,
        ]
    );
    drop(bench.traces);
}

#[test]
fn what_failed_says_how() {
    let error_of = |act: fn(&dyn Tracer)| {
        let bench = Bench::new(false);
        act(&*bench.tracer);
        let span = bench.spans().into_values().next().expect("a span");
        assert_eq!(span.status, Status::error(""));
        attribute(&span, names::ERROR_TYPE).expect("an error")
    };
    fn refused() -> AssistantMessage {
        let failure = Failure {
            kind: ErrorKind::RateLimit,
            status: None,
            retry_after_ms: None,
            request_id: None,
            should_retry: None,
        };
        AssistantMessage { stop_reason: StopReason::Error, error: Some(failure), ..AssistantMessage::default() }
    }
    fn work(tracer: &dyn Tracer) -> Arc<dyn pith_agent::trace::WorkSpan> {
        tracer.work(WorkStart { session: "s", model: None, traceparent: None })
    }
    assert_eq!(error_of(|tracer| tracer.chat(&call("hi")).end(&refused())), "rate_limit");
    assert_eq!(error_of(|tracer| drop(tracer.chat(&call("hi")))), "abandoned");
    assert_eq!(error_of(|tracer| work(tracer).end(true, None)), "aborted");
    assert_eq!(error_of(|tracer| work(tracer).end(false, Some(&refused()))), "rate_limit");
    assert_eq!(
        error_of(|tracer| tracer.compaction(CompactionReason::Manual).end(Err(CompactionFailure::Failed))),
        "compaction_failed"
    );
    for (end, expected) in [
        (ToolEnd::Ran, "tool_error"),
        (ToolEnd::Stopped, "aborted"),
        (ToolEnd::Refused, "not_permitted"),
        (ToolEnd::Unfit, "unfit_call"),
    ] {
        let bench = Bench::new(false);
        let call = tool_call();
        let work = work(&*bench.tracer);
        work.tool(start(&call)).end(end, &ToolOutput::error("no"));
        assert_eq!(attribute(&bench.spans()["execute_tool bash"], names::ERROR_TYPE).as_deref(), Some(expected));
    }
}

#[test]
fn content_is_without_secrets_and_short() {
    let bench = Bench::new(true);
    let work = bench.tracer.work(WorkStart { session: "s", model: None, traceparent: None });
    work.chat(&call(&format!("secret-key {}", "long ".repeat(4000)))).end(&answer());
    let call = tool_call();
    work.tool(start(&call)).end(ToolEnd::Ran, &ToolOutput::text("secret-key"));
    work.end(false, None);
    let spans = bench.spans();
    let (chat, tool) = (&spans["chat claude-x"], &spans["execute_tool bash"]);
    let input = attribute(chat, names::INPUT_MESSAGES).expect("messages");
    assert!(input.len() <= 8 << 10 && input.contains("[redacted] long"), "{} bytes", input.len());
    assert!(attribute(chat, names::SYSTEM_INSTRUCTIONS).is_some_and(|text| text.contains("Be brief.")));
    assert!(attribute(chat, names::OUTPUT_MESSAGES).is_some_and(|text| text.contains("\"finish_reason\":\"stop\"")));
    let arguments = attribute(tool, names::TOOL_CALL_ARGUMENTS);
    assert_eq!(arguments.as_deref(), Some("{\"command\":\"echo [redacted]\"}"));
    assert_eq!(attribute(tool, names::TOOL_CALL_RESULT).as_deref(), Some("[redacted]"));
}

/// An exporter that gets nowhere until it is let go.
#[derive(Debug)]
struct Stuck {
    go: Mutex<mpsc::Receiver<()>>,
    n_exported: Arc<Mutex<usize>>,
}

impl SpanExporter for Stuck {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        // Closed when the test lets it go.
        let _ = self.go.lock().expect("no panic").recv();
        *self.n_exported.lock().expect("no panic") += batch.len();
        Ok(())
    }
}

#[test]
fn spans_that_nobody_takes_do_not_accumulate() {
    let (hold, go) = mpsc::channel();
    let n_exported = Arc::<Mutex<usize>>::default();
    let exporter = Stuck { go: Mutex::new(go), n_exported: n_exported.clone() };
    let traces = SdkTracerProvider::builder().with_batch_exporter(exporter).build();
    let metrics = SdkMeterProvider::builder().build();
    let telemetry = Telemetry::with(traces.clone(), metrics, false, "1.2.3");
    let tracer = telemetry.tracer(HostPlace::none(), Arc::new(str::to_owned));
    let work = tracer.work(WorkStart { session: "s", model: None, traceparent: None });
    let call = tool_call();
    for _ in 0..10_000 {
        work.tool(start(&call)).end(ToolEnd::Ran, &ToolOutput::text("done"));
    }
    // It takes what is there, a batch of 512 and the queue, and nothing more.
    drop(hold);
    traces.shutdown_with_timeout(Duration::from_secs(60)).expect("an end");
    let n_exported = *n_exported.lock().expect("no panic");
    assert!((1..=2048 + 512).contains(&n_exported), "{n_exported}");
}
