// node:http2, its client. Native tasks own the sessions and streams; servers are refused.

const EventEmitter = require("events");
const { Duplex } = require("stream");
const { Buffer } = require("buffer");
const owners = require("internal/owners");
const { opened, failure } = require("net").internal;
const native = host.ops("net");

const coded = (code, message) => Object.assign(new Error(message), { code });
const NO_BODY = new Set(["GET", "HEAD", "DELETE"]);
const sensitiveHeaders = Symbol("nodejs.http2.sensitiveHeaders");

class ClientHttp2Session extends EventEmitter {
  #op;
  #streams = new Set();
  #pings = [];
  #url;
  #timer;
  #timeout = 0;

  constructor(authority, options, listener) {
    super();
    this.#url = new URL(String(authority));
    const { protocol, hostname, port } = this.#url;
    if (protocol !== "https:" && protocol !== "http:") throw coded("ERR_HTTP2_UNSUPPORTED_PROTOCOL", `protocol "${protocol}" is unsupported.`);
    for (const name of ["createConnection", "rejectUnauthorized", "cert", "key", "pfx"]) {
      if (options[name] !== undefined && options[name] !== true) throw owners.unavailable(`http2.connect with ${name}`);
    }
    this.encrypted = protocol === "https:";
    this.alpnProtocol = this.encrypted ? "h2" : "h2c";
    this.connecting = true;
    this.closed = false;
    this.destroyed = false;
    this.type = 1;
    const name = options.servername ?? options.host ?? hostname;
    const ca = options.ca === undefined ? undefined : [options.ca].flat().map(String).join("\n");
    const target = { host: String(options.host ?? hostname).replace(/^\[|\]$/g, ""), port: Number(options.port ?? (port || (this.encrypted ? 443 : 80))), isSecure: this.encrypted, name: String(name).replace(/^\[|\]$/g, ""), ca };
    if (listener) this.once("connect", listener);
    this.#op = opened(
      (op) => native.connectHttp2(op, JSON.stringify(target)),
      (value) => this.#receive(value),
      () => this.#gone(),
    );
  }
  get originSet() {
    return this.encrypted ? [this.#url.origin] : undefined;
  }
  #receive(value) {
    this.#touch();
    switch (value.event) {
      case "open":
        this.connecting = false;
        this.emit("connect", this, undefined);
        break;
      case "pong":
      case "noPong": {
        const { callback, payload, since } = this.#pings.shift();
        if (value.event === "pong") callback?.(null, host.now() - since, payload);
        else callback?.(coded("ERR_HTTP2_PING_CANCEL", "HTTP2 ping cancelled"));
        break;
      }
      case "error":
        this.destroy(failure(value));
        break;
    }
  }
  #gone() {
    if (!this.destroyed) this.destroy();
  }
  request(headers = {}, options = {}) {
    if (this.destroyed) throw coded("ERR_HTTP2_INVALID_SESSION", "The session has been destroyed");
    if (this.closed) throw coded("ERR_HTTP2_GOAWAY_SESSION", "New streams cannot be created after receiving a GOAWAY");
    const { ":method": method = "GET", ":path": path = "/", ":scheme": scheme = this.#url.protocol.slice(0, -1), ":authority": authority = this.#url.host, ...rest } = headers ?? {};
    const list = [];
    for (const [name, value] of Object.entries(rest)) {
      if (value === undefined || value === null) continue;
      if (name.startsWith(":")) throw coded("ERR_HTTP2_INVALID_PSEUDOHEADER", `"${name}" is an invalid pseudoheader or is used incorrectly`);
      for (const one of [value].flat()) list.push([name.toLowerCase(), String(one)]);
    }
    const isWhole = options?.endStream ?? NO_BODY.has(String(method));
    const written = { method: String(method), uri: `${scheme}://${authority}${path}`, headers: list, isWhole };
    const stream = new ClientHttp2Stream(this, { ":method": method, ":path": path, ":scheme": scheme, ":authority": authority, ...rest }, isWhole, (op) => native.requestHttp2(this.#op, op, JSON.stringify(written)));
    this.#streams.add(stream);
    stream.once("close", () => {
      this.#streams.delete(stream);
      if (this.closed && this.#streams.size === 0) this.destroy();
    });
    options?.signal?.addEventListener?.("abort", () => stream.destroy(coded("ABORT_ERR", "The operation was aborted")), { once: true });
    this.#touch();
    return stream;
  }
  ping(payload, callback = payload) {
    if (this.destroyed) throw coded("ERR_HTTP2_INVALID_SESSION", "The session has been destroyed");
    // One at a time is on its way.
    if (this.#pings.length > 0) return false;
    this.#pings.push({ callback: typeof callback === "function" ? callback : undefined, payload: ArrayBuffer.isView(payload) ? payload : Buffer.alloc(8), since: host.now() });
    native.ping2(this.#op);
    return true;
  }
  close(callback) {
    if (callback) this.once("close", callback);
    if (this.closed || this.destroyed) return;
    this.closed = true;
    if (this.#streams.size === 0) this.destroy();
  }
  destroy(error) {
    if (this.destroyed) return;
    this.destroyed = true;
    this.closed = true;
    this.connecting = false;
    clearTimeout(this.#timer);
    native.close(this.#op);
    const cancelled = () => coded("ERR_HTTP2_STREAM_CANCEL", `The pending stream has been canceled${error?.message ? ` (caused by: ${error.message})` : ""}`);
    for (const stream of [...this.#streams]) stream.destroy(stream.pending || error ? cancelled() : undefined);
    for (const { callback } of this.#pings.splice(0)) callback?.(coded("ERR_HTTP2_PING_CANCEL", "HTTP2 ping cancelled"));
    queueMicrotask(() => {
      if (error) this.emit("error", error);
      this.emit("close");
    });
  }
  setTimeout(delay, callback) {
    this.#timeout = Number(delay) || 0;
    if (callback) this.once("timeout", callback);
    this.#touch();
    return this;
  }
  #touch() {
    clearTimeout(this.#timer);
    if (this.#timeout > 0 && !this.destroyed) this.#timer = setTimeout(() => this.emit("timeout"), this.#timeout);
  }
  // The native side keeps its own settings and windows, and pith does not wait for sessions when it ends.
  settings(_settings, callback) {
    if (callback) queueMicrotask(() => callback(null, {}, 0));
  }
  setLocalWindowSize() {}
  goaway() {
    this.close();
  }
  ref() {
    return this;
  }
  unref() {
    return this;
  }
}

class ClientHttp2Stream extends Duplex {
  #op;
  #done = null;

  constructor(session, sentHeaders, isWhole, start) {
    super();
    this.session = session;
    this.sentHeaders = sentHeaders;
    this.pending = true;
    this.aborted = false;
    this.rstCode = 0;
    this.endAfterHeaders = isWhole;
    this.#op = opened(
      start,
      (value) => this.#receive(value),
      () => this.#gone(),
    );
    if (isWhole) this.end();
  }
  #receive(value) {
    this.#touch();
    if (value instanceof Uint8Array) {
      this.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
      return;
    }
    switch (value.event) {
      case "open":
        this.pending = false;
        this.id = value.id;
        this.emit("ready");
        break;
      case "response":
        this.emit("response", headersOf(value.headers, { ":status": value.status }), 4);
        break;
      case "trailers":
        this.emit("trailers", headersOf(value.headers, {}), 5);
        break;
      case "end":
        this.push(null);
        // A response that nobody reads ends as well.
        if (this.readableFlowing === null && !this.listenerCount("readable")) this.resume();
        break;
      case "written":
      case "shut": {
        const done = this.#done;
        this.#done = null;
        done?.();
        break;
      }
      case "error":
        this.rstCode = value.reason ?? 2;
        this.aborted = true;
        this.emit("aborted");
        this.destroy(failure(value));
        break;
    }
  }
  #gone() {
    this.#op = null;
    if (!this.destroyed && this.readableEnded) this.destroy();
    else if (!this.destroyed) this.once("end", () => this.destroy());
  }
  _read() {
    if (this.#op !== null) native.read(this.#op);
  }
  _write(chunk, encoding, done) {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk;
    this.#touch();
    this.#done = done;
    if (this.#op === null || !native.write(this.#op, bytes.toBase64())) {
      this.#done = null;
      done(coded("ERR_HTTP2_INVALID_STREAM", "The stream has been destroyed"));
    }
  }
  _final(done) {
    if (this.endAfterHeaders) return done();
    this.#done = done;
    if (this.#op === null || !native.end(this.#op)) {
      this.#done = null;
      done();
    }
  }
  _destroy(error, done) {
    clearTimeout(this._timer);
    if (this.#op !== null) native.close(this.#op);
    done(error);
  }
  close(code = 0, callback) {
    this.rstCode = code;
    if (callback) this.once("close", callback);
    this.destroy();
  }
  setTimeout(delay, callback) {
    this.timeout = Number(delay) || 0;
    if (callback) this.once("timeout", callback);
    this.#touch();
    return this;
  }
  #touch() {
    clearTimeout(this._timer);
    if (this.timeout > 0 && !this.destroyed) this._timer = setTimeout(() => this.emit("timeout"), this.timeout);
  }
  priority() {}
}

// Headers that come several times are one text, cookies a list.
function headersOf(list, made) {
  for (const [name, value] of list) {
    if (name === "set-cookie") (made[name] ??= []).push(value);
    else made[name] = made[name] === undefined ? value : `${made[name]}${name === "cookie" ? "; " : ", "}${value}`;
  }
  return made;
}

const connect = (authority, options, listener) => {
  if (typeof options === "function") [options, listener] = [{}, options];
  return new ClientHttp2Session(authority, options ?? {}, listener);
};

module.exports = { connect, sensitiveHeaders, ClientHttp2Session, ClientHttp2Stream, getDefaultSettings: () => ({ headerTableSize: 4096, enablePush: true, initialWindowSize: 65535, maxFrameSize: 16384, maxConcurrentStreams: 0xffffffff, maxHeaderListSize: 65535, enableConnectProtocol: false }) };
for (const name of ["createServer", "createSecureServer", "getPackedSettings", "getUnpackedSettings", "performServerHandshake", "Http2ServerRequest", "Http2ServerResponse"]) module.exports[name] = owners.refusal(`http2.${name}`);
// A long list, created when it is first read.
Object.defineProperty(module.exports, "constants", { get: () => require("internal/http2-constants").constants, enumerable: true });
