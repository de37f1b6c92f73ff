// node:util.

const { stackOf } = require("internal/traces");
const text = host.ops("text");

const customInspect = Symbol.for("nodejs.util.inspect.custom");
const customPromisify = Symbol.for("nodejs.util.promisify.custom");

const isPlainKey = (key) => /^[A-Za-z_$][\w$]*$/.test(key);

const quoted = (string) => {
  const mark = string.includes("'") ? (string.includes('"') ? "`" : '"') : "'";
  return mark + string.replace(/[\\\n\r\t]/g, (c) => ({ "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" })[c]) + mark;
};

function primitive(value, isTop) {
  switch (typeof value) {
    case "string":
      return isTop ? value : quoted(value);
    case "bigint":
      return `${value}n`;
    case "symbol":
      return value.toString();
    case "number":
      return Object.is(value, -0) ? "-0" : String(value);
    default:
      return String(value);
  }
}

function show(value, options, depth, seen) {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return primitive(value, false);
  const custom = value[customInspect];
  if (typeof custom === "function") {
    const shown = custom.call(value, options.depth === null ? null : options.depth - depth, options, inspect);
    return typeof shown === "string" ? shown : show(shown, options, depth, seen);
  }
  if (seen.includes(value)) return "[Circular *1]";
  if (value instanceof Error) return errorText(value, options, depth, seen);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString();
  if (value instanceof RegExp) return String(value);
  const name = Object.getPrototypeOf(value)?.constructor?.name;
  if (typeof value === "function") {
    const label = /^class\b/.test(Function.prototype.toString.call(value)) ? "class" : "Function";
    const title = label === "class" ? `[class ${value.name || "(anonymous)"}]` : `[Function${value.name ? `: ${value.name}` : " (anonymous)"}]`;
    return Object.keys(value).length ? `${title} ${members(value, options, depth, seen, "{", "}")}` : title;
  }
  if (options.depth !== null && depth > options.depth) return Array.isArray(value) ? "[Array]" : `[${name || "Object"}]`;
  return structure(value, name, options, depth, seen);
}

function structure(value, name, options, depth, seen) {
  const inner = [...seen, value];
  const one = (item) => show(item, options, depth + 1, inner);
  if (Array.isArray(value)) {
    const limit = options.maxArrayLength ?? 100;
    const items = value.slice(0, limit).map(one);
    if (value.length > limit) items.push(`... ${value.length - limit} more items`);
    return joined(items, "[", "]", depth, options);
  }
  if (value instanceof Map) return joined([...value].map(([key, item]) => `${one(key)} => ${one(item)}`), `Map(${value.size}) {`, "}", depth, options);
  if (value instanceof Set) return joined([...value].map(one), `Set(${value.size}) {`, "}", depth, options);
  if (value instanceof Promise) return "Promise { <pending> }";
  if (ArrayBuffer.isView(value)) {
    const label = value.constructor.name;
    if (label === "Buffer") return `<Buffer${Array.from(value.subarray(0, 50), (byte) => ` ${byte.toString(16).padStart(2, "0")}`).join("")}${value.length > 50 ? ` ... ${value.length - 50} more bytes` : ""}>`;
    return joined(Array.from(value).slice(0, 100).map(String), `${label}(${value.length}) [`, "]", depth, options);
  }
  const prefix = name === undefined ? "[Object: null prototype] " : name === "Object" ? "" : `${name} `;
  return members(value, options, depth, inner, `${prefix}{`, "}");
}

function members(value, options, depth, seen, open, close) {
  const keys = Object.keys(value);
  if (options.showHidden) keys.push(...Object.getOwnPropertyNames(value).filter((key) => !keys.includes(key)));
  const items = keys.map((key) => {
    const found = Object.getOwnPropertyDescriptor(value, key);
    const shown = found.get ? (found.set ? "[Getter/Setter]" : "[Getter]") : show(found.value, options, depth + 1, seen);
    return `${isPlainKey(key) ? key : quoted(key)}: ${shown}`;
  });
  for (const symbol of Object.getOwnPropertySymbols(value)) {
    if (Object.prototype.propertyIsEnumerable.call(value, symbol)) items.push(`[${symbol.toString()}]: ${show(value[symbol], options, depth + 1, seen)}`);
  }
  return joined(items, open, close, depth, options);
}

