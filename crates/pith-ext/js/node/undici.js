// The package undici: requests go through the agent's HTTP client, which keeps the connections.

const owners = require("internal/owners");
const web = require("internal/fetch");
const EventEmitter = require("events");
const { Readable } = require("stream");

const errors = {};
const errorClass = (name, code, message, Base = errors.UndiciError ?? Error) => {
  const type = {
    [name]: class extends Base {
      constructor(text, options) {
        super(text ?? message, options);
        this.name = name;
        this.code = code;
      }
    },
  }[name];
  errors[name] = type;
};
errorClass("UndiciError", "UND_ERR", "undici error");
for (const [name, code, message] of [
  ["ConnectTimeoutError", "UND_ERR_CONNECT_TIMEOUT", "Connect Timeout Error"],
  ["HeadersTimeoutError", "UND_ERR_HEADERS_TIMEOUT", "Headers Timeout Error"],
  ["BodyTimeoutError", "UND_ERR_BODY_TIMEOUT", "Body Timeout Error"],
  ["HeadersOverflowError", "UND_ERR_HEADERS_OVERFLOW", "Headers Overflow Error"],
  ["InvalidArgumentError", "UND_ERR_INVALID_ARG", "Invalid Argument Error"],
  ["InvalidReturnValueError", "UND_ERR_INVALID_RETURN_VALUE", "Invalid Return Value Error"],
  ["RequestAbortedError", "UND_ERR_ABORTED", "Request aborted"],
  ["InformationalError", "UND_ERR_INFO", "Request information"],
  ["ClientDestroyedError", "UND_ERR_DESTROYED", "The client is destroyed"],
  ["ClientClosedError", "UND_ERR_CLOSED", "The client is closed"],
  ["SocketError", "UND_ERR_SOCKET", "Socket error"],
  ["NotSupportedError", "UND_ERR_NOT_SUPPORTED", "Not supported error"],
  ["ResponseStatusCodeError", "UND_ERR_RESPONSE_STATUS_CODE", "Response Status Code Error"],
  ["ResponseExceededMaxSizeError", "UND_ERR_RES_EXCEEDED_MAX_SIZE", "Response content exceeded max size"],
]) errorClass(name, code, message);

const isDispatcher = (value) => value instanceof Dispatcher || typeof value?.dispatch === "function";

// Headers as undici gives them: names in lower case, several values as a list.
function headersOf(headers) {
  const found = {};
  for (const [name, value] of headers) found[name] = value;
  const cookies = headers.getSetCookie();
  if (cookies.length) found["set-cookie"] = cookies.length > 1 ? cookies : cookies[0];
  return found;
}

// The headers of a request: an object, pairs, or names and values in turn.
function givenHeaders(given) {
  if (Array.isArray(given) && !Array.isArray(given[0])) {
    return given.flatMap((name, at) => (at % 2 ? [] : [[String(name), String(given[at + 1])]]));
  }
  const pairs = given && typeof given[Symbol.iterator] === "function" ? [...given] : Object.entries(given ?? {});
  return pairs.flatMap(([name, value]) => (value === undefined || value === null ? [] : [value].flat().map((each) => [name, String(each)])));
}

