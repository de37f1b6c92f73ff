// fs.watch and fs.watchFile.

const EventEmitter = require("events");
const ops = require("internal/ops");
const owners = require("internal/owners");
const native = host.ops("fs");

class FSWatcher extends EventEmitter {
  constructor(path, { recursive = false, signal } = {}) {
    super();
    const ext = owners.now();
    const { op, promise } = ops.begin(
      (op) => native.watch(op, path, recursive),
      ({ kind, name }) => {
        try {
          this.emit("change", kind, name);
        } catch (error) {
          owners.report(owners.ofError(error)?.path ?? ext?.path ?? "<runtime>", "watch", error);
        }
        native.watched(op);
      },
    );
    this.op = op;
    promise.then(
      () => {},
      (error) => {
        if (this.listenerCount("error")) this.emit("error", error);
      },
    );
    signal?.addEventListener?.("abort", () => this.close(), { once: true });
  }
  close() {
    if (this.op === null) return;
    native.unwatch(this.op);
    ops.forget(this.op);
    this.op = null;
    queueMicrotask(() => this.emit("close"));
  }
  ref() {
    return this;
  }
  unref() {
    return this;
  }
}

exports.watch = (path, options, listener) => {
  const watcher = new FSWatcher(path, options);
  if (listener) watcher.on("change", listener);
  return watcher;
};

exports.iterate = async function* (path, options) {
  const watcher = new FSWatcher(path, options);
  const queue = [];
  let wake = null;
  watcher.on("change", (eventType, filename) => {
    queue.push({ eventType, filename });
    wake?.();
  });
  watcher.on("close", () => wake?.());
  try {
    for (;;) {
      if (queue.length) yield queue.shift();
      else if (watcher.op === null) return;
      else await new Promise((resolve) => (wake = resolve));
    }
  } finally {
    watcher.close();
  }
};

// Polls, as Node documents.
const polled = new Map(); // path -> { timer, listeners, last }
const nothing = { mtimeMs: 0, size: 0, ino: 0, isFile: () => false, isDirectory: () => false, mtime: new Date(0) };

exports.watchFile = (path, options, listener) => {
  const fs = require("fs");
  const look = () => fs.statSync(path, { throwIfNoEntry: false }) ?? nothing;
  let entry = polled.get(path);
  if (!entry) {
    entry = { last: look(), listeners: new Set() };
    entry.timer = setInterval(() => {
      const now = look();
      const before = entry.last;
      if (now.mtimeMs === before.mtimeMs && now.size === before.size && now.ino === before.ino) return;
      entry.last = now;
      for (const each of entry.listeners) each(now, before);
    }, options?.interval ?? 5007);
    polled.set(path, entry);
  }
  entry.listeners.add(listener);
  return entry;
};

exports.unwatchFile = (path, listener) => {
  const entry = polled.get(path);
  if (!entry) return;
  if (listener) entry.listeners.delete(listener);
  if (!listener || entry.listeners.size === 0) {
    clearInterval(entry.timer);
    polled.delete(path);
  }
};
