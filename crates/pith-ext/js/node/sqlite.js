// node:sqlite. Databases are native and known by a number; a statement is its text and how it is to be used.

const native = host.ops("sqlite");
const owners = require("internal/owners");

const coded = (Kind, code, message) => Object.assign(new Kind(message), { code });
const invalid = (name, what) => coded(TypeError, "ERR_INVALID_ARG_TYPE", `The "${name}" argument must be ${what}.`);

let last = 0;
// As with Node, a database that nobody can reach any more is closed.
const lost = new FinalizationRegistry((number) => native.close(number));

function pathOf(path) {
  if (path instanceof URL) return path.search ? path.href : require("url").fileURLToPath(path);
  const text = path instanceof Uint8Array ? require("buffer").Buffer.from(path).toString() : path;
  if (typeof text !== "string" || text.includes("\0")) throw invalid("path", "a string, Uint8Array, or URL without null bytes");
  if (text === "" || text === ":memory:" || text.startsWith("file:")) return text;
  return require("path").resolve(text);
}

function flag(options, name, fallback) {
  const value = options[name];
  if (value === undefined) return fallback;
  if (typeof value !== "boolean") throw invalid(`options.${name}`, "a boolean");
  return value;
}

class DatabaseSync {
  #number = null;
  #opening;
  #defaults;

