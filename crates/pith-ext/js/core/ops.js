// Operations the host carries out for extension code: promises parked under an id.

const owners = require("internal/owners");

let last = 0;
const parked = new Map(); // op -> { resolve, reject, push, ext }

exports.next = () => ++last;

// Parks a promise; `start(op)` begins the operation.
exports.park = (start, push) => {
  const op = ++last;
  const ext = owners.now();
  const promise = new Promise((resolve, reject) => parked.set(op, { resolve, reject, push, ext }));
  try {
    start(op);
  } catch (error) {
    parked.delete(op);
    throw error;
  }
  return { op, promise };
};

exports.settle = (op, ok, value) => {
  const waiting = parked.get(op);
  if (!waiting) return;
  parked.delete(op);
  if (ok) waiting.resolve(value);
  else waiting.reject(owners.tag(value instanceof Error ? value : new Error(value), waiting.ext));
};

exports.push = (op, value) => parked.get(op)?.push?.(value);

exports.forget = (op) => parked.delete(op);

// Asks the agent something and waits for its answer.
exports.ask = (kind, payload) => exports.park((op) => host.ask(op, kind, JSON.stringify(payload ?? null))).promise;

// Tells the agent something.
exports.send = (kind, payload) => host.send(kind, JSON.stringify(payload ?? null));

// Looks something up in the session; answered at once.
exports.query = (kind, payload) => {
  try {
    return JSON.parse(host.query(kind, JSON.stringify(payload ?? null)));
  } catch (error) {
    owners.lack(owners.text(error));
    throw error;
  }
};

// An operation with pieces: `onPiece` sees each, `signal` ends it early.
exports.open = (kind, payload, onPiece, signal) => {
  const ext = owners.now();
  const done = owners.excuse(ext);
  const { op, promise } = exports.park((op) => host.ask(op, kind, JSON.stringify(payload ?? null)), onPiece);
  const abort = () => host.cancel(op);
  if (signal?.aborted) abort();
  else signal?.addEventListener?.("abort", abort);
  return promise.finally(() => {
    done();
    signal?.removeEventListener?.("abort", abort);
  });
};