function joined(items, open, close, depth, options) {
  if (items.length === 0) return open.trimEnd() + close;
  const width = options.breakLength ?? 80;
  const line = `${open} ${items.join(", ")} ${close}`;
  if (options.compact !== false && (width === Infinity || (line.length <= width && !line.includes("\n") && items.length <= 24))) return line;
  const indent = "  ".repeat(depth + 1);
  return `${open}\n${items.map((item) => indent + item).join(",\n")}\n${"  ".repeat(depth)}${close}`;
}

function errorText(error, options, depth, seen) {
  const head = `${error.name || "Error"}: ${error.message}`;
  const calls = stackOf(error).trimEnd();
  const stack = calls ? (calls.startsWith(error.name) ? calls : `${head}\n${calls}`) : `[${head}]`;
  const extra = Object.keys(error).filter((key) => key !== "stack" && key !== "message");
  const cause = error.cause !== undefined ? `\n  [cause]: ${show(error.cause, options, depth + 1, [...seen, error])}` : "";
  if (extra.length === 0) return stack + cause;
  return `${stack}${cause} ${members(Object.fromEntries(extra.map((key) => [key, error[key]])), options, depth, [...seen, error], "{", "}")}`;
}

function inspect(value, options, ...rest) {
  const given = typeof options === "object" && options !== null ? options : { showHidden: options, depth: rest[0] };
  return show(value, { ...inspect.defaultOptions, ...given }, 0, []);
}
inspect.custom = customInspect;
inspect.defaultOptions = { depth: 2, colors: false, showHidden: false, maxArrayLength: 100, breakLength: 80, compact: 3 };
inspect.colors = {};
inspect.styles = {};

function format(first, ...rest) {
  if (typeof first !== "string") return [first, ...rest].map((value) => (typeof value === "string" ? value : inspect(value))).join(" ");
  let used = 0;
  const filled = first.replace(/%[sdifjoOc%]/g, (mark) => {
    if (mark === "%%") return "%";
    if (used >= rest.length) return mark;
    const value = rest[used++];
    switch (mark) {
      case "%s":
        return typeof value === "object" && value !== null && !(value instanceof Error) ? inspect(value, { depth: 0 }) : value instanceof Error ? String(value) : primitive(value, true);
      case "%d":
        return typeof value === "bigint" ? `${value}n` : String(Number(value));
      case "%i":
        return String(Number.parseInt(value, 10));
      case "%f":
        return String(Number.parseFloat(value));
      case "%j":
        try {
          return JSON.stringify(value);
        } catch {
          return "[Circular]";
        }
      case "%c":
        return "";
      default:
        return inspect(value, { depth: 4 });
    }
  });
  return [filled, ...rest.slice(used).map((value) => (typeof value === "string" ? value : inspect(value)))].join(" ");
}

function promisify(fn) {
  if (typeof fn !== "function") throw new TypeError('The "original" argument must be of type function');
  if (fn[customPromisify]) return fn[customPromisify];
  const wrapped = function (...args) {
    return new Promise((resolve, reject) => {
      fn.call(this, ...args, (error, ...values) => (error ? reject(error) : resolve(values[0])));
    });
  };
  return Object.defineProperties(wrapped, Object.getOwnPropertyDescriptors(fn));
}
promisify.custom = customPromisify;

const callbackify = (fn) =>
  function (...args) {
    const callback = args.pop();
    fn.apply(this, args).then(
      (value) => process.nextTick(callback, null, value),
      (error) => process.nextTick(callback, error ?? new Error("Promise was rejected")),
    );
  };

function inherits(constructor, parent) {
  Object.defineProperty(constructor, "super_", { value: parent, writable: true, configurable: true });
  Object.setPrototypeOf(constructor.prototype, parent.prototype);
}

const deprecate = (fn, message) => {
  let warned = false;
  return function (...args) {
    if (!warned) process.emitWarning(message);
    warned = true;
    return new.target ? Reflect.construct(fn, args, new.target) : fn.apply(this, args);
  };
};

class TextEncoder {
  get encoding() {
    return "utf-8";
  }
  encode(string = "") {
    return text.encode(String(string).toWellFormed());
  }
  encodeInto(string, target) {
    const bytes = this.encode(string);
    let length = Math.min(bytes.length, target.length);
    // Never ends inside a character.
    while (length > 0 && length < bytes.length && (bytes[length] & 0xc0) === 0x80) length--;
    target.set(bytes.subarray(0, length));
    return { read: text.decode(bytes.subarray(0, length).toBase64()).length, written: length };
  }
}

