// node:zlib: gzip, deflate and brotli.

const { Transform } = require("stream");
const { Buffer } = require("buffer");
const ops = require("internal/ops");
const owners = require("internal/owners");
const { setImmediate } = require("internal/timers");
const native = host.ops("zlib");

// What a one-shot call returns at most. Node has no such limit to speak of; here it keeps a few bytes that stand for
// gigabytes from filling the memory. A stream has none, because it goes on only when its output is read.
const MAX_OUTPUT = 64 << 20;

const constants = {
  Z_NO_FLUSH: 0, Z_PARTIAL_FLUSH: 1, Z_SYNC_FLUSH: 2, Z_FULL_FLUSH: 3, Z_FINISH: 4, Z_BLOCK: 5, Z_TREES: 6,
  Z_OK: 0, Z_STREAM_END: 1, Z_NEED_DICT: 2, Z_ERRNO: -1, Z_STREAM_ERROR: -2, Z_DATA_ERROR: -3, Z_MEM_ERROR: -4, Z_BUF_ERROR: -5, Z_VERSION_ERROR: -6,
  Z_NO_COMPRESSION: 0, Z_BEST_SPEED: 1, Z_BEST_COMPRESSION: 9, Z_DEFAULT_COMPRESSION: -1,
  Z_FILTERED: 1, Z_HUFFMAN_ONLY: 2, Z_RLE: 3, Z_FIXED: 4, Z_DEFAULT_STRATEGY: 0,
  Z_MIN_WINDOWBITS: 8, Z_MAX_WINDOWBITS: 15, Z_DEFAULT_WINDOWBITS: 15, Z_MIN_CHUNK: 64, Z_MAX_CHUNK: Infinity, Z_DEFAULT_CHUNK: 16384,
  Z_MIN_MEMLEVEL: 1, Z_MAX_MEMLEVEL: 9, Z_DEFAULT_MEMLEVEL: 8, Z_MIN_LEVEL: -1, Z_MAX_LEVEL: 9, Z_DEFAULT_LEVEL: -1,
  BROTLI_OPERATION_PROCESS: 0, BROTLI_OPERATION_FLUSH: 1, BROTLI_OPERATION_FINISH: 2, BROTLI_OPERATION_EMIT_METADATA: 3,
  BROTLI_PARAM_MODE: 0, BROTLI_MODE_GENERIC: 0, BROTLI_MODE_TEXT: 1, BROTLI_MODE_FONT: 2, BROTLI_DEFAULT_MODE: 0,
  BROTLI_PARAM_QUALITY: 1, BROTLI_MIN_QUALITY: 0, BROTLI_MAX_QUALITY: 11, BROTLI_DEFAULT_QUALITY: 11,
  BROTLI_PARAM_LGWIN: 2, BROTLI_MIN_WINDOW_BITS: 10, BROTLI_MAX_WINDOW_BITS: 24, BROTLI_DEFAULT_WINDOW: 22, BROTLI_PARAM_LGBLOCK: 3, BROTLI_PARAM_SIZE_HINT: 5,
};

