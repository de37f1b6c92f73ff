// The small parts of pi-agent-core's harness: results, tagged errors, contexts, telemetry that nobody collects. The
// harness itself and its storage are not here.

const Result = {
  ok: (value) => ({ ok: true, value }),
  err: (error) => ({ ok: false, error }),
  isOk: (result) => result.ok === true,
  isErr: (result) => result.ok !== true,
};

function TaggedError(tag) {
  return class Tagged extends Error {
    constructor(members = {}) {
      super(members.message);
      this._tag = tag;
      this.name = tag;
      Object.assign(this, members);
    }
    static is(value) {
      return value instanceof Tagged;
    }
    toJSON() {
      return { ...this, _tag: tag, message: this.message };
    }
  };
}

const tagged = {};
for (const tag of ["Closed", "InvalidLane", "InvalidMessage", "InvalidNavigation", "LaneBusy", "NoActiveOperation", "NoActiveRun", "NothingToCompact", "NothingToResume", "OperationMismatch", "UnknownSkill", "UnknownTarget", "UnknownTemplate"]) tagged[tag] = TaggedError(tag);

// Errors with a code, of both versions.
const coded = {};
for (const name of ["AgentHarnessError", "BranchSummaryError", "CompactionError", "ExecutionError", "SessionError"]) {
  coded[name] = class extends Error {
    constructor(code, message, cause) {
      super(message, cause === undefined ? undefined : { cause });
      this.name = name;
      this.code = code;
    }
  };
}
class FileError extends Error {
  constructor(code, message, path, cause) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "FileError";
    this.code = code;
    this.path = path;
  }
}
class HarnessFault extends Error {
  constructor(message, cause) {
    super(message, { cause });
    this.name = "HarnessFault";
  }
}
class HarnessClosed extends Error {
  constructor() {
    super("AgentHarness was closed while the operation was active");
    this.name = "HarnessClosed";
  }
}
const plain = {};
for (const name of ["SessionBranchExistsError", "SessionInvalidBranchError", "SessionInvariantError", "SessionPendingAssistantMessageError", "SessionUnknownTargetError", "SliceNotImplemented"]) {
  plain[name] = class extends Error {
    constructor(message) {
      super(message);
      this.name = name;
    }
  };
}

// A context carries values and an abort signal from caller to callee; each one extends its parent.
const createContextKey = (description) => Object.freeze({ token: Symbol(description) });
const SIGNAL = createContextKey("abortSignal");
const TELEMETRY = createContextKey("telemetry");

class Context {
  #parent;
  #key;
  #value;
  constructor(parent, key, value) {
    this.#parent = parent;
    this.#key = key;
    this.#value = value;
  }
  value(key) {
    return this.#key?.token === key.token ? this.#value : this.#parent?.value(key);
  }
  get abortSignal() {
    return this.value(SIGNAL);
  }
}

const withContextValue = (key, value, parent) => new Context(parent, key, value);
const withAbortSignal = (signal, context) => withContextValue(SIGNAL, context.abortSignal ? AbortSignal.any([context.abortSignal, signal]) : signal, context);
const contexts = {
  BACKGROUND_CONTEXT: new Context(),
  TODO_CONTEXT: new Context(),
  createContextKey, withContextValue, withAbortSignal,
  withoutAbortSignal: (context) => withContextValue(SIGNAL, undefined, context),
  withCancel: (context) => {
    const controller = new AbortController();
    return { context: withAbortSignal(controller.signal, context), cancel: (reason) => controller.abort(reason) };
  },
  awaitWithContext: (promise, { abortSignal }) => {
    if (!abortSignal) return promise;
    const aborted = new Promise((_, reject) => {
      const abort = () => reject(abortSignal.reason ?? new Error("aborted"));
      if (abortSignal.aborted) abort();
      else abortSignal.addEventListener("abort", abort, { once: true });
    });
    return Promise.race([promise, aborted]);
  },
};

// Spans that are run and not recorded.
const startSpan = async (_options, work) => work(silent);
const silent = Object.freeze({ startSpan, addEvent: () => {}, setAttributes: () => {}, setStatus: () => {} });

class InMemoryTelemetryContext {
  #spans = [];
  get spans() {
    return this.#spans;
  }
  getSpans() {
    return this.#spans;
  }
  startSpan(options, work, parentId = null) {
    const span = { id: this.#spans.length + 1, parentId, name: options.name, attributes: { ...options.attributes }, events: [], status: { status: "ok" } };
    this.#spans.push(span);
    const handle = {
      startSpan: (inner, then) => this.startSpan(inner, then, span.id),
      addEvent: (name, attributes) => void span.events.push({ name, attributes: { ...attributes } }),
      setAttributes: (attributes) => void Object.assign(span.attributes, attributes),
      setStatus: (status) => void (span.status = status),
    };
    return Promise.resolve().then(() => work(handle)).catch((error) => {
      if (span.status.status === "ok") span.status = { status: "error", error: { name: error?.name, message: error?.message } };
      throw error;
    });
  }
}

const starter = (telemetry) => (name, attributes, work) => telemetry.startSpan({ name, attributes }, (span) => work(span, starter(span)));
const telemetry = {
  NOOP_TELEMETRY_CONTEXT: silent,
  InMemoryTelemetryContext,
  // Nothing is recorded, so nothing needs a schema.
  ...require("internal/stubs").headless({}, { AI_TELEMETRY_SCHEMA: {}, HARNESS_TELEMETRY_SCHEMA: {}, AGENT_TELEMETRY_SCHEMAS: [] }),
  defineTelemetrySchema: (schema) => schema,
  createTypedSpanStarter: (parent) => starter(parent),
  getTelemetryContext: (context) => context.value(TELEMETRY) ?? silent,
  withTelemetryContext: (parent, context) => withContextValue(TELEMETRY, parent, context),
  startAiSpan: (context, name, attributes, work) => starter(context.value(TELEMETRY) ?? silent)(name, attributes, work),
  startHarnessSpan: (context, name, attributes, work) => starter(context.value(TELEMETRY) ?? silent)(name, attributes, work),
};

module.exports = {
  Result, TaggedError, ...tagged, ...coded, ...plain, FileError, HarnessFault, HarnessClosed, ...contexts, ...telemetry,
  matchError: (error, matchers) => matchers[error._tag](error),
  applyShellOutputUpdate: (now, { kind, output, text, drop, metadata }) => {
    if (kind === "replace") return output;
    const before = kind === "slide" ? (now?.text ?? "").slice(drop) : (now?.text ?? "");
    return { text: before + (text ?? ""), ...metadata };
  },
};
