// node:stream: readable, writable and both, without the finer points of backpressure.

const EventEmitter = require("events");

const marks = [65536, 16]; // of bytes and of objects, until somebody sets others

class Stream extends EventEmitter {
  constructor(options = {}) {
    super(options);
    this.destroyed = false;
    this.errored = null;
    this.closed = false;
    if (typeof options.destroy === "function") this._destroy = options.destroy;
    const { signal } = options;
    if (signal?.aborted) queueMicrotask(() => this.destroy(signal.reason));
    else signal?.addEventListener?.("abort", () => this.destroy(signal.reason));
  }
  destroy(error) {
    if (this.destroyed) return this;
    this.destroyed = true;
    this.errored = error ?? null;
    const done = (failure) => {
      queueMicrotask(() => {
        const reason = failure ?? error;
        if (reason) this.emit("error", reason);
        this.closed = true;
        this.emit("close");
      });
    };
    if (this._destroy) this._destroy(error ?? null, done);
    else done();
    return this;
  }
  pipe(target) {
    this.on("data", (chunk) => target.write(chunk));
    return target;
  }
  [Symbol.asyncDispose]() {
    this.destroy();
    return Promise.resolve();
  }
}

const readableParts = {
  initReadable(options) {
    this._queue = [];
    this._decoder = null;
    this._reading = false;
    this._ended = false; // push(null) was called
    this.readable = true;
    this.readableEnded = false;
    this.readableDidRead = false;
    this.readableFlowing = null;
    this.readableObjectMode = !!(options.objectMode || options.readableObjectMode);
    this.readableHighWaterMark = options.highWaterMark ?? marks[+this.readableObjectMode];
    if (typeof options.read === "function") this._read = options.read;
    if (options.encoding) this.setEncoding(options.encoding);
  },
  get readableLength() {
    return this._queue.reduce((sum, chunk) => sum + (this.readableObjectMode ? 1 : chunk.length), 0);
  },
  setEncoding(encoding) {
    const { StringDecoder } = require("string_decoder");
    this._decoder = new StringDecoder(encoding);
    this.readableEncoding = encoding;
    this._queue = this._queue.map((chunk) => (typeof chunk === "string" ? chunk : this._decoder.write(chunk)));
    return this;
  },
  push(chunk, encoding) {
    if (this._ended || this.destroyed) return false;
    this._reading = false;
    if (chunk === null) {
      const rest = this._decoder?.end();
      if (rest) this._queue.push(rest);
      this._ended = true;
    } else {
      if (!this.readableObjectMode) {
        const { Buffer } = require("buffer");
        if (typeof chunk === "string" && !this._decoder) chunk = Buffer.from(chunk, encoding);
        else if (typeof chunk !== "string") chunk = this._decoder ? this._decoder.write(chunk) : Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk);
        if (chunk.length === 0) return true;
      }
      this._queue.push(chunk);
    }
    this._schedule();
    return this.readableLength < this.readableHighWaterMark;
  },
  unshift(chunk) {
    this._queue.unshift(chunk);
  },
  _schedule() {
    if (this._scheduled) return;
    this._scheduled = true;
    queueMicrotask(() => {
      this._scheduled = false;
      this._flow();
    });
  },
  _flow() {
    if (this.destroyed) return;
    while (this.readableFlowing && this._queue.length && !this.destroyed) {
      this.readableDidRead = true;
      this.emit("data", this._queue.shift());
    }
    if (this._queue.length && this.listenerCount("readable")) this.emit("readable");
    if (this._ended && this._queue.length === 0) return this._finish();
    const wanted = this.readableFlowing || this.listenerCount("readable") || this._pulled;
    if (wanted && !this._ended && !this._reading && this._read && (this._queue.length === 0 || this.readableLength < this.readableHighWaterMark)) {
      this._reading = true;
      this._read(this.readableHighWaterMark);
    }
  },
  _finish() {
    if (this.readableEnded || this._finishing || (this.readableFlowing === null && !this._pulled && !this.listenerCount("end"))) return;
    if (this.readableFlowing === false && !this._pulled) return;
    this._finishing = true;
    if (this.listenerCount("readable")) this.emit("readable");
    this.readableEnded = true;
    this.readable = false;
    this.emit("end");
    // What is still to be written is written first.
    if (this.autoDestroy !== false && this.writableFinished !== false) this.destroy();
  },
  read(size) {
    this._pulled = true;
    if (this._queue.length === 0) {
      this._schedule();
      return null;
    }
    this.readableDidRead = true;
    let chunk;
    if (this.readableObjectMode) chunk = this._queue.shift();
    else {
      const { Buffer } = require("buffer");
      const all = typeof this._queue[0] === "string" ? this._queue.join("") : Buffer.concat(this._queue);
      if (size !== undefined && size > all.length && !this._ended) return null;
      const take = size === undefined ? all.length : Math.min(size, all.length);
      chunk = all.slice(0, take);
      this._queue = take < all.length ? [all.slice(take)] : [];
    }
    this._schedule();
    return chunk;
  },
  on(name, listener) {
    EventEmitter.prototype.on.call(this, name, listener);
    if (name === "data" && this.readableFlowing !== false) this.resume();
    if (name === "readable" || name === "end") this._schedule();
    return this;
  },
  resume() {
    this.readableFlowing = true;
    this._schedule();
    return this;
  },
  pause() {
    this.readableFlowing = false;
    return this;
  },
  isPaused() {
    return this.readableFlowing === false;
  },
  pipe(target, options = {}) {
    const onData = (chunk) => {
      if (target.write(chunk) === false && target.writableNeedDrain) {
        this.pause();
        target.once("drain", () => this.resume());
      }
    };
    this.on("data", onData);
    if (options.end !== false && target !== process.stdout && target !== process.stderr) this.once("end", () => target.end());
    (this._pipes ??= new Map()).set(target, onData);
    target.emit("pipe", this);
    return target;
  },
  unpipe(target) {
    for (const [known, onData] of this._pipes ?? []) {
      if (target && known !== target) continue;
      this.off("data", onData);
      this._pipes.delete(known);
    }
    return this;
  },
  async *[Symbol.asyncIterator]() {
    let wake = null;
    let failure = null;
    let over = false;
    const poke = () => {
      wake?.();
      wake = null;
    };
    const onError = (error) => {
      failure = { error };
      poke();
    };
    const onEnd = () => {
      over = true;
      poke();
    };
    this.on("readable", poke);
    this.on("error", onError);
    this.on("end", onEnd);
    this.on("close", onEnd);
    this._pulled = true;
    try {
      for (;;) {
        if (failure) throw failure.error;
        if (this._queue.length) yield this.read();
        else if (over || this.readableEnded || (this.destroyed && !failure)) return;
        else {
          this._schedule();
          await new Promise((resolve) => (wake = resolve));
        }
      }
    } finally {
      this.off("readable", poke);
      this.off("end", onEnd);
      this.off("close", onEnd);
      if (!this.destroyed) this.destroy();
      this.off("error", onError);
    }
  },
  iterator() {
    return this[Symbol.asyncIterator]();
  },
};

