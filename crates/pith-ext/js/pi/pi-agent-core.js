// @earendil-works/pi-agent-core: helpers for messages; the agent itself is native.

const transcript = require("internal/transcript");
const truncate = require("internal/truncate");
const { fill } = require("internal/stubs");

Object.assign(exports, truncate);
for (const name of ["COMPACTION_SUMMARY_PREFIX", "COMPACTION_SUMMARY_SUFFIX", "BRANCH_SUMMARY_PREFIX", "BRANCH_SUMMARY_SUFFIX", "bashExecutionToText", "convertToLlm", "serializeConversation", "estimateTokens", "calculateContextTokens"]) exports[name] = transcript[name];

const at = (timestamp) => (typeof timestamp === "number" ? timestamp : Date.parse(timestamp) || Date.now());
const text = (error) => require("internal/owners").text(error);

// Splits a command line as prompt templates do: quotes group, nothing is escaped.
const parseCommandArgs = (line) => [...String(line).matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, double, single, bare]) => double ?? single ?? bare);

const lastUsage = (entries) => {
  const found = [...entries].reverse().find((entry) => entry.type === "message" && entry.message.role === "assistant" && !["error", "aborted"].includes(entry.message.stopReason) && entry.message.usage);
  return found?.message.usage;
};

Object.assign(exports, {
  uuidv7: () => host.uuid7(),
  createCustomMessage: (customType, content, display, details, timestamp) => ({ role: "custom", customType, content, display, details, timestamp: at(timestamp) }),
  createBranchSummaryMessage: (summary, fromId, timestamp) => ({ role: "branchSummary", summary, fromId, timestamp: at(timestamp) }),
  createCompactionSummaryMessage: (summary, tokensBefore, timestamp) => ({ role: "compactionSummary", summary, tokensBefore, timestamp: at(timestamp) }),
  estimateContextTokens: (messages) => {
    const usage = lastUsage(messages.map((message) => ({ type: "message", message })));
    const tokens = usage ? transcript.calculateContextTokens(usage) : messages.reduce((sum, message) => sum + transcript.estimateTokens(message), 0);
    return { tokens, usageTokens: usage ? tokens : 0, trailingTokens: 0, lastUsageIndex: null };
  },
  getLastAssistantUsage: lastUsage,
  DEFAULT_COMPACTION_SETTINGS: { enabled: true, reserveTokens: 16384, keepRecentTokens: 20000 },
  shouldCompact: (tokens, contextWindow, settings) => settings.enabled && tokens > contextWindow - settings.reserveTokens,
  parseCommandArgs,
  substituteArgs: (content, args) => content.replace(/\$(\d+)/g, (_, index) => args[Number(index) - 1] ?? "").replace(/\$(?:@|ARGUMENTS)/g, args.join(" ")),
  sanitizeBinaryOutput: (output) => [...String(output)].filter((c) => c === "\n" || c === "\t" || c === "\r" || c >= " ").join(""),
  ok: (value) => ({ ok: true, value }),
  err: (error) => ({ ok: false, error }),
  getOrThrow: (result) => {
    if (result.ok) return result.value;
    throw result.error;
  },
  getOrUndefined: (result) => (result.ok ? result.value : undefined),
  toError: (error) => (error instanceof Error ? error : new Error(text(error))),
});

const tools = () => require("internal/native-tools");
for (const name of ["createBashTool", "createReadTool", "createWriteTool", "createEditTool"]) exports[name] = (...args) => tools()[name](...args);

fill(
  exports,
  ["Agent", "AgentHarness", "AgentHarnessError", "agentLoop", "agentLoopContinue", "runAgentLoop", "runAgentLoopContinue", "streamProxy", "setDefaultStreamFn", "Session", "SessionError", "JsonlSessionRepo", "MemorySessionRepo", "InMemorySessionRepo", "StorageBackedSession", "BranchSummaryError", "CompactionError", "ExecutionError", "FileError", "compact", "prepareCompaction", "findCutPoint", "findTurnStartIndex", "generateSummary", "generateSummaryWithUsage", "generateBranchSummary", "collectEntriesForBranchSummary", "prepareBranchEntries", "executeShellWithCapture", "loadPromptTemplates", "loadSkills", "loadSourcedPromptTemplates", "loadSourcedSkills", "formatPromptTemplateInvocation", "formatSkillInvocation", "formatSkillsForSystemPrompt", "buildSessionContext", "createSessionId", "createTimestamp"],
  "is not available in pith",
);
