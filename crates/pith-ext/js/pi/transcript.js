// System messages of a transcript, and messages as they are sent to a model.

const textOf = (content) => {
  if (typeof content === "string") return content;
  return (content ?? []).filter((part) => part?.type === "text").map((part) => part.text).join("\n");
};

const isSystem = (message) => message?.role === "system";

function createInitialSystemMessage(systemPrompt, tools) {
  if (!systemPrompt && !tools?.length) return undefined;
  return { role: "system", content: systemPrompt ? [{ type: "text", text: systemPrompt }] : [], tools: tools ?? [], timestamp: 0 };
}

const getInitialSystemMessage = (messages) => (isSystem(messages[0]) ? messages[0] : undefined);

// Later system messages add text and tools to the first one.
function getCurrentTools(messages) {
  const tools = new Map();
  for (const message of messages.filter(isSystem)) {
    for (const tool of message.toolsRemoved ?? []) tools.delete(tool.name ?? tool);
    for (const tool of [...(message.tools ?? []), ...(message.toolsAdded ?? [])]) tools.set(tool.name, tool);
  }
  return [...tools.values()];
}

const getCurrentSystemPrompt = (messages) => messages.filter(isSystem).map((message) => textOf(message.content)).filter(Boolean).join("\n\n");

const getCurrentSystemMessage = (messages) => createInitialSystemMessage(getCurrentSystemPrompt(messages), getCurrentTools(messages));

function collapseSystemMessages(context) {
  const leading = getCurrentSystemMessage(context.messages);
  const rest = context.messages.filter((message) => !isSystem(message));
  return { ...context, messages: leading ? [leading, ...rest] : rest };
}

function normalizeContext(context) {
  if (getInitialSystemMessage(context.messages ?? [])) return context;
  const leading = createInitialSystemMessage(context.systemPrompt, context.tools);
  return { ...context, messages: leading ? [leading, ...context.messages] : [...(context.messages ?? [])] };
}

const toToolDeclaration = ({ name, description, parameters }) => ({ name, description, parameters: JSON.parse(JSON.stringify(parameters ?? {})) });
const declarationsEqual = (a, b) => JSON.stringify(toToolDeclaration(a)) === JSON.stringify(toToolDeclaration(b));

function getToolStateChanges(before, now) {
  const known = new Map(before.map((tool) => [tool.name, tool]));
  const toolsAdded = now.filter((tool) => !known.has(tool.name) || !declarationsEqual(known.get(tool.name), tool));
  const kept = new Set(now.filter((tool) => !toolsAdded.includes(tool)).map((tool) => tool.name));
  return { toolsAdded, toolsRemoved: before.filter((tool) => !kept.has(tool.name)).map(({ name }) => ({ name })) };
}

const toolsOf = (message) => [...(message.tools ?? []), ...(message.toolsAdded ?? [])];

// Whether a tool was removed or declared again, so that additions alone do not tell the story.
function hasNonAdditiveToolChanges(messages) {
  const system = messages.filter(isSystem);
  const names = system.flatMap(toolsOf).map(({ name }) => name);
  return system.some(({ toolsRemoved }) => toolsRemoved?.length > 0) || new Set(names).size !== names.length;
}

const SUMMARY = ["Earlier parts of this conversation were compacted. This summary stands for them:\n\n<summary>\n", "\n</summary>"];
const BRANCH = ["The conversation has returned from another branch. This is what happened there:\n\n<summary>\n", "</summary>"];

function bashExecutionToText(message) {
  let text = `Ran \`${message.command}\`\n`;
  text += message.output ? `\`\`\`\n${message.output}\n\`\`\`` : "(no output)";
  if (message.cancelled) text += "\n\n(command cancelled)";
  else if (message.exitCode !== null && message.exitCode !== undefined && message.exitCode !== 0) text += `\n\nCommand exited with code ${message.exitCode}`;
  if (message.truncated && message.fullOutputPath) text += `\n\n[Output truncated. Full output: ${message.fullOutputPath}]`;
  return text;
}

const asUser = (content, timestamp) => ({ role: "user", content: typeof content === "string" ? [{ type: "text", text: content }] : content, timestamp });

// pith's own roles become user messages, as the agent sends them.
function convertToLlm(messages) {
  return messages.flatMap((message) => {
    switch (message.role) {
      case "bashExecution":
        return message.excludeFromContext ? [] : [asUser(bashExecutionToText(message), message.timestamp)];
      case "custom":
        return [asUser(message.content, message.timestamp)];
      case "compactionSummary":
        return [asUser(SUMMARY[0] + message.summary + SUMMARY[1], message.timestamp)];
      case "branchSummary":
        return [asUser(BRANCH[0] + message.summary + BRANCH[1], message.timestamp)];
      case "user":
      case "assistant":
      case "toolResult":
      case "system":
        return [message];
      default:
        return [];
    }
  });
}

