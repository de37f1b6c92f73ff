// node:module.

const owners = require("internal/owners");

const builtinModules = JSON.parse(host.builtins());

function createRequire(from) {
  const path = from instanceof URL || String(from).startsWith("file:") ? require("url").fileURLToPath(from) : String(from);
  const ext = owners.ofStack(`(${path}:1)`) ?? owners.now();
  if (!ext) throw new Error("createRequire was called from outside an extension");
  return ext.modules.require(path.endsWith("/") ? `${path}noop.js` : path);
}

class Module {
  constructor(id = "") {
    this.id = id;
    this.exports = {};
  }
}
Object.assign(Module, {
  Module,
  createRequire,
  builtinModules,
  isBuiltin: (name) => builtinModules.includes(String(name).replace(/^node:/, "")),
  findPackageJSON: () => undefined,
  enableCompileCache: () => ({}),
  register: () => {},
  registerHooks: () => ({ deregister: () => {} }),
  syncBuiltinESMExports: () => {},
  stripTypeScriptTypes: (code) => code,
  _cache: {},
  _extensions: {},
  _resolveFilename: (request) => request,
});
module.exports = Module;
