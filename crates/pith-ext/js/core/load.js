// Loads extensions: evaluates the file, runs its factory, keeps what it registered.

const owners = require("internal/owners");
const ops = require("internal/ops");
const runs = require("internal/runs");
const state = require("internal/state");
const api = require("internal/api");
const { methods } = require("internal/calls");
const { Modules } = require("internal/loader");

class Extension {
  constructor(generation, { path, file, sourceInfo }) {
    this.generation = generation;
    this.path = path;
    this.file = file;
    this.sourceInfo = sourceInfo;
    this.modules = new Modules(this);
    this.handlers = new Map();
    this.tools = new Map();
    this.commands = new Map();
    this.flags = new Map();
    this.flagDefaults = new Map();
    this.shortcuts = new Map();
    this.renderers = [];
    this.providers = []; // registrations queued while loading
    this.isLoading = true;
    this.isFailed = false;
    this.isDisabled = false;
    this.context = null;
    // State of runs.js and owners.js.
    this.runs = new Set();
    this.toolCallDecisions = new Set(); // calls of its `tool_call` handlers that have not decided yet
    this.strikes = 0;
    this.waits = 0;
    this.waitsSince = 0;
    this.waited = 0;
  }
}

async function evaluate(ext) {
  const record = ext.modules.record(host.realpath(ext.file));
  await ext.modules.evaluate(record);
  const namespace = ext.modules.namespace(record);
  const factory = typeof namespace.default === "function" ? namespace.default : namespace.default?.default;
  if (typeof factory !== "function") throw new Error(`Extension does not export a valid factory function: ${ext.path}`);
  await factory(api.makeApi(ext));
}

function loadOne(generation, source, done) {
  const ext = new Extension(generation, source);
  const settle = (outcome) => {
    ext.isLoading = false;
    if (outcome.ok) {
      for (const [name, value] of ext.flagDefaults) if (!generation.flagValues.has(name)) generation.flagValues.set(name, value);
      return done(ext, null);
    }
    ext.isFailed = true;
    ext.providers = [];
    for (const listeners of generation.bus.values()) for (const entry of listeners) if (entry.ext === ext) listeners.delete(entry);
    const text = outcome.isTimeout ? `its factory did not finish within ${state.limits.factoryMs / 1000} s` : owners.text(outcome.error);
    const stack = owners.stackOf(outcome.error);
    done(ext, `Failed to load extension "${ext.path}": ${text}`, stack);
  };
  runs.start(ext, () => evaluate(ext), settle, state.limits.factoryMs);
}

// If two extensions register the same name, the first keeps it and the second gets an error.
function conflicts(generation) {
  const errors = [];
  const check = (kind, mark) => {
    const first = new Map();
    for (const ext of generation.extensions) {
      for (const name of ext[kind].keys()) {
        const other = first.get(name);
        if (!other) first.set(name, ext);
        else errors.push({ path: ext.path, error: `Failed to load extension "${ext.path}": ${mark(name)} conflicts with ${other.path}` });
      }
    }
  };
  check("tools", (name) => `Tool "${name}"`);
  check("flags", (name) => `Flag "--${name}"`);
  return errors;
}

// Loads sources in order. Loaded extensions are kept, unless a fresh generation is requested.
methods.load = (call, { sources, config, fresh, forget }) => {
  Object.assign(state.config, config ?? {});
  if (fresh) goStale();
  if (forget) host.forgetModules();
  // New instances use the plain names of their files in stack traces.
  if (fresh) state.extensions().forEach(owners.forget);
  const generation = fresh ? state.nextGeneration() : state.generation;
  if (fresh) state.dropProviders?.();
  const present = new Map(generation.extensions.map((ext) => [ext.path, ext]));
  const loaded = [];
  const errors = [];
  const next = (index) => {
    if (index === sources.length) return finish();
    const kept = present.get(sources[index].path);
    if (kept) {
      loaded.push(kept);
      return next(index + 1);
    }
    loadOne(generation, sources[index], (ext, error, stack) => {
      if (error) errors.push({ path: ext.path, error, stack });
      else loaded.push(ext);
      next(index + 1);
    });
  };
  const finish = () => {
    generation.extensions = loaded;
    errors.push(...conflicts(generation));
    if (generation.phase === "bound") loaded.forEach(flushProviders);
    api.publish();
    const extensions = loaded.map((ext) => ({
      path: ext.path,
      sourceInfo: ext.sourceInfo,
      tools: [...ext.tools.keys()],
      commands: [...ext.commands.keys()],
      flags: [...ext.flags.keys()],
      events: [...ext.handlers.keys()],
      renderers: ext.renderers.map(({ kind, customType }) => ({ kind, customType })),
      providers: [...new Set(ext.providers.map(({ name }) => name))],
    }));
    call.reply({ extensions, errors });
  };
  next(0);
};

const flushProviders = (ext) => {
  for (const registration of ext.providers.splice(0)) require("internal/providers").apply(registration);
};

// Called when the session exists: actions work from now on.
methods.bind = (call, { config, flagValues }) => {
  Object.assign(state.config, config ?? {});
  const { generation } = state;
  for (const [name, value] of Object.entries(flagValues ?? {})) generation.flagValues.set(name, value);
  generation.phase = "bound";
  generation.extensions.forEach(flushProviders);
  api.publish();
  call.reply(null);
  require("internal/events").bound();
};

function goStale() {
  const { generation } = state;
  if (generation.phase === "stale") return;
  generation.phase = "stale";
  require("internal/ui").cancelAll();
}

methods.stale = (call) => {
  goStale();
  call.reply(null);
};

methods.set_config = (call, config) => {
  Object.assign(state.config, config);
  call.reply(null);
};

methods.memory = (call) => call.reply(host.memory());

exports.send = ops.send;
