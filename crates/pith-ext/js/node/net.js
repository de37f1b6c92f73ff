// node:net. Native tasks own the sockets; each delivers one piece when the stream wants it.

const EventEmitter = require("events");
const { Duplex } = require("stream");
const { Buffer } = require("buffer");
const ops = require("internal/ops");
const owners = require("internal/owners");
const native = host.ops("net");

const failure = ({ message, facts }) => Object.assign(new Error(message), facts);

// Calls into the code of an extension from a native event; what it throws is reported as its own.
function opened(start, receive, closed) {
  const ext = owners.now();
  const guarded = (act) => (value) => {
    const before = owners.current;
    owners.current = ext ? { ext, run: null } : null;
    try {
      act(value);
    } catch (error) {
      owners.report(owners.ofError(error)?.path ?? ext?.path ?? "<runtime>", "net", error);
    }
    owners.current = before;
  };
  const { op, promise } = ops.begin(start, guarded(receive));
  promise.then(guarded(closed), guarded(closed));
  return op;
}

// The forms of `connect` and `listen`: a port and a host, a path, or options; then a callback.
function placeOf(args) {
  const list = [...args];
  const callback = typeof list.at(-1) === "function" ? list.pop() : undefined;
  const [first, second] = list;
  if (first !== null && typeof first === "object") return { place: first, callback };
  if (typeof first === "string" && !/^\d+$/.test(first)) return { place: { path: first }, callback };
  return { place: { port: first, host: typeof second === "string" ? second : undefined }, callback };
}

function portOf(port) {
  const number = port === undefined || port === null ? 0 : Number(port);
  if (!Number.isInteger(number) || number < 0 || number > 65535) {
    throw Object.assign(new RangeError(`Port should be >= 0 and < 65536. Received ${typeof port === "string" ? `'${port}'` : String(port)}.`), { code: "ERR_SOCKET_BAD_PORT" });
  }
  return number;
}

class Socket extends Duplex {
  constructor(options = {}) {
    super(typeof options === "object" ? { ...options, read: undefined, write: undefined } : {});
    this.allowHalfOpen = !!options?.allowHalfOpen;
    this.op = null;
    this.connecting = false;
    this.pending = true;
    this.bytesRead = 0;
    this.bytesWritten = 0;
    this.timeout = 0;
    this.once("end", () => {
      if (!this.allowHalfOpen && !this.writableEnded) this.end();
    });
  }
  get readyState() {
    if (this.connecting) return "opening";
    if (this.pending || this.destroyed) return "closed";
    return this.writableEnded ? "readOnly" : this.readableEnded ? "writeOnly" : "open";
  }
  connect(...args) {
    const { place, callback } = placeOf(args);
    if (callback) this.once("connect", callback);
    const port = place.path ? undefined : portOf(place.port);
    this.connecting = true;
    this.attach((op) => native.connect(op, JSON.stringify(place.path ? { path: String(place.path) } : { port, host: place.host ? String(place.host) : "localhost" })));
    return this;
  }
  // `start(op)` makes the native side; what it reports comes to `receive`.
  attach(start) {
    this.op = opened(
      start,
      (value) => this.receive(value),
      () => this.gone(),
    );
  }
  receive(value) {
    this.touch();
    if (value instanceof Uint8Array) {
      this.bytesRead += value.length;
      this.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
      return;
    }
    switch (value.event) {
      case "open":
        this.open(value);
        break;
      case "end":
        this.push(null);
        // As in Node, a socket that nobody reads ends as well.
        if (this.readableFlowing === null && !this._pulled && !this.listenerCount("readable")) this.resume();
        break;
      case "written":
      case "shut": {
        const done = this._done;
        this._done = null;
        done?.();
        break;
      }
      case "error":
        this.destroy(failure(value));
        break;
    }
  }
  open({ local, remote }) {
    this.connecting = false;
    this.pending = false;
    this.localAddress = local?.address;
    this.localPort = local?.port;
    this.localFamily = local?.family;
    this.remoteAddress = remote?.address;
    this.remotePort = remote?.port;
    this.remoteFamily = remote?.family;
    // The first piece is asked for whether anybody reads or not, so that the end of a silent connection is noticed.
    this._reading = true;
    this._read();
    const waiting = this._waiting;
    this._waiting = null;
    waiting?.();
    this.emit("connect");
    this.emit("ready");
  }
  gone() {
    this.op = null;
    if (!this._ended) this.push(null);
    if (!this.destroyed && (this.writableFinished || this._done)) this.destroy();
  }
  _read() {
    if (!this.pending && this.op !== null) native.read(this.op);
  }
  _write(chunk, encoding, done) {
    if (this.pending) {
      this._waiting = () => this._write(chunk, encoding, done);
      return;
    }
    const bytes = typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk;
    this.bytesWritten += bytes.length;
    this.touch();
    this._done = done;
    if (this.op === null || !native.write(this.op, bytes.toBase64())) {
      this._done = null;
      done(Object.assign(new Error("write EPIPE"), { code: "EPIPE", errno: -32, syscall: "write" }));
    }
  }
  _final(done) {
    if (this.pending && this.connecting) {
      this._waiting = () => this._final(done);
      return;
    }
    this._done = done;
    if (this.op === null || !native.end(this.op)) {
      this._done = null;
      done();
    }
  }
  _destroy(error, done) {
    clearTimeout(this._timer);
    this.connecting = false;
    if (this.op !== null) native.close(this.op);
    this.hadError = !!error;
    done(error);
  }
  destroySoon() {
    if (!this.writableEnded) this.end();
    if (this.writableFinished) this.destroy();
    else this.once("finish", () => this.destroy());
  }
  resetAndDestroy() {
    return this.destroy();
  }
  setTimeout(delay, callback) {
    this.timeout = Number(delay) || 0;
    if (callback) this.once("timeout", callback);
    this.touch();
    return this;
  }
  // Something happened: the time until `timeout` begins anew.
  touch() {
    clearTimeout(this._timer);
    if (this.timeout > 0 && !this.destroyed) this._timer = setTimeout(() => this.emit("timeout"), this.timeout);
  }
  address() {
    return this.localAddress === undefined ? {} : { address: this.localAddress, family: this.localFamily, port: this.localPort };
  }
  // The native side sends at once, and pith does not wait for sockets when it ends.
  setNoDelay() {
    return this;
  }
  setKeepAlive() {
    return this;
  }
  ref() {
    return this;
  }
  unref() {
    return this;
  }
}

