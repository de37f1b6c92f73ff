// Modules of extensions: each extension has its own instances, pith's own modules are shared.

const owners = require("internal/owners");

// A namespace for CommonJS: `default` is the exports object, other names are its properties.
function namespaceOf(record) {
  return new Proxy(Object.create(null), {
    get(_, key) {
      const value = record.module.exports;
      if (key === Symbol.toStringTag) return "Module";
      if (key === "default") return value?.__esModule && "default" in value ? value.default : value;
      return value === null || value === undefined ? undefined : value[key];
    },
    has: (_, key) => key === "default" || Object(record.module.exports)[key] !== undefined,
    ownKeys: () => [...new Set([...Reflect.ownKeys(Object(record.module.exports)), "default"])],
    getOwnPropertyDescriptor(target, key) {
      const value = this.get(target, key);
      return value === undefined ? undefined : { value, writable: true, enumerable: key !== "default", configurable: true };
    },
  });
}

function defineExports(exports, getters) {
  for (const name of Object.keys(getters)) {
    Object.defineProperty(exports, name, { get: getters[name], enumerable: true, configurable: true });
  }
}

function copyStar(exports, from) {
  for (const name of Object.keys(from)) {
    if (name === "default" || Object.hasOwn(exports, name)) continue;
    Object.defineProperty(exports, name, { get: () => from[name], enumerable: true, configurable: true });
  }
}

const hostNamespaces = new WeakMap();
function hostNamespace(exports) {
  if (Object.hasOwn(exports, "default")) return exports;
  let namespace = hostNamespaces.get(exports);
  if (!namespace) {
    namespace = new Proxy(exports, { get: (target, key) => (key === "default" ? target : target[key]) });
    hostNamespaces.set(exports, namespace);
  }
  return namespace;
}

// Imports of files are URLs: `./x.ts?v=1` means the file `./x.ts`.
function withoutQuery(specifier) {
  const at = /^(\.{0,2}\/|file:)/.test(specifier) ? specifier.indexOf("?") : -1;
  return at < 0 ? [specifier, ""] : [specifier.slice(0, at), specifier.slice(at)];
}

class Modules {
  constructor(ext) {
    this.ext = ext;
    this.records = new Map(); // path and query -> record
  }

  // Hands the modules over to the next instance of the extension.
  moveTo(ext) {
    owners.replace(this.ext, ext);
    this.ext = ext;
    // What failed once is tried again.
    for (const [key, { state }] of this.records) if (state === "failed") this.records.delete(key);
    return this;
  }

  // Returns the record of a file, parsed and with its static imports resolved, not yet evaluated. Another query makes
  // another instance.
  record(path, query = "") {
    const key = path + query;
    let record = this.records.get(key);
    if (record) return record;
    record = { path, query, state: "new", module: { exports: {}, id: path, filename: path, loaded: false, children: [], paths: [] } };
    this.records.set(key, record);
    try {
      this.link(record);
    } catch (error) {
      this.records.delete(key);
      throw error;
    }
    return record;
  }

  link(record) {
    // Two extensions may share a file; stack traces distinguish their copies.
    let filename = record.path;
    for (let copy = 2; owners.isClaimed(filename); copy++) filename = `${record.path}#${copy}`;
    // A `tool_call` handler that needed the add-on must not allow the call.
    if (record.path.endsWith(".node")) owners.noteMissing(`${record.path}: native add-ons are not available in pith`, this.ext);
    const script = host.readModule(record.path, filename);
    record.kind = script.kind;
    if (script.kind === "json") {
      record.module.exports = JSON.parse(script.text);
      record.state = "done";
      return;
    }
    owners.claim(filename, this.ext);
    record.fn = script.fn;
    record.isAsync = script.isAsync;
    record.dependencies = script.imports.map((specifier) => this.dependency(specifier, record.path, false));
  }

  // What a specifier resolves to: a namespace, or a record that is still to be evaluated.
  dependency(specifier, from, isRequire) {
    const [plain, query] = isRequire ? [specifier, ""] : withoutQuery(specifier);
    const target = host.resolve(plain, from, isRequire);
    if (target.startsWith("host:")) {
      const exports = requireHost(target.slice(5), from);
      return { exports, namespace: hostNamespace(exports) };
    }
    return this.record(target, query);
  }

  namespace(record) {
    if (record.namespace) return record.namespace;
    record.namespace = record.kind === "module" ? this.exportsOf(record) : namespaceOf(record);
    return record.namespace;
  }