const writableParts = {
  initWritable(options) {
    this._pending = [];
    this._writing = false;
    this._ending = false;
    this.writable = true;
    this.writableEnded = false;
    this.writableFinished = false;
    this.writableNeedDrain = false;
    this.writableObjectMode = !!(options.objectMode || options.writableObjectMode);
    this.writableHighWaterMark = options.highWaterMark ?? marks[+this.writableObjectMode];
    this._decodes = options.decodeStrings !== false && !this.writableObjectMode;
    for (const name of ["write", "writev", "final"]) if (typeof options[name] === "function") this[`_${name}`] = options[name];
  },
  get writableLength() {
    return this._pending.reduce((sum, { chunk }) => sum + (this.writableObjectMode ? 1 : chunk.length), 0);
  },
  write(chunk, encoding, callback) {
    if (typeof encoding === "function") [callback, encoding] = [encoding, undefined];
    if (this._ending || this.destroyed) {
      const error = Object.assign(new Error(this._ending ? "write after end" : "Cannot call write after a stream was destroyed"), { code: this._ending ? "ERR_STREAM_WRITE_AFTER_END" : "ERR_STREAM_DESTROYED" });
      queueMicrotask(() => {
        callback?.(error);
        if (!this.destroyed) this.destroy(error);
      });
      return false;
    }
    if (this._decodes && typeof chunk === "string") chunk = require("buffer").Buffer.from(chunk, encoding);
    this._pending.push({ chunk, encoding: encoding ?? this._encoding ?? "utf8", callback });
    this._drainSoon();
    this.writableNeedDrain = this.writableLength >= this.writableHighWaterMark;
    return !this.writableNeedDrain;
  },
  _drainSoon() {
    if (this._writing || this._corked) return;
    const next = this._pending.shift();
    if (!next) return this._maybeFinish();
    this._writing = true;
    let isSync = true;
    const done = (error) => {
      this._writing = false;
      if (error) {
        next.callback?.(error);
        return this.destroy(error);
      }
      if (next.callback) queueMicrotask(() => next.callback(null));
      if (this.writableNeedDrain && this._pending.length === 0) {
        this.writableNeedDrain = false;
        queueMicrotask(() => this.emit("drain"));
      }
      if (isSync) queueMicrotask(() => this._drainSoon());
      else this._drainSoon();
    };
    try {
      this._write(next.chunk, next.encoding, done);
    } catch (error) {
      done(error);
    }
    isSync = false;
  },
  _maybeFinish() {
    if (!this._ending || this._finalizing || this._writing || this._pending.length || this.destroyed) return;
    this._finalizing = true;
    const done = (error) => {
      if (error) return this.destroy(error);
      this.writableFinished = true;
      this.emit("finish");
      if (!(this.readable && !this.readableEnded)) this.destroy();
    };
    if (this._final) this._final(done);
    else queueMicrotask(() => done());
  },
  end(chunk, encoding, callback) {
    if (typeof chunk === "function") [callback, chunk] = [chunk, undefined];
    if (typeof encoding === "function") [callback, encoding] = [encoding, undefined];
    if (chunk !== undefined && chunk !== null) this.write(chunk, encoding);
    if (callback) this.writableFinished ? queueMicrotask(callback) : this.once("finish", callback);
    this._ending = true;
    this.writableEnded = true;
    this.writable = false;
    this._corked = 0;
    this._drainSoon();
    return this;
  },
  cork() {
    this._corked = (this._corked ?? 0) + 1;
  },
  uncork() {
    if (this._corked) this._corked--;
    if (!this._corked) this._drainSoon();
  },
  setDefaultEncoding(encoding) {
    this._encoding = encoding;
    return this;
  },
};

