//! Every name that leaves pith, in one place: the GenAI conventions are still in development and change them.

/// The revision of the conventions that these names follow. Those of GenAI name the one they build on.
pub const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.42.0";

/// The name of the instrumentation, the service and the agent.
pub const PITH: &str = "pith";

pub const SERVICE_VERSION: &str = "service.version";

// operations
pub const CHAT: &str = "chat";
pub const EXECUTE_TOOL: &str = "execute_tool";
pub const INVOKE_AGENT: &str = "invoke_agent";
pub const COMPACTION: &str = "pith.compaction";
pub const CHECKPOINT: &str = "pith.checkpoint";

// attributes of the conventions
pub const AGENT_NAME: &str = "gen_ai.agent.name";
pub const AGENT_VERSION: &str = "gen_ai.agent.version";
pub const CONVERSATION_ID: &str = "gen_ai.conversation.id";
pub const ERROR_TYPE: &str = "error.type";
pub const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub const OPERATION_NAME: &str = "gen_ai.operation.name";
pub const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub const PROVIDER_NAME: &str = "gen_ai.provider.name";
pub const REQUEST_MAX_TOKENS: &str = "gen_ai.request.max_tokens";
pub const REQUEST_MODEL: &str = "gen_ai.request.model";
pub const REQUEST_STREAM: &str = "gen_ai.request.stream";
pub const RESPONSE_FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub const RESPONSE_ID: &str = "gen_ai.response.id";
pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub const SERVER_ADDRESS: &str = "server.address";
pub const SERVER_PORT: &str = "server.port";
pub const SYSTEM_INSTRUCTIONS: &str = "gen_ai.system_instructions";
pub const TOKEN_TYPE: &str = "gen_ai.token.type";
pub const TOOL_CALL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
pub const TOOL_CALL_RESULT: &str = "gen_ai.tool.call.result";
pub const TOOL_NAME: &str = "gen_ai.tool.name";
pub const TOOL_TYPE: &str = "gen_ai.tool.type";
pub const USAGE_CACHE_CREATION: &str = "gen_ai.usage.cache_creation.input_tokens";
pub const USAGE_CACHE_READ: &str = "gen_ai.usage.cache_read.input_tokens";
pub const USAGE_INPUT: &str = "gen_ai.usage.input_tokens";
pub const USAGE_OUTPUT: &str = "gen_ai.usage.output_tokens";
pub const USAGE_REASONING: &str = "gen_ai.usage.reasoning.output_tokens";

// attributes of pith
pub const CHECKPOINT_FILES: &str = "pith.checkpoint.files";
pub const CHECKPOINT_IS_COMPLETE: &str = "pith.checkpoint.complete";
pub const COMPACTION_REASON: &str = "pith.compaction.reason";
pub const COMPACTION_TOKENS_AFTER: &str = "pith.compaction.tokens_after";
pub const COMPACTION_TOKENS_BEFORE: &str = "pith.compaction.tokens_before";
pub const DENIED_KIND: &str = "pith.sandbox.kind";
pub const LIMIT_NAME: &str = "pith.limit.name";
pub const PERMISSION_DECISION: &str = "pith.permission.decision";
pub const PERMISSION_BY: &str = "pith.permission.by";
pub const PERMISSION_WAIT: &str = "pith.permission.wait";
pub const SANDBOX_PROFILE: &str = "pith.sandbox.profile";

// metrics
pub const CLIENT_OPERATION_DURATION: &str = "gen_ai.client.operation.duration";
pub const CLIENT_TIME_TO_FIRST_CHUNK: &str = "gen_ai.client.operation.time_to_first_chunk";
pub const CLIENT_TOKEN_USAGE: &str = "gen_ai.client.token.usage";
pub const EXECUTE_TOOL_DURATION: &str = "gen_ai.execute_tool.duration";
pub const INVOKE_AGENT_DURATION: &str = "gen_ai.invoke_agent.duration";
pub const LIMIT_REACHED: &str = "pith.limit.reached";
pub const SANDBOX_DENIED: &str = "pith.sandbox.denied";

/// Bounds of the histogram of tokens.
pub const TOKEN_BOUNDS: [f64; 14] = [
    1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0, 16777216.0,
    67108864.0,
];

/// Bounds of the histograms of requests and tool calls, in seconds.
pub const OPERATION_BOUNDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// Bounds of the histogram of invocations, in seconds.
pub const AGENT_BOUNDS: [f64; 13] = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6];

// values of `error.type` beside the kinds of failed answers
pub const ABANDONED: &str = "abandoned";
pub const ABORTED: &str = "aborted";
pub const COMPACTION_FAILED: &str = "compaction_failed";
pub const NOT_PERMITTED: &str = "not_permitted";
pub const OTHER: &str = "_OTHER";
pub const TOOL_ERROR: &str = "tool_error";
pub const UNFIT_CALL: &str = "unfit_call";
