// Servers of node:http. The native side speaks the protocol; each request is an operation of its own.

const net = require("net");
const { Readable, Writable } = require("stream");
const { Buffer } = require("buffer");
const { opened } = net.internal;
const native = host.ops("net");

// Headers that Node keeps the first of; all others are joined.
const SINGLE = new Set(["age", "authorization", "content-length", "content-type", "etag", "expires", "from", "host", "if-modified-since", "if-unmodified-since", "last-modified", "location", "max-forwards", "proxy-authorization", "referer", "retry-after", "server", "user-agent"]);

function headersOf(pairs) {
  const headers = Object.create(null);
  for (const [name, value] of pairs) {
    if (name === "set-cookie") (headers[name] ??= []).push(value);
    else if (headers[name] === undefined) headers[name] = value;
    else if (!SINGLE.has(name)) headers[name] += `${name === "cookie" ? "; " : ", "}${value}`;
  }
  return { ...headers };
}

class IncomingMessage extends Readable {
  constructor(socket, { method, url, version, headers } = { headers: [] }) {
    super();
    this.socket = this.connection = socket;
    this.method = method;
    this.url = url;
    this.httpVersion = version ?? "1.1";
    [this.httpVersionMajor, this.httpVersionMinor] = this.httpVersion.split(".").map(Number);
    this.headers = headersOf(headers);
    this.rawHeaders = headers.flat();
    this.trailers = {};
    this.complete = false;
    this.aborted = false;
  }
  get headersDistinct() {
    const distinct = {};
    for (let at = 0; at < this.rawHeaders.length; at += 2) (distinct[this.rawHeaders[at]] ??= []).push(this.rawHeaders[at + 1]);
    return distinct;
  }
  setTimeout(delay, callback) {
    this.socket?.setTimeout?.(delay, callback);
    return this;
  }
}

