// `SettingsManager`: the settings files, with the defaults of keys that have one. Setters write the user's file.

const state = require("internal/state");
const owners = require("internal/owners");

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

const merge = (base, over) => {
  const result = { ...base };
  for (const [key, value] of Object.entries(over)) result[key] = isObject(base[key]) && isObject(value) ? { ...base[key], ...value } : value;
  return result;
};

// Accessors whose name is not that of their key: `name: [path, default]`.
const NAMED = {
  CompactionEnabled: ["compaction.enabled", true],
  CompactionReserveTokens: ["compaction.reserveTokens", 16384],
  CompactionKeepRecentTokens: ["compaction.keepRecentTokens", 20000],
  BranchSummarySkipPrompt: ["branchSummary.skipPrompt", false],
  RetryEnabled: ["retry.enabled", true],
  ThemeSetting: ["theme"],
  Theme: ["theme"],
  ExtensionPaths: ["extensions", []],
  SkillPaths: ["skills", []],
  PromptTemplatePaths: ["prompts", []],
  ThemePaths: ["themes", []],
  ShowImages: ["terminal.showImages", true],
  ImageWidthCells: ["terminal.imageWidthCells", 60],
  ClearOnShrink: ["terminal.clearOnShrink", false],
  ShowTerminalProgress: ["terminal.showTerminalProgress", false],
  ImageAutoResize: ["images.autoResize", true],
  BlockImages: ["images.blockImages", false],
  CodeBlockIndent: ["markdown.codeBlockIndent", "  "],
  CacheWarmingMode: ["cacheWarming", "streaming"],
};

// Defaults of keys whose accessor is named after them.
const DEFAULTS = {
  steeringMode: "one-at-a-time", followUpMode: "one-at-a-time", transport: "auto", packages: [], hideThinkingBlock: false, showCacheMissNotices: false, quietStartup: false, defaultProjectTrust: "ask", collapseChangelog: false,
  enableInstallTelemetry: true, enableAnalytics: false, enableSkillCommands: true, doubleEscapeAction: "tree", treeFilterMode: "default", showHardwareCursor: false, editorPaddingX: 0, autocompleteMaxVisible: 5, httpIdleTimeoutMs: 300000, warnings: {},
};

const fieldOf = (name) => {
  if (Object.hasOwn(NAMED, name)) return { path: NAMED[name][0].split("."), fallback: NAMED[name][1] };
  const key = name[0].toLowerCase() + name.slice(1);
  return { path: [key], fallback: DEFAULTS[key] };
};

const read = (from, path) => path.reduce((value, key) => (isObject(value) ? value[key] : undefined), from);

// A settings file, replaced in one step when it is written.
class SettingsFile {
  constructor(path) {
    this.path = path;
  }
  read() {
    const fs = require("fs");
    if (!fs.existsSync(this.path)) return {};
    const value = JSON.parse(fs.readFileSync(this.path, "utf8").replace(/^\ufeff/, ""));
    return isObject(value) ? value : {};
  }
  write(value) {
    const fs = require("fs");
    const next = `${this.path}.${process.pid}.tmp`;
    fs.mkdirSync(require("path").dirname(this.path), { recursive: true });
    fs.writeFileSync(next, `${JSON.stringify(value, null, 2)}\n`);
    fs.renameSync(next, this.path);
  }
}

class MemoryFile {
  constructor(value = {}) {
    this.value = structuredClone(value);
  }
  read() {
    return this.value;
  }
  write(value) {
    this.value = value;
  }
}

class SettingsManager {
  #files;
  #values = { global: {}, project: {} };
  #overrides = {};
  #errors = [];
  #isTrusted;

  constructor(files, { projectTrusted = true } = {}) {
    this.#files = files;
    this.#isTrusted = projectTrusted;
    this.#load();
    return accessors(this);
  }

  static create(cwd = state.config.cwd, agentDir = state.config.agentDir, options) {
    const { join } = require("path");
    return new SettingsManager({ global: new SettingsFile(join(agentDir, "settings.json")), project: new SettingsFile(join(cwd, state.config.configDirName, "settings.json")) }, options);
  }
  static inMemory(settings = {}, options) {
    return new SettingsManager({ global: new MemoryFile(settings), project: new MemoryFile() }, options);
  }
  // A storage hands out the text of a scope and takes the new one.
  static fromStorage(storage, options) {
    const file = (scope) => ({
      read: () => {
        let text;
        storage.withLock(scope, (current) => void (text = current));
        return text ? JSON.parse(text) : {};
      },
      write: (value) => storage.withLock(scope, () => JSON.stringify(value, null, 2)),
    });
    return new SettingsManager({ global: file("global"), project: file("project") }, options);
  }

