// What node:stream does with whole streams: the helpers that iterators have, too, composition and pairs.

const { Readable, Duplex, PassThrough, Writable, finished } = require("stream");

const invalid = (name, what, value) =>
  Object.assign(new TypeError(`The "${name}" argument must be ${what}. Received ${value === null ? "null" : typeof value}`), { code: "ERR_INVALID_ARG_TYPE" });
const abortError = (signal) => Object.assign(new Error("The operation was aborted", signal && { cause: signal.reason }), { name: "AbortError", code: "ABORT_ERR" });

function checked(fn, options) {
  if (typeof fn !== "function") throw invalid("fn", "of type function", fn);
  return options ?? {};
}

const countOf = (number) => {
  number = Number(number);
  if (Number.isNaN(number) || number < 0) throw Object.assign(new RangeError(`The value of "number" is out of range. It must be >= 0. Received ${number}`), { code: "ERR_OUT_OF_RANGE" });
  return number;
};

// The items of a stream, until the signal is aborted.
async function* items(stream, signal) {
  if (signal?.aborted) throw abortError(signal);
  let stop;
  const stopped = new Promise((_, reject) => {
    stop = () => reject(abortError(signal));
  });
  stopped.catch(() => {});
  signal?.addEventListener("abort", stop, { once: true });
  const iterator = stream[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { value, done } = await (signal ? Promise.race([iterator.next(), stopped]) : iterator.next());
      if (done) return;
      yield value;
    }
  } finally {
    signal?.removeEventListener("abort", stop);
    if (signal?.aborted) stream.destroy();
    else await iterator.return?.();
  }
}

// Calls `fn` for up to `concurrency` items at a time; results keep the order of the items.
async function* mapped(stream, fn, { concurrency = 1, signal } = {}) {
  const own = new AbortController();
  const options = { signal: signal ? AbortSignal.any([own.signal, signal]) : own.signal };
  const source = items(stream, signal);
  const running = [];
  let isOver = false;
  try {
    for (;;) {
      while (!isOver && running.length < concurrency) {
        const { value, done } = await source.next();
        if (done) isOver = true;
        else {
          const result = (async () => fn(value, options))();
          result.catch(() => {});
          running.push(result);
        }
      }
      if (running.length === 0) return;
      yield await running.shift();
    }
  } finally {
    own.abort();
    await source.return();
  }
}

const flowing = (generator) => Readable.from(generator, { objectMode: true });

const methods = {
  map(fn, options) {
    return flowing(mapped(this, fn, checked(fn, options)));
  },
  filter(fn, options) {
    const kept = mapped(this, async (item, more) => [await fn(item, more), item], checked(fn, options));
    return flowing((async function* () {
      for await (const [isKept, item] of kept) if (isKept) yield item;
    })());
  },
  flatMap(fn, options) {
    const parts = mapped(this, fn, checked(fn, options));
    return flowing((async function* () {
      for await (const part of parts) yield* part;
    })());
  },
  take(number, { signal } = {}) {
    let left = countOf(number);
    const source = this;
    return flowing((async function* () {
      if (left === 0) return;
      for await (const item of items(source, signal)) {
        yield item;
        if (--left <= 0) return;
      }
    })());
  },
  drop(number, { signal } = {}) {
    let left = countOf(number);
    const source = this;
    return flowing((async function* () {
      for await (const item of items(source, signal)) if (left-- <= 0) yield item;
    })());
  },
  compose(next, options) {
    return compose(...[this, next, options].filter((part) => part !== undefined));
  },
  async forEach(fn, options) {
    for await (const _ of mapped(this, fn, checked(fn, options)));
  },
  async toArray({ signal } = {}) {
    return Array.fromAsync(items(this, signal));
  },
  async some(fn, options) {
    for await (const found of mapped(this, fn, checked(fn, options))) if (found) return true;
    return false;
  },
  async every(fn, options) {
    for await (const found of mapped(this, fn, checked(fn, options))) if (!found) return false;
    return true;
  },
  async find(fn, options) {
    for await (const [isFound, item] of mapped(this, async (item, more) => [await fn(item, more), item], checked(fn, options))) if (isFound) return item;
  },
  async reduce(fn, ...rest) {
    const { signal } = checked(fn, rest[1]);
    let [isEmpty, result] = [rest.length === 0, rest[0]];
    for await (const item of items(this, signal)) {
      result = isEmpty ? item : await fn(result, item, { signal });
      isEmpty = false;
    }
    if (isEmpty) throw Object.assign(new TypeError("Reduce of an empty stream requires an initial value"), { code: "ERR_MISSING_ARGS" });
    return result;
  },
};

// Joins what is written to one stream and what is read from another; either may be missing. `settled` holds up the end.
function joined(input, output, settled) {
  const relay = new Duplex({
    writableObjectMode: !!input?.writableObjectMode,
    readableObjectMode: !!output?.readableObjectMode,
    decodeStrings: false,
    write: (chunk, encoding, done) => {
      if (input?.write(chunk, encoding) !== false) done();
      else input.once("drain", done);
    },
    final: (done) => {
      input?.end();
      if (settled) settled.then(() => done(), done);
      else if (output || !input) done();
      else finished(input, done);
    },
    read: () => output?.resume(),
    destroy: (error, done) => {
      for (const part of [input, output]) part?.destroy(error ?? undefined);
      done(error);
    },
  });
  for (const part of new Set([input, output])) part?.on("error", (error) => relay.destroy(error));
  if (output) {
    output.on("data", (chunk) => relay.push(chunk) || output.pause());
    output.on("end", () => relay.push(null));
  } else relay.push(null);
  if (!input) relay.end();
  return relay;
}

