// node:buffer. A Uint8Array with text encodings and access to numbers.

const text = host.ops("text");

const encodings = {
  utf8: "utf8", "utf-8": "utf8", hex: "hex", base64: "base64", base64url: "base64url", latin1: "latin1", binary: "latin1", ascii: "ascii",
  ucs2: "utf16le", "ucs-2": "utf16le", utf16le: "utf16le", "utf-16le": "utf16le",
};

const encodingOf = (name) => {
  const found = encodings[name === undefined ? "utf8" : String(name).toLowerCase()];
  if (!found) throw Object.assign(new TypeError(`Unknown encoding: ${name}`), { code: "ERR_UNKNOWN_ENCODING" });
  return found;
};

function bytesOf(string, encoding) {
  switch (encodingOf(encoding)) {
    case "utf8":
      return text.encode(string.toWellFormed());
    case "hex":
      return Uint8Array.fromHex(/^(?:[0-9a-f]{2})*/i.exec(string)[0]);
    case "base64":
    case "base64url":
      return text.decodeBase64(string);
    case "utf16le": {
      const bytes = new Uint8Array(string.length * 2);
      for (let at = 0; at < string.length; at++) {
        const code = string.charCodeAt(at);
        bytes[at * 2] = code & 255;
        bytes[at * 2 + 1] = code >> 8;
      }
      return bytes;
    }
    default: {
      const bytes = new Uint8Array(string.length);
      for (let at = 0; at < string.length; at++) bytes[at] = string.charCodeAt(at);
      return bytes;
    }
  }
}

const CHUNK = 8192;
const fromCodes = (codes) => {
  let result = "";
  for (let at = 0; at < codes.length; at += CHUNK) result += String.fromCharCode.apply(null, codes.subarray(at, at + CHUNK));
  return result;
};

function stringOf(bytes, encoding) {
  switch (encodingOf(encoding)) {
    case "utf8":
      return text.decode(bytes.toBase64());
    case "hex":
      return bytes.toHex();
    case "base64":
      return bytes.toBase64();
    case "base64url":
      return bytes.toBase64({ alphabet: "base64url", omitPadding: true });
    case "utf16le": {
      const codes = new Uint16Array(bytes.length >> 1);
      for (let at = 0; at < codes.length; at++) codes[at] = bytes[at * 2] | (bytes[at * 2 + 1] << 8);
      return fromCodes(codes);
    }
    case "ascii":
      return fromCodes(bytes.map((byte) => byte & 127));
    default:
      return fromCodes(bytes);
  }
}

function swapped(buffer, size) {
  if (buffer.length % size) throw Object.assign(new RangeError(`Buffer size must be a multiple of ${size * 8}-bits`), { code: "ERR_INVALID_BUFFER_SIZE" });
  for (let at = 0; at < buffer.length; at += size) Uint8Array.prototype.reverse.call(buffer.subarray(at, at + size));
  return buffer;
}

const wrap = (bytes) => Object.setPrototypeOf(bytes, Buffer.prototype);

