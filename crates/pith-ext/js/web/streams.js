// Web streams: what is read, and transforms. web/writable.js has what is written.

const { WritableStream, WritableStreamDefaultWriter, WritableStreamDefaultController, state, own, invalid, deferred, hidden, strategyOf } = require("internal/writable");
const { illegal } = require("internal/abort");

const bytesOf = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);

// Everything behind a readable stream; its controller and reader are faces of it.
class Core {
  queue = []; // { chunk, size }
  size = 0;
  state = "readable"; // readable | closed | errored
  requests = []; // reads that wait: { resolve, reject, view }
  reader = null;
  isStarted = false;
  isPulling = false;
  pullsAgain = false;
  isClosing = false;
  constructor(stream, source, strategy) {
    this.source = source;
    this.isBytes = source.type === "bytes";
    Object.assign(this, strategy);
    this.controller = this.isBytes ? new ReadableByteStreamController(own, this) : new ReadableStreamDefaultController(own, this);
    this.stream = stream;
    const begin = () => {
      this.isStarted = true;
      this.pull();
    };
    const started = source.start?.(this.controller);
    if (typeof started?.then === "function") Promise.resolve(started).then(begin, (error) => this.fail(error));
    else queueMicrotask(begin);
  }
  get room() {
    return this.state === "errored" ? null : this.state === "closed" ? 0 : this.mark - this.size;
  }
  get isOpen() {
    return this.state === "readable" && !this.isClosing;
  }
  pull() {
    if (!this.source.pull || !this.isStarted || !this.isOpen || (this.requests.length === 0 && this.room <= 0)) return;
    if (this.isPulling) {
      this.pullsAgain = true;
      return;
    }
    this.isPulling = true;
    const done = () => {
      this.isPulling = false;
      if (!this.pullsAgain) return;
      this.pullsAgain = false;
      this.pull();
    };
    let result;
    try {
      result = this.source.pull(this.controller);
    } catch (error) {
      return this.fail(error);
    }
    Promise.resolve(result).then(done, (error) => this.fail(error));
  }
  enqueue(chunk) {
    if (!this.isOpen) throw invalid(this.isClosing || this.state === "closed" ? "Controller is already closed" : "Controller is already errored");
    if (this.isBytes && !ArrayBuffer.isView(chunk)) throw Object.assign(new TypeError('The "chunk" argument must be an instance of Buffer, TypedArray, or DataView'), { code: "ERR_INVALID_ARG_TYPE" });
    const request = this.requests.shift();
    if (request && !request.view) request.resolve({ value: chunk, done: false });
    else {
      let size;
      try {
        size = this.isBytes ? chunk.byteLength : Number(this.sizeOf(chunk));
        if (!(size >= 0 && size < Infinity)) throw new RangeError("The size of a chunk must be a number that is not negative");
      } catch (error) {
        this.fail(error);
        throw error;
      }
      this.queue.push({ chunk, size });
      this.size += size;
      if (request) this.fill(request);
    }
    this.pull();
  }
  take() {
    const { chunk, size } = this.queue.shift();
    this.size -= size;
    if (this.isClosing && this.queue.length === 0) this.finish();
    return chunk;
  }
  // Answers a read into the caller's own memory.
  fill({ view, resolve }) {
    const target = bytesOf(view);
    let filled = 0;
    while (filled < target.length && this.queue.length) {
      const bytes = bytesOf(this.queue[0].chunk);
      const part = bytes.subarray(0, target.length - filled);
      target.set(part, filled);
      filled += part.length;
      if (part.length === bytes.length) this.take();
      else {
        this.queue[0] = { chunk: bytes.subarray(part.length), size: bytes.length - part.length };
        this.size -= part.length;
      }
    }
    resolve({ value: this.viewOf(view, filled), done: false });
  }
  viewOf(view, length) {
    return view instanceof DataView ? new DataView(view.buffer, view.byteOffset, length) : new view.constructor(view.buffer, view.byteOffset, Math.floor(length / view.BYTES_PER_ELEMENT));
  }
  read(view) {
    this.isDisturbed = true;
    if (this.queue.length) {
      const waiting = deferred();
      if (view) this.fill({ view, resolve: waiting.resolve });
      else waiting.resolve({ value: this.take(), done: false });
      this.pull();
      return waiting.promise;
    }
    if (this.state === "errored") return Promise.reject(this.error);
    if (this.state === "closed") return Promise.resolve({ value: view && this.viewOf(view, 0), done: true });
    const waiting = deferred();
    this.requests.push({ ...waiting, view });
    this.pull();
    return waiting.promise;
  }
  close() {
    if (!this.isOpen) throw invalid(this.state === "errored" ? "Controller is already errored" : "Controller is already closed");
    this.isClosing = true;
    if (this.queue.length === 0) this.finish();
  }
  finish() {
    this.state = "closed";
    for (const { resolve, view } of this.requests.splice(0)) resolve({ value: view && this.viewOf(view, 0), done: true });
    this.reader?.[state].closed.resolve();
  }
  fail(error) {
    if (this.state !== "readable") return;
    this.state = "errored";
    this.error = error;
    this.queue = [];
    this.size = 0;
    for (const { reject } of this.requests.splice(0)) reject(error);
    this.reader?.[state].closed.reject(error);
  }
  async cancel(reason) {
    this.isDisturbed = true;
    if (this.state === "closed") return;
    if (this.state === "errored") throw this.error;
    this.queue = [];
    this.size = 0;
    this.finish();
    await this.source.cancel?.(reason);
  }
}

