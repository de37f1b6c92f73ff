// Event, EventTarget, AbortController and AbortSignal.

class Event {
  constructor(type, init = {}) {
    this.type = String(type);
    this.bubbles = !!init.bubbles;
    this.cancelable = !!init.cancelable;
    this.composed = !!init.composed;
    this.defaultPrevented = false;
    this.target = null;
    this.currentTarget = null;
    this.timeStamp = host.now();
  }
  preventDefault() {
    if (this.cancelable) this.defaultPrevented = true;
  }
  stopPropagation() {}
  composedPath() {
    return this.currentTarget ? [this.currentTarget] : [];
  }
  stopImmediatePropagation() {
    this.isStopped = true;
  }
}

class CustomEvent extends Event {
  constructor(type, init = {}) {
    super(type, init);
    this.detail = init.detail ?? null;
  }
}

const listeners = Symbol("listeners");

class EventTarget {
  constructor() {
    Object.defineProperty(this, listeners, { value: new Map() });
  }
  addEventListener(type, listener, options) {
    if (!listener) return;
    const list = this[listeners].get(type) ?? [];
    if (list.some((entry) => entry.listener === listener)) return;
    const once = typeof options === "object" && options?.once === true;
    const signal = typeof options === "object" ? options?.signal : undefined;
    if (signal?.aborted) return;
    signal?.addEventListener("abort", () => this.removeEventListener(type, listener));
    this[listeners].set(type, [...list, { listener, once }]);
  }
  removeEventListener(type, listener) {
    const list = this[listeners].get(type);
    if (list) this[listeners].set(type, list.filter((entry) => entry.listener !== listener));
  }
  dispatchEvent(event) {
    event.target = event.currentTarget = this;
    const handler = this[`on${event.type}`];
    const list = this[listeners].get(event.type) ?? [];
    for (const { listener, once } of typeof handler === "function" ? [{ listener: handler }, ...list] : list) {
      if (event.isStopped) break;
      if (once) this.removeEventListener(event.type, listener);
      try {
        if (typeof listener === "function") listener.call(this, event);
        else listener.handleEvent?.(event);
      } catch (error) {
        // An error in one listener must not keep the event from the others.
        const owners = require("internal/owners");
        owners.report(owners.ofError(error)?.path ?? "<runtime>", "event_listener", error);
      }
    }
    return !event.defaultPrevented;
  }
}

const abortError = () => new DOMException("This operation was aborted", "AbortError");

class AbortSignal extends EventTarget {
  constructor() {
    super();
    this.aborted = false;
    this.reason = undefined;
    this.onabort = null;
  }
  throwIfAborted() {
    if (this.aborted) throw this.reason;
  }
  static abort(reason = abortError()) {
    const signal = new AbortSignal();
    signal.aborted = true;
    signal.reason = reason;
    return signal;
  }
  static timeout(delay) {
    const signal = new AbortSignal();
    const reason = () => new DOMException("The operation was aborted due to timeout", "TimeoutError");
    require("internal/timers").setTimeout(() => fire(signal, reason()), delay);
    return signal;
  }
  static any(signals) {
    const joined = new AbortSignal();
    for (const signal of signals) {
      if (signal.aborted) {
        fire(joined, signal.reason);
        break;
      }
      signal.addEventListener("abort", () => fire(joined, signal.reason), { once: true });
    }
    return joined;
  }
}

function fire(signal, reason) {
  if (signal.aborted) return;
  signal.aborted = true;
  signal.reason = reason;
  signal.dispatchEvent(new Event("abort"));
}

class AbortController {
  constructor() {
    this.signal = new AbortSignal();
  }
  abort(reason = abortError()) {
    fire(this.signal, reason);
  }
}

const illegal = () => Object.assign(new TypeError("Illegal constructor"), { code: "ERR_ILLEGAL_CONSTRUCTOR" });

module.exports = { illegal, Event, CustomEvent, EventTarget, AbortSignal, AbortController, abortError };
