// Operations that the host carries out for extension code: each is a pending promise with an id.

const owners = require("internal/owners");

let last = 0;
const pending = new Map(); // op -> { resolve, reject, push, ext }

exports.next = () => ++last;

// Creates a pending promise; `start(op)` begins the operation.
exports.begin = (start, push) => {
  const op = ++last;
  const ext = owners.now();
  const promise = new Promise((resolve, reject) => pending.set(op, { resolve, reject, push, ext }));
  try {
    start(op);
  } catch (error) {
    pending.delete(op);
    throw error;
  }
  return { op, promise };
};

exports.settle = (op, ok, value) => {
  const waiting = pending.get(op);
  if (!waiting) return;
  pending.delete(op);
  if (ok) waiting.resolve(value);
  else waiting.reject(owners.tag(value instanceof Error ? value : new Error(value), waiting.ext));
};

exports.push = (op, value) => pending.get(op)?.push?.(value);

exports.forget = (op) => pending.delete(op);

// Sends a request to the agent and waits for its answer.
exports.ask = (kind, payload) => exports.begin((op) => host.ask(op, kind, JSON.stringify(payload ?? null))).promise;

// Sends a message to the agent.
exports.send = (kind, payload) => host.send(kind, JSON.stringify(payload ?? null));

// Looks something up in the session; answered synchronously.
exports.query = (kind, payload) => {
  try {
    return JSON.parse(host.query(kind, JSON.stringify(payload ?? null)));
  } catch (error) {
    owners.noteMissing(owners.text(error));
    throw error;
  }
};

// Starts an operation with several pieces: `onPiece` gets each, `signal` aborts it.
exports.open = (kind, payload, onPiece, signal) => {
  const ext = owners.now();
  const done = owners.pauseBudget(ext);
  const { op, promise } = exports.begin((op) => host.ask(op, kind, JSON.stringify(payload ?? null)), onPiece);
  const abort = () => host.cancel(op);
  if (signal?.aborted) abort();
  else signal?.addEventListener?.("abort", abort);
  return promise.finally(() => {
    done();
    signal?.removeEventListener?.("abort", abort);
  });
};
