// Stack traces in V8's form: the error on the first line, then the calls. The engine provides only the calls.

const { get: callsOf } = Object.getOwnPropertyDescriptor(Error.prototype, "stack");
const { toString } = Error.prototype;
const { captureStackTrace } = Error;

// What was thrown may have its own getters, which may throw in turn.
const headOf = (error) => {
  try {
    return toString.call(error);
  } catch {
    return "Error";
  }
};

// A stack that `Error.prepareStackTrace` or other code has made is left alone.
const isPlain = (stack) => typeof stack === "string" && (stack === "" || stack.startsWith("    at "));
const withHead = (error, stack) => (isPlain(stack) ? `${headOf(error)}\n${stack}`.trimEnd() : stack);

// The first line is made when the stack is read: names and messages are often set after the error was created.
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

// The calls alone; "" if there are none.
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