const isNodeStream = (value) => typeof value?.pipe === "function" || (typeof value?.write === "function" && typeof value.on === "function");
const isWebStream = (value) => value instanceof ReadableStream || value instanceof WritableStream;

// What Duplex.from makes of anything.
function duplexFrom(value) {
  if (value instanceof Duplex) return value;
  if (isNodeStream(value)) return value instanceof Readable ? joined(null, value) : joined(value, null);
  if (value instanceof ReadableStream) return joined(null, Readable.fromWeb(value));
  if (value instanceof WritableStream) return joined(writableFrom(value), null);
  if (typeof value === "function") {
    const input = new PassThrough({ objectMode: true });
    const result = value(input, { signal: new AbortController().signal });
    if (typeof result?.[Symbol.asyncIterator] === "function") return joined(input, Readable.from(result));
    if (typeof result?.then === "function") return joined(input, null, result);
    throw Object.assign(new TypeError("The function must return an iterable or a promise"), { code: "ERR_INVALID_RETURN_VALUE" });
  }
  if (value instanceof Blob) return duplexFrom(value.arrayBuffer().then((bytes) => new Uint8Array(bytes)));
  if (typeof value?.then === "function") {
    return joined(null, Readable.from((async function* () {
      const result = await value;
      if (result !== null && result !== undefined) yield result;
    })()));
  }
  if (value?.readable !== undefined || value?.writable !== undefined) {
    const side = (part, convert) => (part === undefined ? null : isWebStream(part) ? convert(part) : part);
    return joined(side(value.writable, writableFrom), side(value.readable, Readable.fromWeb));
  }
  return joined(null, Readable.from(value));
}

// One stream for a chain of them: what is written goes into the first, what is read comes out of the last.
function compose(...chain) {
  if (chain.length > 1 && Object.getPrototypeOf(Object(chain.at(-1))) === Object.prototype && !chain.at(-1).readable && !chain.at(-1).writable) chain.pop();
  if (chain.length === 0) throw Object.assign(new TypeError('The "streams" argument must be specified'), { code: "ERR_MISSING_ARGS" });
  const parts = [];
  for (const part of chain) {
    const before = parts.at(-1);
    const next = isNodeStream(part) ? part : duplexFrom(part);
    if (before) require("stream").pipeline(before, next, () => {});
    parts.push(next);
  }
  if (parts.length === 1) return duplexFrom(parts[0]);
  const [first, last] = [parts[0], parts.at(-1)];
  const whole = joined(typeof first.write === "function" ? first : null, last instanceof Readable || last instanceof Duplex ? last : null, last instanceof Readable || last instanceof Duplex ? undefined : new Promise((resolve, reject) => finished(last, (error) => (error ? reject(error) : resolve()))));
  for (const part of parts.slice(1, -1)) part.on("error", (error) => whole.destroy(error));
  return whole;
}

// Two streams, each of which reads what is written to the other.
class Side extends Duplex {
  #other = null;
  #taken = null;
  static pair(options) {
    const [one, two] = [0, 1].map(() => Reflect.construct(Side, [options]));
    one.#other = two;
    two.#other = one;
    return [one, two];
  }
  _read() {
    const taken = this.#taken;
    this.#taken = null;
    taken?.();
  }
  _write(chunk, _encoding, done) {
    if (chunk.length === 0) return queueMicrotask(done);
    this.#other.#taken = done;
    this.#other.push(chunk);
  }
  _final(done) {
    this.#other.once("end", () => done());
    this.#other.push(null);
  }
  _destroy(error, done) {
    // The other side must not wait for what will not come.
    if (error) this.#other.destroy();
    else this.#other.push(null);
    done(error);
  }
}

function writableFrom(stream, options) {
  const writer = stream.getWriter();
  const then = (promise, done) => promise.then(() => done(), done);
  return new Writable({
    ...options,
    write: (chunk, _encoding, done) => then(writer.ready.then(() => writer.write(chunk)), done),
    final: (done) => then(writer.close(), done),
    destroy: (error, done) => {
      if (error) writer.abort(error).catch(() => {});
      done(error);
    },
  });
}

function writableTo(stream) {
  return new WritableStream({
    start: (controller) => stream.on("error", (error) => controller.error(error)),
    write: (chunk) => (stream.write(chunk) === false ? new Promise((done) => stream.once("drain", done)) : undefined),
    close: () => new Promise((resolve, reject) => stream.end((error) => (error ? reject(error) : resolve()))),
    abort: (reason) => {
      stream.destroy(reason);
    },
  });
}

const isDestroyed = (stream) => (typeof stream?.destroyed === "boolean" ? stream.destroyed : null);

module.exports = {
  methods,
  duplexFrom,
  writableFrom,
  writableTo,
  duplexFromWeb: ({ readable, writable }, options) => joined(writableFrom(writable, options), Readable.fromWeb(readable, options)),
  static: {
    compose,
    duplexPair: Side.pair,
    isDestroyed,
    isDisturbed: (stream) => !!(stream instanceof ReadableStream ? stream[Symbol.for("nodejs.stream.disturbed")] : stream?.readableDidRead),
    isWritable: (stream) => (typeof stream?.write === "function" ? !!stream.writable && !stream.writableEnded && !stream.destroyed : null),
    destroy: (stream, error) => {
      if (!stream || isDestroyed(stream)) return;
      const isFinished = stream.readableEnded !== false && stream.writableFinished !== false;
      stream.destroy(error ?? (isFinished ? undefined : abortError()));
    },
  },
};
