// node:crypto: digests, keyed digests, random numbers, key derivation and AES-GCM, all done natively.

const native = host.ops("crypto");
const { Buffer } = require("buffer");
const { Transform } = require("stream");
const { refusal } = require("internal/owners");

const bytesOf = (data, encoding) => {
  if (typeof data === "string") return Buffer.from(data, encoding);
  if (data instanceof ArrayBuffer) return Buffer.from(data);
  if (ArrayBuffer.isView(data)) return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  if (data?.export) return data.export();
  throw Object.assign(new TypeError('The "data" argument must be of type string or an instance of Buffer, TypedArray, or DataView'), { code: "ERR_INVALID_ARG_TYPE" });
};
const encoded = (bytes, encoding) => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return encoding && encoding !== "buffer" ? buffer.toString(encoding) : buffer;
};

const algorithms = { md5: "md5", sha1: "sha1", sha256: "sha256", sha384: "sha384", sha512: "sha512", "rsa-sha1": "sha1", "rsa-sha256": "sha256" };
const algorithmOf = (name) => {
  const found = algorithms[String(name).toLowerCase().replace(/^sha-/, "sha")];
  if (!found) throw Object.assign(new Error(`Digest method not supported: ${name}`), { code: "ERR_CRYPTO_INVALID_DIGEST" });
  return found;
};

// Digests collect their input and are computed at the end.
class Digest extends Transform {
  constructor(algorithm, key) {
    super();
    this.algorithm = algorithmOf(algorithm);
    this.key = key;
    this.parts = [];
    this.isDone = false;
  }
  update(data, encoding) {
    if (this.isDone) throw Object.assign(new Error("Digest already called"), { code: "ERR_CRYPTO_HASH_FINALIZED" });
    this.parts.push(Buffer.from(bytesOf(data, encoding)));
    return this;
  }
  digest(encoding) {
    if (this.isDone) throw Object.assign(new Error("Digest already called"), { code: "ERR_CRYPTO_HASH_FINALIZED" });
    this.isDone = true;
    const data = Buffer.concat(this.parts).toBase64();
    const result = this.key === undefined ? native.hash(this.algorithm, data) : native.hmac(this.algorithm, this.key.toBase64(), data);
    return encoded(result, encoding);
  }
  copy() {
    const copy = new Digest(this.algorithm, this.key);
    copy.parts = [...this.parts];
    return copy;
  }
  _transform(chunk, encoding, done) {
    this.update(chunk, encoding);
    done();
  }
  _flush(done) {
    done(null, this.digest());
  }
}

const createHash = (algorithm) => new Digest(algorithm);
const createHmac = (algorithm, key) => new Digest(algorithm, bytesOf(key));
const hash = (algorithm, data, encoding = "hex") => createHash(algorithm).update(data).digest(encoding);

function randomBytes(size, callback) {
  const bytes = encoded(native.random(size));
  if (!callback) return bytes;
  queueMicrotask(() => callback(null, bytes));
}

function randomFillSync(buffer, offset = 0, size) {
  const view = ArrayBuffer.isView(buffer) ? new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength) : new Uint8Array(buffer);
  view.set(native.random(size ?? view.length - offset), offset);
  return buffer;
}

function randomInt(min, max, callback) {
  if (max === undefined || typeof max === "function") [min, max, callback] = [0, min, max];
  const span = max - min;
  if (!(span > 0) || !Number.isSafeInteger(span)) throw new RangeError('The value of "max" is out of range');
  // Values above the largest multiple of the span would not be uniformly distributed.
  const limit = Math.floor(2 ** 48 / span) * span;
  let value;
  do value = encoded(native.random(6)).readUIntBE(0, 6);
  while (value >= limit);
  const result = min + (value % span);
  if (callback) queueMicrotask(() => callback(null, result));
  return result;
}

const pbkdf2Sync = (password, salt, iterations, length, digest = "sha1") =>
  encoded(native.pbkdf2(algorithmOf(digest), bytesOf(password).toBase64(), bytesOf(salt).toBase64(), iterations, length));

// The form with a callback. What the arguments are is said at once.
const calledBack = (compute) => (...args) => {
  const callback = args.pop();
  if (typeof callback !== "function") throw Object.assign(new TypeError('The "callback" argument must be of type function'), { code: "ERR_INVALID_ARG_TYPE" });
  const result = compute(...args);
  queueMicrotask(() => callback(null, result));
};
const pbkdf2 = calledBack((...args) => pbkdf2Sync(...args));

const hkdfSync = (digest, key, salt, info, length) => {
  const size = createHash(digest).digest().length;
  if (!(length >= 0 && length <= 255 * size)) throw Object.assign(new RangeError("Invalid key length"), { code: "ERR_CRYPTO_INVALID_KEYLEN" });
  const secret = createHmac(digest, bytesOf(salt)).update(bytesOf(key)).digest();
  const parts = [];
  for (let block = Buffer.alloc(0), number = 1; parts.length * size < length; number++) {
    block = createHmac(digest, secret).update(Buffer.concat([block, bytesOf(info), Buffer.from([number])])).digest();
    parts.push(block);
  }
  const bytes = new Uint8Array(Buffer.concat(parts).subarray(0, length));
  return bytes.buffer;
};

function timingSafeEqual(a, b) {
  if (a.byteLength !== b.byteLength) throw Object.assign(new RangeError("Input buffers must have the same byte length"), { code: "ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH" });
  const [left, right] = [bytesOf(a), bytesOf(b)];
  let difference = 0;
  for (let at = 0; at < left.length; at++) difference |= left[at] ^ right[at];
  return difference === 0;
}

const CIPHERS = ["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305"];