class Buffer extends Uint8Array {
  static from(value, encoding, length) {
    if (typeof value === "string") return wrap(bytesOf(value, encoding));
    if (value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) return wrap(new Uint8Array(value, encoding ?? 0, length));
    if (ArrayBuffer.isView(value) && !(value instanceof Uint8Array)) return wrap(new Uint8Array(value));
    if (value?.type === "Buffer" && Array.isArray(value.data)) return wrap(new Uint8Array(value.data));
    if (value !== null && typeof value === "object") {
      const primitive = value.valueOf?.();
      if (typeof primitive === "string") return Buffer.from(primitive, encoding);
      return wrap(new Uint8Array(value));
    }
    throw Object.assign(new TypeError(`The first argument must be of type string, Buffer, ArrayBuffer or Array. Received ${value === null ? "null" : typeof value}`), { code: "ERR_INVALID_ARG_TYPE" });
  }
  static alloc(size, fill, encoding) {
    const buffer = wrap(new Uint8Array(size));
    return fill === undefined || fill === 0 ? buffer : buffer.fill(fill, encoding);
  }
  static allocUnsafe(size) {
    return wrap(new Uint8Array(size));
  }
  static allocUnsafeSlow(size) {
    return wrap(new Uint8Array(size));
  }
  static copyBytesFrom(view, offset = 0, length) {
    const part = view.subarray(offset, length === undefined ? undefined : offset + length);
    return wrap(new Uint8Array(part.buffer.slice(part.byteOffset, part.byteOffset + part.byteLength)));
  }
  static isBuffer(value) {
    return value instanceof Buffer;
  }
  static isEncoding(name) {
    return typeof name === "string" && name.toLowerCase() in encodings;
  }
  static byteLength(value, encoding) {
    if (typeof value !== "string") return value.byteLength;
    return encodingOf(encoding) === "utf8" ? text.byteLength(value.toWellFormed()) : bytesOf(value, encoding).length;
  }
  static concat(list, total) {
    total ??= list.reduce((sum, part) => sum + part.length, 0);
    const joined = Buffer.alloc(total);
    let at = 0;
    for (const part of list) {
      if (at >= total) break;
      joined.set(part.length > total - at ? part.subarray(0, total - at) : part, at);
      at += part.length;
    }
    return joined;
  }
  static compare(a, b) {
    const length = Math.min(a.length, b.length);
    for (let at = 0; at < length; at++) if (a[at] !== b[at]) return a[at] < b[at] ? -1 : 1;
    return Math.sign(a.length - b.length);
  }
  get parent() {
    return this.buffer;
  }
  get offset() {
    return this.byteOffset;
  }
  toString(encoding, start = 0, end = this.length) {
    const part = start === 0 && end >= this.length ? this : this.subarray(Math.max(start, 0), Math.max(end, 0));
    return stringOf(part, encoding ?? "utf8");
  }
  toLocaleString(encoding) {
    return this.toString(encoding);
  }
  toJSON() {
    return { type: "Buffer", data: Array.from(this) };
  }
  equals(other) {
    return Buffer.compare(this, other) === 0;
  }
  compare(other, start = 0, end = other.length, from = 0, to = this.length) {
    return Buffer.compare(this.subarray(from, to), other.subarray(start, end));
  }
  slice(start, end) {
    return this.subarray(start, end);
  }
  subarray(start, end) {
    return wrap(super.subarray(start, end));
  }
  write(string, offset, length, encoding) {
    if (typeof offset === "string") [encoding, offset, length] = [offset, 0, undefined];
    else if (typeof length === "string") [encoding, length] = [length, undefined];
    offset ??= 0;
    const bytes = bytesOf(string, encoding).subarray(0, Math.min(length ?? Infinity, this.length - offset));
    this.set(bytes, offset);
    return bytes.length;
  }
  copy(target, targetStart = 0, start = 0, end = this.length) {
    const part = this.subarray(start, Math.min(end, start + target.length - targetStart));
    target.set(part, targetStart);
    return part.length;
  }
  fill(value, offset, end, encoding) {
    if (typeof offset === "string") [encoding, offset, end] = [offset, undefined, undefined];
    if (typeof value !== "string") {
      if (typeof value === "number") return super.fill(value & 255, offset, end);
    } else value = bytesOf(value, encoding);
    if (value.length === 0) return super.fill(0, offset, end);
    for (let at = offset ?? 0, from = 0; at < (end ?? this.length); at++, from++) this[at] = value[from % value.length];
    return this;
  }
  indexOf(value, offset = 0, encoding) {
    if (typeof value === "number") return super.indexOf(value & 255, offset);
    if (typeof offset === "string") [encoding, offset] = [offset, 0];
    const wanted = typeof value === "string" ? bytesOf(value, encoding) : value;
    if (offset < 0) offset = Math.max(this.length + offset, 0);
    if (wanted.length === 0) return Math.min(offset, this.length);
    outer: for (let at = super.indexOf(wanted[0], offset); at >= 0; at = super.indexOf(wanted[0], at + 1)) {
      for (let index = 1; index < wanted.length; index++) if (this[at + index] !== wanted[index]) continue outer;
      return at;
    }
    return -1;
  }
  lastIndexOf(value, offset = this.length, encoding) {
    if (typeof value === "number") return super.lastIndexOf(value & 255, offset);
    const wanted = typeof value === "string" ? bytesOf(value, encoding) : value;
    outer: for (let at = Math.min(offset, this.length - wanted.length); at >= 0; at--) {
      for (let index = 0; index < wanted.length; index++) if (this[at + index] !== wanted[index]) continue outer;
      return at;
    }
    return -1;
  }
  includes(value, offset, encoding) {
    return this.indexOf(value, offset, encoding) >= 0;
  }
  swap16() {
    return swapped(this, 2);
  }
  swap32() {
    return swapped(this, 4);
  }
  swap64() {
    return swapped(this, 8);
  }
  latin1Slice(start, end) {
    return this.toString("latin1", start, end);
  }
  utf8Slice(start, end) {
    return this.toString("utf8", start, end);
  }
  hexSlice(start, end) {
    return this.toString("hex", start, end);
  }
}
Buffer.poolSize = 8192;
// Arrays made by inherited methods are plain views.
Object.defineProperty(Buffer, Symbol.species, { get: () => Uint8Array });