// The helpers of iterators are loaded with their first use.
const operators = () => require("internal/stream-operators");
for (const name of ["map", "filter", "flatMap", "take", "drop", "compose", "forEach", "toArray", "some", "every", "find", "reduce"]) {
  readableParts[name] = function (...args) {
    return operators().methods[name].apply(this, args);
  };
}

const mix = (target, parts) => {
  for (const key of Reflect.ownKeys(parts)) {
    Object.defineProperty(target.prototype, key, { ...Object.getOwnPropertyDescriptor(parts, key), enumerable: false });
  }
};

class Readable extends Stream {
  constructor(options = {}) {
    super(options);
    this.initReadable(options);
  }
  static from(items, options) {
    const iterator = typeof items === "string" || items instanceof Uint8Array ? [items][Symbol.iterator]() : (items[Symbol.asyncIterator] ?? items[Symbol.iterator]).call(items);
    return new Readable({
      objectMode: true,
      ...options,
      async read() {
        try {
          const { value, done } = await iterator.next();
          this.push(done ? null : await value);
        } catch (error) {
          this.destroy(error);
        }
      },
      destroy(error, done) {
        Promise.resolve(iterator.return?.()).then(
          () => done(error),
          () => done(error),
        );
      },
    });
  }
  static fromWeb(stream, options) {
    return Readable.from(stream, { objectMode: false, ...options });
  }
  static toWeb(stream) {
    return require("internal/streams").ReadableStream.from(stream);
  }
}
mix(Readable, readableParts);
Readable.prototype.addListener = Readable.prototype.on;

class Writable extends Stream {
  constructor(options = {}) {
    super(options);
    this.initWritable(options);
  }
  _write(chunk, encoding, done) {
    done();
  }
  static fromWeb(stream, options) {
    return operators().writableFrom(stream, options);
  }
  static toWeb(stream) {
    return operators().writableTo(stream);
  }
}
mix(Writable, writableParts);

