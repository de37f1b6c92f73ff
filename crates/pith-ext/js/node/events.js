// node:events.

class EventEmitter {
  on(name, listener) {
    return add(this, name, listener, false);
  }
  prependListener(name, listener) {
    return add(this, name, listener, true);
  }
  once(name, listener) {
    return add(this, name, onceWrapper(this, name, listener), false);
  }
  prependOnceListener(name, listener) {
    return add(this, name, onceWrapper(this, name, listener), true);
  }
  off(name, listener) {
    const list = table(this).get(name);
    if (!list) return this;
    const at = list.findLastIndex((known) => known === listener || known.listener === listener);
    if (at < 0) return this;
    const rest = list.filter((_, index) => index !== at);
    if (rest.length) this._events.set(name, rest);
    else this._events.delete(name);
    if (this._events.has("removeListener")) this.emit("removeListener", name, listener);
    return this;
  }
  removeAllListeners(name) {
    if (name === undefined) table(this).clear();
    else table(this).delete(name);
    return this;
  }
  emit(name, ...args) {
    const list = table(this).get(name);
    if (!list) {
      if (name !== "error") return false;
      throw args[0] instanceof Error ? args[0] : Object.assign(new Error(`Unhandled error. (${String(args[0])})`), { code: "ERR_UNHANDLED_ERROR" });
    }
    for (const listener of list) {
      const result = listener.apply(this, args);
      if (this._captures && typeof result?.then === "function") result.then(undefined, (error) => this.emit("error", error));
    }
    return true;
  }
  listeners(name) {
    return (table(this).get(name) ?? []).map((listener) => listener.listener ?? listener);
  }
  rawListeners(name) {
    return [...(table(this).get(name) ?? [])];
  }
  listenerCount(name) {
    return table(this).get(name)?.length ?? 0;
  }
  eventNames() {
    return [...table(this).keys()];
  }
  setMaxListeners(count) {
    this._maxListeners = count;
    return this;
  }
  getMaxListeners() {
    return this._maxListeners ?? EventEmitter.defaultMaxListeners;
  }
}
EventEmitter.prototype.addListener = EventEmitter.prototype.on;
EventEmitter.prototype.removeListener = EventEmitter.prototype.off;

// Old code calls the constructor as a function, so the table may not exist yet.
const table = (emitter) => {
  if (!Object.hasOwn(emitter, "_events")) Object.defineProperty(emitter, "_events", { value: new Map(), writable: true, configurable: true });
  return emitter._events;
};

function add(emitter, name, listener, first) {
  if (typeof listener !== "function") {
    throw Object.assign(new TypeError(`The "listener" argument must be of type function. Received ${typeof listener}`), { code: "ERR_INVALID_ARG_TYPE" });
  }
  const events = table(emitter);
  if (events.has("newListener")) emitter.emit("newListener", name, listener.listener ?? listener);
  const list = events.get(name) ?? [];
  events.set(name, first ? [listener, ...list] : [...list, listener]);
  return emitter;
}

function onceWrapper(emitter, name, listener) {
  const wrapper = (...args) => {
    emitter.off(name, wrapper);
    return listener.apply(emitter, args);
  };
  wrapper.listener = listener;
  return wrapper;
}

// Callable without `new`, for `EventEmitter.call(this)` and `util.inherits`.
const Callable = function EventEmitter_(options) {
  if (options?.captureRejections) this._captures = true;
};
Callable.prototype = EventEmitter.prototype;
EventEmitter.prototype.constructor = Callable;
Object.defineProperty(Callable, "name", { value: "EventEmitter" });
EventEmitter.defaultMaxListeners = 10;
Callable.defaultMaxListeners = 10;

function once(emitter, name, { signal } = {}) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    if (typeof emitter.addEventListener === "function") return emitter.addEventListener(name, (event) => resolve([event]), { once: true });
    const done = (settle, value) => {
      emitter.off(name, onEvent);
      emitter.off("error", onError);
      signal?.removeEventListener("abort", onAbort);
      settle(value);
    };
    const onEvent = (...args) => done(resolve, args);
    const onError = (error) => done(reject, error);
    const onAbort = () => done(reject, signal.reason);
    emitter.on(name, onEvent);
    if (name !== "error") emitter.on("error", onError);
    signal?.addEventListener("abort", onAbort);
  });
}

async function* on(emitter, name, { signal } = {}) {
  const queue = [];
  let wake = null;
  let failure = null;
  const onEvent = (...args) => {
    queue.push(args);
    wake?.();
  };
  const onError = (error) => {
    failure = { error };
    wake?.();
  };
  emitter.on(name, onEvent);
  emitter.on("error", onError);
  signal?.addEventListener("abort", () => onError(signal.reason));
  try {
    for (;;) {
      if (queue.length) yield queue.shift();
      else if (failure) throw failure.error;
      else await new Promise((resolve) => (wake = resolve));
    }
  } finally {
    emitter.off(name, onEvent);
    emitter.off("error", onError);
  }
}

class EventEmitterAsyncResource extends EventEmitter {
  constructor(options) {
    super();
    this.asyncResource = new (require("async_hooks").AsyncResource)(options?.name ?? "EventEmitterAsyncResource");
    Callable.call(this, options);
  }
  get asyncId() {
    return this.asyncResource.asyncId();
  }
  get triggerAsyncId() {
    return this.asyncResource.triggerAsyncId();
  }
  emit(...args) {
    return this.asyncResource.runInAsyncScope(super.emit, this, ...args);
  }
  emitDestroy() {
    this.asyncResource.emitDestroy();
  }
}

module.exports = Callable;
Object.assign(Callable, {
  EventEmitter: Callable,
  EventEmitterAsyncResource,
  once,
  on,
  listenerCount: (emitter, name) => emitter.listenerCount(name),
  getEventListeners: (emitter, name) => emitter.listeners?.(name) ?? [],
  getMaxListeners: (emitter) => emitter.getMaxListeners?.() ?? Callable.defaultMaxListeners,
  setMaxListeners: (count = Callable.defaultMaxListeners, ...emitters) => {
    if (emitters.length === 0) Callable.defaultMaxListeners = EventEmitter.defaultMaxListeners = count;
    for (const emitter of emitters) emitter.setMaxListeners?.(count);
  },
  addAbortListener: (signal, listener) => {
    const call = (event) => listener(event);
    if (signal.aborted) queueMicrotask(() => call(new Event("abort")));
    else signal.addEventListener("abort", call, { once: true });
    return { [Symbol.dispose]: () => signal.removeEventListener("abort", call) };
  },
  captureRejections: false,
  errorMonitor: Symbol("events.errorMonitor"),
  captureRejectionSymbol: Symbol.for("nodejs.rejection"),
  EventTarget: globalThis.EventTarget,
});