const outOfRange = (name, range, value) => Object.assign(new RangeError(`The value of "${name}" is out of range. It must be ${range}. Received ${value}`), { code: "ERR_OUT_OF_RANGE" });
const checkNumber = (name, value) => {
  if (typeof value !== "number") throw Object.assign(new TypeError(`The "${name}" argument must be of type number. Received ${value === undefined ? value : `type ${typeof value}`}`), { code: "ERR_INVALID_ARG_TYPE" });
  if (!Number.isInteger(value)) throw outOfRange(name, "an integer", value);
};
const checkPlace = (buffer, offset, size) => {
  checkNumber("offset", offset);
  if (buffer.length < size) throw Object.assign(new RangeError("Attempt to access memory outside buffer bounds"), { code: "ERR_BUFFER_OUT_OF_BOUNDS" });
  if (offset < 0 || offset > buffer.length - size) throw outOfRange("offset", `>= 0 and <= ${buffer.length - size}`, offset);
};
const checkValue = (value, size, isUnsigned) => {
  const [least, beyond] = isUnsigned ? [0, 2 ** (8 * size)] : [-(2 ** (8 * size - 1)), 2 ** (8 * size - 1)];
  if (value < least || value >= beyond) throw outOfRange("value", `>= ${least} and <= ${beyond - 1}`, value);
};

// Integers of one to six bytes.
const checkWidth = (buffer, offset, size) => {
  checkNumber("byteLength", size);
  if (size < 1 || size > 6) throw outOfRange("byteLength", ">= 1 and <= 6", size);
  checkPlace(buffer, offset, size);
};
for (const isUnsigned of [true, false]) {
  for (const order of ["LE", "BE"]) {
    const place = (offset, size, at) => offset + (order === "BE" ? at : size - 1 - at);
    const read = function (offset, size) {
      checkWidth(this, offset, size);
      let value = 0;
      for (let at = 0; at < size; at++) value = value * 256 + this[place(offset, size, at)];
      return isUnsigned || value < 2 ** (8 * size - 1) ? value : value - 2 ** (8 * size);
    };
    const write = function (value, offset, size) {
      value = +value;
      checkWidth(this, offset, size);
      checkValue(value, size, isUnsigned);
      let rest = Math.trunc(value) + (value < 0 ? 2 ** (8 * size) : 0);
      for (let at = size - 1; at >= 0; at--, rest = Math.floor(rest / 256)) this[place(offset, size, at)] = rest % 256;
      return offset + size;
    };
    for (const name of isUnsigned ? ["UInt", "Uint"] : ["Int"]) {
      Object.defineProperty(Buffer.prototype, `read${name}${order}`, { value: read, configurable: true, writable: true });
      Object.defineProperty(Buffer.prototype, `write${name}${order}`, { value: write, configurable: true, writable: true });
    }
  }
}