const labels = { "utf-8": "utf-8", utf8: "utf-8", "unicode-1-1-utf-8": "utf-8", latin1: "windows-1252", "iso-8859-1": "windows-1252", ascii: "windows-1252", "us-ascii": "windows-1252", "windows-1252": "windows-1252", "utf-16le": "utf-16le", "utf-16": "utf-16le", ucs2: "utf-16le" };

class TextDecoder {
  #rest = new Uint8Array(0);
  #started = false;
  constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
    this.encoding = labels[String(label).trim().toLowerCase()];
    if (!this.encoding) throw new RangeError(`The "${label}" encoding is not supported`);
    this.fatal = fatal;
    this.ignoreBOM = ignoreBOM;
  }
  decode(input, { stream = false } = {}) {
    let bytes = input === undefined ? new Uint8Array(0) : ArrayBuffer.isView(input) ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength) : new Uint8Array(input);
    if (this.#rest.length) {
      const whole = new Uint8Array(this.#rest.length + bytes.length);
      whole.set(this.#rest);
      whole.set(bytes, this.#rest.length);
      bytes = whole;
    }
    const keep = stream ? this.#incomplete(bytes) : 0;
    this.#rest = keep ? bytes.slice(bytes.length - keep) : new Uint8Array(0);
    let result = this.#convert(keep ? bytes.subarray(0, bytes.length - keep) : bytes);
    if (!this.#started && !this.ignoreBOM && result.charCodeAt(0) === 0xfeff) result = result.slice(1);
    this.#started = stream && (this.#started || result.length > 0);
    return result;
  }
  // The number of bytes at the end that may be the beginning of a character.
  #incomplete(bytes) {
    if (this.encoding === "utf-16le") return bytes.length % 2;
    if (this.encoding !== "utf-8") return 0;
    for (let back = 1; back <= Math.min(3, bytes.length); back++) {
      const byte = bytes[bytes.length - back];
      if ((byte & 0xc0) === 0x80) continue;
      const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
      return needed > back ? back : 0;
    }
    return 0;
  }
  #convert(bytes) {
    if (bytes.length === 0) return "";
    if (this.encoding === "utf-16le") return require("buffer").Buffer.from(bytes).toString("utf16le");
    if (this.encoding === "windows-1252") return require("buffer").Buffer.from(bytes).toString("latin1");
    const encoded = bytes.toBase64();
    if (this.fatal && !text.isUtf8(encoded)) throw Object.assign(new TypeError("The encoded data was not valid for encoding utf-8"), { code: "ERR_ENCODING_INVALID_ENCODED_DATA" });
    return text.decode(encoded);
  }
}

const stripVTControlCharacters = (string) => String(string).replace(/[\u001b\u009b](?:\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[[\]()#;?]*(?:\d{1,4}(?:;\d{0,4})*)?[\dA-PR-TZcf-nq-uy=><~])/g, "");

const styleCodes = { bold: [1, 22], dim: [2, 22], italic: [3, 23], underline: [4, 24], inverse: [7, 27], red: [31, 39], green: [32, 39], yellow: [33, 39], blue: [34, 39], magenta: [35, 39], cyan: [36, 39], white: [37, 39], gray: [90, 39], grey: [90, 39] };

const module_ = {
  inspect, format, promisify, callbackify, inherits, deprecate, TextEncoder, TextDecoder, stripVTControlCharacters,
  formatWithOptions: (_, ...args) => format(...args),
  isDeepStrictEqual: (a, b) => require("assert").isDeepEqual(a, b),
  debuglog: () => Object.assign(() => {}, { enabled: false }),
  debug: () => Object.assign(() => {}, { enabled: false }),
  isArray: Array.isArray,
  isString: (value) => typeof value === "string",
  isFunction: (value) => typeof value === "function",
  toUSVString: (string) => String(string).toWellFormed(),
  styleText: (style, string) => [style].flat().reduce((shown, name) => `\u001b[${styleCodes[name]?.[0] ?? 0}m${shown}\u001b[${styleCodes[name]?.[1] ?? 0}m`, string),
  parseArgs: (config) => require("internal/args").parseArgs(config),
  aborted: (signal) => new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener("abort", () => resolve(), { once: true }))),
};

// What few extensions ask for is loaded with the first use.
for (const [module, names] of [
  ["internal/util-more", ["getSystemErrorName", "getSystemErrorMap", "getSystemErrorMessage", "parseEnv", "MIMEType", "MIMEParams"]],
  ["util/types", ["types"]],
]) {
  for (const name of names) {
    Object.defineProperty(module_, name, { configurable: true, enumerable: true, get: () => (name === "types" ? require(module) : require(module)[name]) });
  }
}
module.exports = module_;
