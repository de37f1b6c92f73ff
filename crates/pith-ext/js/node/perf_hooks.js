// node:perf_hooks: marks and measures of extensions. The engine itself reports nothing.

const { EventTarget, illegal } = require("internal/abort");

// Entries that are kept; the oldest ones go first.
const MAX_ENTRIES = 10000;
const own = Symbol("entry");

class PerformanceEntry {
  constructor(key, name, entryType, startTime, duration, detail) {
    if (key !== own) throw illegal();
    Object.assign(this, { name, entryType, startTime, duration });
    if (entryType !== "function") this.detail = detail ?? null;
  }
  toJSON() {
    return { ...this };
  }
}
class PerformanceMark extends PerformanceEntry {
  constructor(name, { startTime = host.now(), detail } = {}) {
    super(own, String(name), "mark", startTime, 0, detail);
  }
}
class PerformanceMeasure extends PerformanceEntry {}
class PerformanceResourceTiming extends PerformanceEntry {}

let entries = [];
const observers = new Set();

function record(entry) {
  entries.push(entry);
  if (entries.length > MAX_ENTRIES) entries.shift();
  notify(entry);
  return entry;
}

class PerformanceObserverEntryList {
  #list;
  constructor(key, list) {
    if (key !== own) throw illegal();
    this.#list = list;
  }
  getEntries() {
    return [...this.#list];
  }
  getEntriesByName(name, type) {
    return this.#list.filter((entry) => entry.name === name && (type === undefined || entry.entryType === type));
  }
  getEntriesByType(type) {
    return this.#list.filter((entry) => entry.entryType === type);
  }
}

const SUPPORTED = ["function", "mark", "measure"];

class PerformanceObserver {
  #callback;
  #waiting = [];
  constructor(callback) {
    if (typeof callback !== "function") throw Object.assign(new TypeError('The "callback" argument must be of type function'), { code: "ERR_INVALID_ARG_TYPE" });
    this.#callback = callback;
  }
  static get supportedEntryTypes() {
    return Object.freeze([...SUPPORTED]);
  }
  observe({ entryTypes, type, buffered } = {}) {
    if (!entryTypes && type === undefined) throw Object.assign(new TypeError('The "options.entryTypes" or "options.type" argument must be specified'), { code: "ERR_MISSING_ARGS" });
    this.types = new Set(entryTypes ?? [...(this.types ?? []), type]);
    observers.add(this);
    if (buffered) for (const entry of entries) this.hear(entry);
  }
  disconnect() {
    observers.delete(this);
    this.#waiting = [];
  }
  takeRecords() {
    return this.#waiting.splice(0);
  }
  hear(entry) {
    if (!this.types.has(entry.entryType)) return;
    if (this.#waiting.push(entry) > 1) return;
    require("internal/timers").setImmediate(() => {
      const list = this.takeRecords();
      if (list.length) this.#callback.call(this, new PerformanceObserverEntryList(own, list), this);
    });
  }
}

const notify = (entry) => {
  for (const observer of observers) observer.hear(entry);
};

const timeOf = (mark) => {
  if (typeof mark === "number") return mark;
  const found = entries.findLast((entry) => entry.entryType === "mark" && entry.name === String(mark));
  if (!found) throw new DOMException(`The "${mark}" performance mark has not been set`, "SyntaxError");
  return found.startTime;
};

const timeOrigin = Date.now() - host.now();

class Performance extends EventTarget {
  constructor(key) {
    if (key !== own) throw illegal();
    super();
  }
  get timeOrigin() {
    return timeOrigin;
  }
  get nodeTiming() {
    return { name: "node", entryType: "node", startTime: 0, duration: host.now() };
  }
  now() {
    return host.now();
  }
  mark(name, options) {
    return record(new PerformanceMark(name, options));
  }
  measure(name, start, end) {
    const options = start !== null && typeof start === "object" ? start : { start, end };
    const until = options.end !== undefined ? timeOf(options.end) : options.duration !== undefined && options.start !== undefined ? timeOf(options.start) + options.duration : host.now();
    const from = options.start !== undefined ? timeOf(options.start) : options.duration !== undefined ? until - options.duration : 0;
    return record(new PerformanceMeasure(own, String(name), "measure", from, until - from, options.detail));
  }
  #clear(type, name) {
    entries = entries.filter((entry) => entry.entryType !== type || (name !== undefined && entry.name !== String(name)));
  }
  clearMarks(name) {
    this.#clear("mark", name);
  }
  clearMeasures(name) {
    this.#clear("measure", name);
  }
  clearResourceTimings() {}
  setResourceTimingBufferSize() {}
  markResourceTiming() {}
  getEntries() {
    return new PerformanceObserverEntryList(own, entries).getEntries();
  }
  getEntriesByName(name, type) {
    return new PerformanceObserverEntryList(own, entries).getEntriesByName(name, type);
  }
  getEntriesByType(type) {
    return new PerformanceObserverEntryList(own, entries).getEntriesByType(type);
  }
  eventLoopUtilization() {
    return { idle: 0, active: 0, utilization: 0 };
  }
  timerify(fn) {
    return function timerified(...args) {
      const began = host.now();
      const result = new.target ? Reflect.construct(fn, args, fn) : Reflect.apply(fn, this, args);
      const done = () => notify(new PerformanceEntry(own, fn.name, "function", began, host.now() - began));
      if (typeof result?.finally === "function") return result.finally(done);
      done();
      return result;
    };
  }
  toJSON() {
    return { timeOrigin, nodeTiming: this.nodeTiming, eventLoopUtilization: this.eventLoopUtilization() };
  }
}

const performance = new Performance(own);
const histogram = () => ({ enable: () => true, disable: () => true, min: 0, max: 0, mean: 0, percentile: () => 0, reset: () => {} });

module.exports = {
  performance, Performance, PerformanceEntry, PerformanceMark, PerformanceMeasure, PerformanceObserver, PerformanceObserverEntryList, PerformanceResourceTiming,
  eventLoopUtilization: performance.eventLoopUtilization,
  timerify: performance.timerify,
  monitorEventLoopDelay: histogram,
  createHistogram: histogram,
  constants: {},
};
