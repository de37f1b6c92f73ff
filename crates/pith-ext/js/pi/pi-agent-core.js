// @earendil-works/pi-agent-core: an agent to run beside the session, and helpers for messages.

const transcript = require("internal/transcript");
const truncate = require("internal/truncate");
const { fill } = require("internal/stubs");

Object.assign(exports, truncate, require("internal/harness"));
const lazy = (module, ...names) => {
  for (const name of names) Object.defineProperty(exports, name, { get: () => require(module)[name], enumerable: true, configurable: true });
};
lazy("internal/agent", "Agent");
lazy("internal/agent-loop", "agentLoop", "agentLoopContinue", "runAgentLoop", "runAgentLoopContinue", "setDefaultStreamFn");
lazy("internal/compaction", "DEFAULT_COMPACTION_SETTINGS", "compact", "collectEntriesForBranchSummary", "estimateContextTokens", "findCutPoint", "findTurnStartIndex", "generateBranchSummary", "generateSummary", "generateSummaryWithUsage", "prepareBranchEntries", "prepareCompaction", "shouldCompact");
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
  getLastAssistantUsage: lastUsage,
  parseCommandArgs,
  substituteArgs: (content, args) => content.replace(/\$(\d+)/g, (_, index) => args[Number(index) - 1] ?? "").replace(/\$(?:@|ARGUMENTS)/g, args.join(" ")),
  sanitizeBinaryOutput: (output) => [...String(output)].filter((c) => c === "\n" || c === "\t" || c === "\r" || c >= " ").join(""),
  ok: (value) => ({ ok: true, value }),
  err: (error) => ({ ok: false, error }),
  getOrThrow: (result) => {
    if (result.ok) return result.value;
    throw result.error;
  },
  getFileSystemResultOrThrow: (result) => exports.getOrThrow(result),
  formatPromptTemplateInvocation: (template, args = []) => exports.substituteArgs(template.content, args),
  formatSkillInvocation: (skill, more) => {
    const content = skill.content ?? require("pi-coding-agent").stripFrontmatter(require("fs").readFileSync(skill.filePath, "utf8"));
    const block = `<skill name="${skill.name}" location="${skill.filePath}">\nReferences are relative to ${require("path").dirname(skill.filePath)}.\n\n${content}\n</skill>`;
    return more ? `${block}\n\n${more}` : block;
  },
  formatSkillsForSystemPrompt: (skills) => require("internal/resources").formatSkillsForPrompt(skills).trim(),
  buildSessionContext: (entries) => require("pi-coding-agent").buildSessionContext(entries),
  JSONL_STORAGE_VERSION: 1,
  createSessionId: () => host.uuid7(),
  createTimestamp: () => new Date().toISOString(),
  getOrUndefined: (result) => (result.ok ? result.value : undefined),
  toError: (error) => (error instanceof Error ? error : new Error(text(error))),
});

const tools = () => require("internal/native-tools");
for (const name of ["createBashTool", "createReadTool", "createWriteTool", "createEditTool"]) exports[name] = (...args) => tools()[name](...args);

fill(
  exports,
  ["AgentHarness", "streamProxy", "Session", "JsonlSessionRepo", "MemorySessionRepo", "InMemorySessionRepo", "StorageBackedSession", "executeShellWithCapture", "loadPromptTemplates", "loadSkills", "loadSourcedPromptTemplates", "loadSourcedSkills", "getEntriesToFork", "toSession", "createReadableStreamFromAssistantMessageEvents"],
  "is not available in pith: extensions run agents with Agent or createAgentSession",
);
// The storage of the harness.
fill(
  exports,
  ["appendList", "branchTip", "branchTipInventoryPrefix", "commitWrite", "createForkSnapshot", "deleteList", "deleteValue", "entryLabel", "insertEntry", "insertUsage", "laneConfig", "laneState", "list", "operationMeta", "operationPreparation", "operationPreparationPrefix", "operationResult", "operationScopeOf", "operationState", "operationToolArgs", "operationToolArgsPrefix", "operationToolMemo", "operationToolMemoPrefix", "pendingAssistantFrames", "pendingEntry", "pendingToolOutput", "pendingToolOutputPrefix", "prepareStorageCommit", "projectForkCurrentStateWrite", "reduceLaneSnapshot", "resolveListReadOptions", "sessionName", "setValue", "validateCommittedWrites", "value"],
  "is not available in pith: session files are those of SessionManager",
);
