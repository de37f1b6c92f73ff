// Where to cut a conversation, and the summaries that take the place of what is cut.

const session = require("internal/session");
const transcript = require("internal/transcript");

const SETTINGS = { enabled: true, reserveTokens: 16384, keepRecentTokens: 20000 };

const STARTS = ["user", "bashExecution", "custom", "branchSummary", "compactionSummary"];
const messagesOf = (entry) => (entry.type === "compaction" ? [] : session.toMessages([entry]));
const tokensOf = (messages) => messages.reduce((sum, message) => sum + transcript.estimateTokens(message), 0);
const startsTurn = (entry) => messagesOf(entry).some((message) => STARTS.includes(message.role));

// The entry with which the turn of another one begins, -1 if that is before `startIndex`.
function findTurnStartIndex(entries, entryIndex, startIndex) {
  for (let at = entryIndex; at >= startIndex; at--) if (startsTurn(entries[at])) return at;
  return -1;
}

// The first entry to keep. A tool result is never the first: it would lack its call.
function findCutPoint(entries, startIndex, endIndex, keepRecentTokens) {
  const places = [];
  for (let at = startIndex; at < endIndex; at++) if (messagesOf(entries[at]).some(({ role }) => role === "assistant" || STARTS.includes(role))) places.push(at);
  if (!places.length) return { firstKeptEntryIndex: startIndex, turnStartIndex: -1, isSplitTurn: false };
  let cut = places[0];
  let kept = 0;
  for (let at = endIndex - 1; at >= startIndex; at--) {
    const tokens = tokensOf(messagesOf(entries[at]));
    kept += tokens;
    if (tokens && kept >= keepRecentTokens) {
      cut = places.find((place) => place >= at) ?? places.at(-1);
      break;
    }
  }
  // Entries that are no messages stay with the one that follows them.
  while (cut > startIndex && entries[cut - 1].type !== "compaction" && !messagesOf(entries[cut - 1]).length) cut--;
  const turnStartIndex = startsTurn(entries[cut]) ? -1 : findTurnStartIndex(entries, cut, startIndex);
  return { firstKeptEntryIndex: cut, turnStartIndex, isSplitTurn: turnStartIndex >= 0 };
}

const newFileOps = () => ({ read: new Set(), written: new Set(), edited: new Set() });

// The files that the tool calls of messages touched.
function collectFiles(messages, ops) {
  const kinds = { read: ops.read, write: ops.written, edit: ops.edited };
  for (const message of messages) {
    if (message.role !== "assistant" || !Array.isArray(message.content)) continue;
    for (const block of message.content) if (block.type === "toolCall" && typeof block.arguments?.path === "string") kinds[block.name]?.add(block.arguments.path);
  }
  return ops;
}

const fileLists = ({ read, written, edited }) => {
  const modifiedFiles = [...new Set([...written, ...edited])].sort();
  return { readFiles: [...read].filter((file) => !modifiedFiles.includes(file)).sort(), modifiedFiles };
};

const withFiles = (summary, { readFiles, modifiedFiles }) => {
  const list = (tag, files) => (files.length ? `\n\n<${tag}>\n${files.join("\n")}\n</${tag}>` : "");
  return summary + list("read-files", readFiles) + list("modified-files", modifiedFiles);
};

// What a compaction of this path would do; undefined if there is nothing to cut.
function prepareCompaction(path, settings = SETTINGS) {
  if (!path.length || path.at(-1).type === "compaction") return undefined;
  const last = path.findLastIndex((entry) => entry.type === "compaction");
  const before = last >= 0 ? path[last] : null;
  const entries = before ? session.contextEntries(path).slice(1) : path;
  const { firstKeptEntryIndex: cut, turnStartIndex, isSplitTurn } = findCutPoint(entries, 0, entries.length, settings.keepRecentTokens);
  if (!entries[cut]) return undefined;
  const end = isSplitTurn ? turnStartIndex : cut;
  const messagesToSummarize = entries.slice(0, end).flatMap(messagesOf);
  const turnPrefixMessages = isSplitTurn ? entries.slice(turnStartIndex, cut).flatMap(messagesOf) : [];
  if (!messagesToSummarize.length && !turnPrefixMessages.length) return undefined;
  const fileOps = collectFiles([...messagesToSummarize, ...turnPrefixMessages], newFileOps());
  for (const file of before?.details?.readFiles ?? []) fileOps.read.add(file);
  for (const file of before?.details?.modifiedFiles ?? []) fileOps.edited.add(file);
  return {
    firstKeptEntryId: entries[cut].id, messagesToSummarize, turnPrefixMessages, isSplitTurn,
    tokensBefore: estimateContextTokens(session.toMessages(session.contextEntries(path))).tokens,
    previousSummary: before?.summary, fileOps, settings,
  };
}

