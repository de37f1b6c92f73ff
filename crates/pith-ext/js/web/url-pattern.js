// URLPattern: addresses with parts that may vary.

const PARTS = ["protocol", "username", "password", "hostname", "port", "pathname", "search", "hash"];
const PORTS = { http: "80", https: "443", ws: "80", wss: "443", ftp: "21" };

const invalid = (why) => Object.assign(new TypeError(`Failed to construct URLPattern${why ? `: ${why}` : ""}`), { code: "ERR_INVALID_URL_PATTERN" });
const escaped = (text) => text.replace(/[.+*?^${}()[\]|/\\]/g, "\\$&");

// Cuts a pattern into what stands for itself and what varies.
function tokens(text) {
  const found = [];
  for (let at = 0; at < text.length; ) {
    const char = text[at];
    if (char === "\\") {
      if (at + 1 >= text.length) throw invalid("nothing follows the last backslash");
      found.push({ kind: "char", value: text[at + 1], at });
      at += 2;
    } else if (char === ":" && /[\p{ID_Start}$_]/u.test(text[at + 1] ?? "")) {
      const [name] = /^[\p{ID_Continue}$]+/u.exec(text.slice(at + 1));
      found.push({ kind: "name", value: name, at });
      at += 1 + name.length;
    } else if (char === "(") {
      let depth = 1;
      let end = at + 1;
      for (; end < text.length && depth > 0; end++) {
        if (text[end] === "\\") end++;
        else if (text[end] === "(") {
          depth++;
          if (text[end + 1] !== "?") throw invalid("a group inside of a regular expression must not capture");
        } else if (text[end] === ")") depth--;
      }
      if (depth > 0 || end === at + 2 || text[at + 1] === "?") throw invalid("a regular expression is not closed, or empty");
      found.push({ kind: "regexp", value: text.slice(at + 1, end - 1), at });
      at = end;
    } else {
      found.push({ kind: { "{": "open", "}": "close", "*": "star", "+": "modifier", "?": "modifier" }[char] ?? "char", value: char, at });
      at++;
    }
  }
  return found;
}

// Compiles one part of the pattern to a regular expression and the names of its groups.
function compile(text, part, ignoreCase) {
  const separator = part === "hostname" ? "." : part === "pathname" ? "/" : "";
  const segment = separator ? `[^${escaped(separator)}]+?` : ".+?";
  const list = tokens(text);
  const names = [];
  let hasRegExp = false;
  let unnamed = 0;
  let source = "";
  let at = 0;
  const take = (kind) => (list[at]?.kind === kind ? list[at++] : undefined);
  const modifier = () => (take("modifier") ?? take("star"))?.value ?? "";
  const group = () => {
    const name = take("name");
    const regexp = take("regexp");
    const star = name || regexp ? undefined : take("star");
    if (!name && !regexp && !star) return null;
    const key = name?.value ?? String(unnamed++);
    if (names.includes(key)) throw invalid(`the name ${key} is there twice`);
    if (regexp) hasRegExp = true;
    names.push(key);
    return regexp?.value ?? (star ? ".*" : segment);
  };
  const add = (prefix, inner, suffix, mark) => {
    const whole = `${escaped(prefix)}(${inner})${escaped(suffix)}`;
    if (!mark) source += whole;
    else if (mark === "?") source += `(?:${whole})?`;
    else source += `(?:${escaped(prefix)}((?:${inner})(?:${escaped(suffix + prefix)}(?:${inner}))*)${escaped(suffix)})${mark === "*" ? "?" : ""}`;
  };
  while (at < list.length) {
    // A separator before a group goes with it: `/a/:b?` also means `/a`.
    const isPrefixed = list[at].kind === "char" && list[at].value === separator && part === "pathname" && ["name", "regexp", "star"].includes(list[at + 1]?.kind);
    if (isPrefixed || ["name", "regexp", "star"].includes(list[at].kind)) {
      const prefix = isPrefixed ? take("char").value : "";
      add(prefix, group(), "", modifier());
    } else if (take("open")) {
      const text_ = () => {
        let plain = "";
        for (let next = take("char"); next; next = take("char")) plain += next.value;
        return plain;
      };
      const prefix = text_();
      const inner = group();
      const suffix = text_();
      if (!take("close")) throw invalid("a brace is not closed");
      const mark = modifier();
      if (inner === null) source += mark ? `(?:${escaped(prefix + suffix)})${mark}` : escaped(prefix + suffix);
      else add(prefix, inner, suffix, mark);
    } else {
      const char = take("char");
      if (!char) throw invalid(`unexpected ${list[at].value}`);
      source += escaped(char.value);
    }
  }
  try {
    return { text, names, hasRegExp, regexp: new RegExp(`^${source}$`, ignoreCase ? "ui" : "u") };
  } catch {
    throw invalid(`not a regular expression in ${text}`);
  }
}

