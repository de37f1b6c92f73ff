// Stack traces as V8 has them: the error on the first line, then the calls. The engine knows the calls alone.

const { get: callsOf } = Object.getOwnPropertyDescriptor(Error.prototype, "stack");
const { toString } = Error.prototype;
const { captureStackTrace } = Error;

// What was thrown may have getters of its own, and they may throw in turn.
const headOf = (error) => {
  try {
    return toString.call(error);
  } catch {
    return "Error";
  }
};

// What `Error.prepareStackTrace` or anybody else has made stays as it is.
const isPlain = (stack) => typeof stack === "string" && (stack === "" || stack.startsWith("    at "));
const withHead = (error, stack) => (isPlain(stack) ? `${headOf(error)}\n${stack}`.trimEnd() : stack);

// The head is made when somebody looks: names and messages are often set after the error was made.
const shown = (calls) => ({
  configurable: true,
  enumerable: false,
  get() {
    return withHead(this, calls(this));
  },
  set(value) {
    Object.defineProperty(this, "stack", { value, writable: true, configurable: true, enumerable: false });
  },
});

Object.defineProperty(Error.prototype, "stack", shown((error) => callsOf.call(error)));

const capture = (target, above) => {
  captureStackTrace(target, typeof above === "function" ? above : capture);
  const calls = Object.getOwnPropertyDescriptor(target, "stack")?.value;
  if (isPlain(calls)) Object.defineProperty(target, "stack", shown(() => calls));
};
Object.defineProperty(capture, "name", { value: "captureStackTrace" });
Object.defineProperty(Error, "captureStackTrace", { value: capture, writable: true, configurable: true });

// The calls alone; "" if there is nothing to be had.
exports.stackOf = (error) => {
  try {
    const isOwn = Object.hasOwn(error, "stack");
    const stack = isOwn || !(error instanceof Error) ? error.stack : callsOf.call(error);
    if (typeof stack !== "string") return "";
    const head = headOf(error);
    return isOwn && stack.startsWith(`${head}\n`) ? stack.slice(head.length + 1) : stack;
  } catch {
    return "";
  }
};
