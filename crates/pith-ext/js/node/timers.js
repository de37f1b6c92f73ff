// node:timers and, under `promises`, node:timers/promises.

const { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate, Timeout } = require("internal/timers");

const wait = (delay, value, { signal } = {}) =>
  new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve(value);
    }, delay);
    signal?.addEventListener("abort", abort, { once: true });
  });

const promises = {
  setTimeout: wait,
  setImmediate: (value, options) => wait(1, value, options),
  async *setInterval(delay, value, options) {
    for (;;) yield await wait(delay, value, options);
  },
  scheduler: { wait: (delay, options) => wait(delay, undefined, options), yield: () => wait(1) },
};

module.exports = { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate, Timeout, promises };