class Server extends EventEmitter {
  constructor(options, listener) {
    super();
    if (typeof options === "function") [options, listener] = [{}, options];
    this.options = options ?? {};
    this.listening = false;
    this.op = null;
    this.slot = null; // the operation that waits for the next connection
    this.sockets = new Set();
    if (listener) this.on("connection", listener);
  }
  get connections() {
    return this.sockets.size;
  }
  listen(...args) {
    const { place, callback } = placeOf(args);
    if (this.op !== null) throw Object.assign(new Error("Listen method has been called more than once without closing."), { code: "ERR_SERVER_ALREADY_LISTEN" });
    if (callback) this.once("listening", callback);
    const where = place.path ? { path: String(place.path) } : { port: portOf(place.port), host: place.host ? String(place.host) : undefined };
    this.op = opened(
      (op) => native.listen(op, JSON.stringify(where), this.speaksHttp ?? false),
      (value) => this.receive(value),
      () => this.gone(),
    );
    place.signal?.addEventListener?.("abort", () => this.close(), { once: true });
    return this;
  }
  receive(value) {
    if (value.event === "error") {
      this.emit("error", failure(value));
      return;
    }
    this.listening = true;
    this._address = value.address;
    this.next();
    this.emit("listening");
  }
  // Waits for the next connection.
  next() {
    if (this.op === null) return;
    const server = this.op;
    const socket = new Socket({ allowHalfOpen: this.options.allowHalfOpen });
    socket.open = (facts) => {
      delete socket.open;
      socket.server = this;
      this.sockets.add(socket);
      socket.once("close", () => {
        this.sockets.delete(socket);
        this.maybeClosed();
      });
      this.next();
      if (this.maxConnections && this.sockets.size > this.maxConnections) {
        socket.destroy();
        this.emit("drop", facts.remote);
        return;
      }
      this.accepted(socket, facts);
    };
    socket.attach((op) => native.accept(server, op));
    this.slot = socket.op;
  }
  accepted(socket, facts) {
    socket.open(facts);
    this.emit("connection", socket);
  }
  gone() {
    this.listening = false;
    this.op = null;
    this.isOver = true;
    // Nobody will come any more.
    if (this.slot) {
      native.close(this.slot);
      ops.forget(this.slot);
    }
    this.slot = null;
    this.maybeClosed();
  }
  maybeClosed() {
    if (!this.isOver || this.sockets.size > 0) return;
    this.isOver = false;
    this.emit("close");
  }
  close(callback) {
    if (this.op === null || !this.listening) {
      const error = Object.assign(new Error("Server is not running."), { code: "ERR_SERVER_NOT_RUNNING" });
      if (callback) queueMicrotask(() => callback(error));
      return this;
    }
    if (callback) this.once("close", () => callback());
    this.listening = false;
    native.close(this.op);
    return this;
  }
  address() {
    return this.listening ? (this._address ?? null) : null;
  }
  getConnections(callback) {
    queueMicrotask(() => callback(null, this.sockets.size));
    return this;
  }
  ref() {
    return this;
  }
  unref() {
    return this;
  }
  [Symbol.asyncDispose]() {
    return new Promise((resolve) => this.close(() => resolve()));
  }
}

