// The agent loop for extensions that run an agent of their own: an answer, its tool calls, the next answer.
//
// The session's own loop is native. This one has the same order of events, and its models are called through the agent.

const transcript = require("internal/transcript");
const owners = require("internal/owners");

let defaultStream = null;

const streamOf = (given) => given ?? defaultStream ?? require("pi-ai").streamSimple;

const isError = (message) => message.stopReason === "error" || message.stopReason === "aborted";

// Both forms of a context: text and tools beside the messages, and as their first message.
function contextFor(messages, context) {
  const collapsed = transcript.collapseSystemMessages(transcript.normalizeContext({ systemPrompt: context.systemPrompt, messages }));
  const tools = context.tools ? context.tools.map(transcript.toToolDeclaration) : transcript.getCurrentTools(messages);
  const first = transcript.getInitialSystemMessage(collapsed.messages);
  const rest = collapsed.messages.filter((message) => message !== first);
  const leading = first || tools.length ? [{ ...(first ?? { role: "system", content: [], timestamp: 0 }), tools }] : [];
  return { systemPrompt: first ? transcript.textOf(first.content) : undefined, tools, messages: [...leading, ...rest] };
}

// Only what a provider reads: functions of the loop stay here.
function requestOptions(config, apiKey, signal) {
  const { model, convertToLlm, transformContext, getApiKey, getSteeringMessages, getFollowUpMessages, beforeToolCall, afterToolCall, finishTurn, prepareRequest, prepareNextTurn, shouldStopAfterTurn, toolExecution, ...options } = config;
  return { ...options, apiKey: apiKey ?? options.apiKey, signal };
}

// Streams one answer; `context.messages` ends with it.
async function answer(context, config, signal, emit, streamFn) {
  const seen = config.transformContext ? await config.transformContext(context.messages, signal) : context.messages;
  const messages = await config.convertToLlm(seen);
  const apiKey = (await config.getApiKey?.(config.model.provider)) || undefined;
  const stream = await streamFn(config.model, contextFor(messages, context), requestOptions(config, apiKey, signal));
  const at = context.messages.length;
  let isStarted = false;
  const show = async (message) => {
    context.messages[at] = message;
    if (!isStarted) await emit({ type: "message_start", message: { ...message } });
    isStarted = true;
  };
  for await (const event of stream) {
    if (event.type === "done" || event.type === "error") break;
    if (event.type === "start") await show(event.partial);
    else if (isStarted && event.partial) {
      context.messages[at] = event.partial;
      await emit({ type: "message_update", assistantMessageEvent: event, message: { ...event.partial } });
    }
  }
  const message = await stream.result();
  await show(message);
  await emit({ type: "message_end", message });
  return message;
}

const failure = (text) => ({ content: [{ type: "text", text }], details: {} });

// Finds the tool, checks the arguments, asks `beforeToolCall`. Returns what to execute, or the result that replaces it.
async function prepare(turn, call) {
  const tool = turn.context.tools?.find((known) => known.name === call.name);
  if (!tool) return { result: failure(`Tool ${call.name} not found`), isError: true };
  try {
    const given = tool.prepareArguments ? { ...call, arguments: tool.prepareArguments(call.arguments) } : call;
    const args = require("pi-ai").validateToolArguments(tool, given);
    const decision = await turn.config.beforeToolCall?.({ assistantMessage: turn.message, toolCall: call, args, context: turn.context }, turn.signal);
    if (turn.signal?.aborted) return { result: failure("Operation aborted"), isError: true };
    if (decision?.block) return { result: { ...failure(decision.reason || "Tool execution was blocked"), terminate: decision.terminate }, isError: true };
    return { tool, args };
  } catch (error) {
    return { result: failure(owners.text(error)), isError: true };
  }
}

async function execute(turn, call, { tool, args }) {
  const updates = [];
  let isSettled = false;
  const onUpdate = (partialResult) => {
    if (!isSettled) updates.push(turn.emit({ type: "tool_execution_update", toolCallId: call.id, toolName: call.name, args: call.arguments, partialResult }));
  };
  let outcome;
  try {
    const result = await tool.execute(call.id, args, turn.signal, onUpdate, turn.config.toolContext);
    outcome = { result: { ...result, content: result?.content ?? [] }, isError: result?.isError === true };
  } catch (error) {
    outcome = { result: failure(owners.text(error)), isError: true };
  }
  isSettled = true;
  await Promise.all(updates);
  return change(turn, call, args, outcome);
}

// `afterToolCall` may replace parts of a result.
async function change(turn, call, args, outcome) {
  try {
    const over = await turn.config.afterToolCall?.({ assistantMessage: turn.message, toolCall: call, args, ...outcome, context: turn.context }, turn.signal);
    if (!over) return outcome;
    const { result } = outcome;
    return {
      result: { ...result, content: over.content ?? result.content, details: over.details ?? result.details, terminate: over.terminate ?? result.terminate },
      isError: over.isError ?? outcome.isError,
    };
  } catch (error) {
    return { result: failure(owners.text(error)), isError: true };
  }
}

const resultMessage = (call, { result, isError: failed }) => ({
  role: "toolResult",
  toolCallId: call.id,
  toolName: call.name,
  content: result.content,
  details: result.details,
  ...(result.usage ? { usage: result.usage } : {}),
  isError: failed,
  timestamp: Date.now(),
});

