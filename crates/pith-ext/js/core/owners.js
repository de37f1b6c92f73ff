// Which extension is responsible: for errors, for time spent, for interrupts.
//
// While pith calls into an extension it is the current owner. Code that runs
// later (after an await, in a timer) is recognised by the files on its stack.

const { stackOf } = require("internal/traces");

const files = new Map(); // evaluated file name -> extension

exports.current = null; // { ext, run } while extension code runs synchronously

exports.claim = (filename, ext) => files.set(filename, ext);

exports.isClaimed = (filename) => files.has(filename);

exports.forget = (ext) => {
  for (const [filename, owner] of files) if (owner === ext) files.delete(filename);
};

// The extension whose code is innermost on a stack.
exports.ofStack = (stack) => {
  if (typeof stack !== "string" || files.size === 0) return null;
  for (const line of stack.split("\n")) {
    const place = line.slice(line.lastIndexOf("(") + 1);
    const end = place.search(/:\d+(:\d+)?\)?$/);
    const ext = files.get(end < 0 ? place : place.slice(0, end));
    if (ext) return ext;
  }
  return null;
};

// The extension on whose behalf the caller runs, if that can be told.
exports.now = () => exports.current?.ext ?? exports.ofStack(stackOf(new Error()));

// Errors made by pith's own modules carry no file of an extension; they are tagged instead.
const tags = new WeakMap();
exports.tag = (error, ext) => {
  if (ext && error !== null && typeof error === "object") tags.set(error, ext);
  return error;
};
exports.ofError = (error) => {
  if (error === null || typeof error !== "object") return null;
  return exports.ofStack(stackOf(error)) ?? tags.get(error) ?? null;
};

exports.stackOf = stackOf;

// Memory kept back: when there is none left, giving it up makes room for the report.
// biome-ignore lint/correctness/noUnusedVariables: held, never read.
let reserve = new Uint8Array(1 << 20);
exports.refill = () => {
  // Fails if there is not enough left to work with.
  reserve = new Uint8Array(4 << 20);
  reserve = new Uint8Array(1 << 20);
};

// An engine without memory throws `null`: it cannot even make an error.
const isExhaustion = (error) => error === null || (error instanceof Error && exports.text(error) === "out of memory");
exports.relieve = (error) => {
  if (!isExhaustion(error)) return;
  reserve = null;
  host.exhausted();
};

// The engine does not say what it was that could not be called; the source does.
const nameless = new Set(["not a function", "not a constructor"]);

// The text of whatever was thrown.
exports.text = (error) => {
  try {
    if (error === null) return "out of memory";
    if (error instanceof TypeError && nameless.has(error.message)) return host.named(error.message, stackOf(error)) ?? error.message;
    if (error instanceof Error || (error && typeof error.message === "string")) return error.message || error.name || "Error";
    return String(error);
  } catch {
    return "unknown error";
  }
};

// Something an extension wanted and did not get. A gate that is deciding meanwhile may have depended on it, whatever it
// makes of the error.
exports.lack = (why, ext = exports.now()) => {
  for (const gate of ext?.gates ?? []) gate.lacks ??= why;
};

// The error for something pith does not have.
exports.unavailable = (what, why = "is not available in pith") => {
  exports.lack(`${what} ${why}`);
  return Object.assign(new Error(`${what} ${why}`), { code: "ERR_FEATURE_UNAVAILABLE_ON_PLATFORM" });
};

// Time an extension spends waiting for people, processes or the network does not count against it.
exports.excuse = (ext) => {
  if (!ext) return () => {};
  if (ext.waits++ === 0) ext.waitsSince = host.now();
  let isOpen = true;
  return () => {
    if (!isOpen) return;
    isOpen = false;
    if (--ext.waits === 0) ext.waited += host.now() - ext.waitsSince;
  };
};
exports.waited = (ext) => ext.waited + (ext.waits > 0 ? host.now() - ext.waitsSince : 0);

// An `extension_error` for the host, and the stack for whoever debugs the extension.
exports.report = (path, event, error) => {
  const stack = stackOf(error);
  host.send("error", JSON.stringify({ extensionPath: path, event, error: exports.text(error), stack }));
};