const usable = (message) => message.role === "assistant" && !["error", "aborted"].includes(message.stopReason) && message.usage && transcript.calculateContextTokens(message.usage) > 0;

// The size of a context: what the provider counted last, and an estimate of what came after.
function estimateContextTokens(messages) {
  const at = messages.findLastIndex(usable);
  if (at < 0) {
    const tokens = tokensOf(messages);
    return { tokens, usageTokens: 0, trailingTokens: tokens, lastUsageIndex: null };
  }
  const usageTokens = transcript.calculateContextTokens(messages[at].usage);
  const trailingTokens = tokensOf(messages.slice(at + 1));
  return { tokens: usageTokens + trailingTokens, usageTokens, trailingTokens, lastUsageIndex: at };
}

const SYSTEM = "You summarise conversations between a person and a coding assistant. Do not continue the conversation and do not answer questions in it: write the summary only.";
const FORM = `Use these headings, and keep each part short:

## Goal
## Constraints and preferences
## Progress (done, in progress, blocked)
## Decisions, with their reasons
## Next steps
## What must not be forgotten

Keep paths, names of functions and error messages exactly.`;
const TASKS = {
  first: `Summarise the conversation above so that another model can go on with the work.\n\n${FORM}`,
  update: `Bring the summary in <previous-summary> up to date with the conversation above: keep what still holds, add what is new, move what is done.\n\n${FORM}`,
  prefix: "The conversation above is the beginning of a long turn whose end is kept. Summarise what was asked, what has been done so far, and what is needed to understand the rest.",
  branch: `Summarise the conversation above. The user went back to an earlier point and may need what was found out here.\n\n${FORM}`,
};

// Asks a model for a summary; `what` names it in errors.
async function summarise(what, messages, model, task, options) {
  const { streamFn, previousSummary, instructions, ...request } = options;
  const conversation = transcript.serializeConversation(transcript.convertToLlm(messages));
  const previous = previousSummary ? `<previous-summary>\n${previousSummary}\n</previous-summary>\n\n` : "";
  const focus = instructions ? `\n\nAdditional focus: ${instructions}` : "";
  const text = `<conversation>\n${conversation}\n</conversation>\n\n${previous}${task}${focus}`;
  const context = transcript.normalizeContext({ systemPrompt: SYSTEM, messages: [{ role: "user", content: [{ type: "text", text }], timestamp: Date.now() }] });
  const call = streamFn ?? require("pi-ai").streamSimple;
  const answer = await (await call(model, context, { cacheRetention: "none", ...request })).result();
  if (answer.stopReason === "error") throw new Error(`${what} failed: ${answer.errorMessage || "Unknown error"}`);
  if (answer.stopReason === "length") throw new Error(`${what} failed: the answer was cut off at the output limit`);
  if (answer.stopReason === "aborted") throw new Error(`${what} was aborted`);
  return { text: transcript.textOf(answer.content), usage: answer.usage };
}

const limited = (model, tokens) => Math.min(Math.floor(tokens), model.maxTokens > 0 ? model.maxTokens : Number.POSITIVE_INFINITY);
const reasoningOf = (model, level) => (model.reasoning && level && level !== "off" ? { reasoning: level } : {});

async function generateSummaryWithUsage(messages, model, reserveTokens, apiKey, headers, signal, instructions, previousSummary, thinkingLevel, streamFn, env, _retry, _callbacks, sessionId) {
  const options = { apiKey, headers, signal, env, sessionId, streamFn, instructions, previousSummary, maxTokens: limited(model, 0.8 * reserveTokens), ...reasoningOf(model, thinkingLevel) };
  return summarise("Summarization", messages, model, previousSummary ? TASKS.update : TASKS.first, options);
}

const generateSummary = async (...request) => (await generateSummaryWithUsage(...request)).text;

const sum = (a, b) => {
  if (!a || !b) return a ?? b;
  const number = (key) => (a[key] ?? 0) + (b[key] ?? 0);
  const cost = Object.fromEntries(["input", "output", "cacheRead", "cacheWrite", "total"].map((key) => [key, (a.cost?.[key] ?? 0) + (b.cost?.[key] ?? 0)]));
  return { input: number("input"), output: number("output"), cacheRead: number("cacheRead"), cacheWrite: number("cacheWrite"), totalTokens: number("totalTokens"), cost };
};