// Cuts a pattern of a whole address into its parts.
function split(text) {
  const list = tokens(text);
  const parts = {};
  let depth = 0;
  const isAt = (index, value) => list[index]?.kind === "char" && list[index].value === value;
  const plain = list.map((token) => {
    if (token.kind === "open") depth++;
    if (token.kind === "close") depth--;
    return depth === 0 && (token.kind === "char" || token.kind === "modifier");
  });
  const find = (from, to, test) => {
    for (let index = from; index < to; index++) if (plain[index] && test(index)) return index;
    return -1;
  };
  const slice = (from, to) => text.slice(list[from]?.at ?? text.length, to >= list.length ? text.length : list[to].at);
  let end = list.length;
  const hash = find(0, end, (index) => isAt(index, "#"));
  if (hash >= 0) {
    parts.hash = slice(hash + 1, end);
    end = hash;
  }
  // A question mark after a group makes it optional; elsewhere the query begins.
  const isQuery = (index) => list[index].value === "?" && (list[index].kind === "char" || !["name", "regexp", "close", "star"].includes(list[index - 1]?.kind));
  const search = find(0, end, isQuery);
  if (search >= 0) {
    parts.search = slice(search + 1, end);
    end = search;
  }
  const colon = list.findIndex((token, index) => index < end && token.kind === "char" && token.value === ":" && (isAt(index + 1, "/") || !isAt(0, "/")));
  let start = 0;
  if (colon > 0) {
    parts.protocol = slice(0, colon);
    start = colon + 1;
    if (isAt(start, "/") && isAt(start + 1, "/")) {
      start += 2;
      const slash = find(start, end, (index) => isAt(index, "/"));
      const last = slash < 0 ? end : slash;
      let host = start;
      const at = find(start, last, (index) => isAt(index, "@"));
      if (at >= 0) {
        const middle = find(start, at, (index) => isAt(index, ":"));
        parts.username = slice(start, middle < 0 ? at : middle);
        if (middle >= 0) parts.password = slice(middle + 1, at);
        host = at + 1;
      }
      const port = find(host, last, (index) => isAt(index, ":"));
      parts.hostname = slice(host, port < 0 ? last : port);
      parts.port = port < 0 ? "" : slice(port + 1, last);
      start = last;
      if (slash < 0 && parts.search === undefined && parts.hash === undefined) return { ...parts, pathname: "*" };
      parts.pathname = slice(start, end) || "/";
      return parts;
    }
  }
  parts.pathname = slice(start, end);
  return parts;
}

// The parts of an address as patterns see them.
const partsOf = (url) => ({
  protocol: url.protocol.slice(0, -1),
  username: url.username,
  password: url.password,
  hostname: url.hostname,
  port: url.port,
  pathname: url.pathname,
  search: url.search.slice(1),
  hash: url.hash.slice(1),
});

const addressOf = (input, base) => {
  try {
    return new URL(String(input), base);
  } catch {
    return null;
  }
};

class URLPattern {
  #parts = {};
  constructor(input = {}, base, options) {
    if (base !== null && typeof base === "object") [base, options] = [undefined, base];
    let given = typeof input === "string" ? split(input) : { ...input };
    if (base === undefined) base = given.baseURL;
    if (base !== undefined) {
      const from = addressOf(base);
      if (!from) throw invalid("the base is no address");
      const inherited = partsOf(from);
      // What comes before the first part that is given is taken from the base.
      const order = ["protocol", "hostname", "port", "pathname", "search", "hash"];
      const first = order.findIndex((name) => given[name] !== undefined);
      for (const name of order.slice(0, first < 0 ? order.length : first)) given[name] ??= escapeParts(inherited[name]);
      if (given.pathname !== undefined && !/^[/*{:(]/.test(given.pathname)) given.pathname = inherited.pathname.replace(/[^/]*$/, "") + given.pathname;
    } else if (typeof input === "string" && given.protocol === undefined) throw invalid("a relative pattern needs a base");
    if (typeof input === "string") given = { search: given.protocol && given.pathname !== "*" && given.hash !== undefined ? "" : undefined, ...given };
    for (const name of PARTS) {
      let text = given[name];
      if (text === undefined) text = "*";
      text = String(text);
      if (name === "protocol") text = text.replace(/:$/, "");
      if (name === "search") text = text.replace(/^\?/, "");
      if (name === "hash") text = text.replace(/^#/, "");
      if (name === "port" && text === PORTS[given.protocol]) text = "";
      this.#parts[name] = compile(text, name, name === "pathname" && options?.ignoreCase);
    }
    for (const name of PARTS) Object.defineProperty(this, name, { get: () => this.#parts[name].text, enumerable: true });
  }
  get hasRegExpGroups() {
    return PARTS.some((name) => this.#parts[name].hasRegExp);
  }
  exec(input = {}, base) {
    let parts;
    if (typeof input === "string" || input instanceof URL) {
      const url = addressOf(input, base);
      if (!url) return null;
      parts = partsOf(url);
    } else {
      const from = input.baseURL === undefined ? null : addressOf(input.baseURL);
      parts = { ...(from ? partsOf(from) : Object.fromEntries(PARTS.map((name) => [name, ""]))), ...input };
      for (const [name, edge] of [["protocol", /:$/], ["search", /^\?/], ["hash", /^#/]]) parts[name] = String(parts[name]).replace(edge, "");
    }
    const result = { inputs: base === undefined ? [input] : [input, base] };
    for (const name of PARTS) {
      const { regexp, names } = this.#parts[name];
      const found = regexp.exec(String(parts[name] ?? ""));
      if (!found) return null;
      result[name] = { input: found[0], groups: Object.fromEntries(names.map((key, index) => [key, found[index + 1]])) };
    }
    return result;
  }
  test(input, base) {
    return this.exec(input, base) !== null;
  }
}

const escapeParts = (text) => text.replace(/[+*?:{}()\\]/g, "\\$&");

module.exports = { URLPattern };