const bytesOf = (data) => {
  if (typeof data === "string") return Buffer.from(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  throw Object.assign(new TypeError('The "buffer" argument must be of type string or an instance of Buffer, TypedArray, DataView, or ArrayBuffer'), { code: "ERR_INVALID_ARG_TYPE" });
};

// `unzip` takes either of the two; the first byte says which.
const kindOf = (kind, bytes) => (kind !== "unzip" ? kind : bytes[0] === 0x1f ? "gunzip" : "inflate");

const methodOf = (kind, options) => {
  const level = kind.startsWith("brotli") ? options?.params?.[constants.BROTLI_PARAM_QUALITY] : options?.level;
  return JSON.stringify({ kind, level: Number.isInteger(level) ? level : undefined, maxOutput: Math.min(options?.maxOutputLength ?? MAX_OUTPUT, MAX_OUTPUT) });
};

// Native errors that crossed a thread carry their code in front.
function coded(error) {
  const [, code, text] = /^([A-Z_]+): (.*)$/s.exec(error.message) ?? [];
  if (code) Object.assign(error, { code, message: text });
  error.errno ??= constants[error.code];
  return error;
}

const sync = (kind) => (data, options) => {
  const bytes = bytesOf(data);
  try {
    const output = native.whole(methodOf(kindOf(kind, bytes), options), bytes.toBase64());
    return Buffer.from(output.buffer, output.byteOffset, output.byteLength);
  } catch (error) {
    throw coded(error);
  }
};

const later = (kind) => (data, options, callback) => {
  if (typeof options === "function") [callback, options] = [options, {}];
  const bytes = bytesOf(data);
  const { promise } = ops.begin((op) => native.later(op, methodOf(kindOf(kind, bytes), options), bytes.toBase64()));
  promise.then(
    (output) => callback(null, Buffer.from(output.buffer, output.byteOffset, output.byteLength)),
    (error) => callback(coded(error)),
  );
};

let last = 0;

class Zlib extends Transform {
  #number = null;
  #goOn = null;
  #steps = 0;
  constructor(kind, options = {}) {
    super(options);
    this.kind = kind;
    this.options = options;
    this.bytesWritten = 0;
  }
  #open(bytes) {
    this.#number = ++last;
    native.open(this.#number, methodOf(kindOf(this.kind, bytes), this.options));
  }
  // Passes on what the input yields. It pauses when nobody reads: the rest stays packed.
  #run(bytes, isLast, done) {
    try {
      if (this.#number === null) this.#open(bytes);
      native.give(this.#number, bytes.toBase64(), isLast);
    } catch (error) {
      return done(coded(error));
    }
    const step = () => {
      this.#goOn = null;
      try {
        for (;;) {
          if (this.destroyed) return;
          const output = native.step(this.#number);
          if (output.length === 0) return done();
          if (!this.push(Buffer.from(output.buffer, output.byteOffset, output.byteLength))) {
            this.#goOn = step;
            return;
          }
        }
      } catch (error) {
        done(coded(error));
      }
    };
    step();
  }
  _read() {
    super._read();
    const goOn = this.#goOn;
    if (!goOn) return;
    // Others get a turn after a megabyte.
    if (++this.#steps < 16) return goOn();
    this.#steps = 0;
    this.#goOn = null;
    setImmediate(goOn);
  }
  _transform(chunk, _encoding, done) {
    const bytes = bytesOf(chunk);
    this.bytesWritten += bytes.length;
    this.#run(bytes, false, done);
  }
  _flush(done) {
    this.#run(new Uint8Array(0), true, done);
  }
  _destroy(error, done) {
    if (this.#number !== null) native.close(this.#number);
    done(error);
  }
  flush(kind, callback) {
    const done = typeof kind === "function" ? kind : callback;
    if (done) queueMicrotask(done);
  }
  close(callback) {
    if (callback) this.once("close", callback);
    this.destroy();
  }
  params(_level, _strategy, callback) {
    queueMicrotask(() => callback?.());
  }
  reset() {}
}

const kinds = { Gzip: "gzip", Gunzip: "gunzip", Deflate: "deflate", Inflate: "inflate", DeflateRaw: "deflateRaw", InflateRaw: "inflateRaw", Unzip: "unzip", BrotliCompress: "brotliCompress", BrotliDecompress: "brotliDecompress" };

for (const [name, kind] of Object.entries(kinds)) {
  const type = {
    [name]: class extends Zlib {
      constructor(options) {
        super(kind, options);
      }
    },
  }[name];
  exports[name] = type;
  exports[`create${name}`] = (options) => new type(options);
  exports[kind] = later(kind);
  exports[`${kind}Sync`] = sync(kind);
}

for (const name of ["zstdCompress", "zstdDecompress", "zstdCompressSync", "zstdDecompressSync", "createZstdCompress", "createZstdDecompress"]) {
  exports[name] = owners.refusal(`zlib.${name}`);
}

exports.crc32 = (data, start = 0) => native.crc32(bytesOf(data).toBase64(), start);
exports.constants = Object.freeze(constants);
exports.codes = Object.freeze({ Z_OK: 0, Z_STREAM_END: 1, Z_NEED_DICT: 2, Z_ERRNO: -1, Z_STREAM_ERROR: -2, Z_DATA_ERROR: -3, Z_MEM_ERROR: -4, Z_BUF_ERROR: -5, Z_VERSION_ERROR: -6 });
Object.assign(exports, constants);