class ServerResponse extends Writable {
  #headers = new Map(); // lower case -> [name, value]
  #done = null;
  constructor(op, request) {
    super();
    this.op = op;
    this.req = request;
    this.socket = this.connection = request?.socket;
    this.statusCode = 200;
    this.statusMessage = undefined;
    this.headersSent = false;
    this.sendDate = true;
    this.finished = false;
  }
  setHeader(name, value) {
    if (this.headersSent) throw Object.assign(new Error("Cannot set headers after they are sent to the client"), { code: "ERR_HTTP_HEADERS_SENT" });
    if (value === undefined) throw Object.assign(new TypeError(`Invalid value "undefined" for header "${name}"`), { code: "ERR_HTTP_INVALID_HEADER_VALUE" });
    this.#headers.set(String(name).toLowerCase(), [String(name), value]);
    return this;
  }
  appendHeader(name, value) {
    const known = this.getHeader(name);
    return this.setHeader(name, known === undefined ? value : [known, value].flat());
  }
  setHeaders(headers) {
    for (const [name, value] of headers) this.setHeader(name, value);
    return this;
  }
  getHeader(name) {
    return this.#headers.get(String(name).toLowerCase())?.[1];
  }
  getHeaders() {
    return Object.fromEntries([...this.#headers].map(([key, [, value]]) => [key, value]));
  }
  getHeaderNames() {
    return [...this.#headers.keys()];
  }
  hasHeader(name) {
    return this.#headers.has(String(name).toLowerCase());
  }
  removeHeader(name) {
    this.#headers.delete(String(name).toLowerCase());
  }
  writeHead(status, message, headers) {
    if (typeof message !== "string") [message, headers] = [undefined, message];
    if (!Number.isInteger(status) || status < 100 || status > 999) throw Object.assign(new RangeError(`Invalid status code: ${status}`), { code: "ERR_HTTP_INVALID_STATUS_CODE" });
    if (this.headersSent) throw Object.assign(new Error("Cannot write headers after they are sent to the client"), { code: "ERR_HTTP_HEADERS_SENT" });
    this.statusCode = status;
    if (message) this.statusMessage = message;
    if (Array.isArray(headers)) {
      const pairs = Array.isArray(headers[0]) ? headers : headers.flatMap((name, at) => (at % 2 ? [] : [[name, headers[at + 1]]]));
      for (const [name, value] of pairs) this.appendHeader(name, value);
    } else for (const [name, value] of Object.entries(headers ?? {})) if (value !== undefined) this.setHeader(name, value);
    return this;
  }
  flushHeaders() {
    if (this.headersSent || this.op === null) return;
    this.headersSent = true;
    const headers = [];
    for (const [name, value] of this.#headers.values()) {
      // The native side decides how the body is framed.
      if (name.toLowerCase() === "transfer-encoding") continue;
      for (const each of [value].flat()) headers.push([name, String(each)]);
    }
    native.respond(this.op, JSON.stringify({ status: this.statusCode, headers }));
  }
  writeContinue() {}
  writeProcessing() {}
  writeEarlyHints(_hints, callback) {
    callback?.();
  }
  addTrailers() {}
  assignSocket() {}
  detachSocket() {}
  setTimeout(delay, callback) {
    this.socket?.setTimeout?.(delay, callback);
    return this;
  }
  end(chunk, encoding, callback) {
    if (typeof chunk === "function") [callback, chunk] = [chunk, undefined];
    if (typeof encoding === "function") [callback, encoding] = [encoding, undefined];
    if (!this.headersSent && !this.writableEnded && this.writableLength === 0 && !this.hasHeader("content-length") && !this.hasHeader("transfer-encoding")) {
      const hasBody = this.statusCode !== 204 && this.statusCode !== 304 && this.statusCode >= 200;
      const bytes = chunk === undefined || chunk === null ? 0 : typeof chunk === "string" ? Buffer.byteLength(chunk, encoding) : chunk.length;
      if (hasBody) this.setHeader("Content-Length", bytes);
    }
    this.finished = true;
    return super.end(chunk, encoding, callback);
  }
  _write(chunk, _encoding, done) {
    this.flushHeaders();
    if (this.op !== null && native.write(this.op, Buffer.from(chunk).toBase64())) this.#done = done;
    else done();
  }
  _final(done) {
    this.flushHeaders();
    if (this.op !== null && native.end(this.op)) this.#done = done;
    else done();
  }
  _destroy(error, done) {
    if (this.op !== null && !this.writableFinished) native.close(this.op);
    this.op = null;
    done(error);
  }
  // Called when the native side has taken what was written.
  taken() {
    const done = this.#done;
    this.#done = null;
    done?.();
  }
}

// The connection of a request, as far as handlers look at it; its bytes are the native side's.
function connectionOf(op, { local, remote }) {
  const socket = new net.Socket();
  Object.assign(socket, { pending: false, localAddress: local?.address, localPort: local?.port, localFamily: local?.family, remoteAddress: remote?.address, remotePort: remote?.port, remoteFamily: remote?.family });
  socket._read = () => {};
  socket._destroy = (error, done) => {
    native.close(op);
    done(error);
  };
  return socket;
}

// The socket of an upgrade. What is written first is the head of the response; after it the connection belongs to the
// two ends.
class UpgradedSocket extends net.Socket {
  #head = Buffer.alloc(0);
  #isAnswered = false;
  constructor(op, head) {
    super({ allowHalfOpen: true });
    this.op = op;
    this.connecting = false;
    Object.assign(this, { remoteAddress: head.remote?.address, remotePort: head.remote?.port, remoteFamily: head.remote?.family, places: head });
  }
  receive(value) {
    super.receive(value.event === "upgraded" ? { ...value, event: "open", local: this.places.local, remote: this.places.remote } : value);
  }
  _write(chunk, encoding, done) {
    if (this.#isAnswered) return super._write(chunk, encoding, done);
    this.#head = Buffer.concat([this.#head, typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk]);
    const end = this.#head.indexOf("\r\n\r\n");
    if (end < 0) return done();
    this.#isAnswered = true;
    const [first, ...lines] = this.#head.subarray(0, end).toString("latin1").split("\r\n");
    const headers = lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]);
    const status = Number(first.split(" ")[1]);
    native.respond(this.op, JSON.stringify({ status, headers }));
    // A refusal is an ordinary response.
    if (status !== 101) this.pending = false;
    const rest = this.#head.subarray(end + 4);
    if (rest.length) super._write(rest, undefined, done);
    else done();
  }
  _final(done) {
    if (this.#isAnswered) super._final(done);
    else this.destroy();
  }
}

class Server extends net.Server {
  constructor(options, listener) {
    if (typeof options === "function") [options, listener] = [{}, options];
    super(options ?? {});
    this.speaksHttp = true;
    this.timeout = 0;
    this.keepAliveTimeout = 5000;
    this.headersTimeout = 60000;
    this.requestTimeout = 300000;
    this.exchanges = new Set();
    if (listener) this.on("request", listener);
  }
  // Waits for the next request.
  next() {
    if (this.op === null) return;
    let exchange = null;
    const op = opened(
      (op) => native.accept(this.op, op),
      (value) => {
        if (exchange) return exchange.receive(value);
        exchange = this.begin(op, value);
        this.next();
        exchange.announce();
      },
      () => exchange?.over(),
    );
    this.slot = op;
  }
  // Makes what stands for a request: `announce` hands it to the extension, native events go to the rest.
  begin(op, head) {
    const isUpgrade = /\bupgrade\b/i.test(headersOf(head.headers).connection ?? "");
    if (isUpgrade && this.listenerCount("upgrade")) {
      const socket = new UpgradedSocket(op, head);
      const request = new IncomingMessage(socket, head);
      const announce = () => this.emit("upgrade", request, socket, Buffer.alloc(0));
      return { announce, receive: (value) => socket.receive(value), over: () => socket.gone() };
    }
    const socket = connectionOf(op, head);
    const request = new IncomingMessage(socket, head);
    const response = new ServerResponse(op, request);
    request._read = () => {
      if (response.op !== null) native.read(op);
    };
    this.exchanges.add(response);
    response.once("close", () => {
      this.exchanges.delete(response);
      // What the client still sends is not wanted.
      if (!request.readableEnded) request.destroy();
      socket.destroy();
    });
    const announce = () => {
      try {
        this.emit("connection", socket);
        this.emit("request", request, response);
      } catch (error) {
        // The client is not left waiting for a handler that has failed.
        response.destroy();
        throw error;
      }
    };
    return { announce, receive: (value) => this.receiveFor(request, response, value), over: () => response.destroy() };
  }
  receiveFor(request, response, value) {
    if (value instanceof Uint8Array) {
      request.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
      return;
    }
    switch (value.event) {
      case "written":
      case "shut":
        response.taken();
        break;
      case "end":
        request.complete = true;
        request.push(null);
        break;
      case "aborted":
        request.aborted = true;
        if (!request.complete) request.emit("aborted");
        response.destroy();
        break;
    }
  }
  closeAllConnections() {
    for (const response of this.exchanges) response.destroy();
  }
  closeIdleConnections() {}
  setTimeout(delay, callback) {
    this.timeout = delay;
    if (callback) this.on("timeout", callback);
    return this;
  }
}

module.exports = { Server, ServerResponse, IncomingMessage };
