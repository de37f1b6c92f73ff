// Parts of node:util that few extensions use: names of system errors, files of variables, MIME types.

const failed = (Type, code, message) => Object.assign(new Type(message), { code });

const errors = () => JSON.parse(host.ops("os").errors()); // [number, name, text]

function errorOf(number) {
  if (typeof number !== "number") throw failed(TypeError, "ERR_INVALID_ARG_TYPE", `The "err" argument must be of type number. Received ${typeof number}`);
  if (!Number.isSafeInteger(number) || number >= 0) throw failed(RangeError, "ERR_OUT_OF_RANGE", `The value of "err" is out of range. It must be a negative integer. Received ${number}`);
  return errors().find(([known]) => known === number);
}

// Lines of NAME=VALUE as in an .env file.
function parseEnv(content) {
  if (typeof content !== "string") throw failed(TypeError, "ERR_INVALID_ARG_TYPE", 'The "content" argument must be of type string');
  const found = {};
  const line = /^[ \t]*(?:export[ \t]+)?([^\s=#][^=\n]*?)[ \t]*=[ \t]*(?:"((?:\\.|[^"])*)"|'([^']*)'|`([^`]*)`|([^\n#]*))/gm;
  for (const [, name, double, single, back, plain] of content.replace(/\r\n?/g, "\n").matchAll(line)) {
    found[name] = double !== undefined ? double.replace(/\\n/g, "\n") : (single ?? back ?? plain.trim());
  }
  return found;
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const tokenOf = (part, value, all) => {
  if (!TOKEN.test(value)) throw failed(TypeError, "ERR_INVALID_MIME_SYNTAX", `The MIME syntax for a ${part} in ${JSON.stringify(all)} is invalid`);
  return value.toLowerCase();
};

class MIMEParams extends Map {
  set(name, value) {
    return super.set(tokenOf("parameter name", String(name), String(name)), String(value));
  }
  toString() {
    return [...this].map(([name, value]) => `${name}=${TOKEN.test(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`}`).join(";");
  }
  toJSON() {
    return this.toString();
  }
}

class MIMEType {
  #type;
  #subtype;
  constructor(input) {
    const text = String(input);
    const [, essence, rest] = /^([^;]*)(.*)$/s.exec(text.trim());
    const slash = essence.indexOf("/");
    this.#type = tokenOf("type", slash < 0 ? "" : essence.slice(0, slash), text);
    this.#subtype = tokenOf("subtype", essence.slice(slash + 1).trimEnd(), text);
    this.params = new MIMEParams();
    for (const [, name, quoted, plain] of rest.matchAll(/;\s*([^;=\s]+)=(?:"((?:\\.|[^"\\])*)"|([^;]*))/g)) {
      const value = quoted === undefined ? plain.trim() : quoted.replace(/\\(.)/g, "$1");
      // The first one of a name counts, and those that are no tokens do not.
      if (TOKEN.test(name) && value && !this.params.has(name.toLowerCase())) this.params.set(name, value);
    }
  }
  static parse(input) {
    try {
      return new MIMEType(input);
    } catch {
      return null;
    }
  }
  get type() {
    return this.#type;
  }
  set type(value) {
    this.#type = tokenOf("type", String(value), String(value));
  }
  get subtype() {
    return this.#subtype;
  }
  set subtype(value) {
    this.#subtype = tokenOf("subtype", String(value), String(value));
  }
  get essence() {
    return `${this.#type}/${this.#subtype}`;
  }
  toString() {
    return this.params.size ? `${this.essence};${this.params}` : this.essence;
  }
  toJSON() {
    return this.toString();
  }
}

module.exports = {
  MIMEType,
  MIMEParams,
  parseEnv,
  getSystemErrorName: (number) => errorOf(number)?.[1] ?? `Unknown system error ${number}`,
  getSystemErrorMessage: (number) => errorOf(number)?.[2] ?? `Unknown system error ${number}`,
  getSystemErrorMap: () => new Map(errors().map(([number, name, text]) => [number, [name, text]])),
};
