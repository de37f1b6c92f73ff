// Credentials from `auth.json`, and the registry of models.

const owners = require("internal/owners");
const state = require("internal/state");

const readJson = (path) => {
  try {
    return JSON.parse(require("fs").readFileSync(path, "utf8").replace(/^\ufeff/, ""));
  } catch {
    // A missing or unreadable file counts as empty.
    return {};
  }
};

const authFile = () => require("path").join(state.config.agentDir, "auth.json");

const readStoredCredential = (provider, path = authFile()) => {
  const found = readJson(path);
  return Object.hasOwn(found, provider) ? found[provider] : undefined;
};

// Where credentials are: `withLock` hands out the text and takes `{ result, next }`.
class InMemoryAuthStorageBackend {
  constructor(text) {
    this.text = text;
  }
  withLock(change) {
    const { result, next } = change(this.text);
    if (next !== undefined) this.text = next;
    return result;
  }
  async withLockAsync(change) {
    const { result, next } = await change(this.text);
    if (next !== undefined) this.text = next;
    return result;
  }
}

// The file belongs to the agent, which keeps tokens fresh in it: extensions read it.
class FileAuthStorageBackend {
  constructor(path = authFile()) {
    this.path = path;
  }
  #check({ result, next }) {
    if (next !== undefined) throw owners.unavailable("Writing credentials", 'is not available to extensions in pith: use "pith auth"');
    return result;
  }
  #text() {
    return require("fs").existsSync(this.path) ? require("fs").readFileSync(this.path, "utf8") : undefined;
  }
  withLock(change) {
    return this.#check(change(this.#text()));
  }
  async withLockAsync(change) {
    return this.#check(await change(this.#text()));
  }
}

// Credentials; those in `auth.json` are written by the agent only.
class AuthStorage {
  constructor(backend) {
    this.backend = backend;
    this.given = new Map();
    for (const name of ["login", "logout"]) {
      this[name] = () => {
        throw owners.unavailable(`AuthStorage.${name}`, 'is not available to extensions in pith: use "pith auth"');
      };
    }
  }
  static create(path = authFile()) {
    return new AuthStorage(new FileAuthStorageBackend(path));
  }
  static fromStorage(backend) {
    return new AuthStorage(backend);
  }
  static inMemory(data = {}) {
    return new AuthStorage(new InMemoryAuthStorageBackend(JSON.stringify(data)));
  }
  readAll() {
    return this.backend.withLock((text) => {
      try {
        return { result: text ? JSON.parse(text) : {} };
      } catch {
        return { result: {} };
      }
    });
  }
  set(provider, credential) {
    this.backend.withLock((text) => ({ next: JSON.stringify({ ...JSON.parse(text || "{}"), [provider]: credential }, null, 2) }));
  }
  remove(provider) {
    this.backend.withLock((text) => {
      const { [provider]: _, ...rest } = JSON.parse(text || "{}");
      return { next: JSON.stringify(rest, null, 2) };
    });
  }
  async modify(provider, change) {
    const next = await change(this.get(provider));
    if (next !== undefined) this.set(provider, next);
    return next ?? this.get(provider);
  }
  async delete(provider) {
    this.remove(provider);
  }
  getAll() {
    return { ...this.readAll() };
  }
  get(provider) {
    return this.getAll()[provider];
  }
  async read(provider) {
    return this.get(provider);
  }
  has(provider) {
    return this.get(provider) !== undefined;
  }
  hasAuth(provider) {
    return this.given.has(provider) || this.has(provider) || require("internal/ops").query("provider", { provider }).hasAuth === true;
  }
  list() {
    return Object.keys(this.getAll());
  }
  getAuthStatus(provider) {
    return { configured: this.hasAuth(provider), source: this.given.has(provider) ? "runtime" : this.has(provider) ? "stored" : undefined };
  }
  getOAuthProviders() {
    return require("pi-ai/oauth").getOAuthProviders();
  }
  setFallbackResolver(resolve) {
    this.fallback = resolve;
  }
  setRuntimeApiKey(provider, key) {
    this.given.set(provider, key);
  }
  removeRuntimeApiKey(provider) {
    this.given.delete(provider);
  }
  async getApiKey(provider) {
    return this.given.get(provider) ?? (await require("internal/ops").ask("model_auth", { provider, model: null })).apiKey ?? this.fallback?.(provider);
  }
  reload() {}
  drainErrors() {
    return [];
  }
}

// The agent's models; an extension has no others.
class ModelRegistry {
  constructor() {
    return require("internal/models").makeRegistry(owners.now(), () => {});
  }
  static create() {
    return new ModelRegistry();
  }
  static inMemory() {
    return new ModelRegistry();
  }
}

module.exports = { AuthStorage, FileAuthStorageBackend, InMemoryAuthStorageBackend, ModelRegistry, readStoredCredential };
