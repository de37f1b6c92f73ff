// `createAgentSession`: a session inside the session, as extensions start it for subagents.
//
// It has an `Agent`, tools, and a `SessionManager` of its own. Models are called through the agent. Extensions are not
// loaded a second time: the tools and gates of those that are loaded hold for it too, unless its resource loader has
// none (`noExtensions`).

const owners = require("internal/owners");
const ops = require("internal/ops");
const state = require("internal/state");
const compaction = require("internal/compaction");
const { convertToLlm, textOf } = require("internal/transcript");

const DEFAULT_TOOLS = ["read", "bash", "edit", "write"];

// An extension's tool with the context it expects.
const bound = (definition, context) => ({ ...definition, label: definition.label ?? definition.name, execute: (id, params, signal, onUpdate) => definition.execute(id, params, signal, onUpdate, context()) });

// What is known of the running session; nothing while extensions are being loaded.
const current = () => {
  try {
    return ops.query("state");
  } catch {
    return {};
  }
};

// Nobody watches a nested session, unless `bindExtensions` says who: a gate that wants to ask gets no consent.
const silentUi = () => {
  const { theme } = require("internal/theme");
  const answers = { select: async () => undefined, input: async () => undefined, editor: async () => undefined, confirm: async () => false, custom: async () => undefined, getEditorText: () => "", getToolsExpanded: () => false, getAllThemes: () => [], getTheme: () => undefined, setTheme: () => ({ success: false, error: "UI not available" }), onTerminalInput: () => () => {}, theme };
  return new Proxy(answers, { get: (target, name) => (name in target ? target[name] : () => {}) });
};

class AgentSession {
  #listeners = new Set();
  #available = new Map(); // tool name -> { tool, info }
  #compacting = null; // controller
  #shell = null; // controller
  #retries = 0;
  #waiting = { steering: [], followUp: [] };
  #held = []; // custom messages for the next prompt
  #extensions;
  #ui = null; // what `bindExtensions` gave
  #mode = "print";

