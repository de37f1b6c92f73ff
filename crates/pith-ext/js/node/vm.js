// node:vm. A context is an object that stands for the globals: a script finds names in it first, and what it declares
// or assigns is written to it. The classes of the language are the same in all contexts. This keeps names apart and is
// no boundary of trust; neither is Node's.

const native = host.ops("vm");

// Compiling cannot be interrupted.
const MAX_SOURCE = 8 << 20;

const failed = (Type, code, message) => Object.assign(new Type(message), { code });
const received = (value) => (value === null ? "null" : typeof value);

// The language is everywhere; the console, timers and all else of Node only where an extension puts it.
const language = new Set("Array ArrayBuffer Atomics AggregateError BigInt BigInt64Array BigUint64Array Boolean DataView Date Error EvalError FinalizationRegistry Float16Array Float32Array Float64Array Function Infinity Int16Array Int32Array Int8Array Intl Iterator JSON Map Math NaN Number Object Promise Proxy RangeError ReferenceError Reflect RegExp Set SharedArrayBuffer String Symbol SyntaxError TypeError URIError Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakRef WeakSet decodeURI decodeURIComponent encodeURI encodeURIComponent escape eval isFinite isNaN parseFloat parseInt undefined unescape".split(" "));

// Sloppy, as scripts are; what it evaluates sees the names of the first argument.
const evaluate = Function("with (arguments[0]) return eval(arguments[1])");

// Sees the globals and nothing else.
const { eval: evaluateHere } = globalThis;

const contexts = new WeakMap(); // object -> { scope, names }

const constants = Object.freeze({ __proto__: null, USE_MAIN_CONTEXT_DEFAULT_LOADER: Symbol("vm_dynamic_import_main_context_default"), DONT_CONTEXTIFY: Symbol("vm_context_no_contextify") });

function createContext(object = {}) {
  if (object === constants.DONT_CONTEXTIFY) object = {};
  if (object === null || typeof object !== "object") throw failed(TypeError, "ERR_INVALID_ARG_TYPE", `The "contextObject" argument must be of type object. Received ${received(object)}`);
  if (contexts.has(object)) return object;
  const names = new Set();
  const scope = new Proxy(object, {
    // Names of pith's own globals are hidden; those that are nowhere fail as the language says.
    has: (target, key) => key in target || names.has(key) || (typeof key === "string" && key in globalThis),
    get: (target, key) => {
      if (key === Symbol.unscopables) return undefined;
      if (key in target) return target[key];
      return key === "globalThis" ? target : language.has(key) ? globalThis[key] : undefined;
    },
    set: (target, key, value) => {
      target[key] = value;
      return true;
    },
  });
  contexts.set(object, { scope, names });
  return object;
}

const isContext = (object) => {
  if (object === null || typeof object !== "object") throw failed(TypeError, "ERR_INVALID_ARG_TYPE", `The "object" argument must be of type object. Received ${received(object)}`);
  return contexts.has(object);
};

class Script {
  #script;
  #source;
  constructor(code) {
    this.#source = String(code);
    if (this.#source.length > MAX_SOURCE) throw failed(RangeError, "ERR_OUT_OF_RANGE", `A script of ${this.#source.length} characters is too long: vm compiles ${MAX_SOURCE} at most`);
    const { error, ...script } = JSON.parse(native.scoped(this.#source));
    if (error) throw new SyntaxError(error);
    this.#script = script;
  }
  runInContext(object) {
    const context = contexts.get(object);
    if (!context) throw failed(TypeError, "ERR_INVALID_ARG_TYPE", `The "contextifiedObject" argument must be an vm.Context. Received ${received(object)}`);
    const { code, declared, assigned } = this.#script;
    for (const name of [...declared, ...assigned]) context.names.add(name);
    return evaluate.call(object, context.scope, code);
  }
  runInNewContext(object) {
    return this.runInContext(createContext(object));
  }
  runInThisContext() {
    return evaluateHere(this.#source);
  }
  createCachedData() {
    return require("buffer").Buffer.alloc(0);
  }
}

const runInContext = (code, object) => new Script(code).runInContext(object);

function compileFunction(code, parameters = [], { parsingContext } = {}) {
  const text = `(function (${parameters.join(", ")}) {\n${code}\n})`;
  return parsingContext ? runInContext(text, parsingContext) : new Script(text).runInThisContext();
}

module.exports = {
  Script, createContext, isContext, runInContext, compileFunction, constants,
  createScript: (code) => new Script(code),
  runInNewContext: (code, object) => new Script(code).runInNewContext(object),
  runInThisContext: (code) => new Script(code).runInThisContext(),
};