  #load() {
    for (const scope of ["global", "project"]) {
      try {
        this.#values[scope] = scope === "project" && !this.#isTrusted ? {} : structuredClone(this.#files[scope].read());
      } catch (error) {
        // What was known before still counts.
        this.#errors.push({ scope, error: error instanceof Error ? error : new Error(owners.text(error)) });
      }
    }
  }

  getGlobalSettings() {
    return structuredClone(this.#values.global);
  }
  getProjectSettings() {
    return structuredClone(this.#values.project);
  }
  getSettings() {
    return merge(merge(this.#values.global, this.#values.project), this.#overrides);
  }
  isProjectTrusted() {
    return this.#isTrusted;
  }
  setProjectTrusted(trusted) {
    this.#isTrusted = trusted;
    this.#load();
  }
  applyOverrides(overrides) {
    this.#overrides = merge(this.#overrides, overrides);
  }
  async reload() {
    this.#load();
  }
  async flush() {}
  drainErrors() {
    return this.#errors.splice(0);
  }

  // Changes one key in the file as it is now, so that changes of others are kept.
  change(scope, path, value) {
    const put = (settings) => {
      const inner = path.slice(0, -1).reduce((at, key) => (at[key] = isObject(at[key]) ? { ...at[key] } : {}), settings);
      if (value === undefined) delete inner[path.at(-1)];
      else inner[path.at(-1)] = value;
      return settings;
    };
    put(this.#values[scope]);
    try {
      this.#files[scope].write(put({ ...this.#files[scope].read() }));
    } catch (error) {
      this.#errors.push({ scope, error: error instanceof Error ? error : new Error(owners.text(error)) });
    }
  }

  setDefaultModelAndProvider(provider, modelId) {
    this.change("global", ["defaultProvider"], provider);
    this.change("global", ["defaultModel"], modelId);
  }
  getAllModelThinkingLevels() {
    return { ...this.getSettings().modelThinkingLevels };
  }
  getModelThinkingLevel(provider, modelId) {
    return this.getAllModelThinkingLevels()[`${provider}/${modelId}`];
  }
  setModelThinkingLevel(provider, modelId, level) {
    this.change("global", ["modelThinkingLevels", `${provider}/${modelId}`], level);
  }
  removeModelThinkingLevel(provider, modelId) {
    this.change("global", ["modelThinkingLevels", `${provider}/${modelId}`], undefined);
  }
  getCompactionSettings(model) {
    const { compaction = {} } = this.getSettings();
    const over = compaction.modelOverrides?.[`${model?.provider}/${model?.id}`] ?? {};
    const number = (key, fallback) => over[key] ?? compaction[key] ?? fallback;
    return { enabled: compaction.enabled ?? true, reserveTokens: number("reserveTokens", 16384), keepRecentTokens: number("keepRecentTokens", 20000) };
  }
  getBranchSummarySettings() {
    return { reserveTokens: 16384, skipPrompt: false, ...this.getSettings().branchSummary };
  }
  getRetrySettings() {
    const { enabled = true, maxRetries = 3, baseDelayMs = 2000, maxAgentDelayMs = 60000 } = this.getSettings().retry ?? {};
    return { enabled, maxRetries, baseDelayMs, maxAgentDelayMs };
  }
  getProviderRetrySettings() {
    const { timeoutMs, maxRetries, maxRetryDelayMs = 60000 } = this.getSettings().retry?.provider ?? {};
    return { timeoutMs, maxRetries, maxRetryDelayMs };
  }
  getExternalEditorCommand() {
    return this.getSettings().externalEditor || process.env.VISUAL || process.env.EDITOR || "nano";
  }
}

// Any other `getSomeKey()` reads the key `someKey`, and `setSomeKey(value)` and `setProjectSomeKey(value)` write it.
const accessors = (manager) =>
  new Proxy(manager, {
    get(target, name) {
      const own = target[name];
      if (typeof own === "function") return own.bind(target);
      const [, verb, project, key] = /^(get|is|set)(Project)?([A-Z]\w*)$/.exec(String(name)) ?? [];
      if (own !== undefined || !verb) return own;
      const { path, fallback } = fieldOf(key);
      if (verb === "set") return (value) => target.change(project ? "project" : "global", path, value);
      return () => read(target.getSettings(), path) ?? structuredClone(fallback);
    },
  });

module.exports = { SettingsManager };