// Summarises what `prepareCompaction` cut. The result is what `appendCompaction` takes.
async function compact(preparation, model, apiKey, headers, instructions, signal, thinkingLevel, streamFn, env, retry, callbacks, sessionId) {
  const { messagesToSummarize, turnPrefixMessages = [], isSplitTurn, previousSummary, settings, fileOps, firstKeptEntryId, tokensBefore } = preparation;
  if (!firstKeptEntryId) throw new Error("First kept entry has no UUID - session may need migration");
  const reserve = settings.reserveTokens;
  const parts = [];
  let usage;
  const add = ({ text, usage: used }) => {
    parts.push(text);
    usage = sum(usage, used);
  };
  if (messagesToSummarize.length || !isSplitTurn) add(await generateSummaryWithUsage(messagesToSummarize, model, reserve, apiKey, headers, signal, instructions, previousSummary, thinkingLevel, streamFn, env, retry, callbacks, sessionId));
  else parts.push(previousSummary ?? "No prior history.");
  if (isSplitTurn && turnPrefixMessages.length) {
    const options = { apiKey, headers, signal, env, sessionId, streamFn, maxTokens: limited(model, 0.5 * reserve), ...reasoningOf(model, thinkingLevel) };
    add(await summarise("Turn prefix summarization", turnPrefixMessages, model, TASKS.prefix, options));
  }
  const details = fileLists({ ...newFileOps(), ...fileOps });
  return { summary: withFiles(parts.join("\n\n---\n\n**The beginning of the turn that is kept in part:**\n\n"), details), firstKeptEntryId, tokensBefore, usage, details };
}

// The entries that are left behind when the session goes from one leaf to another entry.
function collectEntriesForBranchSummary(manager, oldLeafId, targetId) {
  if (!oldLeafId) return { entries: [], commonAncestorId: null };
  const kept = new Set(manager.getBranch(targetId).map(({ id }) => id));
  const old = manager.getBranch(oldLeafId);
  const common = old.findLastIndex((entry) => kept.has(entry.id));
  return { entries: old.slice(common + 1), commonAncestorId: common < 0 ? null : old[common].id };
}

// The newest messages that fit into the budget (0 means all), and the files all of them touched.
function prepareBranchEntries(entries, tokenBudget = 0) {
  const fileOps = newFileOps();
  for (const entry of entries) {
    if (entry.type !== "branch_summary" && entry.type !== "compaction") continue;
    for (const file of entry.details?.readFiles ?? []) fileOps.read.add(file);
    for (const file of entry.details?.modifiedFiles ?? []) fileOps.edited.add(file);
  }
  const messages = [];
  let totalTokens = 0;
  for (const entry of [...entries].reverse()) {
    const [message] = session.toMessages([entry]);
    if (!message || message.role === "toolResult") continue;
    collectFiles([message], fileOps);
    const tokens = transcript.estimateTokens(message);
    if (tokenBudget > 0 && totalTokens + tokens > tokenBudget) break;
    messages.unshift(message);
    totalTokens += tokens;
  }
  return { messages, fileOps, totalTokens };
}

async function generateBranchSummary(entries, options) {
  const { model, apiKey, headers, env, signal, customInstructions, replaceInstructions, reserveTokens = 16384, streamFn } = options;
  const { messages, fileOps } = prepareBranchEntries(entries, (model.contextWindow || 128000) - reserveTokens);
  if (!messages.length) return { summary: "No content to summarize" };
  const replaces = replaceInstructions && customInstructions;
  const request = { apiKey, headers, env, signal, streamFn, maxTokens: 2048, instructions: replaces ? undefined : customInstructions };
  try {
    const { text, usage } = await summarise("Branch summarization", messages, model, replaces ? customInstructions : TASKS.branch, request);
    const files = fileLists(fileOps);
    return { summary: withFiles(text, files), usage, ...files };
  } catch (error) {
    return signal?.aborted ? { aborted: true } : { error: require("internal/owners").text(error) };
  }
}

module.exports = {
  DEFAULT_COMPACTION_SETTINGS: SETTINGS, findTurnStartIndex, findCutPoint, prepareCompaction, estimateContextTokens, generateSummary, generateSummaryWithUsage, compact, collectEntriesForBranchSummary, prepareBranchEntries, generateBranchSummary,
  shouldCompact: (tokens, contextWindow, settings) => settings.enabled && tokens > contextWindow - settings.reserveTokens,
};
