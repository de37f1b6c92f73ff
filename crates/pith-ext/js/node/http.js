// node:http and node:https. Requests go through fetch; servers are in http-server.js.

const EventEmitter = require("events");
const { Readable, Writable } = require("stream");
const { Buffer } = require("buffer");
const owners = require("internal/owners");

const STATUS_CODES = { 100: "Continue", 101: "Switching Protocols", 102: "Processing", 103: "Early Hints", 200: "OK", 201: "Created", 202: "Accepted", 203: "Non-Authoritative Information", 204: "No Content", 205: "Reset Content", 206: "Partial Content", 207: "Multi-Status", 208: "Already Reported", 226: "IM Used", 300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified", 305: "Use Proxy", 307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable", 407: "Proxy Authentication Required", 408: "Request Timeout", 409: "Conflict", 410: "Gone", 411: "Length Required", 412: "Precondition Failed", 413: "Payload Too Large", 414: "URI Too Long", 415: "Unsupported Media Type", 416: "Range Not Satisfiable", 417: "Expectation Failed", 418: "I'm a Teapot", 421: "Misdirected Request", 422: "Unprocessable Entity", 423: "Locked", 424: "Failed Dependency", 425: "Too Early", 426: "Upgrade Required", 428: "Precondition Required", 429: "Too Many Requests", 431: "Request Header Fields Too Large", 451: "Unavailable For Legal Reasons", 500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout", 505: "HTTP Version Not Supported", 506: "Variant Also Negotiates", 507: "Insufficient Storage", 508: "Loop Detected", 509: "Bandwidth Limit Exceeded", 510: "Not Extended", 511: "Network Authentication Required" };

class ClientRequest extends Writable {
  constructor(protocol, input, options, callback) {
    super();
    if (typeof options === "function") [options, callback] = [{}, options];
    const given = typeof input === "string" || input instanceof URL ? { ...require("url").urlToHttpOptions(new URL(input)), ...options } : input;
    const { hostname, host: hostField, port, path = "/", method = "GET", headers = {}, timeout, auth } = given;
    if (given.socketPath) throw owners.unavailable("http.request with socketPath");
    const address = hostname ?? String(hostField ?? "localhost").replace(/:\d+$/, "");
    this.href = `${given.protocol ?? protocol}//${address}${port ? `:${port}` : ""}${path}`;
    this.method = method;
    this.headers = new Headers();
    for (const [name, value] of Object.entries(headers)) if (value !== undefined) this.headers.set(name, [value].flat().join(", "));
    if (auth && !this.headers.has("authorization")) this.headers.set("authorization", `Basic ${Buffer.from(auth).toString("base64")}`);
    this.body = [];
    this.controller = new AbortController();
    if (callback) this.once("response", callback);
    if (given.signal) given.signal.addEventListener("abort", () => this.destroy(given.signal.reason));
    if (timeout) this.setTimeout(timeout);
  }
  setHeader(name, value) {
    this.headers.set(name, value);
    return this;
  }
  getHeader(name) {
    return this.headers.get(name) ?? undefined;
  }
  removeHeader(name) {
    this.headers.delete(name);
  }
  flushHeaders() {}
  setNoDelay() {}
  setSocketKeepAlive() {}
  setTimeout(delay, callback) {
    if (callback) this.once("timeout", callback);
    this.timer = setTimeout(() => this.emit("timeout"), delay);
    return this;
  }
  abort() {
    this.destroy();
  }
  _write(chunk, encoding, done) {
    this.body.push(Buffer.from(chunk));
    done();
  }
  _final(done) {
    this.send();
    done();
  }
  // A request ends with its response, not when its body has been sent.
  _maybeClose() {}
  async send() {
    try {
      const body = this.body.length ? Buffer.concat(this.body) : undefined;
      const answer = await fetch(this.href, { method: this.method, headers: this.headers, body, signal: this.controller.signal, redirect: "manual" });
      clearTimeout(this.timer);
      const message = Readable.from(answer.body ?? [], { objectMode: false });
      Object.assign(message, { statusCode: answer.status, statusMessage: answer.statusText || STATUS_CODES[answer.status] || "", headers: Object.fromEntries(answer.headers), rawHeaders: [...answer.headers].flat(), httpVersion: "1.1", complete: true, req: this });
      this.emit("response", message);
    } catch (error) {
      clearTimeout(this.timer);
      this.emit("error", error.cause instanceof Error ? error.cause : error);
    }
  }
  _destroy(error, done) {
    if (!this.writableFinished) this.controller.abort(error ?? undefined);
    done(error);
  }
}

class Agent extends EventEmitter {
  constructor(options = {}) {
    super();
    this.options = options;
  }
  destroy() {}
}

// Servers are made when one is asked for: most extensions only send requests.
const servers = () => require("internal/http-server");

exports.make = (protocol) => {
  const request = (input, options, callback) => new ClientRequest(protocol, input, options, callback);
  const get = (...args) => {
    const sent = request(...args);
    sent.end();
    return sent;
  };
  const createServer = (options, listener) => {
    if (protocol === "https:") throw owners.unavailable("https.createServer");
    return new (servers().Server)(options, listener);
  };
  return {
    request,
    get,
    Agent,
    globalAgent: new Agent(),
    ClientRequest,
    OutgoingMessage: Writable,
    createServer,
    STATUS_CODES,
    METHODS: ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"],
    maxHeaderSize: 16384,
    validateHeaderName: () => {},
    validateHeaderValue: () => {},
    get WebSocket() {
      return globalThis.WebSocket;
    },
    get MessageEvent() {
      return globalThis.MessageEvent;
    },
    get CloseEvent() {
      return globalThis.CloseEvent;
    },
    get IncomingMessage() {
      return servers().IncomingMessage;
    },
    get ServerResponse() {
      return servers().ServerResponse;
    },
    get Server() {
      return servers().Server;
    },
  };
};
