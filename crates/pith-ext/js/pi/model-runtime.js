// `ModelRuntime`: the agent's models and credentials. An extension has no others.

const ops = require("internal/ops");
const owners = require("internal/owners");

const keys = new Map(); // keys that an extension set for this process, by provider

const provider = (id) => {
  const own = require("internal/providers").find(id);
  const { name } = ops.query("provider", { provider: id });
  return { id, name: name ?? id, getModels: () => all(id), ...(own ?? {}) };
};

const all = (id) => ops.query("models", { available: false }).filter((model) => id === undefined || model.provider === id);
const available = (id) => ops.query("models", { available: true }).filter((model) => id === undefined || model.provider === id);

const withKey = (model, options = {}) => (options.apiKey === undefined && keys.has(model?.provider) ? { ...options, apiKey: keys.get(model.provider) } : options);

class ModelRuntime {
  static async create() {
    return new ModelRuntime();
  }
  getProviders() {
    return [...new Set(all().map((model) => model.provider))].map(provider);
  }
  getProvider(id) {
    return all(id).length || require("internal/providers").find(id) ? provider(id) : undefined;
  }
  getModels(id) {
    return all(id);
  }
  getModel(id, modelId) {
    return ops.query("model", { provider: id, id: modelId }) ?? undefined;
  }
  async getAvailable(id) {
    return available(id);
  }
  getAvailableSnapshot() {
    return available();
  }
  getError() {
    return ops.query("provider", { provider: null }).error ?? undefined;
  }
  async refresh() {
    await ops.ask("refresh_models");
  }
  async reloadConfig() {
    await ops.ask("refresh_models");
  }

  async checkAuth(id) {
    const found = ops.query("provider", { provider: id });
    return keys.has(id) || found.hasAuth === true ? { configured: true, source: found.source, label: found.label } : undefined;
  }
  hasConfiguredAuth(given) {
    const id = typeof given === "string" ? given : given?.provider;
    return keys.has(id) || ops.query("provider", { provider: id }).hasAuth === true;
  }
  isUsingOAuth(given) {
    return ops.query("provider", { provider: typeof given === "string" ? given : given?.provider }).isOAuth === true;
  }
  getProviderAuthStatus(id) {
    const found = ops.query("provider", { provider: id });
    return { configured: keys.has(id) || found.hasAuth === true, source: keys.has(id) ? "runtime" : found.source, label: found.label };
  }
  async getAuth(given) {
    const model = typeof given === "string" ? null : given;
    const id = model?.provider ?? given;
    if (keys.has(id)) return { auth: { apiKey: keys.get(id) }, source: "runtime" };
    const found = await ops.ask("model_auth", { provider: id, model });
    return found.ok ? { auth: { apiKey: found.apiKey, headers: found.headers, baseUrl: found.baseUrl } } : undefined;
  }
  async getApiKeyAndHeaders(model) {
    const found = await ops.ask("model_auth", { provider: model?.provider, model });
    return keys.has(model?.provider) ? { ...found, ok: true, error: undefined, apiKey: keys.get(model.provider) } : found;
  }
  async setRuntimeApiKey(id, key) {
    keys.set(id, key);
  }
  async removeRuntimeApiKey(id) {
    keys.delete(id);
  }
  async readCredential(id) {
    return require("internal/files").readStoredCredential(id);
  }
  async listCredentials() {
    const stored = require("internal/files").AuthStorage.create().getAll();
    return Object.entries(stored).map(([providerId, { type }]) => ({ providerId, type }));
  }
  async login() {
    throw owners.unavailable("ModelRuntime.login", 'is not available to extensions in pith: use "pith auth"');
  }
  async logout() {
    throw owners.unavailable("ModelRuntime.logout", 'is not available to extensions in pith: use "pith auth"');
  }

  registerProvider(...registration) {
    require("internal/providers").register(owners.now(), ...registration);
  }
  unregisterProvider(name) {
    require("internal/providers").unregister(owners.now(), name);
  }
  getRegisteredProviderConfig(id) {
    const found = require("internal/providers").find(id);
    return found && typeof found.stream !== "function" ? found : undefined;
  }
  getRegisteredNativeProvider(id) {
    const found = require("internal/providers").find(id);
    return found && typeof found.stream === "function" ? found : undefined;
  }
  getRegisteredProviderIds() {
    return require("internal/providers").names();
  }

  stream(model, context, options) {
    return require("internal/models").route(model, context, withKey(model, options));
  }
  streamSimple(model, context, options) {
    return require("internal/models").route(model, context, withKey(model, options));
  }
  async complete(model, context, options) {
    return (await this.stream(model, context, options)).result();
  }
  async completeSimple(model, context, options) {
    return (await this.streamSimple(model, context, options)).result();
  }
}

class CredentialSynchronizationError extends Error {
  constructor(operation, providerId, options) {
    super(`Credentials of ${providerId} could not be brought up to date (${operation})`, options);
    this.name = "CredentialSynchronizationError";
    Object.assign(this, { operation, providerId });
  }
}

const LEVELS = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];

// "provider/model:level"; parts may be left out.
function split(pattern) {
  const at = pattern.lastIndexOf(":");
  const level = at > 0 && LEVELS.includes(pattern.slice(at + 1)) ? pattern.slice(at + 1) : undefined;
  return { name: level ? pattern.slice(0, at) : pattern, level };
}

const matches = (name) => {
  const source = name.toLowerCase().split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replace(/\\\?/g, ".")).join(".*");
  const whole = new RegExp(`^${source}$`);
  return (model) => [`${model.provider}/${model.id}`, model.id].some((text) => whole.test(text.toLowerCase()));
};

function findModels(name, models) {
  const exact = models.filter(matches(name));
  if (exact.length || name.includes("*")) return exact;
  const part = name.toLowerCase();
  const close = models.filter((model) => `${model.provider}/${model.id}`.toLowerCase().includes(part) || model.name?.toLowerCase().includes(part));
  // Undated names first: they stand for the newest of their kind.
  return close.sort((a, b) => /\d{8}$/.test(a.id) - /\d{8}$/.test(b.id) || b.id.localeCompare(a.id)).slice(0, 1);
}

async function resolveModelScopeWithDiagnostics(patterns, runtime) {
  const models = [...(await runtime.getAvailable())];
  const scopedModels = [];
  const diagnostics = [];
  for (const pattern of patterns) {
    const { name, level } = split(pattern);
    const found = findModels(name, models);
    if (!found.length) diagnostics.push({ type: "warning", code: "no-match", message: `No models match pattern "${pattern}"`, pattern });
    for (const model of found) {
      if (!scopedModels.some((known) => known.model.id === model.id && known.model.provider === model.provider)) scopedModels.push({ model, ...(level ? { thinkingLevel: level } : {}) });
    }
  }
  return { scopedModels, diagnostics };
}

function resolveCliModel({ cliProvider, cliModel, cliThinking, modelRuntime, modelRegistry }) {
  if (!cliModel) return { model: undefined, warning: undefined, error: undefined };
  const models = (modelRuntime ? modelRuntime.getModels() : modelRegistry.getAll()).filter((model) => !cliProvider || model.provider === cliProvider);
  const { name, level } = split(cliModel);
  const [model] = findModels(cliProvider && name.startsWith(`${cliProvider}/`) ? name.slice(cliProvider.length + 1) : name, models);
  return { model, thinkingLevel: cliThinking ?? level, warning: undefined, error: model ? undefined : `Model "${cliModel}" not found. Use --list-models to see available models.` };
}

module.exports = { ModelRuntime, CredentialSynchronizationError, resolveModelScopeWithDiagnostics, resolveCliModel };
