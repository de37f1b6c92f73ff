// setTimeout and the like. A callback that throws is reported; other timers go on.

const owners = require("internal/owners");

let last = 0;
const pending = new Map(); // id -> { callback, args, repeat, ext, timer }

class Timeout {
  #isRef = true;
  constructor(id) {
    this.id = id;
  }
  // pith does not wait for timers when it ends, so this is only stored.
  ref() {
    this.#isRef = true;
    return this;
  }
  unref() {
    this.#isRef = false;
    return this;
  }
  hasRef() {
    return this.#isRef;
  }
  refresh() {
    const entry = pending.get(this.id);
    if (entry) host.timerSet(this.id, entry.delay);
    return this;
  }
  close() {
    clear(this);
    return this;
  }
  [Symbol.toPrimitive]() {
    return this.id;
  }
  [Symbol.dispose]() {
    clear(this);
  }
}

function set(callback, delay, args, repeats) {
  if (typeof callback !== "function") {
    throw Object.assign(new TypeError('The "callback" argument must be of type function'), { code: "ERR_INVALID_ARG_TYPE" });
  }
  delay = Number(delay);
  if (!(delay >= 1 && delay <= 2147483647)) delay = 1;
  const id = ++last;
  pending.set(id, { callback, args, delay, repeats, ext: owners.current?.ext ?? null });
  host.timerSet(id, delay);
  return new Timeout(id);
}

function clear(timer) {
  const id = typeof timer === "object" && timer !== null ? timer.id : Number(timer);
  if (pending.delete(id)) host.timerClear(id);
}

exports.fire = (id) => {
  const entry = pending.get(id);
  if (!entry) return;
  if (!entry.repeats) pending.delete(id);
  owners.current = entry.ext ? { ext: entry.ext, run: null } : null;
  try {
    entry.callback(...entry.args);
  } catch (error) {
    const ext = owners.ofError(error) ?? entry.ext;
    // An interval of an extension that was replaced would fail for ever.
    if (error?.code === "PITH_STALE") clear(id);
    owners.report(ext?.path ?? "<runtime>", "timer", error);
  }
  owners.current = null;
  if (entry.repeats && pending.has(id)) host.timerSet(id, entry.delay);
};

exports.drop = (id) => clear(id);

exports.setTimeout = (callback, delay, ...args) => set(callback, delay, args, false);
exports.setInterval = (callback, delay, ...args) => set(callback, delay, args, true);
exports.setImmediate = (callback, ...args) => set(callback, 1, args, false);
exports.clearTimeout = exports.clearInterval = exports.clearImmediate = clear;
exports.Timeout = Timeout;
