// node:async_hooks. The engine does not track asynchronous work, so a store is only visible synchronously.

class AsyncLocalStorage {
  #store;
  run(store, fn, ...args) {
    const before = this.#store;
    this.#store = store;
    const restore = () => {
      this.#store = before;
    };
    let result;
    try {
      result = fn(...args);
    } catch (error) {
      restore();
      throw error;
    }
    // Kept until an asynchronous callback has finished: correct as long as such runs do not overlap.
    if (typeof result?.then === "function") return Promise.resolve(result).finally(restore);
    restore();
    return result;
  }
  exit(fn, ...args) {
    return this.run(undefined, fn, ...args);
  }
  getStore() {
    return this.#store;
  }
  enterWith(store) {
    this.#store = store;
  }
  disable() {
    this.#store = undefined;
  }
  static bind(fn) {
    return fn;
  }
  static snapshot() {
    return (fn, ...args) => fn(...args);
  }
}

class AsyncResource {
  constructor(type) {
    this.type = type;
  }
  runInAsyncScope(fn, self, ...args) {
    return fn.apply(self, args);
  }
  emitDestroy() {
    return this;
  }
  asyncId() {
    return 1;
  }
  triggerAsyncId() {
    return 0;
  }
  bind(fn) {
    return fn;
  }
  static bind(fn) {
    return fn;
  }
}

module.exports = { AsyncLocalStorage, AsyncResource, createHook: () => ({ enable: () => {}, disable: () => {} }), executionAsyncId: () => 1, triggerAsyncId: () => 0, executionAsyncResource: () => ({}) };
