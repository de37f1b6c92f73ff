// WebSocket, as a client. The native side speaks the protocol.

const ops = require("internal/ops");
const owners = require("internal/owners");
const { Event, EventTarget } = require("internal/abort");
const { CloseEvent, MessageEvent } = require("internal/messaging");
const native = host.ops("net");

// What may wait to be written; beyond it `send` throws.
const MAX_BUFFERED = 64 << 20;
const [CONNECTING, OPEN, CLOSING, CLOSED] = [0, 1, 2, 3];
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

const refused = (why, name = "SyntaxError") => new DOMException(why, name);

function addressOf(given) {
  let url;
  try {
    url = new URL(String(given));
  } catch {
    throw refused(`Invalid URL: ${given}`);
  }
  if (url.protocol === "http:" || url.protocol === "https:") url = new URL(url.href.replace(/^http/, "ws"));
  if (url.protocol !== "ws:" && url.protocol !== "wss:") throw refused(`Expected a ws: or wss: protocol, got ${url.protocol}`);
  if (url.hash) throw refused("Got fragment");
  return url;
}

class WebSocket extends EventTarget {
  #url;
  #op;
  #state = CONNECTING;
  #protocol = "";
  #buffered = [];
  #isFailed = false;
  constructor(url, options = {}) {
    super();
    const { protocols = [], headers = {} } = typeof options === "string" || Array.isArray(options) ? { protocols: options } : options;
    this.#url = addressOf(url);
    const wanted = [protocols].flat().map(String);
    if (wanted.some((name) => !TOKEN.test(name)) || new Set(wanted.map((name) => name.toLowerCase())).size < wanted.length) throw refused("Invalid Sec-WebSocket-Protocol value");
    this.binaryType = "blob";
    for (const name of ["onopen", "onmessage", "onerror", "onclose"]) this[name] = null;
    this.#connect(wanted, headers);
  }
  #connect(wanted, headers) {
    const { hostname, port, protocol, username, password, href } = this.#url;
    const isSecure = protocol === "wss:";
    const pairs = [...new Headers(headers)];
    if (wanted.length) pairs.push(["sec-websocket-protocol", wanted.join(", ")]);
    if (username || password) pairs.push(["authorization", `Basic ${btoa(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`)}`]);
    const target = { url: href, host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) || (isSecure ? 443 : 80), isSecure, headers: pairs };
    const { op, promise } = ops.begin((id) => native.connectWebSocket(id, JSON.stringify(target)), (piece) => this.#take(piece, wanted));
    this.#op = op;
    const ended = () => this.#close(1006, "", false);
    promise.then(ended, ended);
  }
  #take(piece, wanted) {
    if (piece instanceof Uint8Array) return this.#receive(this.binaryType === "arraybuffer" ? piece.buffer : new Blob([piece]));
    switch (piece.event) {
      case "open":
        if (wanted.length && !wanted.includes(piece.protocol)) return this.#fail("Protocol was not set in the opening handshake.");
        this.#protocol = piece.protocol ?? "";
        this.#state = OPEN;
        this.dispatchEvent(new Event("open"));
        return native.read(this.#op);
      case "text":
        return this.#receive(piece.text);
      case "written":
        return this.#buffered.shift();
      case "closed":
        // The number of a connection that ended without a word.
        return piece.code === 1006 ? this.#fail("The connection was closed without a close frame") : this.#close(piece.code, piece.reason, true);
      case "error":
        return this.#fail(piece.message, piece.facts);
    }
  }
  #receive(data) {
    if (this.#state === OPEN) this.dispatchEvent(new MessageEvent("message", { data, origin: this.#url.origin }));
    native.read(this.#op);
  }
  #fail(message, facts) {
    this.#isFailed = true;
    const error = owners.tag(Object.assign(new Error(message), facts), owners.now());
    this.dispatchEvent(Object.assign(new Event("error"), { message, error }));
    this.#close(1006, "", false);
  }
  #close(code, reason, wasClean) {
    if (this.#state === CLOSED) return;
    const isUnopened = this.#state === CONNECTING;
    this.#state = CLOSED;
    native.close(this.#op);
    ops.settle(this.#op, true, null);
    if (isUnopened && !this.#isFailed) this.dispatchEvent(Object.assign(new Event("error"), { message: "The connection was closed before it was open" }));
    this.dispatchEvent(new CloseEvent("close", { code, reason, wasClean }));
  }
  get url() {
    return this.#url.href;
  }
  get readyState() {
    return this.#state;
  }
  get bufferedAmount() {
    return this.#buffered.reduce((sum, size) => sum + size, 0);
  }
  get protocol() {
    return this.#protocol;
  }
  get extensions() {
    return "";
  }
  send(data) {
    if (this.#state === CONNECTING) throw refused("Sent before connected.", "InvalidStateError");
    if (this.#state !== OPEN) return;
    if (data instanceof Blob) {
      data.arrayBuffer().then((bytes) => this.send(bytes));
      return;
    }
    const isBytes = data instanceof ArrayBuffer || ArrayBuffer.isView(data);
    const { Buffer } = require("buffer");
    const text = isBytes ? "" : String(data).toWellFormed();
    const size = isBytes ? data.byteLength : Buffer.byteLength(text);
    if (this.bufferedAmount + size > MAX_BUFFERED) throw Object.assign(new RangeError(`More than ${MAX_BUFFERED} bytes wait to be sent`), { code: "ERR_BUFFER_TOO_LARGE" });
    this.#buffered.push(size);
    if (isBytes) native.sendBytes(this.#op, (ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data)).toBase64());
    else native.sendText(this.#op, text);
  }
  close(code, reason = "") {
    if (code !== undefined && code !== 1000 && !(code >= 3000 && code <= 4999)) throw refused("invalid code", "InvalidAccessError");
    if (require("buffer").Buffer.byteLength(String(reason)) > 123) throw refused("Reason must be less than 123 bytes");
    if (this.#state === CONNECTING) {
      this.#state = CLOSING;
      queueMicrotask(() => this.#fail("The connection was closed before it was open"));
    } else if (this.#state === OPEN) {
      this.#state = CLOSING;
      native.sendClose(this.#op, code ?? null, String(reason));
    }
  }
}
for (const [name, value] of Object.entries({ CONNECTING, OPEN, CLOSING, CLOSED })) {
  for (const target of [WebSocket, WebSocket.prototype]) Object.defineProperty(target, name, { value, enumerable: true });
}

module.exports = { WebSocket };