  exportsOf(record) {
    if (!record.isPrepared) {
      record.isPrepared = true;
      Object.defineProperty(record.module.exports, "__esModule", { value: true });
      Object.defineProperty(record.module.exports, Symbol.toStringTag, { value: "Module" });
    }
    return record.module.exports;
  }

  // Whether the module or any of its imports awaits at its top level.
  waits(record, seen = new Set()) {
    if (record.exports || record.state === "done" || seen.has(record)) return false;
    seen.add(record);
    return !!record.isAsync || (record.dependencies ?? []).some((dependency) => this.waits(dependency, seen));
  }

  body(record) {
    const { path, module } = record;
    const require = this.require(path);
    module.require = require;
    const slash = path.lastIndexOf("/");
    const directory = slash > 0 ? path.slice(0, slash) : "/";
    const tools = this.tools(record, directory);
    if (record.kind === "module") this.exportsOf(record);
    return record.fn.call(record.kind === "module" ? undefined : module.exports, module.exports, require, module, path, directory, tools);
  }

  tools(record, directory) {
    const self = this;
    let meta;
    return {
      use: (index) => {
        const dependency = record.dependencies[index];
        return dependency.namespace ?? self.namespace(dependency);
      },
      exports: (getters) => defineExports(record.module.exports, getters),
      star: (index) => {
        const dependency = record.dependencies[index];
        const from = dependency.namespace ?? self.namespace(dependency);
        copyStar(record.module.exports, from);
        // In a cycle the names are copied later.
        if (dependency.state === "running") (dependency.whenDone ??= []).push(() => copyStar(record.module.exports, from));
      },
      import: (specifier) => self.import(String(specifier), record.path),
      get meta() {
        const url = require_("url").pathToFileURL;
        return (meta ??= {
          url: url(record.path).href + record.query,
          filename: record.path,
          dirname: directory,
          main: false,
          resolve: (specifier) => {
            const [plain, query] = withoutQuery(String(specifier));
            const target = host.resolve(plain, record.path, false);
            return target.startsWith("host:") ? `node:${target.slice(5)}` : url(target).href + query;
          },
        });
      },
    };
  }

  run(record) {
    if (record.exports || record.state === "done" || record.state === "running") return;
    if (record.state === "failed") throw record.error;
    record.state = "running";
    try {
      for (const dependency of record.dependencies ?? []) this.run(dependency);
      const result = this.body(record);
      if (record.kind === "module") result();
      this.finished(record);
    } catch (error) {
      this.failed(record, error);
      throw error;
    }
  }

  async runAsync(record) {
    if (record.exports || record.state === "done") return;
    if (record.state === "failed") throw record.error;
    // A cycle must not wait for itself.
    if (record.state === "running") return;
    record.state = "running";
    try {
      for (const dependency of record.dependencies ?? []) {
        if (this.waits(dependency)) await this.runAsync(dependency);
        else this.run(dependency);
      }
      const result = this.body(record);
      if (record.kind === "module") await result();
      this.finished(record);
    } catch (error) {
      this.failed(record, error);
      throw error;
    }
  }

  finished(record) {
    record.state = "done";
    record.module.loaded = true;
    for (const then of record.whenDone ?? []) then();
  }

  failed(record, error) {
    record.state = "failed";
    record.error = error;
  }

  // `import()`: always a promise of the namespace.
  import(specifier, from) {
    return Promise.resolve().then(() => {
      const dependency = this.dependency(specifier, from, false);
      if (dependency.namespace) return dependency.namespace;
      return (dependency.loading ??= this.evaluate(dependency)).then(() => this.namespace(dependency));
    });
  }

  evaluate(record) {
    if (this.waits(record)) return this.runAsync(record);
    try {
      this.run(record);
      return Promise.resolve();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  require(from) {
    const require = (specifier) => {
      if (typeof specifier !== "string") throw new TypeError('The "id" argument must be of type string');
      const dependency = this.dependency(specifier, from, true);
      if (dependency.exports) return dependency.exports;
      if (this.waits(dependency)) {
        throw new Error(`require() of ${dependency.path} is not possible: it awaits at its top level, use import()`);
      }
      this.run(dependency);
      return dependency.module.exports;
    };
    require.resolve = (specifier) => {
      const target = host.resolve(String(specifier), from, true);
      return target.startsWith("host:") ? target.slice(5) : target;
    };
    require.resolve.paths = () => [];
    require.cache = Object.create(null);
    require.extensions = Object.create(null);
    require.main = undefined;
    return require;
  }
}

const require_ = require;
const requireHost = (name, from) => {
  const exports = require_(name);
  return typeof exports.forFile === "function" ? exports.forFile(from) : exports;
};

exports.Modules = Modules;
exports.namespaceFor = hostNamespace;
