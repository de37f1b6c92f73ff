// Web streams that are written, and what they share with those that are read.

const { illegal } = require("internal/abort");

const state = Symbol("state");
const own = Symbol("own");
const invalid = (why) => Object.assign(new TypeError(`Invalid state: ${why}`), { code: "ERR_INVALID_STATE" });

// A promise with its ends. Whether anyone waits for it does not matter.
function deferred() {
  const made = Promise.withResolvers();
  made.promise.catch(() => {});
  return made;
}

const hidden = (object, core) => Object.defineProperty(object, state, { value: core, writable: true });

const strategyOf = ({ highWaterMark, size } = {}, usual = 1) => {
  const mark = highWaterMark === undefined ? usual : Number(highWaterMark);
  if (Number.isNaN(mark) || mark < 0) throw Object.assign(new RangeError(`The property 'strategy.highWaterMark' is invalid. Received ${highWaterMark}`), { code: "ERR_INVALID_ARG_VALUE" });
  return { mark, sizeOf: size ?? (() => 1) };
};

// Everything behind a writable stream.
class Core {
  queue = []; // { chunk, size, done }
  size = 0;
  state = "writable"; // writable | closing | closed | errored
  closed = deferred();
  ready = deferred();
  writer = null;
  isStarted = false;
  running = null; // the write or close that the sink is at
  constructor(sink, mark, sizeOf) {
    Object.assign(this, { sink, mark, sizeOf });
    this.abortion = new AbortController();
    this.controller = new WritableStreamDefaultController(own, this);
    if (this.room > 0) this.ready.resolve();
    const started = sink.start?.(this.controller);
    Promise.resolve(started).then(
      () => {
        this.isStarted = true;
        this.advance();
      },
      (error) => this.fail(error),
    );
  }
  get room() {
    return this.state === "errored" ? null : this.state === "closed" ? 0 : this.mark - this.size;
  }
  write(chunk) {
    if (this.state === "errored") return Promise.reject(this.error);
    if (this.state !== "writable") return Promise.reject(invalid("WritableStream is closed"));
    let size;
    try {
      size = Number(this.sizeOf(chunk));
    } catch (error) {
      this.fail(error);
      return Promise.reject(error);
    }
    const done = deferred();
    this.queue.push({ chunk, size, done });
    if (this.room > 0 && this.room - size <= 0) this.ready = deferred();
    this.size += size;
    this.advance();
    return done.promise;
  }
  async advance() {
    if (!this.isStarted || this.running || this.state === "errored" || this.state === "closed") return;
    const next = this.queue[0];
    if (!next && this.state !== "closing") return;
    this.running = next ? next.done : this.closed;
    try {
      if (next) await this.sink.write?.(next.chunk, this.controller);
      else await this.sink.close?.();
    } catch (error) {
      this.running = null;
      next?.done.reject(error);
      return this.fail(error);
    }
    this.running = null;
    if (!next) {
      if (this.state === "errored") return;
      this.state = "closed";
      this.closed.resolve();
      this.ready.resolve();
      return;
    }
    next.done.resolve();
    if (this.state === "errored") return;
    this.queue.shift();
    const wasFull = this.room <= 0;
    this.size -= next.size;
    if (wasFull && this.room > 0) this.ready.resolve();
    this.advance();
  }
  close() {
    if (this.state === "errored") return Promise.reject(this.error);
    if (this.state !== "writable") return Promise.reject(invalid(this.state === "closed" ? "WritableStream is closed" : "Failure closing WritableStream"));
    this.state = "closing";
    this.ready.resolve();
    this.advance();
    return this.closed.promise;
  }
  fail(error) {
    if (this.state === "errored" || this.state === "closed") return;
    this.state = "errored";
    this.error = error;
    for (const { done } of this.queue.splice(0)) if (done !== this.running) done.reject(error);
    this.size = 0;
    this.closed.reject(error);
    this.ready.reject(error);
    this.ready = deferred();
    this.ready.reject(error);
  }
  async abort(reason) {
    if (this.state === "errored" || this.state === "closed") return;
    this.abortion.abort(reason);
    const { running } = this;
    this.fail(reason);
    // The sink is left to finish what it is at.
    if (running && running !== this.closed) await running.promise.catch(() => {});
    await this.sink.abort?.(reason);
  }
}

class WritableStreamDefaultController {
  constructor(key, core) {
    if (key !== own) throw illegal();
    hidden(this, core);
  }
  get signal() {
    return this[state].abortion.signal;
  }
  error(error) {
    this[state].fail(error);
  }
}

class WritableStreamDefaultWriter {
  constructor(stream) {
    const core = stream[state];
    if (core.writer) throw invalid("WritableStream is locked");
    core.writer = this;
    hidden(this, core);
  }
  get closed() {
    return this[state] ? this[state].closed.promise : Promise.reject(invalid("Writer is not bound to a WritableStream"));
  }
  get ready() {
    return this[state] ? this[state].ready.promise : Promise.reject(invalid("Writer is not bound to a WritableStream"));
  }
  get desiredSize() {
    if (!this[state]) throw invalid("Writer is not bound to a WritableStream");
    return this[state].room;
  }
  write(chunk) {
    return this[state] ? this[state].write(chunk) : Promise.reject(invalid("Writer is not bound to a WritableStream"));
  }
  close() {
    return this[state] ? this[state].close() : Promise.reject(invalid("Writer is not bound to a WritableStream"));
  }
  abort(reason) {
    return this[state] ? this[state].abort(reason) : Promise.reject(invalid("Writer is not bound to a WritableStream"));
  }
  releaseLock() {
    if (this[state]) this[state].writer = null;
    this[state] = null;
  }
}

class WritableStream {
  constructor(sink = {}, strategy = {}) {
    const { mark, sizeOf } = strategyOf(strategy);
    hidden(this, new Core(sink ?? {}, mark, sizeOf));
  }
  get locked() {
    return this[state].writer !== null;
  }
  getWriter() {
    return new WritableStreamDefaultWriter(this);
  }
  close() {
    return this.locked ? Promise.reject(invalid("WritableStream is locked")) : this[state].close();
  }
  abort(reason) {
    return this.locked ? Promise.reject(invalid("WritableStream is locked")) : this[state].abort(reason);
  }
}

module.exports = { WritableStream, WritableStreamDefaultWriter, WritableStreamDefaultController, state, own, invalid, deferred, hidden, strategyOf };
