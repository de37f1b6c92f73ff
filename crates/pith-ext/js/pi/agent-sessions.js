// Makes agent sessions for extensions, see internal/agent-session.

const state = require("internal/state");
const { Agent } = require("internal/agent");
const { AgentSession, DEFAULT_TOOLS, current } = require("internal/agent-session");
const { convertToLlm, textOf } = require("internal/transcript");

// The model of the session around it comes first, then the default of the settings, then any that can be used.
function chooseModel(options, settings, runtime, saved) {
  const named = (provider, id) => (provider && id ? runtime.getModel(provider, id) : undefined);
  return options.model ?? named(saved?.provider, saved?.modelId) ?? current().model ?? named(settings.getDefaultProvider(), settings.getDefaultModel()) ?? runtime.getAvailableSnapshot()[0];
}

async function createAgentSession(options = {}) {
  const { SessionManager } = require("internal/session-manager");
  const cwd = options.cwd ?? options.sessionManager?.getCwd?.() ?? state.config.cwd;
  const agentDir = options.agentDir ?? state.config.agentDir;
  const settingsManager = options.settingsManager ?? require("internal/settings-manager").SettingsManager.create(cwd, agentDir);
  const modelRuntime = options.modelRuntime ?? new (require("internal/model-runtime").ModelRuntime)();
  const sessionManager = options.sessionManager ?? SessionManager.create(cwd);
  const resourceLoader = options.resourceLoader ?? new (require("internal/resources").DefaultResourceLoader)({ cwd, agentDir, settingsManager: undefined });
  const before = sessionManager.buildSessionContext();
  const model = chooseModel(options, settingsManager, modelRuntime, before.model);
  const isNew = before.messages.length === 0;
  const wanted = options.thinkingLevel ?? (isNew ? undefined : before.thinkingLevel) ?? settingsManager.getDefaultThinkingLevel() ?? "medium";
  const thinkingLevel = model ? require("pi-ai").clampThinkingLevel(model, wanted) : "off";
  const agent = new Agent({
    initialState: { model, thinkingLevel, tools: [], messages: before.messages },
    convertToLlm,
    streamFn: (...request) => modelRuntime.streamSimple(...request),
    sessionId: sessionManager.getSessionId(),
    steeringMode: settingsManager.getSteeringMode(),
    followUpMode: settingsManager.getFollowUpMode(),
  });
  if (isNew) {
    if (model) sessionManager.appendModelChange(model.provider, model.id);
    sessionManager.appendThinkingLevelChange(thinkingLevel);
  }
  // Older versions took the tools themselves.
  const given = options.tools?.filter((tool) => typeof tool === "object") ?? [];
  const named = options.tools?.map((tool) => tool.name ?? tool);
  const none = options.noTools === "all" ? [] : undefined;
  const session = new AgentSession({
    agent, sessionManager, settingsManager, cwd, resourceLoader, modelRuntime,
    scopedModels: options.scopedModels, customTools: [...given, ...(options.customTools ?? [])],
    allowedToolNames: named ? [...named, ...(given.length ? (options.customTools ?? []).map(({ name }) => name) : [])] : none,
    excludedToolNames: options.excludeTools,
    initialActiveToolNames: named ?? (options.noTools ? [] : (settingsManager.getDefaultTools() ?? DEFAULT_TOOLS)),
  });
  return { session, extensionsResult: resourceLoader.getExtensions(), modelFallbackMessage: model ? undefined : "No models available. Set an API key or sign in first." };
}

async function createAgentSessionServices({ cwd, agentDir = state.config.agentDir, settingsManager, modelRuntime, resourceLoaderOptions = {} }) {
  const { DefaultResourceLoader } = require("internal/resources");
  const resourceLoader = new DefaultResourceLoader({ ...resourceLoaderOptions, cwd, agentDir, settingsManager });
  await resourceLoader.reload();
  return {
    cwd, agentDir, resourceLoader, diagnostics: [],
    settingsManager: settingsManager ?? require("internal/settings-manager").SettingsManager.create(cwd, agentDir),
    modelRuntime: modelRuntime ?? new (require("internal/model-runtime").ModelRuntime)(),
  };
}

const createAgentSessionFromServices = ({ services, ...options }) => {
  const { cwd, agentDir, resourceLoader, settingsManager, modelRuntime } = services;
  return createAgentSession({ ...options, cwd, agentDir, resourceLoader, settingsManager, modelRuntime });
};

// A session that can be replaced by another one.
class AgentSessionRuntime {
  #create;
  #now;
  #rebind;
  constructor(session, services, create, diagnostics = [], modelFallbackMessage = undefined) {
    this.#create = create;
    this.#now = { session, services, diagnostics, modelFallbackMessage };
  }
  get session() {
    return this.#now.session;
  }
  get services() {
    return this.#now.services;
  }
  get diagnostics() {
    return this.#now.diagnostics;
  }
  get modelFallbackMessage() {
    return this.#now.modelFallbackMessage;
  }
  get cwd() {
    return this.services.cwd;
  }
  setRebindSession(rebind) {
    this.#rebind = rebind;
  }
  setBeforeSessionInvalidate(before) {
    this.beforeInvalidate = before;
  }
  async #replace(sessionManager, reason) {
    const previousSessionFile = this.session.sessionFile;
    await this.session.abort();
    this.beforeInvalidate?.();
    this.session.dispose();
    const { agentDir } = this.services;
    this.#now = await this.#create({ cwd: sessionManager.getCwd(), agentDir, sessionManager, sessionStartEvent: { type: "session_start", reason, previousSessionFile } });
    await this.#rebind?.(this.session);
    return { cancelled: false };
  }
  #manager() {
    return require("internal/session-manager").SessionManager;
  }
  switchSession(file, { cwdOverride } = {}) {
    return this.#replace(this.#manager().open(file, undefined, cwdOverride), "resume");
  }
  async newSession({ parentSession, setup } = {}) {
    const old = this.session.sessionManager;
    const manager = old.isPersisted() ? this.#manager().create(this.cwd, old.getSessionDir(), { parentSession }) : this.#manager().inMemory(this.cwd, { parentSession });
    await setup?.(manager);
    return this.#replace(manager, "new");
  }
  async fork(entryId, { position = "before" } = {}) {
    const manager = this.session.sessionManager;
    const entry = manager.getEntry(entryId);
    if (!entry) throw new Error("Invalid entry ID for forking");
    const leafId = position === "at" ? entry.id : entry.parentId;
    const selectedText = position === "before" && entry.type === "message" ? textOf(entry.message.content) : undefined;
    if (leafId) manager.createBranchedSession(leafId);
    else manager.newSession({ parentSession: manager.getSessionFile() });
    return { ...(await this.#replace(manager, "fork")), selectedText };
  }
  importFromJsonl(file, cwdOverride) {
    return this.#replace(this.#manager().forkFrom(file, cwdOverride ?? this.cwd, this.session.sessionManager.getSessionDir() || undefined), "resume");
  }
  async dispose() {
    await this.session.abort();
    this.session.dispose();
  }
}

async function createAgentSessionRuntime(create, options) {
  const { session, services, diagnostics, modelFallbackMessage } = await create(options);
  return new AgentSessionRuntime(session, services, create, diagnostics, modelFallbackMessage);
}

module.exports = { AgentSession, AgentSessionRuntime, createAgentSession, createAgentSessionFromServices, createAgentSessionRuntime, createAgentSessionServices };