  constructor({ agent, sessionManager, settingsManager, cwd, resourceLoader, modelRuntime, customTools = [], scopedModels = [], allowedToolNames, excludedToolNames = [], initialActiveToolNames }) {
    Object.assign(this, { agent, sessionManager, settingsManager, cwd: cwd ?? state.config.cwd, resourceLoader, modelRuntime, scopedModels });
    this.owner = owners.now();
    this.#extensions = resourceLoader?.options?.noExtensions || !(resourceLoader instanceof require("internal/resources").DefaultResourceLoader) ? [] : state.extensions();
    this.#collectTools(customTools, allowedToolNames, excludedToolNames);
    const names = initialActiveToolNames ?? DEFAULT_TOOLS;
    const more = allowedToolNames ? [] : [...this.#available.values()].filter(({ info }) => info.sourceInfo.source !== "builtin").map(({ info }) => info.name);
    agent.convertToLlm = agent.convertToLlm ?? convertToLlm;
    agent.beforeToolCall ??= (call) => this.#ask(call);
    agent.afterToolCall ??= (call) => this.#report(call);
    this.unsubscribe = agent.subscribe((event) => this.#take(event));
    this.setActiveToolsByName([...new Set([...names, ...more])]);
  }

  #collectTools(customTools, allowed, excluded) {
    const add = (tool, sourceInfo) => {
      const { name, description, parameters, promptGuidelines } = tool;
      if ((allowed && !allowed.includes(name)) || excluded.includes(name)) return;
      this.#available.set(name, { tool, info: { name, description, parameters, promptGuidelines, sourceInfo } });
    };
    const native = require("internal/native-tools").createAllTools(this.cwd);
    for (const tool of Object.values(native)) add(tool, { path: `<builtin:${tool.name}>`, source: "builtin", scope: "temporary", origin: "top-level" });
    for (const ext of [...this.#extensions].reverse()) for (const { definition } of ext.tools.values()) add(bound(definition, () => this.#context(ext)), ext.sourceInfo);
    for (const tool of customTools) add(bound(tool, () => this.#context(this.owner)), { path: `<sdk:${tool.name}>`, source: "sdk", scope: "temporary", origin: "top-level" });
  }

  // The context of an extension, with this session in the place of the one around it.
  #context(ext) {
    if (!ext) return undefined;
    const ui = this.#ui ?? silentUi();
    const own = { ui, hasUI: this.#ui !== null, mode: this.#mode, cwd: this.cwd, sessionManager: this.sessionManager, model: this.model, signal: this.agent.signal, thinkingLevel: this.thinkingLevel, isIdle: () => this.isIdle, abort: () => this.agent.abort(), hasPendingMessages: () => this.agent.hasQueuedMessages(), getSystemPrompt: () => this.systemPrompt, getContextUsage: () => this.getContextUsage() };
    const context = Object.defineProperties({}, Object.getOwnPropertyDescriptors(state.contextFor(ext)));
    for (const [name, value] of Object.entries(own)) Object.defineProperty(context, name, { value, enumerable: true, configurable: true });
    return context;
  }

  #raise(event) {
    const isHeard = this.#extensions.some((ext) => ext.handlers.get(event.type)?.length);
    if (!isHeard) return null;
    return new Promise((resolve) => require("internal/events").compose(event, resolve, null, (ext) => this.#context(ext)));
  }

  // Gates decide about the calls of a nested session as about any other.
  async #ask({ toolCall, args }) {
    const verdict = await this.#raise({ type: "tool_call", toolCallId: toolCall.id, toolName: toolCall.name, input: args });
    return verdict?.block ? verdict : undefined;
  }
  async #report({ toolCall, args, result, isError }) {
    return (await this.#raise({ type: "tool_result", toolCallId: toolCall.id, toolName: toolCall.name, input: args, content: result.content, details: result.details, isError })) ?? undefined;
  }

  get state() {
    return this.agent.state;
  }
  get model() {
    return this.agent.state.model?.id === "unknown" ? undefined : this.agent.state.model;
  }
  get thinkingLevel() {
    return this.agent.state.thinkingLevel;
  }
  get messages() {
    return this.agent.state.messages;
  }
  get systemPrompt() {
    return this.agent.state.systemPrompt;
  }
  get isStreaming() {
    return this.agent.state.isStreaming;
  }
  get isIdle() {
    return !this.isStreaming && !this.isCompacting;
  }
  get isCompacting() {
    return this.#compacting !== null;
  }
  get isRetrying() {
    return this.#retries > 0;
  }
  get retryAttempt() {
    return this.#retries;
  }
  get isBashRunning() {
    return this.#shell !== null;
  }
  get sessionId() {
    return this.sessionManager.getSessionId();
  }
  get sessionFile() {
    return this.sessionManager.getSessionFile();
  }
  get sessionName() {
    return this.sessionManager.getSessionName();
  }
  get steeringMode() {
    return this.agent.steeringMode;
  }
  get followUpMode() {
    return this.agent.followUpMode;
  }
  get autoCompactionEnabled() {
    return this.settingsManager.getCompactionEnabled();
  }
  get autoRetryEnabled() {
    return this.settingsManager.getRetryEnabled();
  }
  get promptTemplates() {
    return this.resourceLoader.getPrompts().prompts;
  }
  get pendingMessageCount() {
    return this.#waiting.steering.length + this.#waiting.followUp.length;
  }
  get modelRegistry() {
    return require("internal/models").makeRegistry(this.owner, () => {});
  }
  get extensionRunner() {
    throw owners.unavailable("AgentSession.extensionRunner");
  }

  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
  #emit(event) {
    for (const listener of [...this.#listeners]) listener(event);
  }

  // Keeps the session file up to date, then tells listeners.
  async #take(event) {
    if (event.type === "message_end") this.#store(event.message);
    if (event.type === "message_start" && event.message.role === "user") this.#delivered(textOf(event.message.content));
    this.#emit(event);
  }
  #store(message) {
    if (message.role === "custom") this.sessionManager.appendCustomMessageEntry(message.customType, message.content, message.display, message.details);
    else if (["user", "assistant", "toolResult"].includes(message.role)) this.sessionManager.appendMessage(message);
  }
  #delivered(text) {
    for (const queue of [this.#waiting.steering, this.#waiting.followUp]) {
      const at = queue.indexOf(text);
      if (at < 0) continue;
      queue.splice(at, 1);
      return this.#queueChanged();
    }
  }
  #queueChanged() {
    this.#emit({ type: "queue_update", steering: [...this.#waiting.steering], followUp: [...this.#waiting.followUp] });
  }

  dispose() {
    this.agent.abort();
    this.#compacting?.abort();
    this.#shell?.abort();
    this.unsubscribe();
    this.#listeners.clear();
  }
  async bindExtensions({ uiContext, mode } = {}) {
    this.#ui = uiContext ?? null;
    this.#mode = mode ?? (uiContext ? "rpc" : "print");
  }
  async reload() {
    await this.resourceLoader.reload();
    this.setActiveToolsByName(this.getActiveToolNames());
  }

  getActiveToolNames() {
    return this.agent.state.tools.map(({ name }) => name);
  }
  getAllTools() {
    return [...this.#available.values()].map(({ info }) => info);
  }
  getToolDefinition(name) {
    return this.#available.get(name)?.tool;
  }
  setActiveToolsByName(names) {
    const found = names.flatMap((name) => this.#available.get(name)?.tool ?? []);
    this.agent.state.tools = found;
    this.agent.state.systemPrompt = this.#prompt(found);
  }

  // The agent's own prompt for these tools; a prompt of the loader replaces its first part.
  #prompt(tools) {
    const { resourceLoader: loader } = this;
    const per = (name) => Object.fromEntries(tools.filter((tool) => tool[name]?.length).map((tool) => [tool.name, tool[name]]));
    const options = {
      selectedTools: tools.map(({ name }) => name), toolSnippets: per("promptSnippet"), toolGuidelines: per("promptGuidelines"),
      customPrompt: loader.getSystemPrompt() ?? null, appendSystemPrompt: loader.getAppendSystemPrompt().join("\n\n"), cwd: this.cwd,
      contextFiles: loader.getAgentsFiles().agentsFiles, skills: loader.getSkills().skills,
    };
    try {
      return ops.query("build_prompt", options);
    } catch {
      // While extensions are being loaded there is nobody to put it together.
      return [options.customPrompt, options.appendSystemPrompt, ...options.contextFiles.map(({ content }) => content)].filter(Boolean).join("\n\n");
    }
  }

  // Sends a prompt and waits until the agent has done all it asks for.
  async prompt(text, { images = [], streamingBehavior, expandPromptTemplates = true, preflightResult } = {}) {
    if (this.isStreaming) {
      if (!streamingBehavior) throw new Error("Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message.");
      preflightResult?.(true);
      return streamingBehavior === "steer" ? this.steer(text, images) : this.followUp(text, images);
    }
    if (!this.model) throw new Error("No model selected.");
    preflightResult?.(true);
    const content = [{ type: "text", text: expandPromptTemplates ? this.#expand(text) : text }, ...images];
    await this.#run(() => this.agent.prompt([{ role: "user", content, timestamp: Date.now() }, ...this.#held.splice(0)]));
  }

  // `/name arguments` of a template, `/skill:name arguments` of a skill.
  #expand(text) {
    const [, name, given = ""] = /^\/(\S+)\s*([\s\S]*)$/.exec(text) ?? [];
    if (!name) return text;
    const template = this.promptTemplates.find((known) => known.name === name);
    const core = require("pi-agent-core");
    if (template) return core.substituteArgs(template.content, core.parseCommandArgs(given));
    const skill = name.startsWith("skill:") && this.resourceLoader.getSkills().skills.find((known) => known.name === name.slice(6));
    return skill ? core.formatSkillInvocation(skill, given) : text;
  }

  // After an answer: retries what failed for a while, and compacts what has grown too long.
  async #run(start) {
    await start();
    for (;;) {
      const last = this.messages.findLast(({ role }) => role === "assistant");
      const retry = this.settingsManager.getRetrySettings();
      const isTransient = last && require("pi-ai").isRetryableAssistantError(last);
      if (!isTransient || !retry.enabled || this.#retries >= retry.maxRetries) {
        if (this.#retries) this.#emit({ type: "auto_retry_end", success: last?.stopReason !== "error", attempt: this.#retries, finalError: last?.errorMessage });
        this.#retries = 0;
        break;
      }
      const delayMs = Math.min(retry.baseDelayMs * 2 ** this.#retries++, retry.maxAgentDelayMs);
      this.#emit({ type: "auto_retry_start", attempt: this.#retries, maxAttempts: retry.maxRetries, delayMs, errorMessage: last.errorMessage });
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      this.agent.state.messages = this.messages.filter((message) => message !== last);
      await this.agent.continue();
    }
    const usage = this.getContextUsage();
    if (usage?.tokens && compaction.shouldCompact(usage.tokens, usage.contextWindow, this.settingsManager.getCompactionSettings(this.model))) await this.#compact("threshold").catch(() => {});
  }

  async steer(text, images = []) {
    this.#waiting.steering.push(text);
    this.agent.steer({ role: "user", content: [{ type: "text", text }, ...images], timestamp: Date.now() });
    this.#queueChanged();
  }
  async followUp(text, images = []) {
    this.#waiting.followUp.push(text);
    this.agent.followUp({ role: "user", content: [{ type: "text", text }, ...images], timestamp: Date.now() });
    this.#queueChanged();
  }
  clearQueue() {
    const { steering, followUp } = this.#waiting;
    this.#waiting = { steering: [], followUp: [] };
    this.agent.clearAllQueues();
    this.#queueChanged();
    return { steering, followUp };
  }
  getSteeringMessages() {
    return this.#waiting.steering;
  }
  getFollowUpMessages() {
    return this.#waiting.followUp;
  }

  async sendUserMessage(content, { deliverAs, expandPromptTemplates = false } = {}) {
    const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
    const images = parts.filter((part) => part.type === "image");
    await this.prompt(textOf(parts), { images, streamingBehavior: deliverAs, expandPromptTemplates });
  }
  async sendCustomMessage({ customType, content, display, details }, { triggerTurn, deliverAs } = {}) {
    const message = { role: "custom", customType, content: content ?? [], display, details, timestamp: Date.now() };
    if (deliverAs === "nextTurn") return void this.#held.push(message);
    if (this.isStreaming) return deliverAs === "followUp" ? this.agent.followUp(message) : this.agent.steer(message);
    if (triggerTurn) return this.#run(() => this.agent.prompt(message));
    this.agent.state.messages.push(message);
    for (const type of ["message_start", "message_end"]) await this.#take({ type, message });
  }

  async abort() {
    this.agent.abort();
    await this.waitForIdle();
  }
  waitForIdle() {
    return this.agent.waitForIdle();
  }

  async setModel(model) {
    if (!this.modelRuntime.hasConfiguredAuth(model)) throw new Error(`No API key for ${model.provider}/${model.id}`);
    this.agent.state.model = model;
    this.sessionManager.appendModelChange(model.provider, model.id);
    this.setThinkingLevel(this.thinkingLevel);
  }
  async cycleModel(direction = "forward") {
    const known = this.scopedModels.length ? this.scopedModels.map(({ model }) => model) : this.modelRuntime.getAvailableSnapshot();
    if (known.length < 2) return undefined;
    const at = known.findIndex((model) => require("pi-ai").modelsAreEqual(model, this.model));
    const model = known[(at + (direction === "forward" ? 1 : -1) + known.length) % known.length];
    await this.setModel(model);
    return { model, thinkingLevel: this.thinkingLevel, isScoped: this.scopedModels.length > 0 };
  }
  setThinkingLevel(level) {
    const clamped = this.model ? require("pi-ai").clampThinkingLevel(this.model, level) : "off";
    if (clamped === this.thinkingLevel) return;
    this.agent.state.thinkingLevel = clamped;
    this.sessionManager.appendThinkingLevelChange(clamped);
    this.#emit({ type: "thinking_level_changed", level: clamped });
  }
  cycleThinkingLevel() {
    if (!this.supportsThinking()) return undefined;
    const levels = this.getAvailableThinkingLevels();
    this.setThinkingLevel(levels[(levels.indexOf(this.thinkingLevel) + 1) % levels.length]);
    return this.thinkingLevel;
  }
  getAvailableThinkingLevels() {
    return require("pi-ai").getSupportedThinkingLevels(this.model);
  }
  supportsThinking() {
    return this.model?.reasoning === true;
  }
  setScopedModels(models) {
    this.scopedModels = [...models];
  }
  setSteeringMode(mode) {
    this.agent.steeringMode = mode;
  }
  setFollowUpMode(mode) {
    this.agent.followUpMode = mode;
  }
  setAutoCompactionEnabled(enabled) {
    this.settingsManager.applyOverrides({ compaction: { enabled } });
  }
  setAutoRetryEnabled(enabled) {
    this.settingsManager.applyOverrides({ retry: { enabled } });
  }
  abortRetry() {
    this.#retries = Number.MAX_SAFE_INTEGER;
  }

  async compact(instructions) {
    await this.abort();
    return this.#compact("manual", instructions);
  }
  async #compact(reason, instructions) {
    if (!this.model) throw new Error("No model selected.");
    const preparation = compaction.prepareCompaction(this.sessionManager.getBranch(), this.settingsManager.getCompactionSettings(this.model));
    if (!preparation) throw new Error("Nothing to compact (session too small)");
    this.#compacting = new AbortController();
    this.#emit({ type: "compaction_start", reason });
    const end = { type: "compaction_end", reason, result: undefined, aborted: false, willRetry: false };
    try {
      const result = await compaction.compact(preparation, this.model, undefined, undefined, instructions, this.#compacting.signal, this.thinkingLevel, this.agent.streamFunction);
      this.sessionManager.appendCompaction(result.summary, result.firstKeptEntryId, result.tokensBefore, result.details, false, result.usage);
      this.#reread();
      this.#emit({ ...end, result });
      return result;
    } catch (error) {
      const aborted = this.#compacting.signal.aborted;
      this.#emit({ ...end, aborted, errorMessage: aborted ? undefined : owners.text(error) });
      throw error;
    } finally {
      this.#compacting = null;
    }
  }
  abortCompaction() {
    this.#compacting?.abort();
  }
  abortBranchSummary() {
    this.#compacting?.abort();
  }

  // Takes the messages from the session, below the same system prompt.
  #reread() {
    const prompt = this.systemPrompt;
    this.agent.state.messages = this.sessionManager.buildSessionContext().messages.filter(({ role }) => role !== "system");
    this.agent.state.systemPrompt = prompt;
  }

  async navigateTree(targetId, { summarize = false, customInstructions, replaceInstructions, label } = {}) {
    const target = this.sessionManager.getEntry(targetId);
    if (!target) throw new Error(`Entry ${targetId} not found`);
    const { entries } = compaction.collectEntriesForBranchSummary(this.sessionManager, this.sessionManager.getLeafId(), targetId);
    let summaryEntry;
    const isPrompt = target.type === "message" && target.message.role === "user";
    const leafId = isPrompt ? target.parentId : targetId;
    if (summarize && entries.length) {
      this.#compacting = new AbortController();
      const result = await compaction.generateBranchSummary(entries, { model: this.model, signal: this.#compacting.signal, customInstructions, replaceInstructions, streamFn: this.agent.streamFunction }).finally(() => (this.#compacting = null));
      if (result.aborted) return { cancelled: true, aborted: true };
      if (result.error) throw new Error(result.error);
      const { readFiles, modifiedFiles } = result;
      summaryEntry = this.sessionManager.getEntry(this.sessionManager.branchWithSummary(leafId, result.summary, { readFiles, modifiedFiles }, false, result.usage));
    } else if (leafId === null) this.sessionManager.resetLeaf();
    else this.sessionManager.branch(leafId);
    if (label) this.sessionManager.appendLabelChange(targetId, label);
    this.#reread();
    return { cancelled: false, editorText: isPrompt ? textOf(target.message.content) : undefined, summaryEntry };
  }

  async executeBash(command, onChunk, { excludeFromContext, operations } = {}) {
    this.#shell = new AbortController();
    const tools = require("internal/native-tools");
    let output = "";
    const onData = (data) => {
      const text = require("buffer").Buffer.from(data).toString("utf8");
      output += text;
      onChunk?.(text);
    };
    try {
      const { exitCode } = await (operations ?? tools.createLocalBashOperations()).exec(command, this.cwd, { onData, signal: this.#shell.signal });
      return this.#shellEnded(command, { output, exitCode: exitCode ?? undefined, cancelled: false }, excludeFromContext);
    } catch (error) {
      if (!this.#shell?.signal.aborted) throw error;
      return this.#shellEnded(command, { output, exitCode: undefined, cancelled: true }, excludeFromContext);
    } finally {
      this.#shell = null;
    }
  }
  #shellEnded(command, result, excludeFromContext) {
    const cut = require("internal/truncate").truncateTail(result.output);
    const whole = { ...result, output: cut.content, truncated: cut.truncated };
    this.recordBashResult(command, whole, { excludeFromContext });
    return whole;
  }
  recordBashResult(command, result, { excludeFromContext } = {}) {
    const message = { role: "bashExecution", command, ...result, excludeFromContext, timestamp: Date.now() };
    this.agent.state.messages.push(message);
    this.sessionManager.appendMessage(message);
  }
  abortBash() {
    this.#shell?.abort();
  }

  setSessionName(name) {
    this.sessionManager.appendSessionInfo(name);
    this.#emit({ type: "session_info_changed", name: this.sessionName });
  }
  getUserMessagesForForking() {
    const prompts = this.sessionManager.getEntries().filter((entry) => entry.type === "message" && entry.message.role === "user");
    return prompts.map((entry) => ({ entryId: entry.id, text: textOf(entry.message.content) })).filter(({ text }) => text);
  }
  getSessionStats() {
    const of = (role) => this.messages.filter((message) => message.role === role);
    const answers = of("assistant");
    const sum = (get) => answers.reduce((total, { usage }) => total + (usage ? (get(usage) ?? 0) : 0), 0);
    const tokens = { input: sum((usage) => usage.input), output: sum((usage) => usage.output), cacheRead: sum((usage) => usage.cacheRead), cacheWrite: sum((usage) => usage.cacheWrite) };
    const toolCalls = answers.reduce((total, { content }) => total + content.filter(({ type }) => type === "toolCall").length, 0);
    return {
      sessionFile: this.sessionFile, sessionId: this.sessionId, userMessages: of("user").length, assistantMessages: answers.length, toolCalls, toolResults: of("toolResult").length, totalMessages: this.messages.length,
      tokens: { ...tokens, total: tokens.input + tokens.output + tokens.cacheRead + tokens.cacheWrite }, cost: sum((usage) => usage.cost?.total), contextUsage: this.getContextUsage(),
    };
  }
  getContextUsage() {
    const contextWindow = this.model?.contextWindow ?? 0;
    if (!contextWindow) return undefined;
    const { tokens } = compaction.estimateContextTokens(this.messages);
    return { tokens, contextWindow, percent: (tokens / contextWindow) * 100 };
  }
  getLastAssistantText() {
    const last = this.messages.findLast((message) => message.role === "assistant" && !(message.stopReason === "aborted" && !message.content.length));
    return last ? textOf(last.content).trim() || undefined : undefined;
  }
  exportToJsonl(file) {
    const name = require("path").resolve(this.cwd, file ?? `session-${this.sessionId}.jsonl`);
    const lines = [this.sessionManager.getHeader(), ...this.sessionManager.getBranch()].map((entry) => `${JSON.stringify(entry)}\n`);
    require("fs").writeFileSync(name, lines.join(""));
    return name;
  }
  async exportToHtml() {
    throw owners.unavailable("AgentSession.exportToHtml", 'is not available in pith: use exportToJsonl and "pith --export"');
  }
  hasExtensionHandlers(type) {
    return this.#extensions.some((ext) => ext.handlers.get(type)?.length > 0);
  }
}

module.exports = { AgentSession, DEFAULT_TOOLS, current };