class Cipher {
  constructor(name, key, iv, isOpening) {
    this.name = String(name).toLowerCase();
    if (!CIPHERS.includes(this.name)) throw Object.assign(new Error(`Cipher ${name} is not available in pith; it has ${CIPHERS.join(", ")}`), { code: "ERR_CRYPTO_UNKNOWN_CIPHER" });
    this.key = bytesOf(key);
    this.iv = bytesOf(iv);
    this.isOpening = isOpening;
    this.parts = [];
    this.aad = Buffer.alloc(0);
    this.tag = null;
  }
  // `final` processes the whole text; `update` only collects.
  update(data, inputEncoding, outputEncoding) {
    this.parts.push(Buffer.from(bytesOf(data, inputEncoding)));
    return outputEncoding ? "" : Buffer.alloc(0);
  }
  setAAD(data) {
    this.aad = bytesOf(data);
    return this;
  }
  setAutoPadding() {
    return this;
  }
  setAuthTag(tag) {
    this.tag = bytesOf(tag);
    return this;
  }
  getAuthTag() {
    return this.tag;
  }
  final(encoding) {
    let data = Buffer.concat(this.parts);
    if (this.isOpening) {
      if (!this.tag) throw new Error("Unsupported state or unable to authenticate data");
      data = Buffer.concat([data, this.tag]);
    }
    const result = encoded(native.aead(this.name, this.key.toBase64(), this.iv.toBase64(), this.aad.toBase64(), data.toBase64(), this.isOpening));
    if (this.isOpening) return encoded(result, encoding);
    this.tag = Buffer.from(result.subarray(result.length - 16));
    return encoded(Buffer.from(result.subarray(0, result.length - 16)), encoding);
  }
}

const { illegal } = require("internal/abort");
const own = Symbol("webcrypto");

class CryptoKey {
  constructor(key, type, algorithm, extractable, usages, raw) {
    if (key !== own) throw illegal();
    Object.assign(this, { type, algorithm, extractable, usages });
    Object.defineProperty(this, "raw", { value: raw });
  }
}

class SubtleCrypto {
  constructor(key) {
    if (key !== own) throw illegal();
  }
}

class Crypto {
  constructor(key) {
    if (key !== own) throw illegal();
  }
  get subtle() {
    return subtle;
  }
  getRandomValues(array) {
    return randomFillSync(array);
  }
  randomUUID() {
    return host.uuid();
  }
}

const work = {
  digest: async (algorithm, data) => new Uint8Array(createHash(algorithm?.name ?? algorithm).update(bytesOf(data)).digest()).buffer,
  importKey: async (format, data, algorithm, extractable = true, usages = []) => {
    if (format !== "raw") throw new DOMException(`Key format ${format} is not available in pith`, "NotSupportedError");
    return new CryptoKey(own, "secret", typeof algorithm === "string" ? { name: algorithm } : algorithm, extractable, [...usages], Buffer.from(bytesOf(data)));
  },
  sign: async (algorithm, key, data) => new Uint8Array(createHmac(key.algorithm.hash?.name ?? key.algorithm.hash ?? "sha256", key.raw).update(bytesOf(data)).digest()).buffer,
  verify: async (algorithm, key, signature, data) => {
    const expected = Buffer.from(await subtle.sign(algorithm, key, data));
    return expected.length === signature.byteLength && timingSafeEqual(expected, bytesOf(signature));
  },
  deriveBits: async ({ salt, iterations, hash: digest }, key, bits) => new Uint8Array(pbkdf2Sync(key.raw, bytesOf(salt), iterations, bits / 8, digest?.name ?? digest)).buffer,
};

for (const name of Object.keys(work)) Object.defineProperty(SubtleCrypto.prototype, name, { value: work[name], configurable: true, writable: true });
const subtle = new SubtleCrypto(own);
const webcrypto = new Crypto(own);

class KeyObject {
  constructor(bytes) {
    this.type = "secret";
    this.bytes = bytes;
  }
  static from(key) {
    return new KeyObject(key.raw);
  }
  equals(other) {
    return other instanceof KeyObject && this.bytes.equals(other.bytes);
  }
  toCryptoKey(algorithm, extractable, usages) {
    return new CryptoKey(own, "secret", typeof algorithm === "string" ? { name: algorithm } : algorithm, extractable, [...usages], this.bytes);
  }
  get symmetricKeySize() {
    return this.bytes.length;
  }
  export() {
    return this.bytes;
  }
}

module.exports = {
  createHash, createHmac, hash, randomBytes, randomFillSync, randomInt, pbkdf2, pbkdf2Sync, hkdf: calledBack(hkdfSync), hkdfSync, timingSafeEqual, webcrypto, subtle, KeyObject,
  randomUUID: () => host.uuid(),
  pseudoRandomBytes: randomBytes,
  randomFill: (buffer, callback) => queueMicrotask(() => callback(null, randomFillSync(buffer))),
  Crypto, CryptoKey, SubtleCrypto,
  getRandomValues: randomFillSync,
  createSecretKey: (key, encoding) => new KeyObject(bytesOf(key, encoding)),
  createCipheriv: (name, key, iv) => new Cipher(name, key, iv, false),
  createDecipheriv: (name, key, iv) => new Cipher(name, key, iv, true),
  getHashes: () => ["md5", "sha1", "sha256", "sha384", "sha512"],
  getCiphers: () => [...CIPHERS],
  constants: {},
  ...Object.fromEntries(["createSign", "createVerify", "sign", "verify", "generateKeyPair", "generateKeyPairSync", "createPrivateKey", "createPublicKey", "publicEncrypt", "privateDecrypt", "scrypt", "scryptSync", "createECDH", "createDiffieHellman", "diffieHellman"].map((name) => [name, refusal(`crypto.${name}`)])),
};