// Runs the calls of one answer. Ends are reported as tools finish; result messages follow the order of the calls.
async function runTools(turn, calls) {
  const isSequential = turn.config.toolExecution === "sequential" || calls.some((call) => turn.context.tools?.find((tool) => tool.name === call.name)?.executionMode === "sequential");
  const finish = async (call, work) => {
    const outcome = await work;
    await turn.emit({ type: "tool_execution_end", toolCallId: call.id, toolName: call.name, result: outcome.result, isError: outcome.isError });
    return { call, outcome };
  };
  const ended = [];
  for (const call of calls) {
    if (isSequential && turn.signal?.aborted && ended.length) break;
    await turn.emit({ type: "tool_execution_start", toolCallId: call.id, toolName: call.name, args: call.arguments });
    const isCut = turn.message.stopReason === "length";
    const ready = isCut ? { result: failure(`Tool call "${call.name}" was not executed: the answer was cut off at the output limit, so its arguments may be incomplete. Call it again with complete arguments.`), isError: true } : await prepare(turn, call);
    const end = finish(call, ready.tool ? execute(turn, call, ready) : ready);
    ended.push(isSequential ? await end : end);
  }
  const messages = [];
  const outcomes = await Promise.all(ended);
  for (const { call, outcome } of outcomes) {
    const message = resultMessage(call, outcome);
    await turn.emit({ type: "message_start", message });
    await turn.emit({ type: "message_end", message });
    messages.push(message);
  }
  return { messages, isLast: outcomes.length > 0 && outcomes.every(({ outcome }) => outcome.result.terminate === true) };
}

const changed = (config, update) => (update ? { ...config, model: update.model ?? config.model, reasoning: update.thinkingLevel === undefined ? config.reasoning : update.thinkingLevel === "off" ? undefined : update.thinkingLevel } : config);

async function loop(start, added, given, emit, signal, streamFn) {
  let context = start;
  let config = given;
  let last = null;
  const add = async (messages) => {
    for (const message of messages) {
      await emit({ type: "message_start", message });
      await emit({ type: "message_end", message });
      context.messages.push(message);
      added.push(message);
    }
  };
  const steering = async () => (await config.getSteeringMessages?.()) ?? [];
  let waiting = await steering();
  for (;;) {
    if (last) {
      const update = await config.prepareNextTurn?.(last);
      context = update?.context ?? context;
      config = changed(config, update);
      if (!waiting.length) waiting = await steering();
      await emit({ type: "turn_start" });
      await add(update?.messages ?? []);
    }
    await add(waiting);
    const update = await config.prepareRequest?.({ context, model: config.model, thinkingLevel: config.reasoning ?? "off" }, signal);
    context = update?.context ?? context;
    config = changed(config, update);

    const message = await answer(context, config, signal, emit, streamFn);
    added.push(message);
    const calls = isError(message) ? [] : (message.content ?? []).filter((block) => block.type === "toolCall");
    const { messages: toolResults, isLast } = await runTools({ context, config, message, signal, emit }, calls);
    context.messages.push(...toolResults);
    added.push(...toolResults);

    last = { message, toolResults, context, newMessages: added };
    const decision = await config.finishTurn?.(last, signal);
    await emit({ type: "turn_end", message, toolResults });
    if (isError(message) || decision?.action === "end" || (await config.shouldStopAfterTurn?.(last))) break;
    waiting = await steering();
    if ((calls.length && !isLast) || waiting.length) continue;
    waiting = (await config.getFollowUpMessages?.()) ?? [];
    if (!waiting.length && decision?.action !== "continue") break;
  }
  await emit({ type: "agent_end", messages: added });
  return added;
}

const checkContinuation = ({ messages }) => {
  if (!messages.length) throw new Error("Cannot continue: no messages in context");
  if (messages.at(-1).role === "assistant") throw new Error("Cannot continue from message role: assistant");
};

async function runAgentLoop(prompts, context, config, emit, signal, streamFn) {
  const added = [];
  const own = { ...context, messages: [...context.messages] };
  await emit({ type: "agent_start" });
  await emit({ type: "turn_start" });
  for (const message of prompts) {
    await emit({ type: "message_start", message });
    await emit({ type: "message_end", message });
    own.messages.push(message);
    added.push(message);
  }
  return loop(own, added, config, emit, signal, streamOf(streamFn));
}

async function runAgentLoopContinue(context, config, emit, signal, streamFn) {
  checkContinuation(context);
  await emit({ type: "agent_start" });
  await emit({ type: "turn_start" });
  return loop({ ...context, messages: [...context.messages] }, [], config, emit, signal, streamOf(streamFn));
}

// The events of a loop as a stream; its result is the messages it added.
function streamed(run) {
  const { EventStream } = require("pi-ai");
  const stream = new EventStream((event) => event.type === "agent_end", (event) => event.messages);
  run((event) => stream.push(event)).then(
    (messages) => stream.end(messages),
    (error) => {
      stream.end([]);
      owners.report(owners.now()?.path ?? "<runtime>", "agent_loop", error);
    },
  );
  return stream;
}

module.exports = {
  runAgentLoop,
  runAgentLoopContinue,
  agentLoop: (prompts, context, config, signal, streamFn) => streamed((emit) => runAgentLoop(prompts, context, config, emit, signal, streamFn)),
  agentLoopContinue: (context, config, signal, streamFn) => {
    checkContinuation(context);
    return streamed((emit) => runAgentLoopContinue(context, config, emit, signal, streamFn));
  },
  setDefaultStreamFn: (streamFn) => void (defaultStream = streamFn),
};
