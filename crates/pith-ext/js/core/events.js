// Delivers events to handlers, one after the other, and combines their results.

const owners = require("internal/owners");
const runs = require("internal/runs");
const calls = require("internal/calls");
const { methods } = calls;
const state = require("internal/state");

// The current handlers of an event, in load order.
function handlersOf(name) {
  const found = [];
  for (const ext of state.extensions()) {
    for (const entry of ext.handlers.get(name) ?? []) found.push({ ext, fn: entry.fn });
  }
  return found;
}

// Calls each handler in turn. `onResult` and `onError` may return true to stop.
function sequence(name, event, { onResult, onError, context, handlers = handlersOf(name), budget = state.limits.handlerMs }, done) {
  let index = 0;
  const call = calls.active;
  const next = () => {
    while (index < handlers.length) {
      const { ext, fn } = handlers[index++];
      if (ext.isDisabled) {
        if (onError?.(new Error(`Extension ${ext.path} is disabled`), ext, true)) return done();
        continue;
      }
      let isSync = true;
      let goOn = null;
      const settle = (outcome) => {
        const before = calls.active;
        calls.active = call;
        let stop = false;
        if (outcome.ok) {
          try {
            stop = onResult?.(outcome.value, ext) === true;
          } catch (error) {
            outcome = { ok: false, error };
          }
        }
        if (!outcome.ok) {
          const verdict = onError ? onError(outcome.error, ext, false) : owners.report(ext.path, name, outcome.error);
          stop = verdict === true;
        }
        goOn = !stop;
        // An interrupt has unwound the loop below, so it must be continued from here.
        if (!isSync || outcome.isInterrupt) stop ? done() : next();
        calls.active = before;
      };
      runs.start(ext, () => fn(event, context ? context(ext) : state.contextFor(ext)), settle, budget);
      isSync = false;
      if (goOn === null) return; // goes on when the handler has settled
      if (!goOn) return done();
    }
    done();
  };
  next();
}

const truthy = (value) => value !== null && value !== undefined && typeof value === "object";

// Events that handlers can cancel: the last result is used, the first `cancel` stops.
const cancellable = (event, done, prepare) => {
  prepare?.(event);
  let result = null;
  const onResult = (value) => {
    if (truthy(value)) result = value;
    return value?.cancel === true;
  };
  sequence(event.type, event, { onResult }, () => done(result));
};

// Handlers may return a list or edit it in place.
const messages = (event, done) => {
  const before = JSON.stringify(event.messages);
  const onResult = (value) => {
    if (Array.isArray(value?.messages)) event.messages = value.messages;
  };
  sequence(event.type, event, { onResult }, () => {
    done(JSON.stringify(event.messages) === before ? null : { messages: event.messages });
  });
};

// Drafts and continuation at the end of a turn; each handler sees the proposal so far.
const boundary = (event, done) => {
  event.entries ??= [];
  event.continue ??= false;
  let cached = null;
  let cachedFor = null;
  Object.defineProperty(event, "context", {
    enumerable: true,
    configurable: true,
    get() {
      const key = JSON.stringify(event.entries);
      if (cachedFor !== key) {
        cached = require("internal/ops").query("boundary", { event: event.type, entries: event.entries });
        cachedFor = key;
      }
      return cached;
    },
  });
  let changed = false;
  let proposer = null;
  const onResult = (value, ext) => {
    if (!truthy(value)) return;
    if (value.entries !== undefined) {
      if (!Array.isArray(value.entries)) throw new Error("Invalid boundary entries: not an array");
      event.entries = value.entries;
      proposer = ext.path;
      changed = true;
    }
    if (value.continue !== undefined) {
      event.continue = value.continue === true;
      changed = true;
    }
  };
  sequence(event.type, event, { onResult }, () => done(changed ? { entries: event.entries, continue: event.continue, proposer } : null));
};

// Returns a function that tells whether a value is unchanged; values that cannot be compared count as changed.
const unchanged = (get) => {
  const before = JSON.stringify(get());
  return () => {
    try {
      return JSON.stringify(get()) === before;
    } catch {
      return false;
    }
  };
};

