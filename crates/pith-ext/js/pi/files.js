// SettingsManager and SessionManager, for reading files.

const owners = require("internal/owners");
const state = require("internal/state");

const readJson = (path) => {
  try {
    return JSON.parse(require("fs").readFileSync(path, "utf8").replace(/^\ufeff/, ""));
  } catch {
    // Missing and unreadable settings count as empty.
    return {};
  }
};

const merge = (base, over) => {
  const result = { ...base };
  for (const [key, value] of Object.entries(over)) {
    const both = [base[key], value].every((part) => part !== null && typeof part === "object" && !Array.isArray(part));
    result[key] = both ? { ...base[key], ...value } : value;
  }
  return result;
};

// Settings as they are in the files. Any `getSomeKey()` reads the key `someKey`.
function settings(global, project) {
  const overrides = {};
  const known = {
    getGlobalSettings: () => structuredClone(global),
    getProjectSettings: () => structuredClone(project),
    getSettings: () => merge(merge(global, project), overrides),
    applyOverrides: (more) => void Object.assign(overrides, more),
    reload: async () => {},
    flush: async () => {},
    drainErrors: () => [],
  };
  return new Proxy(known, {
    get(target, name) {
      if (name in target || typeof name !== "string") return target[name];
      const [, verb, key] = /^(get|is|set)([A-Z]\w*)$/.exec(name) ?? [];
      if (verb === "set") return () => {
        throw new Error(`SettingsManager.${name} is not available in pith: settings are read-only for extensions`);
      };
      return verb ? () => known.getSettings()[key[0].toLowerCase() + key.slice(1)] : undefined;
    },
  });
}

const SettingsManager = {
  create: (cwd = state.config.cwd, agentDir = state.config.agentDir) => {
    const { join } = require("path");
    return settings(readJson(join(agentDir, "settings.json")), readJson(join(cwd, state.config.configDirName, "settings.json")));
  },
  inMemory: (given = {}) => settings(given, {}),
};

// A session file, read once.
function open(path) {
  const session = require("internal/session");
  const text = require("fs").readFileSync(path, "utf8");
  const lines = text.split("\n").flatMap((line) => {
    try {
      return line.trim() ? [JSON.parse(line)] : [];
    } catch {
      return [];
    }
  });
  const header = lines.find((line) => line.type === "session") ?? null;
  const entries = lines.filter((line) => line.type !== "session" && line.id);
  const named = entries.findLast((entry) => entry.type === "session_info");
  const data = {
    sessionId: header?.id, sessionFile: path, sessionDir: require("path").dirname(path), cwd: header?.cwd, name: named?.name, leafId: entries.at(-1)?.id ?? null,
    header, entries, byId: new Map(entries.map((entry) => [entry.id, entry])),
  };
  return session.viewOf(() => data);
}

const missing = (name) => () => {
  throw new Error(`SessionManager.${name} is not available to extensions in pith`);
};

const SessionManager = {
  open,
  inMemory: () => require("internal/session").makeDraft([]),
  ...Object.fromEntries(["create", "continueRecent", "list", "listAll", "forkFrom"].map((name) => [name, missing(name)])),
};

const authFile = () => require("path").join(state.config.agentDir, "auth.json");

const readStoredCredential = (provider, path = authFile()) => {
  const found = readJson(path);
  return Object.hasOwn(found, provider) ? found[provider] : undefined;
};

// Credentials from `auth.json`; only the agent writes them.
class AuthStorage {
  constructor(read) {
    this.readAll = read;
    this.given = new Map();
    for (const name of ["set", "remove", "modify", "delete", "login", "logout"]) {
      this[name] = () => {
        throw owners.unavailable(`AuthStorage.${name}`, "is not available to extensions in pith: use \"pith auth\"");
      };
    }
  }
  static create(path = authFile()) {
    return new AuthStorage(() => readJson(path));
  }
  static inMemory(data = {}) {
    return new AuthStorage(() => data);
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
  setRuntimeApiKey(provider, key) {
    this.given.set(provider, key);
  }
  removeRuntimeApiKey(provider) {
    this.given.delete(provider);
  }
  async getApiKey(provider) {
    return this.given.get(provider) ?? (await require("internal/ops").ask("model_auth", { provider, model: null })).apiKey;
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

module.exports = { SettingsManager, SessionManager, AuthStorage, ModelRegistry, readStoredCredential };
