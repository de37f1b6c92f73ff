// node:assert.

class AssertionError extends Error {
  constructor({ message, actual, expected, operator }) {
    super(message ?? `${operator ?? "assertion"} failed`);
    this.name = "AssertionError";
    this.code = "ERR_ASSERTION";
    Object.assign(this, { actual, expected, operator });
  }
}

const fail = (message, actual, expected, operator) => {
  if (message instanceof Error) throw message;
  const { inspect } = require("util");
  throw new AssertionError({ message: message ?? `Expected ${inspect(actual)} ${operator} ${inspect(expected)}`, actual, expected, operator });
};

function isDeepEqual(a, b, isStrict = true, seen = new Map()) {
  // biome-ignore lint/suspicious/noDoubleEquals: loose equality is loose.
  if (isStrict ? Object.is(a, b) : a == b || (a !== a && b !== b)) return true;
  if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return false;
  if (isStrict && Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  if (seen.get(a) === b) return true;
  seen.set(a, b);
  const same = (x, y) => isDeepEqual(x, y, isStrict, seen);
  if (a instanceof Date && b instanceof Date) return a.getTime() === b.getTime();
  if (a instanceof RegExp && b instanceof RegExp) return String(a) === String(b);
  if (a instanceof Error && b instanceof Error && (a.message !== b.message || a.name !== b.name)) return false;
  if (a instanceof Map && b instanceof Map) return a.size === b.size && [...a].every(([key, value]) => b.has(key) && same(value, b.get(key)));
  if (a instanceof Set && b instanceof Set) return a.size === b.size && [...a].every((item) => b.has(item) || [...b].some((other) => same(item, other)));
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [left, right] = [Object.keys(a), Object.keys(b)];
  return left.length === right.length && left.every((key) => Object.hasOwn(b, key) && same(a[key], b[key]));
}

const matches = (error, expected) => {
  if (expected === undefined) return true;
  if (typeof expected === "function") return expected.prototype !== undefined && error instanceof expected ? true : expected.prototype instanceof Error ? false : expected(error) === true;
  if (expected instanceof RegExp) return expected.test(String(error));
  return Object.keys(expected).every((key) => (expected[key] instanceof RegExp ? expected[key].test(String(error[key])) : isDeepEqual(error[key], expected[key])));
};

const assert = (value, message) => {
  if (!value) fail(message ?? "The expression evaluated to a falsy value", value, true, "==");
};

Object.assign(assert, {
  AssertionError,
  isDeepEqual,
  ok: assert,
  // biome-ignore lint/suspicious/noDoubleEquals: that is what it compares with.
  equal: (a, b, message) => a == b || (a !== a && b !== b) || fail(message, a, b, "=="),
  // biome-ignore lint/suspicious/noDoubleEquals: that is what it compares with.
  notEqual: (a, b, message) => a != b || fail(message, a, b, "!="),
  strictEqual: (a, b, message) => Object.is(a, b) || fail(message, a, b, "==="),
  notStrictEqual: (a, b, message) => !Object.is(a, b) || fail(message, a, b, "!=="),
  deepEqual: (a, b, message) => isDeepEqual(a, b, false) || fail(message, a, b, "deepEqual"),
  deepStrictEqual: (a, b, message) => isDeepEqual(a, b) || fail(message, a, b, "deepStrictEqual"),
  notDeepEqual: (a, b, message) => !isDeepEqual(a, b, false) || fail(message, a, b, "notDeepEqual"),
  notDeepStrictEqual: (a, b, message) => !isDeepEqual(a, b) || fail(message, a, b, "notDeepStrictEqual"),
  match: (text, pattern, message) => pattern.test(text) || fail(message, text, pattern, "match"),
  doesNotMatch: (text, pattern, message) => !pattern.test(text) || fail(message, text, pattern, "doesNotMatch"),
  fail: (message = "Failed") => fail(message),
  ifError: (error) => {
    if (error !== null && error !== undefined) throw error;
  },
  throws: (fn, expected, message) => {
    try {
      fn();
    } catch (error) {
      if (matches(error, expected)) return;
      throw error;
    }
    fail(typeof expected === "string" ? expected : (message ?? "Missing expected exception"));
  },
  doesNotThrow: (fn) => fn(),
  rejects: async (promise, expected, message) => {
    try {
      await (typeof promise === "function" ? promise() : promise);
    } catch (error) {
      if (matches(error, expected)) return;
      throw error;
    }
    fail(message ?? "Missing expected rejection");
  },
  doesNotReject: async (promise) => void (await (typeof promise === "function" ? promise() : promise)),
});
assert.strict = assert;
module.exports = assert;