  constructor(path, options = {}) {
    if (options === null || typeof options !== "object") throw invalid("options", "an object");
    const { timeout = 0 } = options;
    if (!Number.isInteger(timeout) || timeout < 0) throw invalid("options.timeout", "an integer that is not negative");
    if (flag(options, "allowExtension", false)) throw owners.unavailable("sqlite.DatabaseSync with allowExtension");
    this.#opening = {
      path: pathOf(path),
      isReadOnly: flag(options, "readOnly", false),
      hasForeignKeys: flag(options, "enableForeignKeyConstraints", true),
      allowsDoubleQuotes: flag(options, "enableDoubleQuotedStringLiterals", false),
      timeoutMs: timeout,
    };
    this.#defaults = {
      readsBig: flag(options, "readBigInts", false),
      returnsArrays: flag(options, "returnArrays", false),
      allowsBareNames: flag(options, "allowBareNamedParameters", true),
      allowsUnknownNames: flag(options, "allowUnknownNamedParameters", false),
    };
    if (flag(options, "open", true)) this.open();
  }
  get isOpen() {
    return this.#number !== null;
  }
  get isTransaction() {
    return native.isInTransaction(this.#opened());
  }
  #opened() {
    if (this.#number === null) throw coded(Error, "ERR_INVALID_STATE", "database is not open");
    return this.#number;
  }
  open() {
    if (this.#number !== null) throw coded(Error, "ERR_INVALID_STATE", "database is already open");
    const number = ++last;
    native.open(number, JSON.stringify(this.#opening));
    this.#number = number;
    lost.register(this, number, this);
  }
  close() {
    native.close(this.#opened());
    lost.unregister(this);
    this.#number = null;
  }
  exec(sql) {
    const number = this.#opened();
    if (typeof sql !== "string") throw invalid("sql", "a string");
    native.exec(number, sql);
  }
  prepare(sql, options = {}) {
    const number = this.#opened();
    if (typeof sql !== "string") throw invalid("sql", "a string");
    // Compiles it, so that a mistake in it is noticed here.
    native.columns(number, sql);
    const usage = {
      readsBig: flag(options, "readBigInts", this.#defaults.readsBig),
      returnsArrays: flag(options, "returnArrays", this.#defaults.returnsArrays),
      allowsBareNames: flag(options, "allowBareNamedParameters", this.#defaults.allowsBareNames),
      allowsUnknownNames: flag(options, "allowUnknownNamedParameters", this.#defaults.allowsUnknownNames),
    };
    const isAlive = () => this.#number === number;
    return new StatementSync(created, { database: this, isAlive, number, sql, usage });
  }
  location(name = "main") {
    const row = this.prepare("SELECT file FROM pragma_database_list WHERE name = ?").get(String(name));
    return row?.file ? row.file : null;
  }
  enableLoadExtension(allow) {
    if (allow) throw owners.unavailable("sqlite.DatabaseSync.enableLoadExtension");
  }
  [Symbol.dispose ?? Symbol.for("Symbol.dispose")]() {
    if (this.isOpen) this.close();
  }
}

// Only `prepare` makes statements.
const created = Symbol("created");

class StatementSync {
  #source; // with the database, which must not be collected before its statements
  #usage;
  #bound = { names: [], values: [] }; // what the last call was given

  constructor(key, source) {
    if (key !== created) throw coded(TypeError, "ERR_ILLEGAL_CONSTRUCTOR", "Illegal constructor");
    this.#source = source;
    this.#usage = source.usage;
  }
  get sourceSQL() {
    return this.#number() && this.#source.sql;
  }
  get expandedSQL() {
    return native.expand(this.#number(), this.#source.sql, this.#how(false), this.#bound.values);
  }
  #number() {
    if (!this.#source.isAlive()) throw coded(Error, "ERR_INVALID_STATE", "statement has been finalized");
    return this.#source.number;
  }
  #how(isOne) {
    const { allowsBareNames, allowsUnknownNames } = this.#usage;
    return JSON.stringify({ names: this.#bound.names, allowsBareNames, allowsUnknownNames, isOne });
  }
  #query(args, isOne) {
    const number = this.#number();
    this.#bound = parameters(args);
    return native.query(number, this.#source.sql, this.#how(isOne), this.#bound.values, this.#usage.readsBig);
  }
  #row(columns, cells) {
    if (this.#usage.returnsArrays) return cells;
    const row = Object.create(null);
    for (let at = 0; at < columns.length; at++) row[columns[at]] = cells[at];
    return row;
  }
  run(...args) {
    const { changes, lastInsertRowid } = this.#query(args, true);
    return { lastInsertRowid, changes };
  }
  get(...args) {
    const { columns, rows } = this.#query(args, true);
    return rows.length === 0 ? undefined : this.#row(columns, rows[0]);
  }
  all(...args) {
    const { columns, rows } = this.#query(args, false);
    return rows.map((cells) => this.#row(columns, cells));
  }
  iterate(...args) {
    return this.all(...args).values();
  }
  columns() {
    return JSON.parse(native.columns(this.#number(), this.#source.sql));
  }
  setReadBigInts(enabled) {
    this.#set("readBigInts", "readsBig", enabled);
  }
  setReturnArrays(enabled) {
    this.#set("returnArrays", "returnsArrays", enabled);
  }
  setAllowBareNamedParameters(enabled) {
    this.#set("allowBareNamedParameters", "allowsBareNames", enabled);
  }
  setAllowUnknownNamedParameters(enabled) {
    this.#set("allowUnknownNamedParameters", "allowsUnknownNames", enabled);
  }
  #set(name, key, enabled) {
    this.#number();
    if (typeof enabled !== "boolean") throw invalid(name, "a boolean");
    this.#usage = { ...this.#usage, [key]: enabled };
  }
}

// An object first has the named parameters; what follows goes to those without a name.
function parameters(args) {
  const [first] = args;
  const isNamed = first !== null && typeof first === "object" && !ArrayBuffer.isView(first) && !(first instanceof ArrayBuffer);
  const named = isNamed ? Object.entries(first) : [];
  const rest = isNamed ? args.slice(1) : args;
  return {
    names: [...named.map(([name]) => name), ...rest.map(() => null)],
    values: [...named.map(([name, value]) => bindable(value, `'${name}'`)), ...rest.map((value, at) => bindable(value, at + 1))],
  };
}

function bindable(value, which) {
  switch (typeof value) {
    case "number":
    case "string":
      return value;
    case "bigint":
      if (BigInt.asIntN(64, value) === value) return value;
      throw coded(RangeError, "ERR_INVALID_ARG_VALUE", "BigInt value is too large to bind.");
  }
  if (value === null) return value;
  if (ArrayBuffer.isView(value)) return { bytes: new Uint8Array(value.buffer, value.byteOffset, value.byteLength).toBase64() };
  if (value instanceof ArrayBuffer) return { bytes: new Uint8Array(value).toBase64() };
  throw coded(TypeError, "ERR_INVALID_ARG_TYPE", `Provided value cannot be bound to SQLite parameter ${which}.`);
}

for (const name of ["function", "aggregate", "createSession", "applyChangeset", "loadExtension"]) {
  Object.defineProperty(DatabaseSync.prototype, name, { value: owners.refusal(`sqlite.DatabaseSync.${name}`), configurable: true, writable: true });
}

module.exports = {
  DatabaseSync,
  StatementSync,
  constants: { SQLITE_CHANGESET_OMIT: 0, SQLITE_CHANGESET_REPLACE: 1, SQLITE_CHANGESET_ABORT: 2, SQLITE_CHANGESET_DATA: 1, SQLITE_CHANGESET_NOTFOUND: 2, SQLITE_CHANGESET_CONFLICT: 3, SQLITE_CHANGESET_CONSTRAINT: 4, SQLITE_CHANGESET_FOREIGN_KEY: 5 },
  backup: owners.refusal("sqlite.backup"),
};
