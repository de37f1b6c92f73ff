// Loads extensions: evaluates the file, runs its factory, keeps what it registered.

const owners = require("internal/owners");
const ops = require("internal/ops");
const runs = require("internal/runs");
const state = require("internal/state");
const api = require("internal/api");
const { methods } = require("internal/calls");
const { Modules } = require("internal/loader");

class Extension {
  // `modules` are those of its predecessor in the generation before, if they are kept.
  constructor(generation, { path, file, sourceInfo }, modules) {
    this.generation = generation;
    this.path = path;
    this.file = file;
    this.sourceInfo = sourceInfo;
    this.modules = modules?.moveTo(this) ?? new Modules(this);
    this.handlers = new Map();
    this.tools = new Map();
    this.commands = new Map();
    this.flags = new Map();
    this.flagDefaults = new Map();
    this.shortcuts = new Map();
    this.mcpServers = new Map();
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

function loadOne(generation, source, modules, done) {
  const ext = new Extension(generation, source, modules);
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
//
// In a fresh generation factories run again. The modules stay evaluated, and with them what they hold in variables,
// unless they are to be read again (`forget`) or the directory is another one.
methods.load = (call, { sources, config, fresh, forget }) => {
  const isElsewhere = config?.cwd !== undefined && config.cwd !== state.config.cwd;
  Object.assign(state.config, config ?? {});
  if (fresh) goStale();
  if (forget) host.forgetModules();
  const before = fresh ? state.extensions() : [];
  const kept = new Map(forget || isElsewhere ? [] : before.map((ext) => [ext.path, ext.modules]));
  // New instances use the plain names of their files in stack traces.
  before.filter((ext) => !kept.has(ext.path)).forEach(owners.forget);
  const generation = fresh ? state.nextGeneration() : state.generation;
  if (fresh) state.dropProviders?.();
  const present = new Map(generation.extensions.map((ext) => [ext.path, ext]));
  const loaded = [];
  const errors = [];
  const next = (index) => {
    if (index === sources.length) return finish();
    const { path } = sources[index];
    if (present.has(path)) {
      loaded.push(present.get(path));
      return next(index + 1);
    }
    loadOne(generation, sources[index], kept.get(path), (ext, error, stack) => {
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

// Returns promises of providers that are still looking for their keys.
const flushProviders = (ext) => ext.providers.splice(0).flatMap((registration) => require("internal/providers").apply(registration) ?? []);

// How long a start waits for the keys of providers.
const KEYS_MS = 2000;

// Called when the session exists: actions work from now on.
methods.bind = (call, { config, flagValues }) => {
  Object.assign(state.config, config ?? {});
  const { generation } = state;
  for (const [name, value] of Object.entries(flagValues ?? {})) generation.flagValues.set(name, value);
  generation.phase = "bound";
  const waits = generation.extensions.flatMap(flushProviders);
  api.publish();
  const done = () => {
    call.reply(null);
    require("internal/events").bound();
  };
  if (!waits.length) return done();
  const limit = new Promise((resolve) => require("internal/timers").setTimeout(resolve, KEYS_MS));
  Promise.race([Promise.all(waits), limit]).then(done);
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
