// What extensions build a provider from: models, an API, a way to find the key.

class ModelsError extends Error {
  constructor(code, message, options) {
    super(message, options);
    this.name = "ModelsError";
    this.code = code;
  }
}

class InMemoryCredentialStore {
  #known = new Map();
  #last = Promise.resolve(); // changes happen one after the other
  async read(provider) {
    return this.#known.get(provider);
  }
  async list() {
    return [...this.#known].map(([providerId, { type }]) => ({ providerId, type }));
  }
  #queue(work) {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }
  modify(provider, change) {
    return this.#queue(async () => {
      const now = this.#known.get(provider);
      const next = await change(now);
      if (next !== undefined) this.#known.set(provider, next);
      return next ?? now;
    });
  }
  delete(provider) {
    return this.#queue(async () => void this.#known.delete(provider));
  }
}

class InMemoryModelsStore {
  #known = new Map();
  async read(provider) {
    return structuredClone(this.#known.get(provider));
  }
  async write(provider, entry) {
    this.#known.set(provider, structuredClone(entry));
  }
  async delete(provider) {
    this.#known.delete(provider);
  }
}

const envApiKeyAuth = (name, variables) => ({
  name,
  login: async (interaction) => ({ type: "api_key", key: await interaction.prompt({ type: "secret", message: `Enter ${name}` }) }),
  resolve: async ({ ctx, credential }) => {
    if (credential?.key) return { auth: { apiKey: credential.key }, env: credential.env, source: "stored credential" };
    for (const variable of variables) {
      const apiKey = await ctx.env(variable);
      if (apiKey) return { auth: { apiKey }, source: variable };
    }
    return undefined;
  },
});

const defaultProviderAuthContext = () => ({
  env: async (name) => process.env[name],
  fileExists: async (path) => require("fs").existsSync(path.replace(/^~(?=\/|$)/, require("os").homedir())),
});

// A provider object for `pi.registerProvider`. `api` is one API, or one per name.
function createProvider({ id, name = id, baseUrl, headers, auth, models, api, fetchModels, filterModels }) {
  let fetched = [];
  const current = () => [...models.filter((model) => !fetched.some((newer) => newer.id === model.id)), ...fetched];
  const call = (method) => (model, ...request) => {
    const found = typeof api.stream === "function" ? api : api[model.api];
    if (!found) throw new ModelsError("stream", `Provider ${id} has no API implementation for "${model.api}"`);
    return found[method](model, ...request);
  };
  const refresh = async (context) => {
    fetched = await fetchModels(context);
    return current();
  };
  return { id, name, baseUrl, headers, auth, getModels: current, filterModels, stream: call("stream"), streamSimple: call("streamSimple"), ...(fetchModels ? { refreshModels: refresh } : {}) };
}

module.exports = { ModelsError, InMemoryCredentialStore, InMemoryModelsStore, envApiKeyAuth, defaultProviderAuthContext, createProvider };
