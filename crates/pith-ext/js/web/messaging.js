// MessageChannel, BroadcastChannel and their events. Both ends are in one thread; messages are copied all the same.

const { Event, EventTarget } = require("internal/abort");
const { structuredClone } = require("internal/clone");
const { setImmediate } = require("internal/timers");

class MessageEvent extends Event {
  constructor(type, { data = null, origin = "", lastEventId = "", source = null, ports = [], ...init } = {}) {
    super(type, init);
    Object.assign(this, { data, origin: String(origin), lastEventId: String(lastEventId), source, ports: [...ports] });
  }
}

class CloseEvent extends Event {
  constructor(type, { code = 0, reason = "", wasClean = false, ...init } = {}) {
    super(type, init);
    Object.assign(this, { code, reason: String(reason), wasClean: !!wasClean });
  }
}

const pair = Symbol("pair");

class MessagePort extends EventTarget {
  #other = null;
  #queue = [];
  #isStarted = false;
  #isClosed = false;
  #onmessage = null;
  #wrappers = new Map(); // listener -> what hears of the event for it
  constructor(key) {
    if (key !== pair) throw Object.assign(new TypeError("Constructor cannot be called"), { code: "ERR_CONSTRUCT_CALL_INVALID" });
    super();
  }
  static [pair]() {
    const ports = [new MessagePort(pair), new MessagePort(pair)];
    ports[0].#other = ports[1];
    ports[1].#other = ports[0];
    return ports;
  }
  get onmessage() {
    return this.#onmessage;
  }
  set onmessage(listener) {
    this.#onmessage = typeof listener === "function" ? listener : null;
    if (this.#onmessage) this.start();
  }
  postMessage(message, options) {
    const transfer = Array.isArray(options) ? options : (options?.transfer ?? []);
    if (transfer.includes(this)) throw new DOMException("Transfer list contains source port", "DataCloneError");
    const data = structuredClone(message, { transfer });
    const other = this.#other;
    if (this.#isClosed || other.#isClosed) return;
    other.#queue.push({ data, ports: transfer.filter((item) => item instanceof MessagePort) });
    if (other.#isStarted) setImmediate(() => other.#deliver());
  }
  start() {
    if (this.#isStarted) return;
    this.#isStarted = true;
    if (this.#queue.length) setImmediate(() => this.#deliver());
  }
  #deliver() {
    while (this.#queue.length && !this.#isClosed) this.dispatchEvent(new MessageEvent("message", this.#queue.shift()));
  }
  close(callback) {
    if (callback) this.once("close", callback);
    if (this.#isClosed) return;
    this.#isClosed = true;
    setImmediate(() => {
      this.dispatchEvent(new Event("close"));
      if (!this.#other.#isClosed) this.#other.close();
    });
  }
  // The next message that waits, without an event.
  [Symbol.for("pith.take")]() {
    return this.#queue.length ? { message: this.#queue.shift().data } : undefined;
  }
  // Node's forms hand over the message itself.
  on(name, listener) {
    const wrapper = (event) => listener.call(this, name === "message" ? event.data : event);
    this.#wrappers.set(listener, wrapper);
    this.addEventListener(name, wrapper);
    if (name === "message") this.start();
    return this;
  }
  once(name, listener) {
    const first = (value) => {
      this.off(name, first);
      listener.call(this, value);
    };
    return this.on(name, first);
  }
  off(name, listener) {
    this.removeEventListener(name, this.#wrappers.get(listener) ?? listener);
    this.#wrappers.delete(listener);
    return this;
  }
  // pith does not wait for ports when it ends.
  ref() {}
  unref() {}
  hasRef() {
    return false;
  }
}
MessagePort.prototype.addListener = MessagePort.prototype.on;
MessagePort.prototype.removeListener = MessagePort.prototype.off;

class MessageChannel {
  constructor() {
    [this.port1, this.port2] = MessagePort[pair]();
  }
}

const open = new Map(); // name -> channels

class BroadcastChannel extends EventTarget {
  #name;
  #isClosed = false;
  constructor(...names) {
    const [name] = names;
    if (names.length === 0) throw Object.assign(new TypeError('The "name" argument must be specified'), { code: "ERR_MISSING_ARGS" });
    super();
    this.#name = String(name);
    this.onmessage = null;
    if (!open.has(this.#name)) open.set(this.#name, new Set());
    open.get(this.#name).add(this);
  }
  get name() {
    return this.#name;
  }
  postMessage(message) {
    if (this.#isClosed) throw new DOMException("BroadcastChannel is closed.", "InvalidStateError");
    const others = [...open.get(this.#name)].filter((channel) => channel !== this);
    const data = structuredClone(message);
    for (const channel of others) setImmediate(() => channel.#isClosed || channel.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) })));
  }
  close() {
    this.#isClosed = true;
    const channels = open.get(this.#name);
    channels?.delete(this);
    if (channels?.size === 0) open.delete(this.#name);
  }
  ref() {
    return this;
  }
  unref() {
    return this;
  }
}

function receiveMessageOnPort(port) {
  if (port instanceof MessagePort) return port[Symbol.for("pith.take")]();
  throw Object.assign(new TypeError('The "port" argument must be a MessagePort instance'), { code: "ERR_INVALID_ARG_TYPE" });
}

module.exports = { MessageEvent, CloseEvent, MessagePort, MessageChannel, BroadcastChannel, receiveMessageOnPort };
