// Classes of globals that are small: Navigator, and streams that compress.

const { illegal } = require("internal/abort");

const key = Symbol("navigator");

class Navigator {
  constructor(given) {
    if (given !== key) throw illegal();
  }
  get userAgent() {
    return "pith";
  }
  get hardwareConcurrency() {
    return require("os").availableParallelism();
  }
  get language() {
    return "en-US";
  }
  get languages() {
    return Object.freeze(["en-US"]);
  }
  get platform() {
    return `${require("os").type()} ${require("os").machine()}`;
  }
}

const codec = (name, formats) => {
  const type = class {
    constructor(format) {
      const make = formats[format];
      if (!make) {
        const why = `Failed to construct '${name}': 1st argument '${format}' is not a valid enum value of type CompressionFormat.`;
        throw Object.assign(new TypeError(why), { code: "ERR_INVALID_ARG_VALUE" });
      }
      const { readable, writable } = require("stream").Duplex.toWeb(require("zlib")[make]());
      Object.defineProperties(this, { readable: { value: readable, enumerable: true }, writable: { value: writable, enumerable: true } });
    }
  };
  return Object.defineProperty(type, "name", { value: name });
};

module.exports = {
  Navigator,
  navigator: new Navigator(key),
  CompressionStream: codec("CompressionStream", { deflate: "createDeflate", "deflate-raw": "createDeflateRaw", gzip: "createGzip", brotli: "createBrotliCompress" }),
  DecompressionStream: codec("DecompressionStream", { deflate: "createInflate", "deflate-raw": "createInflateRaw", gzip: "createGunzip", brotli: "createBrotliDecompress" }),
};