const composed = {
  project_trust(event, done) {
    let decision = null;
    const onResult = (value) => {
      if (value?.trusted !== "yes" && value?.trusted !== "no") return false;
      decision = { trusted: value.trusted === "yes", remember: value.remember === true };
      return true;
    };
    const onError = (error, ext) => host.log(`Warning: project_trust handler of ${ext.path}: ${owners.text(error)}\n`);
    const context = (ext) => state.trustContext(ext, event.cwd);
    sequence("project_trust", event, { onResult, onError: (...a) => void onError(...a), context }, () => done(decision));
  },

  resources_discover(event, done) {
    const found = { skillPaths: [], promptPaths: [], themePaths: [] };
    const onResult = (value, ext) => {
      for (const key of Object.keys(found)) {
        if (!Array.isArray(value?.[key])) continue;
        for (const path of value[key]) if (typeof path === "string") found[key].push({ path, extensionPath: ext.path });
      }
    };
    sequence("resources_discover", event, { onResult }, () => done(found));
  },

  session_before_switch: (event, done) => cancellable(event, done),
  session_before_fork: (event, done) => cancellable(event, done),
  session_before_tree: (event, done, call) => cancellable(event, done, () => (event.signal = call.signal)),
  session_before_compact: (event, done, call) =>
    cancellable(event, done, () => {
      event.signal = call.signal;
      const touched = event.preparation?.fileOps;
      if (touched) for (const key of Object.keys(touched)) touched[key] = new Set(touched[key]);
    }),

  input(event, done) {
    let result = { action: "continue" };
    const onResult = (value) => {
      if (value?.action === "handled") {
        result = { action: "handled" };
        return true;
      }
      if (value?.action === "transform" && typeof value.text === "string") {
        event.text = value.text;
        if (value.images !== undefined) event.images = value.images;
        result = { action: "transform", text: event.text, images: event.images };
      }
      return false;
    };
    sequence("input", event, { onResult }, () => done(result));
  },

  before_agent_start(event, done) {
    const added = [];
    const options = event.systemPromptOptions ?? (event.systemPromptOptions = {});
    const before = JSON.stringify(options);
    const base = event.systemPrompt ?? "";
    let replaced;
    let built = { for: before, text: base };
    const prompt = () => {
      if (replaced !== undefined) return replaced;
      const now = JSON.stringify(options);
      if (now !== built.for) built = { for: now, text: require("internal/ops").query("build_prompt", options) };
      return built.text;
    };
    Object.defineProperty(event, "systemPrompt", { get: prompt, enumerable: true, configurable: true });
    state.promptOverride = prompt;
    const onResult = (value) => {
      if (truthy(value?.message)) added.push(value.message);
      if (typeof value?.systemPrompt === "string") replaced = value.systemPrompt;
    };
    sequence("before_agent_start", event, { onResult }, () => {
      state.promptOverride = null;
      const edited = JSON.stringify(options) !== before;
      done({ messages: added, systemPrompt: replaced ?? null, systemPromptOptions: edited ? options : null });
    });
  },

  context: messages,
  context_with_system: messages,

  before_provider_headers(event, done) {
    sequence("before_provider_headers", event, {}, () => done({ headers: event.headers }));
  },

  before_provider_request(event, done) {
    const onResult = (value) => {
      if (value !== undefined) event.payload = value;
    };
    sequence("before_provider_request", event, { onResult }, () => done({ payload: event.payload }));
  },

  agent_end(event, done) {
    sequence("agent_end", require("internal/declared").withSystem(event), {}, () => done(null));
  },

  message_end(event, done) {
    const isSame = unchanged(() => event.message);
    let replaced = false;
    const role = event.message?.role;
    const onResult = (value) => {
      if (!truthy(value?.message)) return;
      if (value.message.role !== role) throw new Error("message_end handlers must return a message with the same role");
      event.message = value.message.content === null ? { ...value.message, content: [] } : value.message;
      replaced = true;
    };
    // Handlers may also edit the message in place.
    sequence("message_end", event, { onResult }, () => done(replaced || !isSame() ? { message: event.message } : null));
  },

  turn_end: boundary,
  agent_before_settle: boundary,

  tool_call(event, done, _call, context) {
    let verdict = null;
    let decision = null;
    const handlers = handlersOf("tool_call").map(({ ext, fn }) => ({
      ext,
      fn: (...given) => {
        decision = { missing: null, toolCallId: event.toolCallId };
        ext.toolCallDecisions.add(decision);
        return fn(...given);
      },
    }));
    const onResult = (value, ext) => {
      ext.toolCallDecisions.delete(decision);
      if (!value?.block) {
        if (decision.missing) throw new Error(`Blocked: the extension could not decide about the call: ${decision.missing}`);
        return false;
      }
      const reason = typeof value.reason === "string" && value.reason ? value.reason : "Tool execution was blocked";
      verdict = { block: true, reason, terminate: value.terminate === true };
      return true;
    };
    const onError = (error, ext, isDisabled) => {
      ext.toolCallDecisions.delete(decision);
      const reason = error instanceof Error ? owners.text(error) : `Extension failed, blocking execution: ${owners.text(error)}`;
      verdict = { block: true, reason, terminate: false };
      if (!isDisabled) owners.report(ext.path, "tool_call", error);
      return true;
    };
    sequence("tool_call", event, { onResult, onError, handlers, context }, () => done(verdict ?? { block: false, input: event.input }));
  },

  tool_result(event, done, _call, context) {
    const { content: usable } = require("internal/tools");
    const shown = () => ({ content: event.content, details: event.details, isError: event.isError, usage: event.usage });
    const isSame = unchanged(shown);
    let changed = false;
    const onResult = (value) => {
      if (!truthy(value)) return;
      const content = value.content === undefined ? undefined : usable("A tool_result handler", value.content);
      for (const key of ["content", "details", "isError", "usage"]) {
        if (value[key] === undefined) continue;
        event[key] = key === "content" ? content : value[key];
        changed = true;
      }
    };
    // Handlers may also edit the result in place.
    sequence("tool_result", event, { onResult, context }, () => {
      if (!changed && isSame()) return done(null);
      try {
        usable("A tool_result handler", event.content);
        done(shown());
      } catch (error) {
        owners.report("<runtime>", "tool_result", error);
        done(null);
      }
    });
  },

  user_bash(event, done) {
    let result = null;
    const onResult = (value) => {
      if (value === undefined) return false;
      const operations = value?.operations;
      if (typeof operations?.exec === "function" && value.result === undefined) {
        result = { operations: state.keep(operations) };
      } else if (truthy(value?.result) && operations === undefined) {
        result = { result: value.result };
      } else {
        throw new Error("user_bash handlers must return either operations or result");
      }
      return true;
    };
    const onError = (error, ext) => {
      owners.report(ext.path, "user_bash", error);
      result = { error: owners.text(error) };
      return true;
    };
    sequence("user_bash", event, { onResult, onError }, () => done(result));
  },

  cache_warming_decision(event, done) {
    let action = null;
    const onResult = (value) => {
      if (value?.action === "warm" || value?.action === "stop") action = value.action;
    };
    sequence("cache_warming_decision", event, { onResult }, () => done(action && { action }));
  },
};

