// The names of Node: its globals, its modules with what they export, and the methods of the classes among these, as
// JSON. Run by Node itself; crates/pith-ext/tests/data/node-24.json is what Node 24 says.
//
//   npm install --prefix DIRECTORY node@24 && DIRECTORY/node_modules/node/bin/node tests/extensions/node-names.mjs

import { builtinModules } from "node:module";

// Parts that Node keeps for itself begin with an underscore; `default` is the module once more.
const isPublic = (name) => !name.startsWith("_") && !["default", "module.exports", "withoutStackTrace"].includes(name);
const isMethod = (from, name) => name !== "constructor" && typeof Object.getOwnPropertyDescriptor(from, name)?.value === "function";
const methods = (from) => Object.getOwnPropertyNames(from).filter((name) => isPublic(name) && isMethod(from, name)).sort();

const constants = (path, values) => {
  const groups = Object.keys(values).filter((name) => typeof values[name] === "object");
  const nested = groups.map((name) => constants(`${path}.${name}`, values[name]));
  return Object.assign({ [path]: Object.keys(values).filter(isPublic).sort() }, ...nested);
};

function describe(exports, names, prefix, members) {
  const known = names.filter(isPublic).sort();
  for (const name of known) {
    const value = exports[name];
    if (name === "constants") Object.assign(members, constants(`${prefix}${name}`, value));
    if (typeof value !== "function") continue;
    const own = [...methods(value), ...(value.prototype ? methods(value.prototype).map((method) => `prototype.${method}`) : [])];
    if (own.length) members[`${prefix}${name}`] = own;
  }
  return known;
}

const globalMembers = {};
const globals = describe(globalThis, Object.getOwnPropertyNames(globalThis), "", globalMembers);
const seen = new Set(globals.map((name) => globalThis[name]));
const modules = {};
const members = {};
for (const specifier of builtinModules.filter(isPublic)) {
  if (specifier === "sys") continue; // util
  const name = specifier.replace("node:", "");
  const exports = await import(specifier.includes(":") ? specifier : `node:${specifier}`);
  // Some modules are another one under a second name.
  if (seen.has(exports.default)) continue;
  seen.add(exports.default);
  // A class is described once: where it is a global, or in the first module that has it.
  const found = {};
  modules[name] = describe(exports, Object.keys(exports), `${name}.`, found);
  for (const [key, list] of Object.entries(found)) {
    const value = exports[key.slice(name.length + 1)];
    if (typeof value === "function" && seen.has(value)) continue;
    seen.add(value);
    members[key] = list;
  }
}
const list = (named) => Object.entries(named).map(([name, names]) => `    ${JSON.stringify(name)}: ${JSON.stringify(names.join(" "))}`).join(",\n");
console.log(`{
  "version": ${JSON.stringify(process.versions.node)},
  "modules": {
    "globals": ${JSON.stringify(globals.join(" "))},
${list(modules)}
  },
  "members": {
${list({ ...globalMembers, ...members })}
  }
}`);