// readInt32LE and similar methods follow one pattern.
for (const [suffix, method, size] of [
  ["Int8", "Int8", 1], ["UInt8", "Uint8", 1], ["Int16", "Int16", 2], ["UInt16", "Uint16", 2], ["Int32", "Int32", 4], ["UInt32", "Uint32", 4],
  ["BigInt64", "BigInt64", 8], ["BigUInt64", "BigUint64", 8], ["Float", "Float32", 4], ["Double", "Float64", 8],
]) {
  for (const order of size === 1 ? [""] : ["LE", "BE"]) {
    const read = function (offset = 0) {
      checkPlace(this, offset, size);
      return new DataView(this.buffer, this.byteOffset, this.byteLength)[`get${method}`](offset, order === "LE");
    };
    const write = function (value, offset = 0) {
      if (suffix.includes("Int") && size <= 4) checkValue(+value, size, suffix[0] === "U");
      checkPlace(this, offset, size);
      new DataView(this.buffer, this.byteOffset, this.byteLength)[`set${method}`](offset, value, order === "LE");
      return offset + size;
    };
    for (const name of new Set([suffix, suffix.replace("UInt", "Uint")])) {
      Object.defineProperty(Buffer.prototype, `read${name}${order}`, { value: read, configurable: true, writable: true });
      Object.defineProperty(Buffer.prototype, `write${name}${order}`, { value: write, configurable: true, writable: true });
    }
  }
}

class Blob {
  #bytes;
  constructor(parts = [], { type = "" } = {}) {
    const list = parts.map((part) => {
      if (part instanceof Blob) return part.#bytes;
      if (part instanceof ArrayBuffer) return new Uint8Array(part);
      if (ArrayBuffer.isView(part)) return new Uint8Array(part.buffer, part.byteOffset, part.byteLength);
      return Buffer.from(String(part));
    });
    this.#bytes = Buffer.concat(list);
    this.type = String(type).toLowerCase();
  }
  get size() {
    return this.#bytes.length;
  }
  async bytes() {
    return new Uint8Array(this.#bytes);
  }
  async arrayBuffer() {
    return new Uint8Array(this.#bytes).buffer;
  }
  async text() {
    return this.#bytes.toString("utf8");
  }
  textStream() {
    return this.stream().pipeThrough(new TextDecoderStream());
  }
  slice(start, end, type) {
    return new Blob([this.#bytes.subarray(start, end)], { type });
  }
  stream() {
    return require("internal/streams").ReadableStream.from([new Uint8Array(this.#bytes)]);
  }
}

class File extends Blob {
  constructor(parts, name, options = {}) {
    super(parts, options);
    this.name = String(name);
    this.lastModified = options.lastModified ?? Date.now();
  }
}

const atob = (encoded) => stringOf(text.decodeBase64(String(encoded)), "latin1");
const btoa = (data) => {
  const string = String(data);
  if (/[^\x00-\xff]/.test(string)) throw new DOMException("Invalid character", "InvalidCharacterError");
  return bytesOf(string, "latin1").toBase64();
};

module.exports = { Buffer, SlowBuffer: Buffer, Blob, File, atob, btoa, kMaxLength: 0x7fffffff, constants: { MAX_LENGTH: 0x7fffffff, MAX_STRING_LENGTH: 0x1fffffe8 }, isAscii: (bytes) => new Uint8Array(bytes).every((byte) => byte < 128), isUtf8: (bytes) => text.isUtf8(new Uint8Array(bytes).toBase64()), transcode: (bytes, from, to) => Buffer.from(Buffer.from(bytes).toString(from), to) };