class Body extends Readable {
  #response;
  constructor(response) {
    const reader = response.body?.getReader();
    super({
      read() {
        if (!reader) return this.push(null);
        reader.read().then(
          ({ value, done }) => this.push(done ? null : value),
          (error) => this.destroy(error),
        );
      },
      destroy(error, done) {
        reader?.cancel().catch(() => {});
        done(error);
      },
    });
    this.#response = response;
  }
  get bodyUsed() {
    return this.readableDidRead;
  }
  #whole(form) {
    return this.bodyUsed ? Promise.reject(new TypeError("unusable")) : require("stream/consumers")[form](this);
  }
  text() {
    return this.#whole("text");
  }
  json() {
    return this.#whole("json");
  }
  bytes() {
    return this.#whole("bytes");
  }
  arrayBuffer() {
    return this.#whole("arrayBuffer");
  }
  async blob() {
    return new Blob([await this.bytes()], { type: this.#response.headers.get("content-type") ?? "" });
  }
  async dump() {
    for await (const _ of this);
  }
}

const bodyOf = (body) => (body instanceof Readable ? require("stream/consumers").buffer(body) : body);

async function request(target, options = {}) {
  const { method, headers, body, query, path, dispatcher, signal, headersTimeout, throwOnError, opaque = null } = options;
  if (options.upgrade) throw new errors.NotSupportedError("undici upgrades are not available in pith");
  (dispatcher ?? current).check();
  const url = new URL(target instanceof URL ? target.href : typeof target === "string" ? target : String(target?.origin ?? target?.protocol));
  if (path !== undefined) {
    const parts = new URL(path, url);
    Object.assign(url, { pathname: parts.pathname, search: parts.search });
  }
  for (const [name, value] of Object.entries(query ?? {})) for (const each of [value].flat()) url.searchParams.append(name, each);
  const own = new AbortController();
  const stop = () => own.abort(signal.reason ?? new errors.RequestAbortedError());
  if (signal?.aborted) stop();
  else if (typeof signal?.addEventListener === "function") signal.addEventListener("abort", stop, { once: true });
  else signal?.once?.("abort", stop);
  const timer = headersTimeout > 0 ? setTimeout(() => own.abort(new errors.HeadersTimeoutError()), headersTimeout) : null;
  let response;
  try {
    response = await web.fetch(url, { method: method ?? "GET", headers: givenHeaders(headers), body: await bodyOf(body), redirect: options.maxRedirections > 0 ? "follow" : "manual", signal: own.signal });
  } catch (error) {
    throw own.signal.aborted ? own.signal.reason : Object.assign(new errors.SocketError(error.cause?.message ?? error.message), { cause: error });
  } finally {
    clearTimeout(timer);
  }
  if (throwOnError && response.status >= 400) {
    throw Object.assign(new errors.ResponseStatusCodeError(`Response status code ${response.status}`), { status: response.status, statusCode: response.status, headers: headersOf(response.headers), body: await response.text() });
  }
  return { statusCode: response.status, statusText: response.statusText, headers: headersOf(response.headers), body: new Body(response), trailers: {}, opaque, context: {} };
}

// Writes the body of the response to the stream that the factory makes.
async function stream(target, options, factory) {
  const { body, ...head } = await request(target, options);
  await require("stream/promises").pipeline(body, factory(head));
  return { opaque: head.opaque, trailers: {}, context: head.context };
}

class Dispatcher extends EventEmitter {
  #end = null;
  constructor(origin, options) {
    super();
    const isOrigin = typeof origin === "string" || origin instanceof URL;
    this.options = isOrigin ? (options ?? {}) : (origin ?? {});
    this.origin = isOrigin ? new URL(origin).origin : undefined;
  }
  // Called before a request; what cannot be done as asked is refused.
  check() {
    if (this.#end) throw new errors[this.#end]();
  }
  get closed() {
    return this.#end !== null;
  }
  get destroyed() {
    return this.#end === "ClientDestroyedError";
  }
  request(options, callback) {
    const asked = request(this.origin ?? options.origin, { ...options, dispatcher: this });
    if (!callback) return asked;
    asked.then((result) => callback(null, result), callback);
  }
  stream(options, factory) {
    return stream(this.origin ?? options.origin, { ...options, dispatcher: this }, factory);
  }
  dispatch() {
    throw owners.unavailable("undici.Dispatcher.dispatch");
  }
  compose() {
    throw owners.unavailable("undici.Dispatcher.compose");
  }
  async close() {
    this.#end ??= "ClientClosedError";
  }
  async destroy() {
    this.#end = "ClientDestroyedError";
  }
}
class Agent extends Dispatcher {}
class Client extends Dispatcher {}
class Pool extends Dispatcher {}
class BalancedPool extends Dispatcher {}
class RetryAgent extends Dispatcher {}
// The agent's client itself follows the variables.
class EnvHttpProxyAgent extends Dispatcher {}

class ProxyAgent extends Dispatcher {
  #proxy;
  constructor(options) {
    super({});
    this.#proxy = new URL(typeof options === "string" || options instanceof URL ? options : options?.uri);
  }
  check() {
    super.check();
    // The agent's client uses the proxy of the environment, and no other.
    const names = ["http_proxy", "https_proxy", "all_proxy"].flatMap((name) => [name, name.toUpperCase()]);
    const { env } = JSON.parse(host.ops("os").process());
    const known = names.map((name) => env[name]).filter(Boolean);
    const isKnown = known.some((address) => URL.parse(address.includes("://") ? address : `http://${address}`)?.href === this.#proxy.href);
    if (!isKnown) throw owners.unavailable(`undici.ProxyAgent for ${this.#proxy.host}`, "is not available in pith: it uses the proxy that HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names");
  }
}

let current = new Agent();

function setGlobalDispatcher(dispatcher) {
  if (!isDispatcher(dispatcher)) throw new errors.InvalidArgumentError("Argument agent must implement Agent");
  if (!(dispatcher instanceof Dispatcher)) throw owners.unavailable("undici.setGlobalDispatcher with a dispatcher of its own");
  dispatcher.check();
  current = dispatcher;
}

async function fetch(input, init) {
  (init?.dispatcher ?? current).check?.();
  return web.fetch(input, init);
}

module.exports = {
  request, stream, fetch, errors, setGlobalDispatcher, Dispatcher, Agent, Client, Pool, BalancedPool, RetryAgent, EnvHttpProxyAgent, ProxyAgent,
  getGlobalDispatcher: () => current,
  Headers: web.Headers,
  Request: web.Request,
  Response: web.Response,
  FormData: web.FormData,
  EventSource: web.EventSource,
  get WebSocket() {
    return globalThis.WebSocket;
  },
  get MessageEvent() {
    return globalThis.MessageEvent;
  },
  get CloseEvent() {
    return globalThis.CloseEvent;
  },
};
for (const name of ["MockAgent", "MockPool", "MockClient", "RetryHandler", "DecoratorHandler", "RedirectHandler", "pipeline", "connect", "upgrade", "buildConnector", "setGlobalOrigin", "getGlobalOrigin", "interceptors", "cacheStores", "caches"]) {
  module.exports[name] = owners.refusal(`undici.${name}`);
}