class ReadableStreamDefaultController {
  constructor(key, core) {
    if (key !== own) throw illegal();
    hidden(this, core);
  }
  get desiredSize() {
    return this[state].room;
  }
  enqueue(chunk) {
    this[state].enqueue(chunk);
  }
  close() {
    this[state].close();
  }
  error(error) {
    this[state].fail(error);
  }
}

class ReadableByteStreamController {
  constructor(key, core) {
    if (key !== own) throw illegal();
    hidden(this, core);
  }
  get byobRequest() {
    const core = this[state];
    return core.requests[0]?.view ? new ReadableStreamBYOBRequest(own, core) : null;
  }
}
// The rest is the same, on a prototype of its own.
for (const name of ["desiredSize", "enqueue", "close", "error"]) {
  Object.defineProperty(ReadableByteStreamController.prototype, name, Object.getOwnPropertyDescriptor(ReadableStreamDefaultController.prototype, name));
}

class ReadableStreamBYOBRequest {
  constructor(key, core) {
    if (key !== own) throw illegal();
    hidden(this, core);
    this.request = core.requests[0];
    Object.defineProperty(this, "request", { enumerable: false });
  }
  get view() {
    return this.request ? bytesOf(this.request.view) : null;
  }
  #settle(value) {
    const core = this[state];
    if (!this.request || core.requests[0] !== this.request) throw invalid("This BYOB request has been invalidated");
    core.requests.shift();
    this.request.resolve(value);
    this.request = null;
    core.pull();
  }
  respond(count) {
    const { view } = this.request ?? {};
    if (view && count > view.byteLength) throw new RangeError("The response is longer than the view");
    this.#settle({ value: view && this[state].viewOf(view, count), done: count === 0 });
  }
  respondWithNewView(view) {
    this.#settle({ value: view, done: view.byteLength === 0 });
  }
}

class Reader {
  constructor(stream) {
    const core = stream[state];
    if (core.reader) throw invalid("ReadableStream is locked");
    core.reader = this;
    const closed = deferred();
    hidden(this, { core, closed });
    if (core.state === "closed") closed.resolve();
    if (core.state === "errored") closed.reject(core.error);
  }
  get closed() {
    return this[state].closed.promise;
  }
  cancel(reason) {
    const { core } = this[state];
    return core ? core.cancel(reason) : Promise.reject(invalid("The reader is not attached to a stream"));
  }
  releaseLock() {
    const { core } = this[state];
    if (!core) return;
    const error = invalid("Reader released");
    for (const { reject } of core.requests.splice(0)) reject(error);
    core.reader = null;
    const closed = deferred();
    closed.reject(error);
    if (core.state === "readable") this[state].closed.reject(error);
    this[state] = { core: null, closed };
  }
}

class ReadableStreamDefaultReader extends Reader {
  read() {
    const { core } = this[state];
    return core ? core.read() : Promise.reject(invalid("The reader is not attached to a stream"));
  }
}

