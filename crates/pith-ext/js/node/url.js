// node:url, URL and URLSearchParams. Parsing is done natively.

const parts = host.ops("text");

class URLSearchParams {
  #list = [];
  #changed = null;
  constructor(init = "") {
    if (init === null || init === undefined) return;
    if (typeof init === "string") this.#parse(init);
    else if (typeof init[Symbol.iterator] === "function") for (const [name, value] of init) this.#list.push([String(name), String(value)]);
    else for (const name of Object.keys(init)) this.#list.push([name, String(init[name])]);
  }
  #parse(text) {
    this.#list = text
      .replace(/^\?/, "")
      .split("&")
      .filter(Boolean)
      .map((pair) => {
        const at = pair.indexOf("=");
        return at < 0 ? [decode(pair), ""] : [decode(pair.slice(0, at)), decode(pair.slice(at + 1))];
      });
  }
  // A URL updates its query when these change.
  static bind(params, text, changed) {
    params.#changed = null;
    params.#parse(text);
    params.#changed = changed;
    return params;
  }
  #touch() {
    this.#changed?.(this.toString());
  }
  get size() {
    return this.#list.length;
  }
  append(name, value) {
    this.#list.push([String(name), String(value)]);
    this.#touch();
  }
  delete(name, value) {
    this.#list = this.#list.filter(([key, item]) => key !== name || (value !== undefined && item !== String(value)));
    this.#touch();
  }
  get(name) {
    return this.#list.find(([key]) => key === name)?.[1] ?? null;
  }
  getAll(name) {
    return this.#list.filter(([key]) => key === name).map(([, value]) => value);
  }
  has(name, value) {
    return this.#list.some(([key, item]) => key === name && (value === undefined || item === String(value)));
  }
  set(name, value) {
    const at = this.#list.findIndex(([key]) => key === name);
    if (at < 0) this.#list.push([String(name), String(value)]);
    else {
      this.#list[at] = [String(name), String(value)];
      this.#list = this.#list.filter(([key], index) => key !== name || index <= at);
    }
    this.#touch();
  }
  sort() {
    this.#list.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    this.#touch();
  }
  forEach(callback, self) {
    for (const [name, value] of this.#list) callback.call(self, value, name, this);
  }
  *entries() {
    yield* this.#list.map(([name, value]) => [name, value]);
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
  toString() {
    return this.#list.map(([name, value]) => `${encode(name)}=${encode(value)}`).join("&");
  }
  get [Symbol.toStringTag]() {
    return "URLSearchParams";
  }
}

const decode = (text) => {
  const spaced = text.replace(/\+/g, " ");
  try {
    return decodeURIComponent(spaced);
  } catch {
    return spaced;
  }
};
const encode = (text) =>
  encodeURIComponent(text.toWellFormed()).replace(/%20/g, "+").replace(/[!'()~]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);

const invalid = (input) => Object.assign(new TypeError("Invalid URL"), { code: "ERR_INVALID_URL", input });

class URL {
  #parts;
  #params = null;
  constructor(input, base) {
    const text = String(input).toWellFormed();
    const found = parts.parseUrl(text, base === undefined ? undefined : String(base));
    if (!found) throw invalid(text);
    this.#parts = JSON.parse(found);
  }
  static canParse(input, base) {
    return !!parts.parseUrl(String(input), base === undefined ? undefined : String(base));
  }
  static parse(input, base) {
    return URL.canParse(input, base) ? new URL(input, base) : null;
  }
  #set(part, value) {
    this.#parts = JSON.parse(parts.setUrl(this.#parts.href, part, String(value)));
    if (this.#params && part !== "search") this.#rebind();
  }
  #rebind() {
    URLSearchParams.bind(this.#params, this.#parts.search, (text) => this.#set("search", text));
  }
  get searchParams() {
    if (!this.#params) {
      this.#params = new URLSearchParams();
      this.#rebind();
    }
    return this.#params;
  }
  get href() {
    return this.#parts.href;
  }
  set href(value) {
    this.#parts = JSON.parse(parts.parseUrl(String(value), undefined) || (() => { throw invalid(value); })());
    if (this.#params) this.#rebind();
  }
  get origin() {
    return this.#parts.origin;
  }
  toString() {
    return this.href;
  }
  toJSON() {
    return this.href;
  }
  get [Symbol.toStringTag]() {
    return "URL";
  }
  // The accessors of the remaining parts are all alike.
  static {
    for (const part of ["protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"]) {
      Object.defineProperty(URL.prototype, part, {
        configurable: true,
        enumerable: true,
        get() {
          return this.#parts[part];
        },
        set(value) {
          this.#set(part, value);
          if (part === "search" && this.#params) this.#rebind();
        },
      });
    }
  }
}

function fileURLToPath(input) {
  const url = typeof input === "string" ? new URL(input) : input;
  if (url?.protocol !== "file:") throw Object.assign(new TypeError("The URL must be of scheme file"), { code: "ERR_INVALID_URL_SCHEME" });
  return decodeURIComponent(url.pathname);
}

function pathToFileURL(path) {
  const absolute = require("path").resolve(path) + (/[^/]\/$/.test(path) ? "/" : "");
  const escaped = absolute.replace(/%/g, "%25").replace(/\\/g, "%5C").replace(/\n/g, "%0A").replace(/\r/g, "%0D").replace(/\t/g, "%09").replace(/\?/g, "%3F").replace(/#/g, "%23");
  return new URL(`file://${escaped}`);
}

// The old interface: a plain object of parts.
function parse(input, parseQuery) {
  const absolute = URL.parse(input);
  const empty = { protocol: null, slashes: null, auth: null, host: null, port: null, hostname: null, hash: null, search: null, query: null, pathname: null, path: null, href: String(input) };
  const url = absolute ?? new URL(input, "http://relative");
  const query = url.search ? url.search.slice(1) : null;
  const shared = { hash: url.hash || null, search: url.search || null, query: parseQuery ? Object.fromEntries(url.searchParams) : query, pathname: url.pathname, path: url.pathname + url.search };
  if (!absolute) return { ...empty, ...shared };
  const auth = url.username ? `${url.username}${url.password ? `:${url.password}` : ""}` : null;
  return { ...empty, ...shared, protocol: url.protocol, slashes: true, auth, host: url.host, port: url.port || null, hostname: url.hostname, href: url.href };
}

function format(url, options = {}) {
  if (typeof url === "string") return url;
  if (url instanceof URL) {
    const copy = new URL(url.href);
    if (options.fragment === false) copy.hash = "";
    if (options.search === false) copy.search = "";
    return copy.href;
  }
  const { protocol, hostname, port, pathname = "", search, query, hash = "" } = url;
  const host_ = url.host ?? (hostname ? `${hostname}${port ? `:${port}` : ""}` : "");
  const tail = search ?? (query && typeof query === "object" ? `?${new URLSearchParams(query)}` : "");
  return `${protocol ? `${protocol.replace(/:?$/, ":")}//` : ""}${host_}${pathname}${tail}${hash}`;
}

const urlToHttpOptions = (url) => ({ protocol: url.protocol, hostname: url.hostname, port: url.port, path: url.pathname + url.search, href: url.href });

module.exports = {
  get URLPattern() {
    return require("internal/url-pattern").URLPattern;
  },
  URL, URLSearchParams, fileURLToPath, pathToFileURL, parse, format, resolve: (from, to) => new URL(to, from).href, urlToHttpOptions, domainToASCII: (domain) => domain, domainToUnicode: (domain) => domain,
};
