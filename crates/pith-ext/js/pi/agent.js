// `Agent`: a conversation with a model that an extension runs beside the session.

const loop = require("internal/agent-loop");
const transcript = require("internal/transcript");
const owners = require("internal/owners");

const ROLES = ["system", "user", "assistant", "toolResult"];
const NO_MODEL = { id: "unknown", name: "unknown", api: "unknown", provider: "unknown", baseUrl: "", reasoning: false, input: [], cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: 0, maxTokens: 0 };

// What the agent knows and does now. Lists that are assigned are copied.
class State {
  #tools = [];
  #messages = [];
  constructor(given = {}) {
    this.model = given.model ?? NO_MODEL;
    this.thinkingLevel = given.thinkingLevel ?? "off";
    this.isStreaming = false;
    this.streamingMessage = undefined;
    this.pendingToolCalls = new Set();
    this.errorMessage = undefined;
    this.tools = given.tools ?? [];
    this.messages = given.messages ?? [];
    if (given.systemPrompt && !transcript.getInitialSystemMessage(this.#messages)) this.systemPrompt = given.systemPrompt;
  }
  get tools() {
    return this.#tools;
  }
  set tools(tools) {
    this.#tools = [...tools];
  }
  get messages() {
    return this.#messages;
  }
  set messages(messages) {
    this.#messages = [...messages];
  }
  get systemPrompt() {
    return transcript.getCurrentSystemPrompt(this.#messages);
  }
  set systemPrompt(text) {
    const rest = this.#messages.filter((message) => message.role !== "system");
    const leading = transcript.createInitialSystemMessage(text, this.#tools.map(transcript.toToolDeclaration));
    this.#messages = leading ? [leading, ...rest] : rest;
  }
}

// Messages that wait, taken one by one or all together.
class Queue {
  constructor(mode = "one-at-a-time") {
    this.mode = mode;
    this.items = [];
  }
  peek() {
    return this.mode === "all" ? [...this.items] : this.items.slice(0, 1);
  }
  take() {
    const taken = this.peek();
    this.items.splice(0, taken.length);
    return taken;
  }
}

const OPTIONS = ["transformContext", "getApiKey", "onPayload", "onResponse", "beforeToolCall", "afterToolCall", "finishTurn", "prepareRequest", "prepareNextTurn", "prepareNextTurnWithContext", "shouldStopAfterTurn", "sessionId", "thinkingBudgets", "maxRetryDelayMs", "toolContext"];

class Agent {
  #state;
  #listeners = new Set();
  #steering;
  #followUps;
  #run = null; // { promise, controller }

  constructor(options = {}) {
    this.#state = new State(options.initialState);
    this.#steering = new Queue(options.steeringMode);
    this.#followUps = new Queue(options.followUpMode);
    for (const name of OPTIONS) this[name] = options[name];
    this.convertToLlm = options.convertToLlm ?? ((messages) => messages.filter((message) => ROLES.includes(message.role)));
    this.streamFunction = options.streamFn ?? ((...request) => require("pi-ai").streamSimple(...request));
    this.transport = options.transport ?? "auto";
    this.toolExecution = options.toolExecution ?? "parallel";
  }

  get state() {
    return this.#state;
  }
  get streamFn() {
    return this.streamFunction;
  }
  set streamFn(streamFn) {
    this.streamFunction = streamFn;
  }
  get signal() {
    return this.#run?.controller.signal;
  }
  get steeringMode() {
    return this.#steering.mode;
  }
  set steeringMode(mode) {
    this.#steering.mode = mode;
  }
  get followUpMode() {
    return this.#followUps.mode;
  }
  set followUpMode(mode) {
    this.#followUps.mode = mode;
  }

  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  // The older way to change the state.
  setSystemPrompt(text) {
    this.#state.systemPrompt = text;
  }
  setModel(model) {
    this.#state.model = model;
  }
  setThinkingLevel(level) {
    this.#state.thinkingLevel = level;
  }
  setTools(tools) {
    this.#state.tools = tools;
  }
  replaceMessages(messages) {
    this.#state.messages = messages;
  }
  appendMessage(message) {
    this.#state.messages.push(message);
  }
  clearMessages() {
    this.#state.messages = [];
  }

  steer(message) {
    this.#steering.items.push(message);
  }
  followUp(message) {
    this.#followUps.items.push(message);
  }
  clearSteeringQueue() {
    this.#steering.items = [];
  }
  clearFollowUpQueue() {
    this.#followUps.items = [];
  }
  clearAllQueues() {
    this.clearSteeringQueue();
    this.clearFollowUpQueue();
  }
  hasQueuedMessages() {
    return this.#steering.items.length + this.#followUps.items.length > 0;
  }
  peekQueuedMessages() {
    const steering = this.#steering.peek();
    return steering.length ? steering : this.#followUps.peek();
  }

  abort() {
    this.#run?.controller.abort();
  }
  waitForIdle() {
    return this.#run?.promise ?? Promise.resolve();
  }
  reset() {
    this.#assertIdle("resetting");
    const baseline = transcript.getCurrentSystemMessage(this.#state.messages);
    this.#state.messages = baseline ? [baseline] : [];
    this.#state.streamingMessage = undefined;
    this.#state.errorMessage = undefined;
    this.clearAllQueues();
  }

  async prompt(input, images = []) {
    if (this.#run) throw new Error("Agent is already processing a prompt. Use steer() or followUp() to queue messages, or wait for completion.");
    const messages = typeof input === "string" ? [{ role: "user", content: [{ type: "text", text: input }, ...images], timestamp: Date.now() }] : [input].flat();
    await this.#prompt(messages);
  }

  async continue() {
    this.#assertIdle("continuing");
    const { messages } = this.#state;
    if (messages.every((message) => message.role === "system")) throw new Error("No messages to continue from");
    if (messages.at(-1).role !== "assistant") {
      return this.#start((context, config, emit, signal) => loop.runAgentLoopContinue(context, config, emit, signal, this.streamFunction));
    }
    const steering = this.#steering.take();
    if (steering.length) return this.#prompt(steering, true);
    const followUps = this.#followUps.take();
    if (followUps.length) return this.#prompt(followUps);
    throw new Error("Cannot continue from message role: assistant");
  }

  #assertIdle(what) {
    if (this.#run) throw new Error(`Agent is already processing. Wait for completion before ${what}.`);
  }

  #prompt(messages, hasSteering = false) {
    return this.#start((context, config, emit, signal) => loop.runAgentLoop(messages, context, config, emit, signal, this.streamFunction), hasSteering);
  }

  // Runs a loop over a copy of the messages; its events bring the state up to date.
  async #start(run, hasSteering = false) {
    const controller = new AbortController();
    let settle;
    this.#run = { controller, promise: new Promise((resolve) => (settle = resolve)) };
    this.#state.isStreaming = true;
    this.#state.errorMessage = undefined;
    const context = { messages: [...this.#state.messages], tools: [...this.#state.tools] };
    // An agent may work for a long time; the handler that waits for it has not used that time.
    const done = owners.pauseBudget(owners.now());
    try {
      await run(context, this.#config(hasSteering), (event) => this.#take(event), controller.signal);
    } catch (error) {
      await this.#fail(error, controller.signal.aborted);
    } finally {
      done();
      Object.assign(this.#state, { isStreaming: false, streamingMessage: undefined, pendingToolCalls: new Set() });
      this.#run = null;
      settle();
    }
  }

  #config(hasSteering) {
    let skips = hasSteering;
    const { model, thinkingLevel } = this.#state;
    const { prepareNextTurn, prepareNextTurnWithContext } = this;
    const next = prepareNextTurnWithContext || prepareNextTurn;
    const own = Object.fromEntries(["convertToLlm", "transport", "toolExecution", ...OPTIONS].map((name) => [name, this[name]]));
    return {
      ...own,
      model,
      reasoning: thinkingLevel === "off" ? undefined : thinkingLevel,
      prepareNextTurn: next ? async (turn) => (prepareNextTurnWithContext ? prepareNextTurnWithContext(turn, this.signal) : prepareNextTurn(this.signal)) : undefined,
      prepareNextTurnWithContext: undefined,
      getSteeringMessages: async () => {
        if (!skips) return this.#steering.take();
        skips = false;
        return [];
      },
      getFollowUpMessages: async () => this.#followUps.take(),
    };
  }

  async #fail(error, isAborted) {
    const { model } = this.#state;
    const message = { role: "assistant", content: [{ type: "text", text: "" }], api: model.api, provider: model.provider, model: model.id, usage: require("internal/models").emptyUsage(), stopReason: isAborted ? "aborted" : "error", errorMessage: owners.text(error), timestamp: Date.now() };
    for (const type of ["message_start", "message_end"]) await this.#take({ type, message });
    await this.#take({ type: "turn_end", message, toolResults: [] });
    await this.#take({ type: "agent_end", messages: [message] });
  }

  async #take(event) {
    const state = this.#state;
    const pending = new Set(state.pendingToolCalls);
    switch (event.type) {
      case "message_start":
      case "message_update":
        state.streamingMessage = event.message;
        break;
      case "message_end":
        state.streamingMessage = undefined;
        state.messages.push(event.message);
        break;
      case "tool_execution_start":
        state.pendingToolCalls = pending.add(event.toolCallId);
        break;
      case "tool_execution_end":
        pending.delete(event.toolCallId);
        state.pendingToolCalls = pending;
        break;
      case "turn_end":
        state.errorMessage = event.message.errorMessage ?? state.errorMessage;
        break;
      case "agent_end":
        state.streamingMessage = undefined;
        break;
    }
    for (const listener of [...this.#listeners]) await listener(event, this.signal);
  }
}

module.exports = { Agent };