const parsed = (text) => {
  const found = typeof text === "string" ? native.address(text.replace(/%.*$/, "")) : undefined;
  if (!found) return null;
  const [family, digits] = found.split(" ");
  return { family: Number(family), value: BigInt(`0x${digits}`) };
};

const isIP = (text) => parsed(text)?.family ?? 0;

class SocketAddress {
  constructor({ address = "127.0.0.1", family = "ipv4", port = 0, flowlabel = 0 } = {}) {
    Object.assign(this, { address, family: family.toLowerCase(), port: portOf(port), flowlabel });
  }
}

// Addresses, ranges and subnets as intervals of numbers.
class BlockList {
  #intervals = [];
  #rules = [];
  #add(first, last, family, rule) {
    const [from, to] = [this.#number(first, family), this.#number(last, family)];
    this.#intervals.push({ from, to, family });
    this.#rules.unshift(rule);
  }
  #number(address, family) {
    const found = parsed(typeof address === "object" ? address.address : address);
    if (!found || found.family !== family) throw Object.assign(new TypeError(`Invalid address: ${address}`), { code: "ERR_INVALID_ADDRESS" });
    return found.value;
  }
  #family(family) {
    return String(family).toLowerCase() === "ipv6" ? 6 : 4;
  }
  addAddress(address, family = address?.family ?? "ipv4") {
    const number = this.#family(family);
    this.#add(address, address, number, `Address: IPv${number} ${address?.address ?? address}`);
  }
  addRange(start, end, family = start?.family ?? "ipv4") {
    const number = this.#family(family);
    if (this.#number(start, number) > this.#number(end, number)) throw Object.assign(new TypeError("The start of a range must come before its end"), { code: "ERR_INVALID_ARG_VALUE" });
    this.#add(start, end, number, `Range: IPv${number} ${start?.address ?? start}-${end?.address ?? end}`);
  }
  addSubnet(net, prefix, family = net?.family ?? "ipv4") {
    const number = this.#family(family);
    const bits = number === 4 ? 32 : 128;
    if (!Number.isInteger(prefix) || prefix < 0 || prefix > bits) throw Object.assign(new RangeError(`The value of "prefix" is out of range: ${prefix}`), { code: "ERR_OUT_OF_RANGE" });
    const size = 1n << BigInt(bits - prefix);
    const from = (this.#number(net, number) / size) * size;
    this.#intervals.push({ from, to: from + size - 1n, family: number });
    this.#rules.unshift(`Subnet: IPv${number} ${net?.address ?? net}/${prefix}`);
  }
  check(address, family = address?.family ?? "ipv4") {
    let found = parsed(typeof address === "object" ? address.address : address);
    if (!found || found.family !== this.#family(family)) return false;
    const has = ({ family, value }) => this.#intervals.some((interval) => interval.family === family && interval.from <= value && value <= interval.to);
    if (has(found)) return true;
    // ::ffff:a.b.c.d is the address a.b.c.d.
    if (found.family === 6 && found.value >> 32n === 0xffffn) found = { family: 4, value: found.value & 0xffffffffn };
    return found.family === 4 && has(found);
  }
  get rules() {
    return [...this.#rules];
  }
  static isBlockList(value) {
    return value instanceof BlockList;
  }
}

const createConnection = (...args) => {
  const { place } = placeOf(args);
  const socket = new Socket(place);
  if (place.timeout) socket.setTimeout(place.timeout);
  return socket.connect(...args);
};

let familyTimeout = 250;

module.exports = {
  Socket,
  Stream: Socket,
  Server,
  SocketAddress,
  BlockList,
  createServer: (options, listener) => new Server(options, listener),
  createConnection,
  connect: createConnection,
  isIP,
  isIPv4: (text) => isIP(text) === 4,
  isIPv6: (text) => isIP(text) === 6,
  getDefaultAutoSelectFamily: () => true,
  setDefaultAutoSelectFamily: () => {},
  getDefaultAutoSelectFamilyAttemptTimeout: () => familyTimeout,
  setDefaultAutoSelectFamilyAttemptTimeout: (value) => {
    familyTimeout = value;
  },
  // For node:http.
  internal: { opened, failure },
};
