// Determines which extension is responsible: for errors, for time used, for interrupts.
//
// While pith calls into an extension, that is the current owner. Code that runs later (after an await, in a timer) is
// recognised by the files on its stack.

const { stackOf } = require("internal/traces");

const files = new Map(); // evaluated file name -> extension

exports.current = null; // { ext, run } while extension code runs synchronously

exports.claim = (filename, ext) => files.set(filename, ext);

exports.isClaimed = (filename) => files.has(filename);

exports.forget = (ext) => {
  for (const [filename, owner] of files) if (owner === ext) files.delete(filename);
};

// The files of one instance of an extension belong to the next one.
exports.replace = (before, ext) => {
  for (const [filename, owner] of files) if (owner === before) files.set(filename, ext);
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

// The extension on whose behalf the caller runs, if it can be determined.
exports.now = () => exports.current?.ext ?? exports.ofStack(stackOf(new Error()));

// Errors created by pith's own modules have no file of an extension on their stack; they are tagged instead.
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

// Reserved memory: when there is none left, freeing it makes room for the report.
// biome-ignore lint/correctness/noUnusedVariables: held, never read.
let reserve = new Uint8Array(1 << 20);
exports.refill = () => {
  // Fails if there is not enough left to work with.
  reserve = new Uint8Array(4 << 20);
  reserve = new Uint8Array(1 << 20);
};

// Without memory the engine throws `null`: it cannot even create an error.
const isExhaustion = (error) => error === null || (error instanceof Error && exports.text(error) === "out of memory");
exports.freeReserve = (error) => {
  if (!isExhaustion(error)) return;
  reserve = null;
  host.exhausted();
};

// The engine's message does not name what could not be called; the source does.
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

// Records something that an extension needed and did not get. A `tool_call` handler that is deciding at the moment may
// have depended on it, even if it catches the error.
exports.noteMissing = (why, ext = exports.now()) => {
  for (const decision of ext?.toolCallDecisions ?? []) decision.missing ??= why;
};

// The error for something that pith does not have.
exports.unavailable = (what, why = "is not available in pith") => {
  exports.noteMissing(`${what} ${why}`);
  return Object.assign(new Error(`${what} ${why}`), { code: "ERR_FEATURE_UNAVAILABLE_ON_PLATFORM" });
};

// What becomes of an export: `refuses` or `headless stub`; everything else works. docs/sdk.md is made of it.
exports.KIND = Symbol.for("pith.export");

// A name that can be imported, called, constructed and extended; only using it fails.
exports.refusal = (what, why, name = what.slice(what.lastIndexOf(".") + 1)) => {
  const refuse = function () {
    throw exports.unavailable(what, why);
  };
  Object.defineProperty(refuse, "name", { value: name });
  return Object.defineProperty(refuse, exports.KIND, { value: "refuses" });
};

// Stops the clock while an extension waits for dialogs, processes or the network.
exports.pauseBudget = (ext) => {
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

// Reports an `extension_error` to the host, with the stack for the log.
exports.report = (path, event, error) => {
  const stack = stackOf(error);
  host.send("error", JSON.stringify({ extensionPath: path, event, error: exports.text(error), stack }));
};
