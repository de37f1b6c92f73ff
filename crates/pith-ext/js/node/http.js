// node:http and node:https, as a client only: requests go through fetch.

const EventEmitter = require("events");
const { Readable, Writable } = require("stream");
const { Buffer } = require("buffer");

const STATUS_CODES = { 200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 301: "Moved Permanently", 302: "Found", 304: "Not Modified", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout", 409: "Conflict", 410: "Gone", 413: "Payload Too Large", 422: "Unprocessable Entity", 429: "Too Many Requests", 500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout" };

class IncomingMessage extends Readable {}
class ServerResponse extends Writable {}
class Server extends EventEmitter {}

class ClientRequest extends Writable {
  constructor(protocol, input, options, callback) {
    super();
    if (typeof options === "function") [options, callback] = [{}, options];
    const given = typeof input === "string" || input instanceof URL ? { ...require("url").urlToHttpOptions(new URL(input)), ...options } : input;
    const { hostname, host: hostField, port, path = "/", method = "GET", headers = {}, timeout, auth } = given;
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
      const message = IncomingMessage.from(answer.body ?? [], { objectMode: false });
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

const noServer = () => {
  throw require("internal/owners").unavailable("http.createServer");
};

exports.make = (protocol) => {
  const request = (input, options, callback) => new ClientRequest(protocol, input, options, callback);
  const get = (...args) => {
    const sent = request(...args);
    sent.end();
    return sent;
  };
  return { request, get, Agent, globalAgent: new Agent(), ClientRequest, IncomingMessage, ServerResponse, Server, OutgoingMessage: Writable, createServer: noServer, STATUS_CODES, METHODS: ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"], maxHeaderSize: 16384 };
};
