// `ctx`: what handlers, tools and commands get to read and act on the session.

const owners = require("internal/owners");
const ops = require("internal/ops");
const state = require("internal/state");
const { assertActive } = require("internal/api");
const { AbortController } = require("internal/abort");

// The run's abort signal, from `agent_start` to `agent_end`.
let run = null;

require("internal/calls").methods.run = (call, { state: next }) => {
  if (next === "begin") run = new AbortController();
  if (next === "abort") {
    run?.abort();
    require("internal/ui").cancelRun();
  }
  if (next === "end") run = null;
  call.reply(null);
};

exports.isRunning = () => run !== null;

const lazy = (target, name, get) => Object.defineProperty(target, name, { get, enumerable: true, configurable: true });

function makeContext(ext) {
  const live = () => assertActive(ext);
  // Other code that an extension passed one of these to may use it until the next generation.
  const isCurrent = () => assertActive({ isFailed: false, generation: ext.generation });
  const look = () => {
    live();
    return ops.query("state");
  };
  // One object each, in events, tools and commands: extensions compare them and use them as keys.
  const part = (parts, name, make) => () => {
    live();
    return (parts[name] ??= make());
  };
  const ctx = {
    isIdle: () => look().isIdle,
    isProjectTrusted: () => look().isProjectTrusted,
    hasPendingMessages: () => look().hasPendingMessages,
    getContextUsage: () => look().contextUsage ?? undefined,
    getSystemPrompt: () => {
      live();
      return state.promptOverride ? state.promptOverride() : ops.query("system_prompt").text;
    },
    abort: () => {
      live();
      ops.send("abort");
    },
    shutdown: () => {
      live();
      ops.send("shutdown");
    },
    compact: (options = {}) => {
      live();
      ops.ask("compact", { customInstructions: options?.customInstructions ?? null }).then(
        (result) => options?.onComplete?.(result),
        (error) => {
          if (options?.onError) options.onError(error);
          // Whoever compacts without `onError` does not want to hear of it; the log does.
          else host.log(`${ext.path}: compact: ${owners.text(error)}\n`);
        },
      );
    },
  };
  lazy(ctx, "ui", part({}, "ui", () => require("internal/ui").makeUi(ext, "session")));
  lazy(ctx, "mode", () => (live(), state.config.mode));
  lazy(ctx, "hasUI", () => (live(), state.config.hasUI));
  lazy(ctx, "cwd", () => (live(), state.config.cwd));
  lazy(ctx, "sessionManager", part(ext.generation.parts, "sessionManager", () => require("internal/session").makeView(isCurrent)));
  lazy(ctx, "modelRegistry", part(ext.generation.parts, "modelRegistry", () => require("internal/models").makeRegistry(ext, isCurrent)));
  lazy(ctx, "model", () => look().model ?? undefined);
  lazy(ctx, "scopedModels", () => look().scopedModels ?? []);
  lazy(ctx, "thinkingLevel", () => look().thinkingLevel);
  lazy(ctx, "signal", () => (live(), run?.signal));
  return ctx;
}

// One per extension and generation; its properties are looked up when read.
state.contextFor = (ext) => (ext.context ??= makeContext(ext));

const NO_RUNTIME = () => {};

state.trustContext = (ext, cwd) => {
  const ui = require("internal/ui").makeUi(ext, "trust");
  const { select, confirm, input } = ui;
  const notify = (message) => host.log(`${message}\n`);
  return { cwd, mode: state.config.mode, hasUI: state.config.trustHasUI === true, ui: { select, confirm, input, notify } };
};

// The extension of the same file in the current generation.
const successor = (ext) => state.extensions().find((other) => other.path === ext.path) ?? ext;

async function replace(ext, kind, payload, withSession) {
  const result = await ops.ask(kind, payload);
  if (!result.cancelled && typeof withSession === "function") await withSession(exports.replacedContext(successor(ext)));
  return result;
}

// What only commands may do: in a handler it would wait for itself.
exports.commandContext = (ext) => {
  const ctx = state.contextFor(ext);
  const live = () => assertActive(ext);
  return Object.assign(Object.defineProperties({}, Object.getOwnPropertyDescriptors(ctx)), {
    getSystemPromptOptions: () => (live(), ops.query("system_prompt").options),
    waitForIdle: async () => {
      live();
      const done = owners.pauseBudget(ext);
      await ops.ask("wait_for_idle").finally(done);
    },
    newSession: async (options = {}) => {
      live();
      // What `setup` writes is sent with the request that creates the session.
      let entries = [];
      if (typeof options?.setup === "function") {
        const draft = require("internal/session-manager").SessionManager.inMemory(state.config.cwd);
        await options.setup(draft);
        entries = draft.getEntries();
      }
      return replace(ext, "new_session", { parentSession: options?.parentSession ?? null, entries }, options?.withSession);
    },
    fork: (entryId, options = {}) => {
      live();
      const position = options?.position === "at" ? "at" : "before";
      return replace(ext, "fork", { entryId: String(entryId), position }, options?.withSession);
    },
    switchSession: (path, options = {}) => {
      live();
      return replace(ext, "switch_session", { path: String(path) }, options?.withSession);
    },
    navigateTree: async (targetId, options = {}) => {
      live();
      const { summarize = false, customInstructions = null, replaceInstructions = false, label = null } = options ?? {};
      return ops.ask("navigate_tree", { targetId: String(targetId), summarize: !!summarize, customInstructions, replaceInstructions: !!replaceInstructions, label });
    },
    reload: async () => {
      live();
      await ops.ask("reload");
    },
  });
};

exports.replacedContext = (ext) => {
  const actions = require("internal/actions");
  return Object.assign(exports.commandContext(ext), { sendMessage: actions.askMessage, sendUserMessage: actions.askUserMessage });
};

exports.noop = NO_RUNTIME;