class ReadableStreamBYOBReader extends Reader {
  constructor(stream) {
    if (!stream[state].isBytes) throw Object.assign(new TypeError("The stream is not one of bytes"), { code: "ERR_INVALID_ARG_VALUE" });
    super(stream);
  }
  read(view) {
    const { core } = this[state];
    if (!ArrayBuffer.isView(view)) return Promise.reject(Object.assign(new TypeError('The "view" argument must be an instance of Buffer, TypedArray, or DataView'), { code: "ERR_INVALID_ARG_TYPE" }));
    if (view.byteLength === 0) return Promise.reject(invalid("View ArrayBuffer is zero-length or detached"));
    return core ? core.read(view) : Promise.reject(invalid("The reader is not attached to a stream"));
  }
}
// Both find the methods of a reader among their own.
for (const type of [ReadableStreamDefaultReader, ReadableStreamBYOBReader]) {
  for (const name of ["closed", "cancel", "releaseLock"]) Object.defineProperty(type.prototype, name, Object.getOwnPropertyDescriptor(Reader.prototype, name));
}

class ReadableStream {
  constructor(source = {}, strategy) {
    const isBytes = source?.type === "bytes";
    hidden(this, new Core(this, source ?? {}, strategyOf(strategy, isBytes ? 0 : 1)));
  }
  get locked() {
    return this[state].reader !== null;
  }
  get [Symbol.for("nodejs.stream.disturbed")]() {
    return !!this[state].isDisturbed;
  }
  getReader({ mode } = {}) {
    return mode === "byob" ? new ReadableStreamBYOBReader(this) : new ReadableStreamDefaultReader(this);
  }
  cancel(reason) {
    return this.locked ? Promise.reject(invalid("ReadableStream is locked")) : this[state].cancel(reason);
  }
  values({ preventCancel = false } = {}) {
    const reader = this.getReader();
    return (async function* () {
      let isOver = false;
      try {
        for (;;) {
          const { value, done } = await reader.read().catch((error) => {
            isOver = true;
            throw error;
          });
          if (done) {
            isOver = true;
            return;
          }
          yield value;
        }
      } finally {
        if (!isOver && !preventCancel) await reader.cancel();
        reader.releaseLock();
      }
    })();
  }
  [Symbol.asyncIterator](options) {
    return this.values(options);
  }
  tee() {
    const reader = this.getReader();
    const cancelled = [];
    const whole = deferred();
    let isReading = false;
    const branches = [];
    const pull = async () => {
      if (isReading) return;
      isReading = true;
      const { value, done } = await reader.read();
      isReading = false;
      for (const [at, branch] of branches.entries()) {
        if (cancelled[at]) continue;
        if (done) branch[state].close();
        else branch[state].enqueue(value);
      }
      if (done && cancelled.length < 2) whole.resolve();
    };
    for (const at of [0, 1]) {
      const cancel = (reason) => {
        cancelled[at] = { reason };
        if (cancelled[0] && cancelled[1]) whole.resolve(reader.cancel(cancelled.map((entry) => entry.reason)));
        return whole.promise;
      };
      branches.push(new ReadableStream({ pull, cancel }, { highWaterMark: 0 }));
    }
    reader.closed.catch((error) => {
      for (const branch of branches) branch[state].fail(error);
    });
    return branches;
  }
  pipeThrough({ readable, writable }, options) {
    this.pipeTo(writable, options).catch(() => {});
    return readable;
  }
  async pipeTo(writable, { preventClose, preventAbort, preventCancel, signal } = {}) {
    const reader = this.getReader();
    const writer = writable.getWriter();
    const stopped = deferred();
    const stop = () => stopped.reject(signal.reason);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
    // A target that fails ends the transfer while the source is silent, too.
    writer.closed.catch((error) => stopped.reject(error));
    let last = Promise.resolve();
    try {
      for (;;) {
        await Promise.race([writer.ready, stopped.promise]);
        const { value, done } = await Promise.race([reader.read(), stopped.promise]);
        if (done) break;
        last = writer.write(value);
        last.catch(() => {});
      }
      await last;
      if (!preventClose) await writer.close();
    } catch (error) {
      const isOurs = this[state].state !== "errored";
      if (!preventAbort && (signal?.aborted || !isOurs)) await writer.abort(error).catch(() => {});
      if (!preventCancel && isOurs) await reader.cancel(error).catch(() => {});
      throw error;
    } finally {
      signal?.removeEventListener("abort", stop);
      reader.releaseLock();
      writer.releaseLock();
    }
  }
  static from(items) {
    const method = items?.[Symbol.asyncIterator] ?? items?.[Symbol.iterator];
    if (typeof method !== "function") throw Object.assign(new TypeError("The object is not iterable"), { code: "ERR_ARG_NOT_ITERABLE" });
    const iterator = method.call(items);
    return new ReadableStream(
      {
        async pull(controller) {
          const { value, done } = await iterator.next();
          if (done) controller.close();
          else controller.enqueue(await value);
        },
        cancel: async (reason) => {
          await iterator.return?.(reason);
        },
      },
      { highWaterMark: 0 },
    );
  }
}