// The older names for `session_start`, for extensions that know only those.
const legacy = (event) => {
  const name = { new: "session_switch", resume: "session_switch", fork: "session_fork" }[event.reason];
  if (!name) return [];
  const handlers = handlersOf(name).filter(({ ext }) => !ext.handlers.get("session_start")?.length);
  return handlers.length ? [{ name, handlers }] : [];
};

// Fields that are not always set. `null` becomes undefined, so that default values in handlers apply.
const optional = [
  "images", "streamingBehavior", "previousSessionFile", "targetSessionFile", "previousModel", "name",
  "customInstructions", "errorMessage", "usage", "details", "reason", "label", "summaryEntry",
];

function deliver(call, event, budget, done, context) {
  for (const name of optional) if (event[name] === null) event[name] = undefined;
  const special = composed[event.type];
  if (special) return special(event, done, call, context);
  sequence(event.type, event, { budget }, () => {
    const [old] = event.type === "session_start" ? legacy(event) : [];
    if (!old) return done(null);
    sequence(old.name, { ...event, type: old.name }, { handlers: old.handlers }, () => done(null));
  });
}

// Events of a run are delivered in order, even if the agent does not wait for each.
const runEvents = [];
let isBusy = false;

function advance() {
  if (isBusy) return;
  const task = runEvents.shift();
  if (!task) return;
  isBusy = true;
  // On a fresh stack: many queued events must not nest.
  task.call.after = () => {
    isBusy = false;
    advance();
  };
  work(task);
}

// Tool calls that arrived while extensions were being replaced wait, so that handlers can block them.
const heldToolCalls = [];

exports.bound = () => heldToolCalls.splice(0).forEach(work);

function work(task) {
  const { call, event, budget } = task;
  if (event.type === "tool_call" && state.generation.phase !== "bound") {
    heldToolCalls.push(task);
    return;
  }
  const before = calls.active;
  calls.active = call;
  try {
    deliver(call, event, budget, (result) => call.reply(result));
  } catch (error) {
    call.fail(error);
  }
  calls.active = before;
}

methods.event = (call, { event, budget, inOrder }) => {
  if (!inOrder) return work({ call, event, budget });
  runEvents.push({ call, event, budget });
  advance();
};

// An observation; the agent does not wait for it. One of the same key that still waits is replaced, unless an event
// that is no observation came after it.
exports.update = (event, key) => {
  for (let at = runEvents.length - 1; at >= 0 && runEvents[at].key; at--) {
    if (runEvents[at].key !== key) continue;
    runEvents[at].event = event;
    return;
  }
  runEvents.push({ call: new calls.Call(null), event, budget: state.limits.observerMs, key });
  advance();
};

exports.emitLocal = (event) => sequence(event.type, event, {}, () => {});
exports.listens = (name) => state.extensions().some((ext) => ext.handlers.get(name)?.length);

// Runs the handlers of an event that the JavaScript side raises; `context` makes the one that handlers get.
exports.compose = (event, done, call, context) => {
  if (!exports.listens(event.type)) return done(event);
  deliver(call, event, state.limits.handlerMs, (result) => done(result ?? event), context);
};