const RESULT_LIMIT = 2000;

// A conversation as text, for a model that summarises it.
function serializeConversation(messages) {
  const parts = [];
  const add = (who, text) => text && parts.push(`[${who}]: ${text}`);
  for (const message of messages) {
    if (message.role === "user") add("User", textOf(message.content));
    if (message.role === "toolResult") {
      const text = textOf(message.content);
      add("Tool result", text.length > RESULT_LIMIT ? `${text.slice(0, RESULT_LIMIT)}\n\n[... ${text.length - RESULT_LIMIT} more characters truncated]` : text);
    }
    if (message.role !== "assistant") continue;
    const blocks = typeof message.content === "string" ? [{ type: "text", text: message.content }] : (message.content ?? []);
    const of = (type) => blocks.filter((block) => block.type === type);
    add("Assistant thinking", of("thinking").map((block) => block.thinking).join("\n"));
    add("Assistant", of("text").map((block) => block.text).join("\n"));
    const calls = of("toolCall").map(({ name, arguments: given }) => `${name}(${Object.entries(given ?? {}).map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(", ")})`);
    add("Assistant tool calls", calls.join("; "));
  }
  return parts.join("\n\n");
}

// A token is roughly four characters.
function estimateTokens(message) {
  const size = (value) => (typeof value === "string" ? value.length : JSON.stringify(value ?? "").length);
  const blocks = typeof message.content === "string" ? [{ type: "text", text: message.content }] : Array.isArray(message.content) ? message.content : [];
  let characters = message.role === "bashExecution" ? size(message.command) + size(message.output) : size(message.summary ?? "");
  for (const block of blocks) {
    if (block.type === "image") characters += 4800;
    else if (block.type === "toolCall") characters += size(block.name) + size(block.arguments);
    else characters += size(block.text ?? block.thinking ?? "");
  }
  return Math.ceil(characters / 4);
}

const calculateContextTokens = (usage) => usage.totalTokens || usage.input + usage.output + usage.cacheRead + usage.cacheWrite;

module.exports = {
  textOf, createInitialSystemMessage, getInitialSystemMessage, getCurrentTools, getCurrentSystemPrompt, getCurrentSystemMessage, collapseSystemMessages, normalizeContext, toToolDeclaration, declarationsEqual, getToolStateChanges,
  withoutInitialSystemMessage: (messages) => (getInitialSystemMessage(messages) ? messages.slice(1) : messages),
  resolveTranscript: (context, supportsLaterSystemMessages) => (supportsLaterSystemMessages ? context : collapseSystemMessages(context)),
  resolveTranscriptTools: (messages, supportsAdditions) => {
    const anchorsAdditions = !!supportsAdditions && !hasNonAdditiveToolChanges(messages);
    const first = getInitialSystemMessage(messages);
    return { requestTools: anchorsAdditions ? toolsOf(first ?? {}) : getCurrentTools(messages), anchorsAdditions };
  },
  getDeclaredTools: (messages) => getCurrentTools(messages.map((message) => ({ ...message, toolsRemoved: [] }))),
  getSystemMessageText: (message) => textOf(message?.content),
  hasNonAdditiveToolChanges,
  hasToolRedefinitions: (messages) => {
    const known = new Map();
    return messages.filter(isSystem).flatMap(toolsOf).some((tool) => {
      const before = known.get(tool.name);
      known.set(tool.name, tool);
      return before !== undefined && !declarationsEqual(before, tool);
    });
  },
  renderSystemMessageUpdate: (message) => {
    const sections = Object.entries(message?.sections ?? {}).map(([name, text]) => (text === null ? `The section "${name}" of the system prompt was removed.` : `The section "${name}" of the system prompt is now:\n\n${text}`));
    return [textOf(message?.content), ...sections].filter(Boolean).join("\n\n");
  },
  COMPACTION_SUMMARY_PREFIX: SUMMARY[0], COMPACTION_SUMMARY_SUFFIX: SUMMARY[1], BRANCH_SUMMARY_PREFIX: BRANCH[0], BRANCH_SUMMARY_SUFFIX: BRANCH[1],
  bashExecutionToText, convertToLlm, serializeConversation, estimateTokens, calculateContextTokens,
};