class Duplex extends Stream {
  constructor(options = {}) {
    super(options);
    this.initReadable(options);
    this.initWritable(options);
    this.allowHalfOpen = options.allowHalfOpen !== false;
  }
  _write(chunk, encoding, done) {
    done();
  }
  static from(value) {
    return operators().duplexFrom(value);
  }
  static fromWeb(pair, options) {
    return operators().duplexFromWeb(pair, options);
  }
  static toWeb(stream) {
    return { readable: Readable.toWeb(stream), writable: Writable.toWeb(stream) };
  }
}
mix(Duplex, readableParts);
mix(Duplex, writableParts);
Duplex.prototype.addListener = Duplex.prototype.on;

class Transform extends Duplex {
  constructor(options = {}) {
    super(options);
    if (typeof options.transform === "function") this._transform = options.transform;
    if (typeof options.flush === "function") this._flush = options.flush;
  }
  _read() {
    this._reading = false;
  }
  _transform(chunk, encoding, done) {
    done(null, chunk);
  }
  _write(chunk, encoding, done) {
    this._transform(chunk, encoding, (error, result) => {
      if (error) return done(error);
      if (result !== undefined && result !== null) this.push(result);
      done();
    });
  }
  _final(done) {
    const finish = (error, result) => {
      if (error) return done(error);
      if (result !== undefined && result !== null) this.push(result);
      this.push(null);
      done();
    };
    if (this._flush) this._flush(finish);
    else finish();
  }
}

class PassThrough extends Transform {}

function finished(stream, options, callback) {
  if (typeof options === "function") [callback, options] = [options, {}];
  let isOver = false;
  const done = (error) => {
    if (isOver) return;
    isOver = true;
    callback.call(stream, error);
  };
  const ready = () => (stream.readableEnded ?? true) !== false && (stream.writableFinished ?? true) !== false;
  stream.on("end", () => ready() && done());
  stream.on("finish", () => ready() && done());
  stream.on("error", done);
  stream.on("close", () => (ready() || stream.destroyed ? done(stream.errored ?? (ready() ? undefined : Object.assign(new Error("Premature close"), { code: "ERR_STREAM_PREMATURE_CLOSE" }))) : undefined));
  if (stream.closed) queueMicrotask(() => done(stream.errored ?? undefined));
  return () => {
    isOver = true;
  };
}

function pipeline(...streams) {
  const callback = typeof streams.at(-1) === "function" && streams.length > 2 && !streams.at(-1).prototype?.pipe ? streams.pop() : () => {};
  const list = streams.flat();
  const source = typeof list[0]?.pipe === "function" ? list[0] : Readable.from(typeof list[0] === "function" ? list[0]() : list[0]);
  const chain = list.slice(1).reduce((previous, next) => {
    if (typeof next === "function") return Readable.from(next(previous));
    previous.pipe(next);
    return next;
  }, source);
  let left = 0;
  let failure;
  let isOver = false;
  const done = (error) => {
    failure ??= error;
    if (failure && !isOver) for (const stream of [source, ...list.slice(1)]) stream.destroy?.();
    if (isOver || (!failure && --left > 0)) return;
    isOver = true;
    callback(failure);
  };
  left = 1;
  for (const stream of [source, ...list.slice(1, -1)]) if (stream !== chain && stream.on) stream.on("error", done);
  finished(chain, done);
  return chain;
}

const promises = {
  pipeline: (...streams) => {
    const options = streams.at(-1)?.signal && typeof streams.at(-1).pipe !== "function" ? streams.pop() : {};
    return new Promise((resolve, reject) => {
      options.signal?.addEventListener?.("abort", () => reject(options.signal.reason), { once: true });
      pipeline(...streams, (error) => (error ? reject(error) : resolve()));
    });
  },
  finished: (stream, options = {}) => new Promise((resolve, reject) => finished(stream, options, (error) => (error ? reject(error) : resolve()))),
};

module.exports = Object.assign(Stream, { Stream, Readable, Writable, Duplex, Transform, PassThrough, pipeline, finished, promises, addAbortSignal: (signal, stream) => { signal.addEventListener("abort", () => stream.destroy(signal.reason)); return stream; }, isReadable: (stream) => !!stream?.readable, isErrored: (stream) => !!stream?.errored, getDefaultHighWaterMark: (objectMode) => marks[+!!objectMode], setDefaultHighWaterMark: (objectMode, value) => { marks[+!!objectMode] = value; } });
for (const name of ["compose", "duplexPair", "isDestroyed", "isDisturbed", "isWritable", "destroy"]) Stream[name] = (...args) => operators().static[name](...args);