class TransformStreamDefaultController {
  constructor(key, core) {
    if (key !== own) throw illegal();
    hidden(this, core);
  }
  get desiredSize() {
    return this[state].readable[state].room;
  }
  enqueue(chunk) {
    this[state].readable[state].enqueue(chunk);
    if (this.desiredSize <= 0 && this[state].readable[state].requests.length === 0) this[state].hold();
  }
  error(error) {
    this[state].readable[state].fail(error);
    this[state].writable[state].fail(error);
  }
  terminate() {
    const { readable, writable } = this[state];
    if (readable[state].isOpen) readable[state].close();
    writable[state].fail(invalid("TransformStream terminated"));
  }
}

class TransformStream {
  constructor(transformer = {}, writableStrategy, readableStrategy) {
    transformer ??= {};
    // Writing waits until somebody reads.
    let wanted = deferred();
    let isHeld = true;
    const core = {
      hold() {
        if (isHeld) return;
        isHeld = true;
        wanted = deferred();
      },
    };
    const controller = new TransformStreamDefaultController(own, core);
    const failing = async (work) => {
      try {
        await work();
      } catch (error) {
        controller.error(error);
        throw error;
      }
    };
    const started = deferred();
    core.readable = new ReadableStream(
      {
        pull: () => {
          isHeld = false;
          wanted.resolve();
        },
        cancel: async (reason) => {
          await transformer.cancel?.(reason);
          core.writable[state].fail(reason);
          wanted.resolve();
        },
      },
      { highWaterMark: 0, ...readableStrategy },
    );
    core.writable = new WritableStream(
      {
        start: () => started.promise,
        write: (chunk) =>
          failing(async () => {
            if (isHeld) await wanted.promise;
            if (transformer.transform) await transformer.transform(chunk, controller);
            else controller.enqueue(chunk);
          }),
        close: () =>
          failing(async () => {
            await transformer.flush?.(controller);
            if (core.readable[state].isOpen) core.readable[state].close();
          }),
        abort: async (reason) => {
          await transformer.cancel?.(reason);
          core.readable[state].fail(reason);
        },
      },
      writableStrategy,
    );
    Object.defineProperties(this, { readable: { value: core.readable, enumerable: true }, writable: { value: core.writable, enumerable: true } });
    started.resolve(transformer.start?.(controller));
  }
}

class TextDecoderStream extends TransformStream {
  constructor(encoding, options) {
    const decoder = new TextDecoder(encoding, options);
    const pass = (text, controller) => text && controller.enqueue(text);
    super({
      transform: (chunk, controller) => pass(decoder.decode(chunk, { stream: true }), controller),
      flush: (controller) => pass(decoder.decode(), controller),
    });
    for (const name of ["encoding", "fatal", "ignoreBOM"]) this[name] = decoder[name];
  }
}

class TextEncoderStream extends TransformStream {
  constructor() {
    const encoder = new TextEncoder();
    super({ transform: (chunk, controller) => controller.enqueue(encoder.encode(chunk)) });
    this.encoding = "utf-8";
  }
}

class CountQueuingStrategy {
  constructor({ highWaterMark }) {
    this.highWaterMark = Number(highWaterMark);
  }
  get size() {
    return () => 1;
  }
}

class ByteLengthQueuingStrategy {
  constructor({ highWaterMark }) {
    this.highWaterMark = Number(highWaterMark);
  }
  get size() {
    return (chunk) => chunk.byteLength;
  }
}

module.exports = {
  ReadableStream, ReadableStreamDefaultReader, ReadableStreamBYOBReader, ReadableStreamBYOBRequest, ReadableStreamDefaultController, ReadableByteStreamController,
  WritableStream, WritableStreamDefaultWriter, WritableStreamDefaultController, TransformStream, TransformStreamDefaultController,
  TextDecoderStream, TextEncoderStream, CountQueuingStrategy, ByteLengthQueuingStrategy,
  get CompressionStream() {
    return require("internal/small").CompressionStream;
  },
  get DecompressionStream() {
    return require("internal/small").DecompressionStream;
  },
};
