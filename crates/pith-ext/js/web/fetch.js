// fetch and related classes. The agent's HTTP client does the transfer.

const owners = require("internal/owners");
const { ReadableStream } = require("internal/streams");
const { abortError } = require("internal/abort");

const token = (name) => {
  const text = String(name);
  if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(text)) throw new TypeError(`Invalid header name: ${text}`);
  return text.toLowerCase();
};

class Headers {
  #list = new Map();
  constructor(init) {
    if (init === undefined || init === null) return;
    const pairs = init instanceof Headers || typeof init[Symbol.iterator] === "function" ? init : Object.entries(init);
    for (const [name, value] of pairs) this.append(name, value);
  }
  append(name, value) {
    const key = token(name);
    const known = this.#list.get(key);
    if (known === undefined) this.#list.set(key, [String(value).trim()]);
    else known.push(String(value).trim());
  }
  set(name, value) {
    this.#list.set(token(name), [String(value).trim()]);
  }
  get(name) {
    return this.#list.get(token(name))?.join(", ") ?? null;
  }
  getSetCookie() {
    return [...(this.#list.get("set-cookie") ?? [])];
  }
  has(name) {
    return this.#list.has(token(name));
  }
  delete(name) {
    this.#list.delete(token(name));
  }
  forEach(callback, self) {
    for (const [name, value] of this) callback.call(self, value, name, this);
  }
  *entries() {
    for (const name of [...this.#list.keys()].sort()) yield [name, this.get(name)];
  }
  *keys() {
    for (const [name] of this.entries()) yield name;
  }
  *values() {
    for (const [, value] of this.entries()) yield value;
  }
  [Symbol.iterator]() {
    return this.entries();
  }
  get [Symbol.toStringTag]() {
    return "Headers";
  }
}

class FormData {
  #list = [];
  append(name, value, filename) {
    this.#list.push([String(name), value, filename]);
  }
  set(name, value, filename) {
    this.delete(name);
    this.append(name, value, filename);
  }
  get(name) {
    return this.#list.find(([key]) => key === name)?.[1] ?? null;
  }
  getAll(name) {
    return this.#list.filter(([key]) => key === name).map(([, value]) => value);
  }
  has(name) {
    return this.#list.some(([key]) => key === name);
  }
  delete(name) {
    this.#list = this.#list.filter(([key]) => key !== name);
  }
  forEach(callback, self) {
    for (const [name, value] of this) callback.call(self, value, name, this);
  }
  *entries() {
    for (const [name, value] of this.#list) yield [name, value];
  }
  *keys() {
    for (const [name] of this.#list) yield name;
  }
  *values() {
    for (const [, value] of this.#list) yield value;
  }
  [Symbol.iterator]() {
    return this.entries();
  }
  async encoded() {
    const { Buffer, Blob } = require("buffer");
    const boundary = `----pith${host.uuid().replace(/-/g, "")}`;
    const parts = [];
    const quote = (text) => String(text).replace(/"/g, "%22").replace(/\r?\n/g, "%0A");
    for (const [name, value, filename] of this.#list) {
      const isBlob = value instanceof Blob;
      const file = isBlob ? `; filename="${quote(filename ?? value.name ?? "blob")}"\r\nContent-Type: ${value.type || "application/octet-stream"}` : "";
      parts.push(Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${quote(name)}"${file}\r\n\r\n`));
      parts.push(isBlob ? Buffer.from(await value.arrayBuffer()) : Buffer.from(String(value)), Buffer.from("\r\n"));
    }
    parts.push(Buffer.from(`--${boundary}--\r\n`));
    return { bytes: Buffer.concat(parts), type: `multipart/form-data; boundary=${boundary}` };
  }
}

// Encodes a body as bytes; returns the content type it implies as well.
async function encode(body) {
  const { Buffer, Blob } = require("buffer");
  if (body === null || body === undefined) return { bytes: null, type: null };
  if (typeof body === "string") return { bytes: Buffer.from(body), type: "text/plain;charset=UTF-8" };
  if (body instanceof URLSearchParams) return { bytes: Buffer.from(String(body)), type: "application/x-www-form-urlencoded;charset=UTF-8" };
  if (body instanceof FormData) return body.encoded();
  if (body instanceof Blob) return { bytes: Buffer.from(await body.arrayBuffer()), type: body.type || null };
  if (body instanceof ArrayBuffer) return { bytes: Buffer.from(body), type: null };
  if (ArrayBuffer.isView(body)) return { bytes: Buffer.from(body.buffer, body.byteOffset, body.byteLength), type: null };
  if (typeof body[Symbol.asyncIterator] === "function" || typeof body[Symbol.iterator] === "function") {
    const parts = [];
    for await (const part of body) parts.push(Buffer.from(part));
    return { bytes: Buffer.concat(parts), type: null };
  }
  return { bytes: Buffer.from(String(body)), type: "text/plain;charset=UTF-8" };
}

class Body {
  #source;
  #stream = null;
  #used = false;
  constructor(source) {
    this.#source = source;
  }
  get bodyUsed() {
    return this.#used;
  }
  get body() {
    if (this.#source === null || this.#source === undefined) return null;
    if (!this.#stream) {
      const source = this.#source;
      this.#stream =
        source instanceof ReadableStream
          ? source
          : new ReadableStream({
              start: async (controller) => {
                const { bytes } = await encode(source);
                if (bytes?.length) controller.enqueue(new Uint8Array(bytes));
                controller.close();
              },
            });
    }
    return this.#stream;
  }
  // Splits the body: one half for the caller, the other stays here.
  halve() {
    if (this.body === null) return null;
    const [mine, theirs] = this.body.tee();
    this.#source = this.#stream = mine;
    return theirs;
  }
  async bytes() {
    const { Buffer } = require("buffer");
    if (this.#used) throw new TypeError("Body is unusable: Body has already been read");
    this.#used = true;
    if (this.#source instanceof ReadableStream || this.#stream) {
      const parts = [];
      for await (const part of this.body) parts.push(typeof part === "string" ? Buffer.from(part) : part);
      return new Uint8Array(Buffer.concat(parts));
    }
    const { bytes } = await encode(this.#source);
    return new Uint8Array(bytes ?? []);
  }
  async arrayBuffer() {
    const bytes = await this.bytes();
    return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  }
  async text() {
    return new TextDecoder().decode(await this.bytes());
  }
  async json() {
    return JSON.parse(await this.text());
  }
  async blob() {
    const { Blob } = require("buffer");
    return new Blob([await this.bytes()], { type: this.headers?.get("content-type") ?? "" });
  }
  async formData() {
    const data = new FormData();
    for (const [name, value] of new URLSearchParams(await this.text())) data.append(name, value);
    return data;
  }
}

class Request extends Body {
  constructor(input, init = {}) {
    const from = input instanceof Request ? input : null;
    super(init.body !== undefined ? init.body : (from?.body ?? null));
    this.url = from ? from.url : new URL(String(input)).href;
    this.method = String(init.method ?? from?.method ?? "GET").toUpperCase();
    this.headers = new Headers(init.headers ?? from?.headers);
    this.signal = init.signal ?? from?.signal ?? null;
    this.redirect = init.redirect ?? from?.redirect ?? "follow";
    this.given = init.body !== undefined ? init.body : from?.given;
  }
  clone() {
    return new Request(this);
  }
}

class Response extends Body {
  constructor(body = null, init = {}) {
    super(body);
    this.status = init.status ?? 200;
    this.statusText = init.statusText ?? "";
    this.headers = new Headers(init.headers);
    this.url = init.url ?? "";
    this.redirected = init.redirected ?? false;
    this.type = "basic";
    if (typeof body === "string" && !this.headers.has("content-type")) this.headers.set("content-type", "text/plain;charset=UTF-8");
  }
  get ok() {
    return this.status >= 200 && this.status < 300;
  }
  clone() {
    return new Response(this.halve(), this);
  }
  static json(data, init = {}) {
    const headers = new Headers(init.headers);
    if (!headers.has("content-type")) headers.set("content-type", "application/json");
    return new Response(JSON.stringify(data), { ...init, headers });
  }
  static error() {
    return new Response(null, { status: 0 });
  }
  static redirect(url, status = 302) {
    return new Response(null, { status, headers: { location: String(url) } });
  }
}

function dataUrl(url) {
  const { Buffer } = require("buffer");
  const [, type, base64, data] = /^data:([^,;]*(?:;[^,;]+=[^,;]+)*)?(;base64)?,(.*)$/s.exec(url) ?? [];
  if (data === undefined) throw new TypeError("fetch failed");
  const bytes = base64 ? Buffer.from(data, "base64") : Buffer.from(decodeURIComponent(data));
  return new Response(bytes, { headers: { "content-type": type || "text/plain" } });
}

const failure = (cause) => {
  const [, code] = /\((E[A-Z]+)\)$/.exec(cause?.message) ?? [];
  if (code) cause.code = code;
  return Object.assign(new TypeError("fetch failed"), { cause });
};

async function fetch(input, init = {}) {
  const request = new Request(input, init);
  const { signal } = request;
  if (signal?.aborted) throw signal.reason ?? abortError();
  if (request.url.startsWith("data:")) return dataUrl(request.url);
  const { bytes, type } = await encode(request.given);
  if (type && !request.headers.has("content-type")) request.headers.set("content-type", type);
  const payload = { url: request.url, method: request.method, headers: [...request.headers], redirect: request.redirect, body: bytes ? new Uint8Array(bytes).toBase64() : null };
  return new Promise((resolve, reject) => transfer(payload, signal, resolve, reject));
}

// Gets the head first, then chunks until the operation settles.
function transfer(payload, signal, resolve, reject) {
  const ops = require("internal/ops");
  const ext = owners.now();
  const waited = owners.pauseBudget(ext);
  let controller = null;
  let isCancelled = false;
  const fail = (error) => {
    const reason = signal?.aborted ? (signal.reason ?? abortError()) : failure(error);
    owners.tag(reason, ext);
    waited();
    if (controller) controller.error(reason);
    else reject(reason);
  };
  const { op, promise } = ops.begin((op) => host.ask(op, "fetch", JSON.stringify(payload)), (piece) => {
    if (isCancelled) return;
    if (controller) return controller.enqueue(piece);
    const cancel = () => {
      isCancelled = true;
      host.cancel(op);
    };
    const stream = new ReadableStream({ start: (given) => void (controller = given), cancel });
    waited();
    const hasBody = payload.method !== "HEAD" && piece.status !== 204 && piece.status !== 304;
    resolve(new Response(hasBody ? stream : null, { ...piece, redirected: piece.url !== payload.url }));
  });
  const abort = () => {
    host.cancel(op);
    ops.settle(op, false, "aborted");
  };
  signal?.addEventListener?.("abort", abort, { once: true });
  promise.then(() => isCancelled || controller?.close(), fail).finally(() => signal?.removeEventListener?.("abort", abort));
}

const EventSource = owners.refusal("EventSource");

module.exports = { fetch, Headers, Request, Response, FormData, EventSource, encode };
